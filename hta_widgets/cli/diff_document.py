"""A comparison as JSON that CI can rely on; `docs/command_line.md` describes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hta_widgets.analysis.compare.measures import STEP_TIME
from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.analysis.evidence.budget import dumped, tokens_of
from hta_widgets.cli.comparison import Comparison, Run
from hta_widgets.cli.document import frame_as_dict, missing_as_dict, plain, scope_as_dict
from hta_widgets.cli.verdicts import Verdict
from hta_widgets.errors import MissingDataError, NotComparableError


def comparison_as_dict(found: Comparison, top: int | None) -> dict[str, Any]:
    """The whole comparison; of the lines only the first `top`, if given."""
    return {
        **_head(found.runs, []),
        "comparability": _answer("comparability", found.doubts),
        "measures": frame_as_dict(found.measures),
        "run_table": _answer("run_table", found.table),
        "step_waterfall": _answer("step_waterfall", found.waterfall),
        "lines": {"by": found.by, **_answer("diff", found.lines, found.first_lines(top))},
        "checks": [_check(verdict) for verdict in found.verdicts],
        "failed": found.failed,
    }


def within(document: dict[str, Any], budget: int | None) -> dict[str, Any]:
    """The document in at most `budget` tokens; None: any number.

    First lines are left out from the end, then tables that follow from `measures`, then all measures but the
    step; `truncated` says so, and is absent where nothing is left out.
    """
    if budget is None or tokens_of(dumped(document)) <= budget:
        return document
    lines = document["lines"]
    rows = list(lines.get("rows", []))
    left_out: list[str] = []
    kept = len(rows)

    def shortened() -> dict[str, Any]:
        shown = {name: part for name, part in document.items() if name not in left_out}
        if "rows" in lines:
            shown["lines"] = {**lines, "rows": rows[:kept]}
        if "measures" in left_out:
            steps = [row for row in document["measures"]["rows"] if row["measure"] == STEP_TIME]
            shown["measures"] = {**document["measures"], "rows": steps}
        shown["truncated"] = {"lines": {"rows": kept, "of": len(rows)}, "left_out": list(left_out)}
        return shown

    def fits() -> bool:
        return tokens_of(dumped(shortened())) <= budget

    while kept and not fits():
        kept //= 2
    for name in ("step_waterfall", "comparability", "run_table", "measures"):
        if fits():
            break
        left_out.append(name)
    return shortened()


def refusal_as_dict(runs: Sequence[Run], refusal: NotComparableError) -> dict[str, Any]:
    """The document if runs cannot be compared, with the reasons."""
    return _head(runs, refusal.reasons)


def _head(runs: Sequence[Run], reasons: Sequence[str]) -> dict[str, Any]:
    return {
        "kind": "diff",
        "comparable": not reasons,
        "reasons": list(reasons),
        "runs": [{"run": run.name, "path": run.path, "scope": scope_as_dict(run.scope)} for run in runs],
    }


def _answer(
    kind: str, frame: pd.DataFrame | MissingDataError, shown: pd.DataFrame | None = None
) -> dict[str, Any]:
    if isinstance(frame, MissingDataError):
        return missing_as_dict(frame)
    sentence = COMPARISONS[kind].sentence(frame)
    return {"sentence": sentence, **frame_as_dict(frame if shown is None else shown)}


def _check(verdict: Verdict) -> dict[str, Any]:
    changed = verdict.changed
    document = {
        "limit": verdict.limit.text,
        "run": verdict.run,
        "metric": verdict.limit.of,
        "line": changed.line or None,
        "unit": "bytes" if verdict.limit.of == "peak_memory" else "ns",
        "before": changed.before,
        "after": changed.after,
        "change": changed.change,
        "change_pct": changed.pct,
        "low": changed.low,
        "high": changed.high,
        "significant": changed.significant if verdict.noise_known else None,
        "outcome": verdict.outcome,
    }
    return {name: plain(value) for name, value in document.items()}
