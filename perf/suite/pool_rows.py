"""Connections to the upstream that a proxy with several rings opens for a million requests."""

from __future__ import annotations

from . import loads, maths
from .bench import Bench, alternate, say
from .proxies import Kind
from .results import Result
from .rows import Row

WARM_UP_SECONDS = 2.0


def measure(bench: Bench, row: Row) -> Result:
    """The pool is what could be in use at once: one connection to the upstream for each client. Those
    opened at the start are counted once, those after it by the request."""
    rings = bench.settings.rings
    seconds = 2 * bench.settings.seconds
    result = Result(row, f'wrk, {rings} rings, workers or threads, pool = {row.connections} client connections, '
                         f'{WARM_UP_SECONDS:g} s of start and {seconds:g} s')
    tool = loads.TOOLS['wrk']

    def one(number: int, kind: Kind) -> None:
        with bench.running(kind, row.connections, rings, pinned=False) as proxy:
            counts, good = [bench.upstream.counts()], True
            for length in (WARM_UP_SECONDS, seconds):
                job = loads.Job(row.path, row.connections, length, row.fresh)
                good = bench.load(tool, job, proxy.port).good and good
                counts.append(bench.upstream.counts())
        note(result, number, kind.name, counts, good)

    alternate(bench, row, bench.kinds, one)
    return result


def note(result: Result, number: int, name: str, counts: list[tuple[int, int]], good: bool) -> None:
    """Each look at the counts was itself a connection and a request."""
    warm_up = counts[1][0] - counts[0][0] - 1
    opened, requests = counts[2][0] - counts[1][0] - 1, counts[2][1] - counts[1][1] - 1
    if not good or requests <= 0:
        say(number, name, 'void: a request failed')
        result.add(name, None)
        return
    million = maths.per_million(warm_up, opened, requests)
    say(number, name, f'{warm_up} at the start, then {opened} for {requests:,} requests: '
                      f'{million:,.0f} for a million')
    result.add(name, million / result.row.connections, at_start=warm_up, opened=opened, requests=requests)
