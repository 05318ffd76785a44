"""What a person sees: a table that fits, colours on a terminal only, and names that do nothing to it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.cli import main
from hta_widgets.cli.table import frame_lines
from hta_widgets.cli.terminal import aligned, pieces_of, printable, shortened, width
from hta_widgets.cli.values import number_ranges, numbers, span
from tests.cli.conftest import Run

DDP = examples.path("ddp_4ranks")
EVIL = "=cmd\x1b[31m\x1b]0;owned\x07\r\n\x9b2J\x7f\u202egnp"


def on_terminal(*argv: object, columns: int = 100, **environment: str) -> str:
    """What `hta-widgets` writes to a terminal, in a fork of this process, which has imported it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS=str(columns), TERM="xterm", **environment)
        code = 1
        try:
            sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8") for number in (1, 2))  # noqa: PTH123, SIM115
            code = main([*map(str, argv)])
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    written = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # Linux: the other side is gone
            break
        if not piece:
            break
        written += piece
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, written
    return written.decode()


def test_names_cannot_command_the_terminal(trace_file: Any) -> None:
    path = trace_file(EVIL)
    for form in ("table", "csv", "json"):
        written = on_terminal("analyze", "kernel_breakdown", path, "-q", "--format", form)
        assert not set(written) & set("\x1b\x07\x9b\x7f\u202e"), form
        assert "31m" in written


def test_names_in_files_and_errors(run: Run, trace_file: Any, tmp_path: Path) -> None:
    path = trace_file(EVIL, "plain")
    done = run("analyze", "kernel_breakdown", path, "--format", "json")
    assert {row["name"] for row in done.json["rows"]} == {EVIL, "plain"}
    assert done.out.isascii()
    csv = run("analyze", "kernel_breakdown", path, "--format", "csv").out
    assert "'=cmd" in csv and ",=cmd" not in csv
    missing = run("summary", tmp_path / "a\x1b[2Jb")
    assert "\x1b" not in missing.err and r"\x1b[2J" in missing.err


def test_progress_and_colour_on_a_terminal_only(run: Run) -> None:
    written = on_terminal("summary", DDP)
    assert "of 4 files" in written and "\x1b[1m" in written
    assert "\x1b" not in on_terminal("summary", DDP, "-q", NO_COLOR="1")
    done = run("summary", DDP)
    assert "\x1b" not in done.out and done.err == ""


def test_lines_fit_the_terminal() -> None:
    written = on_terminal("summary", DDP, "-q", columns=80, NO_COLOR="1")
    assert max(map(width, written.splitlines())) <= 80
    written = on_terminal("analyze", "idle_breakdown", DDP, "-q", columns=80)
    assert "more columns" in written


def test_parquet_is_not_for_terminals(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="not for terminals"):
        on_terminal("analyze", "temporal_breakdown", DDP, "--format", "parquet")


@pytest.mark.parametrize("form", ["csv", "json"])
def test_reader_that_goes_away(form: str) -> None:
    command = [sys.executable, "-m", "hta_widgets", "analyze", "launch_stats", str(DDP), "--format", form]
    command += ["--budget", "all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ascii_output_does_not_fail() -> None:
    command = [sys.executable, "-m", "hta_widgets", "analyze", "temporal_breakdown", str(DDP)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert done.stdout.isascii()


def test_a_terminal_without_a_minus_sign_shows_a_hyphen() -> None:
    """That of Windows in Europe and America has a micro sign and no minus sign."""
    command = [sys.executable, "-m", "hta_widgets", "what-if", str(DDP), "--edit", "kernels(2.0)"]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    out = done.stdout.decode("cp1252")
    assert re.search(r"\(-\d[\d.]* %\)", out) and "\\u2212" not in out


def test_help_comes_at_once() -> None:
    """Neither pandas nor numba nor the widgets are imported to print it."""
    code = (
        "import sys; from hta_widgets.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("usage: hta-widgets")
    heavy = {"pandas", "numpy", "numba", "anywidget", "traitlets", "pyarrow", "fsspec"}
    assert not heavy & set(done.stderr.split())


def test_limit_and_left_out_rows(run: Run) -> None:
    out = run("analyze", "idle_gaps", DDP).out.splitlines()
    assert out[-1] == "… 2,128 more rows"
    assert len(run("analyze", "idle_gaps", DDP, "--limit", "5", "--format", "json").json["rows"]) == 5


def test_long_names_are_short_in_a_table_and_whole_in_json(run: Run, trace_file: Any) -> None:
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, {}>(int)"
    names = [kernel.format("a"), kernel.format("b"), "gemm"]
    path = trace_file(*names)
    out = run("analyze", "kernel_breakdown", path).out
    assert "at::native" not in out.partition("CUDAFunctor")[0] and "gemm" in out
    told = [line for line in out.splitlines() if "vectorized_elementwise_kernel<" in line]
    assert len({line for line in told if line.startswith("   0")}) == 2
    rows = run("analyze", "kernel_breakdown", path, "--format", "json").json["rows"]
    assert {row["name"] for row in rows} == set(names)


def test_table() -> None:
    frame = pd.DataFrame(
        {
            "rank": [0, 1],
            "idle_ns": [1_234_567, 0],
            "idle_pct": [12.345, float("nan")],
            "held_bytes": [12_345_678, 524_288],
            "iteration": pd.array([7, None], dtype="Int64"),
            "is_graph": [True, False],
            "name": ["a\nb", None],
        }
    )
    assert frame_lines(frame, 10, None) == [
        "rank  idle ms  idle %  held MiB  iteration  is graph  name",
        "   0     1.23    12.3      11.8          7  yes       a\\nb",
        "   1        0       –     0.500          –  no",
    ]
    assert frame_lines(frame[["rank", "idle_ns", "idle_pct"]], 1, 15) == [
        "rank  idle ms",
        "   0     1.23",
        "… 1 more row and 1 more column",
    ]


@pytest.mark.parametrize(
    ("cells", "widths"), [(200, [60, 60]), (122, [60, 60]), (121, [59, 60]), (60, [24, 34]), (50, [24, 24])]
)
def test_texts_of_a_table_are_as_short_as_need_be(cells: int, widths: list[int]) -> None:
    """The first ones first, and none so short that nothing is left of it."""
    frame = pd.DataFrame({"operator": ["x" * 60], "place": ["y" * 60]})
    heading, row = frame_lines(frame, 10, cells)
    assert heading.split() == ["operator", "place"]
    assert row.split() == [shortened(text * 60, most) for text, most in zip("xy", widths, strict=True)]
    assert frame_lines(frame, 10, 49)[2:] == ["… 1 more column"]


def test_text_pieces() -> None:
    assert printable("a\tb\u2028c\ud800é") == r"a\tb\u2028c\ud800é"
    assert [shortened("abcdefghij", cells) for cells in (5, 9, 10)] == ["ab…ij", "abcd…ghij", "abcdefghij"]
    assert width("核é") == 3
    assert width(shortened("核" * 9, 6)) <= 6
    assert pieces_of("one two three", 8) == ["one two", "three"]
    assert aligned([["a", "核"], ["bcd", "x"]], [True, False]) == ["  a  核", "bcd  x"]


def test_numbers_and_windows() -> None:
    assert numbers("0, 2-5").among([0, 1, 3, 5, 9], "rank") == (0, 3, 5)
    assert span("10ms:25ms").within((0, 10**9)) == (10_000_000, 25_000_000)
    assert span("1.5us:").within((0, 5_000)) == (1_500, 5_000)
    assert span(":5us").within((2_000, 9_000)) == (2_000, 5_000)
    assert span(":9007199254740993ns").within((0, 10**18)) == (0, 9_007_199_254_740_993)
    assert number_ranges([0, 1, 2, 5]) == "0-2, 5"
