"""What is watched of a running ringside, and how much of it may come late."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import signal
import time

from support.upstream import wait_until

from . import trend
from .trend import JUMPY, NOISY, STEADY

# Empty pipes that a ring keeps open for the next body, and the two descriptors of each (net::PipePool).
PIPE_ENDS_KEPT = 2 * 32


@dataclasses.dataclass(frozen=True)
class Figure:
    """`floor`: how much it may grow for good after the warm-up."""

    name: str
    nature: str
    floor: float
    why: str


FIGURES = (
    # Slabs and arenas keep what the highest load ever took, and the highest load is a matter of chance: 0.1 to
    # 0.4 MiB came late in runs of 25 s to 11 minutes, and 1.6 MiB on a machine that had much else to do. What leaks
    # some 100 bytes a request is still found in the short form.
    Figure('memory KiB', STEADY, 3072, 'private dirty memory: peaks that come late'),
    Figure('descriptors', NOISY, 16, 'connections that come and go'),
    Figure('pipe ends', NOISY, 16, 'pipes are opened for large bodies and kept'),
    Figure('threads', STEADY, 0, 'one a ring, the main one, one for names'),
    Figure('clients', JUMPY, 8, 'their number is fixed; when one is counted is chance'),
    Figure('exchanges', JUMPY, 8, 'as clients'),
    Figure('servers', JUMPY, 16, 'idle connections are kept for 2 s'),
    Figure('leases', JUMPY, 64, 'a part of the buffers of one slow reader'),
    Figure('chunks', JUMPY, 16, 'as exchanges, a few for each'),
    Figure('slices', JUMPY, 64, 'as leases'),
    Figure('pipes', JUMPY, 8, 'bodies that move at once'),
    Figure('operations', JUMPY, 64, 'up to three for each connection'),
)
HELD = ('clients', 'exchanges', 'servers', 'leases', 'chunks', 'slices', 'pipes', 'operations')


class Watch:
    """Samples one process. Not from several threads."""

    def __init__(self, ringside, rings: int):
        self.ringside = ringside
        self.rings = rings
        self.samples: dict[str, list[tuple[float, float]]] = {figure.name: [] for figure in FIGURES}
        self.last: dict[str, float] = {}
        # A line of one kind a second is what the log takes for long.
        self.report_interval = max(2.5, 1.25 * rings)
        self._reported = 0.0

    def descriptors(self) -> tuple[int, int]:
        """Open descriptors, and ends of pipes among them."""
        folder = f'/proc/{self.ringside.pid}/fd'
        count = pipes = 0
        for name in os.listdir(folder):
            try:
                # Standard error is a pipe of the test's own.
                pipes += os.readlink(f'{folder}/{name}').startswith('pipe:') and int(name) > 2
                count += 1
            except FileNotFoundError:
                pass  # closed between the two calls
        return count, pipes

    def process(self) -> dict[str, float]:
        proc = pathlib.Path(f'/proc/{self.ringside.pid}')
        count, pipes = self.descriptors()
        threads = 0
        for task in (proc / 'task').iterdir():
            try:
                # Workers of io_uring are the kernel's own, and come and go.
                threads += not (task / 'comm').read_text().startswith('iou-')
            except (FileNotFoundError, ProcessLookupError):
                pass
        return {'memory KiB': self.ringside.private_bytes() >> 10, 'descriptors': count, 'pipe ends': pipes,
                'threads': threads}

    def held(self) -> dict[str, float]:
        """What all rings hold together (SIGUSR2)."""
        begin = len(self.ringside.lines)

        def lines() -> list[str]:
            return [line for line in self.ringside.lines[begin:] if ' info holdings ' in line]

        self.ringside.signal(signal.SIGUSR2)
        if not wait_until(lambda: len(lines()) >= self.rings, 30):
            raise AssertionError('SIGUSR2: not every ring said what it holds')
        total = dict.fromkeys(HELD, 0.0)
        for line in lines():
            for name, value in re.findall(r'(\w+)=(\d+)', line):
                if name in total:
                    total[name] += int(value)
        return total

    def sample(self) -> dict[str, float]:
        now = time.monotonic()
        found = self.process()
        if now - self._reported >= self.report_interval:
            self._reported = now
            found.update(self.held())
        for name, value in found.items():
            self.samples[name].append((now, value))
        self.last.update(found)
        return self.last

    def trends(self, since: float) -> dict[str, trend.Trend]:
        """Of everything sampled since then (monotonic)."""
        return {figure.name: trend.of([value for at, value in self.samples[figure.name] if at >= since],
                                      figure.floor, figure.nature) for figure in FIGURES}


def table(trends: dict[str, trend.Trend], idle: dict[str, float], done: dict[str, float]) -> str:
    """`idle`: before the load; `done`: after it, when all had settled."""
    lines = [f'{"":12} {"before":>8} | {"start":>8} {"middle":>8} {"end":>8} | {"growth":>8} {"allowed":>8} |'
             f' {"after":>8}']
    for figure in FIGURES:
        t = trends[figure.name]
        lines.append(f'{figure.name:12} {idle[figure.name]:8.0f} | {t.start:8.0f} {t.middle:8.0f} {t.end:8.0f} | '
                     f'{t.growth:+8.0f} {t.allowed:8.0f} | {done.get(figure.name, float("nan")):8.0f}'
                     + ('' if t.flat else '  NOT FLAT') + ('' if t.judged else '  (too few samples to judge)'))
    return '\n'.join(lines)
