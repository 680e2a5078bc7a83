"""Bodies that are made as they are sent, and hashed as they arrive."""

from __future__ import annotations

import functools
import hashlib
import socket
import time
from collections.abc import Callable, Iterator

MIB = 1 << 20
PAUSE_S = 0.3  # long enough for every buffer on the way to fill
PAUSES_FROM = 16 * MIB  # smaller bodies go without
Progress = Callable[[int], None]


@functools.lru_cache(maxsize=8)
def _base(seed: int) -> bytes:
    return hashlib.shake_256(str(seed).encode()).digest(MIB)


def blocks(seed: int, size: int) -> Iterator[list[memoryview]]:
    """The body in blocks of up to 1 MiB: no two alike, since each begins with its number."""
    base = memoryview(_base(seed))
    for number in range((size + MIB - 1) // MIB):
        length = min(MIB, size - number * MIB)
        stamp = memoryview(number.to_bytes(8, 'big'))[:length]
        yield [stamp, base[len(stamp) : length]]


@functools.lru_cache(maxsize=64)
def digest(seed: int, size: int) -> str:
    """What the receiver of that body should have."""
    total = hashlib.sha256()
    for block in blocks(seed, size):
        for piece in block:
            total.update(piece)
    return total.hexdigest()


def _send_all(sock: socket.socket, pieces: list[memoryview]) -> None:
    left = sum(len(piece) for piece in pieces)
    while left:
        sent = sock.sendmsg(pieces)
        left -= sent
        while pieces and sent >= len(pieces[0]):
            sent -= len(pieces.pop(0))
        if sent:
            pieces[0] = pieces[0][sent:]


def send(sock: socket.socket, seed: int, size: int, chunked: bool) -> None:
    """Pauses after its first block, in the middle, and before its last block."""
    last = (size - 1) // MIB
    pauses = {1, last // 2, last} if size >= PAUSES_FROM else set()
    for number, block in enumerate(blocks(seed, size)):
        if number in pauses:
            time.sleep(PAUSE_S)
        if chunked:
            length = sum(len(piece) for piece in block)
            block = [memoryview(b'%x\r\n' % length), *block, memoryview(b'\r\n')]
        _send_all(sock, block)
    if chunked:
        sock.sendall(b'0\r\n\r\n')


class Sink:
    """Hashes a body. `done`: its framing says that it is whole."""

    def __init__(self, framing: str, size: int):
        self._hash = hashlib.sha256()
        self._left = size if framing == 'length' else -1
        self._chunked = framing == 'chunked'
        self._chunk = 0  # bytes of the chunk that are still to come, with its CRLF
        self._last = False  # the last chunk was seen
        self._line = b''
        self.size = 0
        self.done = framing == 'length' and size == 0

    def feed(self, data: memoryview) -> None:
        if self._chunked:
            self._feed_chunks(data)
            return
        self._add(data)
        if self._left >= 0:
            self._left -= len(data)
            self.done = self._left <= 0

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def _add(self, data: memoryview) -> None:
        self._hash.update(data)
        self.size += len(data)

    def _feed_chunks(self, data: memoryview) -> None:
        while len(data) and not self.done:
            if self._chunk == 0:
                data = self._read_line(data)
                continue
            part = data[: self._chunk]
            self._chunk -= len(part)
            # The last two bytes are the CRLF behind the chunk.
            self._add(part[: max(0, len(part) - max(0, 2 - self._chunk))])
            data = data[len(part) :]

    def _read_line(self, data: memoryview) -> memoryview:
        text = bytes(data[:20])
        end = text.find(b'\n')
        taken = len(text) if end < 0 else end + 1
        self._line += text[:taken]
        if end < 0:
            return data[taken:]
        line, self._line = self._line.strip(), b''
        if self._last:
            self.done = True  # without trailers
            return data[taken:]
        size = int(line, 16)
        self._last = size == 0
        self._chunk = size + 2 if size else 0
        return data[taken:]


def receive(sock: socket.socket, sink: Sink, first: bytes, size: int, progress: Progress) -> None:
    """Until the body is whole or the connection ends. Pauses at the start, a quarter and three quarters."""
    pauses = [size * part // 4 for part in (0, 1, 3)] if size >= PAUSES_FROM else []
    buffer = bytearray(MIB)
    view = memoryview(buffer)
    sink.feed(memoryview(first))
    while not sink.done:
        if pauses and sink.size >= pauses[0]:
            pauses.pop(0)
            time.sleep(PAUSE_S)
        count = sock.recv_into(buffer)
        if count == 0:
            return
        sink.feed(view[:count])
        progress(sink.size)


def read_head(sock: socket.socket) -> tuple[str, bytes]:
    """A head, and the bytes behind it. An empty head: the connection ended."""
    data = b''
    while b'\r\n\r\n' not in data:
        more = sock.recv(65536)
        if not more:
            return '', data
        data += more
    head, _, rest = data.partition(b'\r\n\r\n')
    return head.decode('latin-1'), rest
