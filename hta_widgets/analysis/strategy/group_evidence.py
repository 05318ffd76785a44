"""What each rank does in each of its process groups, over all of its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from hta_widgets.analysis.strategy.data_parallel import repeated
from hta_widgets.analysis.strategy.fsdp_passes import RANGES
from hta_widgets.analysis.strategy.messages import FORWARD, Message, Steps, messages, steps_of
from hta_widgets.analysis.strategy.reading import (
    DDP,
    FULL_SHARD,
    HYBRID_SHARD,
    HYBRID_SHARD_ZERO2,
    NO_SHARD,
    SHARD_GRAD_OP,
    TENSOR,
    Reading,
    of,
    unknown,
)  # fmt: skip
from hta_widgets.analysis.strategy.step import read_step
from hta_widgets.formatting import counted
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_HYBRID = {FULL_SHARD: HYBRID_SHARD, SHARD_GRAD_OP: HYBRID_SHARD_ZERO2}
_WRAPPERS = (("DistributedDataParallel.", "DDP"), *((ranges, "FSDP") for ranges in RANGES))


# Groups of equal size cannot be distinguished without their names, unless they hold the whole job.
_NAMELESS = "its process groups have no names, which PyTorch records since 2.4"


@dataclass(frozen=True)
class GroupEvidence:
    """One rank in one process group."""

    # the group's name and number of ranks
    group: str
    size: int
    role: str  # "shard" or "replicate" of hybrid sharding, else ""
    reading: Reading  # of the last step that reduces gradients; "not recognised" if steps disagree
    messages: tuple[Message, ...]  # the collectives of that step
    # complete steps, and those of them that reduce gradients
    steps: int
    reducing: int


def evidence_of(trace: Trace, rank: int, scope: Scope) -> tuple[list[GroupEvidence], int, int]:
    """The evidence of a rank by group, the collectives of its steps, and how many of those have a size."""
    rank_trace = trace.rank(rank)
    steps = steps_of(rank_trace, scope)
    sent = messages(trace, rank, steps, scope)
    wrappers, purposes = _wrappers(rank_trace), _purposes(trace, rank)
    of_group: dict[tuple[str, int], list[tuple[int, Message]]] = {}
    for each in sent:
        if each.message is not None and each.group_size is not None:
            of_group.setdefault((each.group, each.group_size), []).append((each.iteration, each.message))
    found = []
    for name, ranks in sorted(of_group):
        if ranks > 1:
            own = of_group[name, ranks]
            evidence = _evidence(name, ranks, own, steps, wrappers, purposes.get(name, ""))
            identified = name or ranks == distributed_info(trace, rank, "world_size")
            found.append(evidence if identified else _refused(evidence, _NAMELESS))
    unsized = sum(each.message is None for each in sent)
    if not steps.marked:
        found = [
            _refused(evidence, "nothing marks the steps (call the profiler's step())") for evidence in found
        ]
    elif unsized:
        seen = counted(len(sent), "collective")
        reason = f"the sizes of {unsized:,} of {seen} in its steps were not recorded"
        found = [_refused(evidence, reason) for evidence in found]
    return _parts_refused(_hybrid(found)), len(sent), len(sent) - unsized


def _evidence(
    group: str, size: int, own: Sequence[tuple[int, Message]], steps: Steps, wrappers: Set[str], purpose: str
) -> GroupEvidence:
    sent: dict[int, list[Message]] = {iteration: [] for iteration in steps.iterations}
    for iteration, message in own:
        sent[iteration].append(message)
    readings = {
        iteration: read_step(found, size, wrappers, steps.forwards.get(iteration, ()), purpose)
        for iteration, found in sent.items()
    }
    reducing = [iteration for iteration, reading in readings.items() if reading.reduces]
    last = (reducing or list(readings))[-1]
    agreed = _agreed([readings[iteration] for iteration in reducing] or [readings[last]])
    return GroupEvidence(group, size, "", agreed, tuple(sent[last]), len(steps.iterations), len(reducing))


def _agreed(readings: list[Reading]) -> Reading:
    """The last reading, as far as the others agree with it."""
    last = readings[-1]
    strategies = Counter(reading.strategy for reading in readings)
    if len(strategies) > 1:
        listed = ", ".join(f"{strategy} in {count}" for strategy, count in sorted(strategies.items()))
        return unknown(f"its steps differ: {listed}")
    if len({(reading.parameters, reading.reduced) for reading in readings}) > 1:
        return replace(
            last, parameters=None, parameter_bytes=None, reduced=None, expected_bytes=None,
            words=f"{last.words}, of other sizes in other steps",
        )  # fmt: skip
    return last


def _hybrid(evidence: list[GroupEvidence]) -> list[GroupEvidence]:
    """Hybrid sharding all-reduces, in another group, the very shards that the first has reduce-scattered."""
    for at, shard in enumerate(evidence):
        if shard.reading.strategy not in _HYBRID:
            continue
        kept = Counter(shard.reading.shards)
        for other, replica in enumerate(evidence):
            sums = [message for message in of(replica.messages, "allreduce") if message.place != FORWARD]
            again = shard.reading.passes
            if other == at or Counter(message.elements for message in sums) not in (
                kept,
                repeated(kept, again),
            ):
                continue
            strategy = _HYBRID[shard.reading.strategy]
            words = f"{shard.reading.words}; group {replica.group} all-reduces the shards"
            evidence[at] = replace(
                shard, role="shard", reading=replace(shard.reading, strategy=strategy, words=words)
            )
            scattered = of(shard.messages, "reduce_scatter")
            nbytes = sum(message.nbytes for message in scattered if message.place != FORWARD) // shard.size
            evidence[other] = replace(
                replica,
                role="replicate",
                reducing=shard.reducing,
                reading=Reading(
                    strategy,
                    f"all-reduces the shards of the gradient that group {shard.group} has reduce-scattered",
                    units=tuple(message.elements for message in sums),
                    reduced=sum(kept.elements()),
                    reduced_dtype=shard.reading.reduced_dtype,
                    used=tuple(sums),
                    expected_bytes=2 * (replica.size - 1) * nbytes // replica.size,
                ),
            )
            break
    return evidence


def _parts_refused(evidence: list[GroupEvidence]) -> list[GroupEvidence]:
    """What is all-reduced beside gradients that another group scatters may be their shards, not a model."""
    scatters = [
        evidence
        for evidence in evidence
        if evidence.role == "" and evidence.reading.strategy != TENSOR and evidence.reading.reduces
        and any(message.place != FORWARD for message in of(evidence.messages, "reduce_scatter"))
    ]  # fmt: skip
    return [
        _refused(evidence, "all-reduces in backward, while group "
f"{scatters[0].group} reduce-scatters gradients")
        if scatters and evidence.reading.strategy in (DDP, NO_SHARD) else evidence
        for evidence in evidence
    ]  # fmt: skip


def _refused(evidence: GroupEvidence, reason: str) -> GroupEvidence:
    return replace(evidence, reading=unknown(reason, evidence.reading.reduces))


def _wrappers(rank_trace: RankTrace) -> set[str]:
    return {
        wrapper for start, wrapper in _WRAPPERS if any(name.startswith(start) for name in rank_trace.names)
    }


def _purposes(trace: Trace, rank: int) -> dict[str, str]:
    """Descriptions of process groups by name, as the file lists them."""
    groups = distributed_info(trace, rank, "pg_config")
    if not isinstance(groups, list):
        return {}
    return {
        str(group.get("pg_name")): str(group.get("pg_desc", ""))
        for group in groups
        if isinstance(group, dict)
    }


def distributed_info(trace: Trace, rank: int, what: str) -> Any:
    info = trace.metadata(rank).get("distributedInfo")
    return info.get(what) if isinstance(info, dict) else None
