"""One loss, one finding: what happens within the time of another finding, or explains it, is a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.saving import Judged

_MOST: Final = 0.5
"""Of the time of a finding: if so much lies within that of another one, it is the same loss."""


_NEARLY_ALL: Final = 0.9
_MOSTLY: Final = 0.8
"""Of the time, and of the saving, of a wider finding: then that one names the cause (recorded on an H100: of
47.6 % that a timely host saves, 42.6 % are an optimizer that launches 2,336 kernels one by one)."""


def merged(judged: Sequence[Judged]) -> list[Judged]:
    """The same findings, those that are parts marked with what they are a part of.

    What a late rank alone loses is why it is late: a part of the waiting for it. A loss most of whose time
    lies within a larger one, on each of its ranks, is a part of that. Parts have no parts. What is known to
    save something is no part of what is not: most of that being such losses, it is a part of the largest. But
    what only some steps lose is a part of what makes them long, if that is more; a late rank is what does.
    """
    wholes = sorted(judged, key=_largest_first)
    found: dict[str, str] = {}
    savers: dict[str, list[Judged]] = {}
    for at, each in enumerate(wholes):
        for whole in wholes[:at]:
            if not _is_part(each.finding, whole.finding):
                continue
            if _is_known_beside(each, whole):
                savers.setdefault(whole.rule.topic, []).append(each)
                continue
            if _is_all_of(each, whole) or (whole.rule.of_some_steps and each.finding.late):
                found[whole.rule.topic] = each.rule.topic
            else:
                found[each.rule.topic] = whole.rule.topic
            break
    for whole in wholes:
        parts = savers.get(whole.rule.topic, [])
        if sum(_length(part.finding) for part in parts) >= _MOST * _length(whole.finding) > 0:
            found.setdefault(whole.rule.topic, parts[0].rule.topic)
        elif whole.rule.of_some_steps and whole.rule.topic not in found:
            found |= {part.rule.topic: whole.rule.topic for part in parts if part.rule.topic not in found}
    for each in judged:
        for whole in judged:
            if each is whole or _is_known_beside(each, whole):
                continue
            if _delays(each.finding, whole.finding):
                found[each.rule.topic] = whole.rule.topic
                if found.get(whole.rule.topic) == each.rule.topic:
                    del found[whole.rule.topic]
        if each.finding.explains is not None:
            late = [other for other in judged if each.finding.explains in other.finding.late]
            if late:
                found[each.rule.topic] = late[0].rule.topic
    return [replace(each, part_of=_outermost(found, each.rule.topic)) for each in judged]


def _is_known_beside(part: Judged, whole: Judged) -> bool:
    """Whether a part is known to save something, and the whole is not."""
    return part.saving.section == "saves" and whole.saving.section == "unknown"


def _is_all_of(part: Judged, whole: Judged) -> bool:
    """Whether a finding says why nearly all of a kind of time is lost, and saves no less."""
    says_why = part.rule.says_why and not part.rule.general
    if not says_why or not (whole.rule.general or whole.rule.of_some_steps):
        return False
    if _length(part.finding) < _NEARLY_ALL * _length(whole.finding):
        return False
    return (part.saving.ns or 0) >= _MOSTLY * (whole.saving.ns or 0)


def _largest_first(judged: Judged) -> tuple[int, int, str]:
    """Of two that take the same time, only one can be a part of the other."""
    return -_length(judged.finding), -judged.finding.cost_ns, judged.rule.topic


def _outermost(part_of: dict[str, str], topic: str) -> str:
    seen = {topic}
    whole = part_of.get(topic, "")
    while whole and part_of.get(whole) and part_of[whole] not in seen:
        seen.add(whole)
        whole = part_of[whole]
    return whole


def _is_part(part: Finding, whole: Finding) -> bool:
    """Whether most of the time of one lies within that of a larger one, on each of its ranks; or nearly all.

    A little beside it on another rank is no loss of its own.
    """
    inside = {
        rank: (time & whole.lost[rank]).length if rank in whole.lost else 0
        for rank, time in part.lost.items()
    }
    on_each = all(inside[rank] >= _MOST * time.length for rank, time in part.lost.items())
    return bool(_length(part)) and (on_each or sum(inside.values()) >= _NEARLY_ALL * _length(part))


def _delays(part: Finding, whole: Finding) -> bool:
    """Whether nearly all that is lost makes ranks late in turn, for which others then wait."""
    inside = ((time & whole.delays[rank]).length for rank, time in part.lost.items() if rank in whole.delays)
    return bool(whole.delays) and sum(inside) >= _MOSTLY * _length(part) > 0


def _length(finding: Finding) -> int:
    return sum(time.length for time in finding.lost.values())
