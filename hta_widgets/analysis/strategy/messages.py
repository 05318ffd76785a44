"""What each rank sends in each step, and which part of the step sends it: forward, backward, or a hook."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives_of
from hta_widgets.analysis.core.autograd import is_node
from hta_widgets.arrays import Int64
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

FORWARD: Final = "forward"
"""Sent by the thread that runs forward and the optimizer, or by one that runs no backward."""
HOOK: Final = "hook"
"""Sent in backward, where a parameter's gradient is complete, or by a callback of backward as a whole."""
NODE: Final = "node"
"""Sent in backward by the gradient of an operator."""

_FLOATS = re.compile(r"Half|BFloat16|Float|Double")
_ACCUMULATES = "AccumulateGrad"
_MARKS = {"ProfilerStep", "serving step"}
# What is read of a collective.
_EVIDENCE = (
    "iteration", "process_group", "collective", "dtype",
    "group_size", "bytes", "in_elements", "out_elements",
)  # fmt: skip
_WRAPPER = "DistributedDataParallel.forward"


@dataclass(frozen=True, slots=True)
class Message:
    """One collective of one rank."""

    operation: str  # as `collectives` names it
    # of the whole: of the sum, or of all shards together
    elements: int
    nbytes: int
    kept_elements: int  # what this rank holds of it afterwards
    dtype: str  # of the elements
    place: str  # `FORWARD`, `HOOK` or `NODE`
    order_ns: int  # when the host launched it

    @property
    def is_float(self) -> bool:
        """Whether it may carry parameters or gradients."""
        return _FLOATS.match(self.dtype) is not None


class Sent(NamedTuple):
    """A communication kernel of a rank's steps."""

    # its step, and the name of its process group ("" unless recorded)
    iteration: int
    group: str
    # ranks in the group, and what it sends; None unless all sizes were recorded
    group_size: int | None
    message: Message | None


@dataclass(frozen=True)
class Steps:
    """The complete steps of a rank that lie in a scope."""

    iterations: tuple[int, ...]  # their numbers
    marked: bool  # whether the job itself marked them, so that each begins where a step begins
    forwards: dict[int, list[int]]  # when `DistributedDataParallel` modules were called, in ns, by step


def steps_of(rank_trace: RankTrace, scope: Scope) -> Steps:
    """The complete steps of a rank in the scope: among its iterations, whole in its window."""
    frame = rank_trace.iterations
    numbers = frame["iteration"].to_numpy(np.int64)
    chosen = ~frame["partial"].to_numpy(np.bool_)
    if scope.iterations is not None:
        chosen &= np.isin(numbers, scope.iterations)
    if scope.window_ns is not None:
        first, last = scope.window_ns
        chosen &= ((frame["start_ns"] >= first) & (frame["end_ns"] <= last)).to_numpy(np.bool_)
    forwards: dict[int, list[int]] = {}
    for row in _calls(rank_trace, lambda name: name == _WRAPPER).tolist():
        forwards.setdefault(int(rank_trace.iteration[row]), []).append(int(rank_trace.start[row]))
    return Steps(tuple(numbers[chosen].tolist()), set(frame["source"].tolist()) <= _MARKS, forwards)


def messages(trace: Trace, rank: int, steps: Steps, scope: Scope) -> list[Sent]:
    """The collectives of a rank's steps, in order of launch. Of the scope only streams and names count."""
    rank_trace = trace.rank(rank)
    found = collectives_of(trace, rank, Scope(streams=scope.streams, names=scope.names))
    found = found[found["iteration"].isin(steps.iterations)]
    rows = np.searchsorted(rank_trace.event_id, found["event_id"].to_numpy(np.int64))
    launches = rank_trace.issuer[rows]
    orders = rank_trace.start[np.where(launches >= 0, launches, rows)].tolist()
    places = _Places(rank_trace)
    listed = []
    # lists, not frames: of a thousand ranks each has a few
    records = zip(launches.tolist(), orders, *(found[name].tolist() for name in _EVIDENCE), strict=True)
    for launch, order, iteration, name, operation, dtype, *numbers in records:
        group = name if isinstance(name, str) else ""
        if any(number is pd.NA for number in numbers):
            listed.append((order, Sent(iteration, group, None, None)))
            continue
        size, nbytes, sent, received = numbers
        kept = received if operation == "reduce_scatter" else sent
        whole = max(sent, received)
        message = Message(operation, whole, nbytes, kept, dtype, places.of(launch), order)
        listed.append((order, Sent(iteration, group, size, message)))
    listed.sort(key=itemgetter(0))
    return [each for _, each in listed]


class _Places:
    """Finds the part of a step that a call comes from."""

    def __init__(self, rank_trace: RankTrace) -> None:
        self._one = rank_trace
        nodes = _calls(rank_trace, is_node)
        marks = set(rank_trace.iterations["label"])
        steps = _calls(rank_trace, lambda name: name in marks)
        thread = _threads(rank_trace)
        # Backward has a thread of its own, unless all of it ran on the host.
        self._backward = set(thread[nodes].tolist()) - set(thread[steps].tolist())
        self._thread = thread

    def of(self, call: int) -> str:
        """`FORWARD`, `HOOK` or `NODE` of a row that launched something, -1 for none."""
        rank_trace = self._one
        caller = call
        while caller >= 0:
            name = rank_trace.names[rank_trace.name[caller]]
            if is_node(name):
                return HOOK if _ACCUMULATES in name else NODE
            caller = int(rank_trace.parent[caller])
        return HOOK if call >= 0 and int(self._thread[call]) in self._backward else FORWARD


def _calls(rank_trace: RankTrace, fits: Callable[[str], bool]) -> Int64:
    """int64 rows of the host calls and annotations whose name fits, by start."""
    chosen = np.array([fits(name) for name in rank_trace.names] or [False], np.bool_)
    rows = np.flatnonzero(chosen[rank_trace.name] & rank_trace.on_host)
    return rows[np.argsort(rank_trace.start[rows], kind="stable")]


def _threads(rank_trace: RankTrace) -> Int64:
    return rank_trace.pid.astype(np.int64) * len(rank_trace.tids) + rank_trace.tid
