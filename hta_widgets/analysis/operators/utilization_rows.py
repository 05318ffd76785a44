"""The rows of the table of utilization: MFU, HFU and MBU of some steps of a rank, or why they are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.peaks import Peaks, peaks_of_rank
from hta_widgets.analysis.kernels.units import UNITS, Unit
from hta_widgets.analysis.operators.six_p_t import SixPT, six_p_t
from hta_widgets.analysis.operators.step_work import StepWork, step_work
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["SHAPES", "has_shapes", "rows_of"]

SHAPES: Final = "Record with torch.profiler.profile(record_shapes=True)."
_NO_SHAPES: Final = f"shapes of operators were not recorded. {SHAPES}"
_NO_PRODUCT: Final = "no matrix product, convolution or attention of the step has a formula"
_NO_NUMBERS: Final = (
    "without sequence numbers recomputation cannot be told from the backward pass. "
    "Record with a newer PyTorch, or give tokens_per_step."
)
_NO_PEAKS: Final = "the peaks of the device are not known. Give peaks, or state them with register_peaks."
_NO_BYTES: Final = "the memory traffic of no operator of the step is known. " + SHAPES


@memoize_per_rank()
def has_shapes(rank_trace: RankTrace) -> bool:
    """Whether shapes of operators were recorded."""
    return bool((rank_trace.argument_codes("input_dims") >= 0).any())


def rows_of(
    trace: Trace, rank: int, steps: pd.DataFrame, tokens: int | None, peaks: Peaks | None
) -> list[dict[str, Any]]:
    """The row of all these steps together, and the row of each."""
    rank_trace = trace.rank(rank)
    numbers, spans = steps["iteration"].tolist(), steps["dur_ns"].tolist()
    work, peaks = step_work(rank_trace, tuple(numbers)), peaks or peaks_of_rank(rank_trace)
    stated = None if tokens is None else six_p_t(trace, rank, tokens)
    shapes, why = has_shapes(rank_trace), _why_no_model(rank_trace)
    each = [(number, 1, span) for number, span in zip(numbers, spans, strict=True)]
    rows = [(pd.NA, len(numbers), sum(spans)), *each]
    return [
        {"rank": rank, "iteration": number, "steps": count, "step_ns": span}
        | _row(work, at, count, span, peaks, stated, shapes, why)
        for at, (number, count, span) in enumerate(rows)
    ]


def _why_no_model(rank_trace: RankTrace) -> str:
    """Why recomputation cannot be told from the backward pass, "" where it can, or there is none."""
    numbered = bool((rank_trace.argument("sequence_number") != NULL).any())
    backward = bool((phases(rank_trace).of == PHASES.index("backward")).any())
    return _NO_NUMBERS if backward and not numbered else ""


def _row(
    work: StepWork,
    at: int,
    steps: int,
    step_ns: int,
    peaks: Peaks | None,
    stated: SixPT | None,
    shapes: bool,
    why: str,
) -> dict[str, Any]:
    flops, again, moved = (int(each[at]) for each in (work.flops, work.repeated, work.bytes))
    spent, described, unknown = (int(each[at]) for each in (work.work_ns, work.described_ns, work.unknown_ns))
    no_flops = _NO_SHAPES if not shapes else "" if flops else _NO_PRODUCT
    no_bytes = _NO_SHAPES if not shapes else "" if moved else _NO_BYTES
    flops_reading = _reading(unknown > 0, work.flops_bounded[at] > 0)
    model, no_model, model_reading = flops - again, no_flops or why, flops_reading
    if stated:
        model, no_model = stated.flops * steps, stated.reason
        model_reading = "about"
    unit = _unit(work, at)
    peak = peaks.tflops.get(unit, np.nan) if peaks and unit else np.nan
    bandwidth = peaks.memory_gb_s if peaks else np.nan
    no_peak = _no_peak(peaks, unit, peak)
    mfu = _value(model, no_model, no_peak, step_ns, peak * 1e3, model_reading)
    hfu = _value(flops, no_flops, no_peak, step_ns, peak * 1e3, flops_reading)
    reading = _reading(described < spent, work.bytes_bounded[at] > 0)
    mbu = _value(moved, no_bytes, "" if peaks else _NO_PEAKS, step_ns, bandwidth, reading)
    figures = {
        f"{name}_{part}": value
        for name, of in (("mfu", mfu), ("hfu", hfu), ("mbu", mbu))
        for part, value in zip(("pct", "reading", "reason"), of, strict=True)
    }
    return figures | {
        "work_ns": spent, "formula_pct": 100.0 * described / spent if spent else np.nan,
        "model_flops": pd.NA if no_model else model, "hardware_flops": pd.NA if no_flops else flops,
        "moved_bytes": pd.NA if no_bytes else moved, "flops_from": "6 P T" if stated else "operators",
        "parameters": stated.parameters if stated else pd.NA,
        "parameters_from": stated.parameters_from if stated else "",
        "unit": unit, "peak_tflops_s": peak, "peak_gb_s": bandwidth,
        "device": peaks.device if peaks else None, "source": peaks.source if peaks else None,
    }  # fmt: skip


def _reading(unknown: bool, bounded: bool) -> str:
    """How a sum is to be read if some of its parts are unknown, and some are upper bounds."""
    if unknown:
        return "about" if bounded else "at least"
    return "at most" if bounded else "exact"


def _unit(work: StepWork, at: int) -> Unit | None:
    """What does most of the operations; where they are unknown, what works longest."""
    by_unit = work.by_unit[at]
    by_unit = by_unit if by_unit.any() else work.time_by_unit[at]
    return UNITS[int(by_unit.argmax())] if by_unit.any() else None


def _no_peak(peaks: Peaks | None, unit: Unit | None, peak: float) -> str:
    if peaks is None:
        return _NO_PEAKS
    if unit is None:
        return "no name of a kernel tells which unit multiplies"
    return f"no peak of {unit} is known of {peaks.device}. Give peaks." if np.isnan(peak) else ""


def _value(
    done: int, unknown: str, no_peak: str, step_ns: int, per_ns: float, reading: str
) -> tuple[float, str | None, str]:
    """% of what could be done in the time of the step, how to read it, and why it is unknown."""
    if unknown or no_peak:
        return np.nan, None, unknown or no_peak
    return 100.0 * done / (step_ns * per_ns), reading, ""
