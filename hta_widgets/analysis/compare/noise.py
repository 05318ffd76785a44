"""The uncertainty of a difference between two samples of steps: bootstrap, widened for small samples.

The steps of each run are resampled with replacement a thousand times (Efron 1979); the interval holds the
middle 95 % of the resulting differences of means. With few steps such an interval is too narrow: the spread
of a sample is smaller than that of its population, and is itself uncertain. Both are corrected as Hesterberg
proposes ("What Teachers Should Know About the Bootstrap", The American Statistician 69, 2015): deviations
grow by sqrt(n / (n - 1)) of their run, and by the ratio of Student's t to the normal quantile, with the
degrees of freedom of Welch (1947). The draws have a fixed seed: equal samples have equal intervals.

Consecutive steps may be correlated, as clocks and caches drift: they then hold less information than as many
independent steps. A mean of values whose neighbours correlate by r varies by sqrt((1 + r) / (1 - r)) more
(Bayley and Hammersley, "The 'Effective' Number of Independent Observations in an Autocorrelated Time Series",
1946), and intervals are that much wider if r is positive. It is estimated over both runs and corrected for
the bias of a short series (Kendall 1954); with fewer than eight steps it is taken to be zero.

A comparison of a hundred lines finds five beyond a 95 % interval by chance. So a difference is called
significant only if zero lies outside the interval after widening it once more, to 99 % for all lines together
(Bonferroni): of a hundred comparisons of equal runs, one names a line. And it must be at least one percent:
the steps of one run do not show how two runs of the same program differ (temperature, clocks, neighbours),
which is rarely less.

Events of older recordings last whole microseconds. Steps in which such a line always takes 4 µs, and always
5 µs in the other run, may differ by next to nothing: rounding is no noise that steps show, so its own
deviation is added (in squares, as independent errors add up).

What is not significant is not all noise. A change is called noise only if its own 95 % interval contains
zero; "inconclusive" if it does not, but of so many comparisons one would look like this by chance;
"negligible" if it is certain, but smaller than one percent. `agreement` says when a line and a part of the
step confirm each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Bool

Float = npt.NDArray[np.float64]

LEVEL: Final = 0.95
LEVEL_OF_ALL: Final = 0.99
LEAST_CHANGE: Final = 0.01
DRAWS: Final = 1000

SIGNIFICANT: Final = "significant"
INCONCLUSIVE: Final = "inconclusive"
NEGLIGIBLE: Final = "negligible"
NOISE: Final = "within noise"
UNKNOWN: Final = "noise unknown"

_SEED = 20_260_101
_MANY = 200  # degrees of freedom from which on Student's t is taken for the normal distribution's own
_PRECISION = 1e-12  # of an angle
_LINES_AT_ONCE = 2048
_LEAST_SERIES = 8
_MOST_ALIKE = 0.9


@dataclass(frozen=True, eq=False)
class Difference:
    """What changed from one sample to another, per line."""

    change: Float  # difference of the means
    # its 95 % interval, NaN where a sample has fewer than two steps
    low: Float
    high: Float
    enough: Bool  # the change is at least one percent
    alone: Bool  # so it is, and zero lies outside the line's own 99 % interval
    significant: Bool  # so it is, and zero lies outside the 99 % interval of all lines together

    @property
    def verdict(self) -> npt.NDArray[np.object_]:
        """Of each line, one of the constants above; of those that hold, the first."""
        verdicts = {
            UNKNOWN: np.isnan(self.low),
            SIGNIFICANT: self.significant,
            NOISE: (self.low <= 0) & (self.high >= 0),
            NEGLIGIBLE: ~self.enough,
        }
        return np.select(list(verdicts.values()), list(verdicts), INCONCLUSIVE).astype(object)


def difference(
    before: npt.NDArray[np.generic], after: npt.NDArray[np.generic], rounding: Float | float = 0.0
) -> Difference:
    """Compare the means of two samples.

    Args:
        before, after: [steps, lines] values; the runs may have different numbers of steps.
        rounding: standard deviation, for each line or all, of what rounding may add to the difference.
    """
    old, new = np.asarray(before, np.float64), np.asarray(after, np.float64)
    change = _means(new) - _means(old)
    lines = len(change)
    if min(len(old), len(new)) < 2:
        unknown, none = np.full(lines, np.nan), np.zeros(lines, np.bool_)
        return Difference(change, unknown, unknown, none, none, none)
    low, high = _spread(old, new)
    freedom = _freedom(old, new)
    # A line that neither run has is not a comparison, and does not count in the correction of the others.
    compared = max(int(((old != 0).any(axis=0) | (new != 0).any(axis=0)).sum()), 1)

    def edges(alpha: float) -> tuple[Float, Float]:
        wider, rounded = _widening(freedom, alpha), NormalDist().inv_cdf(1 - alpha / 2) * rounding
        return change - np.hypot(low * wider, rounded), change + np.hypot(high * wider, rounded)

    enough = np.abs(change) >= LEAST_CHANGE * np.maximum(np.abs(_means(old)), np.abs(_means(new)))
    enough &= change != 0

    def beyond(alpha: float) -> Bool:
        least, most = edges(alpha)
        outside: Bool = (least > 0) | (most < 0)
        return outside & enough

    return Difference(
        change,
        *edges(1 - LEVEL),
        enough,
        beyond(1 - LEVEL_OF_ALL),
        beyond((1 - LEVEL_OF_ALL) / compared),
    )


def beyond_alone(before: float, after: float, low: float, high: float, steps: int) -> bool:
    """Whether a difference is significant as the only comparison.

    Args:
        low, high: the 95 % interval of their difference.
        steps: of the shorter sample. Its degrees of freedom are the least that the difference may have: with
            them 99 % are, if anything, too wide.
    """
    if steps < 2:
        return False
    change = after - before
    wider = t_quantile(1 - LEVEL_OF_ALL, steps - 1) / t_quantile(1 - LEVEL, steps - 1)
    beyond = change + (low - change) * wider > 0 or change + (high - change) * wider < 0
    return beyond and change != 0 and abs(change) >= LEAST_CHANGE * max(abs(before), abs(after))


def interval(sample: npt.NDArray[np.generic]) -> tuple[float, float]:
    """The 95 % interval of the mean of one sample; NaN with fewer than two values."""
    values = np.asarray(sample, np.float64).reshape(-1, 1)
    if len(values) < 2:
        return math.nan, math.nan
    low, high = _spread(np.zeros((2, 1)), values)
    widening = _widening(np.array([len(values) - 1]), 1 - LEVEL)[0]
    mean = float(values.mean())
    return mean + float(low[0]) * widening, mean + float(high[0]) * widening


@lru_cache(maxsize=4096)
def t_quantile(alpha: float, freedom: int) -> float:
    """The t that a Student variable exceeds in absolute value with probability `alpha`.

    Newton's method on the finite sums for whole degrees of freedom (Abramowitz and Stegun 26.7.3, 26.7.4), as
    functions of the angle whose tangent is t / sqrt(freedom). They are concave: from 0 it never overshoots.
    """
    if freedom > _MANY:
        return NormalDist().inv_cdf(1 - alpha / 2)
    slope = 2 / math.sqrt(math.pi) * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    angle, step = 0.0, math.inf
    while step > _PRECISION:
        step = (1 - alpha - _within(angle, freedom)) / (slope * math.cos(angle) ** (freedom - 1))
        angle += step
    return math.sqrt(freedom) * math.tan(angle)


def _within(angle: float, freedom: int) -> float:
    """P(|T| < sqrt(freedom) tan(angle))."""
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for k in range(freedom // 2):
        total += term
        term *= square * ((2 * k + 2) / (2 * k + 3) if odd else (2 * k + 1) / (2 * k + 2))
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def _means(values: Float) -> Float:
    """Of each column. Whole numbers are summed exactly, so that equal samples have equal means."""
    return values.sum(axis=0) / len(values) if len(values) else np.full(values.shape[1], np.nan)


def _spread(old: Float, new: Float) -> tuple[Float, Float]:
    """Lower and upper deviation of the drawn differences from the difference, per line."""
    drawn_old, drawn_new = _draws(len(old), 0), _draws(len(new), 1)
    tail = (1 - LEVEL) / 2
    parts = []
    for first in range(0, max(old.shape[1], 1), _LINES_AT_ONCE):
        these = slice(first, first + _LINES_AT_ONCE)
        deviation = drawn_new @ _centred(new[:, these]) - drawn_old @ _centred(old[:, these])
        parts.append(np.quantile(deviation, [tail, 1 - tail], axis=0))
    low, high = np.concatenate(parts, axis=1) * _persistence([old, new])
    return low, high


def _persistence(runs: Sequence[Float]) -> Float:
    """By how much the means vary more, per line, than if steps were independent of each other."""
    lines = runs[0].shape[1]
    series = [values - _means(values) for values in runs if len(values) >= _LEAST_SERIES]
    if not series:
        return np.ones(lines)
    shared = sum(((values[1:] * values[:-1]).sum(axis=0) for values in series), np.zeros(lines))
    spread = sum(((values**2).sum(axis=0) for values in series), np.zeros(lines))
    alike = np.divide(shared, spread, out=np.full(lines, -1.0), where=spread > 0)
    length = sum(map(len, series)) / len(series)
    alike = np.clip(alike + (1 + 3 * alike) / length, 0, _MOST_ALIKE)
    return np.sqrt((1 + alike) / (1 - alike))


def _centred(values: Float) -> Float:
    return (values - _means(values)) * math.sqrt(len(values) / (len(values) - 1))


@lru_cache(maxsize=16)
def _draws(steps: int, side: int) -> Float:
    """[DRAWS, steps] share of each step in each draw."""
    random = np.random.default_rng([_SEED, side, steps])
    share = np.empty((DRAWS, steps))
    for draw in share:  # one by one: a thousand long draws at once would not fit the processor's cache
        draw[:] = np.bincount(random.integers(steps, size=steps), minlength=steps)
    share /= steps
    return share


def _freedom(old: Float, new: Float) -> npt.NDArray[np.int64]:
    """Welch's degrees of freedom per line, rounded down."""
    least, most = min(len(old), len(new)) - 1, len(old) + len(new) - 2
    first, second = old.var(axis=0, ddof=1) / len(old), new.var(axis=0, ddof=1) / len(new)
    below = first**2 / (len(old) - 1) + second**2 / (len(new) - 1)
    found = np.full(len(below), float(least))
    np.divide((first + second) ** 2, below, out=found, where=below > 0)
    return np.clip(found + 1e-9, least, most).astype(np.int64)


def _widening(freedom: npt.NDArray[np.int64], alpha: float) -> Float:
    """How far to widen the drawn deviations of `LEVEL`: t at `alpha`, over the normal quantile of theirs."""
    normal = NormalDist().inv_cdf((1 + LEVEL) / 2)
    distinct, place = np.unique(freedom, return_inverse=True)
    factors = [t_quantile(alpha, int(number)) / normal for number in distinct]
    return np.array(factors, np.float64)[place]
