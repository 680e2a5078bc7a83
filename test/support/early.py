"""A client that sends early data, and can put off the end of its handshake."""

from __future__ import annotations

import socket
import ssl

from . import openssl, wire
from .upstream import slowdown


class EarlyClient:
    """One connection. What it has to send behind its first flight leaves with finish() or send(): the test says when its
    handshake ends."""

    def __init__(self, port: int, context: openssl.Context, ticket: openssl.Ticket | None = None):
        self.sock = socket.create_connection(('127.0.0.1', port), 10 * slowdown())
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self._incoming, self._outgoing, server_hostname='a.test')
        if ticket:
            self.session.resume(ticket)
        self._begun = False
        self.received = bytearray()
        self.ended = ''  # 'notified' by close_notify, 'cut' without

    def close(self) -> None:
        self.sock.close()

    def flush(self) -> bytes:
        """Sends what waits, and returns those bytes of the wire."""
        self._begun = True
        data = self._outgoing.read()
        self.sock.sendall(data)
        return data

    def finish(self) -> None:
        """Sends the end of the handshake, which reading alone puts off."""
        self.shake()
        self.flush()

    def send_early(self, data: bytes) -> bytes:
        self.session.write_early(data)
        return self.flush()

    def shake(self) -> None:
        """Reads the server's flight. Our last one waits for flush()."""
        while True:
            try:
                return self.session.do_handshake()
            except ssl.SSLWantReadError:
                if not self._begun:
                    self.flush()
                if not self._fill():
                    raise AssertionError('the server ended the handshake') from None

    def send(self, data: bytes) -> None:
        self.session.write(data)
        self.flush()

    def read_response(self, method: str = 'GET') -> wire.Message:
        """The next one, whole."""
        while True:
            try:
                message, rest = wire.parse_response(bytes(self.received), method=method, ended=bool(self.ended))
                self.received = bytearray(rest)
                return message
            except wire.Incomplete as lack:
                if self.ended:
                    raise AssertionError(f'{self.ended} after {bytes(self.received[:1000])!r}') from None
                enough = len(self.received) + lack.missing
                while len(self.received) < enough and not self.ended:
                    self.read_some()

    def read_some(self) -> None:
        """Until something came, or the end."""
        while not self.ended:
            try:
                data = self.session.read(1 << 16)
                if data:
                    self.received += data
                    return
            except ssl.SSLWantReadError:
                if not self._fill():
                    self.ended = 'cut'
            except ssl.SSLZeroReturnError:
                self.ended = 'notified'

    def _fill(self) -> bool:
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionResetError:
            data = b''
        self._incoming.write(data)
        return bool(data)
