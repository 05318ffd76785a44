"""Trouble with files and pipes is never called a defect of ours, and pipes are read."""

import ast
import gzip
import io
import json
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hta_widgets import examples
from tests.cli.conftest import Run
from tests.support import EVERY_CASE, ROOT

TRACE = Path(examples.__file__).parent / "data" / "gpt2_baseline" / "rank-0.pt.trace.json.gz"
COMMAND = f"{shlex.quote(sys.executable)} -m hta_widgets"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell"),
]


def shell(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", text.replace("hta-widgets", COMMAND)],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        env={**os.environ, **environment},
    )


def one_line(done: subprocess.CompletedProcess[str], code: int, word: str) -> None:
    lines = done.stderr.splitlines()
    assert done.returncode == code, done.stderr
    assert len(lines) == 1 and lines[0].startswith("hta-widgets: ") and word in lines[0], done.stderr


COMMANDS = ["summary --json", "summary", "health", "analyze kernel_breakdown --format csv"]


FULL = Path("/dev/full")
has_full = pytest.mark.skipif(not FULL.exists(), reason="this platform has no /dev/full")


@has_full
def test_a_full_disk_is_5() -> None:
    one_line(
        shell(f"hta-widgets analyze kernel_breakdown --format csv -q {TRACE} > {FULL}"), 5, "No space left"
    )


@has_full
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_5_whatever_writes(command: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", FULL.open("w", encoding="utf-8"))
    done = run(*command.split(), "-q", TRACE)
    assert done.code == 5 and done.err.startswith("hta-widgets: ") and "No space left" in done.err


def test_a_closed_output_is_5() -> None:
    one_line(shell(f"hta-widgets analyze kernel_breakdown --format csv -q {TRACE} >&-"), 5, "closed")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_output_is_5_whatever_writes(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    done = run(*command.split(), "-q", TRACE)
    assert done.code == 5 and "closed" in done.err


def test_a_file_is_written_though_the_output_is_closed(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    done = run("health", "-q", TRACE, "-o", tmp_path / "health.txt")
    assert done.code == 0, done.err
    assert (tmp_path / "health.txt").stat().st_size > 0


def test_closed_errors_end_in_the_code_alone(tmp_path: Path) -> None:
    assert shell(f"hta-widgets summary {tmp_path}/none 2>&-").returncode == 3


@pytest.mark.parametrize("place", ["a path", "standard input"])
def test_pipes_are_read(place: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As bash names them: `<(zcat TRACE)` and `cat TRACE | hta-widgets summary -`."""
    usual = run("summary", "--json", "-q", TRACE).json
    read, write = os.pipe()
    packed = TRACE.read_bytes()

    def fill() -> None:
        with os.fdopen(write, "wb") as file:
            file.write(gzip.decompress(packed) if place == "a path" else packed)

    filling = threading.Thread(target=fill)
    filling.start()
    with os.fdopen(read, "rb") as pipe:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        done = run("summary", "--json", "-q", f"/dev/fd/{read}" if place == "a path" else "-")
    filling.join()
    assert done.code == 0, done.err
    assert done.json["job"]["events"] == usual["job"]["events"]
    assert done.json["answers"]["overview"] == usual["answers"]["overview"]


def test_a_summary_of_standard_input_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with TRACE.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        done = run("summary", "-q", "-")
    assert "standard input" in done.out.splitlines()[0]


def test_standard_input_that_is_closed() -> None:
    one_line(shell("hta-widgets summary - <&-"), 2, "standard input is closed")


def test_standard_input_that_is_no_trace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello\n")))
    done = run("summary", "-")
    assert done.code == 3 and "not JSON" in done.err


@pytest.fixture
def strange_names(tmp_path: Path) -> Path:
    """A folder with a good and a bad file, whose names are not UTF-8."""
    folder = os.fsencode(tmp_path)
    for name, content in ((b"rank0\xff.json.gz", TRACE.read_bytes()), (b"rank1\xfe.json", b"{broken")):
        (Path(os.fsdecode(os.path.join(folder, name)))).write_bytes(content)  # noqa: PTH118 - of bytes
    return tmp_path


def test_names_that_are_not_utf_8_on_a_terminal(strange_names: Path) -> None:
    done = shell(f"hta-widgets health --fail-on never {strange_names}")
    assert done.returncode == 0, done.stderr
    assert "rank1" in done.stdout and "xfe" in done.stdout + done.stderr


def test_names_that_are_not_utf_8_in_json(strange_names: Path, run: Run) -> None:
    done = run("summary", "--json", strange_names)
    assert done.code == 0, done.err
    assert "rank1" in json.dumps(done.json) and "xfe" in done.out + done.err


def _home(kind: str, folder: Path) -> str:
    if kind == "none":
        return str(folder / "none" / "there")
    if os.geteuid() == 0:
        return "/sys"  # where root may not write either
    folder.chmod(0o500)
    return str(folder)


@pytest.mark.parametrize("home", ["read-only", "none"] if EVERY_CASE else ["read-only"])
def test_without_a_home_to_write_to(tmp_path: Path, home: str) -> None:
    gone = _home(home, tmp_path)
    with pytest.raises(OSError):
        (Path(gone) / "cache").mkdir()
    done = shell(
        f"hta-widgets analyze temporal_breakdown -q {TRACE}",  # little to compile, where nothing can be kept
        HOME=gone,
        HTA_WIDGETS_CACHE="",
        XDG_CACHE_HOME=f"{gone}/cache",
    )
    assert done.returncode == 0, done.stderr


def test_a_place_with_an_unusual_name(tmp_path: Path, run: Run) -> None:
    """With blanks, no ASCII and more than 300 characters."""
    folder = tmp_path / "größe 東京-🚀" / "/".join(["x" * 100] * 3)
    folder.mkdir(parents=True)
    file, target = folder / "rank0 ä.json", folder / "report of it.html"
    file.write_bytes(gzip.decompress(TRACE.read_bytes()))
    done = run("report", "-q", file, "-o", target)
    assert done.code == 0, done.err
    assert target.stat().st_size > 10_000


def test_the_environment_changes_no_number(run: Run) -> None:
    unusual = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "junk"}
    done = shell(f"hta-widgets summary --json -q {TRACE}", **unusual)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == run("summary", "--json", "-q", TRACE).json


# What an assertion may do: nothing is lost where Python leaves it out.
ASSERTED = (
    ast.BoolOp, ast.boolop, ast.Compare, ast.cmpop, ast.Name, ast.Attribute, ast.Constant, ast.expr_context,
)  # fmt: skip


def test_assertions_may_be_left_out() -> None:
    for file in (ROOT / "hta_widgets").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if "assert " in text:
            assertions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]
            for node in (node for assertion in assertions for node in ast.walk(assertion.test)):
                harmless = isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "len")
                assert harmless or isinstance(node, ASSERTED), f"{file}: {ast.unparse(node)}"


def test_warnings_may_be_errors(tmp_path: Path) -> None:
    """Every module, an analysis of each kind, the widgets and the commands. No warning is excepted."""
    argv = [sys.executable, "-W", "error", "-m", "tests.whole_library", str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 20 and done.stderr == ""
