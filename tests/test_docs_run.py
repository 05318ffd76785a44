"""The examples in the docs work: their Python, their commands, and what they print.

Paths of the reader's own, such as `run_17/`, are bundled examples here. Nothing else stands in for anything.
"""

from __future__ import annotations

import ast
import contextlib
import gzip
import os
import re
import shlex
import shutil
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from docs import analysis_pages, comparison_pages
from hta_widgets import Trace, examples
from hta_widgets.analysis import ANALYSES, COMPARISONS
from hta_widgets.cli import main
from hta_widgets.cli.opening import kept_open
from hta_widgets.errors import MissingDataError
from tests.memory_snapshot.allocator import MB, Allocator, write
from tests.support import ROOT

pytestmark = pytest.mark.slow

# A reader's path -> the example in its place.
FOLDERS = {
    "traces": "ddp_4ranks",
    "run_17": "ddp_4ranks",
    "run_18": "ddp_4ranks",
    "before": "gpt2_ddp",
    "after": "gpt2_ddp",
    "main": "gpt2_ddp",
    "branch": "gpt2_ddp",
    **{name: name for name in examples.names()},
}
FILES = ("a.json", "b.json")  # two ranks of one job; also as .json.gz
# What stands for something in a command -> what is put there.
PLACES = {
    "COMMAND": ["analyze"],
    "KIND": ["kernel_breakdown"],
    "PATH": ["run_17/"],
    "EDIT": ["kernels(2.0)"],
    "A": ["before/"],
    "B": ["after/"],
    "[C": [],
    "...]": [],
}
# What no bundled example has.
NOT_IN_EXAMPLES = {"cupti_counters"}
# Where the code needs a program that is not here.
ELSEWHERE = {
    "hosts.md": "marimo, which tests/browser/test_marimo.py runs, and Colab",
    "recording.md": "the frameworks that it shows how to record",
}

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(hta-widgets [^`]+)`")
CONSOLE = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n?)*)", re.MULTILINE)
CUT = "…"


def fenced(text: str, language: str) -> list[str]:
    """The blocks of a page in this language."""
    return [body for named, body in FENCE.findall(text) if named == language]


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def commands(self) -> list[str]:
        """Of hta-widgets: in blocks and in the text."""
        blocks = "\n".join(fenced(self.text, "bash")).replace("\\\n", " ")
        lines = [line for line in blocks.splitlines() if line.startswith("hta-widgets ")]
        return [*lines, *INLINE.findall(FENCE.sub("", self.text))]


PAGES = [
    Page(path)
    for path in (
        ROOT / "README.md",
        ROOT / "examples/recording/README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
]
WITH_PYTHON = [page for page in PAGES if fenced(page.text, "python") and page.path.name not in ELSEWHERE]
COMMANDS = list(dict.fromkeys(command for page in PAGES for command in page.commands))
CONSOLES = [found for page in PAGES for text in fenced(page.text, "text") for found in CONSOLE.findall(text)]
SHOWN = [item for item in CONSOLES if item[0] != "echo $?"]  # that is checked with the command before


Desk = Callable[[str], Path]


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """The reader's working folder, with traces in it; `run_17/` is this example."""

    @cache
    def folder(example: str) -> Path:
        desk = tmp_path_factory.mktemp("desk")
        for name, of in {**FOLDERS, "run_17": example}.items():
            shutil.copytree(analysis_pages.example_path(of), desk / name)
        for rank, name in enumerate(FILES):
            packed = examples.path("gpt2_ddp") / f"rank-{rank}.pt.trace.json.gz"
            shutil.copy(packed, desk / f"{name}.gz")
            (desk / name).write_bytes(gzip.decompress(packed.read_bytes()))
        allocator = Allocator(100 * MB)
        allocator.alloc(30 * MB, "model.py:3:forward")
        write(desk / "snapshot.pickle", allocator)
        return desk

    return folder


@pytest.fixture(scope="module", autouse=True)
def opened_by_commands_once() -> Iterator[None]:
    with kept_open(4):
        yield


@pytest.fixture(scope="module")
def opened() -> dict[Path, Trace]:
    return {}


@pytest.fixture
def opened_once(opened: dict[Path, Trace], monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of analyses open the same job, one after the other."""
    real = Trace.open

    def open_first(path: str, *given: Any, **named: Any) -> Trace:
        key = Path(path).resolve()
        if given or named:  # as a command does
            return real(path, *given, **named)
        if key not in opened:
            opened[key] = real(path)
        return opened[key]

    monkeypatch.setattr(Trace, "open", open_first)


@pytest.fixture
def desk_with(laid_out: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """The same as the working folder of a test, which finds nothing that others have written there."""
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=os.pathsep)  # hta-widgets itself
    used: dict[Path, set[Path]] = {}

    def sit_down(example: str) -> Path:
        desk = laid_out(example)
        used.setdefault(desk, {*desk.rglob("*")})
        monkeypatch.chdir(desk)
        return desk

    yield sit_down
    for desk, there in used.items():
        for path in sorted({*desk.rglob("*")} - there):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        assert {*desk.rglob("*")} == there


@pytest.fixture
def desk(desk_with: Desk) -> Path:
    return desk_with(FOLDERS["run_17"])


def run(code: str, names: dict[str, Any], page: str) -> None:
    """Run the statements; where a comment behind an expression is a value, it is that of the expression."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        assert statement.end_lineno is not None
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), page, "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), page, "eval"), names)
        _, _, comment = lines[statement.end_lineno - 1].partition("  # ")
        with contextlib.suppress(SyntaxError, ValueError):
            promised = ast.literal_eval(comment.strip())
            assert value == promised, lines[statement.end_lineno - 1]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_python_of_a_page_runs_from_top_to_bottom(page: Page, desk: Path) -> None:
    names: dict[str, Any] = {}
    for code in fenced(page.text, "python"):
        run(code, names, page.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_that_needs_another_program_is_python(page: Page) -> None:
    """What is marked as `py`, such as a recipe to record: PyTorch is not here."""
    for code in fenced(page.text, "py"):
        ast.parse(code)


def test_every_how_to_runs_and_is_listed() -> None:
    folder = ROOT / "docs/how_to"
    pages = {
        page.path.name: page for page in PAGES if page.path.parent == folder and page.path.stem != "index"
    }
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert len(pages) >= 10
    assert [name for name in pages if f"]({name})" not in index] == []
    assert [name for name, page in pages.items() if page not in WITH_PYTHON and not page.commands] == []


def words_of(command: str) -> list[str]:
    """The arguments, up to a pipe or a comment."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word.startswith("|"):
            break
        words += PLACES.get(word, [word])
    assert words.pop(0) == "hta-widgets"
    return words


def gate(words: list[str]) -> bool:
    return "--fail-on" in words or words[0] == "check"


@pytest.mark.parametrize("command", COMMANDS)
def test_command_of_a_page_runs(command: str, desk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = words_of(command)
    if len(words) == 1 and "--help" not in words:
        words.append("--help")  # the text names the command itself
    code = 0
    try:
        code = main(words)
    except SystemExit as asked:  # --help
        code = int(asked.code or 0)
    output = capfd.readouterr()
    assert code == 0 or (gate(words) and code == 1), output.err
    for flag, written in pairwise(words):
        assert flag != "-o" or (desk / written).stat().st_size


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_command_prints_what_the_page_shows(
    command: str, shown: str, desk: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    words = words_of(command)
    code = main(words)
    rest = capfd.readouterr().out
    if "json" in words:  # shown in other lines than printed
        rest, shown = (" ".join(text.split()) for text in (rest, shown))
    for found in filter(None, map(str.strip, re.split(f"[{CUT}\n]", shown))):
        assert found in rest, f"not printed (any more): {found!r}"
        rest = rest.partition(found)[2]
    assert code == after(command)


def after(command: str) -> int:
    """The exit code that the page shows next."""
    consoles = [text for text, _ in CONSOLES]
    following = CONSOLES[consoles.index(command) + 1 :]
    return int(following[0][1]) if following and following[0][0] == "echo $?" else 0


@pytest.mark.usefixtures("opened_once")
@pytest.mark.parametrize("kind", ANALYSES)
def test_use_of_an_analysis_page_runs(kind: str, desk_with: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    desk_with(analysis_pages.example_of(kind))
    (code,) = fenced(analysis_pages.use(kind), "python")
    (command,) = fenced(analysis_pages.use(kind), "bash")
    words = words_of(command)
    if kind in NOT_IN_EXAMPLES:
        with pytest.raises(MissingDataError):
            run(code, {}, kind)
        assert main(words) == 4
        return
    run(code, {}, kind)
    assert main(words) == 0, capfd.readouterr().err


@pytest.mark.parametrize("kind", COMPARISONS)
def test_use_of_a_comparison_page_runs(kind: str, desk: Path) -> None:
    use = comparison_pages.USE.format(kind=kind, function=comparison_pages.function_of(kind))
    for code in fenced(use, "python"):
        run(code, {}, kind)
