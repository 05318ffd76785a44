"""A row of the overview as a finding of the document: claim, cost, saving, evidence, advice, what to run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.evidence.names import cleaned, quoted, quoted_in
from hta_widgets.analysis.evidence.prose import (
    Claims,
    clipped,
    full_names_in,
    names_in,
    rounded,
    same,
    sentences,
    shares_of,
)
from hta_widgets.analysis.evidence.runs import Options, runs_of
from hta_widgets.analysis.findings.rules import is_beside
from hta_widgets.analysis.findings.saving import NOT_ESTIMATED
from hta_widgets.analysis.findings.sections import LATER, MEMORY, RECORDING, SAVES, UNKNOWN, VERDICT
from hta_widgets.analysis.findings.story_advice import title
from hta_widgets.analysis.inspect.refs import ref
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, byte_size, percent
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

Row = Mapping[str, Any]

_MOST_EVENTS: Final = 3
_MOST_PLACES: Final = 3
_MOST_NAMES: Final = 2
_LONGEST: Final = {"claim": 320, "do": 260, "risk": 160, "needs": 120, "wrong_if": 200, "because": 160}
_DEVICE: Final = ("device events",)
_UNSURE: Final = "the recorded part is not typical of the job, or the profiler itself takes this time."
_IDLE: Final = ("idle_breakdown", "idle_gaps", "stream_idle_breakdown")
_APART: Final = "the recorded work"
_WHOLES: Final = ("step time", "the time", "the time after start-up", _APART)


def is_apart(row: Row) -> bool:
    """Whether a row of `overview` is about what was recorded beside the judged time, such as start-up."""
    return row["section"] == RECORDING and row["role"] == "aside" and bool(row["headline"])


def chosen(rows: Sequence[Row], forbidden: Mapping[str, str]) -> list[Row]:
    """The rows that become findings, in the order of `overview`.

    Parts of a finding, doubts about the class of some work, asides without a cost, what is said of the
    recording as a whole and what `serving` says of a server are none; nor is what a veto forbids.

    Args:
        rows: of `overview`.
        forbidden: class of statements -> why a veto forbids it.
    """
    return [
        row
        for row in rows
        if (row["section"] in (SAVES, UNKNOWN, LATER, VERDICT, MEMORY) or is_apart(row))
        and not row["part_of"]
        and row["role"] != "doubt"
        and not is_beside(str(row["topic"]))
        and not (row["role"] == "aside" and not row["share_pct"])
        and not (row["kind"] in _IDLE and "idle_causes" in forbidden)
    ]


def finding_of(
    trace: Trace,
    judged: Scope,
    row: Row,
    parts: Sequence[Row],
    level: str,
    forbidden: Mapping[str, str],
    options: Options,
) -> dict[str, Any]:
    """One finding, with its parts: why it is so, and what follows from it.

    Args:
        judged: the scope that it is about.
        parts: the rows that are parts of it.
        level: the trust in the recording.
        forbidden: class of statements -> why a veto forbids it.
        options: what each command repeats, so that it is about the same part of the job.
    """
    claims: Claims = json.loads(row["claims"] or "[]")
    cost = _cost(row, claims)
    saving = _saving(row, str(cost["of"]), forbidden)
    where = [{"what": title(part), "share_pct": rounded(float(part["share_pct"]))} for part in parts]
    where = [place for place in [*where[:2], *shares_of(claims)] if 0 <= place["share_pct"] <= 100]
    where = where[:_MOST_PLACES]
    events = _events(trace, judged, row)
    shares = [cost["value"]] if cost["unit"] == "%" else []
    shares += [saving[name]["value"] for name in ("low", "mid", "high") if name in saving]
    shares += [place["share_pct"] for place in where]
    times = [float(event["dur_ns"]) for event in events]
    memory = [cost["value"]] if cost["unit"] == "B" else []
    fields = {"%": shares, "ns": times, "B": memory}

    def stands(claim: Mapping[str, Any]) -> bool:
        return claim["measure"] != "job_evidence" and any(
            value is not None and same(float(value), float(claim["value"]))
            for value in fields.get(claim["unit"], [])
        )

    said = _claim(row, parts, cost, stands)
    trust = _trust(saving, level)
    wrong_if = str(row["wrong_if"]) or (_UNSURE if trust != "high" else "")
    finding = {
        "id": str(row["topic"]),
        "rank": None if _absent(row["rank"]) else int(row["rank"]),
        "claim": said,
        "cost": cost,
        "saving": saving,
        "where": where,
        "evidence": events,
        "do": _advice([row, *parts]),
        "risk": clipped(str(row["risk"]), _LONGEST["risk"]),
        "needs": clipped(str(row["needs"]), _LONGEST["needs"]),
        "runs": runs_of(
            row,
            events,
            replace(options, scope=()) if is_apart(row) else options,
            _answers(trace, judged, str(row["kind"])),
            "savings" not in forbidden,
        ),
        "trust": trust,
        "wrong_if": clipped(wrong_if, _LONGEST["wrong_if"]),
    }
    return {name: value for name, value in finding.items() if value != "" or name in ("claim", "do")}


def _claim(
    row: Row, parts: Sequence[Row], cost: Mapping[str, Any], stands: Callable[[Mapping[str, Any]], bool]
) -> str:
    """What the rows state, as far as it fits: first what is found, then why."""
    said = ""
    for each in (row, *parts):
        room = _LONGEST["claim"] - len(said) - 1
        own = sentences(str(each["text"]), json.loads(each["claims"] or "[]"), stands, room)
        if each is row and not own:
            own = _in_short(row, cost)
        said = f"{said} {own}".strip()
    return said


def _in_short(row: Row, cost: Mapping[str, Any]) -> str:
    """What is found, where no sentence about it has only numbers of fields: its title, cost and names."""
    names = [
        quoted(name, 62)
        for name in dict.fromkeys(map(cleaned, full_names_in(json.loads(row["claims"] or "[]"))))
    ]
    about = f" ({', '.join(names[:_MOST_NAMES])})" if names else ""
    return f"{title(row)}: {cost_in_words(cost)}{about}."


def _advice(rows: Sequence[Row]) -> str:
    """What to try, that of the parts behind it as far as it fits; names in it quoted."""
    said = ""
    for row in rows:
        names = [*names_in(json.loads(row["claims"] or "[]")), str(row["name"]), brief(str(row["name"]))]
        own = quoted_in(str(row["suggestion"]), names)
        if own and own not in said and (not said or len(said) + 1 + len(own) <= _LONGEST["do"]):
            said = f"{said} {own}".strip()
    return clipped(said, _LONGEST["do"])


def _absent(value: Any) -> bool:
    return bool(pd.isna(value))


def cost_in_words(cost: Mapping[str, Any]) -> str:
    """`14.6 % of step time`."""
    if cost["value"] is None:
        return "its cost is unknown"
    if not cost["value"]:
        return f"none of {cost['of']}"
    amount = byte_size(cost["value"]) if cost["unit"] == "B" else percent(cost["value"])
    return f"{amount} of {cost['of']}"


def _cost(row: Row, claims: Claims) -> dict[str, Any]:
    if row["section"] == MEMORY:
        of_memory = next((claim for claim in claims if claim["unit"] == "B"), None)
        value = None if of_memory is None else int(of_memory["value"])
        return {"value": value, "unit": "B", "of": "memory"}
    of = next((str(claim["of"]) for claim in claims if claim["unit"] == "%" and claim["of"]), "")
    whole = "the time" if _absent(row["steps"]) else "step time"
    if is_apart(row) and row["share_pct"]:
        whole = _APART
    whole = of if of in _WHOLES else whole
    return {"value": rounded(float(row["share_pct"])), "unit": "%", "of": whole}


def predicted_saving(row: Row, forbidden: Mapping[str, str]) -> dict[str, Any]:
    """What the change against a finding saves, and how that is known; or why it is unknown."""
    return _saving(row, str(_cost(row, [])["of"]), forbidden)


def _saving(row: Row, whole: str, forbidden: Mapping[str, str]) -> dict[str, Any]:
    why = ""
    if row["section"] == MEMORY:
        why = "it is about memory, not time"
    elif row["section"] == VERDICT:
        why = "it is the work itself; a change of that work is another finding"
    elif "savings" in forbidden:
        why = f"vetoed: {forbidden['savings']}"
    elif _absent(row["saving_pct"]):
        why = str(row["saving"]).removeprefix(f"{NOT_ESTIMATED}: ") or "nothing is known to take it away"
    if why:
        return {"method": "none", "unknown_because": clipped(_without_numbers(why), _LONGEST["because"])}
    mid, ns = float(row["saving_pct"]), int(row["saving_ns"])
    if ns <= 0:  # the change lengthens what it is about: nothing is saved
        mid = 0.0
    low, high = (
        mid if _absent(row[name]) or ns <= 0 else mid * int(row[name]) / ns
        for name in ("saving_low_ns", "saving_high_ns")
    )
    return {
        **{
            name: {"value": rounded(value), "unit": "%", "of": whole}
            for name, value in (("low", min(low, mid)), ("mid", mid), ("high", max(high, mid)))
        },
        "method": "replay" if row["method"] == "replay" else "bound",
        **({"confidence": str(row["confidence"])} if row["confidence"] else {}),
    }


def _without_numbers(text: str) -> str:
    """A reason without the sentences that hold numbers: those have no field."""
    parts = [part for part in text.split(". ") if not any(letter.isdigit() for letter in part)]
    return ". ".join(parts) or "the replay of this recording has no answer"


def _trust(saving: Mapping[str, Any], level: str) -> str:
    """That of the saving, or of the recording where that is less."""
    order = ("none", "low", "medium", "high")
    own = saving.get("confidence", "medium" if saving["method"] == "none" else "low")
    return "low" if level == "none" else min(own, level, key=order.index)


def _answers(trace: Trace, judged: Scope, kind: str) -> bool:
    """Whether the analysis of a finding has its data in this recording."""
    if kind not in ANALYSES:
        return False
    if ANALYSES[kind].requires == _DEVICE:  # told without an answer, which may take long
        return any(trace.rank(rank).device_span is not None for rank in trace.ranks_of(judged))
    try:
        ANALYSES[kind].answer(trace, judged)
    except MissingDataError:
        return False
    return True


def _events(trace: Trace, judged: Scope, row: Row) -> list[dict[str, Any]]:
    """The event of the row and the longest of its name, the longest first."""
    known = [int(row[name]) for name in ("event_rank", "rank") if not _absent(row[name])]
    ranks = [rank for rank in (*known, *trace.ranks_of(judged)) if rank in trace.ranks]
    if not ranks or (row["section"] == RECORDING and not is_apart(row)):
        return []
    rank = ranks[0]
    rank_trace = trace.rank(rank)
    rows: list[int] = []
    if row["name"] and row["name"] in rank_trace.names:
        named = rank_trace.rows(Scope(iterations=judged.iterations, window_ns=judged.window_ns))
        named = named[rank_trace.name[named] == rank_trace.names.index(row["name"])]
        order = np.lexsort((rank_trace.event_id[named], -rank_trace.dur[named]))
        rows = [int(each) for each in named[order[:_MOST_EVENTS]]]
    if not _absent(row["event_id"]) and rank == row["event_rank"]:
        at = int(np.searchsorted(rank_trace.event_id, int(row["event_id"])))
        if at < rank_trace.n and rank_trace.event_id[at] == int(row["event_id"]) and at not in rows:
            rows = [at, *rows][:_MOST_EVENTS]
    rows.sort(key=lambda each: (-int(rank_trace.dur[each]), int(rank_trace.event_id[each])))
    found = []
    for each in rows:
        event, stream = ref(rank_trace, each), int(rank_trace.stream[each])
        found.append(
            {
                "ref": f"{event.rank}:{event.event_id}", "name": cleaned(event.name),
                "start_ns": event.start_ns, "dur_ns": event.dur_ns,
                "stream": None if stream == NULL else stream,
            }
        )  # fmt: skip
    return found
