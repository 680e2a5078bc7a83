"""An upstream server of the soak, a process of its own: prints `port N`, then `post ID` for every POST it read.

The target's query says how to answer: size=N, chunked=1, pace=SECONDS between pieces, after=N with
abort=fin or abort=reset to end in the middle. A POST is answered with the hash of its body, and with echo=1
with a body too. SIGTERM: answers what it has begun, then ends. End of standard input: ends at once.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import random
import signal
import socket
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from soak import bodies  # noqa: E402
from soak.flow import Ended, Flow, chunk  # noqa: E402
from support import wire  # noqa: E402
from support.upstream import set_reset_on_close  # noqa: E402


def say(text: str) -> None:
    os.write(1, text.encode() + b'\n')


class Server:
    """Listens, and serves each connection in a thread."""

    def __init__(self, port: int, close_idle: bool):
        self.close_idle = close_idle
        self.ending = False
        self.lock = threading.Lock()
        self.idle: set[socket.socket] = set()
        self.busy = 0
        self.listener = self._listen(port)

    @staticmethod
    def _listen(port: int) -> socket.socket:
        deadline = time.monotonic() + 20
        while True:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(('127.0.0.1', port))
                listener.listen(512)
                return listener
            except OSError:
                # A restart: the port may be another's outgoing one for a moment.
                listener.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def run(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=self.end).start())
        threading.Thread(target=self._accept, daemon=True).start()
        say(f'port {self.listener.getsockname()[1]}')
        sys.stdin.buffer.read()
        os._exit(0)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def end(self) -> None:
        with self.lock:
            self.ending = True
            for sock in self.idle:
                sock.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        deadline = time.monotonic() + 2
        while self.busy and time.monotonic() < deadline:
            time.sleep(0.005)
        os._exit(0)

    def _serve(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        flow = Flow(sock)
        served = False
        try:
            while self._wait_for_request(flow, served):
                try:
                    request = flow.head()
                    sock.settimeout(120)
                    if not self._answer(flow, request):
                        break
                    served = True
                finally:
                    with self.lock:
                        self.busy -= 1
        except (Ended, OSError):
            pass
        except (wire.Malformed, ValueError, IndexError) as error:
            say(f'error {error}')
        sock.close()

    def _wait_for_request(self, flow: Flow, served: bool) -> bool:
        with self.lock:
            if self.ending:
                return False
            self.idle.add(flow.sock)
        flow.sock.settimeout(random.uniform(0, 0.03) if self.close_idle and served else None)
        try:
            if not flow.held:
                flow.more()
        finally:
            with self.lock:
                self.idle.discard(flow.sock)
        with self.lock:
            self.busy += not self.ending
            return not self.ending

    def _answer(self, flow: Flow, request: wire.Message) -> bool:
        query = dict(urllib.parse.parse_qsl(request.target.partition('?')[2]))
        request_id = request.get('x-request-id', '')
        fields = [f'X-Id: {request_id}']
        size = int(query.get('size', '0'))
        if request.method == 'POST':
            received = hashlib.sha256()
            for piece in flow.body(request):
                received.update(piece)
            say(f'post {request_id}')
            fields.append(f'X-Body-Hash: {received.hexdigest()}')
        self._respond(flow, request_id, size, query, fields)
        return not self.ending

    def _respond(self, flow: Flow, request_id: str, size: int, query: dict, fields: list[str]) -> None:
        chunked = query.get('chunked') == '1'
        fields.append('Transfer-Encoding: chunked' if chunked else f'Content-Length: {size}')
        if self.ending:
            fields.append('Connection: close')
        head = ('HTTP/1.1 200 OK\r\n' + '\r\n'.join(fields) + '\r\n\r\n').encode()
        pace = float(query.get('pace', '0'))
        after = int(query['after']) if 'after' in query else None
        sent = 0
        step = random.choice((1000, 16384, 65536)) if chunked else 262144
        if after is not None or pace:
            step = min(step, max(1, size // 16))
        for piece in bodies.pieces(request_id, size, step):
            if after is not None and sent >= after:
                flow.send(head)
                if query.get('abort') == 'reset':
                    set_reset_on_close(flow.sock)
                raise Ended('by itself')
            flow.send(head + (chunk(piece) if chunked else piece))
            head = b''
            sent += len(piece)
            if pace:
                time.sleep(pace)
        flow.send(head + (b'0\r\n\r\n' if chunked else b''))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--port', type=int, default=0)
    parser.add_argument('--close-idle', action='store_true', help='close connections that are idle for a moment')
    options = parser.parse_args()
    Server(options.port, options.close_idle).run()
    return 0


if __name__ == '__main__':
    sys.exit(main())
