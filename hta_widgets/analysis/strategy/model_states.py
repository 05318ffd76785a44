"""How much memory the model needs on each rank, computed from its strategy, beside what was measured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.memory.usage import memory_timeline
from hta_widgets.analysis.strategy.group_evidence import GroupEvidence
from hta_widgets.analysis.strategy.reading import (
    DDP,
    FSDP,
    FULL_SHARD,
    HYBRID_SHARD,
    HYBRID_SHARD_ZERO2,
    NO_SHARD,
    SHARD_GRAD_OP,
    ZERO_3,
    ZERO_BELOW_3,
)
from hta_widgets.analysis.strategy.table import job_evidence, training_strategy
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

Optimizer = Literal["adam", "adamw", "sgd", "sgd_momentum"]

_STATES: Final[dict[str, int]] = {"adam": 2, "adamw": 2, "sgd": 0, "sgd_momentum": 1}
_STEP = re.compile(r"Optimizer\.step#(\w+)\.step$")
_IN_PLACE, _FUSED = re.compile(r"aten::(?:_foreach_)?mul_$"), "aten::_fused_sgd_"
_MASTER_BYTES = 4
_WHOLE = (DDP, NO_SHARD)
_SHARDED = (FULL_SHARD, SHARD_GRAD_OP, FSDP, HYBRID_SHARD, HYBRID_SHARD_ZERO2, ZERO_3)
_STATE_ROWS = ("parameters", "gradients", "optimizer state", "master weights")
_BEGINNING, _PEAK = "allocated at the beginning", "allocated at the peak"
_COLUMNS = {
    "rank": "int64", "strategy": "str", "component": "str", "computed_bytes": "Int64",
    "measured_bytes": "Int64", "basis": "str",
}  # fmt: skip


@kept()
def strategy_memory(
    trace: Trace,
    scope: Scope | None = None,
    optimizer: Optimizer | None = None,
    master_weights: bool = False,
    element_bytes: int | None = None,
) -> pd.DataFrame:
    """How much memory do parameters, gradients and optimizer state take on each rank?

    Computed, not measured: the strategy and the size of the model come from the collectives
    (`training_strategy`), the rest are formulas (Rajbhandari et al., "ZeRO: Memory Optimizations Toward
    Training Trillion Parameter Models", SC 2020, section 3) and the arguments. With P elements of b bytes,
    n ranks in the group and k values of optimizer state per parameter, DDP holds P b of parameters, P b of
    gradients and k P b of optimizer state on each rank. ZeRO stage 3 and FSDP hold an n-th of each, also FSDP
    SHARD_GRAD_OP: it keeps parameters whole only from forward to backward. Of "ZeRO stage 1 or 2" only the
    optimizer state is sharded for certain. Frozen parameters have neither gradients nor state.

    A rank that reduces gradients in several groups, as with expert parallelism, is left out: how its model
    is divided among them is not known.

    What `[memory]` events measured stands in rows of its own: it is all that tensors hold, activations and
    communication buffers included.

    Args:
        trace: the job.
        scope: ranks, iterations, window; streams and names of communication kernels.
        optimizer: decides k: "adam" and "adamw" 2, "sgd_momentum" 1, "sgd" 0. Default the one whose steps are
            recorded, of SGD with momentum if it multiplies in place; "adam" where none of these is.
        master_weights: the optimizer keeps a copy of the parameters and its state in float32, as mixed
            precision does in the paper (its K = 12 bytes for Adam).
        element_bytes: b; default that of the parameters as they are sent (FSDP may keep shards in a wider
            type).

    Returns:
        By rank: rank (int64), strategy, component (str), computed_bytes, measured_bytes (Int64, NA where not
        computed or not measured), basis (str, how it was obtained). Components: parameters, gradients,
        optimizer state, master weights, model states (the sum of these), gathered parameters (on top: units
        that sharding has made whole), then "allocated at the beginning" and "allocated at the peak" of the
        recorded memory events in the scope, on the fullest device.

    Raises:
        MissingDataError: no rank's strategy and model size are known.
        ValueError: an unknown optimizer.
    """
    if optimizer is not None and optimizer not in _STATES:
        raise ValueError(f"optimizer is one of {', '.join(_STATES)}, not {optimizer!r}")
    scope = scope or Scope()
    rows = []
    # which is kept, so that a job opened again is not read to say that nothing is known
    sized = bool(training_strategy(trace, scope)["parameters"].notna().any())
    evidence_of_all = job_evidence(trace, scope) if sized else ()
    models = [(rank, evidence) for rank, evidence in evidence_of_all if _has_model(evidence)]
    groups = Counter(rank for rank, _ in models)
    for rank, evidence in models:
        if groups[rank] > 1:
            continue
        recorded = optimizer or recorded_optimizer(trace.rank(rank))
        computed = _computed(evidence, recorded, master_weights, element_bytes)
        measured = _measured(trace, rank, scope)
        rows += [(rank, evidence.reading.strategy, *row) for row in (*computed, *measured)]
    if not rows:
        raise MissingDataError(
            "size of the model",
            "It is known only of jobs that send parameters or gradients (see training_strategy).",
            "each rank has parts of its model in several process groups"
            if groups
            else "no rank's strategy is recognised as data parallelism",
        )
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)


def recorded_optimizer(rank_trace: RankTrace) -> Optimizer | None:
    """The optimizer whose steps a rank recorded; None if it recorded none, or one of another kind."""
    steps = {code: found[1] for code, name in enumerate(rank_trace.names) if (found := _STEP.match(name))}
    kinds = {kind.lower() for kind in steps.values()}
    if kinds != {"sgd"}:
        return next((known for known in ("adam", "adamw") if kinds == {known}), None)
    if _FUSED in rank_trace.names:  # which has momentum or not
        return None
    rows = np.flatnonzero(np.isin(rank_trace.name, list(steps)) & rank_trace.on_host)
    inside = Intervals.union(rank_trace.start[rows], rank_trace.end[rows])
    multiplies = [code for code, name in enumerate(rank_trace.names) if _IN_PLACE.match(name)]
    calls = rank_trace.start[np.isin(rank_trace.name, multiplies)]
    return "sgd_momentum" if inside.holds(calls).any() else "sgd"


def _has_model(evidence: GroupEvidence) -> bool:
    reading = evidence.reading
    return reading.parameters is not None and reading.strategy in (*_WHOLE, *_SHARDED, ZERO_BELOW_3)


Row = tuple[str, int | None, int | None, str]


def _computed(
    evidence: GroupEvidence, recorded: Optimizer | None, master_weights: bool, element_bytes: int | None
) -> Sequence[Row]:
    reading, optimizer = evidence.reading, recorded or "adam"
    used = optimizer if recorded else f"{optimizer}, assumed"
    parameters, trained = reading.parameters or 0, reading.reduced or 0
    sent = reading.parameter_bytes or 0
    width = f"{element_bytes} bytes per element, given" if element_bytes else "element size as sent"
    held = parameters * element_bytes if element_bytes else sent
    # Elements of several types have no width of their own; trained ones get their share of the bytes.
    kept = -(-held * trained // parameters)
    shares = evidence.size if reading.strategy in _SHARDED else 1
    state_shares = evidence.size if reading.strategy not in _WHOLE else 1
    state = _STATES[optimizer] * (_MASTER_BYTES * trained if master_weights else kept)
    cut = f", 1/{shares} of it" if shares > 1 else ""
    state_cut = f", 1/{state_shares} of it" if state_shares > 1 else ""
    kind = "float32" if master_weights else "type of the parameters"
    gradients = None if reading.strategy == ZERO_BELOW_3 else _share(kept, shares)
    sizes = (
        (_share(held, shares), f"{parameters:,} elements, {width}{cut}"),
        (gradients, f"{trained:,} elements in the type of the parameters{cut}"),
        (
            _share(state, state_shares),
            f"{used}: {_STATES[optimizer]} per parameter, {kind}{state_cut}",
        ),
        (
            _share(_MASTER_BYTES * trained, state_shares) if master_weights else 0,
            f"float32{state_cut}" if master_weights else "none assumed",
        ),
    )
    rows = [(name, size, None, basis) for name, (size, basis) in zip(_STATE_ROWS, sizes, strict=True)]
    known = [size for size, _ in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    rows.append(("model states", total, None, "sum of the above"))
    if reading.strategy in _SHARDED:
        rows.append(("gathered parameters", *_gathered(evidence)))
    return rows


def _gathered(evidence: GroupEvidence) -> tuple[int | None, None, str]:
    """What is whole at once, as gathered: all units, or the root and the two that may be in flight."""
    reading = evidence.reading
    if reading.strategy in (SHARD_GRAD_OP, HYBRID_SHARD_ZERO2):
        return reading.parameter_bytes, None, "all units, from forward to backward"
    if reading.strategy == FSDP or not reading.parameters or not reading.parameter_bytes:
        return reading.parameter_bytes, None, "the only unit"
    root, *others = reading.units
    whole = root + sum(sorted(others)[-2:])
    return (
        whole * reading.parameter_bytes // reading.parameters, None,
        "the root unit and the largest two others, as many as FSDP's rate limiter allows",
    )  # fmt: skip


def _share(size: int, parts: int) -> int:
    return -(-size // parts)


def _measured(trace: Trace, rank: int, scope: Scope) -> Sequence[Row]:
    checkpoint()
    try:
        frame = memory_timeline(
            trace, Scope(ranks=(rank,), iterations=scope.iterations, window_ns=scope.window_ns)
        )
    except MissingDataError:
        return ()
    frame = frame[(frame["device"] != "cpu") & frame["reserved_bytes"].notna()]
    if frame.empty:
        return ()
    begins = frame.groupby("device").head(1).assign(before=lambda x: x["allocated_bytes"] - x["change_bytes"])
    before = begins.set_index("device")["before"]
    peak = frame.groupby("device")["allocated_bytes"].max().clip(lower=before)
    device = str(peak.idxmax())
    return (
        (_BEGINNING, None, int(before[device]), f"[memory] events of {device}"),
        (_PEAK, None, int(peak[device]), f"[memory] events of {device}"),
    )
