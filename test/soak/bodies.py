"""Bodies that a receiver knows in advance: what they are follows from the request's id and their size."""

from __future__ import annotations

import hashlib
import random
import zlib

SIZE_MAX = 8 << 20
_SHIFTS = 1 << 20
# The same in every process. A body is a window into it, at a place of its own: a byte that is lost,
# moved or another request's differs.
_BYTES = random.Random(20260101).randbytes(SIZE_MAX + _SHIFTS)


def place(request_id: str) -> int:
    return zlib.crc32(request_id.encode()) % _SHIFTS


def window(request_id: str, begin: int, end: int) -> bytes:
    """Bytes `begin` to `end` of the body of this request."""
    at = place(request_id)
    return _BYTES[at + begin : at + end]


def pieces(request_id: str, size: int, step: int = 65536):
    for begin in range(0, size, step):
        yield window(request_id, begin, min(size, begin + step))


def digest(request_id: str, size: int) -> str:
    return hashlib.sha256(window(request_id, 0, size)).hexdigest()


class Checker:
    """Takes a body piece by piece; `good` as long as every byte was the right one."""

    def __init__(self, request_id: str, size: int):
        self._id = request_id
        self._size = size
        self._hash = hashlib.sha256()
        self.received = 0
        self.good = True

    def feed(self, piece: bytes) -> None:
        end = self.received + len(piece)
        if end > self._size or piece != window(self._id, self.received, end):
            self.good = False
        self.received = end
        self._hash.update(piece)

    @property
    def whole(self) -> bool:
        return self.good and self.received == self._size

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
