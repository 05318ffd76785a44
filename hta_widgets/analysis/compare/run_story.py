"""What changed between runs, as bars on one scale: what all steps have, and what one has beyond that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.compare.agreement import part_of
from hta_widgets.analysis.compare.noise import INCONCLUSIVE, NEGLIGIBLE, NOISE, SIGNIFICANT, UNKNOWN
from hta_widgets.analysis.compare.parts import parts
from hta_widgets.analysis.compare.sampling import Scopes, sample, scope_of
from hta_widgets.analysis.compare.waterfall import STEP, greatest_change
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy_ranks
from hta_widgets.analysis.device_time.step_parts import cause_of_change
from hta_widgets.analysis.idle.split import BUSY, PARTS, SERIES, when
from hta_widgets.formatting import decapitalised, duration, signed
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

_LABELS: Final = {part.column.removesuffix("_ns"): part.label for part in SERIES}
CLASSES: Final = ("compute", "communication", "memory", "idle")
_LEAST: Final = 0.005  # of the longest step: a smaller change is no finding
_MOST: Final = 9
_MOST_LINES: Final = 3
_WORTH_NAMING: Final = 0.1  # of the part's change
_MOST_PLACES: Final = 5
_SURE: Final = {
    SIGNIFICANT: "Beyond noise: the steps of each run differ less among themselves.",
    NOISE: "Within noise: the steps of each run differ as much among themselves.",
    INCONCLUSIVE: "Inconclusive: of so many parts, one may change as much by chance.",
    NEGLIGIBLE: "Certain, but less than 1 % of the part.",
    UNKNOWN: "Unknown: noise takes two or more steps in each run.",
}


@dataclass(frozen=True)
class Piece:
    """A part of a run's bar; `change` is the number of the change that it shows, -1 for none."""

    ns: int
    lost_as: str
    change: int = -1


@dataclass(frozen=True)
class RunBar:
    """The mean step of a run; `pieces` add up to `ns`."""

    name: str
    ns: int
    pieces: list[Piece]


@dataclass(frozen=True)
class Shown:
    """A place of a run where a change shows."""

    run: str
    rank: int
    start_ns: int
    end_ns: int
    label: str


@dataclass(frozen=True)
class Change:
    """A part of the step that takes more or less time than in the first run."""

    part: str  # of the step, one of `split.PARTS`
    noun: str  # its name
    lost_as: str  # the class of its time
    change_ns: int  # per step and rank
    # the same as a text, and with how sure it is
    figure: str
    label: str
    certain: bool  # it is significant
    # sentences
    what: str
    why: list[str]
    sure: str  # how sure that is
    kind: str  # the comparison that shows more
    places: list[Shown]  # in the run that spends more, the longest first


@dataclass(frozen=True)
class RunStory:
    """Runs beside each other."""

    cause: str  # why the step of one run takes longer or shorter than that of the first, in a sentence
    other: str  # that run, whose step changed most
    longest_ns: int  # the denominator of all bars
    runs: list[RunBar]  # the first is the base
    changes: list[Change]  # of `other`, the greatest first

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def run_story(
    runs: Mapping[str, Trace], scope: Scopes, waterfall: pd.DataFrame, lines: pd.DataFrame
) -> RunStory:
    """What does a step of each run consist of, and what of that differs?

    Args:
        runs: name -> job; the first is the base.
        scope: of all runs, or by run.
        waterfall: `step_waterfall` of them, by job.
        lines: `diff` of them, by kernel.
    """
    times = waterfall.pivot_table("time_ns", "run", "part", aggfunc="sum").loc[list(runs)]
    longest = int(times[STEP].max())
    base = next(iter(runs))
    top, _ = greatest_change(waterfall)
    other = str(top["run"]) if top is not None else list(runs)[1]
    of_parts = waterfall[(waterfall["run"] == other) & (waterfall["part"] != STEP)].set_index("part")
    changes = {str(part): int(ns) for part, ns in of_parts["change_ns"].items()}
    found = [part for part in PARTS if abs(changes[part]) >= max(_LEAST * longest, 1)]
    found.sort(key=lambda part: -abs(changes[part]))
    found = found[:_MOST]
    shared = times[list(PARTS)].min()
    bars = [_bar(str(run), own, shared, found) for run, own in times.iterrows()]
    rows = {str(part): row for part, row in of_parts.iterrows()}
    made = [
        _change(runs, scope, rows[part], (base, other), times[part], lines, changes[part]) for part in found
    ]
    return RunStory(cause_of_change(changes), other, longest, bars, made)


def _bar(run: str, own: pd.Series, shared: pd.Series, numbered: list[str]) -> RunBar:
    """First what all runs have, by class, then what this one has beyond that, by part."""
    common = dict.fromkeys(CLASSES, 0)
    for part in PARTS:
        common[_class_of(part)] += int(shared[part])
    pieces = [Piece(ns, lost_as) for lost_as, ns in common.items() if ns]
    more = {part: int(own[part]) - int(shared[part]) for part in PARTS}
    pieces += [Piece(more[part], _class_of(part), at) for at, part in enumerate(numbered) if more[part]]
    rest = dict.fromkeys(CLASSES, 0)
    for part in PARTS:
        if part not in numbered:
            rest[_class_of(part)] += more[part]
    pieces += [Piece(ns, lost_as) for lost_as, ns in rest.items() if ns]
    return RunBar(run, int(own[STEP]), pieces)


def _class_of(part: str) -> str:
    return part.removeprefix("exposed_") if part in BUSY else "idle"


def _change(
    runs: Mapping[str, Trace],
    scope: Scopes,
    row: pd.Series,
    pair: tuple[str, str],
    times: pd.Series,
    lines: pd.DataFrame,
    ns: int,
) -> Change:
    part, (base, other) = str(row.name), pair
    noun, figure, verdict = _LABELS[part], signed(ns, duration(ns)), str(row["verdict"])
    before, after = (duration(int(times[run])) for run in pair)
    more = cause_of_change({**dict.fromkeys(PARTS, 0), part: ns})
    interval = ""
    if pd.notna(row["low_ns"]) and verdict != UNKNOWN:
        low, high = (signed(float(row[name]), duration(float(row[name]))) for name in ("low_ns", "high_ns"))
        interval = f" The 95 % interval is {low} to {high}."
    return Change(
        part=part,
        noun=noun,
        lost_as=_class_of(part),
        change_ns=ns,
        figure=figure,
        label=figure if verdict == SIGNIFICANT else f"{figure} · {verdict}",
        certain=verdict == SIGNIFICANT,
        what=f"{more} It was {before} per step; now {after}.",
        why=_of_lines(lines, other, part, ns),
        sure=f"{_SURE[verdict]}{interval}",
        kind="diff" if part in BUSY else "step_waterfall",
        places=_places(runs, scope, base if ns < 0 else other, part, noun),
    )


def _of_lines(lines: pd.DataFrame, run: str, part: str, ns: int) -> list[str]:
    """The kernels and copies of a part whose time changed most, whether hidden or not."""
    own = lines[(lines["run"] == run) & lines["kind"].map(part_of).eq(part)] if part in BUSY else lines[:0]
    own = own[own["change_ns"].abs() >= _WORTH_NAMING * abs(ns)]
    own = own.sort_values("change_ns", key=lambda change: -change.abs(), kind="stable").head(_MOST_LINES)
    said = []
    for line in own.to_dict("records"):
        name, change = short_kernel_name(line["line"]), line["change_ns"]
        word = {"added": "is new", "removed": "is gone"}.get(line["change"], "changes")
        said.append(f"{name} {word}: {signed(change, duration(change))} of device time.")
    return said


def _places(runs: Mapping[str, Trace], scope: Scopes, run: str, part: str, noun: str) -> list[Shown]:
    """The longest stretches of a part in the steps that count, on the rank that spends most on it."""
    steps, own = sample(runs, scope)[run], scope_of(scope, run)
    at = PARTS.index(part)
    by_rank = parts(runs[run], steps, own)[:, :, at].sum(axis=0)
    if not len(steps) or not by_rank.any():
        return []
    rank = steps.ranks[int(by_rank.argmax())]
    filters = Scope(ranks=(rank,), streams=own.streams, names=own.names)
    windows = steps.windows[:, steps.ranks.index(rank)]
    within = Intervals.union(windows[:, 0], windows[:, 1])
    found = [
        when(part, rank_trace, work, filters) & within
        for _, rank_trace, work in busy_ranks(runs[run], filters)
    ]
    time = found[0]
    longest = np.argsort(time.start - time.end, kind="stable")[:_MOST_PLACES]
    idle = "" if part in BUSY else " idle"
    return [
        Shown(run, rank, start, end, f"{duration(end - start)}{idle}: {decapitalised(noun)}")
        for start, end in zip(time.start[longest].tolist(), time.end[longest].tolist(), strict=True)
    ]
