"""`get_gpu_kernel_breakdown`: time by kernel type, and statistics of each kernel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.device_time.kernel_types import kernel_type_breakdown
from hta_widgets.analysis.kernels.breakdown import kernel_moments, with_others
from hta_widgets.analysis.kernels.moments import described, merged
from hta_widgets.hta.methods.conventions import microseconds, or_else, show
from hta_widgets.hta.methods.kernel_figures import bars_by_rank, pie_of_types, pies_by_rank
from hta_widgets.hta.methods.names import kernel_type
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace

TYPE_COLUMNS = ["kernel_type", "sum", "percentage"]
STATISTICS = ["sum (us)", "max (us)", "min (us)", "stddev", "mean (us)"]
KERNEL_COLUMNS = ["name", *STATISTICS, "kernel_type", "rank"]
_TYPES = {"compute": "COMPUTATION", "communication": "COMMUNICATION", "memory": "MEMORY"}
_HTA_TYPE = {event_class.label: kernel_type(event_class) for event_class in EventClass}


def _nothing() -> tuple[pd.DataFrame, pd.DataFrame]:
    types = {"kernel_type": "str", "sum": np.float64, "percentage": np.float64}
    kernels = {"name": "str", **dict.fromkeys(STATISTICS, np.float64), "kernel_type": "str", "rank": np.int64}
    return _empty(types), _empty(kernels)


def _empty(kinds: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds.items()})  # type: ignore[call-overload]


@or_else(_nothing)
def gpu_kernel_breakdown(
    job: Trace,
    visualize: bool = True,
    duration_ratio: float = 0.8,
    num_kernels: int = 10,
    include_memory_kernels: bool = True,
    image_renderer: str = "",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Which kinds of kernels, and which kernels, take the device's time?

    Args:
        duration_ratio, num_kernels: which kernels are named in the second frame; the rest are `others` (see
            `hidden_by_hta`).
        include_memory_kernels: copies and fills count too.
        image_renderer: plotly renderer of the figures.

    Returns:
        Two frames. Of the time in which any kind runs, over all ranks: kernel_type (kinds that run at
        once are joined with "overlapping"), sum (us), percentage. And per rank, kind and kernel: name,
        sum (us), max (us), min (us), stddev, mean (us), kernel_type, rank; statistics of single launches,
        `others` included. Defined in `analysis.kernel_type_breakdown` and `analysis.kernel_breakdown`.
    """
    types = _types(job, include_memory_kernels)
    frame = kernel_moments(job)
    frame["kernel_type"] = frame.pop("event_class").map(_HTA_TYPE)
    if not include_memory_kernels:
        frame = frame[frame["kernel_type"] != "MEMORY"]
    keys = ["rank", "kernel_type"]
    # HTA groups by name: a copy and a fill of the same name are one row.
    if frame.duplicated([*keys, "name"]).any():
        frame = merged(frame, [*keys, "name"]).assign(names=1)
    frame = with_others(frame, hidden_by_hta(frame, keys, duration_ratio, num_kernels), keys)
    kernels = in_us(frame, KERNEL_COLUMNS, ["kernel_type", "name", "rank"])
    if visualize:
        figures = [pie_of_types(types)]
        for kind in list(_TYPES.values())[: 3 if include_memory_kernels else 2]:
            of_kind = kernels[kernels["kernel_type"] == kind]
            title = f'Kernel type "{kind}" - '
            figures += [pies_by_rank(of_kind, job.ranks, f"{title}kernel distribution on each rank")]
            figures += bars_by_rank(of_kind, title)
        show(figures, image_renderer)
    return types, kernels


def hidden_by_hta(
    frame: pd.DataFrame, keys: list[str], duration_ratio: float, num_kernels: int
) -> npt.NDArray[np.bool_]:
    """Which rows of moments HTA would collapse into "others" within each value of `keys`.

    Names are ranked by time (ties by name). If there are more than `num_kernels`, HTA hides those from that
    position on, and those whose running total exceeds the `duration_ratio` quantile of all running totals: a
    share of the *names*, not of the time, which `analysis.kernel_breakdown(share=...)` takes.
    """
    hidden = np.zeros(len(frame), np.bool_)
    frame = frame.reset_index(drop=True)
    for _, rows in frame.groupby(keys, sort=False):
        if len(rows) <= num_kernels:
            continue
        order = rows.sort_values(["sum_ns", "name"], ascending=[False, True])
        running = order["sum_ns"].to_numpy().cumsum()
        beyond = running > np.quantile(running, duration_ratio)
        beyond[num_kernels:] = True
        hidden[order.index[beyond]] = True
    return hidden


def in_us(frame: pd.DataFrame, columns: list[str], by: list[str]) -> pd.DataFrame:
    """Moments as HTA's statistics in us, its `columns`, sorted by `by`; a single launch has stddev 0."""
    frame = described(frame)
    ours = {
        "sum (us)": "sum_ns",
        "max (us)": "max_ns",
        "min (us)": "min_ns",
        "stddev": "std_ns",
        "mean (us)": "mean_ns",
    }
    result = {
        name: microseconds(frame[ours[name]].to_numpy()) if name in ours else frame[name].array
        for name in columns
    }
    result["stddev"] = np.nan_to_num(result["stddev"], nan=0.0)
    # pandas makes categories of texts to sort by them, which takes longer than all else here
    keys = list(zip(*(frame[name].tolist() for name in by), strict=True))
    order = sorted(range(len(frame)), key=keys.__getitem__)
    return pd.DataFrame(result).take(order).reset_index(drop=True)


def _types(job: Trace, include_memory_kernels: bool) -> pd.DataFrame:
    frame = kernel_type_breakdown(job)
    shown = [part for part in _TYPES if part != "memory" or include_memory_kernels]
    spent: dict[str, int] = {}
    for kind, ns in zip(frame["kernel_type"].tolist(), frame["dur_ns"].tolist(), strict=True):
        label = " overlapping ".join(_TYPES[part] for part in kind.split(" + ") if part in shown)
        if label:
            spent[label] = spent.get(label, 0) + ns
    labels = sorted(spent, key=lambda label: (-spent[label], label))
    sum_ns = np.array([spent[label] for label in labels], np.int64)
    share = np.round(100.0 * sum_ns / max(int(sum_ns.sum()), 1), 1)
    columns = (pd.array(labels, dtype="str"), microseconds(sum_ns), share)
    return pd.DataFrame(dict(zip(TYPE_COLUMNS, columns, strict=True)))
