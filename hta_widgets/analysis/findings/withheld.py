"""What the records of a job do not support: the vetoes that matter for the time that is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hta_widgets.analysis.replay.quality import WORST_ERROR_PCT, quality_of
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised, counted, percent
from hta_widgets.trace.records.doubt import OF_STEP
from hta_widgets.trace.records.recorder import recorder_of
from hta_widgets.trace.records.vetoes import reason_of

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace
    from hta_widgets.trace.records.vetoes import Claim, Veto
    from hta_widgets.trace.scope import Scope

__all__ = ["WithheldError", "withheld"]

# A stretch without valid records that is shorter than this share of the judged time moves no share by more.
_TOUCHED = 0.005
# From this share of the judged time on, it does not matter how much is in doubt in each step.
_MOST = 0.5
# Of so few device records without a launch nothing follows.
_FEW_UNCALLED = 0.005


class WithheldError(MissingDataError):
    """The records do not support a class of claims: `detail` is why, `remedy` what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__("records to trust", f"{capitalised(remedy)}." if remedy else "", reason)


def withheld(trace: Trace, scope: Scope, claim: Claim) -> WithheldError | None:
    """Why nothing of this class may be claimed of a scope; None if it may.

    Args:
        trace: the job.
        scope: what is judged.
        claim: the class.
    """
    for rank in trace.ranks_of(scope):
        rank_trace = trace.rank(rank)
        on_rank = f"rank {rank}: " if len(trace.ranks_of(scope)) > 1 else ""
        vetoes = [veto for veto in rank_trace.vetoes if claim in veto.claims]
        if vetoes and (decisive := _that_matter(rank_trace, scope, vetoes)):
            return WithheldError(f"{on_rank}{reason_of(decisive)}", decisive[0].remedy)
        if claim in ("idle_causes", "savings") and (reason := _records_lost(rank_trace)):
            return WithheldError(f"{on_rank}{reason}", recorder_of(rank_trace).fewer_events)
    return None


def _that_matter(rank_trace: RankTrace, scope: Scope, vetoes: list[Veto]) -> list[Veto]:
    """The veto on a stretch of the judged time, or those on steps in it that leave too much in doubt."""
    windows = rank_trace.windows(scope)
    whole = int((windows[:, 1] - windows[:, 0]).sum())
    doubt_of = {step.iteration: step.doubt_ns for step in rank_trace.doubtful_steps}
    doubt = touched_in_steps = 0
    steps: list[Veto] = []
    for veto in vetoes:
        shared = np.minimum(windows[:, 1], veto.end_ns) - np.maximum(windows[:, 0], veto.start_ns)
        touched = int(np.maximum(shared, 0).sum())
        if veto.iteration is None:
            if touched > _TOUCHED * whole or not whole:
                return [veto]
        elif touched if scope.iterations is None else veto.iteration in scope.iterations:
            steps.append(veto)
            touched_in_steps += touched
            doubt += doubt_of.get(veto.iteration, 0)
    return steps if doubt > OF_STEP * whole or touched_in_steps >= _MOST * whole > 0 else []


def _records_lost(rank_trace: RankTrace) -> str:
    """Why records were probably lost: work has no launch, and a replay of what is there misses the time."""
    count = rank_trace.without_launch
    if count <= _FEW_UNCALLED * rank_trace.device_events:
        return ""
    quality = quality_of(rank_trace)
    if quality is None or abs(quality.model_error_pct) <= WORST_ERROR_PCT:
        return ""
    return (
        f"{counted(count, 'device record has', 'device records have')} no launch, and a replay of the others "
        f"misses the recorded time by {percent(abs(quality.model_error_pct))}: records were probably lost"
    )
