"""What a timeline shows: slices at their recorded times, or where a replay puts them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.passes import ESTIMATE
from hta_widgets.analysis.replay.placement import every_thread
from hta_widgets.analysis.replay.quality import trusted_ranks
from hta_widgets.analysis.replay.replayed_events import replayed_places
from hta_widgets.analysis.replay.what_if import planned
from hta_widgets.analysis.replay.windows import replayed_iterations
from hta_widgets.engine import checkpoint
from hta_widgets.formatting import counted
from hta_widgets.timeline import (
    Lanes,
    Packed,
    Pyramid,
    build_lanes,
    doubtful,
    lanes_of,
    outline,
    pack_json,
    pack_slices,
    pyramid_of,
)
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.counter_questions import CounterQuestions
from hta_widgets.widgets.rank_labels import lane_labels
from hta_widgets.widgets.timeline_questions import Questions

Window = tuple[int, int]


@dataclass(frozen=True)
class Content:
    """What the browser requests, computed once in a worker thread."""

    lanes: Lanes
    questions: Questions
    meta: Packed
    base: Packed | None  # all slices; None where the kernel answers windows instead
    pyramid: Pyramid | None
    note: str = ""  # what the times are, where they are not the recorded ones
    moved: Callable[[Window], Window] = lambda window: window  # where a window of recorded time lies
    counters: CounterQuestions | None = None  # answers about counters, which only recorded times have
    windows: OrderedDict[tuple[Any, ...], Packed] = field(default_factory=OrderedDict)  # answered last


def recorded_content(trace: Trace, client_slices: int, python_apart: bool = False) -> Content:
    """All ranks, as recorded."""
    lanes = lanes_of(trace, checkpoint, python_apart)
    meta, base = _packed(trace, lanes, trace.iterations, client_slices)
    pyramid = pyramid_of(trace, lanes, checkpoint, python_apart) if base is None else None
    counters = CounterQuestions(trace, lanes)
    return Content(lanes, Questions(trace, lanes), meta, base, pyramid, counters=counters)


def replayed_content(
    trace: Trace, edits: tuple[Edit, ...], client_slices: int, python_apart: bool = False
) -> Content:
    """The ranks whose replay can be trusted, where it puts their events.

    Raises:
        MissingDataError: no rank has device work, or the replay of none can be trusted.
    """
    numbers = trusted_ranks(trace, trace.ranks)
    ranks, times, frames = [trace.rank(number) for number in numbers], {}, []
    for rank_trace in ranks:
        checkpoint()
        found = replayed_places(rank_trace, edits)
        times[rank_trace.rank] = (found.start, found.end)
        plan = planned(rank_trace, edits)
        happens = plan.replay(ESTIMATE)
        frame = replayed_iterations(rank_trace, plan.graph, happens, rank_trace.iteration_clock, plan.moved)
        frames.append(frame[frame["start_ns"] >= 0].assign(rank=rank_trace.rank))
        if len(frames) == 1:
            line = every_thread(plan, happens)

    def moved(window: Window) -> Window:
        start, end = line.starts(np.array(window[:1])), line.ends(np.array(window[1:]))
        return int(start[0]), max(int(end[0]), int(start[0]) + 1)

    lanes = build_lanes(ranks, checkpoint, times, python_apart)
    meta, base = _packed(trace, lanes, pd.concat(frames), client_slices)
    pyramid = Pyramid(lanes, checkpoint) if base is None else None
    left_out = len(trace.ranks) - len(numbers)
    note = "Replayed times" + (
        f"; {counted(left_out, 'rank')} cannot be replayed and {'are' if left_out > 1 else 'is'} not shown"
        if left_out else ""
    )  # fmt: skip
    return Content(lanes, Questions(trace, lanes, edits), meta, base, pyramid, note, moved)


def _packed(
    trace: Trace, lanes: Lanes, iterations: pd.DataFrame, client_slices: int
) -> tuple[Packed, Packed | None]:
    whole = lanes.n <= client_slices
    labels = lane_labels(trace, dict.fromkeys(track.rank for track in lanes.tracks))
    outlined = outline(lanes, labels, iterations)
    outlined["mode"] = "client" if whole else "kernel"
    outlined["doubtful"] = [] if outlined["replayed"] else doubtful(trace, lanes)
    return pack_json(outlined), pack_slices(lanes) if whole else None
