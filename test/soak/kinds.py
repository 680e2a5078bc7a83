"""The kinds of clients: each is a loop body that makes some requests and reports what it saw of them.

Paths: /steady goes to two servers that stay up, /closing to one that closes idle connections and one that does
not, /dying to one that is stopped and started and one that stays up.
"""

from __future__ import annotations

import random
import socket
import time
from typing import Callable

from .flow import Ended
from .requests import Ask, Connection, perform, read_answer, send_request
from .rules import RESET, Result

MB = 1_000_000
NextId = Callable[[], str]
Report = Callable[[Result], None]
Kind = Callable[[int, NextId, Report], None]


def kept(port: int, next_id: NextId, report: Report, count: int, promise: str,
         make: Callable[[], Ask], receive_bytes: int = 0) -> None:
    """Up to `count` requests on one connection, fewer when one does not succeed."""
    connection = Connection(port, receive_bytes)
    for _ in range(count):
        result = perform(connection, make(), next_id(), promise)
        report(result)
        if result.seen != 'ok':
            break
    connection.close()


def small(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, random.randint(50, 300), 'succeeds',
         lambda: Ask('/steady', size=random.randint(0, 4000), chunked=random.random() < 0.3))


def short(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 1, 'succeeds', lambda: Ask('/steady', size=500, close=random.random() < 0.5))


def big(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 10, 'succeeds', lambda: Ask('/steady', size=MB, chunked=random.random() < 0.3))


def upload(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 10, 'succeeds',
         lambda: Ask('/steady', 'POST', upload=MB, upload_chunked=random.random() < 0.3))


def both_ways(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 10, 'succeeds',
         lambda: Ask('/steady', 'POST', size=300_000, chunked=True, upload=200_000, upload_chunked=True))


def pipelined(port: int, next_id: NextId, report: Report) -> None:
    connection = Connection(port)
    asks = [(Ask('/steady', size=random.randint(0, 20_000)), next_id()) for _ in range(random.randint(2, 8))]
    connection.send(b''.join(ask.head(request_id) for ask, request_id in asks))
    for ask, request_id in asks:
        report(Result(request_id, 'succeeds', 'GET', *read_answer(connection, ask, request_id)))
    connection.close()


def half_closed(port: int, next_id: NextId, report: Report) -> None:
    """FIN behind a whole request: the answer must come."""
    connection = Connection(port)
    ask, request_id = Ask('/steady', size=50_000), next_id()
    send_request(connection, ask, request_id)
    connection.sock.shutdown(socket.SHUT_WR)
    report(Result(request_id, 'succeeds', 'GET', *read_answer(connection, ask, request_id)))
    connection.close()


# ---- servers that go away


def closing_get(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 40, 'succeeds', lambda: Ask('/closing', size=1000))
    time.sleep(random.uniform(0, 0.03))


def closing_post(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 20, 'may_stale', lambda: Ask('/closing', 'POST', upload=random.choice((10, 100_000))))
    time.sleep(random.uniform(0, 0.03))


def dying_get(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 40, 'may_die', lambda: Ask('/dying', size=random.choice((100, 20_000))))


def dying_big(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 5, 'may_die', lambda: Ask('/dying', size=MB, chunked=random.random() < 0.5))


def dying_post(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 10, 'may_die', lambda: Ask('/dying', 'POST', upload=random.choice((10, 500_000))))


def cut(port: int, next_id: NextId, report: Report) -> None:
    """The server ends in the middle of the body."""
    size = random.choice((2_000, 40_000, MB))
    query = f'&after={random.randint(1, size // 2)}&abort={random.choice(("fin", "reset"))}'
    kept(port, next_id, report, 1, 'cut', lambda: Ask('/steady', size=size, chunked=random.random() < 0.5, query=query))
    time.sleep(random.uniform(0, 0.02))


def slow_server(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 1, 'succeeds', lambda: Ask('/steady', size=200_000, query='&pace=0.1'))


# ---- clients that go away


def leave(connection: Connection) -> str:
    """RST, or FIN (which becomes RST where bytes are unread), at any moment. Returns which."""
    time.sleep(random.choice((0, random.uniform(0, 0.03))))
    if random.random() < 0.5:
        connection.reset()
        return RESET
    connection.close()
    return 'closed'


def leave_in_head(port: int, next_id: NextId, report: Report) -> None:
    connection = Connection(port)
    head = Ask('/steady').head('soak-none')
    connection.send(head[: random.randint(1, len(head) - 5)])
    leave(connection)


def leave_in_request(port: int, next_id: NextId, report: Report) -> None:
    connection = Connection(port)
    ask, request_id = Ask('/steady', 'POST', upload=2 * MB, upload_chunked=random.random() < 0.5), next_id()
    send_request(connection, ask, request_id, upto=random.choice((1, 100_000, MB)))
    report(Result(request_id, 'leaves', 'POST', 'left', note=leave(connection)))
    # Who leaves waits for nothing, so where the servers get little of the CPU such clients pile up before them,
    # until no connection gets through any more. One answer that is waited for keeps the pace.
    short(port, next_id, report)


def leave_in_response(port: int, next_id: NextId, report: Report) -> None:
    connection = Connection(port, receive_bytes=65536)
    ask, request_id = Ask('/steady', size=random.choice((200_000, 8 * MB))), next_id()
    send_request(connection, ask, request_id)
    wanted = random.choice((1, 1000, 100_000))
    try:
        while wanted > 0:
            connection.more()
            wanted -= len(connection.held)
            connection.held = b''
        report(Result(request_id, 'leaves', 'GET', 'left'))
    except Ended as ended:
        report(Result(request_id, 'leaves', 'GET', 'ended', note=ended.how))
    leave(connection)


# ---- slow ones


def slow_reader(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 1, 'succeeds',
         lambda: Ask('/steady', size=MB, chunked=random.random() < 0.5, read_pace=(50_000, 0.1)), receive_bytes=32768)


def slow_writer(port: int, next_id: NextId, report: Report) -> None:
    kept(port, next_id, report, 1, 'succeeds',
         lambda: Ask('/steady', 'POST', upload=400_000, upload_chunked=random.random() < 0.5,
                     write_pace=(20_000, 0.1)))


def stalled_reader(port: int, next_id: NextId, report: Report) -> None:
    connection = Connection(port, receive_bytes=32768)
    ask, request_id = Ask('/steady', host='stall.test', size=8 * MB), next_id()
    send_request(connection, ask, request_id)
    seen = 'reset' if connection.wait_for_reset() else 'not ended'
    report(Result(request_id, 'stalls', 'GET', seen))
    connection.close()


def stalled_writer(port: int, next_id: NextId, report: Report) -> None:
    connection = Connection(port)
    ask, request_id = Ask('/steady', 'POST', host='stall.test', upload=MB), next_id()
    send_request(connection, ask, request_id, upto=100_000)
    report(Result(request_id, 'stalls', 'POST', *read_answer(connection, ask, request_id)))
    connection.close()


# How many of each, in the process of each group.
GROUPS: dict[str, tuple[tuple[Kind, int], ...]] = {
    'small': ((small, 6), (short, 2), (pipelined, 1), (half_closed, 1), (closing_get, 2), (closing_post, 1),
              (dying_get, 2)),
    'bodies': ((big, 2), (upload, 2), (both_ways, 2), (dying_big, 1), (dying_post, 1)),
    'churn': ((leave_in_head, 2), (leave_in_request, 2), (leave_in_response, 2), (cut, 2), (slow_server, 2),
              (slow_reader, 4), (slow_writer, 4), (stalled_reader, 2), (stalled_writer, 2)),
}
