"""Only HTA's critical path graph needs networkx, and says so where it is missing."""

import subprocess
import sys
from pathlib import Path

import hta_widgets
from tests.support import ROOT

SCRIPT = """
import importlib, pkgutil, sys

sys.modules["networkx"] = None  # every import of it fails, as where it is not installed
import hta_widgets
from hta_widgets import TraceAnalysis, examples

needing = []
for found in pkgutil.walk_packages(hta_widgets.__path__, "hta_widgets."):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        assert error.name == "networkx" and "pip install 'hta_widgets[hta]'" in str(error), error
        needing.append(found.name)
print("NEEDING", *needing)

analyzer = TraceAnalysis(trace_dir=str(examples.path("ddp_4ranks")))
assert len(analyzer.get_temporal_breakdown(visualize=False)) == 4
try:
    analyzer.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
except ModuleNotFoundError as error:
    print("SAID", error)
"""


def test_only_the_critical_path_graph_needs_networkx():
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    needing, said = run.stdout.splitlines()
    package = "hta_widgets.hta.analyzers"
    assert needing.split()[1:] == [
        f"{package}.critical_path.archive",
        f"{package}.critical_path.graph",
        f"{package}.critical_path.overlay",
        f"{package}.critical_path_analysis",
    ]
    assert "pip install 'hta_widgets[hta]'" in said


def test_only_one_module_imports_networkx():
    package = Path(hta_widgets.__file__).parent
    importing = [path.name for path in package.rglob("*.py") if "import networkx" in path.read_text()]
    assert importing == ["graph.py"]
