"""Rules about host work that a setting cuts: the optimizer's, zeroing, reading values back, allocating."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from hta_widgets.analysis.core.chosen_rows import count_in_each
from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_row
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.anomaly_rule import ADVICE, checks_of
from hta_widgets.analysis.findings.call_time import open_time, without_backward
from hta_widgets.analysis.findings.callers import begins_in
from hta_widgets.analysis.findings.evidence import evidence_of_event
from hta_widgets.analysis.findings.finding import Finding, severity_of
from hta_widgets.analysis.findings.idle_time import idle_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on
from hta_widgets.analysis.findings.rule import IDLE_QUESTION, Change, Rule, idle_rule
from hta_widgets.analysis.idle.causes import named, rows_named
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.analysis.replay.host_points import ALLOCATES
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace


@dataclass(frozen=True)
class _Region:
    """Calls of the host of which a setting leaves hardly any.

    They are reported where the device idles meanwhile, or where a replay without them saves something.

    Attributes:
        calls: pattern of their names. classes: of these.
        each: what is counted in a step: "launches" or "copies" inside of them, or "calls", they themselves.
        more_than: of these are reported. what: they are called.
        change: what takes the cost away; edits_of a name of a call.
        with_work: what the calls launch goes with them, so that its time on the device is lost, too.
        waits: the time that they take is waiting, which costs no more than the device is idle meanwhile.
        suggestion: what to try, and what it risks; `instead` where operators `already` begin so.
    """

    calls: re.Pattern[str]
    classes: tuple[EventClass, ...]
    each: str
    more_than: int
    what: str
    label: str
    edits_of: Callable[[str], list[Edit]]
    suggestion: str
    with_work: bool = False
    waits: bool = False
    already: str = ""
    instead: str = ""

    def suggest(self, rank_trace: RankTrace, calls: Int64) -> str:
        """What to try; something else where the calls do the first already, or check gradients."""
        if 2 * int(np.isin(calls, checks_of(rank_trace)).sum()) > len(calls):
            return ADVICE
        rows = np.flatnonzero(named(rank_trace, lambda name: self.already and name.startswith(self.already)))
        return self.instead if begins_in(rank_trace, rows, calls).any() else self.suggestion


_MENTIONED = 0.1
_MOSTLY = 0.8
"""Of the time of the host: if the device has less of it, that is what it costs."""
_COUNTED = {"launches": "kernels and fills", "copies": "copies", "calls": "times"}


def _without_fills(name: str) -> list[Edit]:
    pattern = edits.exactly(name)
    gone = [make(math.inf, within=pattern) for make in (edits.copies, edits.kernels)]
    return [edits.without(pattern), *gone]


_OPTIMIZER = _Region(
    re.compile(r"^Optimizer\.step#"),
    (EventClass.ANNOTATION,),
    "launches",
    30,
    "the optimizer launches",
    "with a fused optimizer",
    lambda name: [edits.fused_optimizer(edits.exactly(name))],
    "Let the optimizer update all parameters in a few kernels: fused=True, or foreach=True, which takes "
    "memory for a copy of the gradients. Results differ in the last digits.",
    already="aten::_foreach_",
    instead="It updates in groups already: fused=True, where it has that, launches fewer kernels still. "
    "Results differ in the last digits.",
)
_ZERO_GRAD = _Region(
    re.compile(r"^Optimizer\.zero_grad#"),
    (EventClass.ANNOTATION,),
    "launches",
    3,
    "zeroing the gradients launches",
    "without zeroing gradients",
    _without_fills,
    "zero_grad(set_to_none=True) launches nothing; gradients are then None until the next backward pass.",
    with_work=True,
)
_BUCKETS = _Region(
    re.compile(r"^torch\.distributed\.ddp\.reducer::copy_bucket_to_grad$"),
    (EventClass.HOST_OP,),
    "copies",
    50,
    "DDP fills gradients from its buckets by",
    "without copies from DDP's buckets",
    _without_fills,
    "DistributedDataParallel(gradient_as_bucket_view=True): gradients are then views of the buckets, "
    "which also saves their memory. Code that detaches or replaces gradients does not go with it.",
    with_work=True,
)
_ALLOCATOR = _Region(
    ALLOCATES,
    (EventClass.RUNTIME,),
    "calls",
    5,
    "memory is allocated or freed with the driver",
    "with an allocator that keeps memory",
    lambda _: [edits.allocator()],
    "{keep_memory}{grow_memory}",
)


_ITEMS = _Region(
    re.compile(r"^aten::(?:item|nonzero)$"),  # of what a mask chooses, the number is read
    (EventClass.HOST_OP,),
    "calls",
    1,  # of one value a step `idle_host` tells, where the host is late after it
    "values are read back from the device",
    "without waiting for values that are read back",
    lambda name: [edits.syncs(within=edits.exactly(name))],
    "Add up losses and metrics on the device, and read them once in many steps. Inside layers, torch.where "
    "and sizes that the host knows (torch.nonzero_static) take the place of .item() and of boolean masks.",
    waits=True,
)


def _judge(region: _Region, inputs: Inputs) -> Finding | None:
    frame = inputs.idle
    if frame.empty or not inputs.judged:  # often is a number of times in each step
        return None
    calls = {rank: inputs.of(rank, _made, region) for rank in frame["rank"].tolist()}
    by_host = lost_on(frame, {rank: made.taken_ns for rank, made in calls.items()})
    if by_host is None:
        return None
    ranks, worst = by_host.ranks, by_host.worst
    by_device = replace(by_host, ns=np.array([calls[rank].device_ns for rank in ranks], np.int64))
    idle = by_host.share_of(sum(inputs.of(rank, _idle_inside, region) for rank in ranks))
    taken = [
        ("the host", "time_in_calls", by_host),
        ("the device", "launched_in_calls", by_device),
    ]
    taken.sort(key=lambda each: -each[2].share_pct)
    (who, measure, loss), (other, beside, of_other) = taken
    cost, share, device = loss.cost_ns, loss.share_pct, by_device.share_pct
    lost = {rank: inputs.of(rank, _lost, region) for rank in ranks}
    of_lost = replace(by_host, ns=np.array([lost[rank].length for rank in ranks], np.int64))
    rank_trace, rows = inputs.trace.rank(worst), calls[worst].rows
    names = _names(rank_trace, rows)
    every = sorted({rank_trace.names[code] for code in rank_trace.name[rows].tolist()})
    text = say(
        "In the median step {what} {times} ({names}). That takes {who} {lost}.{beside} For {idle} the "
        "device is idle meanwhile.{at_most}",
        what=region.what,
        times=Claim(
            "per_step",
            calls[worst].often,
            "count",
            ranks=(worst,),
            about={"what": region.each, "calls": every},
            shown=f"{calls[worst].often:,} {_COUNTED[region.each]}",
        ),
        names=Claim("longest_calls", tuple(names), "name", ranks=(worst,), about={"calls": every}),
        who=who,
        lost=inputs.time_lost(measure, share, cost, ranks, calls=every),
        beside=say(
            " It takes {other} {share}.",
            other=other,
            share=inputs.of_time(beside, of_other.share_pct, ranks, calls=every),
        )
        if of_other.ns.any()
        else "",
        idle=inputs.of_time("idle_in_calls", idle, ranks, calls=every),
        at_most=say(
            " It costs at most {share}: all idle time, and the work that is launched so.",
            share=inputs.of_time("lost_in_calls", of_lost.share_pct, ranks, calls=every),
        )
        if not region.waits and of_lost.cost_ns < cost
        else "",
    )
    longest = longest_row(rank_trace, rows)
    severity = severity_of(max(idle, device)) or ("note" if severity_of(share) else None)
    return of_lost.finding(
        text,
        inputs.accelerator.fill(region.suggest(rank_trace, rows)),
        "idle_breakdown",
        evidence_of_event(rank_trace, longest, by_host.alone is not None, names[0]),
        change=Change(region.label, lambda found: _edits(found, region)),
        share_of=of_lost.shares,
        lost=inputs.when(
            ranks, lambda rank: inputs.of(rank, _drained, region) if region.waits else lost[rank]
        ),
        only_if_saved=not severity_of(max(idle, device)),
        severity=severity,
    )


def _names(rank_trace: RankTrace, rows: Int64) -> list[str]:
    """The names of these calls: the one with most time, and others that make up a tenth of them or more."""
    time, count = (np.bincount(rank_trace.name[rows], by) for by in (rank_trace.dur[rows], None))
    order = np.argsort(-time, kind="stable")
    mentioned = order[(count[order] >= _MENTIONED * len(rows)) | (order == order[0])]
    return [rank_trace.names[code] for code in mentioned.tolist()]


class _Made(NamedTuple):
    """Calls of a region on a rank."""

    often: int  # what is counted, in the median step
    rows: Int64  # the calls; none where that is not often
    taken_ns: int  # how much of the judged time one of them is open
    device_ns: int = 0  # how much of it the device works on what they launch, where that goes with them


def _made(inputs: Inputs, rank: int, region: _Region) -> _Made:
    rows = _calls(inputs, rank, region)
    often = _often(inputs, rank, rows, region) if len(rows) else 0
    if often <= region.more_than:
        return _Made(often, np.empty(0, np.int64), 0)
    device_ns = _work(inputs, rank, rows).length if region.with_work else 0
    return _Made(often, rows, _open(inputs, rank, rows).length, device_ns)


def _calls(inputs: Inputs, rank: int, region: _Region) -> Int64:
    """The calls of the host in the judged steps."""
    rank_trace = inputs.trace.rank(rank)
    rows = _recorded(rank_trace, region)
    return rows[rank_trace.belong(rows, inputs.scope)]


@memoize_per_rank(last=8)
def _recorded(rank_trace: RankTrace, region: _Region) -> Int64:
    """The calls of the host in the whole recording."""
    rows = rows_named(rank_trace, region.calls.search)
    rows = rows[rank_trace.on_host[rows] & np.isin(rank_trace.event_class[rows], region.classes)]
    return without_backward(rank_trace, rows) if len(rows) else rows


@memoize_per_rank()
def _launches(rank_trace: RankTrace) -> Int64:
    """The calls that launched device work."""
    launches = np.zeros(rank_trace.n, np.bool_)
    launches[rank_trace.issuer[rank_trace.issuer >= 0]] = True
    return np.flatnonzero(launches)


def _often(inputs: Inputs, rank: int, rows: Int64, region: _Region) -> int:
    """Launches inside these calls, or the calls themselves, in the median step."""
    rank_trace = inputs.trace.rank(rank)
    counted = rows
    if region.each != "calls":
        launch = _launches(rank_trace)
        counted = launch[begins_in(rank_trace, launch, rows)]
    per_step = count_in_each(rank_trace, counted, inputs.scope.iterations or ())
    return int(np.median(per_step)) if per_step else 0


def _open(inputs: Inputs, rank: int, calls: Int64) -> Intervals:
    """When one of these calls is open in the judged time."""
    return open_time(inputs.trace.rank(rank), calls) & inputs.judged_time(rank)


def _work(inputs: Inputs, rank: int, calls: Int64) -> Intervals:
    """When the device works in the judged time on what is launched in these calls."""
    rank_trace = inputs.trace.rank(rank)
    launch = _launches(rank_trace)
    rows = np.flatnonzero(np.isin(rank_trace.issuer, launch[begins_in(rank_trace, launch, calls)]))
    return open_time(rank_trace, rows) & inputs.judged_time(rank)


def _lost(inputs: Inputs, rank: int, region: _Region) -> Intervals:
    """What the calls cost: the time of the host in them, or at most what the device has of it.

    A host that is late may make the device idle only later; without any idle time it delays nothing.
    """
    calls = inputs.of(rank, _made, region).rows
    open_ = _open(inputs, rank, calls)
    if region.waits:
        return _idle_in(inputs, rank, calls)
    idle = inputs.idle_causes(rank).gaps & inputs.judged_time(rank)
    work = _work(inputs, rank, calls)
    if region.with_work and work.length >= open_.length:
        return work
    had = idle | work
    return had if had.length < _MOSTLY * open_.length else open_


def _drained(inputs: Inputs, rank: int, region: _Region) -> Intervals:
    """When the host is late after it has waited in these calls until the device had nothing left to do."""
    idle = inputs.idle_causes(rank)
    open_ = open_time(inputs.trace.rank(rank), inputs.of(rank, _made, region).rows)
    begins = idle.gaps.start
    after = open_.within_each(np.stack([begins - 1, begins + 1], 1)) > 0
    return Intervals(begins[after], idle.gaps.end[after]) & idle_of(inputs, rank, "host_busy")


def _idle_inside(inputs: Inputs, rank: int, region: _Region) -> int:
    """How much of the judged time the device is idle while one of the calls is open, start-up aside, ns."""
    return _idle_in(inputs, rank, _calls(inputs, rank, region)).length


def _idle_in(inputs: Inputs, rank: int, calls: Int64) -> Intervals:
    rank_trace = inputs.trace.rank(rank)
    idle = inputs.idle_causes(rank).gaps & open_time(rank_trace, calls)
    if rank in inputs.start_up:
        idle -= inputs.start_up[rank].idle
    return idle & inputs.judged_time(rank)


def _edits(rank_trace: RankTrace, region: _Region) -> list[Edit]:
    """For each name of such calls, once each."""
    of_class = np.isin(rank_trace.event_class, region.classes)
    names = [rank_trace.names[code] for code in np.unique(rank_trace.name[of_class]).tolist()]
    made = [edit for name in sorted(names) if region.calls.search(name) for edit in region.edits_of(name)]
    return list(dict.fromkeys(made))


def _has_steps(inputs: Inputs) -> bool:
    return bool(inputs.judged)


RULES = (
    idle_rule(
        topic="optimizer_not_fused",
        title="Launching the optimizer's work piece by piece",
        label="Optimizer",
        cause="an optimizer that is not fused",
        judge=partial(_judge, _OPTIMIZER),
        applies=_has_steps,
        risk="Sums are rounded in another order.",
        needs="An optimizer with fused=True or foreach=True.",
        wrong_if="The optimizer has no fused version for these parameters.",
    ),
    idle_rule(
        topic="zero_grad_fills",
        title="Zeroing gradients",
        label="zero_grad",
        cause="zeroing gradients",
        judge=partial(_judge, _ZERO_GRAD),
        applies=_has_steps,
        risk="Code that reads .grad finds None.",
        needs="zero_grad(set_to_none=True).",
        wrong_if="The gradients are meant to stay: they are added up over several passes.",
    ),
    idle_rule(
        topic="values_read_back",
        title="Reading single values back",
        label="Values read back",
        cause="single values read back",
        judge=partial(_judge, _ITEMS),
        applies=_has_steps,
        risk="What is read later is decided later: a stop or a skipped update comes a step late.",
        needs="Access to the code that reads them.",
        wrong_if="The program decides by these values what to launch next.",
    ),
    Rule(
        topic="bucket_copies",
        question=IDLE_QUESTION,
        title="Copying DDP's buckets back into gradients",
        label="DDP bucket copies",
        cause="copies of DDP's buckets",
        lost_as="memory",
        judge=partial(_judge, _BUCKETS),
        applies=_has_steps,
        risk="Gradients share the memory of the buckets: they must not be detached or replaced.",
        needs="DistributedDataParallel(gradient_as_bucket_view=True).",
        wrong_if="The program replaces or detaches gradients, so that they cannot be views.",
    ),
    idle_rule(
        topic="allocator_calls",
        title="Allocating memory with the driver",
        label="Allocating memory",
        cause="memory allocated with the driver",
        judge=partial(_judge, _ALLOCATOR),
        applies=_has_steps,
        risk="Memory stays reserved.",
        needs="Memory for the peak, or sizes that repeat.",
        wrong_if="The memory is allocated outside PyTorch, by a library of its own.",
    ),
)
