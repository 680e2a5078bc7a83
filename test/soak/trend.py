"""Whether a figure that was sampled for a while is flat.

The samples after the warm-up are cut into three equal parts, and the medians of the last and the first part are
compared. The growth that is allowed is

    a floor    what may come late and stay, without being a leak; each figure's own (see `figures.py`)
  + a spread   the distance between the quartiles of the first part: what the figure does anyway, by chance; none
               for a steady figure

A leak that goes on grows by 2/3 of all it leaks between the two parts, and by 1/6 within the quartiles of the
first, so it is found once half of what it leaks in the run is more than the floor, however noisy the figure is;
in a steady figure, once 2/3 are.
Only growth counts: to shrink is no leak.

A figure that jumps about needs enough samples before its medians say something: with 16 in a part, the difference
of two medians stays within the quartiles' distance but for one time in a thousand or so.
"""

from __future__ import annotations

import dataclasses
import statistics


STEADY, NOISY, JUMPY = 'steady', 'noisy', 'jumpy'
JUMPY_SAMPLES_MIN = 3 * 16


@dataclasses.dataclass(frozen=True)
class Trend:
    """`judged`: there were enough samples to say whether it is flat."""

    start: float
    middle: float
    end: float
    spread: float
    floor: float
    judged: bool = True

    @property
    def growth(self) -> float:
        return self.end - self.start

    @property
    def allowed(self) -> float:
        return self.floor + self.spread

    @property
    def flat(self) -> bool:
        return not self.judged or self.growth <= self.allowed


def spread_of(samples: list[float]) -> float:
    if len(samples) < 2:
        return 0.0
    low, _, high = statistics.quantiles(samples, n=4, method='inclusive')
    return high - low


def of(samples: list[float], floor: float, nature: str = NOISY) -> Trend:
    """At least three samples, in the order of time, the warm-up left out."""
    if len(samples) < 3:
        raise ValueError(f'{len(samples)} samples; a trend needs three at least')
    third = len(samples) // 3
    first, middle, last = samples[:third], samples[third:-third], samples[-third:]
    return Trend(statistics.median(first), statistics.median(middle), statistics.median(last),
                 0.0 if nature == STEADY else spread_of(first), floor,
                 nature != JUMPY or len(samples) >= JUMPY_SAMPLES_MIN)
