"""Rules about idle devices, one per cause of `idle_breakdown`: how much, and where the host was meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Said, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings import advice
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.idle_time import Cause, Where, apart_ns, idle_of, where_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import Loss, lost_on
from hta_widgets.analysis.findings.pause_rules import without_pauses
from hta_widgets.analysis.findings.rule import GETS_AHEAD, Change, idle_rule
from hta_widgets.analysis.idle.causes import is_data_loading, is_synchronising
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.formatting import brief
from hta_widgets.trace.rank_trace import RankTrace

_DATA = Cause(
    "data_stall",
    "while the host waits for the data loader",
    advice.data_stall,
    known=is_data_loading,
    shown_by=is_data_loading,
)
_SYNC = Cause(
    "host_sync",
    "while the host is blocked in a synchronising call",
    advice.sync_calls,
    shown_by=is_synchronising,
)
_HOST = Cause(
    "host_busy",
    "because the host launches too late",
    advice.idle_host,
    title="Waiting for the host to launch work",
    host_ahead=True,
)
_LAUNCH = Cause(
    "launch_latency",
    "until a launch arrives, with nothing queued",
    advice.launch_bound,
    title="Waiting for launches to arrive",
    known=lambda name: "GraphLaunch" not in name,  # after the call, what the host does is no matter
    host_ahead=True,
)
_BETWEEN = Cause(
    "kernel_wait", "between one queued kernel and the next", advice.tiny_kernels, waits_for_host=False
)
_WAIT = Cause("device_wait", "although work is launched", advice.device_wait, waits_for_host=False)

_NO_WAIT_FOR_MEMORY = (
    "That is more than the cost: the host waits for memory at no other time, either, and gets ahead."
)
_CUT_BY_GRAPHS = (_LAUNCH, _BETWEEN)


def _judge(cause: Cause, inputs: Inputs) -> Finding | None:
    loss = lost_on(inputs.idle, f"{cause.cause}_ns")
    if loss is None or not severity_of(loss.share_pct):
        return None
    ranks, worst, share = loss.ranks, loss.worst, loss.share_pct
    late = int(loss.rows["host_busy_ns"].sum())
    arriving = int(loss.rows["launch_latency_ns"].sum())
    follows = NOTHING_SAID
    if arriving < late and severity_of(loss.share_of(late)):
        if cause is _LAUNCH:  # what is launched late also takes its time to arrive
            return None
        part = loss.share_of(arriving)
        if cause is _HOST and severity_of(part):
            follows = say(
                ". Launch latency takes another {share}",
                share=inputs.of_time(
                    "idle_by_cause", part, ranks, cause="launch_latency",
                    apart_ns=apart_ns(inputs, ranks, "launch_latency"),
                ),
            )  # fmt: skip
    where = where_of(inputs, worst, cause)
    text = say(
        "{who} idle {lost} {reason}{where}{follows}.{mostly}",
        mostly=_mostly(loss, cause.cause),
        who=idle_device(loss, cause=cause.cause),
        lost=inputs.time_lost(
            "idle_by_cause", share, loss.cost_ns, ranks, cause=cause.cause,
            apart_ns=apart_ns(inputs, ranks, cause.cause),
        ),
        reason=cause.reason,
        where=where.text(len(ranks) > 1),
        follows=follows,
    )  # fmt: skip
    return loss.finding(
        text,
        cause.advise(inputs, where),
        "idle_breakdown",
        Evidence(rank=loss.alone, event_rank=worst, event_id=where.shown_by, span=where.gap),
        share_of=loss.shares,
        lost=inputs.when(ranks, lambda rank: idle_of(inputs, rank, cause.cause)),
        explains=loss.alone,
        change=_keeps_memory(where) if cause is _SYNC else None,
        title=f"{cause.title} (mostly {brief(where.region)})"
        if _in_region(inputs, loss, where, cause)
        else "",
        change_made=_graphs_already(where) if cause in _CUT_BY_GRAPHS and inputs.replays_graphs else "",
    )


def idle_finding(
    inputs: Inputs, loss: Loss, time: Mapping[int, Intervals], text: Text, advice: str, row: int, **known: Any
) -> Finding:
    """The finding of what ranks lose of some time of their hosts; the event of a row shows it."""
    event = int(inputs.trace.rank(loss.worst).event_id[row])
    return loss.finding(
        text,
        advice,
        "idle_breakdown",
        Evidence(loss.alone, event_rank=loss.worst, event_id=event, span=time[loss.worst].longest),
        share_of=loss.shares,
        lost=inputs.when(loss.ranks, time.__getitem__),
        explains=loss.alone,
        **known,
    )


def _in_region(inputs: Inputs, loss: Loss, where: Where, cause: Cause) -> bool:
    """Whether it lies in a region where it is most, and where it is least, too."""
    least = loss.ranks[int(loss.ns.argmin())]
    if not where.region or not idle_of(inputs, least, cause.cause):
        return False
    return least == where.rank or where_of(inputs, least, cause).region == where.region


def _mostly(loss: Loss, cause: str) -> Text:
    """On which ranks nearly all of it is, where that is some of them."""
    ranks = tuple(loss.mostly_on)
    on = Claim("idle_mostly_on", ranks, "ranks", about={"cause": cause})
    return say(" Nearly all of it is on {ranks}.", ranks=on) if ranks else NOTHING_SAID


def _keeps_memory(where: Where) -> Change | None:
    """The change where the host waits in calls of the driver for memory, whose own time goes, too."""
    if not where.allocates:
        return None
    label, made = "with an allocator that keeps memory", [edits.allocator()]
    if not where.only_allocates:
        label, made = f"{label} and without other waiting in synchronising calls", [*made, edits.syncs()]
    return Change(label, lambda _: made, _NO_WAIT_FOR_MEMORY)


def _graphs_already(where: Where) -> str:
    if where.of_graphs:
        return "most of it lies in graphs that are replayed already"
    return "the program replays graphs already; what more of them would save is not simulated"


def idle_device(loss: Loss, measure: str = "most_idle", **about: Any) -> Said:
    """`The device is`, `The device of rank 3 is`, where that stands out, or `The devices are`."""
    if loss.alone is None:
        return "The device is" if loss.among == 1 else "The devices are"
    rank = Claim(measure, (loss.alone,), "ranks", about=about)
    return say("The device of {rank} is", rank=rank)


_GRAPHS = Change(
    "with runs of short kernels as graphs",
    lambda _: [edits.graphs()],
    "That is more than the cost: graphs take the host's time between launches away, too.",
    # that they bring nothing need not be because other work takes the time: there may be no runs
    "simulated as captured graphs, its runs of short kernels save nothing, or it has none",
)


def _loaders(rank_trace: RankTrace) -> list[Edit]:
    return [edits.without(edits.exactly(name)) for name in rank_trace.names if is_data_loading(name)]


def _pauses(inputs: Inputs, rank: int) -> list[Edit]:
    """Pauses of the host are findings of their own, and no part of the cost of a late host."""
    return without_pauses(inputs.paused(rank))


def _launches_on_time(inputs: Inputs) -> bool:
    """Whether the finding of a late host leaves anything to say of launches on their way."""
    late = lost_on(inputs.idle, "host_busy_ns")
    return late is None or not severity_of(late.share_pct)


RULES = (
    idle_rule(
        topic="data_stall",
        general=True,
        title="Waiting for the data loader",
        label="Data loader",
        cause="the data loader",
        judge=partial(_judge, _DATA),
        change=Change("without the data loader's time", _loaders, GETS_AHEAD),
        risk="More workers take memory and cores of the host, and each draws random numbers of its own.",
        needs="Free cores on the host.",
        wrong_if="The loader waits for something else, such as a lock or a slow disk that other jobs use.",
    ),
    idle_rule(
        topic="sync_calls",
        general=True,
        title="Waiting for the host, blocked in synchronising calls,",
        label="Synchronising calls",
        cause="synchronising calls",
        judge=partial(_judge, _SYNC),
        change=Change("without waiting in synchronising calls", lambda _: [edits.syncs()]),
        risk="Values that are read back later are older: logs and stopping rules lag behind.",
        needs="Values that the next step does not depend on.",
        wrong_if="The value that is read decides what comes next: then the device has nothing else to do.",
    ),
    idle_rule(
        topic="idle_host",
        general=True,
        says_why=False,
        title=_HOST.title,
        label="Late launches",
        cause="kernels launched too late",
        of_host=True,
        judge=partial(_judge, _HOST),
        change=Change(
            "without the time of late launches",
            lambda _: [edits.host(0, exposed=True)],
            first=_pauses,
            first_label=", pauses aside",
        ),
        needs="Access to the code that the host runs there.",
        wrong_if="The profiler makes the host late: without with_stack and record_shapes it is faster.",
    ),
    idle_rule(
        topic="launch_bound",
        general=True,
        says_why=False,
        title=_LAUNCH.title,
        label="Launch latency",
        cause="launch latency",
        of_host=True,
        judge=partial(_judge, _LAUNCH),
        applies=_launches_on_time,
        change=_GRAPHS,
        risk="Captured work cannot read values back, allocate with the driver or change its shapes.",
        needs="Shapes and addresses that stay the same from step to step.",
        wrong_if="The profiler makes each launch slower than it is without.",
    ),
    idle_rule(
        topic="tiny_kernels",
        general=True,
        says_why=False,
        title="Going from one kernel to the next",
        label="Gaps between kernels",
        cause="gaps between kernels",
        judge=partial(_judge, _BETWEEN),
        change=_GRAPHS,
        risk="Captured work cannot read values back, allocate with the driver or change its shapes.",
        needs="Shapes and addresses that stay the same from step to step.",
        wrong_if="Counters or serialised kernels were recorded, which keep kernels apart.",
    ),
    idle_rule(
        topic="device_wait",
        general=True,
        says_why=False,
        title="Launched work that does not start",
        label="Blocked launches",
        cause="launched work that is blocked",
        judge=partial(_judge, _WAIT),
        no_change="what the work waits for is not known",
        wrong_if="The work waits for work that the profiler does not record.",
    ),
)
