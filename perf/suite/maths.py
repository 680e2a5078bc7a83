"""Medians, ratios and their spread."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

Value = float | None  # None is a round that does not count.


@dataclasses.dataclass(frozen=True)
class Ratio:
    """The ratio of two medians, and the lowest and highest ratio of a pair of rounds."""

    value: float
    low: float
    high: float


def valid(values: Sequence[Value]) -> list[float]:
    return [value for value in values if value is not None]


def median(values: Sequence[Value]) -> Value:
    """The median of the rounds that count, None if there is none."""
    counted = valid(values)
    return statistics.median(counted) if counted else None


def enough(values: Sequence[Value]) -> bool:
    """Whether more rounds count than do not."""
    return len(valid(values)) * 2 > len(values)


def pairs(ours: Sequence[Value], theirs: Sequence[Value]) -> list[tuple[float, float]]:
    """The rounds that count on both sides; round n belongs to round n, which ran beside it."""
    return [(a, b) for a, b in zip(ours, theirs) if a is not None and b is not None]


def ratio(ours: Sequence[Value], theirs: Sequence[Value]) -> Ratio | None:
    """How many times the cost of `theirs` is `ours`; over rounds that count on both sides."""
    both = [(a, b) for a, b in pairs(ours, theirs) if b > 0]
    if not both:
        return None
    middle = statistics.median(b for _, b in both)
    singles = [a / b for a, b in both]
    return Ratio(statistics.median(a for a, _ in both) / middle, min(singles), max(singles))


def per_million(warm_up: int, opened: int, requests: int) -> float:
    """Connections opened in the first million requests: those of the start, and the rate after it."""
    return warm_up + (opened * 1e6 / requests if requests else 0.0)
