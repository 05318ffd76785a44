"""What `health` says of records: which cannot be true, which are missing, and how exact they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.formatting import brief, byte_size, counted, duration, percent
from hta_widgets.trace.classify import EventClass, category_of
from hta_widgets.trace.health_finding import Finding
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.records.allocator import allocator_faults
from hta_widgets.trace.records.marks import Mark
from hta_widgets.trace.records.vetoes import for_lost_records

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

_KINDS = {
    Mark.NO_TIME: "carry no usable time",
    Mark.EARLY_START: "start before their launch, or before the work ahead of them in their queue ended",
    Mark.LATE_END: "end after later work of their in-order queue ended",
    Mark.OVERLAP: "reach far into the next work of their in-order queue",
}
# Sums that are low by less need no word.
_WORTH_TELLING_PCT = 0.5
_STEPS_NAMED = 8


def record_findings(rank_trace: RankTrace) -> list[Finding]:
    """The findings about the records of one rank's file."""
    return [
        *_impossible(rank_trace),
        *_no_device_work(rank_trace),
        *_lost_work(rank_trace),
        *_without_call(rank_trace),
        *_clock(rank_trace),
        *_incomplete_steps(rank_trace),
        *_processes(rank_trace),
        *_whole_microseconds(rank_trace),
        *_memory_events(rank_trace),
    ]


def _impossible(rank_trace: RankTrace) -> list[Finding]:
    marked, table = rank_trace.slices.marked, rank_trace.table
    findings = []
    for mark, what in _KINDS.items():
        at = np.flatnonzero(marked.mark == mark)
        if not len(at):
            continue
        event, out = int(marked.rows[at[0]]), int(marked.excluded[at].sum())
        code = int(table.codes("name")[event])
        name = table.dictionary("name")[code] if code >= 0 else ""
        start, dur = int(marked.start[at[0]]), int(marked.dur[at[0]])
        times = [
            f"at {duration(start - rank_trace.offset_ns)}" if start != NULL and mark != Mark.NO_TIME else "",
            f"for {duration(dur)}" if dur >= 0 and mark != Mark.NO_TIME else "",
        ]
        example = " ".join(filter(None, [brief(name), *times]))
        kept = len(at) - out
        became = ", ".join(filter(None, [
            f"{kept:,} estimated from similar work" if kept else "", f"{out:,} left out" if out else "",
        ]))  # fmt: skip
        detail = f"records that {what}: {became}. The first is {example}"
        remedy = rank_trace.accelerator.fewer_events
        findings.append(Finding(rank_trace.rank, "warning", mark.label, len(at), detail, remedy))
    return findings


def _no_device_work(rank_trace: RankTrace) -> list[Finding]:
    if rank_trace.is_device.any():
        return []
    recorder, launches = rank_trace.accelerator, len(rank_trace.losses.launches)
    detail, remedy = "no work of an accelerator was recorded", recorder.record
    if launches:
        detail = (
            f"{counted(launches, 'launch', 'launches')} of device work, but none of the work was recorded"
        )
        remedy = for_lost_records(rank_trace, recorder.to_the_end)
    return [Finding(rank_trace.rank, "warning", "no_device_events", max(1, launches), detail, remedy)]


def _lost_work(rank_trace: RankTrace) -> list[Finding]:
    losses, recording, recorder = rank_trace.losses, rank_trace.recording, rank_trace.accelerator
    findings = []
    if captured := len(losses.captured):
        whole = recording.kind == "graph capture"
        detail = "launches that are captured into a graph and do not run"
        remedy = "record replays of the graph to see what the device does" if whole else ""
        findings.append(
            Finding(
                rank_trace.rank, "warning" if whole else "info", "graph_capture", captured, detail, remedy
            )
        )
    lost = len(losses.lost)
    if lost and rank_trace.is_device.any():
        row = int(losses.lost[0])
        # without numbers of the rank, so that ranks which have this in common share a row
        called = brief(rank_trace.names[rank_trace.name[row]])
        detail = f"launches whose device work was not recorded, such as {called}"
        remedy = recorder.fewer_events
        if losses.trailing == lost:
            detail, remedy = f"{detail}: the last ones of the recording", recorder.to_the_end
        elif losses.leading:
            among = "" if losses.leading == lost else "among them "
            detail = f"{detail}: {among}the first ones of the recording"
            remedy = recorder.from_the_start
        severe = recording.lacks_device_work or any(step.lost for step in rank_trace.doubtful_steps)
        severity = "warning" if severe else "info"
        findings.append(Finding(rank_trace.rank, severity, "lost_launches", lost, detail, remedy))
    if short := recording.replays.short:
        detail = (
            "replays of graphs that lack kernels which others of the same graph have, of "
            f"{recording.replays.count:,}: the profiler dropped events"
        )
        remedy = f"{recorder.fewer_events}; idle time in these replays is none"
        severity = "warning" if recording.cuts_replays else "info"
        findings.append(Finding(rank_trace.rank, severity, "short_replays", short, detail, remedy))
    return findings


def _without_call(rank_trace: RankTrace) -> list[Finding]:
    """Device work whose launching call is not in the file, or not known. MTIA's transfers have none."""
    by_design = np.array([category_of(text).strict for text in rank_trace.categories], np.bool_)
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.launch < 0))
    own_id = rank_trace.correlation[rows] > 0
    rows = rows[own_id | ~by_design[rank_trace.category[rows]]]
    own_id = rank_trace.correlation[rows] > 0
    has_calls = bool((rank_trace.event_class == EventClass.RUNTIME).any())
    if not len(rows):
        return []
    total = rank_trace.device_events
    findings = []
    uncalled = rank_trace.losses.uncalled
    unlinked = rows[~own_id] if has_calls else rows[:0]
    unseen = rank_trace.losses.unseen
    earlier = len(rows) - len(unlinked) - (len(uncalled) + len(unseen) if has_calls else 0)
    if earlier:
        detail = (
            f"device events launched before the recording began ({percent(100.0 * earlier / total)} of all)"
        )
        remedy = "record from before the first launch"
        if not has_calls:
            detail = "device events without the calls that launched them: the host was not recorded"
            remedy = rank_trace.accelerator.record
        severity = "warning" if earlier > 0.01 * total else "info"
        findings.append(Finding(rank_trace.rank, severity, "orphans", earlier, detail, remedy))
    if has_calls and len(uncalled):
        example = brief(rank_trace.names[rank_trace.name[uncalled[0]]])
        detail = f"device events in the middle whose launching call is missing, such as {example}"
        remedy = "open the file as the profiler wrote it; if it is, record fewer steps at a time"
        findings.append(Finding(rank_trace.rank, "warning", "calls_lost", len(uncalled), detail, remedy))
    if has_calls and len(unseen):
        example = brief(rank_trace.names[rank_trace.name[unseen[0]]])
        detail = f"device events none of whose launches was recorded, such as {example}"
        remedy = "update PyTorch: before 2.1 it did not record driver calls, which launch Triton's kernels"
        severity = "warning" if len(unseen) > 0.01 * total else "info"
        findings.append(Finding(rank_trace.rank, severity, "launches_unseen", len(unseen), detail, remedy))
    if len(unlinked):
        detail = "device events without an id of their own: which call launched them is unknown"
        findings.append(Finding(rank_trace.rank, "info", "unlinked", len(unlinked), detail))
    return findings


def _clock(rank_trace: RankTrace) -> list[Finding]:
    if not (ahead := rank_trace.clock_ahead_ns):
        return []
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.launch >= 0) & ~rank_trace.estimated)
    early = int((rank_trace.start[rows] < rank_trace.launched_at(rows)).sum())
    detail = (
        "device events that start before their launch: the device's clock runs at least "
        f"{duration(ahead)} ahead of the host's"
    )
    remedy = "times on the device are right among themselves; launch delays and idle causes are not"
    return [Finding(rank_trace.rank, "warning", "device_before_launch", early, detail, remedy)]


def _incomplete_steps(rank_trace: RankTrace) -> list[Finding]:
    steps = rank_trace.doubtful_steps
    if not steps:
        return []
    named = "; ".join(f"{step.iteration}: {step.reason}" for step in steps[:_STEPS_NAMED])
    more = f"; and {len(steps) - _STEPS_NAMED:,} more" if len(steps) > _STEPS_NAMED else ""
    detail = f"steps whose records are not whole, left out of what is said of steps: {named}{more}"
    remedies = [veto.remedy for veto in rank_trace.vetoes if veto.iteration == steps[0].iteration]
    return [Finding(rank_trace.rank, "warning", "incomplete_steps", len(steps), detail, *remedies[:1])]


def _processes(rank_trace: RankTrace) -> list[Finding]:
    pids = rank_trace.processes
    if len(pids) < 2:
        return []
    detail = (
        f"events of processes {' and '.join(pids[:4])} in one file: their launches cannot be distinguished"
    )
    remedy = "export one file for each process, and open them together"
    return [Finding(rank_trace.rank, "warning", "several_processes", len(pids), detail, remedy)]


def _whole_microseconds(rank_trace: RankTrace) -> list[Finding]:
    cut_off = rank_trace.cut_off_ns
    total = int(rank_trace.dur[rank_trace.is_device].sum())
    share = 100.0 * cut_off / total if total else 100.0
    if not cut_off or share <= _WORTH_TELLING_PCT:
        return []
    count = cut_off // 500
    detail = (
        f"device records in whole microseconds. If durations were cut off, device time is {percent(share)} "
        f"low ({duration(cut_off)}), and idle time as much too high"
    )
    return [
        Finding(
            rank_trace.rank,
            "info",
            "whole_microseconds",
            count,
            detail,
            "PyTorch 2.4 and later record nanoseconds; earlier versions cut them off",
        )
    ]


def _memory_events(rank_trace: RankTrace) -> list[Finding]:
    table, faults = rank_trace.table, allocator_faults(rank_trace.table)
    findings = []
    if len(faults.contradictory):
        event = int(faults.contradictory[0])
        at = duration(int(table.ints("start_ns")[event]) - rank_trace.offset_ns)
        detail = f"memory events whose numbers contradict each other, left out; the first at {at}"
        remedy = rank_trace.accelerator.update
        count = len(faults.contradictory)
        findings.append(Finding(rank_trace.rank, "warning", "memory_contradiction", count, detail, remedy))
    if len(faults.gaps):
        at = duration(int(table.ints("start_ns")[faults.gaps[0]]) - rank_trace.offset_ns)
        detail = f"places where memory events are missing before the next one; the first at {at}"
        remedy = "record fewer steps at a time; totals are right, owners and lifetimes may not be"
        findings.append(Finding(rank_trace.rank, "warning", "memory_gaps", len(faults.gaps), detail, remedy))
    if len(faults.refused):
        findings.append(_out_of_memory(rank_trace, faults.refused))
    return findings


def _out_of_memory(rank_trace: RankTrace, refused: npt.NDArray[np.int32]) -> Finding:
    """What the first of the refused requests asked for, and what was held, where the file says so."""
    table, first = rank_trace.table, refused[:1]
    requested, held, start = (
        int(table.ints_of(name, first)[0]) for name in ("alloc_bytes", "total_allocated_bytes", "start_ns")
    )
    detail = "requests that the allocator refused: an allocation"
    detail += f" of {byte_size(requested)}" if requested > 0 else ""
    detail += f" at {duration(start - rank_trace.offset_ns)}"
    detail += f". {byte_size(held)} were allocated then" if held >= 0 else ""
    remedy = "see the memory timeline for what held the rest"
    return Finding(rank_trace.rank, "warning", "out_of_memory", len(refused), detail, remedy)
