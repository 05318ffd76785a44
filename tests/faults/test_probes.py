"""Probes tell which tests see a fault, and change nothing themselves."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import probes
from tests.faults.catalogue import Fault
from tests.faults.random_slips import random_slips
from tests.faults.reach import Seen
from tests.support import ROOT, tried

RIGHT = """
from hta_widgets.jit import kernel

def larger(a, b):
    return max(a, b) if a < b and a >= 0 else b + 1

def any_of(a, b):
    return (a | b).any()

@kernel
def twice(a):
    return a * 2
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a < b", "a <= b", ("a < b", "a <= b")),
        ("max(a", "min(a", ("max(a, b)", "min(a, b)")),
        ("+ 1", "+ 2", ("1", "2")),
        ("b + 1", "b - 1", ("b + 1", "b - 1")),
        ("and a", "or a", ("a < b and a >= 0", "a < b or a >= 0")),
        ("else b + 1", "else a", ("b + 1", "a")),
        ("a | b", "a & b", ("a | b", "a & b")),  # of which a method is called
        (".any()", ".all()", ("(a | b).any()", "(a | b).all()")),
    ],
)
def test_the_smallest_expression_that_differs(old: str, new: str, expected: tuple[str, str]) -> None:
    found = probes.difference(ast.parse(RIGHT), ast.parse(RIGHT.replace(old, new)))
    assert found is not None
    assert (ast.unparse(found[0]), ast.unparse(found[1])) == expected


def test_what_is_compiled_cannot_be_probed() -> None:
    assert probes.can_be_probed(RIGHT, RIGHT.replace("+ 1", "+ 2"))
    assert not probes.can_be_probed(RIGHT, RIGHT.replace("a * 2", "a * 3"))


PROBED = """
import os
from tests.faults import probes
probes.install()
import probed
for a, b in ((1, 2), (2, 2), (3, 2)):
    os.environ["PYTEST_CURRENT_TEST"] = f"{a}, {b} (call)"
    print(probed.chosen(a, b), probed.one(iter((a, b))))
"""


def test_a_test_sees_a_fault_where_the_value_is_another(tmp_path: Path) -> None:
    right = "def chosen(a, b):\n    return a < b, a == 1 or b\n\ndef one(many):\n    return max(many)\n"
    module = tmp_path / "probed.py"
    module.write_text(right)
    slips = {"bound": ("<", "<="), "either": ("or", "and"), "most": ("max", "min")}
    changed = {name: right.replace(*slip) for name, slip in slips.items()}
    (tmp_path / "probes").write_text(json.dumps({str(module): changed}))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT))),
        probes.PROBES: str(tmp_path / "probes"),
        probes.LOG: str(tmp_path / "log"),
    }
    argv = [sys.executable, "-c", PROBED]
    done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(True, True) 2", "(False, 2) 2", "(False, 2) 3"]
    told = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {test for name, test, differs in told if name == "bound" and differs} == {"2, 2"}
    # whether a value that is not computed would be another is not known, nor what an iterator still holds
    everywhere = {"1, 2", "2, 2", "3, 2"}
    assert {test for name, test, differs in told if name == "either" and differs} == everywhere
    assert {test for name, test, differs in told if name == "most" and differs} == everywhere
    with_the_fault = {
        "bound": ["(True, True) 2", "(True, 2) 2", "(False, 2) 3"],
        "either": ["(True, 2) 2", "(False, False) 2", "(False, False) 3"],
        "most": ["(True, True) 1", "(False, 2) 2", "(False, 2) 2"],
    }
    for name, lines in with_the_fault.items():
        environment[probes.ACTIVE] = name
        done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == lines


def test_tests_that_see_a_fault_come_first_and_those_after_them_next() -> None:
    fault = Fault("random", "x", "x.py", "1", "2", ())
    seconds = {"a": 9.0, "b": 2.0, "c": 1.0, "d": 1.0, "e": 1.0}
    seen = Seen("", seconds, ["d"], {fault.name: {"b": True, "a": False, "c": True, "d": True}})
    assert seen.differing(fault) == ["c", "b"]
    assert seen.later(["c", "b"]) == ["e"]
    assert seen.later([]) == []
    imported = Seen("", seconds, [], {fault.name: {"": True}})
    assert imported.differing(fault) == list(seconds)


@pytest.mark.slow
def test_slips_come_from_everywhere_and_have_tests() -> None:
    drawn = random_slips(ROOT, 120, 3)
    assert len(drawn) == 120
    assert [fault.name for fault in drawn if fault.problem(ROOT) or not fault.tests] == []
    layers = {Path(fault.file).parts[1] for fault in drawn}
    assert {"analysis", "trace", "widgets", "hta", "cli", "charts", "timeline", "src"} <= layers
    for fault in drawn[: tried(len(drawn))]:
        text = (ROOT / fault.file).read_text(encoding="utf-8")
        if not fault.in_front_end:
            assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(text.replace(fault.old, fault.new)))
