"""What the library is made of: nothing runs text as code or asks the network, and no version is shut out."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.support import ROOT

PYTHON = sorted((ROOT / "hta_widgets").rglob("*.py"))
BUNDLES = sorted((ROOT / "hta_widgets" / "widgets" / "static").glob("*.js"))
SOURCES = sorted(path for path in (ROOT / "js" / "src").rglob("*.ts*"))
EXTRAS = ("excel", "hta", "demo", "docs", "test", "dev")
PINNED = ROOT / ".ci" / "constraints.txt"

UNPICKLES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
NETWORK = {"socket", "ssl", "urllib", "http", "requests", "aiohttp", "httpx", "ftplib", "smtplib", "xmlrpc"}
PROCESSES = {"subprocess", "pty", "ctypes", "cffi"}
RUNS_TEXT = {"eval", "exec", "compile", "__import__", "read_pickle", "to_pickle", "system", "popen", "query"}
EXCEPTED = {
    "hta_widgets/hta/common/trace_filter.py": ["query"],  # an expression that the caller writes
    "hta_widgets/jit/machine_code.py": ["ctypes"],  # calls what the build translated
    "hta_widgets/jit/object_code.py": ["ctypes"],  # puts it into memory and lets it run
    "hta_widgets/jit/portable.py": ["exec"],  # part of the build, of kernels' arguments alone
    "hta_widgets/trace/cluster.py": ["pickle"],  # what workers of the caller's own cluster answer
    "hta_widgets/trace/reader/listing.py": ["urllib.parse"],  # takes the escapes out of links
    "hta_widgets/trace/memory.py": ["ctypes"],  # asks the C library to give back what was freed
}
# Without one of these words there is nothing to look for.
TOLD_BY = re.compile(rf"\b({'|'.join((*UNPICKLES, *NETWORK, *PROCESSES, *RUNS_TEXT, 'allow_pickle'))})\b")
OF_BROWSERS = re.compile(
    r"(?<![#.\w])(?:eval|fetch|importScripts)\(|new Function\b|\bFunction\(|XMLHttpRequest|WebSocket"
    r"|EventSource|sendBeacon|RTCPeerConnection|\bimport\(|document\.write"
)
ADDRESSES = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`)]+")


def suspects(text: str) -> list[str]:
    """What Python code imports or calls that reads code from data, or asks the network."""
    found: list[str] = []
    if not TOLD_BY.search(text):
        return found
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Call):
            called = node.func
            name = getattr(called, "id", getattr(called, "attr", ""))
            regular = name == "compile" and getattr(getattr(called, "value", None), "id", "") == "re"
            fixed = name == "query" and all(isinstance(item, ast.Constant) for item in node.args)
            if name in RUNS_TEXT and not regular and not fixed:
                found.append(name)
            found += [
                "allow_pickle"
                for keyword in node.keywords
                if keyword.arg == "allow_pickle" and getattr(keyword.value, "value", True) is not False
            ]
        found += [name for name in names if name.partition(".")[0] in UNPICKLES | NETWORK | PROCESSES]
    return found


def test_no_module_runs_data_or_asks_the_network() -> None:
    found = {path.relative_to(ROOT).as_posix(): suspects(path.read_text(encoding="utf-8")) for path in PYTHON}
    assert len(found) > 100
    assert {path: names for path, names in found.items() if names} == EXCEPTED


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from urllib.request import urlopen", "import http.client", "eval('1')", "exec(x)",
        "frame.query(text)", "frame.eval(text)", "np.load(f, allow_pickle=True)",
        "np.load(f, allow_pickle=x)", "pd.read_pickle(f)", "import subprocess", "os.system(x)",
        "compile(x, '', 'exec')",
    ],
)  # fmt: skip
def test_what_would_be_found(text: str) -> None:
    assert suspects(text)


def test_regular_expressions_and_literals_are_no_code() -> None:
    assert suspects("re.compile(x)\nast.literal_eval(x)\nnp.load(f, allow_pickle=False)") == []


def test_no_script_runs_text_or_asks_the_network() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in [*SOURCES, *BUNDLES]}
    assert SOURCES and BUNDLES, "hatch_build.py builds the bundles"
    found = {name: OF_BROWSERS.findall(text) + ADDRESSES.findall(text) for name, text in texts.items()}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text", ["a=eval(b)", "fetch(x)", "new Function(x)", "await import(x)", "new WebSocket(x)"]
)
def test_what_would_be_found_in_scripts(text: str) -> None:
    assert OF_BROWSERS.search(text)


def canonical(name: str) -> str:
    return name.lower().replace("_", "-")


def requirements(*extras: str) -> list[Requirement]:
    """Of the package and of these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_extras = [item for extra in extras for item in project["optional-dependencies"][extra]]
    return [Requirement(text) for text in (*project["dependencies"], *of_extras)]


def test_no_version_is_shut_out() -> None:
    """An upper bound needs a version that fails, and none is known."""
    bounds = {str(item): {part.operator for part in item.specifier} for item in requirements(*EXTRAS)}
    assert {text: found for text, found in bounds.items() if found - {">="}} == {}


def test_the_versions_for_ci_are_pinned_without_addresses() -> None:
    lines = [line for line in PINNED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.!+]*", line)] == []
    pinned = {canonical(name): version for name, _, version in (line.partition("==") for line in lines)}
    needed = [item for item in requirements("excel", "hta", "docs", "test") if item.name != "hta_widgets"]
    assert [str(item) for item in needed if canonical(item.name) not in pinned] == []
    assert [str(item) for item in needed if pinned[canonical(item.name)] not in item.specifier] == []
