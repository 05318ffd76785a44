"""What `WhatIf` shows of a rank: the answer of `analysis.what_if` in few numbers, and each edit by itself."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.critical_path.what_if import what_if
from hta_widgets.analysis.findings.bar import CLASSES, whole_parts
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.analysis.replay.marginal import marginal_savings
from hta_widgets.analysis.replay.quality import first_trusted, quality_of
from hta_widgets.analysis.replay.speed_map import SPEEDS
from hta_widgets.analysis.replay.what_if import PARTS
from hta_widgets.analysis.replay.what_if import replayed as replayed_steps
from hta_widgets.charts.svg import Bar, PanelPicture
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import counted, duration, in_words
from hta_widgets.timeline import Packed
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.replay_codec import pack
from hta_widgets.widgets.what_if_controls import (
    CONTROLS,
    change_in_words,
    described,
    edits_of,
    effect_of,
    settings_of,
    time_class,
    words_of,
)

MOST_NODES = 500_000
"""A larger graph stays in Python: the browser would answer too slowly."""

_LABELS = (
    ("Compute", "compute"),
    ("Exposed communication", "communication"),
    ("Exposed memory", "memory"),
    ("Idle", "idle"),
)
"""Of `PARTS`: names and classes of time."""
_MOST_NAMED = 2


class Replayed(NamedTuple):
    """What the view shows."""

    # facts about the replay of the rank, whatever the edits are; of a whole job `job`, what is timed, and no
    # rank
    about: dict[str, Any]
    # the sliders and switches, as `what_if_controls.described` gives them; none of a whole job
    controls: list[dict[str, Any]]
    # times in ns, as recorded and after the edits (``js/src/replay/answer.ts`` has the same)
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
    links, made = _chain(trace, rank, edits, graph.extent)
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
        "chain": links,
        "step": _step(rank_trace, steps[steps["iteration"].notna()], links, made),
    }
    return Replayed(about, controls, answer)


def packed_graph(rank_trace: RankTrace) -> Packed:
    """The graph for the browser, of a rank that `replayed` answered for."""
    return _sent(rank_trace)[1]


def headline(answer: dict[str, Any]) -> str:
    """The answer in a line, as the screen has it: of a step where one is timed, else of the recording."""
    step = answer["step"]
    per = "per step" if step or not answer["parts_before"] else "for the recording"
    before, after = (duration((step or answer)[name]) for name in ("before", "after"))
    made = [*words_of(answer["settings"]), *map(change_in_words, answer["further"])]
    if not made:
        return f"{before} {per}, as recorded"
    if len(made) > _MOST_NAMED:
        made = [*made[:_MOST_NAMED], counted(len(made) - _MOST_NAMED, "more change")]
    number, _, unit = before.partition(" ")
    times = after if before == after else f"{number if after.endswith(f' {unit}') else before} → {after}"
    return f"{times} {per} with {in_words(made)}"


def pictured(answer: dict[str, Any], message: str) -> PanelPicture:
    """The answer as a panel of a static picture; `message`: why there is none."""
    if message:
        return PanelPicture("What if", message)
    bars, shown = [], answer["step"] or answer
    for name, whole in (("recorded", "before"), ("after", "after")) if shown["parts_before"] else ():
        times = zip(_LABELS, shown[f"parts_{whole}"], strict=True)
        parts = [(label, time_class, float(time)) for (label, time_class), time in times]
        bars.append(Bar(name, parts, duration(shown[whole])))
    return PanelPicture("What if", f"{headline(answer)}.", bars)


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
            "label": change_in_words(edit.expression),
            "expression": edit.expression,
            "bound": edit.bound,
            "time_class": time_class(edit),
        }
        links.append({**link, "alone": alone[edit.expression], "together": together})
    return links


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


def _step(
    rank_trace: RankTrace, steps: pd.DataFrame, links: Sequence[dict[str, Any]], made: Sequence[Edit]
) -> dict[str, Any] | None:
    """The mean step as the recording is answered; None without any, or where a change hides one.

    One clock times the steps under all changes, so that what these save adds up.
    """
    if steps.empty:
        return None
    clock = str(steps["clock"].iloc[0])

    def timed(edits: Sequence[Edit], parts: bool = False) -> pd.DataFrame:
        rows = replayed_steps(rank_trace, tuple(edits), clock, parts)
        return rows[rows["iteration"].isin(steps["iteration"])]

    alone = [timed([edit]) for edit in made]
    after = [timed(made[: at + 1]) for at in range(len(made))]
    if any(len(rows) < len(steps) for rows in (*alone, *after)):
        return None
    times = {name: _mean(steps, name) for name in ("before", "low", "after", "high")}
    return {
        **times,
        "parts_before": _parts(timed((), parts=True), times["before"]),
        "parts_after": _parts(steps, times["after"]),
        "chain": [
            {**link, "alone": _mean(one, "after"), "together": _mean(all_, "after")}
            for link, one, all_ in zip(links, alone, after, strict=True)
        ],
        "count": len(steps),
        "clock": clock,
    }


def _mean(steps: pd.DataFrame, name: str) -> int:
    return round(float(steps[f"{name}_ns"].mean()))


def _parts(steps: pd.DataFrame, whole: int) -> list[int]:
    """The mean of each part of the steps, which add up to the whole."""
    classes = CLASSES[: len(PARTS)]  # of a device
    means = {name: float(steps[part].mean()) for name, part in zip(classes, PARTS, strict=True)}
    return list(whole_parts(means, whole).values())


def _chain(
    trace: Trace, rank: int, edits: Sequence[Edit], before: int
) -> tuple[list[dict[str, Any]], list[Edit]]:
    """Of each edit in greedy order, how long the recording takes with it alone, and with those before it."""
    settings, further = settings_of(edits)
    made = [*edits_of(settings), *further]
    names = [control.name for control in CONTROLS if control.name in settings] + [""] * len(further)
    rows = marginal_savings(trace, made, Scope(ranks=(rank,))).to_dict("records")
    links = [
        {
            "name": names[row["change"]],
            "expression": row["edits"],
            "bound": row["bound"],
            "time_class": time_class(made[row["change"]]),
            "alone": before - row["alone_ns"],
            "together": before - row["together_ns"],
        }
        for row in rows
    ]
    return links, [made[row["change"]] for row in rows]
