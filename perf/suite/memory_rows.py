"""Private memory: of an idle proxy, and of each idle keep-alive connection."""

from __future__ import annotations

import resource
import socket
import time

from . import usage
from .bench import Bench, alternate, say
from .proxies import Kind
from .results import Result
from .rows import Row

SETTLE_SECONDS = 1.0
WARM_REQUESTS = 200
SPARE_FILES = 200


def ask(sock: socket.socket, path: str) -> None:
    """One request, whose answer has a Content-Length; the connection stays."""
    sock.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
    got = b''
    while b'\r\n\r\n' not in got:
        got += receive(sock)
    head, _, body = got.partition(b'\r\n\r\n')
    lines = head.lower().split(b'\r\n')
    if not lines[0].startswith(b'http/1.1 200'):
        raise OSError(f'the answer was {lines[0].decode(errors="replace")}')
    length = next(int(line.split(b':')[1]) for line in lines if line.startswith(b'content-length:'))
    left = length - len(body)
    while left > 0:
        left -= len(receive(sock))


def receive(sock: socket.socket) -> bytes:
    data = sock.recv(65536)
    if not data:
        raise OSError('the proxy closed the connection')
    return data


def connect(port: int) -> socket.socket:
    return socket.create_connection(('127.0.0.1', port), 10)


def warm(port: int, path: str) -> None:
    with connect(port) as sock:
        for _ in range(WARM_REQUESTS):
            ask(sock, path)


def measure_idle(bench: Bench, row: Row) -> Result:
    result = Result(row, 'after 200 requests on one connection; private dirty and clean pages')

    def one(number: int, kind: Kind) -> None:
        with bench.running(kind, row.connections) as proxy:
            warm(proxy.port, row.path)
            time.sleep(SETTLE_SECONDS)
            memory = usage.private_memory(proxy.pid)
        value = sum(memory.values()) / 1e6
        say(number, kind.name, f'{value:7.2f} MB, of which {memory["dirty"] / 1e6:.2f} MB dirty')
        result.add(kind.name, value, dirty_mb=memory['dirty'] / 1e6, clean_mb=memory['clean'] / 1e6)

    alternate(bench, row, bench.kinds, one)
    return result


def raise_file_limit() -> int:
    """As many files as we may open; what is left for connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - SPARE_FILES


def hold(port: int, path: str, count: int, held: list[socket.socket]) -> None:
    """One after the other, so that none of them was ever active beside another."""
    for _ in range(count):
        held.append(connect(port))
        ask(held[-1], path)


def measure_connection(bench: Bench, row: Row) -> Result:
    count = min(row.connections, raise_file_limit())
    result = Result(row, f'{count:,} connections, each idle after one request; growth of private pages')
    result.notes.append('What a proxy sets aside for connections at its start is not in the growth '
                        '(nginx: about 0.4 KiB for each of its worker_connections).')

    def one(number: int, kind: Kind) -> None:
        held: list[socket.socket] = []
        with bench.running(kind, row.connections) as proxy:
            try:
                warm(proxy.port, row.path)
                time.sleep(SETTLE_SECONDS)
                before = usage.private_memory(proxy.pid)
                hold(proxy.port, row.path, count, held)
                time.sleep(SETTLE_SECONDS)
                after = usage.private_memory(proxy.pid)
            except OSError as error:
                say(number, kind.name, f'void after {len(held)} connections: {error}')
                result.add(kind.name, None)
                return
            finally:
                for sock in held:
                    sock.close()
        value = (sum(after.values()) - sum(before.values())) / count / 1024
        say(number, kind.name, f'{value:7.2f} KiB a connection')
        result.add(kind.name, value, total_mb=sum(after.values()) / 1e6)

    alternate(bench, row, bench.kinds, one)
    return result
