"""Private memory: of an idle proxy, and of each idle keep-alive connection."""

from __future__ import annotations

import dataclasses
import resource
import socket
import ssl
import time

from . import tls, usage
from .bench import Bench, alternate, say
from .proxies import Kind
from .results import Result
from .rows import Row

SETTLE_SECONDS = 1.0
TLS_SETTLE_SECONDS = 3.0  # ringside gives buffers back after one
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


def connect(port: int, context: ssl.SSLContext | None = None) -> socket.socket:
    plain = socket.create_connection(('127.0.0.1', port), 10)
    return context.wrap_socket(plain, server_hostname=tls.NAME) if context else plain


def warm(port: int, path: str, context: ssl.SSLContext | None = None) -> None:
    with connect(port, context) as sock:
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


@dataclasses.dataclass(frozen=True)
class Way:
    """How the proxies are spoken to: in plain text, or over TLS."""

    setup: tls.Tls | None
    context: ssl.SSLContext | None
    settle_seconds: float

    @staticmethod
    def of(bench: Bench, row: Row) -> Way:
        if not row.tls:
            return Way(None, None, SETTLE_SECONDS)
        return Way(tls.Tls(bench.certificate, resume=row.tls != 'full'),
                   ssl.create_default_context(cafile=bench.certificate.cert), TLS_SETTLE_SECONDS)


def hold(port: int, path: str, count: int, held: list[socket.socket], way: Way) -> None:
    """One after the other, so that none of them was ever active beside another. Of TLS only the socket is kept: the
    proxy sees no difference, and ten thousand sessions would be much memory here."""
    for _ in range(count):
        sock = connect(port, way.context)
        held.append(sock)
        ask(sock, path)
        if way.context:
            held[-1] = socket.socket(fileno=sock.detach())


def grow(bench: Bench, row: Row, kind: Kind, count: int, way: Way) -> tuple[int, int]:
    """Private bytes before the connections and with them."""
    held: list[socket.socket] = []
    with bench.running(kind, row.connections, tls=way.setup) as proxy:
        try:
            if way.setup:
                tls.check(proxy.name, proxy.port, way.setup, row.path)
            warm(proxy.port, row.path, way.context)
            time.sleep(way.settle_seconds)
            before = usage.private_memory(proxy.pid)
            hold(proxy.port, row.path, count, held, way)
            time.sleep(way.settle_seconds)
            return sum(before.values()), sum(usage.private_memory(proxy.pid).values())
        except OSError as error:
            raise OSError(f'after {len(held)} connections: {error}') from error
        finally:
            for sock in held:
                sock.close()


def measure_connection(bench: Bench, row: Row) -> Result:
    count = min(row.connections, raise_file_limit())
    way = Way.of(bench, row)
    result = Result(row, f'{count:,} connections, each idle after one request; growth of private pages')
    result.notes.append('What a proxy sets aside for connections at its start is not in the growth '
                        '(nginx: about 0.4 KiB for each of its worker_connections).')

    def one(number: int, kind: Kind) -> None:
        try:
            before, after = grow(bench, row, kind, count, way)
        except (OSError, SystemExit) as error:
            # An older ringside may not speak TLS. The two that the row is about must.
            if isinstance(error, SystemExit) and kind.name in ('ringside', 'nginx'):
                raise
            say(number, kind.name, f'void: {error}')
            result.add(kind.name, None)
            return
        value = (after - before) / count / 1024
        say(number, kind.name, f'{value:7.2f} KiB a connection')
        result.add(kind.name, value, total_mb=after / 1e6)

    kinds = [kind for kind in bench.kinds if kind.ours or not way.setup]
    result.notes += [f'{kind.name} is not asked for TLS, and is left out.' for kind in bench.kinds if kind not in kinds]
    alternate(bench, row, kinds, one)
    return result
