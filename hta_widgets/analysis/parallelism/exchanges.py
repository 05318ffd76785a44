"""Tokens on their way to experts and back: the pairs of all-to-alls of a rank."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.parallelism.process_groups import ProcessGroup, splits_of
from hta_widgets.trace.model import Trace

_BACKWARD = PHASES.index("backward")
_SPLITS = ["in_splits", "out_splits"]


def exchanges(trace: Trace, group: ProcessGroup) -> pd.DataFrame:
    """Each dispatch of a group with its combine, which sends back what came, in the same direction of a step.

    The all-to-all that returns the results of the experts has the splits of the one before the other way
    round. So has the backward of an all-to-all, such as that of sharded embeddings, but it is launched in
    backward, and both of a pair are launched in forward, or both in backward. Splits of integers, which tell
    the others how many tokens come, and equal splits, which PyTorch does not list, are no tokens.

    Returns:
        One row per pair, by rank and start: rank, iteration, dispatch_id, combine_id (int64, events), tokens
        (Int64, rows received by the dispatch; NA where the list was cut), elements (Int64), backward (bool).
    """
    tokens = group.traffic[
        group.traffic["collective"].eq("all_to_all")
        & group.traffic["dtype"].str.contains("Half|Float|Double", na=False)
        & group.traffic["iteration"].notna()
    ]
    tokens = tokens[
        ~tokens[_SPLITS].isin(["[]", "", '"[]"']).any(axis=1) & tokens[_SPLITS].notna().all(axis=1)
    ]
    parts = [_of_rank(trace, int(str(rank)), rows) for rank, rows in tokens.groupby("rank")]
    return pd.concat(parts, ignore_index=True) if parts else _frame([])


def routes_tokens(trace: Trace, group: ProcessGroup) -> bool:
    """Whether a group sends tokens to experts: in unequal splits, there and at once back."""
    lists = group.traffic["in_splits"].dropna().unique()
    if all(len(set(splits_of(text))) < 2 for text in lists):
        return False
    return len(exchanges(trace, group)) > 0


def _of_rank(trace: Trace, rank: int, rows: pd.DataFrame) -> pd.DataFrame:
    backward = _backward(trace, rank, rows["event_id"].to_numpy(np.int64))
    each = list(
        rows[["iteration", "event_id", *_SPLITS, "in_elements", "out_elements"]].itertuples(index=False)
    )
    pairs: list[tuple[object, ...]] = []
    at = 0
    while at + 1 < len(each):
        there, back = each[at], each[at + 1]
        fits = (
            (there.in_splits, there.in_elements, there.iteration)
            == (back.out_splits, back.out_elements, back.iteration)
            and (there.out_splits, there.out_elements) == (back.in_splits, back.in_elements)
            and backward[at] == backward[at + 1]
        )
        if fits:
            splits = splits_of(str(there.out_splits))
            pairs.append(
                (
                    rank, there.iteration, there.event_id, back.event_id,
                    sum(splits) if splits else None, there.out_elements, bool(backward[at]),
                )
            )  # fmt: skip
        at += 2 if fits else 1
    return _frame(pairs)


def _backward(trace: Trace, rank: int, events: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of the events are launched in backward."""
    rank_trace = trace.rank(rank)
    launch = rank_trace.launch[np.searchsorted(rank_trace.event_id, events.astype(np.int32))]
    return (launch >= 0) & (phases(rank_trace).of[launch] == _BACKWARD)


def _frame(pairs: list[tuple[object, ...]]) -> pd.DataFrame:
    kinds = {
        "rank": "int64", "iteration": "int64", "dispatch_id": "int64", "combine_id": "int64",
        "tokens": "Int64", "elements": "Int64", "backward": "bool",
    }  # fmt: skip
    return pd.DataFrame(pairs, columns=list(kinds)).astype(kinds)
