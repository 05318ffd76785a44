"""The part of a document about a server: how long its steps take in each phase, and their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from hta_widgets.analysis.evidence.prose import rounded
from hta_widgets.analysis.findings.judged_time import left_out_steps
from hta_widgets.analysis.serving.phases import phases_of
from hta_widgets.analysis.serving.steps import serving_steps, without
from hta_widgets.errors import MissingDataError

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.scope import Scope

_MOST_PHASES: Final = 4
_NUMBERS: Final = (
    "requests", "tokens", "period_ns", "mean_ns", "tpot_ns", "tokens_per_s", "works_pct", "bubble_pct",
)  # fmt: skip


def serving_of(trace: Trace, scope: Scope) -> dict[str, Any] | None:
    """The phases of the first rank that is a server, most time first; None where none is.

    They are of the steps that the verdict's time per token is of.
    """
    try:
        steps = serving_steps(trace, scope)
    except MissingDataError:
        return None
    if steps.empty:
        return None
    rank = int(steps["rank"].min())
    phases = phases_of(without(steps[steps["rank"] == rank], left_out_steps(trace, scope, rank)))
    if phases.empty:
        return None
    return {
        "rank": rank,
        "phases": [_phase(row) for _, row in phases[:_MOST_PHASES].iterrows()],
    }


def _phase(row: pd.Series[Any]) -> dict[str, Any]:
    """A row of `serving_phases`; null is what is unknown, and `unknown_because` says why no rate is known."""
    found: dict[str, Any] = {"phase": str(row["phase"]), "steps": int(row["steps"])}
    for name in _NUMBERS:
        found[name] = None if pd.isna(row[name]) else rounded(float(row[name]))
    if found["tokens_per_s"] is None:
        drafted = found["tokens"] is not None
        found["unknown_because"] = (
            "how many drafts are accepted is not recorded" if drafted else "the engine does not name tokens"
        )
    return found
