"""The rule about operators whose threads wait for cores.

An operator of the CPU ends when the last of its threads has. Where more threads run than cores are free, that
one first waits for its turn, which is milliseconds long, however little there is to compute. Which calls that
hits is chance: it is seen in calls that usually take far less at the same place of the step.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.nesting import nest
from hta_widgets.analysis.findings.call_time import open_time, own_time, spans_of
from hta_widgets.analysis.findings.host_loss import calls_rule
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

_STEPS: Final = 4
"""Of fewer, what is usual is not known."""
_USUAL: Final = 0.25
"""The quantile of the steps: of a call that waits in most of them, too, it is how long that computes."""
_TIMES: Final = 10
TURN_NS: Final = 1_000_000
_SEVERAL: Final = 3
"""Operators: what is slow now and then in only one of them may be its own."""
_MOST_CALLS: Final = 0.25
_MOST_OF_KIND: Final = 0.5
"""Of the calls of an operator in a step: with larger inputs all take longer, in attention far longer."""
_LEAST: Final = 0.6
"""Of the time of operators: with less, what they compute is the first thing to look at."""


def stalled(rank_trace: RankTrace, thread: int) -> Int64:
    """The same where they are most of what the thread does in operators."""
    found, part = interrupted(rank_trace, thread)
    return found if part >= _LEAST else found[:0]


def interrupted(rank_trace: RankTrace, thread: int) -> tuple[Int64, float]:
    """Calls of a thread that take ten times as long as usual, and their part of the time of all.

    None where something else may be the reason: what some steps do beyond others, such as to compile, hits
    one or two steps; other inputs hit all calls of an operator in a step.
    """
    rows = (rank_trace.event_class == EventClass.HOST_OP) & (rank_trace.iteration >= 0)
    at = np.flatnonzero(rows & (rank_trace.thread == thread))
    at = at[np.argsort(rank_trace.start[at], kind="stable")]
    start, end = rank_trace.start[at], rank_trace.end[at]
    around = nest(start, end, np.zeros(len(at), np.int64), np.zeros(len(at), np.int8))
    own = own_time(open_time(rank_trace, at), spans_of(rank_trace, at), around)
    calls = pd.DataFrame({"step": rank_trace.iteration[at], "name": rank_trace.name[at], "own": own})
    of_step = calls.groupby(["step", "name"])
    calls["place"], calls["count"] = of_step.cumcount(), of_step["own"].transform("size")
    has_shapes = rank_trace.has_argument("input_dims")
    calls["inputs"] = rank_trace.argument_codes("input_dims")[at] if has_shapes else 0
    whole, call = calls["own"].sum(), ["name", "count", "place", "inputs"]
    calls = calls[calls.groupby(call)["own"].transform("size") >= _STEPS]
    usual = calls.groupby(call)["own"].quantile(_USUAL, interpolation="lower").rename("usual")
    slow = calls[calls["own"] >= TURN_NS].join(usual, call)
    slow = slow[slow["own"] >= _TIMES * slow["usual"]]
    by_chance = (
        slow["name"].nunique() >= _SEVERAL
        and 2 * slow["step"].nunique() > calls["step"].nunique()
        and len(slow) <= _MOST_CALLS * len(calls)
        and len(slow) <= _MOST_OF_KIND * slow.drop_duplicates(["step", "name"])["count"].sum()
    )
    return (at[slow.index], float(slow["own"].sum() / whole)) if by_chance else (at[:0], 0.0)


RULE = calls_rule(
    "stalled",
    stalled,
    "{who} is in unusually long calls {lost}. They take ten times as long as usual, most time in {name}. "
    "Calls of all kinds do so, now one, now another, as where threads wait for cores.",
    "Run no more threads than cores are free: OMP_NUM_THREADS or torch.set_num_threads for operators, fewer "
    "ranks, DataLoader workers and other programs beside them. A container may have fewer cores than PyTorch "
    "counts.",
    topic="host_contention",
    title="Waiting for free cores",
    label="Waits for cores",
    cause="threads that wait for cores",
    risk="Where cores are free, operators take longer with fewer threads.",
    needs="Control of the programs and threads that share the machine.",
    wrong_if="These calls have more to compute now and then, or memory is short.",
)
