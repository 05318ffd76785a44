"""The document as Markdown, to paste into an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hta_widgets.analysis.evidence.findings import cost_in_words
from hta_widgets.analysis.evidence.names import quoted
from hta_widgets.formatting import counted, duration, percent

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
    yield (
        f"{recording['kind'].capitalize()}, {ranks}, {device}, {counted(recording['steps'], 'step')}, "
        f"{duration(recording['duration_ns'])} recorded ({_scope(document['scope'])})."
    )
    shares = time["shares_pct"]
    if "not_recorded" not in shares:
        told = ", ".join(f"{name.replace('_', ' ')} {percent(share)}" for name, share in shares.items())
        whose = "all ranks" if time["rank"] == "all" else f"rank {time['rank']}"
        yield f"Device time of {whose}: {told}."
    yield f"Trust: {trust['level']}."
    for veto in trust["vetoes"]:
        yield f"- No statement on {veto['forbids'].replace('_', ' ')}: {_plain(veto['because'])}."
    for entry in trust["health"]:
        yield f"- Health {entry['severity']}: {entry['check'].replace('_', ' ')} ({entry['count']:,})."
    for number, finding in enumerate(document["findings"], 1):
        yield ""
        yield from _finding(number, finding)
    together = document["together"]
    if together:
        yield ""
        saving = percent(together["saving_at_most"]["value"])
        yield f"Together {', '.join(map(quoted, together['findings']))} save at most {saving}."
    if document["unknown"]:
        yield ""
        yield "Unknown:"
        for entry in document["unknown"]:
            yield f"- {_plain(entry['what'])} {_plain(entry['record'])}"
    yield ""
    yield _footer(document)


def _finding(number: int, finding: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {number}. {quoted(finding['id'])}: {_plain(cost_in_words(finding['cost']))}"
    yield ""
    yield _plain(finding["claim"])
    saving = finding["saving"]
    if saving["method"] in _HOW:
        low, mid, high = (percent(saving[name]["value"]) for name in ("low", "mid", "high"))
        interval = "" if low == high else f", {low} to {high}"
        nothing = not saving["mid"]["value"] and not interval
        yield f"- Saving: {'nothing now' if nothing else mid}{interval} ({_HOW[saving['method']]})."
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


def _scope(scope: Mapping[str, Any]) -> str:
    parts = [f"{name} {scope[name]}" for name in ("ranks", "iterations", "window") if scope[name]]
    share = f"{percent(scope['share_of_recording_pct'])} of it judged"
    return ", ".join([share, *parts])


def _footer(document: Mapping[str, Any]) -> str:
    checked = len(document["checked"])
    left_out = document["more"]["findings_left_out"]
    more = f"; {counted(left_out, 'finding')} left out" if left_out else ""
    return (
        f"{counted(checked, 'other cause')} checked, none found{more}. "
        f"Recording {document['recording']['id']}, {document['tool']}."
    )


def _plain(text: str) -> str:
    """Prose without what Markdown would interpret; names between backticks stay as they are."""
    pieces = _CODE.split(text)
    return "".join(piece if at % 2 else _SPECIAL.sub(r"\\\1", piece) for at, piece in enumerate(pieces))
