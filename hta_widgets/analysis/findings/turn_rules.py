"""A rule about several devices of one process that work in turn: together they are busy, each is idle."""

from __future__ import annotations

from typing import Final, NamedTuple

from hta_widgets.analysis.core.claim import Claim, Said, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import device_work
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import IDLE_QUESTION, Rule, never
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

_LEAST_PCT: Final = 5.0
"""A device that computes less of the time has another part in the program: it displays, or holds data."""


class Devices(NamedTuple):
    """The devices that compute for a rank in the judged time, ns: of each on average, and of all of them."""

    number: int  # how many
    compute_ns: int  # how long each computes
    busy_ns: int  # how long each works
    any_ns: int  # how long at least one of them works


def devices_of(inputs: Inputs, rank: int) -> Devices:
    """The devices that compute for a rank in the judged time; of a single one only that."""
    rank_trace = inputs.trace.rank(rank)
    work = _work_by_device(rank_trace)
    if len(work) < 2:
        return Devices(1, 0, 0, 0)
    windows = rank_trace.windows(inputs.scope)
    whole = int((windows[:, 1] - windows[:, 0]).sum())
    computing, working = [], []
    everything = Intervals.union([], [])
    for spans, kernels in work:
        time = kernels.within(windows)
        if 100.0 * time >= _LEAST_PCT * whole:
            computing.append(time)
            working.append(spans.within(windows))
            everything |= spans
    number = len(computing)
    if number < 2:
        return Devices(1, 0, 0, 0)
    return Devices(number, sum(computing) // number, sum(working) // number, everything.within(windows))


@memoize_per_rank()
def _work_by_device(rank_trace: RankTrace) -> list[tuple[Intervals, Intervals]]:
    """When each device of a rank works, and when it computes."""
    rows = device_work(rank_trace).rows
    rows = rows[rank_trace.device[rows] != NULL]
    device, compute = rank_trace.device[rows], rank_trace.event_class[rows] == EventClass.COMPUTE
    numbers = unique(device)
    if len(numbers) < 2:
        return []
    chosen = [(rows[device == one], rows[(device == one) & compute]) for one in numbers.tolist()]
    return [
        (
            Intervals.union(rank_trace.start[work], rank_trace.end[work]),
            Intervals.union(rank_trace.start[kernels], rank_trace.end[kernels]),
        )
        for work, kernels in chosen
    ]


def devices_in_turn(inputs: Inputs) -> Finding | None:
    """Devices of a process that are idle while another one of it works.

    Where all are idle, the other rules say why.
    """
    found = {rank: inputs.of(rank, devices_of) for rank in inputs.judged_ns}
    several = {rank: devices for rank, devices in found.items() if devices.number > 1}
    if not several:
        return None
    whole = sum(inputs.judged_ns[rank] for rank in several)
    lost = sum(devices.any_ns - devices.busy_ns for devices in several.values())
    cost, share = lost // len(several), 100.0 * lost / whole
    if not severity_of(share):
        return None
    ranks = list(several)
    alone = len(several) == 1 < len(found)
    who: Said = "The process" if len(several) == 1 else "Each process"
    if alone:
        who = Claim("several_devices", tuple(ranks), "ranks", shown=f"Rank {ranks[0]}")
    text = say(
        "{who} computes on {number} devices. At least one of them works {any} of the time, but each of them "
        "only {each} on average: for {lost} one is idle while another works.",
        who=who,
        number=Claim(
            "devices", max(devices.number for devices in several.values()), "count", ranks=tuple(ranks)
        ),
        any=inputs.of_time(
            "any_device_works", 100.0 * sum(devices.any_ns for devices in several.values()) / whole, ranks
        ),
        each=inputs.of_time(
            "each_device_works", 100.0 * sum(devices.busy_ns for devices in several.values()) / whole, ranks
        ),
        lost=inputs.time_lost("devices_in_turn", share, cost, ranks),
    )
    return Finding(
        cost,
        share,
        text,
        "Let them work at the same time: a process and a copy of the model for each "
        "(DistributedDataParallel), or parts of a batch that follow each other through the parts of the "
        "model (a pipeline).",
        "temporal_breakdown",
        Evidence(rank=ranks[0] if alone else None),
    )


RULE = Rule(
    topic="devices_in_turn",
    question=IDLE_QUESTION,
    title="Working on several devices in turn",
    label="GPUs in turn",
    cause="GPUs that work in turn",
    lost_as="compute",  # while one of them is idle, another one computes
    judge=devices_in_turn,
    applies=never,
    no_change="what of one device's work the other needs is not known",
    wrong_if="Each device needs what the one before has just computed, and there is no second batch.",
)
