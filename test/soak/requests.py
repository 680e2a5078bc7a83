"""One request of a verified client: sent, answered and checked byte by byte."""

from __future__ import annotations

import dataclasses
import select
import socket
import time
from typing import Callable

from support import wire
from support.upstream import set_reset_on_close

from . import bodies
from .flow import Ended, Flow, chunk
from .rules import Result

# Longer than anything takes on a busy machine: who waits so long has been forgotten.
SILENCE = 90.0


@dataclasses.dataclass(frozen=True)
class Ask:
    """What to send and what to get for it."""

    path: str
    method: str = 'GET'
    host: str = 'soak.test'
    size: int = 0  # of the response's body
    chunked: bool = False  # that body
    upload: int = 0  # bytes of the request's body
    upload_chunked: bool = False
    query: str = ''
    close: bool = False
    read_pace: tuple[int, float] | None = None  # bytes at a time, seconds between
    write_pace: tuple[int, float] | None = None

    def head(self, request_id: str) -> bytes:
        query = f'size={self.size}' + ('&chunked=1' if self.chunked else '') + self.query
        lines = [f'{self.method} {self.path}?{query} HTTP/1.1', f'Host: {self.host}', f'X-Request-Id: {request_id}']
        if self.method == 'POST':
            lines.append('Transfer-Encoding: chunked' if self.upload_chunked else f'Content-Length: {self.upload}')
        if self.close:
            lines.append('Connection: close')
        return ('\r\n'.join(lines) + '\r\n\r\n').encode()


class Connection(Flow):
    """A client connection to ringside."""

    def __init__(self, port: int, receive_bytes: int = 0):
        sock = socket.socket()
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.settimeout(SILENCE)
        sock.connect(('127.0.0.1', port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(sock)

    def answered(self) -> bool:
        """Something has come, an answer or the end."""
        return bool(self.held) or bool(select.select([self.sock], [], [], 0)[0])

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        set_reset_on_close(self.sock)
        self.sock.close()

    def wait_for_reset(self) -> bool:
        """Reads nothing; waits until the other end has reset the connection."""
        poll = select.poll()
        poll.register(self.sock, 0)
        return any(event & select.POLLERR for _, event in poll.poll(SILENCE * 1000))


def send_request(connection: Connection, ask: Ask, request_id: str, upto: int | None = None) -> None:
    """Head and body, or only `upto` bytes of the body. Stops early when an answer is there."""
    connection.send(ask.head(request_id))
    sent = 0
    step, pause = ask.write_pace or (65536, 0.0)
    for piece in bodies.pieces(request_id, ask.upload, step):
        if upto is not None and sent >= upto:
            return
        if connection.answered():
            return
        connection.send(chunk(piece) if ask.upload_chunked else piece)
        sent += len(piece)
        time.sleep(pause)
    if ask.upload_chunked:
        connection.send(b'0\r\n\r\n')


def read_answer(connection: Connection, ask: Ask, request_id: str) -> tuple[str, int, str]:
    """`seen`, status and note, as rules.Result has them."""
    try:
        head = connection.head()
    except Ended as ended:
        return 'nothing', 0, f'no answer: {ended.how}'
    checker = bodies.Checker(request_id, ask.size)
    step, pause = ask.read_pace or (0, 0.0)
    due = step
    ours = head.status != 200
    size = 0
    try:
        for piece in connection.body(head):
            size += len(piece)
            if not ours:
                checker.feed(piece)
            if step and size >= due:
                due += step
                time.sleep(pause)
    except Ended as ended:
        if ours or not checker.good or ended.how == 'silent':
            return 'wrong', head.status, f'after {size} bytes: {ended.how}'
        return 'cut', head.status, f'{size} of {ask.size} bytes, then {ended.how}'
    if ours:
        return 'status', head.status, head.start
    return check(head, checker, ask, request_id)


def check(head: wire.Message, checker: bodies.Checker, ask: Ask, request_id: str) -> tuple[str, int, str]:
    if head.get('x-id') != request_id:
        return 'wrong', head.status, f'the answer is for {head.get("x-id")}'
    if not checker.whole:
        return 'wrong', head.status, f'{checker.received} of {ask.size} bytes, right so far: {checker.good}'
    if checker.hexdigest() != bodies.digest(request_id, ask.size):
        return 'wrong', head.status, 'the hash of the body'
    if ask.method == 'POST' and head.get('x-body-hash') != bodies.digest(request_id, ask.upload):
        return 'wrong', head.status, f'the server got another body: {head.get("x-body-hash")}'
    return 'ok', head.status, ''


def perform(connection: Connection, ask: Ask, request_id: str, promise: str) -> Result:
    """One request on a connection that stays open as far as ringside lets it."""
    try:
        send_request(connection, ask, request_id)
    except Ended:
        pass  # an answer may have come before
    try:
        seen, status, note = read_answer(connection, ask, request_id)
    except wire.Malformed as error:
        seen, status, note = 'wrong', 0, f'malformed: {error}'
    return Result(request_id, promise, ask.method, seen, status, note)


Report = Callable[[Result], None]
