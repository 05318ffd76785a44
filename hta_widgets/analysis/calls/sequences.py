"""The sequences of kernels that an operator launches, how often, and at what cost."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.calls.tree import owners
from hta_widgets.analysis.launches.op_kernels import sequence_numbers
from hta_widgets.arrays import Int64
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import counted, duration, none_of
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import distinct, first_of_each, order_in_groups
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

Roots = Literal["topmost", "shallowest"]

_INSTANCES = {
    "rank": np.int64,
    "event_id": np.int64,
    "pattern": object,
    "operator": object,
    "depth": np.int64,
    "length": np.int64,
    "start_ns": np.int64,
    "host_ns": np.int64,
    "device_ns": np.int64,
}
_SEQUENCES = {
    "rank": np.int64,
    "pattern": object,
    "operator": object,
    "length": np.int64,
    "count": np.int64,
    "device_ns": np.int64,
    "host_ns": np.int64,
    "device_mean_ns": np.float64,
    "host_mean_ns": np.float64,
    "first_event_id": np.int64,
}


def kernel_sequences(
    trace: Trace,
    scope: Scope | None = None,
    operator: str = "",
    min_length: int = 3,
    top: int | None = None,
    roots: Roots = "topmost",
) -> pd.DataFrame:
    """Count the distinct kernel sequences that an operator launches.

    A pattern is the operator's full name and the names of all kernels, copies and fills launched below it
    (backward threads count as below the step that they belong to), in order of their start on the device, on
    whatever stream.

    Args:
        trace: the job.
        scope: see `sequence_instances`.
        operator, min_length, roots: see `sequence_instances`.
        top: only so many patterns per rank, default all.

    Returns:
        One row per rank and pattern, by rank, then count descending, then pattern. Columns: rank int64,
        pattern (str, names joined with ``|``), operator (str, its full name), length (int64, number of
        kernels), count int64, device_ns int64 (summed duration of the kernels), host_ns int64 (summed
        duration of the operator), device_mean_ns, host_mean_ns float64 (per occurrence), first_event_id
        int64 (the first occurrence's operator).

    Raises:
        MissingDataError, ValueError: as `sequence_instances`.
    """
    instances = sequence_instances(trace, scope, operator, min_length, roots)
    if instances.empty:
        return pd.DataFrame({name: np.empty(0, kind) for name, kind in _SEQUENCES.items()})
    # Names may contain the separator: operator and length distinguish patterns with the same text.
    keys = ["rank", "pattern", "operator", "length"]
    frame = instances.groupby(keys, as_index=False, sort=False).agg(
        count=("event_id", "size"),
        device_ns=("device_ns", "sum"), host_ns=("host_ns", "sum"),
        device_mean_ns=("device_ns", "mean"), host_mean_ns=("host_ns", "mean"),
        first_event_id=("event_id", "first"),
    )  # fmt: skip
    frame = frame.sort_values(["rank", "count", *keys[1:]], ascending=[True, False, True, True, True])
    frame = frame[list(_SEQUENCES)].reset_index(drop=True)
    if top is not None:
        frame = frame.groupby("rank", sort=False).head(top).reset_index(drop=True)
    return frame.astype(_SEQUENCES)


def sequence_instances(
    trace: Trace,
    scope: Scope | None = None,
    operator: str = "",
    min_length: int = 3,
    roots: Roots = "topmost",
) -> pd.DataFrame:
    """Where the patterns of `kernel_sequences` occur: one row per call of the operator.

    Args:
        trace: the job.
        scope: ranks, iterations, time window: calls that start there count, with all that they launch and
            with their whole duration. Streams and names choose among the kernels.
        operator: text that the operator's name contains; upper and lower case differ.
        min_length: leave out calls that launch fewer kernels.
        roots: of calls nested in each other, which one counts. "topmost": every call that is not inside
            another matching one. "shallowest": only the calls at the smallest depth at which any call of the
            rank matches; Holistic Trace Analysis counts so, and misses calls that lie deeper elsewhere.

    Returns:
        One row per call, by rank and start. Columns: rank, event_id (of the operator), pattern, operator
        (str), depth, length, start_ns, host_ns, device_ns (int64; as in `kernel_sequences`).

    Raises:
        MissingDataError: no selected rank has device events that are linked to their launches.
        ValueError: `operator` is empty, or `roots` is neither of the two.
    """
    if not operator:
        raise ValueError("operator is empty: name (part of) an operator, such as 'aten::linear'")
    if roots not in ("topmost", "shallowest"):
        raise ValueError(f'roots must be "topmost" or "shallowest", not {roots!r}')
    scope = scope or Scope()
    ranks = trace.ranks_of(scope)
    parts, linked = [], 0
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        if not (rank_trace.launch >= 0).any():
            continue
        linked += 1
        part = _instances(rank_trace, scope, operator, max(min_length, 1), roots)
        if part is not None:
            parts.append(part)
    if ranks and not linked:
        raise MissingDataError(
            "device events linked to their launches",
            RECORD_DEVICE,
            none_of(ranks),
        )
    if not parts:
        return pd.DataFrame({name: np.empty(0, kind) for name, kind in _INSTANCES.items()})
    return pd.concat(parts, ignore_index=True).astype(_INSTANCES)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `kernel_sequences` in words."""
    if frame.empty:
        return "No such operator launches that many kernels in the selection."
    patterns = frame.groupby("pattern", sort=True)[["count", "device_ns"]].sum()
    most = patterns.iloc[int(patterns["count"].to_numpy().argmax())]
    costly = patterns.iloc[int(patterns["device_ns"].to_numpy().argmax())]
    calls = int(patterns["count"].sum())
    launch = f"{counted(calls, 'call')} {'launches' if calls == 1 else 'launch'}"
    if len(patterns) == 1:
        return f"{launch} one and the same sequence, which takes {duration(most['device_ns'])} in all."
    text = f"{launch} {len(patterns):,} distinct sequences. The most frequent"
    frequent = f"occurs {counted(most['count'], 'time')} and takes {duration(most['device_ns'])}."
    if most.name == costly.name:
        return f"{text} is also the costliest: it {frequent}"
    costliest = f"{duration(costly['device_ns'])} in {counted(costly['count'], 'call')}"
    return f"{text} {frequent} The costliest takes {costliest}."


def _instances(
    rank_trace: RankTrace, scope: Scope, operator: str, min_length: int, roots: Roots
) -> pd.DataFrame | None:
    tree = stacks(rank_trace)
    named = np.array([operator in text for text in rank_trace.names], np.bool_)[rank_trace.name]
    matching = named & (tree.depth >= 0) & ~rank_trace.is_device
    if roots == "shallowest" and matching.any():
        matching &= tree.depth == tree.depth[matching].min()
    owner = owners(tree, matching)

    times = Scope(iterations=scope.iterations, window_ns=scope.window_ns)
    counted = np.zeros(rank_trace.n + 1, np.bool_)  # the last entry stands for "no owner"
    counted[rank_trace.members(times)] = True
    wanted = rank_trace.is_device & (tree.depth >= 0) & counted[owner]
    if scope.streams is not None or scope.names is not None:
        listed = np.zeros(rank_trace.n, np.bool_)
        listed[rank_trace.members(Scope(streams=scope.streams, names=scope.names))] = True
        wanted &= listed
    kernels = np.flatnonzero(wanted)
    kernels = kernels[order_in_groups(owner[kernels], rank_trace.start[kernels])]
    first = np.flatnonzero(np.diff(owner[kernels], prepend=-1))
    calls, length = owner[kernels[first]].astype(np.int64), np.diff(first, append=len(kernels))
    long = length >= min_length
    if not long.any():
        return None
    device = np.add.reduceat(rank_trace.dur[kernels], first)[long]
    calls, first, length = calls[long], first[long], length[long]
    pattern = _patterns(rank_trace, calls, rank_trace.name[kernels].astype(np.int64), first, length)
    frame = pd.DataFrame(
        {
            "rank": rank_trace.rank,
            "event_id": rank_trace.event_id[calls],
            "pattern": pattern,
            "operator": np.array(rank_trace.names, object)[rank_trace.name[calls]],
            "depth": tree.depth[calls],
            "length": length,
            "start_ns": rank_trace.start[calls],
            "host_ns": rank_trace.dur[calls],
            "device_ns": device,
        }
    )
    return frame.sort_values(["start_ns", "event_id"], kind="stable", ignore_index=True)


def _patterns(
    rank_trace: RankTrace, calls: Int64, name: Int64, first: Int64, length: Int64
) -> npt.NDArray[np.object_]:
    """The pattern of each call, whose kernels are `name[first : first + length]`; its text is made once."""
    operator = rank_trace.name[calls].astype(np.int64)
    which = distinct(sequence_numbers(operator, name, first, length))[1]
    patterns = np.empty(int(which.max()) + 1, object)
    for number, call in enumerate(first_of_each(which).tolist()):
        codes = [operator[call], *name[first[call] : first[call] + length[call]].tolist()]
        patterns[number] = "|".join(rank_trace.names[code] for code in codes)
    return patterns[which]
