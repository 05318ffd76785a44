"""What `WhatIf` shows of a rank: the answer of `analysis.what_if` in few numbers, and each edit by itself."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.critical_path.what_if import what_if
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.analysis.replay.marginal import marginal_savings
from hta_widgets.analysis.replay.quality import first_trusted, quality_of
from hta_widgets.analysis.replay.speed_map import SPEEDS
from hta_widgets.analysis.replay.what_if import PARTS
from hta_widgets.charts.svg import Bar, PanelPicture
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import counted, duration, percent
from hta_widgets.timeline import Packed
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.replay_codec import pack
from hta_widgets.widgets.what_if_controls import (
    CONTROLS,
    described,
    edits_of,
    effect_of,
    settings_of,
    time_class,
)

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

MOST_NODES = 500_000
"""A larger graph stays in Python: the browser would answer too slowly."""

_LABELS = (
    ("Compute", "compute"),
    ("Exposed communication", "communication"),
    ("Exposed memory", "memory"),
    ("Idle", "idle"),
)
"""Of `PARTS`: names and classes of time."""


class Replayed(NamedTuple):
    """What the view shows.

    Attributes:
        about: facts about the replay of the rank, whatever the edits are; of a whole job `job`, what is
            timed, and no rank.
        controls: the sliders and switches, as `what_if_controls.described` gives them; none of a whole job.
        answer: times in ns, as recorded and after the edits (``js/src/replay/answer.ts`` has the same).
    """

    about: dict[str, Any]
    controls: list[dict[str, Any]]
    answer: dict[str, Any]


def replayed(trace: Trace, scope: Scope, edits: Sequence[Edit]) -> Replayed:
    """The replay of a rank under edits; under edits of several ranks, of the whole job.

    Args:
        trace: the job.
        scope: the rank: of several the first that can be answered for; and which steps are told.
        edits: made together.

    Raises:
        MissingDataError: the rank has no device work, or its replay cannot be trusted; of a job as `what_if`.
        ValueError: as `what_if`.
    """
    if any(edit.across for edit in edits):
        return _job_replayed(trace, scope, edits)
    ranks = trace.ranks_of(scope)
    if not ranks:
        raise MissingDataError("device events", RECORD_DEVICE)
    rank = first_trusted(trace, ranks)
    recorded, frame = (what_if(trace, made, Scope(ranks=(rank,))) for made in ((), edits))
    steps = what_if(trace, edits, replace(scope, ranks=(rank,)))
    rank_trace = trace.rank(rank)
    graph, quality = graph_of(rank_trace), quality_of(rank_trace)
    assert graph is not None and quality is not None  # there is an answer
    controls, packed = _sent(rank_trace)
    about = {
        "rank": rank,
        "nodes": len(graph.time),
        "live": len(graph.time) <= MOST_NODES,
        "graph": zlib.crc32(packed.data),
        "model_error_pct": quality.model_error_pct,
        "inferred": quality.inferred,
        "edges": quality.edges,
        "speeds": list(SPEEDS),
    }
    answer = {
        **_answer(edits, recorded, frame),
        "step": _median(steps[steps["iteration"].notna()]),
        "chain": _chain(trace, rank, edits, graph.extent),
    }
    return Replayed(about, controls, answer)


def packed_graph(rank_trace: RankTrace) -> Packed:
    """The graph for the browser, of a rank that `replayed` answered for."""
    return _sent(rank_trace)[1]


def sentence(answer: dict[str, Any]) -> str:
    """The answer in words."""
    before, after = answer["before"], answer["after"]
    if not answer["chain"]:
        return f"The recording takes {duration(before)}. Nothing is changed."
    what = "recording" if answer["parts_before"] else "job's step"
    text = f"The {what} would take {duration(after)} instead of {duration(before)}: {_change(before, after)}."
    step = answer["step"]
    if step is not None:
        text += f" A step: {duration(step['after'])} instead of {duration(step['before'])} (median)."
    return text


def pictured(answer: dict[str, Any], message: str) -> PanelPicture:
    """The answer as a panel of a static picture; `message`: why there is none."""
    bars = []
    timed = not message and answer["parts_before"]
    for name, whole in (("recorded", "before"), ("after", "after")) if timed else ():
        times = zip(_LABELS, answer[f"parts_{whole}"], strict=True)
        parts = [(label, time_class, float(time)) for (label, time_class), time in times]
        bars.append(Bar(name, parts, duration(answer[whole])))
    return PanelPicture("What if", message or sentence(answer), bars)


def _job_replayed(trace: Trace, scope: Scope, edits: Sequence[Edit]) -> Replayed:
    """A step of all selected ranks under edits of several ranks: until the last ends it, the median."""
    frame = what_if(trace, edits, scope)
    if frame.empty:
        raise MissingDataError(
            "step that all ranks recorded", "Record the same steps on every rank, or select others."
        )
    ranks, steps = (frame[column].nunique() for column in ("rank", "iteration"))
    about = {
        "job": f"Step of {counted(ranks, 'rank')}" + (f", median of {steps}" if steps > 1 else ""),
        "live": False,
        "model_error_pct": float(frame["model_error_pct"].abs().max()),
    }
    answer: dict[str, Any] = {
        "settings": {},
        "further": [edit.expression for edit in edits],
        **_job_step(frame),
        "parts_before": [],
        "parts_after": [],
        "step": None,
        "chain": _job_chain(trace, scope, edits),
    }
    return Replayed(about, [], answer)


def _job_step(frame: pd.DataFrame) -> dict[str, int]:
    """How long the step takes until its last rank ends it: the medians over the steps."""
    steps = frame.groupby("iteration")
    return {name: int(steps[f"{name}_ns"].max().median()) for name in ("before", "low", "after", "high")}


def _job_chain(trace: Trace, scope: Scope, edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """As `_chain`, of a whole job."""

    def takes(made: Sequence[Edit]) -> int:
        return _job_step(what_if(trace, made, scope))["after"]

    alone = {edit.expression: takes([edit]) for edit in edits}
    left, made, links = list(edits), list[Edit](), []
    while left:
        with_it = [takes([*made, edit]) for edit in left]
        together = min(with_it)
        edit = left.pop(with_it.index(together))
        made.append(edit)
        link = {
            "name": "",
            "expression": edit.expression,
            "bound": edit.bound,
            "time_class": time_class(edit),
        }
        links.append({**link, "alone": alone[edit.expression], "together": together})
    return links


def _change(before: int, after: int) -> str:
    if before == after:
        return "no change"
    share = percent(100.0 * abs(after - before) / max(before, 1))
    return f"{share} {'less' if after < before else 'more'}"


@memoize_per_rank()
def _sent(rank_trace: RankTrace) -> tuple[list[dict[str, Any]], Packed]:
    """The controls of a rank, and its graph for the browser."""
    graph = graph_of(rank_trace)
    assert graph is not None
    effects = {control.name: effect_of(control, graph, rank_trace) for control in CONTROLS}
    controls = [described(control, effects[control.name]) for control in CONTROLS]
    cuts = {name: effect.cut for name, effect in effects.items() if len(effect.cut[0])}
    data = zlib.compress(pack(graph, rank_trace, cuts)) if len(graph.time) <= MOST_NODES else b""
    return controls, Packed({}, data)


def _answer(edits: Sequence[Edit], recorded: pd.DataFrame, frame: pd.DataFrame) -> dict[str, Any]:
    whole = frame[frame["iteration"].isna()].iloc[0]
    settings, further = settings_of(edits)
    return {
        "settings": settings,
        "further": [edit.expression for edit in further],
        "before": int(whole["before_ns"]),
        "low": int(whole["low_ns"]),
        "after": int(whole["after_ns"]),
        "high": int(whole["high_ns"]),
        "parts_before": [int(recorded[part].iloc[0]) for part in PARTS],
        "parts_after": [int(whole[part]) for part in PARTS],
    }


def _median(steps: pd.DataFrame) -> dict[str, Any] | None:
    """A step's times, of several the medians; None without any."""
    if steps.empty:
        return None
    times = {name: int(steps[f"{name}_ns"].median()) for name in ("before", "low", "after", "high")}
    return {**times, "count": len(steps), "clock": str(steps["clock"].iloc[0])}


def _chain(trace: Trace, rank: int, edits: Sequence[Edit], before: int) -> list[dict[str, Any]]:
    """Of each edit in greedy order: how long the recording takes with it alone, and with those before it."""
    settings, further = settings_of(edits)
    made = [*edits_of(settings), *further]
    names = [control.name for control in CONTROLS if control.name in settings] + [""] * len(further)
    return [
        {
            "name": names[row["change"]],
            "expression": row["edits"],
            "bound": row["bound"],
            "time_class": time_class(made[row["change"]]),
            "alone": before - row["alone_ns"],
            "together": before - row["together_ns"],
        }
        for row in marginal_savings(trace, made, Scope(ranks=(rank,))).to_dict("records")
    ]
