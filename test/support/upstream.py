"""An upstream server that a test scripts byte by byte."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
import time
from typing import Callable

from . import modes, wire
from .tls_socket import TlsSocket

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'


def set_reset_on_close(sock: socket.socket | TlsSocket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))


def close_with_reset(sock: socket.socket | TlsSocket) -> None:
    set_reset_on_close(sock)
    if isinstance(sock, TlsSocket):
        sock.cut()
    else:
        sock.close()


class Ended(Exception):
    """The proxy ended the connection."""


class Connection:
    """One accepted connection, as the answer function sees it."""

    def __init__(self, sock: socket.socket | TlsSocket, number: int):
        self.sock = sock
        self.number = number
        self.received = bytearray()
        self.requests: list[wire.Message] = []
        self.ended_by: str | None = None  # 'fin' or 'reset' once the proxy has ended it
        self.failure = ''  # of TLS
        self.pending = b''

    def read_some(self, *, keep: bool = True) -> bytes:
        """What arrives first. `keep`: also in `received`."""
        try:
            data = self.sock.recv(262144)
        except ConnectionResetError:
            self.ended_by = 'reset'
            raise Ended from None
        except OSError as error:
            if isinstance(error, ssl.SSLError):
                self.failure = str(error)
            raise Ended from None
        if not data:
            self.ended_by = self.ended_by or 'fin'
            raise Ended
        if keep:
            self.received += data
        return data

    def read_head(self) -> wire.Message:
        while True:
            try:
                message, self.pending = wire.parse_head(self.pending)
                return message
            except wire.Incomplete:
                self.pending += self.read_some()

    def read_body(self, message: wire.Message) -> bytes:
        if message.get('transfer-encoding') is not None:
            reader = wire.ChunkedReader()
            finished = reader.feed(self.pending)
            while not finished:
                finished = reader.feed(self.read_some())
            message.body, message.trailers = bytes(reader.body), reader.trailers
            self.pending = reader.rest
            return message.body
        size = int(message.get('content-length', '0'))
        parts = [self.pending]
        held = len(self.pending)
        while held < size:
            parts.append(self.read_some())
            held += len(parts[-1])
        data = b''.join(parts)
        message.body, self.pending = data[:size], data[size:]
        return message.body

    def skip_body(self, message: wire.Message) -> None:
        """Reads a body of known length, and keeps none of it."""
        left = int(message.get('content-length', '0')) - len(self.pending)
        while left > 0:
            left -= len(self.read_some(keep=False))
        self.pending = b''

    def send(self, data: bytes) -> None:
        try:
            self.sock.sendall(data)
        except OSError:
            raise Ended from None

    def shutdown_write(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        close_with_reset(self.sock)

    def cut(self) -> None:
        """Ends it as a process does that dies: over TLS, without close_notify."""
        if isinstance(self.sock, TlsSocket):
            self.sock.cut()
        else:
            self.sock.close()

    @property
    def whole(self) -> bool:
        """The proxy has ended it in order: with FIN, and over TLS with close_notify before it."""
        return self.ended_by == 'fin' and getattr(self.sock, 'notified', True)

    def drain(self) -> None:
        """Reads until the proxy ends the connection (and then raises Ended, ending the answer)."""
        while True:
            self.read_some()


Answer = Callable[[Connection, wire.Message], object]


class Upstream:
    """Listens on a free port (or a unix socket) and serves each connection in a thread.

    `answer` is called once a request, or is the bytes of one response. When it returns False, the
    connection is closed; so it is when it raises Ended. With `early`, it is called before the body
    has been read, and may call `connection.read_body` itself. `address` is what ringside calls it,
    with https:// where it speaks TLS; a unix socket never does.
    """

    def __init__(self, answer: Answer | bytes = OK, *, early: bool = False,
                 unix_path: str | None = None, host: str = '127.0.0.1', port: int = 0,
                 tls: ssl.SSLContext | None = modes.DEFAULT):
        self._answer = (lambda c, _: c.send(answer)) if isinstance(answer, bytes) else answer
        self._early = early
        self._unix_path = unix_path
        self._lock = threading.Lock()
        self._closing = False
        self.connections: list[Connection] = []
        self.errors: list[str] = []
        if unix_path:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(unix_path)
            self.address = 'unix:' + unix_path
            self._tls = None
        else:
            self._listener = socket.socket()
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind((host, port))
            self.port = self._listener.getsockname()[1]
            self._tls = modes.upstream_context() if tls is modes.DEFAULT else tls
            self.address = self.address_as(host)
        self._listener.listen(512)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def address_as(self, host: str) -> str:
        """Its address under another name of this machine."""
        return f'{"https://" if self._tls else ""}{host}:{self.port}'

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._closing:
                    sock.close()
                    return
                spoken = TlsSocket(sock, self._tls, server_side=True) if self._tls else sock
                connection = Connection(spoken, len(self.connections))
                self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        try:
            while True:
                request = connection.read_head()
                if not self._early:
                    connection.read_body(request)
                with self._lock:
                    connection.requests.append(request)
                if self._answer(connection, request) is False:
                    break
        except Ended:
            pass
        except (wire.Malformed, ValueError) as error:
            self.errors.append(f'{error}')
        except OSError as error:
            if not self._closing:
                self.errors.append(f'{error}')
        try:
            connection.sock.close()
        except OSError:
            pass

    @property
    def requests(self) -> list[wire.Message]:
        with self._lock:
            return [request for connection in self.connections for request in connection.requests]

    def received(self) -> bytes:
        """All bytes of all connections, in order of their arrival."""
        return b'\n--next connection--\n'.join(bytes(c.received) for c in self.connections if c.received)

    def wait_for(self, condition: Callable[['Upstream'], object], seconds: float = 10.0) -> bool:
        return wait_until(lambda: condition(self), seconds)

    def close(self) -> None:
        with self._lock:
            self._closing = True
            connections = list(self.connections)
        # shutdown wakes the accepting thread; close alone would leave it there.
        for sock in [self._listener] + [connection.sock for connection in connections]:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()
        self._thread.join(2)
        if self._unix_path:
            os.unlink(self._unix_path)

    def __enter__(self) -> 'Upstream':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def wait_until(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    """Waits for something that will happen; the limit only bounds a failure."""
    deadline = time.monotonic() + seconds * slowdown()
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def slowdown() -> float:
    """Factor for time limits on slow machines (the lab sets it)."""
    return float(os.environ.get('RINGSIDE_TEST_SLOWDOWN', '1'))
