"""Whether a change did what a finding predicted: the simulated saving beside that of a second recording."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from hta_widgets.analysis.compare.comparability import comparability
from hta_widgets.analysis.compare.measures import STEP_TIME, step_measures
from hta_widgets.analysis.evidence.document import content_of
from hta_widgets.analysis.evidence.findings import predicted_saving
from hta_widgets.analysis.findings import judged_scope, overview
from hta_widgets.analysis.findings.sections import RECORDING
from hta_widgets.analysis.findings.withheld import withheld
from hta_widgets.analysis.replay.quality import replay_quality
from hta_widgets.errors import MissingDataError, NotComparableError
from hta_widgets.formatting import percent, signed
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

SCHEMA: Final = "hta-check/1"
CONFIRMED: Final = (
    "as predicted",
    "more than predicted",
    "within the bound",
    "faster, nothing was predicted",
)
"""The outcomes in which the change helped no less than predicted."""

_BEFORE, _AFTER = "before", "after"
# A prediction is no closer than this, in points of the step, however well the replay explains the recording:
# a change that is made is seldom all of the change that was replayed, and nothing else.
_CLOSE = 1.0


def checked(
    before: Trace, after: Trace, finding: str, scopes: tuple[Scope, Scope] = (Scope(), Scope())
) -> dict[str, Any]:
    """Did a change save what the finding that it is against predicted?

    Args:
        before: the recording with the finding.
        after: one of the changed program.
        finding: the topic of a row of `overview` about `before`.
        scopes: the part of each to look at.

    Returns:
        Plain values: schema, finding, before, after (identifiers of the recordings), predicted (method, low,
        mid, high: % of the step; the interval is that of the replay and the error of its model, at least 1
        point), measured (low, mid, high: % of the step that is saved, with its 95 % interval; steps of both),
        cost_pct (what the finding costs before and after; None where it is not found any more), doubts (what
        else may be the cause of the difference), outcome and sentence.

        The outcome is "as predicted" where the intervals overlap, "within the bound" where the step is
        shorter by no more than an upper bound, "more than predicted", "less than predicted", "no change"
        within noise, "slower", "noise unknown" where a run has fewer than two steps, or "faster, nothing was
        predicted".

    Raises:
        KeyError: `before` has no such finding.
        NotComparableError: the runs cannot be compared, or nothing can be said of the steps of one.
        MissingDataError: a run has no steps to compare.
    """
    rows = overview(before, scopes[0])
    own = rows[(rows["topic"] == finding) & (rows["kind"] != "")]
    if own.empty:
        raise KeyError(finding)
    row, left = own.iloc[0], overview(after, scopes[1])
    _refuse(before, rows, scopes[0], _BEFORE)
    _refuse(after, left, scopes[1], _AFTER)
    left = left[left["topic"] == finding]
    predicted = _predicted(before, scopes[0], row.to_dict())
    measured = _measured(before, after, scopes)
    outcome = _outcome(predicted, measured)
    return {
        "schema": SCHEMA,
        "finding": finding,
        "before": content_of(before),
        "after": content_of(after),
        "predicted": predicted,
        "measured": measured,
        "cost_pct": {
            "before": round(float(row["share_pct"]), 3),
            "after": round(float(left["share_pct"].iloc[0]), 3) if len(left) else None,
        },
        "doubts": _doubts(before, after, scopes),
        "outcome": outcome,
        "sentence": _sentence(predicted, measured, outcome),
    }


def _refuse(trace: Trace, rows: pd.DataFrame, scope: Scope, which: str) -> None:
    """Raise NotComparableError where nothing can be said of the length of steps."""
    refused = rows[(rows["section"] == RECORDING) & (rows["role"] == "recording")]
    if len(refused):
        raise NotComparableError([f"{which}: {refused['headline'].iloc[0].rstrip('.')}"])
    if why := withheld(trace, judged_scope(trace, scope), "steps"):
        raise NotComparableError([f"{which}: {why.detail}"])


def _doubts(before: Trace, after: Trace, scopes: tuple[Scope, Scope]) -> list[str]:
    frame = comparability({_BEFORE: before, _AFTER: after}, {_BEFORE: scopes[0], _AFTER: scopes[1]})
    return list(dict.fromkeys(frame.loc[frame["severity"] == "doubt", "reason"]))


def _predicted(trace: Trace, scope: Scope, row: Mapping[Any, Any]) -> dict[str, Any]:
    why = withheld(trace, judged_scope(trace, scope), "savings")
    saving = predicted_saving(row, {"savings": why.detail} if why else {})
    if saving["method"] == "none":
        return saving
    low, mid, high = (float(saving[name]["value"]) for name in ("low", "mid", "high"))
    error = _CLOSE
    if not pd.isna(row["saving_rank"]):
        quality = replay_quality(trace, Scope(ranks=(int(row["saving_rank"]),)))
        error = max(abs(float(quality["model_error_pct"].iloc[0])), error)
    if saving["method"] == "bound":
        low = 0.0
    return {
        "method": saving["method"],
        "low": round(max(low - error, 0.0), 3),
        "mid": round(mid, 3),
        "high": round(high + error, 3),
    }


def _measured(before: Trace, after: Trace, scopes: tuple[Scope, Scope]) -> dict[str, Any]:
    frame = step_measures({_BEFORE: before, _AFTER: after}, {_BEFORE: scopes[0], _AFTER: scopes[1]})
    steps = frame[frame["measure"] == STEP_TIME]
    if steps.empty or not int(steps["before_ns"].iloc[0]):
        raise MissingDataError("steps to compare", "Record several steps, and call prof.step() after each.")
    step = steps.iloc[0]
    whole = float(step["before_ns"])

    def saved(ns: float) -> float | None:
        return None if math.isnan(ns) else round(0.0 - 100.0 * ns / whole, 3)

    return {
        "low": saved(float(step["high_ns"])),
        "mid": saved(float(step["change_ns"])),
        "high": saved(float(step["low_ns"])),
        "before_ns": int(step["before_ns"]),
        "after_ns": int(step["time_ns"]),
        "verdict": str(step["verdict"]),
    }


def _outcome(predicted: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    low, high = measured["low"], measured["high"]
    if low is None or high is None:
        return "noise unknown"
    if high < 0:
        return "slower"
    if low <= 0:
        return "no change"
    if predicted["method"] == "none":
        return "faster, nothing was predicted"
    if low > predicted["high"]:
        return "more than predicted"
    if predicted["method"] == "bound":
        return "within the bound"
    return "less than predicted" if high < predicted["low"] else "as predicted"


def _sentence(predicted: Mapping[str, Any], measured: Mapping[str, Any], outcome: str) -> str:
    low, mid, high = (measured[name] for name in ("low", "mid", "high"))
    interval = "" if low is None or low == high else f" ({_signed(low)} to {_signed(high)})"
    if low is not None and low != high and low * high > 0:
        interval = f" ({percent(min(abs(low), abs(high)))} to {percent(max(abs(low), abs(high)))})"
    said = f"The step takes {percent(abs(mid))} {'less' if mid > 0 else 'more'} time{interval}"
    if not mid:
        said = f"The step takes as long as before{interval}"
    if predicted["method"] == "none":
        return f"{said}; nothing was predicted: {outcome}."
    if predicted["method"] == "bound":
        return f"{said}; at most {percent(predicted['mid'])} less was predicted: {outcome}."
    expected = f"{percent(predicted['mid'])} ({percent(predicted['low'])} to {percent(predicted['high'])})"
    return f"{said}; {expected} less was predicted: {outcome}."


def _signed(saved: float) -> str:
    """A saving as a change of the step."""
    return signed(-saved, percent(-saved))
