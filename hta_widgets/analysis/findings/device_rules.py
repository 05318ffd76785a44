"""Rules about devices: time spent on other things than computing, and kernels slow on one rank only."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_row
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.findings.callers import line_claim
from hta_widgets.analysis.findings.critical import off_critical_path, on_critical_path, severity_on_path
from hta_widgets.analysis.findings.evidence import evidence_of_event, evidence_of_loss
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.late_ranks import compute_longer
from hta_widgets.analysis.findings.loss import lost_on
from hta_widgets.analysis.findings.rule import Change, Rule, several_ranks
from hta_widgets.analysis.findings.straggler import at_start
from hta_widgets.analysis.findings.unequal_work import advice_for_slower, more_work
from hta_widgets.analysis.idle.causes import rows_named
from hta_widgets.analysis.replay import edits
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace

# A rank loses as the slowest does if it loses this part of it.
_ALIKE = 0.5
_MEMORY = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)
_PIN = "Copy from pinned memory (pin_memory=True) with non_blocking=True, so that copies run beside compute."
_EARLIER = "Start the copies earlier, on a stream of their own, so that compute hides them."
_READ_LESS = (
    "Read back less and less often: compute on the device what the host makes of it, and copy the result "
    "with non_blocking=True into pinned memory."
)
_WITHIN = "Find what copies within the device: .contiguous(), .clone(), cat, casts, flattened gradients."
# What to try, by a word in the name of the copies; "" for all others. Level Zero (Intel) has M for memory of
# the host that is not pinned, H for what is.
_ADVICE = {
    "DtoH": _READ_LESS, "Pageable": _PIN, "HtoD": _EARLIER, "DtoD": _WITHIN,
    "M2D": _PIN, "H2D": _EARLIER, "D2M": _READ_LESS, "D2H": _READ_LESS, "D2D": _WITHIN,
    "Memset": "Find what fills memory: zero_grad(set_to_none=True) and torch.empty avoid most fills.",
    "": "Copy fewer and larger pieces, on a stream of their own.",
}  # fmt: skip
_FILLS, _NEARLY_ALL = "Filling memory without compute", 0.9
_LONGER_THAN_COMPUTE = (
    "They have a stream of their own and take longer than the compute beside them. Copy less (offload fewer "
    "layers, or smaller types), or begin earlier."
)


def memory_copies(inputs: Inputs) -> Finding | None:
    """Copies and fills that run while the device neither computes nor communicates."""
    loss = lost_on(inputs.temporal, "exposed_memory_ns")
    if loss is None:
        return None
    cost, share, ranks, alone = loss.cost_ns, loss.share_pct, loss.ranks, loss.alone
    of_rank = say(" of {rank}", rank=Claim("copying_most", (alone,), "ranks")) if alone is not None else ""
    kind, part = _main_copy(inputs, ranks)
    off_path = off_critical_path(inputs, ranks, "exposed_memory")
    severity = severity_on_path(share, off_path)
    copying = inputs.when(ranks if severity else (), lambda rank: _alone(inputs, rank))
    return Finding(
        cost,
        share,
        say(
            "{who} nothing but copy and fill memory {lost}.{on_path} {part} of that time goes to {name}."
            "{line}",
            who="The devices do" if len(ranks) > 1 else say("The device{of_rank} does", of_rank=of_rank),
            lost=inputs.time_lost("copying_alone", share, cost, ranks),
            on_path=on_critical_path(off_path, "copying_alone", ranks),
            name=Claim("longest_copy_alone", kind, "name", ranks=tuple(ranks)),
            part=Claim(
                "copying_alone_by_name", 100.0 * part, "%", "copying_alone", tuple(ranks), {"name": kind}
            ),
            line=_from_line(inputs, loss.worst, kind),
        ),
        _LONGER_THAN_COMPUTE
        if "Pinned" in kind and all(inputs.recorded(rank, _has_own_stream, kind) for rank in ranks)
        else _ADVICE[next(word for word in _ADVICE if word in kind)],
        "bandwidth_summary",
        evidence_of_loss(inputs, copying, _MEMORY, alone, kind),
        share_of=loss.shares,
        lost=copying,
        explains=alone,
        severity=severity,
        title=_FILLS if kind.startswith("Memset") and part >= _NEARLY_ALL else "",
    )


def _from_line(inputs: Inputs, rank: int, name: str) -> Text:
    """` Most often it comes from loop.py(7): load.`, where Python stacks are recorded."""
    line = inputs.recorded(rank, _line_of, name)
    return say(" Most often it comes from {line}.", line=line) if line.value else NOTHING_SAID


def _line_of(rank_trace: RankTrace, name: str) -> Claim:
    rows = rows_named(rank_trace, name.__eq__)
    rows = rows[rank_trace.is_device[rows]]
    return line_claim(rank_trace, rank_trace.issuer[rows].astype(np.int64), through=True)


def _main_copy(inputs: Inputs, ranks: list[int]) -> tuple[str, float]:
    """The name of the copies or fills with most time in which nothing else runs, and their share of it."""
    by_name: Counter[str] = Counter()
    for rank in ranks:
        by_name.update(inputs.of(rank, _copies_alone))
    (name, most), *_ = by_name.most_common(1)
    return name, most / by_name.total()


def _has_own_stream(rank_trace: RankTrace, name: str) -> bool:
    """Whether no kernel runs on the streams of the copies of this name."""
    kernels = rank_trace.stream[rank_trace.event_class == EventClass.COMPUTE]
    of_name = rows_named(rank_trace, name.__eq__)
    of_name = of_name[rank_trace.is_device[of_name]]
    return not np.isin(rank_trace.stream[of_name], kernels).any()


def _copies_alone(inputs: Inputs, rank: int) -> dict[str, int]:
    """By name, how long copies and fills of a rank run alone in the judged time, ns."""
    rank_trace, exposed = inputs.trace.rank(rank), _alone(inputs, rank)
    rows = np.flatnonzero(np.isin(rank_trace.event_class, _MEMORY))
    alone = exposed.within_each(np.stack([rank_trace.start[rows], rank_trace.end[rows]], 1))
    return {
        rank_trace.names[code]: int(alone[rank_trace.name[rows] == code].sum())
        for code in unique(rank_trace.name[rows]).tolist()
    }


def _alone(inputs: Inputs, rank: int) -> Intervals:
    """When a rank does nothing but copy and fill memory in the judged time."""
    alone = busy(inputs.trace.rank(rank), inputs.scope).exposed_memory
    return alone & inputs.judged_time(rank)


def slow_kernels(inputs: Inputs) -> Finding | None:
    """A rank whose compute kernels take longer than equal ones on the other ranks.

    Equal are those of the same name and launch configuration that run equally often. The cost is the time
    beyond what they take at the median of the other ranks' means, over the kernels that are slower by more
    than 5 %; with its share in the rank's own time. If another rank is the slowest in every fourth step or
    more, it is not the rank that is slow.
    """
    if len(inputs.temporal) < 2:  # nothing to compare with
        return None
    work = inputs.workloads
    if len(work.ranks) < 2:
        return None
    excess = {rank: int(work.excess(rank).sum()) for rank in work.ranks}
    one = work.compared(max(work.ranks, key=lambda rank: excess[rank]))
    window = inputs.judged_ns.get(one.rank, 0)
    if one.changes or not one.slower_ns or not window:
        return None
    ranks, share = (one.rank,), 100.0 * one.slower_ns / int(window)
    why = more_work(inputs, ranks)
    if why and why.of_requests:
        return None
    too = [rank for rank in work.ranks if rank != one.rank and excess[rank] >= _ALIKE * one.slower_ns]
    if len(too) + 1 == len(work.ranks):  # each is slow in something, as where processes share a device
        return None
    name = Claim("slowest_kernel", one.name, "name", ranks=ranks, shown=short_kernel_name(one.name))
    ratio = Claim("times_as_long", one.ratio, "x", ranks=ranks, about={"name": one.name})
    text = say(
        "{who} spends {lost} more than the others on the same kernels, above all on {name}. "
        "That one takes {ratio} times as long.",
        who=Claim("rank_with_slowest_kernels", ranks, "ranks", shown=at_start([one.rank])),
        lost=inputs.time_lost("slower_kernels", share, one.slower_ns, ranks),
        name=name,
        ratio=ratio,
    )
    suggestion = advice_for_slower(inputs, one)
    if why:
        text, suggestion = text + why.text, why.advice
    elif one.few:
        part = Claim("slower_kernels_part", one.slower_pct, "%", "equal kernels", ranks)
        text += say(
            " Kernels with {part} of the time are slower, the others are not: it may be the data that these "
            "get to see.",
            part=part,
        )
    if too:
        also = Claim("also_slower", tuple(too), "ranks", about={"rank": one.rank})
        text += say(" So do{es} {also}.", es="es" * (len(too) == 1), also=also)
    if one.slower_ns >= one.more_ns and one.rank in compute_longer(inputs):
        text += " This is why the others wait for it, not another loss."
    return Finding(
        one.slower_ns,
        share,
        text,
        inputs.is_it_always() + suggestion,
        "kernel_durations",
        _longest_run(inputs, one.rank, one.name),
        explains=one.rank,
    )


def _longest_run(inputs: Inputs, rank: int, name: str) -> Evidence:
    """The longest of the kernels of this name in the judged time."""
    rank_trace = inputs.trace.rank(rank)
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.name == rank_trace.names.index(name)))
    rows = rows[rank_trace.belong(rows, inputs.scope)]
    return evidence_of_event(rank_trace, longest_row(rank_trace, rows), alone=True)


RULES = (
    Rule(
        topic="memory_copies",
        question="what copies cost",
        general=True,
        title="Copying memory without compute",
        label="Exposed copies and fills",
        cause="exposed copies",
        lost_as="memory",
        judge=memory_copies,
        change=Change("without the time of copies", lambda _: [edits.copies(math.inf)]),
        risk="Memory that is pinned cannot be paged out by the host.",
        needs="Compute beside which the copies can run.",
        wrong_if="other processes use the same device.",
    ),
    Rule(
        topic="slow_kernels",
        question="whether a rank is slow",
        title="A rank with slow kernels",
        label="Slow kernels",
        cause="rank {rank}'s slow kernels",
        judge=slow_kernels,
        applies=several_ranks,
        among_ranks="reason",
        needs="Access to the clocks and power limits of the devices.",
        wrong_if="the kernels get inputs of other shapes or values on this rank.",
    ),
)
