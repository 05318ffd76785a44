"""What can be said of a recording before, or instead of, anything about its time."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.communication.collectives import read_ahead
from hta_widgets.analysis.core.claim import Claim, Said, Text, say, says
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.callers import place_claim
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.judged_time import MUCH_START_UP_PCT
from hta_widgets.analysis.findings.rule import MAIN_QUESTION, Found, Role, Rule
from hta_widgets.analysis.idle.causes import blocked_threads, is_synchronising
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.analysis.idle.start_up import job_start_up
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, capitalised, counted, duration
from hta_widgets.trace.iteration_clock import EARLIER_SHARE
from hta_widgets.trace.model import Trace
from hta_widgets.trace.recording import Recording
from hta_widgets.trace.scope import Scope

_MOST_CALLS, _WORTH_NAMING = 2, 0.05  # of the one that is waited for longest
# What is asked of each rank, and stays when its columns are dropped.
_FACTS = (
    "device_name", "device_events", "device_span", "work_names", "vetoes", "doubtful_steps", "without_launch",
)  # fmt: skip


def _of_recording(topic: str, title: str, headline: str = "") -> Rule:
    """What is said of a recording before any rule is asked."""
    role: Role = "recording" if headline else "aside"
    return Rule(topic, MAIN_QUESTION, title, lambda inputs: None, role, headline=headline)


_SEVERAL_JOBS = _of_recording(
    "several_jobs",
    "These recordings are not the ranks of one job",
    "These recordings are not the ranks of one job: nothing is compared.",
)
_FILTERED = _of_recording(
    "filtered",
    "Events were removed from this recording",
    "Events were removed from this recording: where time goes is unknown.",
)
_FRAGMENT = _of_recording(
    "fragment",
    "The recording holds one piece of device work",
    "The recording holds one piece of device work: too little to say where time goes.",
)
_GRAPH_CAPTURE = _of_recording(
    "graph_capture",
    "A graph is being captured",
    "A graph is being captured: what is launched does not run.",
)
_UNREAD_FILES = _of_recording("unread_files", "Files that could not be read")
_EARLIER_WORK = _of_recording("earlier_work", "Work launched before the recording")
START_UP = Rule(
    topic="start_up",
    question=MAIN_QUESTION,
    title="Starting up",
    label="Start-up",
    cause="start-up",
    lost_as="idle",
    judge=lambda inputs: None,
    no_change="it is no part of a steady step",
    once=True,
)


def recording_verdict(trace: Trace, scope: Scope) -> Found | None:
    """Why no sentence about the time of this recording could be true; None if some can."""
    short = trace.exceeds_memory
    recordings = {rank: _look_at(trace, rank, short) for rank in trace.ranks_of(scope)}
    if short and len(recordings) == len(trace.ranks):
        _ = trace.health  # which is kept, so that no rank is read for it once more
    if len(recordings) > 1 and trace.several_jobs:
        return _verdict(
            _SEVERAL_JOBS,
            say(
                "These are not the ranks of one job: {why}. Nothing can be compared or averaged between "
                "them.",
                why=Claim("several_jobs", trace.several_jobs, "name", shown=trace.several_jobs),
            ),
            "Open each recording by itself, or choose one rank.",
        )
    filtered = {rank: recording for rank, recording in recordings.items() if recording.filtered}
    if filtered:
        least = min(recording.kept_pct for recording in filtered.values())
        return _verdict(
            _FILTERED,
            say(
                "Events were removed from this recording: it holds {kept} of the operators that ran. What "
                "lies between those that are left is no idle time, and what is missing may be the cause.",
                kept=Claim("least_kept", least, "%", "operators", tuple(filtered)),
            ),
            "Open the files as the profiler wrote them.",
        )
    # one piece of work has no gap to another
    counts = [trace.rank(rank).device_events for rank in recordings]
    if counts and max(counts) == 1:
        return _verdict(
            _FRAGMENT,
            say(
                "The recording holds {count} piece of device work: too little to say where time goes.",
                count=Claim("device_events", 1, "count", shown="one"),
            ),
            "Record some whole steps: torch.profiler.schedule(wait=1, warmup=3, active=5).",
        )
    captured = {rank: each for rank, each in recordings.items() if each.kind == "graph capture"}
    if captured:
        launches, unanswered = (
            sum(getattr(recording, counted) for recording in captured.values())
            for counted in ("launches", "unanswered")
        )
        return _verdict(
            _GRAPH_CAPTURE,
            say(
                "A graph is being captured: {unanswered} of {launches} launches are recorded into it and do "
                "not run, so that an idle device means nothing here.",
                unanswered=Claim("launches_without_work", unanswered, "count", ranks=tuple(captured)),
                launches=Claim("launches", launches, "count", ranks=tuple(captured)),
            ),
            "Record replays of the graph to see what the device does.",
        )
    return None


def _look_at(trace: Trace, rank: int, short: bool) -> Recording:
    """What a rank records; with it all else that is asked of each before the rules are, and stays.

    Where memory is `short`, also what `health` and `collectives` say of it.
    """
    rank_trace = trace.rank(rank)
    for fact in _FACTS:
        getattr(rank_trace, fact)
    job_start_up(trace, rank)
    if short:
        read_ahead(trace, rank)
        trace.findings_about(rank, trace.job_size)
    return rank_trace.recording


def unread_files(trace: Trace) -> Found | None:
    """That files of the job could not be read, so that every answer is about the others."""
    if not trace.failed:
        return None
    unread, ranks = len(trace.failed), len(trace.ranks)
    those: Said = Claim("read_ranks", tuple(trace.ranks), "ranks")
    if ranks > 1:
        number = Claim("read_ranks", ranks, "count", shown=counted(ranks, "rank"))
        those = say("the {number} that could be", number=number)
    return _verdict(
        _UNREAD_FILES,
        say(
            "{files} could not be read: whatever is said is about {those}.",
            files=Claim("unread_files", unread, "count", shown=counted(unread, "file")),
            those=those,
        ),
        "See trace.health for the reasons.",
    )


def why_withheld(inputs: Inputs, starting: Finding | None) -> MissingDataError | None:
    """What keeps every rule about time from speaking; None if nothing does.

    Args:
        inputs: the answers about the job.
        starting: what `start_up` found.
    """
    if inputs.contradicted:
        first = inputs.trace.rank(inputs.trace.ranks_of(inputs.scope)[0])
        return MissingDataError(
            "step whose time holds its own device work",
            f"{capitalised(first.times_steps_better)}.",
            "the device runs behind the host",
        )
    if starting is not None and starting.share_pct >= MUCH_START_UP_PCT and inputs.settled_ns is None:
        return MissingDataError(
            "steady state",
            "Record steps after the warm-up: torch.profiler.schedule(wait=1, warmup=3, active=5).",
            "start-up takes much of all that was recorded",
        )
    return None


def start_up(inputs: Inputs) -> Found | None:
    """Calls that load or compile code, or set up, while the device waits, once, as when a process begins."""
    if not inputs.start_up:
        return None
    if inputs.left_out:
        iterations = sorted({iteration for _, iteration in inputs.left_out})
        windows = {
            rank: inputs.trace.rank(rank).windows(Scope(iterations=tuple(iterations)))
            for rank in sorted({rank for rank, _ in inputs.left_out})
        }
        spent = max(inputs.start_up[rank].idle.within(window) for rank, window in windows.items())
        calls = _longest_calls(inputs, windows)
        of = "work of the profiler" if {call.kind for call in calls} == {"profiler"} else "start-up"
        some = f"Iteration {{steps}} holds {of} and is"
        if len(iterations) > 1:
            some = f"Iterations {{steps}} hold {of} and are"
        text = say(
            some + " left out of what is said here. The device waits, once, for {calls}.",
            steps=Claim("start_up_in", tuple(iterations), "steps"),
            calls=_calls_text(inputs, calls),
        )
        advice = "Nothing to do for the steady state; to see it alone, record after the warm-up."
        evidence = replace(_of_start_up(inputs, windows), iteration=iterations[0])
        finding = Finding(spent, 0.0, text, advice, "idle_breakdown", evidence, severity="note")
        return Found(START_UP, finding)
    if inputs.settled_ns is not None:
        return _settled(inputs, inputs.settled_ns)
    frame = inputs.idle_at_all
    lost, whole = int(frame["start_up_ns"].sum()), int(frame["window_ns"].sum())
    if not whole:
        return None
    cost, share = lost // len(frame), 100.0 * lost / whole
    windows = {rank: inputs.trace.rank(rank).windows(inputs.scope) for rank in inputs.start_up}
    ranks, longest = frame["rank"].tolist(), _longest_calls(inputs, windows)
    text = say(
        "Start-up takes {share} ({time}). The device waits, once, for {calls}. It says nothing about the "
        "steady state.",
        share=inputs.share_of_time("start_up", share, ranks),
        time=Claim("start_up", cost, "ns", ranks=tuple(ranks)),
        calls=_calls_text(inputs, longest),
    )
    finding = Finding(
        cost,
        share,
        text,
        "Record steps after the warm-up: torch.profiler.schedule(wait=1, warmup=3, active=5).",
        "idle_breakdown",
        _of_start_up(inputs, windows),
        lost=inputs.when(windows, lambda rank: inputs.start_up[rank].idle & inputs.judged_time(rank)),
        title=_title_of(longest, cost),
    )
    return Found(START_UP, finding)


def _settled(inputs: Inputs, settled: int) -> Found:
    """Start-up before the time that is judged: idle time, and the work in between."""
    windows = {rank: np.array([span], np.int64) for rank, span in inputs.worked.items()}
    own = {rank: np.clip(windows[rank], None, settled) for rank in inputs.start_up}
    whole = sum(end - begin for begin, end in inputs.worked.values())
    first = sum(min(settled, end) - begin for begin, end in inputs.worked.values())
    idle = sum(each.idle.within(own[rank]) for rank, each in inputs.start_up.items())
    ranks, share, count = tuple(windows), 100.0 * first / whole, len(windows)
    longest = _longest_calls(inputs, own)
    text = say(
        "Start-up takes the first {first} of {whole} of recorded work. The device waits {idle} of it, once. "
        "Longest: {calls}. What else is said here is about the {rest} after it.",
        first=Claim("start_up_until", first // count, "ns", "", ranks),
        whole=Claim("recorded_work", whole // count, "ns", "", ranks),
        idle=Claim("start_up", idle // count, "ns", "", ranks, {"whole": "recording"}),
        calls=_calls_text(inputs, longest),
        rest=Claim("judged_time", max(inputs.judged_ns.values(), default=0), "ns"),
    )
    return Found(
        replace(START_UP, role="aside"),
        Finding(
            first // count,
            share,
            text,
            "Record steps after the warm-up: torch.profiler.schedule(wait=1, warmup=3, active=5).",
            "idle_breakdown",
            _of_start_up(inputs, own),
            headline=f"Start-up takes the first {duration(first // count)} of {duration(whole // count)}, "
            f"mostly {longest[0].brief}",
        ),
    )


def _of_start_up(inputs: Inputs, windows: dict[int, npt.NDArray[np.int64]]) -> Evidence:
    """The longest idle time around driver calls, and the call in it."""
    idle = {
        rank: inputs.start_up[rank].idle & Intervals.union(window[:, 0], window[:, 1])
        for rank, window in windows.items()
    }
    rank = max(idle, key=lambda rank: idle[rank].length, default=None)
    if rank is None or not len(idle[rank]):
        return Evidence()
    span, rank_trace = idle[rank].longest, inputs.trace.rank(rank)
    inside = {
        call.row: min(rank_trace.end[call.row], span[1]) - max(rank_trace.start[call.row], span[0])
        for call in inputs.start_up[rank].calls
    }
    row = max(inside, key=lambda row: int(inside[row]))
    event = int(rank_trace.event_id[row]) if inside[row] > 0 else None
    return Evidence(event_rank=rank, event_id=event, span=span)


def earlier_work(inputs: Inputs) -> Found | None:
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
    call = "" if row < 0 else str(rank_trace.names[int(rank_trace.name[row])])
    text = say(
        "As iteration {step} begins on {rank}, the host waits {time}{call} for work that was launched before "
        "the recording. That is no part of the iteration as it is timed here.",
        step=Claim("earliest_step", (iteration,), "steps", ranks=(rank,)),
        rank=Claim("waits_for_earlier_work", (rank,), "ranks"),
        time=Claim("wait_for_earlier_work", waited, "ns", ranks=(rank,)),
        call=say(" in {call}", call=place_claim("waits_in", call, rank)) if call else "",
    )
    advice = "Nothing to do; to leave it out of the file, synchronise the device before the profiler starts."
    event = int(rank_trace.event_id[row]) if row >= 0 else None
    evidence = Evidence(rank, iteration, event_rank=None if event is None else rank, event_id=event)
    return Found(_EARLIER_WORK, Finding(waited, 0.0, text, advice, "", evidence, severity="note"))


class _Cold(NamedTuple):
    """How long the device waits for calls of a kind that are about the same, on the rank that waits most."""

    ns: int
    rank: int
    kind: str
    about: str
    names: list[str]

    @property
    def brief(self) -> str:
        """`cudaFree`, `compiling fused_moe_kernel`."""
        what = brief(short_place(self.about)) if self.about else "code"
        of = {"compiler": "compiling ", "first": "the first call of ", "profiler": "the profiler's "}
        return of.get(self.kind, "") + what

    def text(self, nth: int, of_several: bool) -> Text:
        """`cudaFree (8.0 s)`, `compiling fused_moe_kernel (356 ms on rank 1)`."""
        ranks, which = (self.rank,), {"calls": self.names}
        what: Said = place_claim("cold_call", self.about, self.rank, nth=nth)
        if self.kind == "first":
            what = say("the first call of {operator}", operator=what)
        elif self.kind == "profiler":
            what = say("the profiler's {work}", work=what)
        elif self.kind == "compiler":
            compiled = Claim(
                "compiled", self.about, "name", ranks=ranks, shown=brief(short_place(self.about))
            )
            what = say("compiling {what}", what=compiled if self.about else "code")
        if not self.ns:  # it only waits around the call
            return say("{what}", what=what)
        return say(
            "{what} ({time}{where})",
            what=what,
            time=Claim("start_up_call_time", self.ns, "ns", ranks=ranks, about=which),
            where=say(" on {rank}", rank=Claim("start_up_on", ranks, "ranks", about=which))
            if of_several
            else "",
        )


def _longest_calls(inputs: Inputs, windows: dict[int, npt.NDArray[np.int64]]) -> list[_Cold]:
    """What the device waits for longest in these windows; of several ranks, on the one that waits most."""
    most: dict[tuple[str, str], _Cold] = {}
    for rank, window in windows.items():
        rank_trace = inputs.trace.rank(rank)
        same: dict[tuple[str, str], list[int]] = {}
        for call in inputs.start_up[rank].calls:
            if (
                (window[:, 0] < rank_trace.end[call.row]) & (window[:, 1] > rank_trace.start[call.row])
            ).any():
                same.setdefault((call.kind, call.about), []).append(call.row)
        idle = inputs.start_up[rank].idle & Intervals.union(window[:, 0], window[:, 1])
        for key, rows in same.items():
            names = sorted({rank_trace.names[code] for code in rank_trace.name[rows].tolist()})
            waited = idle & Intervals.union(rank_trace.start[rows], rank_trace.end[rows])
            cold = _Cold(waited.length, rank, *key, names)
            most[key] = max(most.get(key, cold), cold, key=lambda each: each.ns)
    found = sorted(most.values(), key=lambda each: (-each.ns, each.about))[:_MOST_CALLS]
    return [each for each in found if each.ns >= _WORTH_NAMING * found[0].ns]


def _calls_text(inputs: Inputs, calls: list[_Cold]) -> Text:
    of_several = len(inputs.trace.ranks_of(inputs.scope)) > 1
    return says([cold.text(nth, of_several) for nth, cold in enumerate(calls)], ", ")


def _title_of(calls: list[_Cold], cost_ns: int) -> str:
    """`Starting up, compiling f,` where that is what takes longest; `mostly cudaFree`, where most; or ""."""
    if calls and calls[0].kind == "compiler":
        return f"Starting up, {calls[0].brief},"
    return f"Starting up, mostly {calls[0].brief}," if calls and 2 * calls[0].ns >= cost_ns else ""


def _verdict(rule: Rule, text: Text, suggestion: str) -> Found:
    return Found(rule, Finding(0, 0.0, text, suggestion, "", severity="verdict"))
