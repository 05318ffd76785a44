"""The benchmarks' own arithmetic and page; what they measure is no test."""

from __future__ import annotations

import math
import sys

import pytest

from benchmarks import installed, page, process
from benchmarks.__main__ import GROUPS, IN_CI, measure_of
from benchmarks.figure import Figure, exponent, table


def test_every_group_has_a_place_on_the_page_and_can_be_measured() -> None:
    assert sorted(page.groups_on_page()) == sorted(GROUPS)
    assert set(IN_CI) <= set(GROUPS)
    assert all(callable(measure_of(group)) for group in GROUPS)


def test_what_is_measured_is_the_installed_package_and_not_the_checkout(tmp_path, monkeypatch) -> None:
    script = f"""import json, sys
import benchmarks, examples.simulator, tests
from importlib.machinery import PathFinder
found = PathFinder.find_spec("hta_widgets", [path or "." for path in sys.path[:2]])
print({process.MARK!r} + json.dumps(found is None))"""
    assert process.run(sys.executable, script).result is True
    monkeypatch.setattr(installed, "ENVIRONMENT", tmp_path)
    with pytest.raises(SystemExit, match="`make bench` installs it"):
        process.call(process.cpu)


def test_only_what_was_measured_is_written(tmp_path, monkeypatch) -> None:
    copy = tmp_path / "page.md"
    copy.write_text("a\n<!-- bench: one -->\nold\n<!-- end -->\nb\n<!-- bench: two -->\n<!-- end -->\n")
    monkeypatch.setattr(page, "PAGE", copy)
    page.write({"two": "| new |"})
    assert copy.read_text() == (
        "a\n<!-- bench: one -->\nold\n<!-- end -->\nb\n<!-- bench: two -->\n| new |\n<!-- end -->\n"
    )


def test_a_ratio_below_its_floor_is_a_failure() -> None:
    twice = Figure("load, CPU s", [0.9, 1.0, 5.0], [2.0, 2.1, 1.9], floor=1.9)
    assert twice.ratio == pytest.approx(2.0) and not twice.fell
    assert Figure("load, CPU s", [1.1], [2.0], floor=1.9).fell
    assert not Figure("load, CPU s", [9.0], [], floor=1.9).fell  # the peer did not answer


def test_goals_in_time_follow_the_pace_of_the_machine_and_others_do_not() -> None:
    assert Figure("load, CPU s", [1.5], goal=1.0).at_pace(2.0).met
    assert not Figure("load, CPU s", [2.5], goal=1.0).at_pace(2.0).met
    assert Figure("a frame, ms", [9.0], goal=5.0).at_pace(2.0).met
    assert not Figure("memory, MB", [150.0], goal=100.0).at_pace(2.0).met
    assert not Figure("... exponent", [1.2], goal=1.05).at_pace(2.0).met


def test_exponents() -> None:
    sizes = [50.0, 200.0, 1000.0]
    assert exponent(sizes, [3 * size for size in sizes]) == pytest.approx(1.0)
    assert exponent(sizes, [size**2 for size in sizes]) == pytest.approx(2.0)
    assert exponent(sizes, [7.0] * 3) == pytest.approx(0.0)


def test_tables_leave_out_columns_without_a_word_in_them() -> None:
    alone = table([Figure("a, s", [1.0, 3.0, 2.0]), Figure("b, s", [math.nan])], "HTA")
    assert alone.splitlines() == [
        "| | hta_widgets |",
        "|---|--:|",
        "| a, s | 2.0 (1.0-3.0) |",
        "| b, s | none needed |",
    ]
    beside = table([Figure("a, s", [0.5], [1.0], 0.4), Figure("c, s", [0.1], failed="ValueError")], "HTA")
    assert beside.splitlines()[2:] == [
        "| a, s | 0.50 | 1.0 | 2.0 x | 0.40: **not met** |",
        "| c, s | 0.10 | ValueError | | |",
    ]
