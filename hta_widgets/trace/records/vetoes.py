"""What a recording cannot show: classes of claims, the time they would be about, and why not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from hta_widgets.formatting import counted, duration, percent
from hta_widgets.trace.classify import COUNTER_RANGE
from hta_widgets.trace.records.doubt import OF_STEP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hta_widgets.trace.rank_trace import RankTrace
    from hta_widgets.trace.records.doubt import DoubtfulStep
    from hta_widgets.trace.scope import Scope

Claim = Literal["idle_causes", "savings", "ranks", "steps", "efficiency"]
CLAIMS: tuple[Claim, ...] = ("idle_causes", "savings", "ranks", "steps", "efficiency")
_OF_WORK: tuple[Claim, ...] = ("idle_causes", "savings", "ranks", "efficiency")

_CUT = ", as the file was cut while being written"
_WHOLE = "export it again, as a whole"

# A stretch without valid records that is shorter than this share of the judged time moves no share by more.
_TOUCHED = 0.005
# From this share of the judged time on, it does not matter how much is in doubt in each step.
_MOST = 0.5
# Clocks that differ by less say little wrong, unless work often begins early: launches take microseconds.
_CLOCK_NS = 20_000
_OFTEN_EARLY = 0.01
_ROUNDED_NS = 1_000
# In gaps that are so many times longer than clocks disagree, it does not matter who was late by that.
_FAR = 10


@dataclass(frozen=True)
class Veto:
    """Claims that a stretch of a recording does not support."""

    claims: tuple[Claim, ...]  # the classes of claims
    rank: int  # the rank whose records are at fault
    # the stretch, in ns on the job's axis
    start_ns: int
    end_ns: int
    iteration: int | None  # the step that it is; None for any other stretch
    kind: str  # the check of `Trace.health` that lists the records
    reason: str  # what is wrong, as a sentence without a full stop
    remedy: str  # what to do, with the recorder's own option

    def touches(self, start_ns: int, end_ns: int) -> bool:
        """Whether the stretch and this time overlap."""
        return self.start_ns < end_ns and start_ns < self.end_ns


def reason_of(vetoes: Sequence[Veto]) -> str:
    """Why these vetoes of one rank were made, in short; of several steps the first is an example."""
    steps = {veto.iteration for veto in vetoes} - {None}
    if len(steps) < 2:
        return vetoes[0].reason
    return f"{len(steps):,} steps have missing or uncertain records, such as {vetoes[0].reason}"


def decisive(rank_trace: RankTrace, scope: Scope, claim: Claim) -> list[Veto]:
    """The vetoes that matter for a claim of this class about a scope; none where it may be made.

    That is the one on a stretch of the time, or those on steps in it that leave too much in doubt.
    """
    vetoes = [veto for veto in rank_trace.vetoes if claim in veto.claims]
    if not vetoes:
        return []
    windows = rank_trace.windows(scope)
    whole = int((windows[:, 1] - windows[:, 0]).sum())
    doubt_of = {step.iteration: step.doubt_ns for step in rank_trace.doubtful_steps}
    unended = _unended(rank_trace, scope)
    doubt = touched_in_steps = 0
    steps: list[Veto] = []
    for veto in vetoes:
        shared = np.minimum(windows[:, 1], veto.end_ns) - np.maximum(windows[:, 0], veto.start_ns)
        touched = int(np.maximum(shared, 0).sum())
        if veto.iteration is None:
            if touched > _TOUCHED * whole or not whole:
                return [veto]
        elif veto.iteration in unended:
            steps.append(veto)
            touched_in_steps += unended[veto.iteration]
        elif touched if scope.iterations is None else veto.iteration in scope.iterations:
            steps.append(veto)
            touched_in_steps += touched
            doubt += doubt_of.get(veto.iteration, 0)
    return steps if doubt > OF_STEP * whole or touched_in_steps >= _MOST * whole > 0 else []


def _unended(rank_trace: RankTrace, scope: Scope) -> dict[int, int]:
    """Steps whose first work was lost: where the one before ends, in a scope, is not known; its length."""
    lacking = {step.iteration for step in rank_trace.doubtful_steps if step.lacks_first}
    if not lacking or scope.iterations is None:
        return {}
    frame = rank_trace.iterations
    numbers, lengths = frame["iteration"].tolist(), (frame["end_ns"] - frame["start_ns"]).tolist()
    return {
        after: length
        for before, after, length in zip(numbers, numbers[1:], lengths, strict=False)
        if after in lacking and before in scope.iterations and after not in scope.iterations
    }


def vetoes_of(rank_trace: RankTrace) -> list[Veto]:
    """What the recording of a rank cannot show; nothing where its records are believed as they are."""
    if not rank_trace.events.header.repair or not rank_trace.n:
        return []
    recorder = rank_trace.accelerator
    first, last = rank_trace.extent
    whole = Veto(CLAIMS, rank_trace.rank, first, last + 1, None, "", "", "")
    capture = replace(
        whole, kind="graph_capture", reason="a graph is being captured, whose launches do not run",
        remedy="record replays of the graph to see what the device does",
    )  # fmt: skip
    recording, losses, cut = rank_trace.recording, rank_trace.losses, _is_cut(rank_trace)
    found = [_of_step(rank_trace, step, whole) for step in rank_trace.doubtful_steps]
    if len(rank_trace.processes) > 1:
        pids = " and ".join(rank_trace.processes[:4])
        found.append(replace(
            whole, kind="several_processes", reason=f"processes {pids} wrote this file",
            remedy="export one file for each process",
        ))  # fmt: skip
    if recording.filtered:
        found.append(replace(
            whole, kind="filtered",
            reason=f"the file holds {percent(recording.kept_pct)} of the operators that ran",
            remedy="open the file as the profiler wrote it",
        ))  # fmt: skip
    if len(losses.lost) and not rank_trace.is_device.any():
        measured = COUNTER_RANGE in rank_trace.categories
        launches = f"{counted(len(losses.launches), 'launch', 'launches')} recorded"
        found.append(replace(
            whole, claims=_OF_WORK, kind="no_device_events",
            reason=f"{launches}, with counters in place of device events" if measured
            else f"{launches}, but no device events",
            remedy=for_lost_records(rank_trace),
        ))  # fmt: skip
    elif recording.lacks_device_work:
        share = percent(100.0 * recording.unanswered / recording.launches)
        lost = replace(
            whole, kind="lost_launches",
            reason=f"the device work of {share} of the launches was not recorded{_CUT * cut}",
            remedy=_WHOLE if cut else recorder.fewer_events,
        )  # fmt: skip
        captured = 2 * recording.captured >= recording.unanswered
        found.append(replace(capture if captured else lost, claims=_OF_WORK))
    if recording.cuts_replays:
        replays = recording.replays
        found.append(replace(
            whole, claims=_OF_WORK, kind="short_replays",
            reason=f"{replays.short:,} of {replays.count:,} graph replays lack kernels that others have",
            remedy=recorder.fewer_events,
        ))  # fmt: skip
    if rank_trace.is_marked and rank_trace.all_contradicted:
        found.append(replace(
            whole, kind="contradicted_iterations",
            reason="most of the device work of every step runs outside the step's time",
            remedy=rank_trace.times_steps_better,
        ))  # fmt: skip
    if ahead := _clock_ahead(rank_trace):
        found.append(replace(
            whole, claims=("idle_causes",), kind="device_before_launch",
            reason=f"the device's clock runs at least {duration(ahead)} ahead of the host's",
            remedy="record with newer drivers and PyTorch, whose clocks agree",
        ))  # fmt: skip
    for start, end in losses.captures.tolist() if len(losses.captured) else ():
        claims: tuple[Claim, ...] = ("idle_causes", "savings", "efficiency")
        found.append(replace(capture, claims=claims, start_ns=start, end_ns=end))
    return found


def for_lost_records(rank_trace: RankTrace, *ahead: str) -> str:
    """What to do where all device records of a rank are lost, and before that; counters take their place."""
    if COUNTER_RANGE in rank_trace.categories:
        return "record without profiler_metrics: counters of kernels take the place of their times"
    again = "record again: the device was recorded, but its records were lost"
    return "; ".join([again, *ahead, rank_trace.accelerator.update])


def _clock_ahead(rank_trace: RankTrace) -> int:
    """By how much the device's clock runs ahead, ns; 0 where that hardly changes what idle time is due to."""
    ahead = rank_trace.clock_ahead_ns
    if ahead <= _ROUNDED_NS:
        return 0
    rows = rank_trace.launched
    early = rank_trace.launched_at(rows) > rank_trace.start[rows] + _ROUNDED_NS
    if ahead < _CLOCK_NS and early.mean() < _OFTEN_EARLY:
        return 0
    work = rank_trace.device_rows
    work = work[np.argsort(rank_trace.start[work], kind="stable")]
    gaps = rank_trace.start[work[1:]] - np.maximum.accumulate(rank_trace.end[work])[:-1]
    gaps = gaps[gaps > 0]
    return 0 if 2 * int(gaps[gaps > _FAR * ahead].sum()) >= int(gaps.sum()) > 0 else ahead


def _is_cut(rank_trace: RankTrace) -> bool:
    """Whether the file ends in the middle of an event."""
    return any(problem.check == "truncated" for problem in rank_trace.table.problems)


def _of_step(rank_trace: RankTrace, step: DoubtfulStep, whole: Veto) -> Veto:
    recorder = rank_trace.accelerator
    remedy = recorder.fewer_events
    losses = rank_trace.losses
    if step.lost and not step.untimed and losses.leading:
        remedy = recorder.from_the_start
    elif step.is_open or (step.lost and losses.trailing == len(losses.lost)):
        remedy = recorder.to_the_end
    reason = f"step {step.iteration}: {step.reason}"
    if step.lost and _is_cut(rank_trace):
        reason, remedy = reason + _CUT, _WHOLE
    if step.silent_ns:
        remedy = "record again; if it comes back, look at the clock and at what stops the machine"
    kind = "lost_launches" if step.lost else "open_steps" if step.is_open else "impossible_times"
    claims = ("steps",) if step.is_open and not step.doubt_ns else CLAIMS
    return replace(
        whole, claims=claims, start_ns=step.start_ns, end_ns=step.end_ns, iteration=step.iteration,
        kind=kind, reason=reason, remedy=remedy,
    )  # fmt: skip
