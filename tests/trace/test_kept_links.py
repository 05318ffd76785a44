"""Links that are kept are those that would be found, and are only used where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Trace, examples
from hta_widgets.trace import kept_links
from hta_widgets.trace import links as finding
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from tests.trace.helpers import damage

COLUMNS = ("launch", "parent", "depth", "iteration")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def opened(folder: Path | bool) -> Trace:
    return Trace.open(examples.path("ddp_4ranks"), cache=folder)


def columns(rank: RankTrace) -> dict[str, Any]:
    _ = rank.iteration  # writes what was found
    return {name: getattr(rank, name) for name in COLUMNS}


def assert_same(trace: Trace, expected: Trace) -> None:
    for rank in expected.ranks:
        for name, values in columns(expected.rank(rank)).items():
            found = getattr(trace.rank(rank), name)
            assert found.dtype == values.dtype and np.array_equal(found, values), name
        pd.testing.assert_frame_equal(
            trace.rank(rank).iterations, expected.rank(rank).iterations, check_exact=True
        )


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*_: object) -> None:
        raise AssertionError("found again")

    monkeypatch.setattr(finding, "launches", found)
    monkeypatch.setattr(finding, "nesting", found)


def test_what_was_found_once_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = opened(False)
    for rank in (first := opened(folder)).ranks:
        columns(first.rank(rank))
        columns(expected.rank(rank))
    again = opened(folder)
    with monkeypatch.context() as patch:
        forbid(patch)
        assert_same(again, expected)
        assert_same(again.timed_by("host"), expected.timed_by("host"))


def test_parts_of_a_file_and_rules_of_the_user_have_links_of_their_own(folder: Path) -> None:
    for rank in (first := opened(folder)).ranks:
        columns(first.rank(rank))
    few = {cache: opened(cache).keep(lambda rank: rank.start % 2 == 0) for cache in (folder, False)}
    assert_same(few[folder], few[False])
    rules = {"gemm": EventClass.COMMUNICATION}
    ruled = {cache: opened(cache).with_classes(rules) for cache in (folder, False)}
    assert_same(ruled[folder], ruled[False])


@pytest.mark.parametrize("how", ["cut", "changed", "short"])
def test_damaged_links_are_found_again(folder: Path, how: str) -> None:
    trace = opened(folder)
    for rank in trace.ranks:
        columns(trace.rank(rank))
    files = sorted((folder / "links").iterdir())
    assert len(files) == len(trace.ranks)
    for file in files:
        if how == "short":
            kept_links.write(file, kept_links.Links(*(np.zeros(3, np.int32) for _ in COLUMNS)))
        else:
            damage(file, how)
    assert_same(opened(folder), opened(False))


def test_other_code_finds_links_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in (first := opened(folder)).ranks:
        columns(first.rank(rank))
    before = set((folder / "links").iterdir())
    monkeypatch.setattr(kept_links, "_code", lambda: "other")
    for rank in (second := opened(folder)).ranks:
        columns(second.rank(rank))
    assert len(set((folder / "links").iterdir()) - before) == len(second.ranks)
    monkeypatch.setattr(kept_links, "_code", lambda: "")
    assert opened(folder).rank(0).events.links is None


def test_large_jobs_keep_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(1 << 20))
    trace = opened(folder)
    columns(trace.rank(0))
    assert not (folder / "links").exists()
