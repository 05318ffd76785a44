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
from hta_widgets.analysis.evidence.findings import Row, chosen, cost_in_words, finding_of, is_apart
from hta_widgets.analysis.evidence.names import cleaned, quoted_in
from hta_widgets.analysis.evidence.prose import clipped, names_in
from hta_widgets.analysis.evidence.runs import Options
from hta_widgets.analysis.evidence.serving import serving_of
from hta_widgets.analysis.evidence.trust import trust_of
from hta_widgets.analysis.findings import OPEN, judged_scope, overview
from hta_widgets.analysis.findings.headline import title
from hta_widgets.analysis.findings.rules import is_beside, is_unjudged
from hta_widgets.analysis.findings.sections import MEMORY, RECORDING, SAVES, VERDICT
from hta_widgets.analysis.findings.together import saved_together
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, decapitalised, percent, runs_of
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
        (level, what it forbids to say, health), verdict, time (shares of the judged time, %), serving (time
        and tokens of a server's steps by phase, or None), findings (at
        most 6: claim, cost, saving, where, evidence, what to do, what to run, what would make it false),
        together (what the changes save together), checked (rules that found nothing), unknown, more.

    Raises:
        ValueError: the budget is too small for what is never left out, or above 4,000.
    """
    scope = scope or Scope()
    rows: list[Row] = overview(trace, scope).to_dict("records")  # type: ignore[assignment]
    refused = next(
        (_quoted(row) for row in rows if row["section"] == RECORDING and row["role"] == "recording"), None
    )
    judged = scope if refused else judged_scope(trace, scope)
    trust = trust_of(trace, judged, str(refused["text"]) if refused else "")
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
        "verdict": _verdict(refused, selected, findings, rows),
        "time": _time(trace, judged),
        "serving": None if refused else serving_of(trace, scope),
        "findings": findings,
        "together": _together(trace, scope, selected[:_MOST_FINDINGS], forbidden),
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


def _quoted(row: Row) -> Row:
    """A row about the recording, with the names in its sentences quoted."""
    named = names_in(json.loads(str(row["claims"] or "[]")))
    names = [*named, *map(brief, named)]
    return {**row, **{said: quoted_in(str(row[said]), names) for said in ("text", "headline")}}


def _verdict(
    refused: Row | None, selected: Sequence[Row], findings: Sequence[Mapping[str, Any]], rows: Sequence[Row]
) -> str:
    """The answer in a sentence: how much of what goes to what, and what a change saves."""
    if refused:
        return clipped(str(refused["headline"]), _VERDICT)
    if not findings:
        unknown = next((row for row in rows if row["severity"] == OPEN and row["role"]), None)
        if unknown is None:
            return "No known cause takes a share of the time that stands out."
        lacking = str(unknown["text"]).partition(": it is unknown")[0]
        return clipped(f"Where time goes is unknown: {decapitalised(lacking)}.", _VERDICT)
    told = list(zip(findings, selected, strict=False))
    apart = [_spent(finding, row) for finding, row in told if is_apart(row)]
    rest = [(finding, row) for finding, row in told if not is_apart(row)]
    if apart and rest:
        return clipped(f"{'; '.join(apart)}; in the rest, {_answer(rest)}.", _VERDICT)
    return clipped(f"{'; '.join(apart) or _answer(rest)}.", _VERDICT)


def _answer(told: Sequence[tuple[Mapping[str, Any], Row]]) -> str:
    """The first finding, and what its change saves; what works most of the time leads if nothing warns."""
    working = next((each for each in told if each[1]["section"] == VERDICT), None)
    others = [each for each in told if each[1]["section"] not in (VERDICT, MEMORY)]
    if not others:
        return _spent(*told[0])
    lost = _spent(*others[0]) + _saved(others[0][0]["saving"])
    if working and not any(row["severity"] == "warning" for _, row in told):
        return f"{_spent(*working)}; {lost}"
    return lost


def _saved(saving: Mapping[str, Any]) -> str:
    if saving["method"] == "none":
        return "; saving not estimated"
    how = "simulated" if saving["method"] == "replay" else "upper bound"
    if not saving["mid"]["value"]:
        return f"; without it nothing is saved now ({how})"
    return f"; without it {percent(saving['mid']['value'])} less time ({how})"


def _spent(finding: Mapping[str, Any], row: Row) -> str:
    """`14.6 % of step time: waiting for a late rank`."""
    return f"{cost_in_words(finding['cost'])}: {decapitalised(title(row))}"


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


def _together(
    trace: Trace, scope: Scope, selected: Sequence[Row], forbidden: Mapping[str, str]
) -> dict[str, Any] | None:
    """What the changes save together: their savings do not add."""
    rows = pd.DataFrame([row for row in selected if row["section"] == SAVES and row["edits"]])
    if "savings" in forbidden or len(rows) < 2:
        return None
    both = saved_together(trace, scope, rows)
    if both is None:
        return None
    share = round(100.0 * both.ns / both.whole_ns, 3)
    return {
        "findings": [str(topic) for topic in rows["topic"]],
        "saving_at_most": {"value": share, "unit": "%", "of": "the judged time of one rank"},
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
