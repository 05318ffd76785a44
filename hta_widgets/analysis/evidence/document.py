"""The evidence of a recording: what it is, how far to trust it, what its time goes to, what to do and to run.

`docs/agents.md` describes the fields. The same recording gives the same document, byte for byte: it holds no
clock, no path, and nothing in an order that chance decides.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from hta_widgets.analysis.evidence.budget import DEFAULT_TOKENS, fitted
from hta_widgets.analysis.evidence.findings import Row, chosen, finding_of
from hta_widgets.analysis.evidence.names import cleaned, quoted_in
from hta_widgets.analysis.evidence.prose import clipped, names_in, rounded
from hta_widgets.analysis.evidence.runs import Options
from hta_widgets.analysis.evidence.serving import serving_of
from hta_widgets.analysis.evidence.trust import trust_of
from hta_widgets.analysis.findings import OPEN, judged_scope, overview
from hta_widgets.analysis.findings.bar import SAVINGS, saved_in
from hta_widgets.analysis.findings.rules import is_beside, is_unjudged
from hta_widgets.analysis.findings.sections import RECORDING, VERDICT
from hta_widgets.analysis.findings.story import Story, story
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, runs_of
from hta_widgets.trace.scope import Scope
from hta_widgets.version import __version__

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

SCHEMA: Final = "hta-evidence/1"
SCHEMA_FILE: Final = Path(__file__).with_name("schema.json")

_MOST_FINDINGS: Final = 6
_MOST_UNKNOWN: Final = 6
_VERDICT: Final = 260
_LINE: Final = 160
_STATED: Final = ("%", "ns", "ns/step", "count")
_PARTS: Final = ("compute", "exposed_communication", "exposed_memory", "idle")
_OF_SERVERS: Final = {
    "what": "time to first token, latency percentiles, acceptance of drafts, hits of caches",
    "record": "The server's own metrics: a recording of the profiler does not hold them.",
}


def evidence(
    trace: Trace, scope: Scope | None = None, *, budget: int = DEFAULT_TOKENS, reading: Sequence[str] = ()
) -> dict[str, Any]:
    """What does a recording show, in a document that a person can send and a program can act on?

    Args:
        scope: the part to look at; default everything. Of marked steps those that are steady are judged.
        budget: the most tokens (four characters of JSON each) that it may take, up to 4,000.
        reading: arguments of the command line that say which recording of a folder was opened, and how.

    Returns:
        Plain values, in the order of the schema ``hta-evidence/1``: schema, tool, recording, scope, trust
        (level, what it forbids to say, health), verdict (the headline of the first screen), bar (its numbers:
        the step, what is reachable, the parts of the step), time (shares of the judged time, %), serving
        (time and tokens of a server's steps by phase, or None), findings (at most 6: claim, cost, saving,
        where, evidence, what to do, what to run, what would make it false),
        together (what the changes save together), checked (rules that found nothing), unknown, more.

    Raises:
        ValueError: the budget is too small for what is never left out, or above 4,000.
    """
    scope = scope or Scope()
    frame = overview(trace, scope)
    shown = story(trace, scope, frame)
    rows: list[Row] = frame.to_dict("records")  # type: ignore[assignment]
    refused = next((row for row in rows if row["section"] == RECORDING and row["role"] == "recording"), None)
    judged = scope if refused else judged_scope(trace, scope)
    trust = trust_of(trace, judged, _quoted(str(refused["text"]), [refused]) if refused else "")
    forbidden = {str(veto["forbids"]): str(veto["because"]) for veto in trust["vetoes"]}
    part = _scope(trace, judged)
    options = Options(tuple(reading), _options(part))
    selected = [] if refused else _advised(chosen(rows, forbidden), rows)
    findings = [
        finding_of(
            trace,
            judged,
            row,
            [part for part in rows if part["part_of"] == row["topic"]],
            trust["level"],
            forbidden,
            options,
        )
        for row in selected[:_MOST_FINDINGS]
    ]
    document = {
        "schema": SCHEMA,
        "tool": f"hta-widgets {__version__}",
        "recording": _recording(trace),
        "scope": part,
        "trust": trust,
        "verdict": clipped(f"{_quoted(shown.headline, rows)}.", _VERDICT),
        "bar": _bar(shown, rows),
        "time": _time(trace, judged),
        "serving": None if refused else serving_of(trace, scope),
        "findings": findings,
        "together": _together(shown),
        "checked": sorted({topic for row in rows for topic in str(row["checked"]).split()}),
        "unknown": _unknown(trace, rows),
        "more": {"findings_left_out": max(len(selected) - _MOST_FINDINGS, 0), "tokens": 0},
    }
    return fitted(document, budget)


def _advised(selected: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """What devices do nearly all of the time, with the advice of what says more than that of a server."""
    better = [str(row["suggestion"]) for row in rows if is_beside(str(row["topic"]))][-1:]
    return [
        {**row, "suggestion": better[0]} if better and row["section"] == VERDICT else row for row in selected
    ]


def _recording(trace: Trace) -> dict[str, Any]:
    summary = trace.summary
    devices = sorted({cleaned(name) for name in summary["devices"].values() if name})
    kinds = sorted(set(trace.kinds) - {"unknown"})
    size = summary["world_size"]
    return {
        "id": content_of(trace),
        "kind": "several jobs" if trace.several_jobs else " and ".join(kinds) or "unknown",
        "files": len(set(summary["files"])),
        "recordings": max(len(trace.recordings), 1),
        "opened": cleaned(trace.recording) or None,
        "ranks_recorded": len(trace.ranks),
        "world_size": size if isinstance(size, int) and not isinstance(size, bool) else None,
        "device": cleaned(", ".join(devices)) or None,
        "events": int(summary["events"]),
        "duration_ns": int(summary["duration_ns"]),
        "steps": int(trace.iterations["iteration"].nunique()),
        "clock": "device" if trace.iterations["clock"].eq("device").any() else "host",
    }


def content_of(trace: Trace) -> str:
    """An identifier of what was recorded: that of a copy elsewhere, compressed or not, is the same."""
    parts = trace.each(_content_of)
    return f"sha256:{hashlib.sha256(''.join(map(str, parts)).encode()).hexdigest()[:16]}"


def _content_of(rank_trace: RankTrace) -> str:
    found = hashlib.sha256(repr((rank_trace.rank, rank_trace.names)).encode("utf-8", "surrogatepass"))
    for column in (rank_trace.start, rank_trace.dur, rank_trace.name):
        found.update(column.tobytes())
    return found.hexdigest()


def _scope(trace: Trace, judged: Scope) -> dict[str, Any]:
    """What was looked at, as the command line takes it, and its share of what was recorded."""
    ranks = trace.ranks_of(judged)
    looked = whole = 0
    for rank in ranks:
        rank_trace = trace.rank(rank)
        if not rank_trace.n:
            continue
        start, end = rank_trace.extent
        windows = rank_trace.windows(judged)
        looked += int((windows[:, 1].clip(start, end) - windows[:, 0].clip(start, end)).sum())
        whole += end - start
    window = judged.window_ns
    return {
        "ranks": None if judged.ranks is None else _ranges(judged.ranks),
        "iterations": None if judged.iterations is None else _ranges(judged.iterations),
        "window": None if window is None else f"{window[0]}ns:{window[1]}ns",
        "share_of_recording_pct": round(100.0 * looked / whole, 3) if whole else 0.0,
    }


def _options(part: Mapping[str, Any]) -> tuple[str, ...]:
    named = [(name, part[name]) for name in ("ranks", "iterations", "window")]
    return tuple(word for name, value in named if value is not None for word in (f"--{name}", str(value)))


def _ranges(numbers: Sequence[int]) -> str:
    """`0-3,7`."""
    runs = runs_of(sorted(numbers))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _quoted(text: str, rows: Sequence[Row]) -> str:
    """A sentence with the names that rows claim quoted."""
    named = [name for row in rows for name in names_in(json.loads(str(row["claims"] or "[]")))]
    return quoted_in(text, [*named, *map(brief, named)])


def _bar(shown: Story, rows: Sequence[Row]) -> dict[str, Any]:
    """The numbers of the verdict: what it is of, what of that is reachable, the parts that add up to it."""
    unit = "ns/step" if shown.per_step else "ns"
    saved = saved_in(shown.parts)
    own = [row for row in rows if row["headline"] and str(row["headline"]).rstrip(".") in shown.headline]
    stated = [
        {"value": rounded(float(claim["value"])), "unit": claim["unit"]}
        for row in own
        for claim in json.loads(str(row["claims"] or "[]"))
        if claim["unit"] in _STATED and str(claim["shown"]) in row["headline"]
    ]
    return {
        "whole": {"value": shown.whole_ns, "unit": unit} if shown.whole_ns else None,
        "reachable": {"value": shown.whole_ns - saved, "unit": unit} if saved else None,
        "parts": [
            {
                "finding": None if part.finding < 0 else shown.advice[part.finding].topic,
                "form": part.form,
                "lost_as": part.lost_as,
                "ns": part.ns,
            }
            for part in shown.parts
        ],
        "stated": [each for at, each in enumerate(stated) if each not in stated[:at]],
    }


def _time(trace: Trace, judged: Scope) -> dict[str, Any]:
    """Shares of the judged time on the devices; what is not recorded is said to be."""
    ranks = trace.ranks_of(judged)
    whose: int | str = ranks[0] if len(ranks) == 1 else "all"
    try:
        frame = ANALYSES["temporal_breakdown"].answer(trace, judged)
    except MissingDataError:
        frame = pd.DataFrame()
    whole = int(frame["window_ns"].sum()) if len(frame) else 0
    if not whole or trace.several_jobs:
        period = trace.extent_ns[1] - trace.extent_ns[0]
        return {"rank": whose, "period_ns": int(period), "shares_pct": {"not_recorded": 100.0}}
    shares = {part: round(100.0 * int(frame[f"{part}_ns"].sum()) / whole, 3) for part in _PARTS[:-1]}
    shares["idle"] = round(100.0 - sum(shares.values()), 3)
    return {"rank": whose, "period_ns": whole // len(frame), "shares_pct": shares}


def _together(shown: Story) -> dict[str, Any] | None:
    """What the changes save together, as the bar has it: their savings do not add."""
    saves = [part for part in shown.parts if part.form in SAVINGS]
    if len(saves) < 2:
        return None
    share = rounded(100.0 * saved_in(shown.parts) / shown.whole_ns)
    return {
        "findings": [shown.advice[part.finding].topic for part in saves],
        "saving_at_most": {"value": share, "unit": "%", "of": "step time" if shown.per_step else "the time"},
    }


def _unknown(trace: Trace, rows: Sequence[Row]) -> list[dict[str, str]]:
    """What this recording cannot tell, or only of some ranks or times, and what to record."""
    found = [
        {
            "what": clipped(quoted_in(str(row["text"]), []), _LINE),
            "record": clipped(str(row["suggestion"]), _LINE),
        }
        for row in rows
        if row["severity"] == OPEN or is_unjudged(row["topic"])
    ]
    if "serving" in trace.kinds:
        found = [*found[: _MOST_UNKNOWN - 1], dict(_OF_SERVERS)]
    return found[:_MOST_UNKNOWN]
