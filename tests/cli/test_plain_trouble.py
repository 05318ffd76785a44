"""Trouble with files and pipes is never called a defect of ours, and pipes are read."""

import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import examples

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


@pytest.mark.parametrize("arguments", ["summary --json", "analyze kernel_breakdown --format csv"])
def test_a_full_disk_is_5(arguments: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this platform has no /dev/full")
    one_line(shell(f"hta-widgets {arguments} -q {TRACE} > /dev/full"), 5, "No space left")


@pytest.mark.parametrize("arguments", ["health", "analyze kernel_breakdown --format csv"])
def test_a_closed_output_is_5(arguments: str) -> None:
    one_line(shell(f"hta-widgets {arguments} -q {TRACE} >&-"), 5, "closed")


def test_a_file_is_written_though_the_output_is_closed(tmp_path: Path) -> None:
    done = shell(f"hta-widgets health -q {TRACE} -o {tmp_path}/health.txt >&-")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "health.txt").stat().st_size > 0


def test_closed_errors_end_in_the_code_alone(tmp_path: Path) -> None:
    assert shell(f"hta-widgets summary {tmp_path}/none 2>&-").returncode == 3


@pytest.fixture(scope="module")
def usual() -> dict[str, Any]:
    """The summary of the file, as JSON."""
    found: dict[str, Any] = json.loads(shell(f"hta-widgets summary --json -q {TRACE}").stdout)
    return found


READING = [
    f"hta-widgets summary --json -q <(zcat {TRACE})",
    f"cat {TRACE} | hta-widgets summary --json -q -",
    f"hta-widgets summary --json -q - < {TRACE}",
]


@pytest.mark.parametrize("command", READING)
def test_pipes_and_standard_input_are_read(command: str, usual: dict[str, Any]) -> None:
    done = shell(command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["job"]["events"] == usual["job"]["events"]
    assert found["answers"]["overview"] == usual["answers"]["overview"]


def test_a_summary_of_standard_input_says_so() -> None:
    assert "standard input" in shell(f"hta-widgets summary -q - < {TRACE}").stdout.splitlines()[0]


def test_standard_input_that_is_closed_or_no_trace() -> None:
    one_line(shell("hta-widgets summary - <&-"), 2, "standard input is closed")
    one_line(shell("echo hello | hta-widgets summary -"), 3, "not JSON")


@pytest.mark.parametrize("arguments", ["health --fail-on never", "summary --json"])
def test_names_that_are_not_utf_8(tmp_path: Path, arguments: str) -> None:
    folder = os.fsencode(tmp_path)
    for name, content in ((b"rank0\xff.json.gz", TRACE.read_bytes()), (b"rank1\xfe.json", b"{broken")):
        (Path(os.fsdecode(os.path.join(folder, name)))).write_bytes(content)  # noqa: PTH118 - of bytes
    done = shell(f"hta-widgets {arguments} {tmp_path}")
    assert done.returncode == 0, done.stderr
    assert "rank1" in done.stdout and "xfe" in done.stdout + done.stderr
    if "--json" in arguments:
        json.loads(done.stdout)


@pytest.mark.parametrize("home", ["read-only", "none"])
def test_without_a_home_to_write_to(tmp_path: Path, home: str) -> None:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o500)
    gone = str(folder) if home == "read-only" else str(tmp_path / "none" / "there")
    done = shell(
        f"hta-widgets analyze temporal_breakdown -q {TRACE}",  # little to compile, where nothing can be kept
        HOME=gone,
        HTA_WIDGETS_CACHE="",
        XDG_CACHE_HOME=f"{gone}/cache",
    )
    assert done.returncode == 0, done.stderr


PLACES = ["größe 東京-🚀", "/".join(["x" * 100] * 3)]


@pytest.mark.parametrize("place", PLACES)
def test_places_with_unusual_names(tmp_path: Path, place: str) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    file = folder / ("rank0 ä.json" if place != PLACES[1] else "rank0.json")
    file.write_bytes(gzip.decompress(TRACE.read_bytes()))
    target = folder / "report of it.html"
    done = shell(f"hta-widgets report -q {shlex.quote(str(file))} -o {shlex.quote(str(target))}")
    assert done.returncode == 0, done.stderr
    assert target.stat().st_size > 10_000


@pytest.mark.parametrize(
    "environment",
    [{"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}, {"TZ": "junk"},
     {"PYTHONOPTIMIZE": "1"}, {"PYTHONWARNINGS": "error::DeprecationWarning:hta_widgets"}],
)  # fmt: skip
def test_the_environment_changes_no_number(environment: dict[str, str], usual: dict[str, Any]) -> None:
    done = shell(f"hta-widgets summary --json -q {TRACE}", **environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == usual
