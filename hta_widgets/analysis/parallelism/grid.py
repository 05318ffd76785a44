"""Which dimension of the job's grid each process group runs along, and where in it each rank stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pandas as pd

from hta_widgets.analysis.communication.operations import POINT_TO_POINT
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.parallelism.dimensions import (
    CONTEXT,
    DATA,
    DIMENSIONS,
    EMBEDDING,
    EXPERT,
    PIPELINE,
    TENSOR,
    described,
)
from hta_widgets.analysis.parallelism.exchanges import routes_tokens
from hta_widgets.analysis.parallelism.partners import CHAIN, shape
from hta_widgets.analysis.parallelism.process_groups import ProcessGroup, process_groups
from hta_widgets.analysis.strategy.group_evidence import GroupEvidence, distributed_info
from hta_widgets.analysis.strategy.reading import NOT_RECOGNISED
from hta_widgets.analysis.strategy.reading import TENSOR as TENSOR_PARALLEL
from hta_widgets.analysis.strategy.rows import numbers
from hta_widgets.analysis.strategy.table import job_evidence
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

UNKNOWN: Final = "unknown"

_COLUMNS = {
    "rank": "int64", "dimension": "str", "role": "str", "coordinate": "Int64", "size": "int64",
    "process_group": "str", "ranks": "str", "carries": "str", "known_by": "str", "evidence": "str",
}  # fmt: skip
_RECORD_GROUPS: Final = (
    "Record with PyTorch 2.4 or newer and torch.profiler.profile(activities=[ProfilerActivity.CPU, "
    "ProfilerActivity.CUDA]): its files list the process groups, and its record_param_comms events name them."
)


@kept()
def parallelism(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Along which dimensions is the job split, and where does each rank stand: replica, stage, shard?

    A process group runs along the dimension that its description names, as Megatron-Core
    (`PIPELINE_MODEL_PARALLEL_GROUP`) and PyTorch's DeviceMesh (`mesh_pp`) describe theirs. Where it names
    none, the traffic decides: gradients and parameters (data) or activations (tensor), as `training_strategy`
    recognises them; tokens, by all-to-alls of unequal splits there and back, or by dispatch kernels (expert);
    a chain of sends (pipeline) or a ring (context). What neither shows is "unknown", and `evidence` says why.

    Args:
        trace: the job.
        scope: ranks; and what of their traffic counts.

    Returns:
        One row per rank and process group of several ranks, by rank and dimension; groups of the same members
        and dimension share one. Groups that are neither described nor used have none, nor has a group of
        several dimensions whose members are those of a single one. Columns: rank (int64), dimension (str:
        data, pipeline, tensor, context, expert, "unknown"; several with " and " in between, for a group that
        spans them; "embedding" for the stages that share its weights), role (str: "shard" or "replicate" of
        hybrid sharding, else ""), coordinate (Int64, the rank's place in the group, from 0: its stage,
        replica or part; NA where members are not known), size (int64, ranks in the group), process_group
        (str, names), ranks (str, numbers; "" where not known), carries (str, operations of the rank in
        the group), known_by (str: "description", "traffic" or ""), evidence (str, in words).

    Raises:
        MissingDataError: the job has several ranks, but nothing names their process groups.
    """
    scope = scope or Scope()
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for group, dimension, role, order, known_by, words in purposes(trace, scope):
        known = dimension != UNKNOWN and len(order) > 0
        carried = group.carried
        for rank in group.ranks:
            row: dict[str, Any] = {
                "rank": rank, "dimension": dimension, "role": role,
                "coordinate": order.index(rank) if rank in order else pd.NA, "size": group.size,
                "process_group": group.name, "ranks": numbers(sorted(order)),
                "carries": carried.get(rank, ""), "known_by": known_by, "evidence": words,
            }  # fmt: skip
            same = rows.setdefault((rank, dimension, role, order if known else (group.name,)), row)
            if same is not row:
                for name in ("process_group", "carries"):
                    same[name] = ", ".join(text for text in (same[name], row[name]) if text)
    frame = typed_frame(_without_repeated(list(rows.values())), _COLUMNS)
    place = {dimension: at for at, dimension in enumerate((*DIMENSIONS, EMBEDDING))}
    frame["place"] = frame["dimension"].map(lambda each: place.get(each, len(place)))
    frame = frame.sort_values(["rank", "place", "dimension", "role"], kind="stable")
    return frame.drop(columns="place").reset_index(drop=True)


class Purpose(NamedTuple):
    """What a process group is for.

    Attributes:
        dimension, role, known_by, words: as `parallelism` has them.
        order: its ranks, from that with coordinate 0; empty where not known.
    """

    group: ProcessGroup
    dimension: str
    role: str
    order: tuple[int, ...]
    known_by: str
    words: str


@memoize_per_rank(last=2)
def purposes(trace: Trace, scope: Scope) -> tuple[Purpose, ...]:
    """The process groups of the scope's ranks that are described or used; raises as `parallelism` does."""
    groups = _groups(trace, scope)
    is_described = all(described(group.description)[0] for group in groups)
    evidence = {} if is_described else _strategies(trace, scope)
    found = (_purpose(trace, group, evidence) for group in groups)
    return tuple(purpose for purpose in found if purpose is not None)


@memoize_per_rank()
def groups_of_experts(trace: Trace) -> tuple[ProcessGroup, ...]:
    """The process groups that `purposes` finds to be those of experts; raises as `parallelism` does.

    No strategy is read for that, which takes longer than all else: no group of experts is told by one.
    """
    return tuple(group for group in _groups(trace, Scope()) if _is_of_experts(trace, group))


def _groups(trace: Trace, scope: Scope) -> tuple[ProcessGroup, ...]:
    groups = process_groups(trace, scope)
    if not groups and _several(trace):
        raise MissingDataError("process groups", _RECORD_GROUPS)
    return groups


def _is_of_experts(trace: Trace, group: ProcessGroup) -> bool:
    purpose = _purpose(trace, group, {})
    return purpose is not None and EXPERT in purpose.dimension.split(" and ")


def may_have_pipeline(trace: Trace) -> bool:
    """Whether `purposes` could find a group of the job to be one of a pipeline.

    What groups are described as and which operations they carry tells that most are not, in a fraction of the
    time that it takes to tell what they are.
    """
    groups = process_groups(trace, Scope())
    return not groups or any(_may_be_pipeline(group) for group in groups)


def _may_be_pipeline(group: ProcessGroup) -> bool:
    found, _ = described(group.description)
    return PIPELINE in found if found else group.operations <= POINT_TO_POINT


def _purpose(
    trace: Trace, group: ProcessGroup, evidence: Mapping[tuple[int, str], GroupEvidence]
) -> Purpose | None:
    found, role = described(group.description)
    form, order = shape(group) if group.operations <= POINT_TO_POINT else ("", ())
    if found:
        order = order if found == (PIPELINE,) and form == CHAIN else group.members
        words = f"its group is described as {group.description}"
        return Purpose(group, " and ".join(found), role, order, "description", words)
    if group.traffic.empty:
        return None
    dimension, role, words = _from_traffic(trace, group, form, evidence)
    known_by = "" if dimension == UNKNOWN else "traffic"
    return Purpose(group, dimension, role, order if form else group.members, known_by, words)


def _from_traffic(
    trace: Trace, group: ProcessGroup, form: str, evidence: Mapping[tuple[int, str], GroupEvidence]
) -> tuple[str, str, str]:
    """Dimension, role and evidence of a group from what it carries."""
    carries = group.operations
    if form:
        kind = PIPELINE if form == CHAIN else CONTEXT
        back = "to the next and back" if form == CHAIN else "to the next, and the last to the first"
        return kind, "", f"its ranks send {back}"
    if carries & {"dispatch", "combine"}:
        return EXPERT, "", "it carries dispatch and combine kernels"
    if "all_to_all" in carries and routes_tokens(trace, group):
        return EXPERT, "", "it sends all-to-all in unequal splits and at once back, as tokens go to experts"
    read = [found for rank in group.ranks if (found := evidence.get((rank, group.name))) is not None]
    strategies = {(each.reading.strategy, each.role) for each in read}
    if len(strategies) == 1 and (only := next(iter(strategies)))[0] != NOT_RECOGNISED:
        strategy, role = only
        return TENSOR if strategy == TENSOR_PARALLEL else DATA, role, read[0].reading.words
    if len(strategies) > 1:
        return UNKNOWN, "", "its ranks do not all do the same"
    reason = read[0].reading.words if read else "nothing it carries shows its purpose, or sizes are missing"
    return UNKNOWN, "", reason


def _strategies(trace: Trace, scope: Scope) -> dict[tuple[int, str], GroupEvidence]:
    try:
        return {(rank, found.group): found for rank, found in job_evidence(trace, scope)}
    except MissingDataError:
        return {}


def _several(trace: Trace) -> bool:
    sizes = {distributed_info(trace, rank, "world_size") for rank in trace.ranks}
    return len(trace.ranks) > 1 or any(isinstance(size, int) and size > 1 for size in sizes)


def _without_repeated(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without groups of several dimensions that hold the same ranks as a group of one of them.

    So they do where the others have one rank each: the row of the one dimension stands for both.
    """
    single = {(row["rank"], row["ranks"]) for row in rows if row["dimension"] in DIMENSIONS}
    return [
        row for row in rows if " and " not in row["dimension"] or (row["rank"], row["ranks"]) not in single
    ]


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `parallelism` in words."""
    if frame.empty:
        return "No process group of several ranks is described, or used by the device, in the selection."
    parts = []
    for dimension in DIMENSIONS:
        rows = frame[frame["dimension"] == dimension]
        for role in sorted(rows["role"].unique()):
            sizes = sorted(rows.loc[rows["role"] == role, "size"].unique())
            label = f"{dimension} ({role})" if role else dimension
            parts.append(f"{label} {' or '.join(map(str, sizes))}")
    unknown = frame.loc[frame["dimension"] == UNKNOWN, "process_group"].nunique()
    ranks = counted(frame["rank"].nunique(), "recorded rank")
    text = f"Ranks per group along each dimension: {', '.join(parts)}" if parts else "No dimension is known"
    rest = f" What {counted(unknown, 'process group')} is for is unknown." if unknown else ""
    return f"{text} ({ranks}).{rest}"


ANALYSIS = Analysis(
    label="Parallelism",
    group="Communication",
    title="Where each rank stands in the job's grid",
    function=parallelism,
    sentence=sentence,
    chart=None,
    requires=("process groups",),
)
