"""The order of findings: what is saved by a change comes before what only costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hta_widgets.analysis.findings.finding import Finding

__all__ = [
    "CHECKED", "HEADINGS", "LATER", "MEMORY", "NOTHING", "OPEN", "RECORDING", "SAVES", "UNKNOWN", "VERDICT",
    "ordered",
]  # fmt: skip

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
"""What is said above the findings of a section; the others need no heading."""

_COMPUTING = ("compute_bound", "host_operators")


def ordered(findings: Iterable[Finding]) -> list[tuple[str, Finding]]:
    """The findings with the section of each.

    What there is to say of the recording; what saves most; what costs most without a known saving; what saves
    nothing now; what is said of memory. That devices compute nearly all of the time comes first unless there
    is a warning.
    """
    told = [(_section(finding), finding) for finding in findings]
    warned = any(
        finding.severity == "warning" and section in (SAVES, UNKNOWN) for section, finding in told
    )  # fmt: skip
    order = (
        (RECORDING, SAVES, UNKNOWN, VERDICT, LATER, MEMORY)
        if warned
        else (RECORDING, VERDICT, SAVES, UNKNOWN, LATER, MEMORY)
    )

    def place(each: tuple[str, Finding]) -> tuple[int, int, int, str]:
        section, finding = each
        # what costs none of the judged time comes last
        size = finding.saving_ns if section == SAVES else finding.cost_ns * (finding.share_pct > 0)
        return order.index(section), -(size or 0), -finding.cost_ns, finding.topic

    return sorted(told, key=place)


def _section(finding: Finding) -> str:
    if finding.severity == VERDICT:
        return VERDICT if finding.topic in _COMPUTING else RECORDING
    return finding.section
