"""What costs a job most time, in a sentence each, and what to try."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from hta_widgets.analysis.core.claim import Text
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.judging import Open, judged
from hta_widgets.analysis.findings.places import places
from hta_widgets.analysis.findings.recording_rules import recording_verdict, unread_files
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.saving import Judged
from hta_widgets.analysis.findings.sections import CHECKED, NOTHING, OPEN, ordered
from hta_widgets.analysis.replay.expressions import written
from hta_widgets.formatting import counted, decapitalised, in_words
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_COLUMNS = {
    "rank": "Int64",
    "iteration": "Int64",
    "section": "str",
    "severity": "str",
    "topic": "str",
    "part_of": "str",
    "role": "str",
    "lost_as": "str",
    "title": "str",
    "headline": "str",
    "cost_ns": "int64",
    "share_pct": "float64",
    "text": "str",
    "claims": "str",
    "saving": "str",
    "saving_low_ns": "Int64",
    "saving_ns": "Int64",
    "saving_high_ns": "Int64",
    "saving_pct": "float64",
    "saving_rank": "Int64",
    "cost_on_rank_pct": "float64",
    "method": "str",
    "confidence": "str",
    "steps": "Int64",
    "edits": "str",
    "suggestion": "str",
    "risk": "str",
    "needs": "str",
    "wrong_if": "str",
    "kind": "str",
    "name": "str",
    "checked": "str",
    "event_rank": "Int64",
    "event_id": "Int64",
    "start_ns": "Int64",
    "end_ns": "Int64",
    "places": "str",
}
_NO_FINDING = {
    name: {"str": "", "int64": 0, "float64": 0.0}[dtype]
    for name, dtype in _COLUMNS.items()
    if dtype != "Int64" and name not in ("saving_pct", "cost_on_rank_pct")
}


@kept()
def overview(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What costs the job most time, and what can be done about it?

    Each rule reads one analysis: `idle_breakdown` (waiting for data, synchronising calls, a late host,
    launches on their way, many small kernels, work that waits for other work), `stragglers` (a rank that
    others wait for, what it does longer, ranks that wait for each other),
    `temporal_breakdown` (exposed communication, copies), `kernel_durations` (a rank with slow kernels),
    `step_times`. A cost below 3 % of the time is not reported, since the steps of a steady job differ by as
    much; from 10 % on it is a warning. One loss is one finding: what explains another finding, or lies within
    its time, is marked as a part of it. A cost is not what a change would save. Of a job that
    computes on the host alone it says what the thread of its steps does, and what that waits for.

    If the steps are marked (ProfilerStep, or a server's steps) and the scope names no iterations, only
    complete steps count, and of those the ones without start-up if there are any. Of a recording that cannot
    be judged (files of several jobs, events removed, a graph that is captured) only that is said.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.

    Returns:
        What there is to say of the recording; findings whose cost a change takes away, by what it saves;
        those for which that is unknown, by cost; those whose change saves nothing now, by cost; what is said
        of memory, which takes no time; a row that names what was looked for and not found; and a row per kind
        of data that is missing. Parts follow what they are a part of. That devices compute comes before the
        findings, or behind those of the first two kinds where one is a warning.
        A saving is one if it is 0.5 % of the time or more, and twice the median deviation of the steps over
        the root of their number.
        Columns: rank, iteration (Int64; what it is about, NA for all), section (str: "recording", "saves",
        "unknown", "verdict", "not now", "memory", "nothing found" or "open"),
        severity (str: "warning", "note",
        "verdict" for what the time is spent on or what the recording is, which costs nothing, "checked" for
        what was not found, or "open" for what could not be judged), topic (str), part_of (str: the topic of
        the finding that it is a part of, or ""), role (str: a "cause" of lost time, "work", a "doubt", an
        "aside", the "recording" or its "memory"; of an open question "main" or "idle" where it is about all
        that devices do, or why they are idle), lost_as (str: the class of the time that it costs, "compute",
        "communication", "memory", "idle" or "host"; "" if open), title (str: a noun phrase), headline (str:
        the verdict where it is not built from cost and saving), cost_ns (int64, ns lost in
        all of the selected time on each rank that it is about, on average), share_pct (float64, % of the
        time of these ranks; 0 if open, or about the recording or memory),
        text (str), claims (str: a JSON list of what text and saving state, each with measure, value, unit,
        of, ranks, about and shown, and at: where in text it starts), saving (str: what taking the
        cost away would save, by a replay of one rank as in `what_if`, or, of what ranks lose to each other,
        of all as in `slowdown`; or why that is unknown),
        saving_low_ns, saving_ns, saving_high_ns (Int64, ns of that rank's selected time, or of the job's
        replayed steps: at least, estimate, at most; NA without one), saving_pct (float64, the estimate in %
        of that time), saving_rank (Int64, the rank that was replayed; NA if all were), cost_on_rank_pct
        (float64, % of its time that this costs on that rank; NaN without one), method (str:
        "replay"; "bound", of a change that can be had only in part; "analytic", at most what ranks lose to
        each other, or nothing, without a replay; ""), confidence (str: "high", "medium" or "low", as the
        range of the replay and the error of its model are together up to a tenth of the saving, up to a half,
        or more, or only a bound is known; "" without a saving), steps (Int64, the steps that are judged:
        cost and savings divided by it are per step; NA where none are marked),
        edits (str, the Python expression of the change, as `hta-widgets what-if --edit` takes it),
        suggestion (what to try), risk (what may go wrong with it), needs (what it takes; "" where nothing
        is known to), wrong_if (what would make it false), kind (the analysis that shows it, "" if open or
        about the recording), name (of the events it is about, or ""), checked (the topics that were not
        found, on their row) (str), event_rank, event_id (Int64; an event to look at, or NA), start_ns, end_ns
        (Int64, ns: when it shows, on that rank, or NA), places (str: a JSON list of up to 12 [rank, start_ns,
        end_ns], where the time is lost, the longest first; "" where that is not known, and in
        jobs larger than memory).
    """
    scope = scope or Scope()
    verdict, inputs = recording_verdict(trace, scope), Inputs(trace, scope)
    found, absent, missing = ([], [], []) if verdict else judged(inputs)
    found += [Judged(each.rule, each.finding) for each in (verdict, unread_files(trace)) if each]
    steps = None if verdict else inputs.judged or None
    rows = [_row(section, each, steps) for section, each in ordered(found)]
    rows += [_checked_row(absent)] if absent else []
    rows += [_open_row(gap) for gap in missing]
    return typed_frame(rows, _COLUMNS)


def _row(section: str, judged: Judged, steps: int | None) -> dict[str, object]:
    rule, finding, saving, evidence = judged.rule, judged.finding, judged.saving, judged.finding.evidence
    start, end = evidence.span or (None, None)
    return {
        "rank": evidence.rank,
        "iteration": evidence.iteration,
        "section": section,
        "severity": finding.severity,
        "topic": rule.topic,
        "part_of": judged.part_of,
        "role": rule.role,
        "lost_as": finding.lost_as or rule.lost_as,
        "title": finding.title or rule.title,
        "headline": finding.headline or rule.headline,
        "cost_ns": finding.cost_ns,
        "share_pct": finding.share_pct,
        "text": str(finding.text),
        "claims": _claims(finding.text, saving.text),
        "saving": str(saving.text),
        "saving_low_ns": saving.low_ns,
        "saving_ns": saving.ns,
        "saving_high_ns": saving.high_ns,
        "saving_pct": saving.pct,
        "saving_rank": saving.rank,
        "cost_on_rank_pct": None if saving.rank is None else finding.share_on(saving.rank),
        "method": saving.method,
        "confidence": saving.confidence,
        "steps": steps,
        "edits": written(saving.edits) if saving.edits else "",
        "suggestion": finding.suggestion,
        "risk": "" if finding.change_made else rule.risk,
        "needs": "" if finding.change_made else rule.needs,
        "wrong_if": rule.wrong_if,
        "kind": finding.kind,
        "name": evidence.name,
        "checked": "",
        "event_rank": evidence.event_rank,
        "event_id": evidence.event_id,
        "start_ns": start,
        "end_ns": end,
        "places": places(finding),
    }


def _claims(stated: Any, saving: Any) -> str:
    claims: list[dict[str, Any]] = []
    for text, named in ((stated, [*stated.places] if isinstance(stated, Text) else []), (saving, [])):
        if isinstance(text, Text):
            claims += [
                {**claim.as_dict(), "at": [at for other, at in named if other is claim]}
                for claim in text.claims
            ]
    return json.dumps(claims, ensure_ascii=False) if claims else ""


def _checked_row(rules: list[Rule]) -> dict[str, object]:
    listed = in_words([decapitalised(rule.name) for rule in rules])
    return {
        **_NO_FINDING,
        "section": NOTHING,
        "severity": CHECKED,
        "topic": "nothing_found",
        "text": f"{counted(len(rules), 'more cause')} checked, none found or too small to judge: {listed}.",
        "checked": " ".join(sorted({rule.topic for rule in rules})),
    }


def _open_row(gap: Open) -> dict[str, object]:
    return {
        **_NO_FINDING,
        "section": OPEN,
        "severity": OPEN,
        "topic": "withheld" if gap.leads else "not_judged",
        "role": gap.role,
        "title": gap.title,
        "text": gap.text,
        "suggestion": gap.remedy,
    }
