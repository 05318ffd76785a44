"""What can be said of a recording before, or instead of, anything about its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.communication.collectives import read_ahead
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.idle.causes import blocked_threads, is_synchronising
from hta_widgets.analysis.idle.start_up import job_start_up
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, counted, duration, percent
from hta_widgets.trace.iteration_clock import EARLIER_SHARE
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.recording import Recording
    from hta_widgets.trace.records.vetoes import Veto

__all__ = ["earlier_work", "recording_verdict", "start_up", "unread_files", "why_withheld"]

_MOST_CALLS = 3


def recording_verdict(trace: Trace, scope: Scope) -> Finding | None:
    """Why no sentence about the time of this recording could be true; None if some can."""
    short = trace.exceeds_memory
    recordings = {rank: _look_at(trace, rank, short) for rank in trace.ranks_of(scope)}
    if short and len(recordings) == len(trace.ranks):
        _ = trace.health  # which is kept, so that no rank is read for it once more
    if len(recordings) > 1 and trace.several_jobs:
        return _verdict(
            "several_jobs",
            f"These are not the ranks of one job: {trace.several_jobs}. Nothing can be compared or averaged "
            "between them.",
            "Open each recording by itself, or choose one rank.",
        )
    filtered = [recording for recording in recordings.values() if recording.filtered]
    if filtered:
        kept = percent(min(recording.kept_pct for recording in filtered))
        return _verdict(
            "filtered",
            f"Events were removed from this recording: it holds {kept} of the operators that ran. What lies "
            "between those that are left is no idle time, and what is missing may be the cause.",
            "Open the files as the profiler wrote them.",
        )
    # one piece of work has no gap to another
    counts = [trace.rank(rank).device_events for rank in recordings]
    if counts and max(counts) == 1:
        return _verdict(
            "fragment",
            "The recording holds one piece of device work: too little to tell where time goes.",
            "Record some whole steps: torch.profiler.schedule(wait=1, warmup=3, active=5).",
        )
    captured = [recording for recording in recordings.values() if recording.kind == "graph capture"]
    if captured:
        launches = sum(recording.launches for recording in captured)
        unanswered = sum(recording.unanswered for recording in captured)
        return _verdict(
            "graph_capture",
            f"A graph is being captured: {unanswered:,} of {launches:,} launches are recorded into it and do "
            "not run, so that an idle device means nothing here.",
            "Record replays of the graph to see what the device does.",
        )
    return None


def _look_at(trace: Trace, rank: int, short: bool) -> Recording:
    """What a rank records; with it all else that is asked of each before the rules are, and stays.

    Where memory is `short`, also what `health` and `collectives` say of it.
    """
    rank_trace = trace.rank(rank)
    for fact in ("device_name", "device_events", "device_span", "work_names"):
        getattr(rank_trace, fact)
    job_start_up(trace, rank)
    if short:
        read_ahead(trace, rank)
        trace.findings_about(rank, trace.job_size)
    return rank_trace.recording


def unread_files(trace: Trace) -> Finding | None:
    """That files of the job could not be read, so that every answer is about the others."""
    if not trace.failed:
        return None
    unread, ranks = len(trace.failed), len(trace.ranks)
    those = f"the {counted(ranks, 'rank')} that could be" if ranks > 1 else f"rank {trace.ranks[0]}"
    return _verdict(
        "unread_files",
        f"{counted(unread, 'file')} could not be read: whatever is said is about {those}.",
        "See trace.health for the reasons.",
    )


def why_withheld(inputs: Inputs, starting: Finding | None) -> MissingDataError | None:
    """What keeps every rule about time from speaking; None if nothing does.

    Args:
        inputs: the answers about the job.
        starting: what `start_up` found.
    """
    traces = [inputs.trace.rank(rank) for rank in inputs.trace.ranks_of(inputs.scope)]
    lacking = [each.recording for each in traces if each.recording.lacks_device_work]
    if lacking and any(each.is_device.any() for each in traces):
        return MissingDataError(
            "device work of most launches",
            "Synchronise the device before the profiler stops, and drop no events.",
            f"{_unanswered(lacking)} of the launches have none",
        )
    cut = [each.recording.replays for each in traces if each.recording.cuts_replays]
    if cut:
        short, count = sum(replays.short for replays in cut), sum(replays.count for replays in cut)
        return MissingDataError(
            "complete record of its graph replays",
            "Record fewer steps at a time, so that the profiler drops no events.",
            f"{short:,} of {count:,} lack kernels that others of the same graph have",
        )
    if (veto := _whole_veto(inputs)) is not None:
        return MissingDataError(
            "records to trust", f"{veto.remedy[:1].upper()}{veto.remedy[1:]}.", veto.reason
        )
    if inputs.contradicted:
        return MissingDataError(
            "step whose time holds its own device work",
            'Time the steps on the device: Trace.open(..., clock="device").',
            "the device runs behind the host",
        )
    if starting is not None and starting.severity == "warning":
        return MissingDataError(
            "steady state",
            "Record steps after the warm-up: torch.profiler.schedule(wait=1, warmup=3, active=5).",
            "start-up takes much of all that was recorded",
        )
    return None


def _whole_veto(inputs: Inputs) -> Veto | None:
    """What the records forbid to say about the time of a rank, if that is most of what is judged."""
    for veto in inputs.trace.vetoes("savings", inputs.scope):
        windows = inputs.trace.rank(veto.rank).windows(inputs.scope)
        shared = np.minimum(windows[:, 1], veto.end_ns) - np.maximum(windows[:, 0], veto.start_ns)
        if 2 * int(np.maximum(shared, 0).sum()) >= int((windows[:, 1] - windows[:, 0]).sum()):
            return veto
    return None


def start_up(inputs: Inputs) -> Finding | None:
    """Driver calls that load code or set up while the device waits, once, as when a process begins."""
    if not inputs.start_up:
        return None
    if inputs.left_out:
        iterations = sorted({iteration for _, iteration in inputs.left_out})
        numbers = ", ".join(map(str, iterations))
        plural = len(iterations) > 1
        windows = {
            rank: inputs.trace.rank(rank).windows(Scope(iterations=tuple(iterations)))
            for rank in sorted({rank for rank, _ in inputs.left_out})
        }
        spent = max(inputs.start_up[rank].idle.within(window) for rank, window in windows.items())
        return Finding(
            "start_up",
            spent,
            0.0,
            f"Iteration{'s' * plural} {numbers} {'hold' if plural else 'holds'} start-up and "
            f"{'are' if plural else 'is'} left out of what is said here. The device waits for driver calls "
            f"that take unusually long, once: {_longest_calls(inputs, windows)}.",
            "Nothing to do for the steady state; to see it alone, record after the warm-up.",
            "idle_breakdown",
            Evidence(iteration=iterations[0]),
            severity="note",
        )
    frame = inputs.idle_at_all
    lost, whole = int(frame["start_up_ns"].sum()), int(frame["window_ns"].sum())
    if not whole:
        return None
    cost = lost // len(frame)
    windows = {rank: inputs.trace.rank(rank).windows(inputs.scope) for rank in inputs.start_up}
    return Finding(
        "start_up",
        cost,
        100.0 * lost / whole,
        f"Start-up takes {inputs.share(100.0 * lost / whole)} ({duration(cost)}): the device waits for "
        f"driver calls that take unusually long, once: {_longest_calls(inputs, windows)}. It tells nothing "
        "about the steady state.",
        "Record steps after the warm-up: torch.profiler.schedule(wait=1, warmup=3, active=5).",
        "idle_breakdown",
    )


def earlier_work(inputs: Inputs) -> Finding | None:
    """A host that waits, as the first step begins, for device work that was launched before the recording.

    Such a step is timed on the device, so the wait is no part of it.
    """
    found: tuple[int, int, int, int] | None = None
    for rank in inputs.trace.ranks_of(inputs.scope):
        rank_trace = inputs.trace.rank(rank)
        steps = rank_trace.iterations
        if not inputs.announced or rank_trace.iteration_clock != "device" or rank in inputs.start_up:
            continue  # a process that starts may block in calls of the driver, for nothing
        begin, end, start = steps[["host_start_ns", "host_end_ns", "start_ns"]].iloc[0].tolist()
        waits = blocked_threads(rank_trace).clip(begin, min(start, end))
        longest = int((waits.end - waits.start).max(initial=0))
        if longest >= EARLIER_SHARE * (end - begin) and (found is None or longest > found[0]):
            place = int((waits.end - waits.start).argmax())
            calls = np.flatnonzero(rank_trace.start == waits.start[place]).tolist()
            calls = [row for row in calls if is_synchronising(rank_trace.names[int(rank_trace.name[row])])]
            row = max(calls, key=lambda row: int(rank_trace.dur[row]), default=-1)
            found = (longest, rank, int(steps["iteration"].iloc[0]), row)
    if found is None:
        return None
    waited, rank, iteration, row = found
    rank_trace = inputs.trace.rank(rank)
    call = f" in {brief(rank_trace.names[int(rank_trace.name[row])])}" if row >= 0 else ""
    return Finding(
        "earlier_work",
        waited,
        0.0,
        f"As iteration {iteration} begins on rank {rank}, the host waits {duration(waited)}{call} for work "
        "that was launched before the recording. That is no part of the iteration as it is timed here.",
        "Nothing to do; to leave it out of the file, synchronise the device before the profiler starts.",
        "",
        Evidence(rank=rank, iteration=iteration),
        severity="note",
    )


def _longest_calls(inputs: Inputs, windows: dict[int, npt.NDArray[np.int64]]) -> str:
    """`cudaFree (8.0 s in 2 calls), cudaMalloc (12 ms)`: where start-up spends most in these windows.

    Calls of one name add up on a rank; of several ranks the one that spends most there is told.
    """
    most: dict[str, tuple[int, int]] = {}
    for rank, window in windows.items():
        spent: dict[str, list[int]] = {}
        for name, begin, end in inputs.start_up[rank].calls:
            if ((window[:, 0] < end) & (window[:, 1] > begin)).any():
                spent.setdefault(name, []).append(end - begin)
        for name, times in spent.items():
            most[name] = max(most.get(name, (0, 0)), (sum(times), len(times)))
    longest = sorted(most.items(), key=lambda item: (-item[1][0], item[0]))[:_MOST_CALLS]
    return ", ".join(
        f"{name} ({duration(total)}{f' in {count} calls' if count > 1 else ''})"
        for name, (total, count) in longest
    )


def _verdict(topic: str, text: str, suggestion: str) -> Finding:
    return Finding(topic, 0, 0.0, text, suggestion, "", severity="verdict")


def _unanswered(recordings: list[Recording]) -> str:
    launches = sum(recording.launches for recording in recordings)
    return percent(100.0 * sum(recording.unanswered for recording in recordings) / launches)
