"""CPU time for each request, or for each GB."""

from __future__ import annotations

import dataclasses

from . import loads, parsers, profile, slots, syscalls, tls
from .bench import Bench, say
from .results import Result
from .rows import Row

WARM_UP_SECONDS = 1.0


def job_of(bench: Bench, row: Row) -> loads.Job:
    return loads.Job(row.path, row.connections, bench.settings.seconds, row.fresh,
                     bench.upstream.upload if row.upload else None, tls=bool(row.tls), streams=row.streams)


def transferred(row: Row, outcome: parsers.Outcome) -> float:
    """Bytes of bodies. Of a download the tool counts all that came, of an upload only whole ones."""
    return outcome.requests * row.per_gb if row.upload else max(outcome.bytes, outcome.requests * row.per_gb)


def cost(row: Row, outcome: parsers.Outcome, cpu_seconds: float) -> float:
    """In the row's unit."""
    if row.per_gb:
        return cpu_seconds * 1e3 / (transferred(row, outcome) / 1e9)
    return cpu_seconds * 1e6 / outcome.requests


def measure(bench: Bench, row: Row) -> Result:
    job, turn = job_of(bench, row), bench.settings.turn
    tool = loads.choose(job, bench.settings.load, row.tool)
    streams = f' of {row.streams} streams' if row.streams else ''
    result = Result(row, f'{tool.name}, {row.connections} connections{streams}, {job.seconds:g} s a round '
                         f'in turns of {turn * 1e3:g} ms')
    if row.tls == 'resumed' and (share := resumed_share(bench, tool)) < tls.RESUMED_MIN:
        result.skipped = f'{tool.name} resumed {share:.0%} of its sessions with a server that lets it'
        return result
    with bench.all_running(row) as proxies:
        result.notes += bench.left_out(row, proxies)
        for proxy in proxies:
            bench.load(tool, warm_up(job), proxy.port)
        for number in range(bench.rounds_of(row)):
            with bench.watched(proxies):
                outcomes = slots.run(bench, proxies, tool, job, turn)
            for proxy in proxies:
                note_round(result, number, proxy.name, *outcomes[proxy.name])
        if bench.settings.syscalls:
            syscalls.measure(bench, result, proxies, tool, warm_up(job))
        if bench.settings.profile:
            profile.measure(bench, result, proxies, tool, job)
    return result


def warm_up(job: loads.Job) -> loads.Job:
    return dataclasses.replace(job, seconds=WARM_UP_SECONDS)


def resumed_share(bench: Bench, tool: loads.Tool) -> float:
    """How many of its connections the load generator resumes; few of them, so that nearly all could be."""
    with tls.Probe(bench.certificate) as probe:
        bench.load(tool, loads.Job('/', 2, WARM_UP_SECONDS, fresh=True, tls=True), probe.port)
        return probe.share


def note_round(result: Result, number: int, name: str, outcome: parsers.Outcome, used: float) -> None:
    row = result.row
    if not outcome.good:
        say(number, name, f'void: {outcome.failed} of {outcome.requests + outcome.failed} requests failed')
        result.add(name, None)
        return
    value = cost(row, outcome, used)
    busy = used / outcome.seconds
    rate = outcome.requests / outcome.seconds
    details = {'requests_per_second': rate, 'proxy_cpus': busy}
    speed = f'{rate:,.0f} requests/s'
    if row.per_gb:
        details['gb_per_second'] = transferred(row, outcome) / 1e9 / outcome.seconds
        speed = f'{details["gb_per_second"]:.2f} GB/s'
    say(number, name, f'{value:8.2f} {row.unit}, {speed}, {busy:.0%} of a CPU')
    result.add(name, value, **details)
