"""How the job is trained (replicated, sharded, split, or on one device), derived from its collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from hta_widgets.analysis.compare.sampling import Scopes, check_runs, scope_of
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.strategy.group_evidence import GroupEvidence, evidence_of
from hta_widgets.analysis.strategy.reading import NOT_RECOGNISED, SINGLE
from hta_widgets.analysis.strategy.rows import frame_of, numbers, plain_row, row_of
from hta_widgets.analysis.strategy.silence import silent_row
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import byte_size, counted
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_RECORD_SIZES: Final = (
    "Record with PyTorch 2.2 or newer and torch.profiler.profile(activities=[ProfilerActivity.CPU, "
    "ProfilerActivity.CUDA]): its record_param_comms events carry the size of each NCCL collective."
)
_PER_RANK = ("ranks", "process_group")


@kept()
def training_strategy(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How is the job parallelised, how large is its model, and does it send what its strategy needs?

    Everything is read from the collectives of complete steps: operation, size, type and group, and whether
    forward or backward launched them. Nothing is guessed: what fits no strategy, or two, is "not recognised",
    and `evidence` says why.

    - DDP all-reduces gradients in buckets whose sum is the model (Li et al., "PyTorch Distributed", VLDB
      2020).
    - FSDP FULL_SHARD gathers each unit for forward and, but for the root, again for backward; SHARD_GRAD_OP
      gathers it once; both reduce-scatter gradients (Zhao et al., "PyTorch FSDP", VLDB 2023). HYBRID_SHARD
      and _HYBRID_SHARD_ZERO2 do so in one group and all-reduce the shards in another. Units are padded to a
      multiple of the group, and so are `parameters`. The same from code that the trace does not name as FSDP
      is "ZeRO stage 3" or "ZeRO stage 1 or 2" (Rajbhandari et al., "ZeRO", SC 2020).
    - Tensor parallelism sends activations: equal messages in forward and in backward.

    What a rank sends is the bytes of its messages times the factors of nccl-tests (doc/PERFORMANCE.md):
    2(n-1)/n for all-reduce, (n-1)/n for all-gather and reduce-scatter, 1 for broadcast and for send.

    Args:
        trace: the job.
        scope: ranks; iterations and window (steps that lie in it whole); streams and names (of communication
            kernels).

    Returns:
        One row per process group; groups and ranks that do the same share a row; one row for a single device.
        Columns: strategy, evidence (str, in words; the reason if not recognised), role (str: "shard" or
        "replicate" of hybrid sharding, else ""), ranks, process_group (str, numbers and names), group_size
        (Int64, ranks in a group), steps, reducing_steps (int64, complete ones, and those that reduce
        gradients, which accumulating steps do not), passes (Int64, passes of the model per step as far as
        they can be distinguished), parameters, parameter_bytes (Int64, of the model as sent, in DDP of what
        gets gradients; NA where unknown), gradient_elements (Int64), gathered_dtype, reduced_dtype (str, ""
        for none), units (int64, FSDP units or DDP buckets), unit_elements (str, their sizes in order of
        sending), collectives (str, how many per step), sent_bytes (int64, per rank and step, by strategy),
        expected_bytes (Int64, what the strategy has to send for such a model; NA where unknown), other_bytes
        (int64, sent besides: buffers, metrics). Values per step are those of the last reducing step.

    Raises:
        MissingDataError: the job communicates, but not on the device, or sizes were not recorded.
    """
    scope = scope or Scope()
    evidence = job_evidence(trace, scope)
    return frame_of(_merged(evidence) if evidence else [silent_row(trace, scope)])


def job_evidence(trace: Trace, scope: Scope) -> tuple[tuple[int, GroupEvidence], ...]:
    """Rank and evidence of each process group of each rank; empty where steps hold no collective.

    Raises:
        MissingDataError: they do, but no sizes were recorded.
    """
    evidence, seen, sized = _counted_evidence(trace, scope)
    if seen and not sized:
        raise MissingDataError(
            "collective sizes", _RECORD_SIZES, f"none of {counted(seen, 'collective')} has one"
        )
    return evidence


@memoize_per_rank(last=2)
def _counted_evidence(trace: Trace, scope: Scope) -> tuple[tuple[tuple[int, GroupEvidence], ...], int, int]:
    """The evidence, how many collectives there are, and how many of them have a size."""
    evidence: list[tuple[int, GroupEvidence]] = []
    seen = sized = 0
    for rank in trace.ranks_of(scope):
        checkpoint()
        found, count, with_size = evidence_of(trace, rank, scope)
        evidence += [(rank, evidence) for evidence in found]
        seen, sized = seen + count, sized + with_size
    return tuple(evidence), seen, sized


def strategies(runs: Mapping[str, Trace], scope: Scopes = None) -> pd.DataFrame:
    """How is each of several runs parallelised? `training_strategy` of each.

    Args:
        runs: name -> job.
        scope: of all runs, or by run.

    Returns:
        The rows of `training_strategy`, runs as given; first column run (str). A run whose strategy is
        unknown has one row, "not recognised", with the reason.

    Raises:
        ValueError: no runs.
    """
    check_runs(runs, least=1)
    frames = []
    for run, trace in runs.items():
        try:
            frame = training_strategy(trace, scope_of(scope, run))
        except MissingDataError as missing:
            row = plain_row(NOT_RECOGNISED, str(missing), trace.ranks_of(scope_of(scope, run)))
            frame = frame_of([row])
        frame.insert(0, "run", pd.Series([run] * len(frame), dtype="str"))
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `training_strategy` in words."""
    known = frame[frame["strategy"] != NOT_RECOGNISED]
    if known.empty:
        return f"The strategy is not recognised: {frame['evidence'].iloc[0]}."
    if (known["strategy"] == SINGLE).all():
        return f"The job runs on a single device: {known['evidence'].iloc[0]}."
    distinct = known.drop_duplicates("strategy")
    text = f"The job uses {'. It also uses '.join(_in_words(row) for row in distinct.to_dict('records'))}"
    # The other half of hybrid sharding has no model of its own.
    likewise = int((known.drop(index=distinct.index)["role"] != "replicate").sum())
    if likewise:
        do = "does" if likewise == 1 else "do"
        text += f". {counted(likewise, 'more process group')} {do} likewise with other sizes"
    rest = len(frame) - len(known)
    if rest:
        text += f". {counted(rest, 'more process group')} {'is' if rest == 1 else 'are'} not recognised"
    return f"{text}."


def runs_sentence(frame: pd.DataFrame) -> str:
    """The answer of `strategies` in words."""
    texts = []
    for run, rows in frame.groupby("run", sort=False):
        names = rows.loc[rows["strategy"] != NOT_RECOGNISED, "strategy"].unique()
        texts.append(f"{run}: {' and '.join(names) if len(names) else NOT_RECOGNISED}")
    return f"{'; '.join(texts)}."


def _in_words(row: Mapping[Any, Any]) -> str:
    """`DDP over 2 ranks, for 1,024 parameters. Each rank sends 4.00 KiB per step, as expected`."""
    over = f"{row['strategy']} over {counted(row['group_size'], 'rank')}"
    if pd.notna(row["parameters"]):
        over += f", for {counted(row['parameters'], 'parameter')}"
    if not row["sent_bytes"] and pd.isna(row["expected_bytes"]):
        return over
    expected = ""
    if pd.notna(row["expected_bytes"]):
        same = row["expected_bytes"] == row["sent_bytes"]
        expected = ", as expected" if same else f", where {byte_size(row['expected_bytes'])} are expected"
    return f"{over}. Each rank sends {byte_size(row['sent_bytes'])} per step{expected}"


def _merged(found: Sequence[tuple[int, GroupEvidence]]) -> list[dict[str, Any]]:
    """A row per group of ranks; ranks and groups that agree on everything else share one."""
    rows: dict[tuple[Any, ...], tuple[dict[str, Any], list[int], list[str]]] = {}
    for rank, evidence in found:
        row = row_of(evidence)
        key = tuple(value for name, value in row.items() if name not in _PER_RANK)
        _, ranks, groups = rows.setdefault(key, (row, [], []))
        ranks.append(rank)
        if evidence.group not in groups:
            groups.append(evidence.group)
    return [
        row | {"ranks": numbers(ranks), "process_group": ", ".join(groups)}
        for row, ranks, groups in rows.values()
    ]


ANALYSIS = Analysis(
    label="Strategy",
    group="Communication",
    title="How the job is parallelised, and what that sends",
    function=training_strategy,
    sentence=sentence,
    chart=None,
    requires=("device events", "communication kernels", "collective sizes"),
)


COMPARISON = Analysis(
    kind="training_strategy",
    label="Strategy",
    group="Runs",
    title="How each run is parallelised",
    function=strategies,
    sentence=runs_sentence,
    chart=None,
    requires=(),
)
