#!/usr/bin/python3
"""Every body mover with every framing, both ways, up to 5 GB: see README.md."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import socket
import sys
import threading
import time
from collections.abc import Iterator

TEST_ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TEST_ROOT), str(pathlib.Path(__file__).resolve().parent)]

import large_bodies  # noqa: E402
from support import proxy  # noqa: E402

MOVERS = ('auto', 'copy', 'large', 'bundle', 'splice', 'zero_copy')
SIZES = (0, 1, 16 << 10, (256 << 10) + 1, 3 << 20, (64 << 20) + 3, 5_000_000_000)
CASES = ('down length', 'down chunked', 'down close', 'up length', 'up chunked', 'tunnel')
STUCK_S = 60
MEMORY_MAX = 96 << 20
UP, DOWN = 1, 2  # seeds


class Failure(Exception):
    """A body that is not what was sent, or no end of it."""


# ---------------------------------------------------------------- the upstream, a process of its own


def serve_tunnel(sock: socket.socket, size: int, rest: bytes) -> None:
    sock.sendall(b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n')
    sender = threading.Thread(target=large_bodies.send, args=(sock, DOWN, size, False))
    sender.start()
    sink = large_bodies.Sink('length', size)
    large_bodies.receive(sock, sink, rest, size, lambda _: None)
    sender.join()
    sock.sendall(sink.hexdigest().encode())


def serve_one(sock: socket.socket) -> bool:
    """False: the connection is to be closed."""
    head, rest = large_bodies.read_head(sock)
    if not head:
        return False
    kind, framing, size = head.split(' ')[1].strip('/').split('/')
    if kind == 'tunnel':
        serve_tunnel(sock, int(size), rest)
        return False
    if kind == 'up':
        sink = large_bodies.Sink(framing, int(size))
        large_bodies.receive(sock, sink, rest, int(size), lambda _: None)
        sock.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n' + sink.hexdigest().encode())
        return True
    field = {'length': f'Content-Length: {size}', 'chunked': 'Transfer-Encoding: chunked', 'close': 'Connection: close'}
    sock.sendall(f'HTTP/1.1 200 OK\r\n{field[framing]}\r\n\r\n'.encode())
    large_bodies.send(sock, DOWN, int(size), framing == 'chunked')
    return framing != 'close'


def serve(listener: socket.socket) -> None:
    def connection(sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            while serve_one(sock):
                pass

    while True:
        sock, _ = listener.accept()
        threading.Thread(target=connection, args=(sock,), daemon=True).start()


@contextlib.contextmanager
def upstream() -> Iterator[str]:
    listener = socket.create_server(('127.0.0.1', 0))
    child = os.fork()
    if child == 0:
        try:
            serve(listener)
        finally:
            os._exit(1)
    port = listener.getsockname()[1]
    listener.close()
    try:
        yield f'127.0.0.1:{port}'
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


# ---------------------------------------------------------------- the client


class Run:
    """What all transfers share: the time, and who says how far they are."""

    def __init__(self, seconds: float):
        self.deadline = time.monotonic() + seconds
        self._said = 0.0

    def progress(self, name: str, size: int) -> large_bodies.Progress:
        self._said = time.monotonic()

        def say(got: int) -> None:
            now = time.monotonic()
            if now > self.deadline:
                raise Failure(f'{name}: the time is up at {got} of {size} bytes')
            if now - self._said >= 10:
                self._said = now
                print(f'     {name}: {got * 100 // max(size, 1)}%', flush=True)

        return say


def expect(name: str, got: str, seed: int, size: int) -> None:
    if got != large_bodies.digest(seed, size):
        raise Failure(f'{name}: the body is not what was sent')


def download(sock: socket.socket, name: str, framing: str, size: int, run: Run) -> None:
    sock.sendall(f'GET /down/{framing}/{size} HTTP/1.1\r\nHost: a.test\r\n\r\n'.encode())
    head, rest = large_bodies.read_head(sock)
    # Without a length it comes in chunks, whatever the server did.
    sink = large_bodies.Sink('length' if 'content-length' in head.lower() else 'chunked', size)
    large_bodies.receive(sock, sink, rest, size, run.progress(name, size))
    if not sink.done or sink.size != size:
        raise Failure(f'{name}: {sink.size} of {size} bytes')
    expect(name, sink.hexdigest(), DOWN, size)


def upload(sock: socket.socket, name: str, framing: str, size: int, run: Run) -> None:
    field = 'Transfer-Encoding: chunked' if framing == 'chunked' else f'Content-Length: {size}'
    sock.sendall(f'POST /up/{framing}/{size} HTTP/1.1\r\nHost: a.test\r\n{field}\r\n\r\n'.encode())
    large_bodies.send(sock, UP, size, framing == 'chunked')
    _, rest = large_bodies.read_head(sock)
    while len(rest) < 64 and (more := sock.recv(64)):
        rest += more
    run.progress(name, size)(size)
    expect(name, rest.decode(), UP, size)


def tunnel(sock: socket.socket, name: str, _: str, size: int, run: Run) -> None:
    sock.sendall(f'GET /tunnel/both/{size} HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\n'
                 'Upgrade: raw\r\n\r\n'.encode())
    _, rest = large_bodies.read_head(sock)
    sender = threading.Thread(target=large_bodies.send, args=(sock, UP, size, False))
    sender.start()
    sink = large_bodies.Sink('length', size)
    progress = run.progress(name, size)
    early = min(len(rest), size)
    tail = rest[early:]
    # Behind the body comes the server's digest of ours, perhaps in the same piece.
    left = size - early
    sink.feed(memoryview(rest[:early]))
    buffer = memoryview(bytearray(large_bodies.MIB))
    while left:
        count = sock.recv_into(buffer, min(left, len(buffer)))
        if count == 0:
            raise Failure(f'{name}: {sink.size} of {size} bytes')
        sink.feed(buffer[:count])
        left -= count
        progress(sink.size)
    sender.join()
    while more := sock.recv(4096):
        tail += more
    expect(name, sink.hexdigest(), DOWN, size)
    expect(name, tail.decode(), UP, size)


TRANSFERS = {'down': download, 'up': upload, 'tunnel': tunnel}


# ---------------------------------------------------------------- the matrix


@dataclasses.dataclass
class Cell:
    """Of the largest body of a case."""

    gigabytes: float
    seconds: float
    cpu_seconds: float


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def peak_memory(pid: int) -> int:
    lines = pathlib.Path(f'/proc/{pid}/status').read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith('VmHWM'))


def transfer(ringside: proxy.Ringside, mover: str, case: str, size: int, run: Run) -> Cell:
    kind, _, framing = case.partition(' ')
    name = f'{mover}, {case}, {size}'
    before, start = cpu_seconds(ringside.pid), time.monotonic()
    with socket.create_connection(('127.0.0.1', ringside.port), STUCK_S) as sock:
        try:
            TRANSFERS[kind](sock, name, framing, size, run)
        except OSError as error:
            raise Failure(f'{name}: {error}') from error
    cell = Cell(size * (2 if kind == 'tunnel' else 1) / 1e9, time.monotonic() - start,
                cpu_seconds(ringside.pid) - before)
    print(f'ok   {name} ({cell.seconds:.1f} s)', flush=True)
    return cell


def words(ringside: proxy.Ringside) -> set[str]:
    """What the log says about the bodies that were not small."""
    records = [json.loads(line) for line in ringside.access_lines()]
    return {r['mover'] for r in records if r['body_bytes'] + r['request_bytes'] >= 3 << 20}


def run_mover(server: str, mover: str, sizes: list[int], run: Run) -> list[Cell]:
    row = []
    ringside = proxy.Ringside(proxy.proxy_config(server, server=f'body_mover = "{mover}"'))
    try:
        for case in CASES:
            row.append([transfer(ringside, mover, case, size, run) for size in sizes][-1])
        memory, used = peak_memory(ringside.pid), words(ringside)
        print(f'     {mover}: {memory >> 10} KiB at most; the log says {", ".join(sorted(used))}', flush=True)
        if memory > MEMORY_MAX:
            raise Failure(f'{mover}: it held {memory} bytes')
        if sizes[-1] >= 3 << 20 and mover not in ('auto', 'bundle') and mover not in used:
            raise Failure(f'{mover}: it was not used')
    finally:
        ringside.stop()
    return row


def print_table(table: dict[str, list[Cell]]) -> None:
    print(f'\n{"GB/s, CPU s/GB":12}' + ''.join(f'{case:>16}' for case in CASES))
    for mover, row in table.items():
        cells = [f'{c.gigabytes / c.seconds:.2f} {c.cpu_seconds / c.gigabytes:.2f}' if c.gigabytes else '-' for c in row]
        print(f'{mover:14}' + ''.join(f'{cell:>16}' for cell in cells))


def size_of(text: str) -> int:
    units = {'K': 10**3, 'M': 10**6, 'G': 10**9}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--mover', action='append', choices=MOVERS, help='only this one (may be repeated)')
    parser.add_argument('--largest', type=size_of, default=SIZES[-1], metavar='BYTES', help='like 200M (default 5G)')
    parser.add_argument('--seconds', type=float, default=3600, help='the longest that all may take')
    options = parser.parse_args()
    sizes = [size for size in SIZES if size < options.largest] + [options.largest]
    run = Run(options.seconds)
    table: dict[str, list[Cell]] = {}
    try:
        with upstream() as server:
            for mover in options.mover or MOVERS:
                table[mover] = run_mover(server, mover, sizes, run)
    except Failure as failure:
        print(f'FAIL {failure}', flush=True)
        return 1
    finally:
        print_table(table)
    return 0


if __name__ == '__main__':
    sys.exit(main())
