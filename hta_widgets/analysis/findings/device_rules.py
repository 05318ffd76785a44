"""Rules about devices: time spent on other things than computing, and kernels slow on one rank only."""

from __future__ import annotations

from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.idle_rules import concerned
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.straggler import compute_longer
from hta_widgets.formatting import significant
from hta_widgets.kernel_names import short_kernel_name

__all__ = ["memory_copies", "queue_full", "slow_kernels"]

# A device that is idle for less is busy whatever the host does: a full queue costs nothing.
IDLE_PCT = 5.0


def memory_copies(inputs: Inputs) -> Finding | None:
    """Copies and fills that run while the device neither computes nor communicates."""
    frame = inputs.temporal
    if frame.empty:
        return None
    about = concerned(frame, frame["exposed_memory_ns"])
    lost = int(about["exposed_memory_ns"].sum())
    cost, share = lost // len(about), 100.0 * lost / int(about["window_ns"].sum())
    rank = int(about["rank"].iloc[0]) if len(about) < len(frame) else None
    who = "The devices do" if rank is None and len(frame) > 1 else "The device does"
    if rank is not None:
        who = f"The device of rank {rank} does"
    return Finding(
        "memory_copies",
        cost,
        share,
        f"{who} nothing but copy and fill memory {inputs.share(share)}{inputs.per_step(cost)}.",
        "Copy from pinned memory with non_blocking=True on a stream of its own, and fewer, larger pieces.",
        "bandwidth_summary",
        Evidence(rank=rank),
    )


def queue_full(inputs: Inputs) -> Finding | None:
    """Launches that wait for a place in a full queue while the device is idle part of the time.

    A host that runs as far ahead as it can is desirable, so this counts only if a device is idle all the
    same: the launches for its other streams come late. The cost is at most the idle time.
    """
    queues, busy = inputs.queues, inputs.temporal.set_index("rank")
    waited = queues.groupby("rank")["calls_at_limit_ns"].sum()
    waited = waited[busy["idle_pct"].reindex(waited.index).fillna(0) >= IDLE_PCT]
    if waited.empty:
        return None
    rank = int(waited.index.to_numpy()[waited.to_numpy().argmax()])
    cost = min(int(waited.max()), int(busy["idle_ns"][rank]))
    share = 100.0 * cost / int(busy["window_ns"][rank])
    full = queues[queues["rank"] == rank].nlargest(1, "calls_at_limit_ns").iloc[0]
    return Finding(
        "queue_full",
        cost,
        share,
        f"On rank {rank} launches wait {inputs.share(share)}{inputs.per_step(cost)} for a place in the full "
        f"queue of stream {full['stream']} ({full['limit']} entries) while the device is not always busy.",
        "Launch less at once: CUDA graphs take one entry for many kernels.",
        "blocked_on_full_queue",
        Evidence(rank=rank),
    )


def slow_kernels(inputs: Inputs) -> Finding | None:
    """A rank whose compute kernels take longer than equal ones on the other ranks.

    Equal are those of the same name and launch configuration that run equally often. The cost is the time
    beyond what they take at the median of the other ranks' means, over the kernels that are slower by more
    than 5 %; with its share in the rank's own time. If another rank is the slowest in every fourth step or
    more, it is not the rank that is slow.
    """
    work = inputs.workloads
    if len(work.ranks) < 2:
        return None
    one = work.compared(max(work.ranks, key=lambda rank: int(work.excess(rank).sum())))
    window = inputs.temporal.set_index("rank")["window_ns"].get(one.rank, 0)
    if one.changes or not one.slower_ns or not window:
        return None
    share = 100.0 * one.slower_ns / int(window)
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
        "slow_kernels",
        one.slower_ns,
        share,
        f"Rank {one.rank} loses {inputs.share(share)}{inputs.per_step(one.slower_ns)} because it runs the "
        "same kernels, launched alike and as often, slower than the others; "
        f"{short_kernel_name(one.name)} takes {significant(one.ratio)} times as long.{few * one.few}"
        f"{why * explains}",
        inputs.is_it_always() + suggestion,
        "kernel_durations",
        Evidence(rank=one.rank, name=one.name),
    )
