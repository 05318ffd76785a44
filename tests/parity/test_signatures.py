"""Every public method of HTA's classes is here, with its parameters and defaults."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.parity.hta_side import interpreter
from tests.support import ROOT

CLASSES = {
    "trace_analysis": ["TraceAnalysis"],
    "trace_diff": ["TraceDiff", "LabeledTrace"],
    "memory_analysis": ["MemoryAnalysis"],
    "common.trace_call_graph": ["CallGraph"],
}
TELL = f"""
import importlib, inspect, json
job = {{}}
for module, classes in {CLASSES!r}.items():
    for name in classes:
        one = getattr(importlib.import_module(f"PACKAGE.{{module}}"), name)
        for method, function in inspect.getmembers(one, callable):
            if method == "__init__" or not method.startswith("_"):
                job[f"{{name}}.{{method}}"] = [
                    [parameter.name, str(parameter.kind), str(parameter.default)[:50]]
                    for parameter in inspect.signature(function).parameters.values()
                ]
print("RESULT", json.dumps(job))
"""


def job(python: str, package: str) -> dict[str, list[list[str]]]:
    script = TELL.replace("PACKAGE", package)
    done = subprocess.run([python, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    answer: dict[str, list[list[str]]] = json.loads(done.stdout.rpartition("RESULT ")[2])
    return answer


def test_every_method_has_htas_signature() -> None:
    python = interpreter()
    if python is None:
        pytest.skip("HTA is not installed: make parity")
    theirs, ours = job(str(python), "hta"), job(sys.executable, "hta_widgets")
    assert {name: ours.get(name) for name in theirs} == theirs
