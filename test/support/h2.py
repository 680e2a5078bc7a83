"""A client's side of HTTP/2, frame by frame: it sends what a test says, right or wrong."""

from __future__ import annotations

import dataclasses
import socket
import ssl
import struct
import time
from typing import Callable

from . import modes
from .upstream import slowdown

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 0, 1, 7, 8, 11
INITIAL_WINDOW = 4
# The statuses of HPACK's static table, from index 8 on (RFC 7541 Appendix A).
STATUSES = (200, 204, 206, 304, 400, 404, 500)

Fields = list[tuple[str, str]]


def frame(kind: int, flags: int, stream: int, payload: bytes = b'') -> bytes:
    return struct.pack('>I', len(payload))[1:] + bytes((kind, flags)) + struct.pack('>I', stream) + payload


def setting(number: int, value: int) -> bytes:
    return struct.pack('>HI', number, value)


def integer(value: int, bits: int, first: int = 0) -> bytes:
    """RFC 7541 §5.1, with `first` in the bits before the prefix."""
    limit = (1 << bits) - 1
    if value < limit:
        return bytes((first | value,))
    out = bytearray((first | limit,))
    value -= limit
    while value >= 128:
        out.append(0x80 | value & 0x7f)
        value >>= 7
    out.append(value)
    return bytes(out)


def block(fields: Fields) -> bytes:
    """Literals without a table and without Huffman codes; any bytes."""
    out = b''
    for name, value in fields:
        for number, text in enumerate((name, value)):
            data = text.encode('latin-1')
            out += (b'' if number else b'\0') + integer(len(data), 7) + data
    return out


def request(method: str = 'GET', path: str = '/', *more: tuple[str, str]) -> Fields:
    return [(':method', method), (':scheme', 'http'), (':authority', 'a.test'), (':path', path), *more]


def status_of(payload: bytes) -> int:
    """Of a block that our proxy wrote, which begins with :status; 0: it does not (trailers)."""
    if 0x88 <= payload[0] <= 0x8e:
        return STATUSES[payload[0] - 0x88]
    if payload[0] & 0x3f not in range(8, 15) or payload[0] & 0x80:
        return 0
    data = payload[2:2 + (payload[1] & 0x7f)]
    if not payload[1] & 0x80:
        return int(data)
    bits = ''.join(f'{byte:08b}' for byte in data)
    digits = ''
    while len(digits) < 3:  # Huffman codes of digits: five bits up to 2, six from 3 on
        short = int(bits[:5], 2)
        if short <= 2:
            digits, bits = digits + str(short), bits[5:]
        else:
            digits, bits = digits + str(int(bits[:6], 2) - 0b011001 + 3), bits[6:]
    return int(digits)


@dataclasses.dataclass
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes

    def number(self, at: int = 0) -> int:
        return struct.unpack_from('>I', self.payload, at)[0]


class Client:
    """Acknowledges SETTINGS and PING by itself, and nothing else: windows open only when the test opens them."""

    def __init__(self, port: int, settings: bytes = b'', *, context: ssl.SSLContext | None = modes.DEFAULT):
        sock = socket.create_connection(('127.0.0.1', port), 10)
        if context is modes.DEFAULT:
            context = modes.client_context()
        if context is not None:
            context.set_alpn_protocols(['h2'])
            sock = context.wrap_socket(sock, server_hostname='localhost')
        self.sock = sock
        self.pending = b''
        self.frames: list[Frame] = []
        self.ended = self.refused = False
        self.send(PREFACE, frame(SETTINGS, 0, 0, settings))

    def __enter__(self) -> 'Client':
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, *data: bytes) -> None:
        try:
            self.sock.sendall(b''.join(data))
        except OSError:
            self.refused = True  # what has come before that is still to be read

    def ask(self, stream: int, fields: Fields, *, end: bool = True) -> None:
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block(fields)))

    def body(self, stream: int, data: bytes, *, end: bool = False) -> None:
        for at in range(0, max(len(data), 1), 16384):
            last = end and at + 16384 >= len(data)
            self.send(frame(DATA, END_STREAM if last else 0, stream, data[at:at + 16384]))

    def open(self, stream: int, size: int) -> None:
        self.send(frame(WINDOW_UPDATE, 0, stream, struct.pack('>I', size)))

    def reset(self, stream: int, code: int = CANCEL) -> None:
        self.send(frame(RST_STREAM, 0, stream, struct.pack('>I', code)))

    def wait(self, done: Callable[[], object], seconds: float = 20.0) -> bool:
        """Reads frames until `done`, or the connection's end; whether `done`."""
        deadline = time.monotonic() + seconds * slowdown()
        while not done():
            left = deadline - time.monotonic()
            if left <= 0 or self.ended:
                return bool(done())
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(65536)
            except OSError:
                data = b''
            if not data:
                self.ended = True
            self.pending += data
            self._split()
        return True

    def _split(self) -> None:
        while len(self.pending) >= 9:
            size = int.from_bytes(self.pending[:3], 'big')
            if len(self.pending) < 9 + size:
                return
            stream = struct.unpack_from('>I', self.pending, 5)[0]
            got = Frame(self.pending[3], self.pending[4], stream, self.pending[9:9 + size])
            self.pending = self.pending[9 + size:]
            self.frames.append(got)
            if got.kind in (SETTINGS, PING) and not got.flags & ACK:
                self.send(frame(got.kind, ACK, 0, b'' if got.kind == SETTINGS else got.payload))

    def of(self, kind: int, stream: int | None = None) -> list[Frame]:
        return [f for f in self.frames if f.kind == kind and stream in (None, f.stream)]

    def status(self, stream: int) -> int | None:
        statuses = [status_of(f.payload) for f in self.of(HEADERS, stream)]
        return next((status for status in statuses if status >= 200), None)

    def data(self, stream: int) -> bytes:
        return b''.join(f.payload for f in self.of(DATA, stream))

    def complete(self, stream: int) -> bool:
        return any(f.flags & END_STREAM for f in self.of(HEADERS, stream) + self.of(DATA, stream))

    def reset_code(self, stream: int) -> int | None:
        return next((f.number() for f in self.of(RST_STREAM, stream)), None)

    def end_code(self) -> int | None:
        """Of the last GOAWAY."""
        return self.of(GOAWAY)[-1].number(4) if self.of(GOAWAY) else None
