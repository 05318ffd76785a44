"""Machine code on disk is used again exactly as long as everything that it was made of is the same."""

import ast
import compileall
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module, reload
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from hta_widgets import jit
from tests.support import ROOT

pytestmark = pytest.mark.slow

TOY = {
    "__init__.py": "",
    "units.py": "SCALE = 10\n",
    "deep.py": "from hta_widgets.jit import outline\n\n@outline\ndef deep(x):\n    return x + 1\n",
    "helper.py": (
        "from hta_widgets.jit import inline\nfrom toy.deep import deep\n\n"
        "@inline\ndef helper(x):\n    return deep(x)\n"
    ),
    "other.py": "from hta_widgets.jit import inline\n\n@inline\ndef other(x):\n    return x\n",
    "entry.py": (
        "from hta_widgets.jit import kernel\nfrom toy.helper import helper\nfrom toy.units import SCALE\n\n"
        "@kernel\ndef entry(x):\n    return helper(x) * SCALE\n"
    ),
}
# Each request is answered in a fork: a process that has imported numba, and nothing of the package
RUN = """
import json, os, sys
from numba import config, njit
from hta_widgets import jit
njit(lambda: 1)()
for line in sys.stdin:
    where, environment = json.loads(line)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        continue
    os.environ |= environment
    config.reload_config()
    sys.path.insert(0, where)
    from toy.entry import entry
    print(json.dumps([entry(1), sum(entry.dispatcher.stats.cache_hits.values())]), flush=True)
    os._exit(0)
"""


class Ran(NamedTuple):
    answer: int
    from_disk: int


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A package whose one kernel calls, through a helper, the helper of another module."""
    folder = tmp_path / "source" / "toy"
    folder.mkdir(parents=True)
    for name, text in TOY.items():
        (folder / name).write_text(text)
    return folder


def edit(file: Path, old: str, new: str) -> None:
    """Change a module so that Python sees it: its byte code is told apart by size and second alone."""
    earlier = file.stat().st_mtime
    file.write_text(file.read_text().replace(old, new))
    os.utime(file, (earlier + 2, earlier + 2))


@pytest.fixture(scope="module")
def forking() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", RUN]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.communicate()


@pytest.fixture
def run(forking: subprocess.Popen[str], tmp_path: Path) -> Callable[[Path], Ran]:
    """Call the kernel in a process of its own, which finds the package in a folder or a zip archive."""

    def ask(where: Path, **environment: str) -> Ran:
        assert forking.stdin is not None and forking.stdout is not None
        request = [str(where), {"XDG_CACHE_HOME": str(tmp_path), **environment}]
        forking.stdin.write(json.dumps(request) + "\n")
        forking.stdin.flush()
        return Ran(*json.loads(forking.stdout.readline()))

    return ask


def test_an_edit_recompiles_what_uses_it_and_nothing_else(toy: Path, run: Callable[..., Ran]) -> None:
    """One edit after the other: each is a process of its own."""
    assert run(toy.parent) == Ran(20, 0)
    for edited, old, new, expected in (
        ("other.py", "return x", "return x + x", Ran(20, 1)),
        ("deep.py", "x + 1", "x + 2", Ran(30, 0)),
        ("units.py", "10", "100", Ran(300, 0)),
        ("entry.py", "* SCALE", "+ SCALE", Ran(103, 0)),
    ):
        edit(toy / edited, old, new)
        assert run(toy.parent) == expected, edited


def test_a_folder_of_the_user_is_no_exception(toy: Path, run: Callable[..., Ran], tmp_path: Path) -> None:
    kept = str(tmp_path / "machine_code")
    assert run(toy.parent, NUMBA_CACHE_DIR=kept) == Ran(20, 0)
    assert run(toy.parent, NUMBA_CACHE_DIR=kept) == Ran(20, 1)
    edit(toy / "deep.py", "x + 1", "x + 2")
    assert run(toy.parent, NUMBA_CACHE_DIR=kept) == Ran(30, 0)


def test_checked_machine_code_is_kept_apart(toy: Path, run: Callable[..., Ran]) -> None:
    """As `bytes.CHECKED` does: a number that the environment decides."""
    edit(toy / "units.py", "10", "10 * len(__import__('os').environ.get('SCALE', 'x'))")
    assert run(toy.parent) == Ran(20, 0)
    assert run(toy.parent, SCALE="xx") == Ran(40, 0)
    assert run(toy.parent) == Ran(20, 1)


def test_a_package_in_a_zip_archive_runs_its_own_code(
    toy: Path, run: Callable[..., Ran], tmp_path: Path
) -> None:
    archive = tmp_path / "toy.zip"
    for old, new, answer in (("", "", 20), ("x + 1", "x + 2", 30)):
        edit(toy / "deep.py", old, new)
        with zipfile.ZipFile(archive, "w") as target:
            for path in toy.glob("*.py"):
                target.write(path, f"toy/{path.name}")
        assert run(archive).answer == answer


def test_without_sources_nothing_is_kept(toy: Path, run: Callable[..., Ran]) -> None:
    """Machine code that nothing can be compared with later is not written."""
    compileall.compile_dir(toy, legacy=True, quiet=1)
    for path in toy.glob("*.py"):
        path.unlink()
    shutil.rmtree(toy / "__pycache__", ignore_errors=True)
    assert run(toy.parent) == run(toy.parent) == Ran(20, 0)


def test_reloading_an_edited_module_reads_it_again(
    toy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What an edit does in a notebook with %autoreload."""
    monkeypatch.syspath_prepend(str(toy.parent))
    entry = import_module("toy.entry")
    before = entry.entry._function.__qualname__
    edit(toy / "deep.py", "x + 1", "x + 2222")
    for name in ("deep", "helper", "entry"):
        reload(sys.modules[f"toy.{name}"])
    assert entry.entry._function.__qualname__ != before
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
        monkeypatch.delitem(sys.modules, name)


def compiled_modules() -> Iterator[ModuleType]:
    """Every module of the package that has compiled functions."""
    for path in sorted((ROOT / "hta_widgets").rglob("*.py")):
        if "from hta_widgets.jit import" in path.read_text():
            yield import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def names_in(code: CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def source_of(value: Any) -> FunctionType | None:
    """The Python function behind a compiled one."""
    return value._function if isinstance(value, jit.Helper | jit.Kernel) else None


def imported_names(module: ModuleType) -> set[str]:
    """Names that a module has from other modules of the package."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {a.asname or a.name for node in imports if "hta_widgets" in str(node.module) for a in node.names}


def test_compiled_functions_import_only_what_their_hash_covers() -> None:
    """From modules with compiled functions, or numbers and their types."""
    uncovered, seen = set(), 0
    for module in compiled_modules():
        imported = imported_names(module)
        for function in map(source_of, vars(module).values()):
            if function is not None and function.__module__ == module.__name__:
                seen += 1
                for name in names_in(function.__code__) & imported:
                    value = vars(module)[name]
                    if isinstance(value, int | float | np.number):
                        continue
                    home = value.__name__ if isinstance(value, ModuleType) else value.__module__
                    if home not in jit._CONTENTS and home != "numpy":
                        uncovered.add((module.__name__, name))
    assert seen > 50
    assert not uncovered
