"""The rows of the table of utilization: MFU, HFU and MBU of some steps of a rank, or why they are unknown."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.peaks import Peaks, peaks_of_rank
from hta_widgets.analysis.kernels.units import UNITS, Unit
from hta_widgets.analysis.operators.six_p_t import SixPT, six_p_t
from hta_widgets.analysis.operators.step_work import StepWork, step_work
from hta_widgets.arrays import Bool, Float64, Int64
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace

Texts = npt.NDArray[np.object_]

SHAPES: Final = "Record with torch.profiler.profile(record_shapes=True)."
_NO_SHAPES: Final = f"shapes of operators were not recorded. {SHAPES}"
_NO_PRODUCT: Final = "no matrix product, convolution or attention of the step has a formula"
_NO_NUMBERS: Final = (
    "without sequence numbers recomputation cannot be distinguished from the backward pass. "
    "Record with a newer PyTorch, or give tokens_per_step."
)
_NO_PEAKS: Final = "the peaks of the device are not known. Give peaks, or state them with register_peaks."
_NO_BYTES: Final = "the memory traffic of no operator of the step is known. " + SHAPES


@memoize_per_rank()
def has_shapes(rank_trace: RankTrace) -> bool:
    """Whether shapes of operators were recorded."""
    return rank_trace.has_argument("input_dims")


def rows_of(
    trace: Trace, rank: int, steps: pd.DataFrame, tokens: int | None, peaks: Peaks | None
) -> dict[str, Any]:
    """The columns of `utilization` of some steps: first a row for all of them together, then one for each."""
    rank_trace = trace.rank(rank)
    numbers, spans = steps["iteration"].to_numpy(np.int64), steps["dur_ns"].to_numpy(np.int64)
    work, peaks = step_work(rank_trace, tuple(numbers.tolist())), peaks or peaks_of_rank(rank_trace)
    count, step_ns = np.append(len(spans), np.ones(len(spans), np.int64)), np.append(spans.sum(), spans)
    stated = None if tokens is None else six_p_t(trace, rank, tokens)
    whole = np.arange(len(count)) == 0
    return {
        "rank": np.full(len(count), rank),
        "iteration": pd.arrays.IntegerArray(np.append(0, numbers), whole),
        "steps": count,
        "known": _all(count, steps["known"].iloc[0]),
        "open": np.full(len(count), steps["open"].any()),
        "step_ns": step_ns,
        **_figures(work, count, step_ns, peaks, stated, has_shapes(rank_trace), _why_no_model(rank_trace)),
    }


def _why_no_model(rank_trace: RankTrace) -> str:
    """Why recomputation cannot be distinguished from the backward pass, "" where it can, or there is none."""
    numbered = rank_trace.has_argument("sequence_number")
    backward = bool((phases(rank_trace).of == PHASES.index("backward")).any())
    return _NO_NUMBERS if backward and not numbered else ""


def _figures(
    work: StepWork,
    steps: Int64,
    step_ns: Int64,
    peaks: Peaks | None,
    stated: SixPT | None,
    shapes: bool,
    why: str,
) -> dict[str, Any]:
    flops, moved, spent = work.flops, work.bytes, work.work_ns
    no_flops = _where(flops != 0, "", _NO_PRODUCT) if shapes else _all(steps, _NO_SHAPES)
    no_bytes = _where(moved != 0, "", _NO_BYTES) if shapes else _all(steps, _NO_SHAPES)
    flops_reading = _reading(work.unknown_ns > 0, work.flops_bounded > 0)
    model, model_reading = flops - work.repeated, flops_reading
    no_model = np.where(no_flops != "", no_flops, why)
    if stated:
        model = np.array([stated.flops * count for count in steps.tolist()], np.int64)
        no_model, model_reading = _all(steps, stated.reason), _all(steps, "about")
    unit = _units(work)
    peak = np.array([*(peaks.tflops.get(each, np.nan) if peaks else np.nan for each in UNITS), np.nan])[unit]
    bandwidth = peaks.memory_gb_s if peaks else np.nan
    no_peak = np.array([*(_no_peak(peaks, each) for each in (*UNITS, None))], object)[unit]
    no_bandwidth = _all(steps, "" if peaks else _NO_PEAKS)
    bytes_reading = _reading(work.described_ns < spent, work.bytes_bounded > 0)
    figures = {
        f"{name}_{part}": value
        for name, of in (
            ("mfu", _value(model, no_model, no_peak, step_ns * (peak * 1e3), model_reading)),
            ("hfu", _value(flops, no_flops, no_peak, step_ns * (peak * 1e3), flops_reading)),
            ("mbu", _value(moved, no_bytes, no_bandwidth, step_ns * bandwidth, bytes_reading)),
        )
        for part, value in zip(("pct", "reading", "reason"), of, strict=True)
    }
    parameters = stated.parameters if stated else None
    return figures | {
        "work_ns": spent,
        "formula_pct": 100.0 * work.described_ns / np.where(spent, spent, np.nan),
        "model_flops": pd.arrays.IntegerArray(model, no_model != ""),
        "hardware_flops": pd.arrays.IntegerArray(flops, no_flops != ""),
        "moved_bytes": pd.arrays.IntegerArray(moved, no_bytes != ""),
        "flops_from": _all(steps, "6 P T" if stated else "operators"),
        "parameters": [pd.NA if parameters is None else parameters] * len(steps),
        "parameters_from": _all(steps, stated.parameters_from if stated else ""),
        "unit": np.array([*UNITS, None], object)[unit],
        "peak_tflops_s": peak,
        "peak_gb_s": np.full(len(steps), bandwidth),
        "device": _all(steps, peaks.device if peaks else None),
        "source": _all(steps, peaks.source if peaks else None),
    }


def _all(steps: Int64, text: str | None) -> Texts:
    """The same text for all rows."""
    return np.full(len(steps), text, object)


def _where(condition: Bool, text: str, otherwise: str) -> Texts:
    return np.array([otherwise, text], object)[condition.astype(np.int64)]


def _reading(unknown: Bool, bounded: Bool) -> Texts:
    """How sums are to be read if some of their parts are unknown, and some are upper bounds."""
    readings = np.array(["exact", "at most", "at least", "about"], object)
    return readings[2 * unknown.astype(np.int64) + bounded]


def _units(work: StepWork) -> Int64:
    """What does most of the operations; where they are unknown, what works longest; else one past all."""
    most = np.where(work.by_unit.any(axis=1, keepdims=True), work.by_unit, work.time_by_unit)
    return np.where(most.any(axis=1), most.argmax(axis=1), len(UNITS))


def _no_peak(peaks: Peaks | None, unit: Unit | None) -> str:
    """Why the peak of a unit is unknown, "" where it is known."""
    if peaks is None:
        return _NO_PEAKS
    if unit is None:
        return "no name of a kernel says which unit multiplies"
    known = not np.isnan(peaks.tflops.get(unit, np.nan))
    return "" if known else f"no peak of {unit} is known of {peaks.device}. Give peaks."


def _value(
    done: Int64, unknown: Texts, no_peak: Texts, could: npt.NDArray[np.floating[Any]], reading: Texts
) -> tuple[Float64, Texts, Texts]:
    """% of what could be done in the time of the steps, how to read it, and why it is unknown."""
    why = np.where(unknown != "", unknown, no_peak)
    known = why == ""
    read = reading.copy()
    read[~known] = None
    return 100.0 * done / np.where(known, could, np.nan), read, why
