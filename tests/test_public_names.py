"""What `import hta_widgets` offers, and what it costs to look."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import hta_widgets
from hta_widgets import analysis

pytestmark = pytest.mark.slow

LAZY = (
    "hta_widgets", "hta_widgets.analysis", "hta_widgets.hta.analyzers", "hta_widgets.hta.methods",
)  # fmt: skip

LOOK = """
import json, sys
import hta_widgets
names = dir(hta_widgets)
print(json.dumps([names, sorted(name for name in sys.modules if name.startswith("hta_widgets"))]))
"""


def test_dir_shows_the_public_names_only() -> None:
    import_module("hta_widgets.analysis.compare")  # leaves names of modules in their packages
    shown = {name for name in dir(hta_widgets) if not name.startswith("__")}
    assert shown == set(hta_widgets.__all__)
    assert {"__version__", "__doc__", "__all__"} <= set(dir(hta_widgets))


def test_looking_imports_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    shown, loaded = json.loads(done.stdout)
    assert "TraceExplorer" in shown
    assert loaded == ["hta_widgets", "hta_widgets.stubs", "hta_widgets.version"]


ASK = """
import json, sys
from hta_widgets import Trace, analysis
analysis.temporal_breakdown(Trace.open(sys.argv[1], cache=False))
print(json.dumps(sorted(sys.modules)))
"""


def test_one_question_loads_neither_the_other_analyses_nor_what_they_need(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": 5, "pid": 0, "tid": 7}
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": [event]}))
    done = subprocess.run([sys.executable, "-c", ASK, path], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    ours = {name.split(".")[2] for name in loaded if name.startswith("hta_widgets.analysis.")}
    assert ours == {"core", "device_time"}
    assert not {"fsspec", "plotly", "anywidget", "scipy.stats"} & set(loaded)


IMPORT = """
import json, sys
from hta_widgets import {}
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("Trace", set()),
        ("RankSelector", {"compare", "core", "registry", "wholes"}),
        ("BreakdownPanel", {"compare", "core", "registry", "wholes"}),
        ("TraceExplorer", {"compare", "core", "device_time", "kernels", "registry", "replay", "wholes"}),
    ],
)
def test_a_class_is_imported_without_the_analyses_that_it_may_ask(name: str, ours: set[str]) -> None:
    """Above all not the findings and the replay, which take as long as pandas."""
    command = [sys.executable, "-c", IMPORT.format(name)]
    loaded = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert {module.split(".")[2] for module in loaded if module.startswith("hta_widgets.analysis.")} == ours
    assert not {"hta_widgets.analysis.replay.edits", "hta_widgets.analysis.device_time.temporal"} & set(
        loaded
    )
    assert not {"plotly", "pyarrow.parquet", "numba", "hta_widgets.timeline"} & set(loaded)
    assert ("IPython" in loaded) is ("anywidget" in loaded) is (name != "Trace")


ASK_AS_HTA = """
import json, sys
from hta_widgets.hta.trace_analysis import TraceAnalysis
TraceAnalysis({0: sys.argv[1]}, "").get_temporal_breakdown(visualize=False)
print(json.dumps(sorted(sys.modules)))
"""


def test_one_question_by_a_name_of_hta_loads_no_other_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTA_WIDGETS_CACHE", "off")
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": 5, "pid": 0, "tid": 7}
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": [event]}))
    done = subprocess.run(
        [sys.executable, "-c", ASK_AS_HTA, path], capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stdout)
    methods = set(import_module("hta_widgets.hta.methods").__all__)
    asked = {name.rpartition(".")[2] for name in loaded if name.startswith("hta_widgets.hta.methods.")}
    assert asked & methods == {"breakdowns"}
    ours = {name.split(".")[2] for name in loaded if name.startswith("hta_widgets.analysis.")}
    assert ours == {"core", "device_time"}
    assert "hta_widgets.analysis.communication.stragglers" not in loaded


@pytest.mark.parametrize("package", LAZY)
def test_every_name_is_imported_from_where_its_types_are(package: str) -> None:
    """What mypy reads of a package, and what is imported on use, are the same."""
    lazy = import_module(package)
    tree = ast.parse(Path(f"{lazy.__file__}i").read_text(encoding="utf-8"))
    stated = {
        alias.asname: (str(node.module), alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname and not alias.asname.startswith("_")
    }
    assert set(stated) == set(lazy.__all__) <= set(dir(lazy))
    for name, (module, own) in stated.items():
        found = getattr(lazy, name)
        if isinstance(found, ModuleType):
            assert found is import_module(f"{module}.{own}")
        else:
            assert found is getattr(import_module(module), own)


def test_an_analysis_is_not_hidden_by_the_package_of_its_name() -> None:
    package = import_module("hta_widgets.analysis.critical_path")
    assert analysis.critical_path is import_module("hta_widgets.analysis.critical_path.path").critical_path
    sys.modules.pop("hta_widgets.analysis.critical_path")
    try:
        import_module("hta_widgets.analysis.critical_path")
        assert callable(analysis.critical_path)
    finally:
        sys.modules["hta_widgets.analysis.critical_path"] = package


def test_an_unknown_analysis_is_told() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = analysis.nothing  # type: ignore[attr-defined]
