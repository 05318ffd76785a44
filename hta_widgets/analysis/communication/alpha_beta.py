"""What collectives of a group cost by their size: the latency and bandwidth that fit their transfers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.arrays import Float64
from hta_widgets.charts.spec import Bars
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import bandwidth, byte_size, counted, duration, percent
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

LEAST_SIZES = 4
"""Two numbers are fitted, and one of the sizes may be odd."""
_MOST_SIZES = 64
"""Of more sizes, so many are fitted, evenly chosen: all pairs of them are tried."""
_KEYS = ["process_group", "group_size", "collective"]
_COLUMNS = {
    "process_group": "str",
    "group_size": "Int64",
    "collective": "str",
    "messages": "int64",
    "sizes": "int64",
    "bandwidth_is": "str",
    "transfer_ns": "int64",
    "alpha_ns": "Int64",
    "alpha_low_ns": "Int64",
    "alpha_high_ns": "Int64",
    "beta_gbps": "float64",
    "beta_low_gbps": "float64",
    "beta_high_gbps": "float64",
    "half_bytes": "Int64",
    "error_pct": "float64",
    "why": "str",
}


def alpha_beta(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How long does a collective of a size take: which part is latency, and what is the bandwidth?

    A transfer is taken to last alpha + b * bytes. Of each operation of a process group the alpha and b
    (neither less than 0) are found with the least mean relative distance to the transfers, of each size their
    median. The fit is robust: some odd sizes do not move it. Where a transfer may hold waiting for a rank
    that was not recorded (`bandwidth_is` of `collectives`), the shortest of each size is taken instead.

    Source: Hockney's model, as used for collectives by Thakur, Rabenseifner and Gropp, "Optimization of
    Collective Communication Operations in MPICH" (2005). Bus bandwidth as in nccl-tests, doc/PERFORMANCE.md.

    Args:
        trace: the job.
        scope: collectives that belong to it, as in `collectives`; default all.

    Returns:
        One row per process group and operation with known sizes, the longest transfers first. Columns:
        process_group (str or NA), group_size (Int64), collective (str), messages, sizes (int64, different
        ones), bandwidth_is (str: "exact" or "at least", of the transfers that were fitted), transfer_ns
        (int64 ns, of all messages together), alpha_ns (Int64 ns), beta_gbps (float64, the bus bandwidth that
        messages without latency would have, 1e9 bytes per s), alpha_low_ns, alpha_high_ns, beta_low_gbps,
        beta_high_gbps (the least and the greatest if any one of the sizes is left out), half_bytes (Int64
        bytes, the size that reaches half of that bandwidth), error_pct (float64, the mean distance of the
        sizes, in % of their time), why (str: why there is no fit, which then is NA; else empty).

    Raises:
        MissingDataError: no collective with a known size between ranks was recorded.
    """
    found = collectives(trace, scope)
    found = found[found["algbw_gbps"].notna() & (found["bytes"] > 0).fillna(False)]
    if found.empty and collectives(trace)["algbw_gbps"].isna().all():
        raise MissingDataError(
            "collective with a known size",
            "Record a job of several ranks with PyTorch 2.4 or later: its profiler writes sizes of messages.",
        )
    once = found[~found.duplicated("match") | found["match"].isna()]
    rows = []
    for keys, messages in once.groupby(_KEYS, dropna=False, sort=True):
        checkpoint()
        rows.append(dict(zip(_KEYS, keys, strict=True)) | _row(messages))
    frame = typed_frame(rows, _COLUMNS)
    return frame.sort_values("transfer_ns", ascending=False, kind="stable", ignore_index=True)


class Fit(NamedTuple):
    """Transfers take alpha + slope * size; ns, and ns per byte."""

    alpha: float
    slope: float
    error: float


def _row(messages: pd.DataFrame) -> dict[str, object]:
    """The fit of the messages of one operation in one group."""
    exact = messages[messages["bandwidth_is"] == "exact"]
    use = exact if exact["bytes"].nunique() >= LEAST_SIZES else messages
    all_exact = len(exact) == len(messages) or use is exact
    by_size = use["transfer_ns"].groupby(use["bytes"].astype(np.int64), sort=True)
    times = by_size.median() if all_exact else by_size.min()
    row: dict[str, object] = {
        "messages": len(messages),
        "sizes": len(times),
        "bandwidth_is": "exact" if all_exact else "at least",
        "transfer_ns": int(messages["transfer_ns"].sum()),
        "beta_gbps": np.nan,
        "beta_low_gbps": np.nan,
        "beta_high_gbps": np.nan,
        "error_pct": np.nan,
        "why": "",
    }
    if len(times) < LEAST_SIZES:
        return row | {"why": f"{counted(len(times), 'size')}, and a fit takes {LEAST_SIZES}"}
    chosen = np.unique(np.linspace(0, len(times) - 1, min(len(times), _MOST_SIZES)).round().astype(np.int64))
    size, time = (values[chosen].astype(np.float64) for values in (times.index.to_numpy(), times.to_numpy()))
    best = fit(size, time)
    others = [fit(np.delete(size, place), np.delete(time, place)) for place in range(len(size))]
    slopes, alphas = [each.slope for each in others], [each.alpha for each in others]
    if min(slopes) == 0:
        return row | {"why": "the time does not grow with the size"}
    crossings = float((messages["busbw_gbps"] / messages["algbw_gbps"]).iloc[0])
    return row | {
        "alpha_ns": round(best.alpha),
        "alpha_low_ns": round(min(best.alpha, *alphas)),
        "alpha_high_ns": round(max(best.alpha, *alphas)),
        "beta_gbps": crossings / best.slope,
        "beta_low_gbps": crossings / max(best.slope, *slopes),
        "beta_high_gbps": crossings / min(best.slope, *slopes),
        "half_bytes": round(best.alpha / best.slope),
        "error_pct": 100.0 * best.error,
    }


def fit(size: Float64, time: Float64) -> Fit:
    """The line of least mean relative distance, with alpha and slope of at least 0.

    A best one goes through two of the points, or through one with an alpha or a slope of 0: all are tried.
    """
    one, two = np.triu_indices(len(size), 1)
    slope = np.concatenate([(time[two] - time[one]) / (size[two] - size[one]), time / size, 0 * time])
    alpha = np.concatenate([time[one] - slope[: len(one)] * size[one], 0 * time, time])
    possible = (slope >= 0) & (alpha >= 0)
    slope, alpha = slope[possible], alpha[possible]
    error = np.abs((alpha[:, None] + slope[:, None] * size) / time - 1).mean(axis=1)
    best = int(error.argmin())
    return Fit(float(alpha[best]), float(slope[best]), float(error[best]))


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `alpha_beta` in words."""
    if frame.empty:
        return "No collective of a known size lies in the selection."
    fits = frame[frame["why"] == ""]
    if fits.empty:
        first = frame.iloc[0]
        return f"No latency follows from the sizes of any group; {first['collective']}: {first['why']}."
    most = fits.iloc[0]
    waiting = "" if most["bandwidth_is"] == "exact" else ", with waiting for ranks that were not recorded"
    return (
        f"The latency of {most['collective']} among {most['group_size']} ranks is "
        f"{duration(most['alpha_ns'])}{waiting}. Large messages reach {bandwidth(most['beta_gbps'])} (bus), "
        f"those of {byte_size(most['half_bytes'])} half of that. The fit is off by "
        f"{percent(most['error_pct'])}."
    )


ANALYSIS = Analysis(
    label="Latency and bandwidth",
    group="Communication",
    title="Latency and bandwidth of collectives",
    function=alpha_beta,
    sentence=sentence,
    chart=Bars(
        "alpha_ns", ("collective", "process_group"), "communication", combine="max", measure="Latency (alpha)"
    ),
    requires=("communication kernels", "collective with a known size"),
    asks_little=True,
)
