"""The document as Markdown, to paste into an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hta_widgets.analysis.evidence.findings import cost_in_words
from hta_widgets.analysis.evidence.names import quoted
from hta_widgets.analysis.findings.bar import SAVINGS
from hta_widgets.formatting import counted, duration, in_words, percent

_HOW: Final = {"replay": "simulated", "bound": "upper bound"}
_SPECIAL: Final = re.compile(r"([\\*_<>\[\]|#!~])")
_CODE: Final = re.compile(r"(`[^`]*`)")


def markdown(document: Mapping[str, Any]) -> str:
    """The text of a document of `evidence`; of the recording it holds only names between backticks."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    recording, time, trust = document["recording"], document["time"], document["trust"]
    yield f"**{_plain(document['verdict'])}**"
    yield ""
    ranks = f"{counted(recording['ranks_recorded'], 'rank')}"
    size = recording["world_size"]
    ranks += f" of {size}" if size and size != recording["ranks_recorded"] else ""
    device = quoted(recording["device"]) if recording["device"] else "no device named"
    whole = document["bar"]["whole"]
    marked = whole is None or whole["unit"] == "ns/step"
    steps = counted(recording["steps"], "step") if marked else "no steps marked"
    yield (
        f"{recording['kind'].capitalize()}{_opened(recording)}, {ranks}, {device}, {steps}, "
        f"{duration(recording['duration_ns'])} recorded ({_scope(document['scope'])})."
    )
    shares = time["shares_pct"]
    if "not_recorded" not in shares:
        told = ", ".join(f"{name.replace('_', ' ')} {percent(share)}" for name, share in shares.items())
        whose = "all ranks" if time["rank"] == "all" else f"rank {time['rank']}"
        yield f"Device time of {whose}: {told}."
    yield f"Trust: {trust['level']}."
    forbidden: dict[str, list[str]] = {}
    for veto in trust["vetoes"]:
        forbidden.setdefault(str(veto["because"]), []).append(veto["forbids"].replace("_", " "))
    for because, claims in forbidden.items():
        yield f"- No statement on {in_words(claims)}: {_plain(because).rstrip('.')}."
    for entry in trust["health"]:
        yield f"- Health {entry['severity']}: {entry['check'].replace('_', ' ')} ({entry['count']:,})."
    yield from _bar(document["bar"])
    for number, finding in enumerate(document["findings"], 1):
        yield ""
        yield from _finding(number, finding)
    if document["unknown"]:
        yield ""
        yield "Unknown:"
        for entry in document["unknown"]:
            yield f"- {_plain(entry['what'])} {_plain(entry['record'])}"
    yield ""
    yield _footer(document)


def _bar(bar: Mapping[str, Any]) -> Iterator[str]:
    """What several changes save, each on top of those before it: their own savings do not add."""
    saved = [part for part in bar["parts"] if part["form"] in SAVINGS]
    if not saved or (len(saved) == 1 and saved[0]["form"] == "simulated"):
        return
    parts = [
        f"{quoted(part['finding'])} {'at most ' * (part['form'] == 'bound')}{duration(part['ns'])}"
        for part in saved
    ]
    left, per = duration(bar["reachable"]["value"]), " per step" * (bar["whole"]["unit"] == "ns/step")
    yield ""
    yield f"One change after the other saves: {', then '.join(parts)}; {left}{per} remain."


def _finding(number: int, finding: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {number}. {quoted(finding['id'])}: {_plain(cost_in_words(finding['cost']))}"
    yield ""
    yield _plain(finding["claim"])
    saving = finding["saving"]
    if saving["method"] in _HOW:
        low, mid, high = (percent(saving[name]["value"]) for name in ("low", "mid", "high"))
        interval = "" if low == high else f", {low} to {high}"
        nothing = not saving["mid"]["value"] and not interval
        yield f"- Saving by itself: {'nothing now' if nothing else mid}{interval} ({_HOW[saving['method']]})."
    else:
        yield f"- Saving: not estimated; {_plain(saving['unknown_because'])}"
    if finding["where"]:
        places = ", ".join(
            f"{quoted(place['what'])} {percent(place['share_pct'])}" for place in finding["where"]
        )
        yield f"- Where: {places}."
    for event in finding["evidence"][:1]:
        yield f"- Event {event['ref']}: {quoted(event['name'])}, {duration(event['dur_ns'])}."
    yield f"- Do: {_plain(finding['do'])}"
    for name, label in (("risk", "Risk"), ("needs", "Needs"), ("wrong_if", "Wrong if")):
        if name in finding:
            yield f"- {label}: {_plain(finding[name])}"
    yield f"- Trust: {finding['trust']}. Run: `{' '.join(finding['runs'][0]['argv'])}`"


def _opened(recording: Mapping[str, Any]) -> str:
    """` (recording `a` of 3)`, of a folder that holds several."""
    if not recording["opened"]:
        return ""
    return f" (recording {quoted(recording['opened'])} of {recording['recordings']:,})"


def _scope(scope: Mapping[str, Any]) -> str:
    parts = [f"{name} {scope[name]}" for name in ("ranks", "iterations", "window") if scope[name]]
    share = f"{percent(scope['share_of_recording_pct'])} of it judged"
    return ", ".join([share, *parts])


def _footer(document: Mapping[str, Any]) -> str:
    checked = len(document["checked"])
    left_out = document["more"]["findings_left_out"]
    more = f"; {counted(left_out, 'finding')} left out" if left_out else ""
    looked = f"{counted(checked, 'other cause')} checked, none found{more}. " if checked else ""
    return f"{looked}Recording {document['recording']['id']}, {document['tool']}."


def _plain(text: str) -> str:
    """Prose without what Markdown would interpret; names between backticks stay as they are."""
    pieces = _CODE.split(text)
    return "".join(piece if at % 2 else _SPECIAL.sub(r"\\\1", piece) for at, piece in enumerate(pieces))
