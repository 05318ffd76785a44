"""Lines are judged by the tests that run them, and slips come from everywhere."""

import ast
from pathlib import Path

import coverage
import pytest

from tests.faults.lines import Lines
from tests.faults.random_slips import Nearest, decided_by, random_slips
from tests.support import ROOT, tried

FILE = "tests/faults/test_lines.py"


def test_a_line_is_judged_by_the_tests_that_run_it_the_quickest_first(tmp_path: Path) -> None:
    package, tests = tmp_path / "package.py", tmp_path / "test_package.py"
    package.write_text("first\nsecond\nthird\n")
    tests.write_text("tests")
    lines = Lines(tmp_path / "lines", tmp_path)
    assert not lines.knows(tests.name)
    data = coverage.CoverageData(str(lines.begin(tests.name)))
    for test, ran in {"": [1, 2, 3], "slow": [2, 3], "quick": [3], "red": [3], "endless": [2, 3]}.items():
        data.set_context(test)
        data.add_lines({package.name: ran})
    data.write()
    seconds = {"slow": 9.0, "quick": 0.1, "red": 0.2, "endless": 99.0}
    assert lines.keep(tests.name, tmp_path, seconds, ["red"]) == "3 tests"
    assert lines.knows(tests.name)
    assert lines.tests(package.name, [3]) == ["quick", "slow"]  # the other one takes too long
    assert lines.tests(package.name, [2]) == ["slow"]
    assert lines.tests(package.name, [1]) == []  # only imported
    assert lines.tests("other.py", [3]) == []
    package.write_text("new\nfirst\nother\nthird\n")
    today = Lines(tmp_path / "lines", tmp_path)
    assert today.tests(package.name, [4]) == ["quick", "slow"]  # the third line, which has moved
    assert today.tests(package.name, [3]) == []  # which nobody has run
    tests.write_text("other tests")
    assert not today.knows(tests.name)


def test_tests_about_the_file_go_first(tmp_path: Path) -> None:
    package = tmp_path / "package.py"
    package.write_text("first\n")
    lines = Lines(tmp_path / "lines", tmp_path)
    for name, tests in {
        "test_all.py": {f"test_all.py::{at}": 18.0 for at in range(4)},
        "test_it.py": {
            "test_it.py::test_it[1]": 19.0,
            "test_it.py::test_it[2]": 20.0,
            "test_it.py::test_other": 40.0,
        },
    }.items():
        (tmp_path / name).write_text("tests")
        data = coverage.CoverageData(str(lines.begin(name)))
        for test in tests:
            data.set_context(test)
            data.add_lines({package.name: [1]})
        data.write()
        lines.keep(name, tmp_path, tests, [])
    quickest = "test_all.py::0"
    assert lines.tests(package.name, [1]) == [quickest, "test_it.py::test_it[1]"]  # one of each file first
    own = ["test_it.py::test_it[1]", "test_it.py::test_other"]  # not as many seconds of one alone
    assert lines.tests(package.name, [1], ["test_it.py"]) == [*own, quickest]
    (tmp_path / "test_it.py").write_text("def test_new(): ...\ndef test_it(case): ...\n")
    today = Lines(tmp_path / "lines", tmp_path).tests(package.name, [1], ["test_it.py"])
    assert today == ["test_it.py::test_it", quickest, "test_it.py::test_new"]


def test_what_takes_too_long_leaves_room_for_quicker_ones(tmp_path: Path) -> None:
    (tmp_path / "package.py").write_text("first\n")
    (tmp_path / "test_it.py").write_text("tests")
    lines = Lines(tmp_path / "lines", tmp_path)
    data = coverage.CoverageData(str(lines.begin("test_it.py")))
    seconds = {"test_it.py::test_a[1]": 5.0, "test_it.py::test_a[2]": 10.0, "test_it.py::test_b": 38.0}
    for test in seconds:
        data.set_context(test)
        data.add_lines({"package.py": [1]})
    data.write()
    lines.keep("test_it.py", tmp_path, seconds, [])
    assert lines.tests("package.py", [1]) == ["test_it.py::test_a[1]", "test_it.py::test_a[2]"]


LIMITED = """
MOST = 3


class Limited:
    least = 1

    def most(self):
        return MOST


def least(of):
    return of.least
"""


@pytest.mark.parametrize(
    ("line", "used_in"),
    [("    return of.least", ["    return of.least"]), ("MOST = 3", ["        return MOST"]),
     ("    least = 1", ["    return of.least"])],
)  # fmt: skip
def test_what_an_import_runs_is_judged_where_it_is_used(line: str, used_in: list[str]) -> None:
    text = LIMITED.split("\n")
    found = decided_by("limited.py", LIMITED, text.index(line) + 1)
    assert [text[each - 1] for each in found] == used_in


@pytest.mark.parametrize(
    ("file", "about"),
    [
        ("analysis/findings/type_rules.py", "verdicts/planted/test_host_work.py"),
        ("trace/records/queues.py", "trace/test_impossible_records.py"),
    ],
)
def test_rare_words_tell_what_a_test_is_about(file: str, about: str) -> None:
    assert f"tests/{about}" in Nearest(ROOT).about(f"hta_widgets/{file}")


@pytest.mark.slow
def test_slips_come_from_everywhere_and_have_tests(tmp_path: Path) -> None:
    drawn = random_slips(ROOT, 120, 3, Lines(tmp_path))
    assert len(drawn) == 120
    assert [fault.name for fault in drawn if fault.problem(ROOT) or not fault.tests] == []
    layers = {Path(fault.file).parts[1] for fault in drawn}
    assert {"analysis", "trace", "widgets", "hta", "cli", "charts", "timeline", "src"} <= layers
    for fault in drawn[: tried(len(drawn))]:
        text = (ROOT / fault.file).read_text(encoding="utf-8")
        if not fault.in_front_end:
            assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(text.replace(fault.old, fault.new)))
