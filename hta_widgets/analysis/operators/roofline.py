"""How far is each operator from what its device could do, and how much time lies in between?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.analysis.kernels.stated_peaks import StatedPeaks, checked_peaks, device_name, stated_peaks
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.categories import category_of
from hta_widgets.analysis.operators.costs import costs_under
from hta_widgets.analysis.operators.groups import groups_of
from hta_widgets.analysis.operators.leading_kernels import leading_kernels
from hta_widgets.analysis.operators.table import figures
from hta_widgets.analysis.operators.totals import Totals
from hta_widgets.charts.spec import Roofline
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, duration, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

By = Literal["name", "shapes", "kernel"]
_COLUMNS: Final[dict[str, Any]] = {
    "category": "str", "calls": "int64", "device_self_ns": "int64", "device_self_pct": "float64",
    "longest_kernel": "str", "unit": "str", "flops_per_byte": "float64", "tflops_s": "float64",
    "gb_s": "float64", "bound": "str", "efficiency_pct": "float64", "headroom_ns": "Int64",
    "peak_tflops_s": "float64", "peak_gb_s": "float64", "achievable_tflops_s": "float64", "device": "str",
    "source": "str",
}  # fmt: skip
_SHAPES: Final = ("input_shapes", "input_types")
_NULLABLE: Final = ("unit", "bound", "device", "source")


def roofline(
    trace: Trace, scope: Scope | None = None, by: By = "name", peaks: StatedPeaks | None = None
) -> pd.DataFrame:
    """How far is each operator from what its device could do, and how much time lies in between?

    The roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009): work can be no faster than the
    peak of the unit that computes it, and than the bandwidth of memory allows for the bytes that it must
    move. The unit is that of the kernel with most of an operator's time, by its name; operations, bytes,
    bound and efficiency are those of `operators`. Peaks are those of the device's datasheet, or your own
    (`peaks`, or `register_peaks` for all analyses). Headroom is the time above the roof: what would be saved
    if the operator reached it, which few do.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        by: a row for each "name" of an operator, for each name with its input "shapes" and types, or for each
            "kernel". A formula describes a call of an operator, whatever kernels it launches: the calls of a
            kernel are those in which it takes most time, and their time is that of all their device work.
        peaks: of a device, by its name in the column `device`, in place of its datasheet's: ``{"A100 40GB":
            {"memory_gb_s": 1400, "tflops": {"tensor_16bit": 280}, "achievable": {"tensor_16bit": 250}}}``;
            what is left out stays. Units are those of `Peaks`.

    Returns:
        One row per rank and operator that launches device work and has a formula, most headroom first, those
        without a known one last. Columns: rank (int64), name (str), [input_shapes, input_types (str)],
        category (str; "" by kernel), calls, device_self_ns (int64, ns; by kernel the device work of the
        calls), device_self_pct (float64, % of the rank's device work in the scope), longest_kernel (str),
        unit (str, what multiplies; null where the kernel's name does not say it), flops_per_byte (float64),
        tflops_s (float64, 1e12 operations per second), gb_s (float64, 1e9 bytes per second), bound (str:
        ``"compute"``, ``"memory"``, or null), efficiency_pct (float64, % of the time that it would take at
        the lower ceiling; above 100 where caches deliver), headroom_ns (Int64, ns of device_self_ns),
        peak_tflops_s, peak_gb_s (float64, the two ceilings), achievable_tflops_s (float64, what the best
        products reach of the first), device (str, its model or else its recorded name), source (str, who
        states the peaks). What is unknown is null or NaN.

    Raises:
        MissingDataError: no selected rank has operators, or their shapes.
        ValueError: `by` is none of the above, or `peaks` are none that a device can have.
    """
    if by not in get_args(By):
        raise ValueError(f"by must be one of {', '.join(get_args(By))}, not {by!r}")
    stated = checked_peaks(peaks or {})
    scope = scope or Scope()
    ranks = [trace.rank(rank) for rank in trace.ranks_of(scope)]
    having = [rank_trace for rank_trace in ranks if (rank_trace.event_class == EventClass.HOST_OP).any()]
    if ranks and not having:
        remedy = "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ...])."
        raise MissingDataError("operators", remedy)
    frames = []
    for rank_trace in having:
        checkpoint()
        frames.append(_of_rank(rank_trace, scope, by, stated))
    found = [frame for frame in frames if len(frame)]
    if having and not found and not any(rank_trace.has_argument("input_dims") for rank_trace in having):
        raise MissingDataError(
            "shapes of operators", "Record with torch.profiler.profile(record_shapes=True)."
        )
    # typed once for all ranks: casting takes longer than making the rows
    frame = _typed(pd.concat(found, ignore_index=True) if found else None, by)
    order = ["headroom_ns", "device_self_ns", "name", "rank"]
    return frame.sort_values(order, ascending=[False, False, True, True], ignore_index=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a `roofline` frame in words."""
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
    text = (
        f"At the peaks of the device ({first['device']}), operators with a formula would take "
        f"{percent(100.0 * (spent - above) / spent)} of their {duration(spent)}."
    )
    if most <= 0:
        return text
    unit = "its unit computes" if first["bound"] == "compute" else "memory delivers"
    return (
        f"{text} The largest part of the rest, {duration(most)}, is in {brief(name)}, which reaches "
        f"{percent(first['efficiency_pct'])} of what {unit}."
    )


def _of_rank(rank_trace: RankTrace, scope: Scope, by: By, stated: StatedPeaks) -> pd.DataFrame:
    peaks = stated_peaks(rank_trace, stated)
    calls, costs = operator_calls(rank_trace), costs_under(rank_trace, peaks)
    groups = leading_kernels(rank_trace, costs.has_formula) if by == "kernel" else groups_of(rank_trace, by)
    totals = Totals(rank_trace, calls, costs, groups.of, len(groups.names), scope)
    spent = totals.device_total_ns if by == "kernel" else totals.device_self_ns
    known = pd.DataFrame(figures(totals.costs))
    keep = np.flatnonzero((spent > 0) & (known["tflops_s"].notna() | known["gb_s"].notna()))
    keep = keep[keep < len(groups.names)]  # the last is what belongs to none
    known, names = known.iloc[keep], [groups.names[group] for group in keep]
    kernels = names if by == "kernel" else [rank_trace.names[name] for name in totals.longest[keep]]
    units: list[Any] = [kernel_class(name).unit for name in kernels]
    tflops, achievable = (peaks.tflops, peaks.achievable) if peaks else ({}, {})
    efficiency = known["efficiency_pct"].to_numpy() / 100.0
    covered = known["formula_pct"].to_numpy().clip(0.0, 100.0) / 100.0
    above = np.clip(1.0 - efficiency, 0.0, 1.0) * covered * spent[keep]
    whole = int(totals.device_self_ns.sum())
    columns = {
        "rank": rank_trace.rank,
        "name": names,
        **{name: [texts[group] for group in keep] for name, texts in groups.further.items()},
        "category": "" if by == "kernel" else [category_of(name) for name in names],
        "calls": totals.calls[keep],
        "device_self_ns": spent[keep],
        "device_self_pct": 100.0 * spent[keep] / max(whole, 1),
        "longest_kernel": kernels,
        "unit": _texts(units),
        "headroom_ns": pd.array(np.rint(above), "Float64"),
        "peak_tflops_s": _speeds(units, tflops),
        "peak_gb_s": peaks.memory_gb_s if peaks else np.nan,
        "achievable_tflops_s": _speeds(units, achievable),
        "device": _texts([device_name(rank_trace) or None] * len(keep)),
        "source": _texts([peaks.source if peaks else None] * len(keep)),
    }
    figured = ("flops_per_byte", "tflops_s", "gb_s", "bound", "efficiency_pct")
    return pd.DataFrame(columns | {name: known[name].array for name in figured})


def _typed(frame: pd.DataFrame | None, by: By) -> pd.DataFrame:
    kinds = {
        "rank": "int64",
        "name": "str",
        **dict.fromkeys(_SHAPES if by == "shapes" else (), "str"),
        **_COLUMNS,
    }
    # Before pandas 3, `astype` makes words of nulls.
    known = {name: kind for name, kind in kinds.items() if frame is None or name not in _NULLABLE}
    frame = pd.DataFrame(columns=[*kinds]) if frame is None else frame[[*kinds]]
    return frame.astype(known)


def _texts(values: list[str | None]) -> pd.Series:
    """Texts, some of which are unknown."""
    texts = pd.Series([value or "" for value in values], dtype="str")
    return texts.where(texts != "")


def _speeds(units: list[Any], peaks: Mapping[Any, float]) -> npt.NDArray[np.float64]:
    return np.array([peaks.get(unit, np.nan) for unit in units], np.float64)


ANALYSIS = Analysis(
    label="Roofline",
    group="Kernels",
    title="How far operators are from what the device can do",
    function=roofline,
    sentence=sentence,
    chart=Roofline(
        x="flops_per_byte",
        y="tflops_s",
        size="device_self_ns",
        label="name",
        part="unit",
        peak="peak_tflops_s",
        bandwidth="peak_gb_s",
        achievable="achievable_tflops_s",
        device="device",
        calls="calls",
        share="device_self_pct",
        moved="gb_s",
        bound="bound",
        efficiency="efficiency_pct",
        headroom="headroom_ns",
    ),
    requires=("operators", "shapes of operators"),
    options=(Option("by", "Rows", get_args(By), "name"),),
)
