"""Rules about devices: time spent on other things than computing, and kernels slow on one rank only."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.findings.critical import off_critical_path, said_of, severity_on_path
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.idle_rules import concerned, shares_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule, several_ranks
from hta_widgets.analysis.findings.straggler import compute_longer
from hta_widgets.analysis.replay import edits
from hta_widgets.formatting import brief, percent, ranks_in_words, significant
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import unique

__all__ = ["RULES", "memory_copies", "slow_kernels"]

# A rank loses as the slowest does if it loses this part of it.
_ALIKE = 0.5
_MEMORY = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)
# What to try, by a word in the name of the copies; "" for all others.
_ADVICE = {
    "Pageable": "Copy from pinned memory (pin_memory=True) with non_blocking=True, so that copies run beside "
    "compute.",
    "HtoD": "Start the copies earlier, on a stream of their own, so that compute hides them.",
    "DtoH": "Read back less and less often, with non_blocking=True into pinned memory.",
    "DtoD": "Find what copies within the device: .contiguous(), .clone(), cat, casts, flattened gradients.",
    "Memset": "Find what fills memory: zero_grad(set_to_none=True) and torch.empty avoid most fills.",
    "": "Copy fewer and larger pieces, on a stream of their own.",
}


def memory_copies(inputs: Inputs) -> Finding | None:
    """Copies and fills that run while the device neither computes nor communicates."""
    frame = inputs.temporal
    if frame.empty:
        return None
    about = concerned(frame, frame["exposed_memory_ns"])
    lost = int(about["exposed_memory_ns"].sum())
    if not lost:
        return None
    cost, share = lost // len(about), 100.0 * lost / int(about["window_ns"].sum())
    rank = int(about["rank"].iloc[0]) if len(about) < len(frame) else None
    who = "The devices do" if rank is None and len(frame) > 1 else "The device does"
    if rank is not None:
        who = f"The device of rank {rank} does"
    kind, part = _main_copy(inputs, about["rank"].tolist())
    off_path = off_critical_path(inputs, about["rank"].tolist(), "exposed_memory")
    return Finding(
        cost,
        share,
        f"{who} nothing but copy and fill memory {inputs.share(share)}{inputs.per_step(cost)}"
        f"{said_of(off_path)}; {percent(100.0 * part)} of that time with {brief(kind)}.",
        _ADVICE[next((word for word in _ADVICE if word in kind), "")],
        "bandwidth_summary",
        Evidence(rank=rank, name=kind),
        share_of=shares_of(about, about["exposed_memory_ns"]),
        severity=severity_on_path(share, off_path),
    )


def _main_copy(inputs: Inputs, ranks: list[int]) -> tuple[str, float]:
    """The name of the copies or fills with most time in which nothing else runs, and their share of it."""
    by_name: Counter[str] = Counter()
    for rank in ranks:
        by_name.update(inputs.of(rank, _copies_alone))
    (name, most), *_ = by_name.most_common(1)
    return name, most / by_name.total()


def _copies_alone(inputs: Inputs, rank: int) -> dict[str, int]:
    """By name, how long copies and fills of a rank run alone in the judged time, ns."""
    rank_trace = inputs.trace.rank(rank)
    exposed = busy(rank_trace, inputs.scope).exposed_memory
    windows = rank_trace.windows(inputs.scope)
    exposed &= Intervals.union(windows[:, 0], windows[:, 1])
    rows = np.flatnonzero(np.isin(rank_trace.event_class, _MEMORY))
    alone = exposed.within_each(np.stack([rank_trace.start[rows], rank_trace.end[rows]], 1))
    return {
        rank_trace.names[code]: int(alone[rank_trace.name[rows] == code].sum())
        for code in unique(rank_trace.name[rows]).tolist()
    }


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
    share = 100.0 * one.slower_ns / int(window)
    alike = [rank for rank in work.ranks if rank != one.rank and excess[rank] >= _ALIKE * one.slower_ns]
    too = f" So do{'es' * (len(alike) == 1)} {ranks_in_words(alike)}." if alike else ""
    few = " Most equal kernels are as fast as elsewhere: it may be the data that these few get to see."
    explains = one.slower_ns >= one.more_ns and one.rank in compute_longer(inputs)
    why = " This is why the others wait for it, not another loss."
    suggestion = (
        "If their shapes are equal, too, compare clocks, power limits and temperatures of the devices."
    )
    if one.few:
        suggestion = (
            "Compare the data of these kernels (routing of tokens, lengths of sequences), then the devices."
        )
    return Finding(
        one.slower_ns,
        share,
        f"Rank {one.rank} loses {inputs.share(share)}{inputs.per_step(one.slower_ns)} because it runs the "
        "same kernels, launched alike and as often, slower than the others; "
        f"{short_kernel_name(one.name)} takes {significant(one.ratio)} times as long.{few * one.few}"
        f"{too}{why * explains}",
        inputs.is_it_always() + suggestion,
        "kernel_durations",
        Evidence(rank=one.rank, name=one.name),
        explains=one.rank,
    )


RULES = (
    Rule(
        topic="memory_copies",
        question="what copies cost",
        title="Copying memory without compute",
        judge=memory_copies,
        change=Change("without the time of copies", lambda _: [edits.copies(math.inf)]),
        risk="Pinned memory is taken from what the host can page out.",
        needs="Compute beside which the copies can run: pin_memory=True and non_blocking=True.",
    ),
    Rule(
        topic="slow_kernels",
        question="whether a rank is slow",
        title="A rank with slow kernels",
        judge=slow_kernels,
        applies=several_ranks,
        among_ranks="reason",
        needs="Access to the clocks and power limits of the devices.",
    ),
)
