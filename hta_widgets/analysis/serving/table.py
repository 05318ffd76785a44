"""The steps of a server on one rank: what each computes, and when the device works for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import device_work
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.serving.absence import without_requests
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.graph_replays import GRAPH_LAUNCH
from hta_widgets.trace.ordering import among
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.step_names import ServingStep, serving_step

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

LIKE_DECODE = ("decode", "verify", "draft", "diffusion")
"""Phases whose steps come again and again with the same batch."""

# A run of steps is steady while its batch stays within this share of the run's largest.
_STEADY = 0.9
# The annotations of a step that two layers of an engine name.
_TWICE = 2

_LABELLED = ("phase", "batch_size", "tokens", "padded", "prompts", "prompt_tokens", "kv_tokens",
             "decode_kv_tokens")  # fmt: skip
UNTIL_NEXT = ["next_ns", "period_ns", "other_ns", "bubble_ns"]
"""What is not known of a step where it is not known when the next one would have followed."""

_LASTS = ["device_ns", "busy_ns", *UNTIL_NEXT]


@memoize_per_rank()
def is_server(rank_trace: RankTrace) -> bool:
    """Whether the rank's iterations are steps that a serving engine names."""
    steps = rank_trace.iterations
    return bool(len(steps)) and steps["source"].iloc[0] == "serving step"


@memoize_per_rank()
def steps_of(rank_trace: RankTrace) -> pd.DataFrame:
    """The steps of a server, in time order; no rows for a rank that names none.

    Columns: iteration (int64), phase, label (str), requests, tokens, padded, prompts, prompt_tokens,
    kv_tokens, decode_kv_tokens, emitted (Int64: tokens that are new to the requests, where that is known),
    host_start_ns, host_ns (int64), start_ns, launch_ns, device_ns, busy_ns, next_ns, period_ns, turn_ns,
    other_ns, bubble_ns, absent_ns, resumes_ns (Int64: of the next step after a time without requests), state
    (str). See `serving_steps`.
    """
    frame = rank_trace.iterations if is_server(rank_trace) else rank_trace.iterations.iloc[:0]
    steps, marks = _labels(rank_trace, frame)
    rows = [tuple(getattr(step, name) for name in _LABELLED) for step in steps]
    labelled = pd.DataFrame(rows, columns=_LABELLED)
    texts = frame["label"].to_numpy(object)
    begin = marks[:, 0]
    columns: dict[str, Any] = {
        "iteration": frame["iteration"].to_numpy(np.int64),
        "phase": labelled["phase"].astype("str"),
        "label": pd.array(texts, dtype="str"),
        "requests": labelled["batch_size"].astype("Int64"),
        **{name: labelled[name].astype("Int64") for name in _LABELLED[2:]},
        "host_start_ns": begin,
        "host_ns": marks[:, 1] - begin,
    }
    table = pd.DataFrame(columns).join(_times(rank_trace, frame, begin))
    silent = [step.iteration for step in rank_trace.doubtful_steps if step.silent_ns]
    table.loc[table["iteration"].isin(silent), _LASTS] = pd.NA  # how long it took is not known
    table["phase"] = _drafting(table["phase"])
    absent = without_requests(rank_trace, table)
    table["absent_ns"] = table["bubble_ns"].where(absent, 0)
    table["resumes_ns"] = table["next_ns"].where(absent)
    table["turn_ns"] = _turns(table).where(~absent)
    table.loc[absent, UNTIL_NEXT] = pd.NA  # when it would have followed is not known
    table["emitted"] = _emitted(table)
    table["state"] = pd.array(_states(table), dtype="str")
    return table


def _labels(rank_trace: RankTrace, frame: pd.DataFrame) -> tuple[list[ServingStep], Int64]:
    """What the annotations of each step say together: runners and schedulers may each name it.

    And when the innermost of them is open, int64[n, 2]: what is around it is work between steps.
    """
    steps = [serving_step(str(label)) or ServingStep("unknown") for label in frame["label"]]
    known = {code: step for code, name in enumerate(rank_trace.names) if (step := serving_step(name))}
    named = np.zeros(len(rank_trace.names), np.bool_)
    named[list(known)] = True
    of_host = (rank_trace.event_class == EventClass.ANNOTATION) & (rank_trace.stream == NULL)
    rows = np.flatnonzero(of_host & named[rank_trace.name])
    begin, end = (frame[name].to_numpy(np.int64) for name in ("host_start_ns", "host_end_ns"))
    at = np.searchsorted(begin, rank_trace.start[rows], "right") - 1
    inside = (at >= 0) & (rank_trace.end[rows] <= end[at]) if len(begin) else np.zeros(len(rows), np.bool_)
    marks = np.column_stack([begin, end])
    parts = np.bincount(at[inside], minlength=len(steps))
    for row, step in zip(rows[inside].tolist(), at[inside].tolist(), strict=True):
        other = known[int(rank_trace.name[row])]
        if other.phase == "verify" and steps[step].phase == "decode":
            # the scheduler counts a token per request, whatever its drafts are
            steps[step] = replace(steps[step], phase="verify", tokens=other.tokens)
        steps[step] = steps[step].filled(other)
        span = (int(rank_trace.start[row]), int(rank_trace.end[row]))
        whole = other.batch_size == steps[step].batch_size and parts[step] == _TWICE
        if whole and span[1] - span[0] < marks[step, 1] - marks[step, 0]:
            marks[step] = span
    return steps, marks


@memoize_per_rank()
def own_work(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """Rows of the device work that a rank's steps launch, and the place of each one's step."""
    frame = rank_trace.iterations if is_server(rank_trace) else rank_trace.iterations.iloc[:0]
    _, marks = _labels(rank_trace, frame)
    rows = device_work(rank_trace).rows
    numbers = frame["iteration"].to_numpy(np.int64)
    order = np.argsort(numbers)
    at = np.append(order, -1)[np.searchsorted(numbers, rank_trace.iteration[rows], sorter=order)]
    mine = np.append(numbers, -1)[at] == rank_trace.iteration[rows]
    mine &= at >= 0
    rows, at = rows[mine], at[mine]
    launch = rank_trace.launch[rows]
    called = np.where(launch >= 0, rank_trace.start[launch], NULL)
    within = (called == NULL) | ((marks[at, 0] <= called) & (called < marks[at, 1]))
    return rows[within], at[within]


@memoize_per_rank()
def launched_by_step(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """How many kernels each row of `steps_of` launches one by one, and how many graphs it replays."""
    rows, at = own_work(rank_trace)
    launch = rank_trace.launch[rows]
    replayed = (launch >= 0) & named(rank_trace, GRAPH_LAUNCH.match)[launch]
    single = (launch >= 0) & ~replayed & (rank_trace.event_class[rows] != EventClass.MEMORY_COPY)
    count = len(steps_of(rank_trace))
    _, first = np.unique(launch[replayed], return_index=True)
    return np.bincount(at[single], minlength=count), np.bincount(at[replayed][first], minlength=count)


def forward_passes(rank_trace: RankTrace) -> Int64:
    """When each step launches the largest part of its work, in order: its graph, or its longest kernel."""
    rows, at = own_work(rank_trace)
    computes = among(rank_trace.event_class[rows], (EventClass.COMPUTE, EventClass.COMMUNICATION))
    rows, at = (each[computes & (rank_trace.launch[rows] >= 0)] for each in (rows, at))
    work = pd.DataFrame({"at": at, "launch": rank_trace.launch[rows], "time": rank_trace.dur[rows]})
    largest = (
        work.groupby(["at", "launch"])["time"]
        .sum()
        .sort_values()
        .reset_index()
        .groupby("at")["launch"]
        .last()
    )
    calls = largest.to_numpy(np.int64)
    return np.sort(rank_trace.start[calls] + rank_trace.dur[calls] // 2)


def _first_work(rank_trace: RankTrace, rows: Int64, at: Int64, count: int) -> pd.Series[int]:
    """When the device begins with each step: its first work in the queue where most of that is."""
    queue = rank_trace.queues(rows)
    table = pd.DataFrame(
        {"at": at, "queue": queue, "time": rank_trace.dur[rows], "start": rank_trace.start[rows]}
    )
    by_queue = table.groupby(["at", "queue"], sort=False).agg(time=("time", "sum"), start=("start", "min"))
    most = by_queue.reset_index().sort_values(["at", "time"], kind="stable").groupby("at")["start"].last()
    return most.reindex(range(count)).astype("Int64")


def _times(rank_trace: RankTrace, frame: pd.DataFrame, begin: Int64) -> pd.DataFrame:
    """When the device works for each step, and what it does until the next one begins."""
    rows, at = own_work(rank_trace)
    start = _first_work(rank_trace, rows, at, len(frame))
    last = pd.Series(rank_trace.end[rows]).groupby(at).max().reindex(range(len(frame))).astype("Int64")
    # where the next step begins, this one is over
    end = last.where(~(last > start.shift(-1)).fillna(False), start.shift(-1))
    following, on_host = start.shift(-1), pd.Series(begin, dtype="Int64")
    if start.isna().all():  # only the host is recorded
        start, following = start.astype("Int64"), start.astype("Int64")
        period = on_host.shift(-1) - on_host
    else:
        period = following - start
    everything = Intervals.union(rank_trace.start[device_work(rank_trace).rows], device_work(rank_trace).end)
    other = _within(everything, end, following)
    return pd.DataFrame(
        {
            "start_ns": start,
            "launch_ns": start - on_host,
            "device_ns": end - start,
            "busy_ns": _within(everything, start, end),
            "next_ns": following,
            "period_ns": period,
            "other_ns": other,
            "bubble_ns": following - end - other,
        }
    )


def _within(time: Intervals, start: pd.Series[int], end: pd.Series[int]) -> pd.Series[int]:
    """How much of a time lies in each of these windows, NA where one is not known."""
    known = (start.notna() & end.notna()).to_numpy(np.bool_)
    found = pd.array(np.zeros(len(start), np.int64), dtype="Int64")
    windows: Int64 = np.column_stack([edge[known].to_numpy(np.int64) for edge in (start, end)])
    found[known] = time.within_each(windows)
    found[~known] = pd.NA
    return pd.Series(found, index=start.index)


def _drafting(phase: pd.Series[str]) -> pd.Series[str]:
    """The phases, where steps of decoding before one that verifies are those of the model that drafts."""
    follows = phase.where(~phase.isin(("decode", "draft"))).bfill()
    return phase.where(~(phase.eq("decode") & follows.eq("verify")), "draft").astype("str")


def _turns(table: pd.DataFrame) -> pd.Series[int]:
    """From each step to the next one that is no draft: what requests wait for the tokens of a step."""
    begin = table["start_ns"]
    if begin.isna().all():
        begin = table["host_start_ns"].astype("Int64")
    own = table["phase"] != "draft"
    turns = begin[own].shift(-1) - begin[own]
    return turns.reindex(table.index).astype("Int64")


def _emitted(every: pd.DataFrame) -> pd.Series[int]:
    """The tokens that are new to the requests: one each, as known; of drafts those that were accepted.

    How many those are shows in the lengths of the sequences in the next step, if it has the same requests;
    what drafts are made of in between does not count.
    """
    table = every[every["phase"] != "draft"]
    requests, tokens, phase = table["requests"], table["tokens"], table["phase"]
    one_each = phase.eq("decode") & tokens.eq(requests)
    drafted = phase.isin(("decode", "verify")) & (tokens > requests).fillna(False)
    grown = table["decode_kv_tokens"].shift(-1) - table["decode_kv_tokens"]
    same = phase.shift(-1).eq(phase) & requests.shift(-1).eq(requests).fillna(False)
    told = drafted & same & (grown >= requests).fillna(False) & (grown <= tokens).fillna(False)
    emitted = requests.where(one_each).where(~told, grown)
    return emitted.reindex(every.index).astype("Int64")


def _states(table: pd.DataFrame) -> list[str]:
    """`steady`, or what a step is instead: `ramp` before and `drain` after the steady ones of its phase."""
    states = ["steady"] * len(table)
    for phase in LIKE_DECODE:
        rows = np.flatnonzero(table["phase"].eq(phase) & table["requests"].notna())
        first, last = _longest_steady(table["requests"].iloc[rows].to_numpy(np.int64))
        for place, row in enumerate(rows.tolist()):
            if not first <= place < last:
                states[row] = "ramp" if place < first else "drain"
    return states


def _longest_steady(batch: Int64) -> tuple[int, int]:
    """The longest run of steps whose batch stays within a tenth of its largest, as a range."""
    best, first = (0, 0), 0
    for last in range(len(batch)):
        while batch[first : last + 1].min() < _STEADY * batch[first : last + 1].max():
            first += 1
        best = max(best, (first, last + 1), key=lambda run: (run[1] - run[0], -run[0]))
    return best
