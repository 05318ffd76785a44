"""What each step on each rank consists of, beside the median step: which one differs, and in what."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.device_time.busy import busy_ranks
from hta_widgets.analysis.device_time.step_times import LEAST_STEPS, guessed_steps, step_times
from hta_widgets.analysis.idle.split import PARTS, SERIES, split
from hta_widgets.charts.spec import Stack
from hta_widgets.formatting import capitalised, decapitalised, duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_PARTS_NS: Final = [f"{part}_ns" for part in PARTS]
_COLUMNS: Final = {
    **dict.fromkeys(["rank", "iteration", "start_ns", "end_ns", "dur_ns"], "int64"),
    **dict.fromkeys(["median_rank", "median_iteration", "change_ns"], "Int64"),
    **dict.fromkeys(_PARTS_NS, "int64"),
    **dict.fromkeys(["outlier", "partial", "start_up", "open"], "bool"),
    "known": "str",
}
# A change below this share of the median is how steps of a steady job differ.
_ALIKE: Final = 0.01
# A rank whose steps differ from the others' by less, on average and in every part, does the same as they do.
_UNLIKE: Final = 0.02
# A second cause is named from this share of the first one on.
_WORTH_NAMING: Final = 0.1
# Causes so many times as large as their sum cancel each other: neither is the exception.
_BALANCED: Final = 4.0

_WORDS: Final = {
    "compute": "computes {}",
    "exposed_communication": "spends {} in exposed communication",
    "exposed_memory": "spends {} in exposed copies",
    "host_sync": "waits {} for a CPU blocked in synchronisation",
    "data_stall": "waits {} for the data loader",
    "host_busy": "waits {} for the CPU to launch work",
    "launch_latency": "waits {} for launches to arrive",
    "kernel_wait": "is idle {} between queued kernels",
    "device_wait": "is idle {} with work launched but blocked",
    "unknown": "is idle {} without a recorded cause",
    "edge": "is idle {} with no work due",
}


@kept()
def step_parts(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What does each step on each rank consist of, and how does it differ from the median step?

    Each step is split as `temporal_breakdown` and `idle_breakdown` split time. The median step is a real one,
    so that every difference to it adds up: of the steady steps (see `step_times`) of the selected ranks, the
    one whose duration and parts lie nearest to the medians of these, the first of several. (A step in the
    middle by duration alone may be one of the rank that all others wait for.) The steps of a server are
    compared with those of their kind. With fewer than four steady steps of a kind there is
    no median.

    Args:
        trace: the job.
        scope: ranks, iterations, a time window that a step must touch, streams, names; default everything.

    Returns:
        One row per rank and iteration, ascending, each with its whole time; ranks without device events are
        left out. Columns: rank, iteration, start_ns, end_ns (ns on the job's axis), dur_ns (int64, ns),
        median_rank, median_iteration (Int64, the step it is compared with; NA without one), change_ns (Int64,
        ns, dur_ns less the median step's), compute_ns, exposed_communication_ns, exposed_memory_ns,
        host_sync_ns, data_stall_ns, host_busy_ns, launch_latency_ns, kernel_wait_ns, device_wait_ns,
        unknown_ns, edge_ns (int64, ns; they add up to dur_ns), outlier, partial, start_up, open (bool), known
        (str; these five as `step_times` has them).

    Raises:
        MissingDataError: no selected rank has device events.
    """
    scope = scope or Scope()
    steps = step_times(trace, scope)
    frames = []
    for rank, rank_trace, work in busy_ranks(trace, scope):
        own = steps[steps["rank"] == rank].reset_index(drop=True)
        found = split(rank_trace, work, scope, own[["start_ns", "end_ns"]].to_numpy(np.int64))
        frames.append(pd.concat([own, pd.DataFrame(found, columns=_PARTS_NS)], axis=1))
    if not frames:
        return pd.DataFrame({name: [] for name in _COLUMNS}).astype(_COLUMNS)
    frame = pd.concat(frames, ignore_index=True)
    at = _median_rows(frame)
    known = at >= 0
    for name in ("rank", "iteration"):
        frame[f"median_{name}"] = frame[name].take(np.maximum(at, 0)).set_axis(frame.index).where(known)
    of_median = frame["dur_ns"].take(np.maximum(at, 0)).set_axis(frame.index)
    frame["change_ns"] = (frame["dur_ns"] - of_median).where(known)
    return frame[list(_COLUMNS)].astype(_COLUMNS)


def _median_rows(frame: pd.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The row of each row's median step, -1 where there is none."""
    steady = ~(frame["partial"] | frame["start_up"] | frame["open"]) & (frame["known"] != "guessed")
    at = np.full(len(frame), -1, np.int64)
    measures = frame[["dur_ns", *_PARTS_NS]].to_numpy(np.float64)
    for found in frame.groupby("kind").indices.values():
        rows = np.asarray(found, np.int64)
        own = rows[steady.to_numpy(np.bool_)[rows]]
        if len(own) >= LEAST_STEPS:
            values = measures[own]
            unlike = np.abs(values - np.median(values, axis=0)).sum(axis=1)
            at[rows] = own[unlike.argmin()]
    return at


def cause_of_change(changes: dict[str, int]) -> str:
    """`The GPU waits 88.3 ms less for ..., although it ...`: what a step does more or less than another.

    Args:
        changes: ns by part, one of `split.PARTS`; their sum is the difference of the two steps.
    """
    total = sum(changes.values())
    order = sorted(changes, key=lambda part: -abs(changes[part]))
    if not changes[order[0]]:
        return "Every part takes the same time in both."
    longer = total > 0 or (total == 0 and changes[order[0]] > 0)
    first = next(part for part in order if (changes[part] > 0) == longer and changes[part])
    second = next(part for part in order if part != first)
    text = f"The GPU {_more(first, changes[first])}"
    if abs(changes[second]) < _WORTH_NAMING * abs(changes[first]):
        return f"{text}."
    against = (changes[second] > 0) != longer
    unbalanced = abs(changes[first]) < _BALANCED * abs(total)
    return f"{text}{', although it' if against and unbalanced else ' and'} {_more(second, changes[second])}."


def _more(part: str, change: int) -> str:
    return _WORDS[part].format(f"{duration(abs(change))} {'more' if change > 0 else 'less'}")


def sentence(frame: pd.DataFrame) -> str:
    """The answer in words: which step differs most from the median, on which rank, and why."""
    if frame.empty:
        return "No step with device work lies in the selection."
    complete = frame[~(frame["partial"] | frame["start_up"])]
    if frame["known"].eq("guessed").all():
        return guessed_steps(complete)
    compared = complete[complete["change_ns"].notna() & ~complete["open"]]
    if compared.empty:
        return f"Fewer than {LEAST_STEPS} complete steps, so none can be compared with a median step."
    changes_ns = compared["change_ns"].to_numpy(np.int64)
    medians = compared["dur_ns"].to_numpy(np.int64) - changes_ns  # steps of a kind are compared
    of_median = changes_ns / np.maximum(medians, 1)
    unlike = int(of_median.argmax())
    if of_median[unlike] < _ALIKE <= -of_median.min():
        unlike = int(of_median.argmin())  # none is longer than the median, and some are shorter
    row = compared.iloc[unlike]
    change, median = int(changes_ns[unlike]), int(medians[unlike])
    place = f"step {row['iteration']}"
    if compared["rank"].iloc[0] != compared["rank"].iloc[-1]:
        place += f" on rank {row['rank']}"
    if abs(change) < _ALIKE * median:
        longer = f" The longest, {place}, takes {percent(100.0 * change / median)} more than the median."
        said = f"All steps take about {duration(median)}.{longer * (change > 0)}"
        return f"{said}{_other_rank(frame, compared)}"
    changes = _changes(frame, compared).iloc[unlike].to_dict()
    cause = cause_of_change({str(part): int(change) for part, change in changes.items()})
    than = f"{duration(abs(change))} {'longer' if change > 0 else 'shorter'} than the median step"
    return f"{capitalised(place)} is {than}. {cause}"


def _changes(frame: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """Each compared step's parts less those of its median step, a column per part."""
    steps = frame.set_index(["rank", "iteration"])[_PARTS_NS].set_axis([*PARTS], axis=1)
    medians = pd.MultiIndex.from_frame(compared[["median_rank", "median_iteration"]].astype("int64"))
    own = pd.MultiIndex.from_frame(compared[["rank", "iteration"]])
    return (steps.loc[own].reset_index(drop=True) - steps.loc[medians].reset_index(drop=True)).set_axis(
        compared.index
    )


def _other_rank(frame: pd.DataFrame, compared: pd.DataFrame) -> str:
    """Ranks that wait for each other take equally long: the one that does something else meanwhile."""
    of_rank = _changes(frame, compared).groupby(compared["rank"]).mean()
    if len(of_rank) < 2:
        return ""
    of_two = len(of_rank) == 2  # their median lies between them
    apart = of_rank - (of_rank.iloc[0] if of_two else of_rank.median())
    unlike = apart.abs().max(axis=1)
    if unlike.max() < _UNLIKE * compared["dur_ns"].median():
        return ""
    at = int(unlike.to_numpy(np.float64).argmax())
    changes = apart.iloc[at].round().astype("int64").to_dict()
    cause = decapitalised(cause_of_change({str(part): change for part, change in changes.items()}))
    differs = f"differs from rank {of_rank.index[0]}" if of_two else "differs most"
    return f" Rank {of_rank.index[at]} {differs}: {cause}"


ANALYSIS = Analysis(
    label="Steps",
    group="Time",
    title="Which step is slow, on which rank, and why",
    function=step_parts,
    sentence=sentence,
    chart=None,  # the panel has a picture of its own
    requires=("device events",),
    ignores=("ranks", "iterations"),
    pictured=Stack(SERIES, "dur_ns"),
)
