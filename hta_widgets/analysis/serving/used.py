"""How much of what a device could do the steps of a phase use: MBU and MFU, at least."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.kernels.peaks import peaks_of_rank
from hta_widgets.analysis.serving.roles import roles_of
from hta_widgets.analysis.serving.table import steps_of
from hta_widgets.analysis.serving.traffic import COVERED, traffic_of
from hta_widgets.formatting import percent

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

USED: Final = (
    "weight_bytes", "weight_least_bytes", "kv_bytes", "kv_least_bytes", "mbu_pct", "mbu_least_pct",
    "mfu_pct", "covered_pct", "why",
)  # fmt: skip
"""The columns that `used` gives."""

_NO_SHAPES: Final = (
    "no shapes of products are recorded: record the capture of the graphs with record_shapes=True and open "
    "it with capture=, or run without graphs"
)
_NO_PEAKS: Final = "the peaks of the device are not known: state them with register_peaks"


def used(rank_trace: RankTrace, steps: pd.DataFrame, window: int | None) -> dict[str, Any]:
    """What some steps of one phase read and compute, of what the device could in their time.

    Args:
        steps: some rows of `serving_steps` about it.
        window: as for `traffic_of`.
    """
    roles, traffic = roles_of(rank_trace), traffic_of(rank_trace, window)
    table = steps_of(rank_trace)
    places = np.flatnonzero(table["iteration"].isin(steps["iteration"]))
    mine = np.isin(roles.step, places)
    work = rank_trace.dur[roles.rows]
    covered, whole = int(work[mine & traffic.known].sum()), int(work[mine].sum())

    def per_step(values: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return np.bincount(roles.step[mine], values[mine], len(table))[places].astype(np.float64)

    read = {
        name: per_step(getattr(traffic, name))
        for name in ("weight_bytes", "weight_least_bytes", "kv_bytes", "kv_least_bytes")
    }
    whole_read = float((read["weight_bytes"] + read["kv_bytes"]).sum())
    least_read = float((read["weight_least_bytes"] + read["kv_least_bytes"]).sum())
    period = steps["period_ns"].fillna(steps["device_ns"]).to_numpy(np.float64, na_value=np.nan)
    time, peaks = float(period.sum()), peaks_of_rank(rank_trace)
    share = 100.0 * covered / whole if whole else np.nan
    why = _why(share, bool(read["weight_bytes"].any()), peaks is not None)
    known = not why and peaks is not None and time > 0
    counted = known and work[mine & traffic.counted].sum() >= COVERED * whole
    peak = peaks.tflops.get(traffic.unit, np.nan) if peaks and traffic.unit else np.nan
    return {
        **{name: round(float(np.median(each))) if each.any() else pd.NA for name, each in read.items()},
        "mbu_pct": 100.0 * whole_read / time / peaks.memory_gb_s if known and peaks else np.nan,
        "mbu_least_pct": 100.0 * least_read / time / peaks.memory_gb_s if known and peaks else np.nan,
        "mfu_pct": 100.0 * float(per_step(traffic.flops).sum()) / time / (peak * 1e3) if counted else np.nan,
        "covered_pct": share,
        "why": why,
    }


def _why(share: float, has_weights: bool, has_peaks: bool) -> str:
    """Why shares of the peaks are unknown, "" where they are known."""
    if not has_weights:
        return _NO_SHAPES
    if not share >= 100.0 * COVERED:
        return f"what kernels of {percent(100.0 - share)} of the device's time move is not known"
    return "" if has_peaks else _NO_PEAKS
