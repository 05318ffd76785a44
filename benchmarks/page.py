"""Writes tables into docs/performance.md, between the marks that name their groups."""

from __future__ import annotations

import re

from benchmarks.installed import ROOT

PAGE = ROOT / "docs" / "performance.md"
REGION = "<!-- bench: {group} -->\n{text}\n<!-- end -->"
MARKED = re.compile(r"<!-- bench: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def groups_on_page() -> list[str]:
    """The groups that have a place, in order."""
    return MARKED.findall(PAGE.read_text())


def write(tables: dict[str, str]) -> None:
    """Replace the text of the groups that were measured, and leave the others."""

    def region(found: re.Match[str]) -> str:
        group = found[1]
        return REGION.format(group=group, text=tables[group]) if group in tables else found[0]

    PAGE.write_text(MARKED.sub(region, PAGE.read_text()))
