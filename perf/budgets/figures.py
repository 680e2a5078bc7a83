"""The figures of a scenario, the file that keeps them, and how they are compared."""

from __future__ import annotations

import dataclasses
import tomllib

# A change of this part of the instructions fails.
TOLERANCE = 0.02
EXACT = ('allocations', 'enters', 'submissions', 'completions')
NAMES = ('instructions', *EXACT)

HEADER = """\
# What one request costs the proxy: instructions of its own code, allocations, entries into the kernel,
# operations submitted and completions. Counted on the simulated kernel with fixed traffic, after a
# warm-up, by build/perf/counts/ringside-budget under callgrind; no clock is involved.
# perf/budget --check compares (instructions within 2%, the others exactly), perf/budget --renew writes
# this file. A renewal belongs to the change that caused it, whose commit says why.
"""


@dataclasses.dataclass(frozen=True)
class Difference:
    """One figure beside its budget; `good` is the verdict."""

    scenario: str
    name: str
    measured: float | None
    budget: float | None
    good: bool

    @property
    def percent(self) -> float | None:
        if self.measured is None or not self.budget:
            return None
        return 100 * (self.measured / self.budget - 1)


Figures = dict[str, float]


@dataclasses.dataclass(frozen=True)
class Budgets:
    toolchain: str
    scenarios: dict[str, Figures]


def per_request(instructions: int, totals: dict[str, int]) -> Figures:
    """Rounded so that the file is readable and a comparison of the exact ones is exact."""
    requests = totals['requests']
    if requests <= 0:
        raise ValueError('no request was measured')
    figures: Figures = {'instructions': round(instructions / requests)}
    for name in EXACT:
        value = round(totals[name] / requests, 4)
        figures[name] = int(value) if value == int(value) else value
    return figures


def read(text: str) -> Budgets:
    data = tomllib.loads(text)
    return Budgets(data['toolchain'], data.get('scenarios', {}))


def write(budgets: Budgets) -> str:
    lines = [HEADER, f'toolchain = "{budgets.toolchain}"']
    for scenario, figures in budgets.scenarios.items():
        lines += ['', f'[scenarios.{scenario}]', *(f'{name} = {figures[name]}' for name in NAMES)]
    return '\n'.join(lines) + '\n'


def compare(measured: dict[str, Figures], budgets: dict[str, Figures]) -> list[Difference]:
    """Every figure of every scenario that either side knows."""
    out = []
    for scenario in list(dict.fromkeys([*measured, *budgets])):
        for name in NAMES:
            have = measured.get(scenario, {}).get(name)
            want = budgets.get(scenario, {}).get(name)
            if have is None or want is None:
                good = False
            elif name == 'instructions':
                good = abs(have - want) <= TOLERANCE * want
            else:
                good = have == want
            out.append(Difference(scenario, name, have, want, good))
    return out


def table(differences: list[Difference]) -> str:
    lines = [f'{"scenario":16} {"figure":13} {"measured":>10} {"budget":>10} {"":>9}']
    for d in differences:
        percent = '' if d.percent is None else f'{d.percent:+.2f}%'
        measured, budget = ('none' if v is None else f'{v:g}' if v < 1000 else f'{v:.0f}'
                            for v in (d.measured, d.budget))
        mark = '' if d.good else '  <- not within its budget'
        lines.append(f'{d.scenario:16} {d.name:13} {measured:>10} {budget:>10} {percent:>9}{mark}')
    return '\n'.join(lines)
