"""HTTP/1.1 as bytes: a small strict reader of messages, independent of ringside's own parser."""

from __future__ import annotations

import dataclasses
import re


class Malformed(Exception):
    """Bytes that are not the HTTP/1.1 message they ought to be."""


class Incomplete(Exception):
    """The message goes on beyond the bytes at hand. `missing`: at least so many bytes more."""

    def __init__(self, missing: int = 1):
        super().__init__(f'{missing} bytes or more are missing')
        self.missing = missing


@dataclasses.dataclass
class Message:
    """One request or response. Header names are kept as they came; `get` ignores their case."""

    start: str
    headers: list[tuple[str, str]]
    body: bytes = b''
    trailers: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def get_all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name: str, default: str | None = None) -> str | None:
        values = self.get_all(name)
        return ', '.join(values) if values else default

    @property
    def method(self) -> str:
        return self.start.split(' ')[0]

    @property
    def target(self) -> str:
        return self.start.split(' ')[1]

    @property
    def status(self) -> int:
        return int(self.start.split(' ')[1])

    @property
    def chunked(self) -> bool:
        return (self.get('transfer-encoding') or '').lower() == 'chunked'


_FIELD = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*\Z", re.S)


def parse_fields(block: bytes) -> list[tuple[str, str]]:
    fields = []
    for line in block.split(b'\r\n') if block else []:
        text = line.decode('latin-1')
        match = _FIELD.match(text)
        if not match or re.search('[\r\n\0]', text):
            raise Malformed(f'not a header field: {line!r}')
        fields.append((match.group(1), match.group(2)))
    return fields


def parse_head(data: bytes) -> tuple[Message, bytes]:
    """Splits a head off. Returns the message without its body, and the bytes behind the head."""
    end = data.find(b'\r\n\r\n')
    if end < 0:
        raise Incomplete
    start, _, block = data[:end].partition(b'\r\n')
    return Message(start.decode('latin-1'), parse_fields(block)), data[end + 4 :]


class ChunkedReader:
    """Takes a chunked body apart as it arrives. When `done`, `rest` has the bytes behind it."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.trailers: list[tuple[str, str]] = []
        self.done = False
        self._held = b''
        self._left = 0  # bytes of the current chunk still to come, its CRLF included
        self._in_trailers = False

    @property
    def rest(self) -> bytes:
        return self._held

    def feed(self, data: bytes) -> bool:
        self._held += data
        while not self.done and self._step():
            pass
        return self.done

    def _step(self) -> bool:
        if self._left > 2:
            piece = self._held[: self._left - 2]
            self.body += piece
            self._held = self._held[len(piece) :]
            self._left -= len(piece)
            if self._left > 2:
                return False
        if self._left:
            if len(self._held) < 2:
                return False
            if self._held[:2] != b'\r\n':
                raise Malformed('chunk data is not followed by CRLF')
            self._held, self._left = self._held[2:], 0
        return self._trailer_line() if self._in_trailers else self._size_line()

    def _size_line(self) -> bool:
        line, found, rest = self._held.partition(b'\r\n')
        if not found:
            return False
        match = re.fullmatch(rb'([0-9A-Fa-f]{1,16})[ \t]*(;[^\r\n]*)?', line)
        if not match:
            raise Malformed(f'not a chunk size: {line!r}')
        size = int(match.group(1), 16)
        self._held = rest
        self._in_trailers = size == 0
        self._left = size + 2 if size else 0
        return True

    def _trailer_line(self) -> bool:
        line, found, rest = self._held.partition(b'\r\n')
        if not found:
            return False
        self._held = rest
        if line:
            self.trailers += parse_fields(line)
        else:
            self.done = True
        return True


def parse_response(data: bytes, *, method: str = 'GET', ended: bool = False) -> tuple[Message, bytes]:
    """One response of any class. `ended`: no more bytes will come (a close-delimited body is whole)."""
    message, rest = parse_head(data)
    if not re.fullmatch(r'HTTP/1\.[01] [1-5]\d\d( [^\r\n]*)?', message.start):
        raise Malformed(f'not a status line: {message.start!r}')
    if 100 <= message.status < 200 or message.status in (204, 304) or method == 'HEAD':
        return message, rest
    if method == 'CONNECT' and 200 <= message.status < 300:
        return message, rest
    if message.get('transfer-encoding') is not None:
        if not message.chunked or message.get('content-length') is not None:
            raise Malformed(f'framing of the response: {message.headers!r}')
        reader = ChunkedReader()
        if not reader.feed(rest):
            raise Incomplete
        message.body, message.trailers = bytes(reader.body), reader.trailers
        return message, reader.rest
    lengths = message.get_all('content-length')
    if lengths:
        if len(lengths) != 1 or not lengths[0].isdecimal():
            raise Malformed(f'content-length of the response: {lengths!r}')
        size = int(lengths[0])
        if len(rest) < size:
            raise Incomplete(size - len(rest))
        message.body = rest[:size]
        return message, rest[size:]
    if not ended:
        raise Incomplete
    message.body = rest
    return message, b''


def parse_responses(data: bytes, *, methods: list[str] | None = None,
                    ended: bool = False) -> tuple[list[Message], bytes]:
    """Every response in a stream, interim ones included, and what is left over behind them.

    A cut message stays in the remainder; so do the bytes of a tunnel behind a 101.
    """
    responses: list[Message] = []
    final = 0
    while data:
        method = methods[final] if methods and final < len(methods) else 'GET'
        try:
            message, data = parse_response(data, method=method, ended=ended)
        except Incomplete:
            break
        responses.append(message)
        if message.status >= 200:
            final += 1
        if message.status == 101:
            break
    return responses, data
