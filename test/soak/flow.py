"""HTTP/1.1 on a socket, piece by piece, for both ends. Heads are read by support.wire."""

from __future__ import annotations

import re
import socket
from typing import Iterator

from support import wire

_CHUNK = re.compile(rb'([0-9A-Fa-f]{1,8})(?:;[^\r\n]*)?\r\n')


class Ended(Exception):
    """The other end is gone. `how`: fin, reset, or silent when nothing came in time."""

    def __init__(self, how: str):
        super().__init__(how)
        self.how = how


class Flow:
    """One connection. Memory stays small however much passes."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.held = b''

    def more(self) -> None:
        try:
            data = self.sock.recv(131072)
        except TimeoutError:
            raise Ended('silent') from None
        except OSError:
            raise Ended('reset') from None
        if not data:
            raise Ended('fin')
        self.held += data

    def send(self, *parts: bytes) -> None:
        try:
            for part in parts:
                self.sock.sendall(part)
        except TimeoutError:
            raise Ended('silent') from None
        except OSError:
            raise Ended('reset') from None

    def head(self) -> wire.Message:
        while True:
            try:
                message, self.held = wire.parse_head(self.held)
                return message
            except wire.Incomplete:
                self.more()

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            if not self.held:
                self.more()
            piece, self.held = self.held[:size], self.held[size:]
            size -= len(piece)
            yield piece

    def _line(self) -> bytes:
        while b'\r\n' not in self.held:
            if len(self.held) > 4096:
                raise wire.Malformed(f'no end of line in {self.held[:80]!r}')
            self.more()
        line, _, self.held = self.held.partition(b'\r\n')
        return line + b'\r\n'

    def body(self, message: wire.Message) -> Iterator[bytes]:
        """The body without its framing. Raises Ended when it is cut."""
        if not message.chunked:
            yield from self._exactly(int(message.get('content-length', '0') or 0))
            return
        while True:
            line = self._line()
            size = _CHUNK.fullmatch(line)
            if not size:
                raise wire.Malformed(f'not a chunk size: {line[:80]!r}')
            left = int(size[1], 16)
            if not left:
                break
            yield from self._exactly(left)
            if self._line() != b'\r\n':
                raise wire.Malformed('chunk data is not followed by CRLF')
        while self._line() != b'\r\n':
            pass


def chunk(piece: bytes) -> bytes:
    return b'%x\r\n%b\r\n' % (len(piece), piece)
