"""The order of findings: what is saved by a change comes before what only costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hta_widgets.analysis.findings.saving import WITHIN_SPREAD, Judged

OPEN: Final = "open"
"""The severity, and the section, of a question that the trace cannot answer."""

VERDICT: Final = "verdict"
"""The severity of a sentence about what the time is spent on, which costs nothing."""

CHECKED: Final = "checked"
"""The severity of the sentence about what was looked for and not found."""

RECORDING, SAVES, UNKNOWN, LATER, NOTHING = "recording", "saves", "unknown", "not now", "nothing found"

MEMORY: Final = "memory"
"""The section of what is said of memory, which takes no time."""

HEADINGS: Final = {
    SAVES: "By what they save",
    UNKNOWN: "By what they cost: what can be saved is unknown",
    LATER: "Big, but nothing is saved now",
    MEMORY: "About memory, not time",
}
"""What stands above the findings of a section; the others need no heading."""


def ordered(judged: Iterable[Judged]) -> list[tuple[str, Judged]]:
    """The findings with the section of each, every part behind the finding that it is a part of.

    What there is to say of the recording; what saves most; what costs most without a known saving; what saves
    nothing now; what is said of memory. That devices compute nearly all of the time comes first unless there
    is a warning, of more than steps differ by anyway.
    """
    placed = [(_section(each), each) for each in judged]
    warned = any(
        each.finding.severity == "warning"
        and section in (SAVES, UNKNOWN)
        and WITHIN_SPREAD not in str(each.saving.text)
        for section, each in placed
    )
    order = (
        (RECORDING, SAVES, UNKNOWN, VERDICT, LATER, MEMORY)
        if warned
        else (RECORDING, VERDICT, SAVES, UNKNOWN, LATER, MEMORY)
    )

    def place(at: tuple[str, Judged]) -> tuple[int, int, int, str]:
        section, each = at
        cost = each.finding.cost_ns
        # what costs none of the judged time comes last
        size = each.saving.ns if section == SAVES else cost * (each.finding.share_pct > 0)
        return order.index(section), -(size or 0), -cost, each.rule.topic

    placed.sort(key=place)
    parts = {
        whole: [at for at in placed if at[1].part_of == whole]
        for whole in {each.part_of for _, each in placed}
    }
    found: list[tuple[str, Judged]] = []
    for section, each in parts.get("", []):
        found += [(section, each), *((section, part) for _, part in parts.get(each.rule.topic, []))]
    return found


def _section(judged: Judged) -> str:
    if judged.rule.role in ("work", "memory"):
        return VERDICT if judged.rule.role == "work" else MEMORY
    of_recording = judged.finding.severity == VERDICT or judged.finding.headline
    return RECORDING if of_recording else judged.saving.section
