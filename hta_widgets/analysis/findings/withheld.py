"""What the records of a job do not support: the vetoes that matter for the time that is judged."""

from __future__ import annotations

from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised, counted, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.records.vetoes import CLAIMS, Claim, decisive, reason_of
from hta_widgets.trace.scope import Scope

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
        if deciding := decisive(rank_trace, scope, claim):
            return WithheldError(f"{on_rank}{reason_of(deciding)}", deciding[0].remedy)
        if claim in ("idle_causes", "savings") and (reason := _records_lost(rank_trace)):
            return WithheldError(f"{on_rank}{reason}", rank_trace.accelerator.fewer_events)
    return None


def all_withheld(trace: Trace, scope: Scope) -> dict[Claim, WithheldError]:
    """The classes of claims that the records do not support in what is judged, and why."""
    return {claim: why for claim in CLAIMS if (why := withheld(trace, scope, claim))}


def _records_lost(rank_trace: RankTrace) -> str:
    """Why records were probably lost: work has no launch, and a replay of what is there misses the time."""
    count = rank_trace.without_launch
    if count <= _FEW_UNCALLED * rank_trace.device_events:
        return ""
    # with all of the replay: only where launches are missing
    from hta_widgets.analysis.replay.quality import WORST_ERROR_PCT, quality_of

    quality = quality_of(rank_trace)
    if quality is None or abs(quality.model_error_pct) <= WORST_ERROR_PCT:
        return ""
    return (
        f"{counted(count, 'device record has', 'device records have')} no launch, and a replay of the others "
        f"misses the recorded time by {percent(abs(quality.model_error_pct))}: records were probably lost"
    )
