"""docs/differences.md: every row names a test that exists, and every deviation a row."""

from __future__ import annotations

import re

from tests.parity.deviations import DEVIATIONS
from tests.support import ROOT

KEY = re.compile(r"^[a-z]+-\d+$")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> dict[str, list[str]]:
    """Key -> cells of its row."""
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in page.splitlines()]
    keyed = [cells for cells in split if cells and KEY.match(cells[0])]
    assert len({cells[0] for cells in keyed}) == len(keyed), "a key stands twice"
    return {cells[0]: cells for cells in keyed}


def test_every_row_names_a_test_that_exists() -> None:
    for key, cells in rows().items():
        assert len(cells) == 7, key
        named = TEST.findall(cells[6])
        assert named, key
        for path, name in named:
            assert re.search(rf"def {name}\b", (ROOT / path).read_text(encoding="utf-8")), (
                f"{key}: {path}::{name}"
            )


def test_every_deviation_names_a_row() -> None:
    assert {deviation.row for deviation in DEVIATIONS} <= rows().keys()


def test_every_deviation_is_proven() -> None:
    """By HTA's defect redone, or difference by difference."""
    assert [
        f"{item.row} for {item.question}" for item in DEVIATIONS if not (item.defects or item.check)
    ] == []
