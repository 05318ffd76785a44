"""HTA's methods about user annotations: the kernels that belong to them, and how long they take."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.annotations.kernels import annotated_kernels
from hta_widgets.analysis.annotations.regions import annotation_moments, require_annotations
from hta_widgets.analysis.kernels.breakdown import with_others
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.methods.conventions import chosen_ranks, or_none, show
from hta_widgets.hta.methods.kernel_figures import bars_by_rank, pies_by_rank
from hta_widgets.hta.methods.kernels import STATISTICS, hidden_by_hta, in_us
from hta_widgets.hta.methods.names import shorten_name
from hta_widgets.trace.model import Trace as Job
from hta_widgets.trace.scope import Scope


@or_none
def gpu_kernels_with_user_annotations(
    t: Trace, rank: int, expand_names: bool = True, shorten_names: bool = True
) -> pd.DataFrame | None:
    """Which annotation does each kernel of a rank belong to?

    Args:
        expand_names: add the columns s_name, s_cat and s_user_annotation with the texts, "" for none.
        shorten_names: without template and call arguments.

    Returns:
        The rank's device events as in `t.get_trace(rank)`, which stays as it is, and user_annotation: the
        symbol id of the innermost annotation on the kernel's stream, -1 for none. None, with a warning, if
        the device side of annotations was not recorded.
    """
    chosen_ranks(t.job, [rank])
    require_annotations(t.job, Scope(), ("gpu",))
    owned = annotated_kernels(t.job, Scope(ranks=(rank,)))
    frame: pd.DataFrame = t.get_trace(rank)
    texts = t.symbol_table.get_sym_table()
    number = {text: symbol for symbol, text in enumerate(texts)}
    symbols = np.array([number.get(text, -1) for text in owned["annotation"].cat.categories] + [-1], np.int64)
    # A rank without device-side annotations would be answered from the host's, which HTA does not do.
    on_device = (owned["source"] == "gpu_user_annotation").to_numpy()
    symbol = np.where(on_device, symbols[owned["annotation"].cat.codes.to_numpy()], -1)
    at = pd.Index(owned["event_id"]).get_indexer(frame["index"])
    frame = frame[at >= 0].reset_index(drop=True)
    frame["user_annotation"] = symbol[at[at >= 0]]
    if expand_names:
        for column in ("name", "cat", "user_annotation"):
            frame[f"s_{column}"] = _texts(frame[column].to_numpy(np.int64), texts, shorten_names)
    return frame


def _texts(symbol: npt.NDArray[np.int64], texts: list[str], shorten: bool) -> pd.Series[str]:
    distinct, inverse = np.unique(symbol, return_inverse=True)
    found = [texts[value] if value >= 0 else "" for value in distinct.tolist()]
    if shorten:
        found = [shorten_name(text) for text in found]
    return pd.Series(np.array(found, object)[inverse], dtype="str")


@or_none
def gpu_user_annotation_breakdown(
    job: Job,
    use_gpu_annotation: bool = True,
    visualize: bool = True,
    duration_ratio: float = 0.8,
    num_kernels: int = 1000,
    allowlist_patterns: list[str] | None = None,
    image_renderer: str | None = None,
) -> pd.DataFrame | None:
    """How long do the user's annotations last, on the device or on the host?

    Args:
        use_gpu_annotation: the device's side (first to last kernel), else the host's.
        duration_ratio, num_kernels: which annotations are named; the rest are `others` (see `hidden_by_hta`).
        allowlist_patterns: names that contain one of these texts, or in which one of these regular
            expressions is found, are always named.

    Returns:
        Per rank and annotation: name, sum (us), max (us), min (us), stddev, mean (us), rank. None, with a
        warning, if there are none. Defined in `analysis.user_annotations`.
    """
    frame = annotation_moments(job, side="gpu" if use_gpu_annotation else "cpu").assign(names=1)
    kept = np.array([_matches(name, allowlist_patterns or []) for name in frame["name"]], np.bool_)
    frame = with_others(frame, hidden_by_hta(frame, ["rank"], duration_ratio, num_kernels) & ~kept, ["rank"])
    breakdown = in_us(frame, ["name", *STATISTICS, "rank"], ["rank", "name"])
    if visualize:
        pies = pies_by_rank(breakdown, job.ranks, "User annotation distribution on each rank")
        show([pies, *bars_by_rank(breakdown, "User annotation = ")], image_renderer)
    return breakdown


def _matches(name: str, patterns: list[str]) -> bool:
    return any(pattern in name or _found(pattern, name) for pattern in patterns)


def _found(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:  # a text with brackets, meant literally
        return False
