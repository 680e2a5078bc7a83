"""Load on all proxies in turns of a fraction of a second.

Whatever disturbs a machine for seconds, a neighbour on the same host or a clock that slows down, disturbs
all proxies alike then. All load generators run at once and all but one are stopped (SIGSTOP): a proxy whose
turn it is not has at most one request of each connection to answer, and then nothing to do.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import time

from . import loads, parsers
from .bench import Bench
from .proxies import Proxy


@dataclasses.dataclass
class Turns:
    """The turns of one proxy in one round, and what came of them."""

    proxy: Proxy
    running: loads.Running
    cpu_before: float
    seconds: float = 0.0  # not stopped

    def take(self, seconds: float) -> None:
        began = time.monotonic()
        os.killpg(self.running.process.pid, signal.SIGCONT)
        time.sleep(seconds)
        os.killpg(self.running.process.pid, signal.SIGSTOP)
        self.seconds += time.monotonic() - began

    def finish(self) -> tuple[parsers.Outcome, float]:
        """Its outcome, with the time that it was let run and without percentiles: they have the stops in
        them; and the CPU time that the proxy used."""
        began = time.monotonic()
        os.killpg(self.running.process.pid, signal.SIGCONT)
        outcome = self.running.finish()
        self.seconds += time.monotonic() - began
        return (dataclasses.replace(outcome, seconds=self.seconds, percentiles={}),
                self.proxy.cpu() - self.cpu_before)


def run(bench: Bench, proxies: list[Proxy], tool: loads.Tool, job: loads.Job,
        turn_seconds: float) -> dict[str, tuple[parsers.Outcome, float]]:
    """One round: about `job.seconds` for each proxy. By name: what its load generator says, and the seconds
    of CPU that the proxy used."""
    whole = dataclasses.replace(job, seconds=job.seconds * len(proxies))
    order: list[Turns] = []
    try:
        for proxy in proxies:
            cpu = proxy.cpu()
            order.append(Turns(proxy, loads.begin(bench.lab, tool, whole, proxy.port), cpu))
            os.killpg(order[-1].running.process.pid, signal.SIGSTOP)
        deadline = time.monotonic() + whole.seconds
        while time.monotonic() < deadline:
            for turns in order:
                turns.take(turn_seconds)
            order.reverse()
        return {turns.proxy.name: turns.finish() for turns in order}
    finally:
        for turns in order:
            turns.running.end()
