"""How far is each operator from what its device could do, and how much time lies in between?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.analysis.kernels.peaks import peaks_of_rank
from hta_widgets.analysis.operators.table import OUTSIDE, operators
from hta_widgets.charts.spec import Bars, Roofline
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, duration, percent
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["ANALYSIS", "roofline", "sentence"]

_KEPT = ["rank", "name", "category", "calls", "device_self_ns", "longest_kernel"]
_SHAPES = ["input_shapes", "input_types"]
_COLUMNS: dict[str, Any] = {
    "unit": "str",
    "flops_per_byte": np.float64,
    "tflops_s": np.float64,
    "gb_s": np.float64,
    "bound": "str",
    "efficiency_pct": np.float64,
    "headroom_ns": "Int64",
    "peak_tflops_s": np.float64,
    "peak_gb_s": np.float64,
    "device": "str",
    "source": "str",
}


def roofline(
    trace: Trace, scope: Scope | None = None, by: Literal["name", "shapes"] = "name"
) -> pd.DataFrame:
    """How far is each operator from what its device could do, and how much time lies in between?

    The roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009): work can be no faster than the
    peak of the unit that computes it, and than the bandwidth of memory allows for the bytes that it must
    move. The unit is that of the kernel with most of an operator's time, by its name; operations, bytes,
    bound and efficiency are those of `operators`. Peaks are those of the device's datasheet, or your own
    (`register_peaks`). Headroom is the time above the roof: what would be saved
    if the operator reached it, which few do.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        by: a row for each "name" of an operator, or for each name with its input "shapes" and types.

    Returns:
        One row per rank and operator that launches device work and has a formula, most headroom first, those
        without a known one last. Columns: rank (int64), name (str), [input_shapes, input_types (str)],
        category (str), calls, device_self_ns (int64, ns), longest_kernel (str), unit (str, what multiplies;
        null where the kernel's name does not say it), flops_per_byte (float64), tflops_s (float64, 1e12
        operations per second), gb_s (float64, 1e9 bytes per second), bound (str: ``"compute"``,
        ``"memory"``, or null), efficiency_pct (float64, % of the time that it would take at the lower
        ceiling; above 100 where caches deliver), headroom_ns (Int64, ns of device_self_ns), peak_tflops_s,
        peak_gb_s (float64, the two ceilings), device, source (str, whose peaks, and who states them). What is
        unknown is null or NaN.

    Raises:
        MissingDataError: no selected rank has operators, or their shapes.
        ValueError: `by` is none of the above.
    """
    if by not in ("name", "shapes"):
        raise ValueError(f'by must be "name" or "shapes", not {by!r}')
    frame = operators(trace, scope, by)
    chosen = (frame["device_self_ns"] > 0) & ~frame["name"].isin([*OUTSIDE.values()])
    chosen &= frame["tflops_s"].notna() | frame["gb_s"].notna()
    frame = frame[chosen]
    ranks = sorted(set(frame["rank"].tolist()))
    if not ranks and not any(_has_shapes(trace.rank(rank)) for rank in trace.ranks_of(scope or Scope())):
        raise MissingDataError(
            "shapes of operators", "Record with torch.profiler.profile(record_shapes=True)."
        )
    frames = [_of_rank(trace, rank, frame[frame["rank"] == rank]) for rank in ranks]
    kept = [*_KEPT[:2], *(_SHAPES if by == "shapes" else []), *_KEPT[2:]]
    if not frames:
        frames = [frame.assign(**{name: [] for name in _COLUMNS if name not in frame}).astype(_COLUMNS)]
    found = pd.concat(frames, ignore_index=True)[[*kept, *_COLUMNS]]
    order = ["headroom_ns", "device_self_ns", "name", "rank"]
    return found.sort_values(order, ascending=[False, False, True, True], ignore_index=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a `roofline` frame in one sentence."""
    if frame.empty:
        return "No operator with device work has a formula for what it costs."
    known = frame[frame["headroom_ns"].notna()]
    if known.empty:
        return "How far operators are from what the device can do is unknown: its peaks are not known."
    above, spent = int(known["headroom_ns"].sum()), int(known["device_self_ns"].sum())
    name = str(
        known.groupby("name")["headroom_ns"].sum().sort_values(ascending=False, kind="stable").index[0]
    )
    rows = known[known["name"] == name]  # of all ranks, most headroom first
    first, most = rows.iloc[0], int(rows["headroom_ns"].sum())
    return (
        f"Of {duration(spent)} of operators with a formula {percent(100.0 * above / spent)} lies above the "
        f"roofs of the device ({first['device']}), most in {brief(name)}: {duration(most)}, at "
        f"{percent(first['efficiency_pct'])} of what "
        f"{'its unit computes' if first['bound'] == 'compute' else 'memory delivers'}."
    )


def _of_rank(trace: Trace, rank: int, rows: pd.DataFrame) -> pd.DataFrame:
    peaks = peaks_of_rank(trace.rank(rank))
    units = [kernel_class(name).unit or "" for name in rows["longest_kernel"]]
    tflops: dict[Any, float] = dict(peaks.tflops) if peaks else {}
    efficiency = rows["efficiency_pct"].to_numpy(np.float64) / 100.0
    covered = rows["formula_pct"].to_numpy(np.float64).clip(0.0, 100.0) / 100.0
    above = np.clip(1.0 - efficiency, 0.0, 1.0) * covered * rows["device_self_ns"].to_numpy(np.int64)
    return rows.reset_index(drop=True).assign(
        unit=pd.Series(units, dtype="str").where(lambda unit: unit != ""),
        headroom_ns=pd.array(np.rint(above), "Float64").astype("Int64"),
        peak_tflops_s=np.array([tflops.get(unit, np.nan) for unit in units], np.float64),
        peak_gb_s=peaks.memory_gb_s if peaks else np.nan,
        device=pd.Series([peaks.device if peaks else None] * len(rows), dtype="str"),
        source=pd.Series([peaks.source if peaks else None] * len(rows), dtype="str"),
    )


def _has_shapes(rank_trace: RankTrace) -> bool:
    return bool((rank_trace.argument_codes("input_dims") >= 0).any())


ANALYSIS = Analysis(
    kind="roofline",
    label="Roofline",
    group="Kernels",
    title="How far operators are from what the device can do",
    function=roofline,
    sentence=sentence,
    chart=Bars(
        "headroom_ns", ("name",), "compute", names="name", note="bound", measure="Time above the roof"
    ),
    requires=("operators", "shapes of operators"),
    options=(Option("by", "Rows", ("name", "shapes"), "name"),),
    pictured=Roofline(
        "flops_per_byte", "tflops_s", "device_self_ns", "name", "unit", "peak_tflops_s", "peak_gb_s"
    ),
)
