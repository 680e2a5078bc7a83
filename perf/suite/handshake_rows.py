"""CPU time of a connection with its TLS handshake at two rings, divided by that at one.

Rings share nothing that a handshake waits for, so the second one should make none of them dearer. Two rings, the load and
the upstream have two CPUs between them as a rule, so it is CPU time that is compared and not the rate.
"""

from __future__ import annotations

import contextlib
import dataclasses

from . import cpu_row, loads, tls
from .bench import Bench, say
from .proxies import Kind, Proxy
from .results import Result
from .rows import Row
from .slots import run

RINGS = (1, 2)


def setup_of(bench: Bench, row: Row) -> tls.Tls:
    return tls.Tls(bench.rsa_certificate if row.rsa else bench.certificate, row.tls != 'full')


def name_at(kind: Kind, rings: int) -> str:
    return f'{kind.name} with {rings}'


def start_all(bench: Bench, row: Row, stack: contextlib.ExitStack) -> tuple[list[Kind], list[Proxy]]:
    """Each kind that can with one ring and with two; none of them pinned to a CPU."""
    setup, kinds, proxies = setup_of(bench, row), [], []
    for kind in bench.kinds:
        if not kind.ours:
            continue
        with contextlib.ExitStack() as attempt:
            pair = []
            try:
                for rings in RINGS:
                    proxy = attempt.enter_context(
                        bench.running(kind, row.connections, rings, pinned=False, tls=setup))
                    tls.check(proxy.name, proxy.port, setup, row.path)
                    pair.append(dataclasses.replace(proxy, name=name_at(kind, rings)))
            except SystemExit as error:
                # An older ringside may not speak TLS. The two that the row is about must.
                if kind.name in ('ringside', 'nginx'):
                    raise
                print(f'  {error}', flush=True)
                continue
            stack.push(attempt.pop_all())
            kinds.append(kind)
            proxies += pair
    return kinds, proxies


def measure(bench: Bench, row: Row) -> Result:
    tool = loads.choose(loads.Job(row.path, row.connections, 1, row.fresh, tls=True), bench.settings.load, row.tool)
    job = cpu_row.job_of(bench, row)
    result = Result(row, f'{tool.name}, {row.connections} connections, {job.seconds:g} s a round with 1 and with 2 '
                         f'rings, workers or threads, in turns of {bench.settings.turn * 1e3:g} ms')
    if row.tls == 'resumed' and (share := cpu_row.resumed_share(bench, tool)) < tls.RESUMED_MIN:
        result.skipped = f'{tool.name} resumed {share:.0%} of its sessions with a server that lets it'
        return result
    with contextlib.ExitStack() as stack:
        kinds, proxies = start_all(bench, row, stack)
        result.notes += [f'{kind.name} does not speak TLS as this row wants it, and is left out.'
                         for kind in bench.kinds if kind not in kinds]
        for proxy in proxies:
            bench.load(tool, cpu_row.warm_up(job), proxy.port)
        for number in range(bench.rounds_of(row)):
            with bench.watched(proxies):
                outcomes = run(bench, proxies, tool, job, bench.settings.turn)
            for kind in kinds:
                note_round(result, number, kind.name, [outcomes[name_at(kind, rings)] for rings in RINGS])
    return result


def note_round(result: Result, number: int, name: str, pair: list) -> None:
    """`pair`: for one ring and for two, what the load generator says and the CPU time used."""
    failed = sum(outcome.failed for outcome, _ in pair)
    if failed or not all(outcome.good for outcome, _ in pair):
        say(number, name, f'void: {failed} requests failed')
        result.add(name, None)
        return
    one, two = (used * 1e6 / outcome.requests for outcome, used in pair)
    say(number, name, f'{two / one:8.2f} {result.row.unit}: {two:.1f} µs of CPU a connection, {one:.1f} µs with 1 ring')
    result.add(name, two / one, one_ring_us=one, two_rings_us=two)
