"""What every row needs: the lab, the upstream, the proxies, and rounds that alternate."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import resource
import time
from collections.abc import Callable, Iterator

from . import loads, machine, parsers, usage
from . import tls as suite_tls
from .lab import Lab
from .proxies import Kind, Proxy, start
from .rows import Row
from .upstream import Upstream


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the command line asked for."""

    rounds: int
    seconds: float
    turn: float  # seconds of each proxy's turns within a round
    load: str | None
    rate: float
    rings: int
    syscalls: bool
    profile: bool


@dataclasses.dataclass
class Bench:
    """One run."""

    lab: Lab
    upstream: Upstream
    kinds: list[Kind]
    settings: Settings
    others: list[float] = dataclasses.field(default_factory=list)  # CPUs that others used, by round

    def rounds_of(self, row: Row) -> int:
        return min(self.settings.rounds, row.max_rounds or self.settings.rounds)

    @functools.cached_property
    def certificate(self) -> suite_tls.Certificate:
        return suite_tls.make_certificate(self.lab.new_folder('tls'))

    @functools.cached_property
    def rsa_certificate(self) -> suite_tls.Certificate:
        return suite_tls.make_certificate(self.lab.new_folder('tls'), rsa=True)

    @contextlib.contextmanager
    def running(self, kind: Kind, clients: int, rings: int = 1, pinned: bool = True,
                tls: suite_tls.Tls | None = None, deferred: bool = False) -> Iterator[Proxy]:
        cpu = self.lab.proxy_cpu if pinned else None
        proxy = start(self.lab, kind, self.upstream.port, rings, clients, cpu, tls, deferred)
        try:
            yield proxy
        finally:
            self.lab.stop([proxy.process])

    @contextlib.contextmanager
    def all_running(self, row: Row) -> Iterator[list[Proxy]]:
        tls = suite_tls.Tls(self.certificate, row.tls != 'full', row.streams != 0) if row.tls else None
        with contextlib.ExitStack() as stack:
            proxies = []
            for kind in self.kinds:
                if tls is None and not row.deferred:
                    proxies.append(stack.enter_context(self.running(kind, row.connections)))
                elif kind.ours and (proxy := self.start_special(stack, kind, row, tls)):
                    proxies.append(proxy)
            yield proxies

    def start_special(self, stack: contextlib.ExitStack, kind: Kind, row: Row,
                      tls: suite_tls.Tls | None) -> Proxy | None:
        """None: it cannot, as an older ringside. The two that the row is about must."""
        try:
            proxy = stack.enter_context(self.running(kind, row.connections, tls=tls, deferred=row.deferred))
            if tls:
                suite_tls.check(proxy.name, proxy.port, tls, row.path)
            return proxy
        except SystemExit as error:
            if kind.name in ('ringside', 'nginx'):
                raise
            print(f'  {error}', flush=True)
            return None

    def left_out(self, row: Row, proxies: list[Proxy]) -> list[str]:
        running = {proxy.name for proxy in proxies}
        lack = 'speak TLS as this row wants it' if row.tls else 'defer connections'
        return [f'{kind.name} does not {lack}, and is left out.' for kind in self.kinds if kind.name not in running]

    def load(self, tool: loads.Tool, job: loads.Job, port: int) -> parsers.Outcome:
        return loads.run(self.lab, tool, job, port)

    @contextlib.contextmanager
    def watched(self, proxies: list[Proxy]) -> Iterator[None]:
        """Notes how many CPUs somebody else used meanwhile."""
        def ours() -> float:
            spent = sum(proxy.cpu() for proxy in proxies) + usage.tree_cpu(self.upstream.pid)
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            return spent + children.ru_utime + children.ru_stime + time.process_time()
        before, own, began = sum(machine.cpu_seconds()), ours(), time.monotonic()
        yield
        used = sum(machine.cpu_seconds()) - before - (ours() - own)
        self.others.append(max(0.0, used / max(time.monotonic() - began, 0.1)))


def alternate(bench: Bench, row: Row, proxies: list, measure: Callable[[int, object], None]) -> None:
    """A B C, C B A, A B C, ...: whatever drifts, drifts for all."""
    for number in range(bench.rounds_of(row)):
        for proxy in proxies if number % 2 == 0 else proxies[::-1]:
            measure(number, proxy)


def say(number: int, proxy: str, text: str) -> None:
    print(f'  round {number + 1}  {proxy:13} {text}', flush=True)


def others_limit() -> float:
    """So many CPUs used by others make a round doubtful."""
    return machine.BUSY_SHARE * (os.cpu_count() or 1)
