"""The notes that a panel adds to its answer: what records do not support, findings, the longest gaps.

What only one kind of panel needs is imported when such a panel answers: findings import every analysis.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.formatting import byte_size, duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.records.vetoes import Claim
from hta_widgets.trace.scope import Scope
from hta_widgets.trace.trust import forbidden
from hta_widgets.widgets.answer_cache import cached_analysis

_MOST = 5

# Panels that compare ranks: with a single one selected they have nothing to say.
_BETWEEN_RANKS = ("stragglers", "rank_waits", "slowdown", "kernel_durations")
# What their answers claim, which the verdict withholds where records do not support it.
_CLAIMS: dict[str, Claim] = {
    "idle_breakdown": "idle_causes", "idle_gaps": "idle_causes", "stream_idle_breakdown": "idle_causes",
    "step_times": "steps", "step_parts": "steps",
    "stragglers": "ranks", "rank_waits": "ranks", "slowdown": "ranks",
    "temporal_breakdown": "efficiency", "gpu_utilization": "efficiency", "utilization": "efficiency",
    "roofline": "efficiency",
}  # fmt: skip
# What leaves steps out whose records are in doubt, as the verdict does.
_OF_WHOLE_STEPS = ("step_times", "step_parts", "slowdown", "utilization")

Note = dict[str, Any]
"""`text`, and what "Show" does: traits of a selection to set (`window`, `focus`, `ranks`, `iterations`,
`names`; those that are not there are left alone), and the `kind` of a panel to open. A finding also has its
`severity`, its `share` of the time as a text, a `hint` on what it saves and what to try, and, if it is the
first of its section, the `heading` of that."""


def notes_on(trace: Trace, kind: str, scope: Scope, frame: pd.DataFrame) -> list[Note]:
    """The notes of a panel `kind` that shows a frame."""
    return [*_unsupported(trace, kind, scope), *_own(trace, kind, scope, frame)]


def _unsupported(trace: Trace, kind: str, scope: Scope) -> list[Note]:
    """That the records do not support what the panel says, and why."""
    claim = _CLAIMS.get(kind)
    if claim is None:
        return []
    from hta_widgets.analysis.findings.judged_time import judged_scope
    from hta_widgets.analysis.findings.withheld import withheld

    why = withheld(trace, judged_scope(trace, scope) if kind in _OF_WHOLE_STEPS else scope, claim)
    if why is None:
        return []
    text = f"The records do not support what is said of {forbidden([claim])}: {why.detail}."
    return [{"text": text, "severity": "open", "hint": why.remedy}]


def _own(trace: Trace, kind: str, scope: Scope, frame: pd.DataFrame) -> list[Note]:
    if kind == "overview":
        return _findings(frame)
    if kind == "memory_owners" and "peak_ns" in frame:
        return _peaks(trace, frame)
    if kind == "idle_gaps" or (kind == "idle_breakdown" and scope.window_ns):
        gaps = cached_analysis(trace, "idle_gaps", scope).nlargest(_MOST, "dur_ns")
        return [_gap(row) for _, row in gaps.iterrows()]
    if kind == "roofline":
        coverage = cached_analysis(trace, "formula_coverage", scope)
        return [{"text": ANALYSES["formula_coverage"].sentence(coverage), "kind": "formula_coverage"}]
    return []


def _peaks(trace: Trace, frame: pd.DataFrame) -> list[Note]:
    """Where the fullest devices are fullest, and the operators that allocated what is held then."""
    from hta_widgets.analysis.memory.peaks import call_at

    notes = []
    peaks = frame.groupby(["rank", "device"], sort=False)
    first = peaks.head(1).sort_values("peak_bytes", ascending=False, kind="stable").head(_MOST)
    for _, row in first.iterrows():
        rank, device = int(row["rank"]), str(row["device"])
        owners = peaks.get_group((rank, device))
        called = owners[owners["event_id"].notna()]
        focus = call_at(trace.rank(rank), int(row["peak_ns"]))
        notes.append(
            {
                "text": f"Rank {rank}, {device}: {byte_size(int(row['peak_bytes']))} at "
                f"{duration(int(row['peak_ns']))} after the start; {percent(row['share_pct'])} of it: "
                f"{row['name']}.",
                "focus": None if focus is None else [rank, focus],
                "ranks": [rank],
                "names": list(dict.fromkeys(called["operator"])),
            }
        )
    return notes


def _gap(gap: pd.Series) -> Note:
    from hta_widgets.analysis.idle.gaps import explain

    return {
        "text": f"Rank {gap['rank']}: {explain(gap)}",
        "window": [int(gap["start_ns"]), int(gap["end_ns"])],
        "focus": [int(gap["rank"]), int(gap["event_id"])] if gap["event_id"] >= 0 else None,
    }


def _findings(frame: pd.DataFrame) -> list[Note]:
    from hta_widgets.analysis.findings import HEADINGS

    notes = [_finding(row) for _, row in frame.iterrows()]
    section = ""
    for note, own in zip(notes, frame["section"], strict=True):
        if own != section and own in HEADINGS:
            note["heading"] = HEADINGS[own]
        section = own
    return notes


def _finding(row: pd.Series) -> Note:
    from hta_widgets.analysis.findings import CHECKED, MEMORY, OPEN

    hint = f"{row['saving']} {row['suggestion']}".strip()
    note: Note = {"text": row["text"], "severity": row["severity"], "hint": hint}
    if row["severity"] == CHECKED:
        return note | {"share": "-"}
    if row["severity"] == OPEN or not row["kind"]:  # about the recording, and no panel shows more
        return note
    note |= {
        "share": "-" if row["section"] == MEMORY else percent(row["share_pct"]),
        "kind": row["kind"],
        "ranks": [] if row["kind"] in _BETWEEN_RANKS else _known(row["rank"]),
        "iterations": _known(row["iteration"]),
        "names": [row["name"]] if row["name"] else [],
    }
    if pd.notna(row["event_id"]):
        note["focus"] = [int(row["event_rank"]), int(row["event_id"])]
    return note


def _known(number: Any) -> list[int]:
    return [int(number)] if pd.notna(number) else []
