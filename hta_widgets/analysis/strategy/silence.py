"""The strategy of ranks without communication in their steps: a single device, or not recognised."""

from __future__ import annotations

from typing import Any

import numpy as np

from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.strategy.group_evidence import distributed_info
from hta_widgets.analysis.strategy.messages import steps_of
from hta_widgets.analysis.strategy.reading import NOT_RECOGNISED, SINGLE
from hta_widgets.analysis.strategy.rows import plain_row
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_HOST_SIDE = ("record_param_comms", "c10d::", "nccl:", "gloo:", "mpi:", "ucc:")


def silent_row(trace: Trace, scope: Scope) -> dict[str, Any]:
    """The row of `training_strategy` if no step of the scope has a collective.

    Raises:
        MissingDataError: there is no device work, or communication shows elsewhere but not on the device.
    """
    ranks = trace.ranks_of(scope)
    steps = sum(len(steps_of(trace.rank(rank), scope).iterations) for rank in ranks)
    world_sizes = {size for rank in trace.ranks if (size := _number(trace, rank, "world_size")) is not None}
    if not any(trace.rank(rank).device_span for rank in ranks):
        raise MissingDataError("device events", RECORD_DEVICE)
    if len(trace.ranks) == 1 and world_sizes == {1} and _devices(trace, ranks[0]) < 2:
        return plain_row(SINGLE, "the job has one rank", ranks, steps)
    if len(collectives(trace, Scope(ranks=tuple(ranks)))):
        return plain_row(
            NOT_RECOGNISED, "no collective belongs to a complete step in the selection", ranks, steps
        )
    numbered = any(_number(trace, rank, "rank") for rank in ranks)
    if world_sizes - {1} or numbered or any(_communicates(trace, rank) for rank in ranks):
        raise MissingDataError(
            "communication kernels",
            RECORD_DEVICE,
            "the job has several ranks, but nothing they exchange was recorded",
        )
    if len(trace.ranks) > 1:
        return plain_row(NOT_RECOGNISED, f"its {len(trace.ranks)} ranks exchange nothing", ranks, steps)
    if (devices := max(_devices(trace, rank) for rank in ranks)) > 1:
        evidence = f"one process uses {devices} devices, without collectives"
        return plain_row(NOT_RECOGNISED, evidence, ranks, steps)
    return plain_row(SINGLE, "no communication and no other rank were recorded", ranks, steps)


def _devices(trace: Trace, rank: int) -> int:
    """How many devices a rank works on."""
    rank_trace = trace.rank(rank)
    return len(np.unique(rank_trace.device[rank_trace.device_rows]))


def _number(trace: Trace, rank: int, what: str) -> int | None:
    value = distributed_info(trace, rank, what)
    return value if isinstance(value, int) else None


def _communicates(trace: Trace, rank: int) -> bool:
    return any(name.startswith(_HOST_SIDE) for name in trace.rank(rank).names)
