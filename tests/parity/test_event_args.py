"""Which arguments of events HTA knows: their names, types, and what an event without one has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.parity.hta_side import interpreter
from tests.support import ROOT

ASKED = """
import json
from {package}.configs.event_args_yaml_parser import parse_event_args_yaml, v1_0_0
known = parse_event_args_yaml(v1_0_0)._asdict()
print("RESULT", json.dumps(known, default=lambda kind: kind.name))
"""


def known(python: Path | str, package: str) -> dict[str, Any]:
    command = [str(python), "-c", ASKED.format(package=package)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.rpartition("RESULT ")[2])
    return found


def test_the_arguments_are_htas() -> None:
    python = interpreter()
    if python is None:
        pytest.skip("HTA is not installed: make parity")
    theirs = known(python, "hta")
    assert len(theirs["AVAILABLE_ARGS"]) == 52
    assert known(sys.executable, "hta_widgets.hta") == theirs
