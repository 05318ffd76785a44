"""Rules about dense gradients of look-ups in tables most rows of which are not looked up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from hta_widgets.analysis.core.claim import say
from hta_widgets.analysis.core.longest import longest_row
from hta_widgets.analysis.findings.call_time import open_time, spans_of
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.host_loss import calls_rule
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.shorter import AboutEvent, matters, shapes_missing, shorter
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.operators.calls import Calls
from hta_widgets.analysis.operators.dense_gradients import dense_gradients, look_ups, making
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

_MOST: Final = 0.5
_ADVICE: Final = (
    "Make these gradients sparse: Embedding(sparse=True) or EmbeddingBag(sparse=True) with SparseAdam, "
    "Adagrad or SGD without momentum updates only rows that were looked up. TorchRec's fused tables do so in "
    "the backward pass."
)
_KNOWN: Final[dict[str, Any]] = {
    "title": "Making dense gradients of embedding tables",
    "label": "Dense gradients",
    "cause": "dense gradients of embedding tables",
    "risk": "Momentum and weight decay no longer reach rows that are not looked up.",
    "needs": "An optimizer for sparse gradients.",
    "wrong_if": "The table has another gradient that is dense, such as weights that are tied to it.",
}


def _work(rank_trace: RankTrace, chosen: Int64) -> tuple[Int64, Int64]:
    """The device work that these operators launch, and the place of the operator of each."""
    mask = np.zeros(rank_trace.n, np.bool_)
    mask[chosen] = True
    calls = Calls(rank_trace, mask)
    launched = calls.owner >= 0
    return calls.work[launched], np.searchsorted(chosen, calls.rows[calls.owner[launched]])


def _left(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    found = dense_gradients(rank_trace)
    if not len(found.rows):
        return found.rows, found.rows
    rows, of = _work(rank_trace, found.rows)
    return rows, np.rint(rank_trace.dur[rows] * (1.0 - found.lost[of])).astype(np.int64)


def _abstain(inputs: Inputs, rank: int) -> None:
    """Without shapes it is unknown how large tables are."""
    rank_trace = inputs.trace.rank(rank)
    if rank_trace.has_argument("input_dims"):
        return
    made = making(rank_trace)
    if len(made) and matters(inputs, rank, _work(rank_trace, made)[0]):
        raise shapes_missing(
            "look-ups have dense gradients; how many of their rows were looked up is unknown"
        )


def dense_on_device(inputs: Inputs) -> Finding | None:
    """Device work that makes such gradients, and that of the optimizer for rows that were not looked up."""
    found = shorter(inputs, _left, _abstain)
    if found is None:
        return None
    rank_trace = inputs.trace.rank(found.worst)
    rows = dense_gradients(rank_trace).rows
    row = longest_row(rank_trace, rows[np.isin(rows, making(rank_trace))])
    table, states = look_ups(rank_trace)[row], AboutEvent(rank_trace, row)
    finding = found.finding(
        inputs,
        say(
            "Gradients of embedding tables are dense, which costs {lost}: making them and updating all rows "
            "takes {taken}, and with sparse gradients {left}.{by} A pass looks up at most {looked_up} of "
            "{rows} rows of the largest.",
            **found.parts(inputs, "dense gradients"),
            looked_up=states("rows_looked_up", table.looked_up, shown=f"{table.looked_up:,}"),
            rows=states("rows_of_table", table.rows, shown=f"{table.rows:,}"),
        ),
        _ADVICE,
        event=row,
    )
    return replace(finding, saves_at_most="at most: rows that are looked up several times are updated once")


def _dense_on_host(rank_trace: RankTrace, thread: int) -> Int64:
    """The operators most of whose work is for rows that are not looked up.

    Without shapes those that take longer to fill a gradient with zeros than to add to it.
    """
    if rank_trace.has_argument("input_dims"):
        found = dense_gradients(rank_trace)
        rows = found.rows[found.lost >= _MOST]
    else:
        rows = making(rank_trace)
        filling = open_time(rank_trace, named(rank_trace, "aten::zero_".__eq__))
        rows = rows[filling.within_each(spans_of(rank_trace, rows)) >= _MOST * rank_trace.dur[rows]]
    return rows[rank_trace.thread[rows] == thread]


RULES = (
    Rule(
        topic="dense_gradients",
        question="whether gradients of look-ups are sparse",
        judge=dense_on_device,
        applies=lambda inputs: inputs.has_operators,
        **_KNOWN,
    ),
    calls_rule(
        "dense",
        _dense_on_host,
        "{who} makes and uses dense gradients of embedding tables {lost}, longest in {name}: it fills and "
        "updates rows that were not looked up.",
        _ADVICE,
        topic="host_dense_gradients",
        **_KNOWN,
    ),
)
