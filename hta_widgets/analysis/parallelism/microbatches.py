"""The passes of microbatches through one stage of a pipeline, told apart by what the stage exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

FORWARD: Final = "F"
BACKWARD: Final = "B"
WEIGHTS: Final = "W"
"""The gradients of weights, where they are computed apart from those of the inputs."""

_BACKWARD, _OPTIMIZER = PHASES.index("backward"), PHASES.index("optimizer")
_NO_WORK = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)
_NEGLIGIBLE = 0.05
"""Work of less than this share of the median pass of its kind is no pass: bookkeeping between passes."""


@dataclass(frozen=True)
class Passes:
    """What one rank ran of the microbatches of one step, in the order of launch; ns by the rank's clock.

    Attributes:
        kind: "F", "B" or "W" of each pass.
        start, end: of each pass, from its first kernel to its last.
        computing: when its kernels ran, of all passes together.
        enters: whether microbatches enter the pipeline here: the step's first exchange is a send.
    """

    kind: npt.NDArray[np.str_]
    start: Int64
    end: Int64
    computing: Intervals
    enters: bool

    @property
    def order(self) -> str:
        """Forward and backward in the order of launch, such as "FFBFBB"."""
        return "".join(self.kind[self.kind != WEIGHTS])


def passes_of(rank_trace: RankTrace, exchanged: pd.DataFrame, within: Int64) -> dict[int, Passes]:
    """The passes of a rank by step.

    Autograd's thread and operators tell backward from forward (`calls.phases`). What stages exchange is
    launched between passes, so two kernels of one direction with a send or a receive launched in between
    belong to different passes. After its backward a stage sends the gradients of its inputs; a backward pass
    that is not followed by a send computes the gradients of weights. Where microbatches enter, and therefore
    a step begins with a send, a stage need not send any, and the two are one kind.

    Args:
        exchanged: the rank's sends and receives with other stages: event_id, collective.
        within: event ids of the communication that belongs to passes, such as all-reduces of activations.
    """
    frame = rank_trace.iterations
    whole = frame.loc[~frame["partial"], "iteration"].to_numpy(np.int64)
    rows = np.flatnonzero(
        rank_trace.is_device & (rank_trace.launch >= 0) & np.isin(rank_trace.iteration, whole)
    )
    event_class = rank_trace.event_class[rows]
    work = ~np.isin(event_class, _NO_WORK)
    work &= (event_class != EventClass.COMMUNICATION) | np.isin(rank_trace.event_id[rows], within)
    phase = phases(rank_trace).of[rank_trace.launch[rows]]
    rows, phase = rows[work & (phase != _OPTIMIZER)], phase[work & (phase != _OPTIMIZER)]
    posts = _posts(rank_trace, exchanged)
    work_frame = pd.DataFrame(
        {
            "step": rank_trace.iteration[rows].astype(np.int64),
            "backward": phase == _BACKWARD,
            "called": rank_trace.start[rank_trace.launch[rows]],
            "start": rank_trace.start[rows],
            "end": rank_trace.end[rows],
            "computes": rank_trace.event_class[rows] != EventClass.COMMUNICATION,
        }
    )
    work_frame["posts"] = np.searchsorted(posts["called"], work_frame["called"], side="right")
    return {
        int(str(step)): found
        for step, part in work_frame.groupby("step")
        if (found := _of_step(part, posts, int(str(step)))) is not None
    }


def _posts(rank_trace: RankTrace, exchanged: pd.DataFrame) -> pd.DataFrame:
    """step, called, sends of a rank's sends and receives, by the time of their call."""
    rows = np.searchsorted(rank_trace.event_id, exchanged["event_id"].to_numpy(np.int32))
    launch = rank_trace.launch[rows]
    posts = pd.DataFrame(
        {
            "step": rank_trace.iteration[rows].astype(np.int64),
            "called": np.where(launch >= 0, rank_trace.start[launch], rank_trace.start[rows]),
            "sends": (exchanged["collective"] != "recv").to_numpy(),
        }
    )
    return posts.sort_values("called", kind="stable", ignore_index=True)


def _of_step(work: pd.DataFrame, posts: pd.DataFrame, step: int) -> Passes | None:
    own = posts["sends"][posts["step"] == step]
    enters = bool(own.iloc[0]) if len(own) else True
    grouped = work.groupby(["posts", "backward"])
    found = grouped.agg(called=("called", "min"), start=("start", "min"), end=("end", "max"))
    found["busy"] = (work["end"] - work["start"]).groupby([work["posts"], work["backward"]]).sum()
    found = found.reset_index().sort_values(["called", "posts"], kind="stable", ignore_index=True)
    found = found[_is_pass(found, int((posts["step"] < step).sum()), enters)].reset_index(drop=True)
    if found.empty:
        return None
    kept = work.merge(found[["posts", "backward"]], on=["posts", "backward"])
    kept = kept[kept["computes"]]
    sends = np.concatenate([[0], np.cumsum(posts["sends"].to_numpy(np.int64))])
    until = np.append(found["posts"].to_numpy(np.int64)[1:], int((posts["step"] <= step).sum()))
    sent = sends[until] > sends[found["posts"].to_numpy(np.int64)]
    backward = found["backward"].to_numpy(np.bool_)
    kind = np.where(backward, np.where(sent | enters, BACKWARD, WEIGHTS), FORWARD)
    return Passes(
        kind, found["start"].to_numpy(np.int64), found["end"].to_numpy(np.int64),
        Intervals.union(kept["start"].to_numpy(np.int64), kept["end"].to_numpy(np.int64)), enters,
    )  # fmt: skip


def _is_pass(found: pd.DataFrame, before: int, enters: bool) -> npt.NDArray[np.bool_]:
    """Which work is of a microbatch, given the number of exchanges in earlier steps.

    Not what follows the last backward, nor what a later stage does before it has posted a receive.
    """
    backward = found["backward"].to_numpy(np.bool_)
    last = np.flatnonzero(backward).max(initial=-1)
    kept: npt.NDArray[np.bool_] = np.arange(len(found)) <= last
    if not enters:
        kept &= backward | (found["posts"].to_numpy(np.int64) > before)
    typical = found["busy"].groupby(found["backward"]).transform("median")
    kept &= (found["busy"] >= _NEGLIGIBLE * typical).to_numpy(np.bool_)
    return kept
