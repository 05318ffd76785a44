"""Iterations that are kept are those that would be found, and are read without the columns of a recording."""

from __future__ import annotations

import errno
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Trace, examples
from hta_widgets.trace import kept_iterations
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import IterationClock
from tests.trace.helpers import damage

CLOCKS: tuple[IterationClock, ...] = ("auto", "host", "device")


@pytest.fixture(autouse=True)
def of_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_iterations, "_LEAST_SLICES", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def opened(folder: Path | bool, clock: IterationClock = "auto", name: str = "ddp_4ranks") -> Trace:
    return Trace.open(examples.path(name), cache=folder, clock=clock)


def assert_same(trace: Trace, expected: Trace) -> None:
    pd.testing.assert_frame_equal(trace.iterations, expected.iterations, check_exact=True)


@pytest.mark.parametrize("name", ["ddp_4ranks", "inference_cuda_graphs", "gpt2_baseline"])
def test_no_column_is_read_for_what_is_kept(folder: Path, name: str) -> None:
    for clock in CLOCKS:
        expected = opened(False, clock, name)
        assert_same(opened(folder, clock, name), expected)
        again = opened(folder, clock, name)
        assert_same(again, expected)
        assert not any(again.rank(rank).events.here for rank in again.ranks)
    assert_same(opened(folder, "auto", name).timed_by("host"), opened(False, "host", name))


def test_the_place_of_a_file_in_time_is_part_of_it(folder: Path) -> None:
    """Alone, a rank begins its job; among others, it may begin later."""
    whole = opened(folder)
    assert whole.iterations["start_ns"].min() >= 0
    for rank in whole.ranks:
        path = whole.rank(rank).path
        assert_same(Trace.open(path, cache=folder), Trace.open(path, cache=False))
        assert_same(Trace.open(path, cache=folder), Trace.open(path, cache=False))
    assert_same(opened(folder), opened(False))


def test_parts_of_a_file_and_rules_of_the_user_have_iterations_of_their_own(folder: Path) -> None:
    assert_same(opened(folder), opened(False))
    few = {cache: opened(cache).keep(lambda rank: rank.start % 2 == 0) for cache in (folder, False)}
    assert_same(few[folder], few[False])
    rules = {"gemm": EventClass.COMMUNICATION}
    ruled = {cache: opened(cache).with_classes(rules) for cache in (folder, False)}
    assert_same(ruled[folder], ruled[False])


@pytest.mark.parametrize("how", ["cut", "changed", "empty"])
def test_damaged_iterations_are_found_again(folder: Path, how: str) -> None:
    assert_same(opened(folder), opened(False))
    files = sorted((folder / "iterations").iterdir())
    assert len(files) == 4
    for file in files:
        damage(file, how)
    assert_same(opened(folder), opened(False))
    assert_same(opened(folder), opened(False))


def test_those_of_a_job_are_read_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame for each of thousands of ranks would take ten times as long."""
    expected = opened(False)
    assert_same(opened(folder), expected)
    with monkeypatch.context() as without:
        without.setattr(kept_iterations, "read", None)
        assert_same(opened(folder), expected)
    next((folder / "iterations").iterdir()).unlink()
    assert_same(opened(folder), expected)


def test_a_full_disk_keeps_nothing_and_fails_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("hta_widgets.trace.reader.sealed.Sealing.seal", full)
    assert_same(opened(folder), opened(False))
    assert not list((folder / "iterations").iterdir())


def test_other_code_finds_iterations_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same(opened(folder), opened(False))
    monkeypatch.setattr(kept_iterations, "code_of", lambda *_: "other")
    assert_same(opened(folder), opened(False))
    assert len(list((folder / "iterations").iterdir())) == 8
    monkeypatch.setattr(kept_iterations, "code_of", lambda *_: "")
    assert opened(folder).rank(0).events.iterations is None


def test_small_files_keep_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert_same(opened(folder), opened(False))
    assert not (folder / "iterations").exists()
