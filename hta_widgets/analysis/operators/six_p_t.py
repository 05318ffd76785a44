"""Model FLOPs by the parameters that collectives tell: 6 P T."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hta_widgets.analysis.strategy.table import training_strategy
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_PER_TOKEN: Final = 6  # a multiply-add per parameter forward, two backward


@dataclass(frozen=True)
class SixPT:
    """The model FLOPs of one step on one rank."""

    flops: int = 0  # 6 P T over the ranks of the job, rounded down; 0 where P is unknown
    parameters: int | None = None  # P, None where it is unknown
    parameters_from: str = ""  # the strategy whose collectives tell it, "" for none
    reason: str = ""  # why it is unknown, "" where it is known


def six_p_t(trace: Trace, rank: int, tokens_per_step: int) -> SixPT:
    """6 P T, with the parameters that a rank's gradient collectives tell.

    Where a group splits the model, or is not recognised, the collectives hold only a part of it, and P stays
    unknown. So it does on a single device.
    """
    try:
        frame = training_strategy(trace, Scope(ranks=(rank,)))
    except MissingDataError as missing:
        return SixPT(reason=f"the parameters of the model are unknown: {missing}")
    groups = frame[frame["role"] != "replicate"]
    found = set(groups["parameters"].tolist())
    if groups["parameters"].isna().any() or len(found) != 1:
        evidence = "; ".join(f"{row.strategy}: {row.evidence}" for row in groups.itertuples())
        return SixPT(reason=f"collectives do not show the parameters of the model ({evidence})")
    parameters = int(found.pop())
    flops = _PER_TOKEN * parameters * tokens_per_step // trace.job_size
    return SixPT(flops, parameters, ", ".join(sorted(set(groups["strategy"]))))
