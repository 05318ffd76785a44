"""The annotated region of each kernel, and the device work of each region."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.annotations.owners import owners
from hta_widgets.analysis.annotations.regions import require_annotations
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.kernels.breakdown import device_work
from hta_widgets.analysis.kernels.moments import moments
from hta_widgets.arrays import Int64
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_COLUMNS = [
    "rank", "event_id", "name", "event_class", "stream", "start_ns", "dur_ns",
    "annotation", "annotation_id", "source",
]  # fmt: skip
_TOTALS = ("kernel_count", "launches", "sum_ns")


def annotated_kernels(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """To which annotated region does each piece of device work belong?

    The question of `get_gpu_kernels_with_user_annotations` of Holistic Trace Analysis: the innermost region,
    that is the shortest annotation of the device on the same stream that overlaps the kernel. Ranks without
    device-side annotations use the host's: the innermost region open on the launching thread when the launch
    call began. The column ``source`` says which was used. Device work belongs to the scope as in
    `kernel_breakdown`.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names (of kernels) to look at; default everything.

    Returns:
        One row per device event, by rank, start and event_id. Columns: rank, event_id (int64), name,
        event_class (category), stream int64, start_ns, dur_ns (int64, ns), annotation (category, missing
        outside any region), annotation_id (Int64: event_id of the annotation), source (category:
        "gpu_user_annotation" or "user_annotation").

    Raises:
        MissingDataError: no selected rank has device events, or none has annotations.
    """
    scope = scope or Scope()
    frames: list[pd.DataFrame] = []
    for rank, rank_trace, rows, owner, source in _owned(trace, scope):
        owned = owner >= 0
        annotation = np.where(owned, rank_trace.name[owner], -1)
        event_id = np.where(owned, rank_trace.event_id[owner], 0).astype(np.int64)
        frames.append(
            pd.DataFrame(
                {
                    "rank": np.full(len(rows), rank, np.int64),
                    "event_id": rank_trace.event_id[rows].astype(np.int64),
                    "name": _category(rank_trace.name[rows], rank_trace.names),
                    "event_class": _category(
                        rank_trace.event_class[rows], [event_class.label for event_class in EventClass]
                    ),
                    "stream": rank_trace.stream[rows],
                    "start_ns": rank_trace.start[rows],
                    "dur_ns": rank_trace.dur[rows],
                    "annotation": _category(annotation, rank_trace.names),
                    "annotation_id": pd.arrays.IntegerArray(event_id, ~owned),
                    "source": _category(np.zeros(len(rows), np.int8), [source]),
                }
            )
        )
    if not frames:
        return pd.DataFrame(columns=_COLUMNS)
    for column in ("name", "annotation", "source"):
        # One set of categories for all ranks, else concatenating would turn the column into plain text.
        texts = pd.Index(
            sorted({text for frame in frames for text in frame[column].cat.categories}), dtype="str"
        )
        for frame in frames:
            frame[column] = frame[column].cat.set_categories(texts)
    return pd.concat(frames, ignore_index=True)


@kept(by_rank=True)
def annotation_totals(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How much device work did each annotated region cause?

    `annotated_kernels`, added up by innermost region.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names (of kernels) to look at; default everything.

    Returns:
        One row per rank and annotation name, by rank, then longest first. Columns: rank int64, annotation
        (str; "" for work outside any region), kernel_count (int64), launches (int64: host calls that launched
        them; fewer than kernels where a graph launches many), sum_ns (int64, ns), pct (float64, % of the
        rank's sum_ns), source (str, as in `annotated_kernels`).

    Raises:
        MissingDataError: no selected rank has device events, or none has annotations.
    """
    scope = scope or Scope()
    frames = [pd.DataFrame(columns=["rank", "annotation", *_TOTALS, "source"])]
    for rank, rank_trace, rows, owner, source in _owned(trace, scope):
        if not len(rows):
            continue
        # Group 0 is outside any region, group i + 1 the regions of name i.
        group = np.where(owner >= 0, rank_trace.name[owner], -1).astype(np.int64) + 1
        total = moments(group, rank_trace.dur[rows], len(rank_trace.names) + 1)
        found = total.index.to_numpy()
        call = rank_trace.launch[rows].astype(np.int64)
        # A call counts once for each region that its kernels belong to.
        calls = np.sort(group[call >= 0] * rank_trace.n + call[call >= 0])
        distinct = calls[np.append(True, calls[1:] != calls[:-1])[: len(calls)]] // rank_trace.n
        columns = {
            "rank": rank,
            "annotation": ["" if value == 0 else rank_trace.names[value - 1] for value in found.tolist()],
            "kernel_count": total["count"],
            "launches": np.bincount(distinct, minlength=len(rank_trace.names) + 1)[found],
            "sum_ns": total["sum_ns"],
            "source": source,
        }
        frames.append(pd.DataFrame(columns))
    frame = pd.concat(frames[1:] or frames, ignore_index=True)
    kinds = dict.fromkeys(["annotation", "source"], "str") | dict.fromkeys(["rank", *_TOTALS], np.int64)
    frame = frame.astype(kinds)
    whole = frame.groupby("rank")["sum_ns"].transform("sum")
    frame.insert(5, "pct", (100.0 * frame["sum_ns"] / whole.where(whole > 0)).astype(np.float64))
    return frame.sort_values(
        ["rank", "sum_ns", "annotation"], ascending=[True, False, True], ignore_index=True
    )


def sentence(frame: pd.DataFrame) -> str:
    """The answer of an `annotation_totals` frame in words."""
    if frame.empty:
        return "No device work belongs to the selection."
    whole = int(frame["sum_ns"].sum())
    inside = frame[frame["annotation"] != ""].groupby("annotation")["sum_ns"].sum()
    if inside.empty:
        return f"None of the {duration(whole)} of device work belongs to an annotated region."
    # Names are in order, so the first of equals is taken.
    first = str(inside.idxmax())
    on_device = frame["source"].eq("gpu_user_annotation").any()
    how = (
        "belongs to annotated regions" if on_device else "was launched in annotated regions, on their threads"
    )
    return (
        f"{percent(100.0 * inside.sum() / max(whole, 1))} of {duration(whole)} of device work {how}. The "
        f"largest part, {duration(inside[first])}, belongs to {first}."
    )


def _owned(trace: Trace, scope: Scope) -> Iterator[tuple[int, RankTrace, Int64, Int64, str]]:
    """Per rank: number and trace, the rows of device work in the scope, their annotations, the source."""
    require_annotations(trace, scope, ("gpu", "cpu"))
    for rank, rank_trace, work in device_work(trace, scope):
        rows = work.rows[rank_trace.belong(work.rows, scope)]
        found = owners(rank_trace)
        yield rank, rank_trace, rows, found.row[rows], found.source


def _category(codes: npt.NDArray[np.integer], texts: list[str]) -> pd.Categorical[Any]:
    return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(pd.Index(texts, dtype="str")))


ANALYSIS = Analysis(
    label="Annotated work",
    group="Host",
    title="Which annotated regions the device works for",
    function=annotation_totals,
    sentence=sentence,
    chart=Bars("sum_ns", ("annotation",), "compute", names="annotation", measure="Device time"),
    requires=("device events",),
)
