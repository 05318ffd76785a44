"""Lanes and levels that are kept are those that would be made, and are only used where they are."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hta_widgets import Trace, examples
from hta_widgets.timeline import Pyramid, build_lanes, kept_lanes, lanes_of, pack_window, pyramid_of
from hta_widgets.trace.classify import EventClass
from tests.trace.helpers import damage

pytestmark = pytest.mark.slow

NAME = "ddp_4ranks"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is there when the call returns."""
    monkeypatch.setattr(kept_lanes, "submit", lambda write: write())


def opened(folder: Path | bool) -> Trace:
    return Trace.open(examples.path(NAME), cache=folder)


def both(trace: Trace, python_apart: bool = False) -> Pyramid:
    lanes = lanes_of(trace, python_apart=python_apart)
    return pyramid_of(trace, lanes, python_apart=python_apart)


def made(trace: Trace, python_apart: bool = False) -> Pyramid:
    return Pyramid(build_lanes([trace.rank(rank) for rank in trace.ranks], python_apart=python_apart))


def files(folder: Path) -> list[Path]:
    return sorted((folder / "lanes").iterdir()) if (folder / "lanes").exists() else []


def assert_same(found: Pyramid, expected: Pyramid) -> None:
    assert_equal(found.lanes, expected.lanes)
    assert_equal(found.lanes.kinds, expected.lanes.kinds)
    assert [level.width_ns for level in found.levels] == [level.width_ns for level in expected.levels]
    for one, other in zip(found.levels, expected.levels, strict=True):
        assert_equal(one.items, other.items)
    every = range(len(expected.lanes.offsets) - 1)
    for pixels in (10, 1000, 1_000_000):
        told = [
            pack_window(each.lanes, each.window(*each.lanes.extent, pixels, every), 0)
            for each in (found, expected)
        ]
        assert told[0] == told[1]


def assert_equal(one: Any, other: Any) -> None:
    for field in fields(other):
        values, expected = getattr(one, field.name), getattr(other, field.name)
        if isinstance(expected, np.ndarray):
            assert values.dtype == expected.dtype and np.array_equal(values, expected), field.name
        elif field.name != "kinds":
            assert values == expected, field.name


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*_: object, **__: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(kept_lanes, "build_lanes", found)
    monkeypatch.setattr("hta_widgets.timeline.pyramid.merge", found)


@pytest.mark.parametrize("python_apart", [False, True])
def test_what_was_arranged_once_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, python_apart: bool
) -> None:
    expected = made(opened(False), python_apart)
    assert len(expected.merged) > 1
    assert_same(both(opened(folder), python_apart), expected)
    assert len(files(folder)) == 2
    again = opened(folder)
    with monkeypatch.context() as patch:
        forbid(patch)
        assert_same(both(again, python_apart), expected)
        assert_same(both(again.timed_by("host"), python_apart), expected)
    assert_same(both(again, not python_apart), made(opened(False), not python_apart))


def test_no_column_is_read_for_what_is_kept(folder: Path) -> None:
    both(opened(folder))
    again = opened(folder)
    both(again)
    assert not any(again.rank(rank).events.here for rank in again.ranks)


def test_other_slices_and_classes_are_arranged_by_themselves(folder: Path) -> None:
    both(opened(folder))
    few = {cache: opened(cache).keep(lambda rank: rank.start % 2 == 0) for cache in (folder, False)}
    assert_same(both(few[folder]), made(few[False]))
    assert len(files(folder)) == 2
    rules = {"gemm": EventClass.COMMUNICATION}
    ruled = {cache: opened(cache).with_classes(rules) for cache in (folder, False)}
    assert_same(both(ruled[folder]), made(ruled[False]))
    assert len(files(folder)) == 4


def test_some_ranks_are_another_job(folder: Path) -> None:
    whole = sorted(examples.path(NAME).glob("rank-*"))
    both(opened(folder))
    for cache in (folder, folder, False):
        part = Trace.open(whole[:2], cache=cache)
        assert_same(both(part), made(Trace.open(whole[:2], cache=False)))


@pytest.mark.parametrize("how", ["cut", "changed", "short", "empty"])
def test_what_is_damaged_is_arranged_again(folder: Path, how: str) -> None:
    expected = both(opened(folder))
    slices, levels = sorted(files(folder), key=lambda file: "levels" in file.name)
    if how != "short":
        for file in (slices, levels):
            damage(file, how)
    else:
        other = made(Trace.open(examples.path("single_gpu_dataloader_stall"), cache=False))
        kept_lanes._write_lanes(slices, other.lanes)
        kept_lanes._write_levels(levels, other.merged)
    assert_same(both(opened(folder)), expected)
    assert_same(both(opened(folder)), expected)  # what was written in its place


def test_other_code_arranges_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both(opened(folder))
    monkeypatch.setattr(kept_lanes, "code_of", lambda *_: "other")
    both(opened(folder))
    assert len(files(folder)) == 4
    monkeypatch.setattr(kept_lanes, "code_of", lambda *_: "")
    both(opened(folder))
    assert len(files(folder)) == 4


def failing(code: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, "it cannot be written")

    return fail


def test_a_full_disk_keeps_nothing_and_fails_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hta_widgets.trace.reader.sealed.Sealing.seal", failing(errno.ENOSPC))
    expected = made(opened(False))
    assert_same(both(opened(folder)), expected)
    assert files(folder) == []


def test_a_folder_that_cannot_be_written_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = both(opened(folder))
    before = files(folder)

    monkeypatch.setattr(kept_lanes, "sealed", failing(errno.EACCES))
    monkeypatch.setattr(Path, "touch", failing(errno.EACCES))
    with monkeypatch.context() as patch:
        forbid(patch)
        assert_same(both(opened(folder)), expected)
    assert_same(both(opened(folder), True), made(opened(False), True))
    assert files(folder) == before


def test_what_would_not_fit_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(1 << 16))
    both(opened(folder))
    assert files(folder) == []


def test_room_is_made_by_what_was_used_least_recently(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both(opened(folder))
    size = sum(file.stat().st_size for file in files(folder))
    monkeypatch.setenv("HTA_WIDGETS_CACHE_BYTES", str(int(1.5 * size / 0.2)))
    first = files(folder)
    lanes_of(opened(folder), python_apart=True)
    assert len(files(folder)) < 3 and set(files(folder)) - set(first)
