"""An HTTP/2 server that a test scripts frame by frame. It needs python3-hpack (of python3-h2) to read heads."""

from __future__ import annotations

import dataclasses
import socket
import ssl
import struct
import threading
from typing import Callable

import hpack

from . import h2
from .upstream import wait_until


@dataclasses.dataclass
class Request:
    """One stream, as it came so far."""

    stream: int
    fields: list[tuple[str, str]]
    body: bytes = b''
    trailers: list[tuple[str, str]] | None = None
    ended: bool = False
    reset: int | None = None  # the code of the proxy's RST_STREAM
    window: int = 0
    sent: int = 0  # bytes of the response's body

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.fields if key == name), None)


class Connection:
    """One accepted connection. Reads by itself; answers SETTINGS and PING, and opens windows for what it read."""

    def __init__(self, server: 'Server', sock: socket.socket, number: int):
        self.server = server
        self.sock = sock
        self.number = number
        self.streams: dict[int, Request] = {}
        self.order: list[Request] = []
        self.frames: list[h2.Frame] = []
        self.ended = False
        self.answers_pings = True
        self._decoder = hpack.Decoder()
        self._windows = {0: 65535}
        self._initial = 65535
        self._lock = threading.Lock()
        self._pending = b''

    # ---- what a test sends

    def send(self, *data: bytes) -> None:
        try:
            with self._lock:
                self.sock.sendall(b''.join(data))
        except OSError:
            pass

    def head(self, request: Request, *fields: tuple[str, str], status: str = '200', end: bool = False) -> None:
        flags = h2.END_HEADERS | (h2.END_STREAM if end else 0)
        self.send(h2.frame(h2.HEADERS, flags, request.stream, h2.block([(':status', status), *fields])))

    def trailers(self, request: Request, *fields: tuple[str, str]) -> None:
        self.send(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, request.stream, h2.block(list(fields))))

    def body(self, request: Request, data: bytes, *, end: bool = False) -> None:
        for at in range(0, max(len(data), 1), 16384):
            flags = h2.END_STREAM if end and at + 16384 >= len(data) else 0
            self.send(h2.frame(h2.DATA, flags, request.stream, data[at:at + 16384]))
        request.sent += len(data)

    def fill(self, request: Request) -> None:
        """Sends as much as the stream's window allows now."""
        while request.window > 0 and not self.ended:
            size = min(request.window, 16384)
            request.window -= size
            self.body(request, bytes(size))

    def answer(self, request: Request, body: bytes = b'ok', *fields: tuple[str, str], status: str = '200') -> None:
        self.head(request, ('content-length', str(len(body))), *fields, status=status)
        self.body(request, body, end=True)

    def reset(self, request: Request, code: int) -> None:
        self.send(h2.frame(h2.RST_STREAM, 0, request.stream, struct.pack('>I', code)))

    def go_away(self, last: int, code: int = h2.NO_ERROR) -> None:
        self.send(h2.frame(h2.GOAWAY, 0, 0, struct.pack('>II', last, code)))

    def close(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def of(self, kind: int) -> list[h2.Frame]:
        return [frame for frame in list(self.frames) if frame.kind == kind]

    # ---- what comes

    def run(self, settings: bytes) -> None:
        try:
            self.send(h2.frame(h2.SETTINGS, 0, 0, settings))
            self._need(24)
            if self._pending[:24] != h2.PREFACE:
                raise ValueError('no preface')
            self._pending = self._pending[24:]
            while True:
                self._on_frame(self._next_frame())
        except (OSError, EOFError):
            pass
        finally:
            self.ended = True
            self.sock.close()

    def _need(self, size: int) -> None:
        while len(self._pending) < size:
            data = self.sock.recv(262144)
            if not data:
                raise EOFError
            self._pending += data

    def _next_frame(self) -> h2.Frame:
        self._need(9)
        size = int.from_bytes(self._pending[:3], 'big')
        self._need(9 + size)
        kind, flags, stream = struct.unpack_from('>BBI', self._pending, 3)
        payload, self._pending = self._pending[9:9 + size], self._pending[9 + size:]
        return h2.Frame(kind, flags, stream, payload)

    def _on_frame(self, frame: h2.Frame) -> None:
        self.frames.append(frame)
        request = self.streams.get(frame.stream)
        if frame.kind == h2.SETTINGS and not frame.flags & h2.ACK:
            self._on_settings(frame)
        elif frame.kind == h2.PING and not frame.flags & h2.ACK and self.answers_pings:
            self.send(h2.frame(h2.PING, h2.ACK, 0, frame.payload))
        elif frame.kind == h2.HEADERS:
            self._on_headers(frame, request)
        elif frame.kind == h2.DATA and request:
            self._on_data(frame, request)
        elif frame.kind == h2.RST_STREAM and request:
            request.reset = frame.number()
        elif frame.kind == h2.WINDOW_UPDATE and request:
            request.window += frame.number()

    def _on_settings(self, frame: h2.Frame) -> None:
        for at in range(0, len(frame.payload), 6):
            number, value = struct.unpack_from('>HI', frame.payload, at)
            if number == h2.INITIAL_WINDOW:
                self._initial = value
        self.send(h2.frame(h2.SETTINGS, h2.ACK, 0))

    def _on_headers(self, frame: h2.Frame, request: Request | None) -> None:
        block = frame.payload
        while not frame.flags & h2.END_HEADERS and not self.frames[-1].flags & h2.END_HEADERS:
            more = self._next_frame()
            self.frames.append(more)
            block += more.payload
        fields = [(str(name), str(value)) for name, value in self._decoder.decode(block)]
        fresh = request is None
        if request is None:
            request = Request(frame.stream, fields, window=self._initial)
            self.streams[frame.stream] = request
            self.order.append(request)
        else:
            request.trailers = fields
        self._end_and_tell(frame, request, fresh)

    def _on_data(self, frame: h2.Frame, request: Request) -> None:
        request.body += frame.payload
        if frame.payload:
            size = struct.pack('>I', len(frame.payload))
            self.send(h2.frame(h2.WINDOW_UPDATE, 0, 0, size), h2.frame(h2.WINDOW_UPDATE, 0, frame.stream, size))
        self._end_and_tell(frame, request, False)

    def _end_and_tell(self, frame: h2.Frame, request: Request, fresh: bool) -> None:
        request.ended = request.ended or bool(frame.flags & h2.END_STREAM)
        if self.server.tells_all or (fresh if self.server.early else request.ended):
            self.server.tell(self, request)


Answer = Callable[[Connection, Request], object]


class Server:
    """Listens on a free port. `answer` is called on the connection's thread when a request is whole; with `early`,
    when its head came; with `tells_all`, whenever something came. It must not wait. `address` is what ringside calls it."""

    def __init__(self, answer: Answer | None = None, *, early: bool = False, tells_all: bool = False,
                 settings: bytes = b'', tls: ssl.SSLContext | None = None):
        self._answer = answer or (lambda connection, request: connection.answer(request))
        self.early = early
        self.tells_all = tells_all
        self._settings = settings
        self._tls = tls
        self.connections: list[Connection] = []
        self._listener = socket.create_server(('127.0.0.1', 0), backlog=512)
        self.port = self._listener.getsockname()[1]
        self.address = f'{"https://" if tls else ""}127.0.0.1:{self.port}'
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        if self._tls:
            try:
                sock = self._tls.wrap_socket(sock, server_side=True)
            except OSError:
                return
        connection = Connection(self, sock, len(self.connections))
        self.connections.append(connection)
        connection.run(self._settings)

    def tell(self, connection: Connection, request: Request) -> None:
        self._answer(connection, request)

    @property
    def requests(self) -> list[Request]:
        return [request for connection in list(self.connections) for request in list(connection.order)]

    def wait_for(self, condition: Callable[['Server'], object]) -> bool:
        return wait_until(lambda: condition(self))

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self.connections:
            connection.close()
        self._thread.join(2)
