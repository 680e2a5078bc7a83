"""An OCSP responder for tests (RFC 6960 over HTTP)."""

from __future__ import annotations

import collections.abc
import http.server
import threading

TYPE = 'application/ocsp-response'


class Responder:
    """Answers on 127.0.0.1 with what `answer` makes of a request; `status` and `kind` are those of HTTP.

    With `answer` None it takes requests and says nothing until it is closed.
    """

    def __init__(self) -> None:
        self.answer: collections.abc.Callable[[bytes], bytes] | None = None
        self.status, self.kind = 200, TYPE
        self.requests: list[bytes] = []
        self._end = threading.Event()
        responder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One request."""

            def do_POST(self) -> None:
                """Answers it."""
                request = self.rfile.read(int(self.headers['Content-Length']))
                responder.requests.append(request)
                if responder.answer is None:
                    responder._end.wait()
                    return
                body = responder.answer(request)
                self.send_response(responder.status)
                self.send_header('Content-Type', responder.kind)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass  # it had seen enough

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self._server.server_address[1]}/ocsp?a=b'

    def close(self) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
