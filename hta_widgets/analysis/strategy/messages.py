"""What each rank sends in each step, and which part of the step sends it: forward, backward, or a hook."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives_of
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["FORWARD", "HOOK", "NODE", "Message", "Steps", "messages", "steps_of"]

Int64 = npt.NDArray[np.int64]

FORWARD: Final = "forward"
"""Sent by the thread that runs forward and the optimizer, or by one that runs no backward."""
HOOK: Final = "hook"
"""Sent in backward, where a parameter's gradient is complete, or by a callback of backward as a whole."""
NODE: Final = "node"
"""Sent in backward by the gradient of an operator."""

_FLOATS = re.compile(r"Half|BFloat16|Float|Double")
_NODE = "autograd::engine::evaluate_function: "
_ACCUMULATES = "AccumulateGrad"
_MARKS = ("ProfilerStep", "serving step")
# What is read of a collective.
_EVIDENCE = [
    "iteration", "event_id", "process_group", "group_size", "collective", "dtype", "bytes",
    "in_elements", "out_elements",
]  # fmt: skip
_SIZES = ("bytes", "group_size", "in_elements", "out_elements")
_WRAPPER = "DistributedDataParallel.forward"


@dataclass(frozen=True, slots=True)
class Message:
    """One collective of one rank.

    Attributes:
        operation: as `collectives` names it.
        elements, nbytes: of the whole: of the sum, or of all shards together.
        kept_elements: what this rank holds of it afterwards.
        dtype: of the elements.
        place: `FORWARD`, `HOOK` or `NODE`.
        order_ns: when the host launched it.
    """

    operation: str
    elements: int
    nbytes: int
    kept_elements: int
    dtype: str
    place: str
    order_ns: int

    @property
    def is_float(self) -> bool:
        """Whether it may carry parameters or gradients."""
        return _FLOATS.match(self.dtype) is not None


@dataclass(frozen=True)
class Steps:
    """The complete steps of a rank that lie in a scope.

    Attributes:
        iterations: their numbers.
        marked: whether the job itself marked them, so that each begins where a step begins.
        forwards: when `DistributedDataParallel` modules were called, in ns, by step.
    """

    iterations: tuple[int, ...]
    marked: bool
    forwards: dict[int, list[int]]


def steps_of(rank_trace: RankTrace, scope: Scope) -> Steps:
    """The complete steps of a rank in the scope: among its iterations, whole in its window."""
    frame = rank_trace.iterations
    chosen = ~frame["partial"].to_numpy(np.bool_)
    if scope.iterations is not None:
        chosen &= frame["iteration"].isin(scope.iterations).to_numpy(np.bool_)
    if scope.window_ns is not None:
        first, last = scope.window_ns
        chosen &= ((frame["start_ns"] >= first) & (frame["end_ns"] <= last)).to_numpy(np.bool_)
    forwards: dict[int, list[int]] = {}
    for row in _calls(rank_trace, lambda name: name == _WRAPPER).tolist():
        forwards.setdefault(int(rank_trace.iteration[row]), []).append(int(rank_trace.start[row]))
    return Steps(
        tuple(frame.loc[chosen, "iteration"].tolist()), bool(frame["source"].isin(_MARKS).all()), forwards
    )


def messages(trace: Trace, rank: int, steps: Steps, scope: Scope) -> pd.DataFrame:
    """The collectives of a rank's steps, in order of launch. Of the scope only streams and names count.

    Returns:
        One row per communication kernel: iteration int64, process_group str ("" unless recorded), group_size
        Int64, sized bool (whether its size was recorded), message (`Message`, None unless sized).
    """
    rank_trace = trace.rank(rank)
    found = collectives_of(trace, rank, Scope(streams=scope.streams, names=scope.names))
    found = found[found["iteration"].isin(steps.iterations)]
    rows = np.flatnonzero(np.isin(rank_trace.event_id, found["event_id"].to_numpy(np.int64)))
    row_of = dict(zip(rank_trace.event_id[rows].tolist(), rows.tolist(), strict=True))
    places = _Places(rank_trace)
    listed = []
    for evidence in found[_EVIDENCE].to_dict("records"):
        row = row_of[evidence["event_id"]]
        launch = int(rank_trace.launch[row])
        order = int(rank_trace.start[launch if launch >= 0 else row])
        sized = not any(pd.isna(evidence[name]) for name in _SIZES)
        group = "" if pd.isna(evidence["process_group"]) else evidence["process_group"]
        message = _message(evidence, places.of(launch), order) if sized else None
        listed.append((evidence["iteration"], group, evidence["group_size"], sized, order, message))
    listed.sort(key=lambda each: each[4])
    return pd.DataFrame(
        {
            "iteration": np.array([each[0] for each in listed], np.int64),
            "process_group": pd.Series([each[1] for each in listed], dtype=object),
            "group_size": pd.array([each[2] for each in listed], "Int64"),
            "sized": np.array([each[3] for each in listed], np.bool_),
            "message": pd.Series([each[5] for each in listed], dtype=object),
        }
    )


def _message(evidence: Mapping[Hashable, Any], place: str, order_ns: int) -> Message:
    sent, received = int(evidence["in_elements"]), int(evidence["out_elements"])
    kept = received if evidence["collective"] == "reduce_scatter" else sent
    return Message(
        evidence["collective"],
        max(sent, received),
        int(evidence["bytes"]),
        kept,
        evidence["dtype"],
        place,
        order_ns,
    )


class _Places:
    """Finds the part of a step that a call comes from."""

    def __init__(self, rank_trace: RankTrace) -> None:
        self._one = rank_trace
        nodes = _calls(rank_trace, lambda name: name.startswith(_NODE))
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
            if name.startswith(_NODE):
                return HOOK if _ACCUMULATES in name else NODE
            caller = int(rank_trace.parent[caller])
        return HOOK if call >= 0 and int(self._thread[call]) in self._backward else FORWARD


def _calls(rank_trace: RankTrace, fits: Callable[[str], bool]) -> Int64:
    """int64 rows of the host calls and annotations whose name fits, by start."""
    chosen = np.array([fits(name) for name in rank_trace.names] or [False], np.bool_)
    rows = np.flatnonzero(chosen[rank_trace.name] & ~rank_trace.is_device & (rank_trace.stream == NULL))
    return rows[np.argsort(rank_trace.start[rows], kind="stable")]


def _threads(rank_trace: RankTrace) -> Int64:
    return rank_trace.pid.astype(np.int64) * len(rank_trace.tids) + rank_trace.tid
