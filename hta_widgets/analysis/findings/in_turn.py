"""What the changes of findings save one after the other, each on top of those before, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.judged_time import judged_scope
from hta_widgets.analysis.findings.replayed_job import replayed_job
from hta_widgets.analysis.job.edited import edited_job
from hta_widgets.analysis.job.trusted import trusted_model
from hta_widgets.analysis.replay.expressions import parse_all
from hta_widgets.analysis.replay.what_if import PARTS, replayed
from hta_widgets.errors import MissingDataError
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

AMONG_RANKS: Final = "ranks as fast as they are on average"
"""In place of edits: the repair of the ranks that the replay of the job names."""

_COLUMNS = {"saved_pct": "float64", **{name.replace("_ns", "_pct"): "float64" for name in PARTS}}


@dataclass(frozen=True)
class InTurn:
    """What changes save, in % of the judged time."""

    saved_pct: tuple[float, ...]  # what each change and all before it save together
    # where the time goes that is left, by class (compute, communication, memory, idle), in parts of it; empty
    # where no replay says so
    left: dict[str, float]


def in_turn(trace: Trace, scope: Scope, rank: int | None, changes: Sequence[str]) -> InTurn | None:
    """What changes save one after the other; None where they cannot be replayed together.

    Args:
        trace: the job.
        scope: what findings are asked about.
        rank: the rank to replay; None: all together.
        changes: the edits of each, as `overview` writes them, or `AMONG_RANKS`.
    """
    if not changes:
        return None
    try:
        frame = _in_turn(trace, scope, -1 if rank is None else rank, tuple(changes))
    except (MissingDataError, ValueError):  # an edit that this rank, or a job, cannot have
        return None
    if frame.empty:
        return None
    saved = np.maximum.accumulate(np.maximum(frame["saved_pct"].to_numpy(np.float64), 0.0))
    last = frame.iloc[-1]
    parts = {name: float(last[name]) for name in list(_COLUMNS)[1:]}
    whole = sum(parts.values())
    names = ("compute", "communication", "memory", "idle")
    left = dict(zip(names, (part / whole for part in parts.values()), strict=True)) if whole > 0 else {}
    return InTurn(tuple(saved.tolist()), left)


@kept()
def _in_turn(
    trace: Trace, scope: Scope | None = None, rank: int = -1, changes: tuple[str, ...] = ()
) -> pd.DataFrame:
    """A row per change: what it and all before it save (%), and in the last one the parts of what is left.

    Kept, since it is asked of every job that is opened, and takes graphs and replays.
    """
    scope = scope or Scope()
    rows = _of_job(Inputs(trace, scope), changes) if rank < 0 else _of_rank(trace, scope, rank, changes)
    return typed_frame(rows, _COLUMNS)


def _of_rank(trace: Trace, scope: Scope, rank: int, changes: tuple[str, ...]) -> list[dict[str, float]]:
    judged = judged_scope(trace, scope).iterations
    made = [parse_all(text) for text in changes]
    together = [tuple(edit for edits in made[: at + 1] for edit in edits) for at in range(len(made))]
    rank_trace = trace.rank(rank)
    last = replayed(rank_trace, together[-1], parts=True)
    clock = str(last["clock"].iloc[-1])  # by which all are compared
    rows = [_judged(judged, replayed(rank_trace, edits, clock)) for edits in together[:-1]]
    rows = [*rows, _judged(judged, last)]
    if any(each.empty for each in rows):
        return []
    found = []
    for each in rows:
        before, after = int(each["before_ns"].sum()), int(each["after_ns"].sum())
        found.append({"saved_pct": 100.0 * (before - after) / before if before else 0.0})
    whole = int(rows[-1]["before_ns"].sum())
    parts = {name: 100.0 * int(rows[-1][name].sum()) / whole if whole else 0.0 for name in PARTS}
    found[-1] |= {name.replace("_ns", "_pct"): part for name, part in parts.items()}
    return found


def _judged(steps: tuple[int, ...] | None, rows: pd.DataFrame) -> pd.DataFrame:
    """The steps that are judged; the whole recording where none are."""
    iteration = rows["iteration"].to_numpy(np.int64, na_value=NULL)
    return rows.loc[iteration == NULL if steps is None else np.isin(iteration, steps)]


def _of_job(inputs: Inputs, changes: tuple[str, ...]) -> list[dict[str, float]]:
    """Of all ranks together, among them the repair of late ones, as `slowdown` has it."""
    job = replayed_job(inputs)
    if job is None:
        return []
    model = trusted_model(inputs.trace, inputs.scope.ranks, inputs.scope.iterations)
    found, texts, repaired = [], list[str](), False
    for change in changes:
        repaired |= change == AMONG_RANKS
        texts += [change] if change != AMONG_RANKS else []
        edited = edited_job(inputs.trace, model, tuple(edit for text in texts for edit in parse_all(text)))
        if not repaired:
            time = edited.time(())
        elif job.kind == "communication":
            time = edited.time((), transfers=True)
        else:
            time = edited.time(job.ranks or None)
        found.append({"saved_pct": 100.0 * (model.total - time) / model.total})
    return found
