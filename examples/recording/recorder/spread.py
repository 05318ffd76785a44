"""A sample of times in a few exact numbers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def spread(samples_ns: Sequence[int]) -> dict[str, int]:
    """Median and quartiles, rounded to whole ns: keys median_ns, q1_ns, q3_ns, samples.

    Quartiles interpolate linearly between the samples, as numpy's and pandas' do.

    Raises:
        ValueError: there is no sample.
    """
    if not samples_ns:
        raise ValueError("no sample to take a median of")
    if len(samples_ns) == 1:
        first = middle = last = float(samples_ns[0])
    else:
        first, middle, last = statistics.quantiles(samples_ns, n=4, method="inclusive")
    return {
        "median_ns": round(middle),
        "q1_ns": round(first),
        "q3_ns": round(last),
        "samples": len(samples_ns),
    }
