"""A client that a test drives byte by byte."""

from __future__ import annotations

import hashlib
import socket
import ssl
import time

from . import modes, wire
from .tls_socket import TlsSocket
from .upstream import close_with_reset, slowdown


class Client:
    """One connection. `received` has every byte of plaintext; `ended` is None, 'fin' or 'reset'."""

    def __init__(self, port: int = 0, *, host: str = '127.0.0.1', source: str | None = None,
                 receive_bytes: int | None = None, unix_path: str | None = None,
                 tls: ssl.SSLContext | None = modes.DEFAULT, server_name: str = 'a.test'):
        """`source`: the address to come from. `receive_bytes`: how much the kernel takes unread.

        With TLS, the handshake runs with the first byte that is sent or read; where it fails, `ended` is 'reset'. It
        asks for no name when `server_name` is empty.
        """
        self.sock: socket.socket | TlsSocket = socket.socket(socket.AF_UNIX if unix_path else socket.AF_INET)
        if receive_bytes:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        if source:
            self.sock.bind((source, 0))
        self.sock.settimeout(5 * slowdown())
        try:
            self.sock.connect(unix_path or (host, port))
        except OSError:
            self.sock.close()
            raise
        if not unix_path:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = modes.client_context() if tls is modes.DEFAULT else tls
        if context:
            self.sock = TlsSocket(self.sock, context, server_name=server_name)
        self.received = bytearray()
        self.ended: str | None = None
        self._parsed = 0

    def send(self, data: bytes | str) -> 'Client':
        """Sends all of it. A connection that the proxy has ended is noted, not an error."""
        self.sock.settimeout(10 * slowdown())
        try:
            self.sock.sendall(data.encode('latin-1') if isinstance(data, str) else data)
        except (ConnectionError, BrokenPipeError, ssl.SSLError):
            self.ended = self.ended or 'reset'
        return self

    def get(self, target: str = '/', *, method: str = 'GET', headers: str = '') -> 'Client':
        return self.send(f'{method} {target} HTTP/1.1\r\nHost: a.test\r\n{headers}\r\n')

    @property
    def whole(self) -> bool:
        """The other end has ended in order: with FIN, and over TLS with close_notify before it."""
        return self.ended == 'fin' and getattr(self.sock, 'notified', True)

    def shutdown_write(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def read_some(self, seconds: float) -> bytes:
        """What arrives first. Empty when the connection ended or the time was up."""
        if self.ended == 'fin':
            return b''
        self.sock.settimeout(max(seconds, 0.001))
        try:
            data = self.sock.recv(262144)
        except TimeoutError:
            return b''
        except OSError:
            self.ended = 'reset'
            return b''
        if not data:
            self.ended = self.ended or 'fin'
        self.received += data
        return data

    def read_until_quiet(self, quiet_seconds: float, total_seconds: float) -> None:
        """Reads until the proxy ends the connection or has been silent for a while."""
        deadline = time.monotonic() + total_seconds
        while self.ended is None and time.monotonic() < deadline:
            if not self.read_some(min(quiet_seconds, deadline - time.monotonic())) and self.ended is None:
                return

    def read_to_end(self, seconds: float = 10.0) -> bytes:
        """All bytes until the proxy ends the connection; fails when it does not."""
        deadline = time.monotonic() + seconds * slowdown()
        while self.ended is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f'the connection is still open; got {bytes(self.received[-200:])!r}')
            self.read_some(left)
        return bytes(self.received[self._parsed :])

    def read_response(self, *, method: str = 'GET', seconds: float = 10.0,
                      interim: bool = False) -> wire.Message:
        """The next final response (the next of any kind with `interim`)."""
        deadline = time.monotonic() + seconds * slowdown()
        while True:
            data = bytes(self.received[self._parsed :])
            try:
                message, rest = wire.parse_response(data, method=method, ended=self.whole)
                self._parsed = len(self.received) - len(rest)
                if message.status >= 200 or message.status == 101 or interim:
                    return message
                continue
            except wire.Incomplete as incomplete:
                wanted = len(self.received) + incomplete.missing
            left = deadline - time.monotonic()
            if self.ended or left <= 0:
                raise AssertionError(f'no whole response ({self.ended or "time is up"}); got {data[:300]!r}')
            while left > 0 and self.ended is None and len(self.received) < wanted:
                self.read_some(left)
                left = deadline - time.monotonic()

    def read_large_body(self, size: int, *, seconds: float = 10.0) -> str:
        """The SHA-256 of the `size` bytes behind the next head, none of which is kept."""
        deadline = time.monotonic() + seconds * slowdown()
        while b'\r\n\r\n' not in self.received:
            if not self.read_some(deadline - time.monotonic()):
                raise AssertionError(f'no head ({self.ended or "time is up"}); got {bytes(self.received[:300])!r}')
        body = bytes(self.received.split(b'\r\n\r\n', 1)[1])
        digest = hashlib.sha256()
        count = 0
        while True:
            digest.update(body)
            count += len(body)
            self.received.clear()
            if count >= size:
                break
            body = self.read_some(deadline - time.monotonic())
            if not body:
                raise AssertionError(f'{count} of {size} bytes ({self.ended or "time is up"})')
        if count > size:
            raise AssertionError(f'{count - size} bytes too many')
        return digest.hexdigest()

    def unread(self) -> bytes:
        """Bytes behind the last response that was read."""
        return bytes(self.received[self._parsed :])

    def reset(self) -> None:
        close_with_reset(self.sock)

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> 'Client':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def request(port: int, target: str = '/', *, method: str = 'GET', headers: str = '',
            body: bytes = b'') -> wire.Message:
    """One request on a connection of its own."""
    if body:
        headers += f'Content-Length: {len(body)}\r\n'
    with Client(port) as client:
        client.get(target, method=method, headers=headers + 'Connection: close\r\n').send(body)
        return client.read_response(method=method)
