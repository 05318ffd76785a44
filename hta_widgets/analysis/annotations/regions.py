"""How long the regions take that the program (or PyTorch) annotated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.moments import MOMENTS, described, moments
from hta_widgets.arrays import Int64
from hta_widgets.charts.spec import Bars
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, counted, duration, none_of
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import distinct
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

Side = Literal["gpu", "cpu"]
_REMEDY = {
    "gpu": "Mark regions with torch.profiler.record_function (or step() of the profiler) and record with "
    "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]; recent versions of PyTorch then write their "
    "device side.",
    "cpu": "Mark regions with torch.profiler.record_function, and record with ProfilerActivity.CPU.",
}


class Annotations:
    """The annotations of a rank: int64 rows of its host side and of its device side, sorted by start."""

    def __init__(self, rank_trace: RankTrace) -> None:
        on_device = np.array([text == "gpu_user_annotation" for text in rank_trace.categories], np.bool_)
        rows = np.flatnonzero(rank_trace.event_class == EventClass.ANNOTATION)
        rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
        device = on_device[rank_trace.category[rows]]
        self.host, self.device = rows[~device], rows[device]
        self._n = rank_trace.n
        self._ids = [rank_trace.argument_of("external_id", side) for side in (self.host, self.device)]

    @cached_property
    def cause(self) -> Int64:
        """For each row of the rank the host row that a device-side annotation stems from, else -1.

        They share an external id.
        """
        cause = np.full(self._n, -1, np.int64)
        ids, wanted = self._ids
        order = np.argsort(ids, kind="stable")
        order = order[(ids[order] != NULL) & (ids[order] != 0)]
        if len(order):
            at = order[np.minimum(np.searchsorted(ids[order], wanted), len(order) - 1)]
            found = ids[at] == wanted
            cause[self.device[found]] = self.host[at[found]]
        return cause

    def side(self, side: Side) -> Int64:
        """The rows of one side."""
        return self.device if side == "gpu" else self.host


annotations_of = memoize_per_rank()(Annotations)


def require_annotations(trace: Trace, scope: Scope, sides: tuple[Side, ...]) -> None:
    """Raise `MissingDataError` if no selected rank has annotations on any of these sides."""
    ranks = trace.ranks_of(scope)
    if ranks and not any(
        len(annotations_of(trace.rank(rank)).side(side)) for rank in ranks for side in sides
    ):
        field = (
            "user annotations" if len(sides) > 1 or sides == ("cpu",) else "user annotations of the device"
        )
        raise MissingDataError(field, _REMEDY[sides[-1]], none_of(ranks))


def user_annotations(trace: Trace, scope: Scope | None = None, side: Side = "gpu") -> pd.DataFrame:
    """How often did each annotated region run on each rank, and how long?

    The numbers of `get_gpu_user_annotation_breakdown` of Holistic Trace Analysis, on unrounded times. A
    region belongs to the iteration in which it began on the host and to the window in which it starts, and
    counts with its whole duration. Regions nest, so times of different names must not be added.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names (of annotations) to look at; default everything.
        side: "gpu": from a region's first kernel on a stream to its last, as the profiler recorded it; one
            for each stream that the region used. "cpu": the region on its host thread.

    Returns:
        One row per rank and name, by rank, then longest first. Columns: rank int64, name (str), on_device
        (bool; the side), count, sum_ns, min_ns, max_ns (int64, ns), mean_ns, std_ns (float64, ns; sample
        standard deviation, NaN for a single region).

    Raises:
        MissingDataError: no selected rank has annotations on this side.
        ValueError: `side` is neither "gpu" nor "cpu".
    """
    if side not in ("gpu", "cpu"):
        raise ValueError(f'side must be "gpu" or "cpu", not {side!r}')
    frame = annotation_moments(trace, scope, side)
    order = ["rank", "sum_ns", "name"]
    found = described(frame.sort_values(order, ascending=[True, False, True], ignore_index=True))
    found.insert(2, "on_device", side == "gpu")
    return found


def annotation_moments(trace: Trace, scope: Scope | None = None, side: Side = "gpu") -> pd.DataFrame:
    """The rows of `user_annotations`, by rank and in no other order, with `moments.MOMENTS` as statistics."""
    scope = scope or Scope()
    require_annotations(trace, scope, (side,))
    nothing = np.empty(0, np.int64)
    frames = list(_of_ranks(trace, scope, side)) or [_named(0, [], moments(nothing, nothing, 0))]
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a user annotation frame in words."""
    if frame.empty:
        return "No annotated region belongs to the selection."
    per_name = frame.groupby("name", as_index=False)[["sum_ns", "count"]].sum()
    first = per_name.sort_values(["sum_ns", "name"], ascending=[False, True]).iloc[0]
    count = int(first["count"])
    on_device = bool(frame["on_device"].iloc[0])
    runs = f"{counted(count, 'run')}, {duration(first['sum_ns'])}{' in all' * (count > 1)}"
    each = f" A run takes {duration(first['sum_ns'] / count)} on average." if count > 1 else ""
    return (
        f"The longest region on the {'device' if on_device else 'host'} is {brief(first['name'])}: {runs}"
        f"{', idle time included' * on_device}.{each}"
    )


def _of_ranks(trace: Trace, scope: Scope, side: Side) -> Iterator[pd.DataFrame]:
    for rank in trace.ranks_of(scope):
        checkpoint()
        rank_trace = trace.rank(rank)
        rows = _members(rank_trace, scope, side)
        names, group = distinct(rank_trace.name[rows])
        texts = [rank_trace.names[code] for code in names.tolist()]
        yield _named(rank, texts, moments(group, rank_trace.dur[rows], len(names)))


def _named(rank: int, names: list[str], frame: pd.DataFrame) -> pd.DataFrame:
    columns = {"rank": np.full(len(frame), rank, np.int64), "name": pd.array(names, dtype="str")}
    return pd.DataFrame({**columns, **{name: frame[name].array for name in MOMENTS}})


def _members(rank_trace: RankTrace, scope: Scope, side: Side) -> Int64:
    found = annotations_of(rank_trace)
    rows = found.side(side)
    rows = rows[rank_trace.belong(rows, replace(scope, iterations=None))]
    if scope.iterations is not None:
        # The device runs behind: what the host began in one iteration may run in the next.
        begun = np.where(found.cause[rows] >= 0, found.cause[rows], rows)
        rows = rows[np.isin(rank_trace.iteration[begun], scope.iterations)]
    return rows


def annotated_regions(
    trace: Trace, scope: Scope | None = None, side: Side | Literal[""] = ""
) -> pd.DataFrame:
    """`user_annotations` of one side; without one, of the device's, or of the host's if there are none."""
    if side:
        return user_annotations(trace, scope, side)
    try:
        return user_annotations(trace, scope, "gpu")
    except MissingDataError:
        return user_annotations(trace, scope, "cpu")


ANALYSIS = Analysis(
    kind="user_annotations",
    label="Annotations",
    group="Host",
    title="How long annotated regions take",
    function=annotated_regions,
    sentence=sentence,
    chart=Bars("sum_ns", ("name",), "host", names="name", measure="Time"),
    requires=("user annotations",),
    options=(Option("side", "Measured on", ("", "gpu", "cpu"), hint="gpu, else cpu"),),
)
