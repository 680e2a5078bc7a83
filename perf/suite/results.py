"""What was measured on a row, and whether it is good enough."""

from __future__ import annotations

import dataclasses

from . import maths
from .rows import ABSOLUTE, EXCESS, RATIO, Row

YARDSTICK = 'nginx'
Details = dict[str, list[float]]


@dataclasses.dataclass
class Result:
    """Rounds by proxy, in the order they ran; a round that does not count is None."""

    row: Row
    how: str = ''  # the load generator and its job, in words
    rounds: dict[str, list[maths.Value]] = dataclasses.field(default_factory=dict)
    details: dict[str, Details] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    skipped: str = ''  # why there is nothing

    def add(self, proxy: str, value: maths.Value, **details: float) -> None:
        self.rounds.setdefault(proxy, []).append(value)
        for name, number in details.items():
            self.details.setdefault(proxy, {}).setdefault(name, []).append(number)

    def median(self, proxy: str) -> maths.Value:
        rounds = self.rounds.get(proxy, [])
        return maths.median(rounds) if maths.enough(rounds) else None

    def detail(self, proxy: str, name: str) -> maths.Value:
        return maths.median(self.details.get(proxy, {}).get(name, []))

    def ratio(self, proxy: str) -> maths.Ratio | None:
        if self.median(proxy) is None or self.median(YARDSTICK) is None:
            return None
        return maths.ratio(self.rounds[proxy], self.rounds[YARDSTICK])

    def void(self, proxy: str) -> int:
        return sum(value is None for value in self.rounds.get(proxy, []))

    def reached(self, proxy: str) -> float | None:
        """The figure that the target is about."""
        value, yard, target = self.median(proxy), self.median(YARDSTICK), self.row.target
        if target is None or value is None:
            return None
        if target.of == ABSOLUTE:
            return value
        if target.of == EXCESS:
            return None if yard is None else value - yard
        ratio = self.ratio(proxy)
        return ratio.value if ratio else None

    def verdict(self, proxy: str) -> str:
        """'aim', 'first', 'missed', or '' where there is no target or no figure."""
        figure, target = self.reached(proxy), self.row.target
        if figure is None or target is None:
            return ''
        if figure <= target.aim:
            return 'aim'
        return 'first' if figure <= target.first else 'missed'


def as_json(result: Result) -> dict:
    proxies = {}
    for name, rounds in result.rounds.items():
        ratio = result.ratio(name)
        proxies[name] = {
            'median': result.median(name), 'rounds': rounds, 'void': result.void(name),
            'ratio': dataclasses.asdict(ratio) if ratio else None,
            'details': {key: maths.median(values) for key, values in result.details.get(name, {}).items()}}
    target = result.row.target
    return {'row': result.row.name, 'title': result.row.title, 'unit': result.row.unit, 'how': result.how,
            'target': dataclasses.asdict(target) if target else None, 'proxies': proxies,
            'verdict': {name: result.verdict(name) for name in proxies if name.startswith('ringside')},
            'notes': result.notes, 'skipped': result.skipped}


__all__ = ['ABSOLUTE', 'EXCESS', 'RATIO', 'Result', 'YARDSTICK', 'as_json']
