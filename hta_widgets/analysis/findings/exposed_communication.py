"""The rule about communication that no compute hides."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import recorded
from hta_widgets.analysis.communication.operations import POINT_TO_POINT
from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Said, Text, say
from hta_widgets.analysis.findings import accumulation
from hta_widgets.analysis.findings.critical import off_critical_path, on_critical_path, severity_on_path
from hta_widgets.analysis.findings.evidence import evidence_of_loss
from hta_widgets.analysis.findings.finding import Finding, severity_of
from hta_widgets.analysis.findings.in_passes import in_passes, only_forward
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import Loss
from hta_widgets.analysis.findings.message_rules import advice_for_small, small_messages
from hta_widgets.analysis.findings.pipeline_rules import bubble
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.serving_advice import EXCHANGE_LESS
from hta_widgets.analysis.findings.serving_ranks import is_serving
from hta_widgets.analysis.findings.waiting import exposed_runs, transferring_of
from hta_widgets.analysis.parallelism.dimensions import CONTEXT, EXPERT, TENSOR, described
from hta_widgets.analysis.parallelism.expert_work import around_experts
from hta_widgets.analysis.parallelism.process_groups import process_groups
from hta_widgets.analysis.replay import edits
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

_IN_PASSES = (
    "Most of it is in all-reduces of groups that reduce in the forward pass, too, between layers, as tensor "
    "parallelism does: gradient buckets and prefetching do not reach these. Overlap them with parts of the "
    "work around them (async tensor parallelism), or let fewer ranks share a layer."
)
_WITHOUT_GRADIENTS = (
    "Let it run beside compute that does not need its result, or let fewer ranks share the work."
)
"""Where no backward pass is recorded."""
_ONE_PROCESS = (
    "Give each device a process of its own (DistributedDataParallel): it sends no parameters in each step, "
    "and reduces gradients beside the backward pass."
)
_UNCLEAR = ", to separate transfers from waiting for a late rank, which needs other changes. "
_BUBBLES = (
    "Stages of a pipeline wait for each other so: more microbatches per step, interleaved stages or other "
    "boundaries between them make the bubbles smaller. Other sends can be posted before compute that does "
    "not need them."
)

_BESIDE_PASSES = (
    "Send and receive beside passes that do not need it: post receives ahead, and let no pass wait for its "
    "own send."
)
"""Where the bubbles of the pipeline are a finding of their own."""
_ALL_TO_ALLS: Final = (
    "Gradient buckets and prefetching do not hide all-to-alls (tokens, embeddings, parts of a sequence). "
    "Start each as soon as its input is there, and compute on another part of the batch meanwhile. Let ranks "
    "send equally much, or send fewer bytes."
)

_INSIDE_LAYERS: Final = {
    TENSOR: "Most of it is in groups of tensor parallelism, inside layers, where gradient buckets and "
    "prefetching do not reach: overlap it with parts of the products around it (async tensor parallelism), "
    "or split layers over fewer ranks.",
    EXPERT: "Most of it brings tokens to experts and back, inside layers: overlap dispatch and combine with "
    "work that does not need them, such as shared experts or another microbatch.",
    CONTEXT: "Most of it passes parts of the sequence between ranks, inside attention: compute on one part "
    "while the next one arrives (ring attention), or split the sequence over fewer ranks.",
}
"""By what the process groups that communicate most of it are for, where they are described as that alone."""

_LARGE: Final = 1 << 24
"""Bytes that take so long at any bandwidth that the latency of a collective hardly matters."""
_BANDWIDTH: Final = (
    "Messages are large, so bandwidth decides. Compare it to what nccl-tests reaches between these devices; "
    "NCCL_DEBUG=INFO names the links that are used."
)
_FEWER_BYTES: Final = " Gradients in bf16 are half the bytes of those in fp32."
_REDUCE: Final = ("allreduce", "reduce_scatter")
_A_PART: Final = 3
"""Of the time lost one in so many is worth advice of its own."""
# Calls of PyTorch that exchange with all ranks, and with a single one.
_TO_ALL: Final = re.compile("all_?to_?all", re.IGNORECASE)
_TO_ONE: Final = re.compile("c10d::(?:send|recv)|nccl:(?:send|recv)|isend|irecv")
_BY_OPERATION: Final = (
    (POINT_TO_POINT, "sends and receives", _BUBBLES),
    (("dispatch", "combine"), "dispatch and combine", _INSIDE_LAYERS[EXPERT]),
    (("all_to_all",), "all-to-alls", _ALL_TO_ALLS),
)


def exposed_communication(inputs: Inputs) -> Finding | None:
    """Communication that no compute hides, without what is waiting for another rank."""
    frame = inputs.temporal.set_index("rank")
    if frame.empty or not frame["communication_ns"].sum():
        return None
    exposed = frame["exposed_communication_ns"]
    of_stages = bubble(inputs)
    try:
        waited, unknown = _waiting(inputs, frame)
    except MissingDataError:  # waiting and sending cannot be distinguished: all of it counts
        waited, unknown = pd.Series(0, frame.index) if of_stages is None else of_stages.claimed, 0
    transfers = (exposed - waited).clip(lower=0).to_numpy(np.int64)
    loss = Loss(inputs.temporal, transfers, len(frame))
    lost, cost, share, ranks = int(transfers.sum()), loss.cost_ns, loss.share_pct, loss.ranks
    hidden = 100.0 - 100.0 * exposed.sum() / frame["communication_ns"].sum()
    about = "exposed_transfers" if waited.any() else "exposed_communication"
    beyond, first = ", the waiting for other ranks aside" if waited.any() else "", ""
    if 2 * (int(inputs.unclear.sum()) + unknown) > lost:
        beyond, first = ", waiting for other ranks included", whom_to_record(inputs)
    kind: Said = ""

    def are_most(operations: Collection[str]) -> bool:
        chosen = inputs.collectives["collective"].isin(operations)
        own = _exposed(inputs, inputs.collectives[chosen]) if chosen.any() else 0
        return 2 * (int(exposed.sum()) - own) < lost  # wherever the waiting is

    usual = _WITHOUT_GRADIENTS if only_forward(inputs) else _earlier(inputs)
    usual = EXCHANGE_LESS if is_serving(inputs) else usual
    usual = _ONE_PROCESS if inputs.exchanges_within else usual
    for operations, name, advice in _BY_OPERATION:
        if are_most(operations):
            kind = say(
                ", most of it in {kind}",
                kind=Claim("most_exposed_operation", tuple(sorted(operations)), "name", shown=name),
            )
            usual = advice
            if advice == _BUBBLES and inputs.any_name(_TO_ALL) and not inputs.any_name(_TO_ONE):
                usual = _ALL_TO_ALLS  # whose kernels are named so, too
            elif advice == _BUBBLES and any(inputs.recorded(rank, _brings_tokens) for rank in ranks):
                usual = _INSIDE_LAYERS[EXPERT]
            elif advice == _BUBBLES and of_stages is not None:
                usual = _BESIDE_PASSES
    number, small = small_messages(inputs)
    many: Text = NOTHING_SAID
    if len(small) and _A_PART * _transferring(inputs, small) > lost:
        many, usual = number, advice_for_small(inputs, small)
    large = _large(inputs, lost)
    if large is not None and usual == _earlier(inputs):
        halved = large["collective"].isin(_REDUCE) & large["dtype"].isin(("Float",))
        ways = [_earlier(inputs, large=True), f"{_BANDWIDTH}{_FEWER_BYTES if halved.all() else ''}"]
        # what takes longer than all that could hide it
        usual = " ".join(reversed(ways) if lost > int(frame["compute_ns"].sum()) else ways)
    if (twice := accumulation.too_often(inputs)) is not None:
        many, usual = many + twice, f"{accumulation.ADVICE} {usual}"
    inside = _INSIDE_LAYERS.get(_purpose_of_most(inputs, lost)) or _of_passes(inputs, lost)
    if many and is_serving(inputs):  # of small messages most is latency
        inside = ""
    off_path = off_critical_path(inputs, ranks, "exposed_communication")
    severity = severity_on_path(share, off_path)
    found = transferring_of(inputs, ranks) if severity else {}
    return Finding(
        cost,
        share,
        say(
            "{who} {lost} without computing{beyond}{kind}.{on_path} {hidden} of all communication "
            "hides behind compute.{bandwidth}{many}",
            bandwidth=NOTHING_SAID if large is None else _bandwidth(large),
            many=many,
            who="The device communicates" if len(ranks) == 1 else "The devices communicate",
            lost=inputs.time_lost(about, share, cost, ranks),
            beyond=beyond,
            kind=kind,
            on_path=on_critical_path(off_path, "exposed_communication", ranks),
            hidden=Claim("hidden_communication", hidden, "%", "communication", tuple(ranks)),
        ),
        first + (inside or usual),
        "comm_comp_overlap",
        evidence_of_loss(inputs, found, (EventClass.COMMUNICATION,), None, ""),
        share_of=loss.shares,
        lost=found,
        severity=severity,
    )


def _brings_tokens(rank_trace: RankTrace) -> bool:
    """Whether a rank exchanges tokens of experts."""
    return len(around_experts(rank_trace)) > 0


def _waiting(inputs: Inputs, frame: pd.DataFrame) -> tuple[pd.Series[int], int]:
    """How long each rank waits for another, which is another finding; and what of it is for unknown ranks.

    If most of it is for unknown ranks, and little communication would be left, no other finding is about that
    time: then it is told as communication.
    """
    of_rank = inputs.late_by_rank.reindex(frame.index, fill_value=0)
    waited, unknown = of_rank["waited_ns"], of_rank["unfollowed_ns"]
    left = (frame["exposed_communication_ns"] - waited).clip(lower=0).sum()
    if 2 * unknown.sum() <= waited.sum() or severity_of(100.0 * left / frame["window_ns"].sum()):
        return waited, 0
    return waited - unknown, int(unknown.sum())


def _large(inputs: Inputs, lost: int) -> pd.DataFrame | None:
    """Large messages of one operation with known bandwidth that take most of the time lost, if some do."""
    frame = inputs.collectives
    known = frame["bandwidth_is"].eq("exact") & frame["busbw_gbps"].notna()
    frame = frame[known & frame["bytes"].ge(_LARGE).fillna(False)]
    if frame.empty:
        return None
    longest = str(frame.groupby("collective")["transfer_ns"].sum().idxmax())
    frame = frame[frame["collective"].eq(longest)]
    return frame if 2 * _transferring(inputs, frame) > lost else None


def _bandwidth(large: pd.DataFrame) -> Text:
    ranks, operation = tuple(sorted(large["rank"].unique().tolist())), str(large["collective"].iloc[0])
    least = int(large["bytes"].min())
    about = {"operation": operation, "least_bytes": least}
    return say(
        " Large messages ({operation} of {least} or more) reach {bus} of bus bandwidth in the median.",
        operation=Claim("large_operation", operation, "name", ranks=ranks),
        least=Claim("least_large_message", least, "B", ranks=ranks, about=about),
        bus=Claim("large_messages_bus", float(large["busbw_gbps"].median()), "GB/s", "", ranks, about),
    )


def _earlier(inputs: Inputs, large: bool = False) -> str:
    """What to do about gradients and parameters, by what wraps the model."""
    by_wrapper = (
        (inputs.has_ddp, "gradient buckets of another size"),
        (inputs.has_fsdp, "prefetching of sharded parameters"),
    )
    ways = [way for wraps, way in by_wrapper if wraps]
    how = f" ({', '.join(ways)})" if ways else ""
    pieces = "" if large else " and in larger pieces"
    return f"Start communication earlier{pieces}{how}, or use a process group of fewer ranks."


def whom_to_record(inputs: Inputs) -> str:
    """Which ranks would tell waiting from transfers; "" where all are there and still do not."""
    trace, selected = inputs.trace, inputs.scope.ranks
    if selected is not None and not set(trace.ranks).issubset(selected):
        return f"Select all ranks first{_UNCLEAR}"
    return f"Record all ranks first{_UNCLEAR}" if len(trace.ranks) == 1 or trace.absent.count else ""


def _exposed(inputs: Inputs, found: pd.DataFrame) -> int:
    """How long these kernels run on all ranks together without compute, waiting included, ns."""
    return sum(time.length for time in exposed_runs(inputs, found).values())


def _purpose_of_most(inputs: Inputs, lost: int) -> str:
    """What the groups are for that communicate most of the time lost; "" if no one of `_INSIDE_LAYERS`."""
    said = {
        text: described(text)[0] for text in recorded(inputs.trace)["group_description"].dropna().unique()
    }
    if not any((dimension,) in said.values() for dimension in _INSIDE_LAYERS):
        return ""
    groups = process_groups(inputs.trace, inputs.scope)
    for dimension in _INSIDE_LAYERS:
        own = [group.traffic for group in groups if said.get(group.description) == (dimension,)]
        if own and 2 * _transferring(inputs, pd.concat(own)) > lost:
            return dimension
    return ""


def _of_passes(inputs: Inputs, lost: int) -> str:
    """What to do where most of it is in all-reduces of the forward pass and their groups; "" elsewhere."""
    found = inputs.collectives.loc[in_passes(inputs)]
    return _IN_PASSES if len(found) and 2 * _transferring(inputs, found) > lost else ""


def _transferring(inputs: Inputs, found: pd.DataFrame) -> int:
    """`_exposed` without waiting for other ranks, as far as that can be told, ns."""
    known = inputs.collectives[["rank", "event_id", "dur_ns", "transfer_ns"]]
    own = found[["rank", "event_id"]].merge(known, on=["rank", "event_id"])
    return _exposed(inputs, found) - int((own["dur_ns"] - own["transfer_ns"]).sum())


def _waiting_aside(inputs: Inputs, finding: Finding, rank: int) -> str:
    """Without communication a rank would not wait in it either, but that is no part of the cost."""
    try:
        waits = inputs.late.loc[inputs.late["rank"] == rank, "waited_ns"].any()
    except MissingDataError:
        return ""
    if not waits:
        return ""
    unclear = 2 * int(inputs.unclear.sum()) > finding.cost_ns * len(inputs.temporal)
    return f", {'what is known to be waiting' if unclear else 'the waiting'} for other ranks aside"


_WITHOUT_COMMUNICATION = Change(
    "without the time of communication", lambda _: [edits.communication(0)], limit=_waiting_aside
)

RULE = Rule(
    topic="exposed_communication",
    question="what communication costs",
    general=True,
    title="Communication without compute",
    label="Exposed communication",
    cause="exposed communication",
    lost_as="communication",
    judge=exposed_communication,
    change=_WITHOUT_COMMUNICATION,
    risk="Communication beside compute takes from its memory bandwidth and units.",
    needs="Compute that does not depend on the result.",
    wrong_if="the ranks wait in it for ranks that were not recorded.",
)
