"""Latency at a fixed rate, and whether one fast transfer holds up everybody else's requests."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import time
from collections.abc import Iterator

from . import loads
from .bench import Bench, alternate, say
from .proxies import Proxy
from .results import Result
from .rows import Row

SINK = pathlib.Path(__file__).with_name('sink.py')


def measure_latency(bench: Bench, row: Row) -> Result:
    tool, rate = loads.TOOLS['oha'], bench.settings.rate
    fixed = loads.Job(row.path, row.connections, bench.settings.seconds, rate=rate)
    closed = loads.Job(row.path, row.connections, bench.settings.seconds)
    result = Result(row, f'oha, {row.connections} connections, {rate:g} requests/s, latency counted from when '
                         'each was due; beside it, as fast as it goes (closed loop)')
    with bench.all_running(row) as proxies:
        def one(number: int, proxy: Proxy) -> None:
            with bench.watched(proxies):
                open_loop = bench.load(tool, fixed, proxy.port)
                loop = bench.load(tool, closed, proxy.port)
            if not (open_loop.good and loop.good and on_time(open_loop.requests, fixed)):
                say(number, proxy.name, f'void: {open_loop.failed + loop.failed} failed, '
                                        f'{open_loop.requests} of {rate * fixed.seconds:.0f} came through')
                result.add(proxy.name, None)
                return
            details = {f'p{p}_ms': v for p, v in open_loop.percentiles.items()}
            details |= {f'closed_p{p}_ms': v for p, v in loop.percentiles.items()}
            say(number, proxy.name, 'p50/p99/p99.9 ' + '/'.join(
                f'{v:.2f}' for v in open_loop.percentiles.values()) + ' ms at the fixed rate, ' + '/'.join(
                f'{v:.2f}' for v in loop.percentiles.values()) + ' ms closed loop')
            result.add(proxy.name, open_loop.percentiles['99'],
                       closed_requests_per_second=loop.requests / loop.seconds, **details)

        for proxy in proxies:
            bench.load(tool, loads.Job(row.path, row.connections, 1), proxy.port)
        alternate(bench, row, proxies, one)
    return result


def on_time(requests: int, job: loads.Job) -> bool:
    """A tool that could not keep its rate measured something else."""
    return requests >= 0.9 * (job.rate or 0) * job.seconds


@contextlib.contextmanager
def transfer(bench: Bench, proxy: Proxy) -> Iterator[list[float]]:
    """One connection that reads 10 GB as fast as it can; ends with the block, and then says its GB/s."""
    log = bench.lab.folder / 'sink.log'
    sink = bench.lab.start([sys.executable, str(SINK), str(proxy.port)], bench.lab.load_cpu, log)
    speed: list[float] = []

    def total() -> int:
        words = log.read_text().split()
        return int(words[-1]) if words and words[-1].isdigit() else 0
    try:
        deadline = time.monotonic() + 10
        while not total() and time.monotonic() < deadline:
            time.sleep(0.05)
        before, began = total(), time.monotonic()
        yield speed
        if before and sink.poll() is None or total() >= 10 << 30:
            speed.append((total() - before) / 1e9 / (time.monotonic() - began))
    finally:
        bench.lab.stop([sink])


def measure_fairness(bench: Bench, row: Row) -> Result:
    tool = loads.TOOLS['oha']
    job = loads.Job(row.path, row.connections, bench.settings.seconds, rate=bench.settings.rate / 2)
    result = Result(row, f'oha, {row.connections} connections, {job.rate:g} requests/s, {job.seconds:g} s alone '
                         f'and {job.seconds:g} s beside the transfer, through the same ring')
    if bench.lab.load_cpu == bench.lab.upstream_cpu:
        result.notes.append('The load, the upstream and the reader of the transfer share a CPU; '
                            'their waiting for each other is in the figure.')
    with bench.all_running(row) as proxies:
        def one(number: int, proxy: Proxy) -> None:
            alone = bench.load(tool, job, proxy.port)
            with transfer(bench, proxy) as speed:
                beside = bench.load(tool, job, proxy.port)
            if not (alone.good and beside.good and speed):
                say(number, proxy.name, f'void: {alone.failed + beside.failed} requests failed'
                    + ('' if speed else ', the transfer did not last'))
                result.add(proxy.name, None)
                return
            value = beside.percentiles['99'] / max(alone.percentiles['99'], 1e-3)
            say(number, proxy.name, f'p99 {alone.percentiles["99"]:.2f} ms alone, '
                                    f'{beside.percentiles["99"]:.2f} ms beside {speed[0]:.2f} GB/s')
            result.add(proxy.name, value, alone_p99_ms=alone.percentiles['99'],
                       beside_p99_ms=beside.percentiles['99'], transfer_gb_per_second=speed[0])

        for proxy in proxies:
            bench.load(tool, loads.Job(row.path, row.connections, 1), proxy.port)
        alternate(bench, row, proxies, one)
    return result
