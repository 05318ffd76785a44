"""What a finding states, in sentences whose numbers all stand in fields of the document.

The overview writes every number and name as a claim and says where it stands in the text. A sentence, or a
clause of it, stays if each number in it is the value of a field; a name in it is quoted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from hta_widgets.analysis.evidence.names import cleaned, quoted

Claims = list[Mapping[str, Any]]

_FIRST: Final = 0xF0000  # private letters stand for the claims while a text is cut into sentences
_MARK: Final = "[\U000f0000-\U000ffffd]"
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z\U000f0000-\U000ffffd])")
_ASIDE: Final = re.compile(r" \([^()]*\)")
# Such a sentence means nothing without the one before it.
_REFERS: Final = re.compile(r"(?:It|They|That|Then|Most of that)\b|.* meanwhile\.$")
_NUMBERS: Final = ("%", "ns", "ns/step", "count", "B", "GB/s", "FLOP", "TFLOP/s", "x")
# claims whose value is a clause of ours, with numbers of its own
_WRITTEN: Final = ("job_evidence", "several_jobs", "untrusted_replay")
# words of ours: kinds of kernels, and "before" or "after"
_OURS: Final = ("kind_of_kernels", "apart_side")
_SAME: Final = 1e-4

_SOURCE: Final = re.compile(r"\.py\(\d+\)")
_OPERATOR: Final = re.compile(r"\w+::[\w.]+")


def kind_of(name: str) -> str:
    """What a name in a claim is the name of."""
    if _SOURCE.search(name):
        return "source"
    if name.startswith("nn.Module: "):
        return "module"
    return "operator" if _OPERATOR.fullmatch(name) else "kernel"


def full_names_in(claims: Claims) -> list[str]:
    """Every name that claims state, in full."""
    return [name for claim in claims if _is_name(claim) for name in _each(claim["value"])]


def names_in(claims: Claims) -> list[str]:
    """Those of the recording, in full and as the sentence writes them."""
    found = [claim for claim in claims if claim["measure"] not in _OURS]
    return [*full_names_in(found), *(str(claim["shown"]) for claim in found if _is_name(claim))]


def shares_of(claims: Claims) -> list[dict[str, Any]]:
    """Whose part of the whole claims state: names, each with its share."""
    names = full_names_in(claims)
    found: dict[str, dict[str, Any]] = {}
    for claim in claims:
        about = [value for value in claim["about"].values() if isinstance(value, str) and value in names]
        if claim["unit"] == "%" and about and about[0] not in found:
            what = cleaned(about[0])
            share = rounded(float(claim["value"]))
            found[about[0]] = {"what": what, "kind": kind_of(about[0]), "share_pct": share}
    return list(found.values())


def sentences(text: str, claims: Claims, stands: Callable[[Mapping[str, Any]], bool], most: int) -> str:
    """The sentences of `text` that say nothing but what `stands`, in at most `most` letters.

    Args:
        text: of a row of `overview`.
        claims: its claims, with their places.
        stands: whether the value of a claim is one of a field.
        most: letters.
    """
    marked, told = _marked(text, claims)
    found: list[str] = []
    kept = marked
    for sentence in _SENTENCES.split(marked):
        alone = "" if not kept and _REFERS.match(sentence) else sentence
        kept = alone and _without(alone, lambda at: _is_number(told[at]) and not stands(told[at]))
        if kept:
            found.append(re.sub(_MARK, lambda mark: _shown(told[ord(mark[0]) - _FIRST]), kept))
    said = ""
    for sentence in found:
        longer = f"{said} {sentence}".strip()
        if len(longer) > most:
            break
        said = longer
    return said


def clipped(text: str, most: int) -> str:
    """`text` in at most `most` letters: whole sentences if some fit, else whole words; never half a name."""
    if len(text) <= most:
        return text
    said = ""
    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text):
        longer = f"{said} {sentence}".strip()
        if len(longer) > most:
            break
        said = longer
    if said:
        return said
    words = text[: most - 1].rsplit(" ", 1)[0]
    if words.count("`") % 2:
        words = words[: words.rindex("`")]
    return f"{words.rstrip(' ,;:')}…"


def _marked(text: str, claims: Claims) -> tuple[str, Claims]:
    """The text with a letter of its own in place of each claim, and the claims by these letters."""
    places = sorted(
        ((at, at + len(str(claim["shown"])), claim) for claim in claims for at in claim["at"]),
        key=lambda place: place[:2],
    )
    marked, end = "", 0
    told: list[Mapping[str, Any]] = []
    for start, stop, claim in places:
        if start < end:
            continue
        marked += f"{text[end:start]}{chr(_FIRST + len(told))}"
        told.append(claim)
        end = stop
    return marked + text[end:], told


def _without(sentence: str, bad: Callable[[int], bool]) -> str:
    """The sentence without asides and further clauses that hold what is `bad`; "" if its first one does."""

    def holds(part: str) -> bool:
        return any(bad(ord(mark) - _FIRST) for mark in re.findall(_MARK, part))

    kept = _ASIDE.sub(lambda aside: "" if holds(aside[0]) else aside[0], sentence)
    first, *others = re.split(r"(?<=[^;]); ", kept)
    if holds(first):
        head, colon, _ = first.partition(": ")
        if not colon or holds(head) or not re.search(_MARK, head):
            return ""
        first = head
    said = "; ".join([first, *(other for other in others if not holds(other))])
    return said if said.endswith((".", "!", "?")) else f"{said}."


def _is_name(claim: Mapping[str, Any]) -> bool:
    return claim["unit"] == "name" and claim["measure"] not in _WRITTEN


def _is_number(claim: Mapping[str, Any]) -> bool:
    return claim["unit"] in _NUMBERS or claim["measure"] in _WRITTEN


def _shown(claim: Mapping[str, Any]) -> str:
    if claim["unit"] != "name":
        return str(claim["shown"])
    if isinstance(claim["value"], str):
        return quoted(claim["shown"])
    names = [quoted(name, 62) for name in claim["value"]]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _each(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(each) for each in value]


def rounded(value: float) -> float:
    """Seven digits: so that prose, which shows three, rounds it as it would the number itself."""
    return float(f"{value:.7g}")


def same(one: float, other: float) -> bool:
    """Whether two numbers are the same measurement, rounding aside."""
    return math.isclose(one, other, rel_tol=_SAME)
