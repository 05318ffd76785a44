"""What goes wrong: one line on stderr, nothing on stdout, and an exit code that says what kind of thing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import examples
from hta_widgets.cli import kinds, main
from hta_widgets.cli.exits import codes_in_words
from tests.cli.conftest import Done, Run
from tests.support import ROOT, shared_trace

DDP = examples.path("ddp_4ranks")


def failed(done: Done, code: int, *words: str) -> None:
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("hta-widgets: ") and done.err.endswith("\n")
    assert done.err.count("\n") == 1 and "Traceback" not in done.err
    for word in words:
        assert word in done.err


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        ((), "COMMAND"),
        (("dance",), "dance"),
        (("analyze", "temporal_breakdown"), "PATH"),
        (("analyze", "nonsense", DDP), "temporal_breakdown"),
        (("analyze", "temporal_breakdown", DDP, "--format", "xml"), "xml"),
        (("analyze", "temporal_breakdown", DDP, "--ranks", "0;2"), "'0;2'"),
        (("analyze", "temporal_breakdown", DDP, "--ranks", "5-2"), "'5-2'"),
        (("analyze", "temporal_breakdown", DDP, "--ranks", "9"), "no rank 9: there is 0-3"),
        (("analyze", "temporal_breakdown", DDP, "--ranks", "0,90-99999999999"), "no rank from 90"),
        (("analyze", "temporal_breakdown", DDP, "--iterations", "3"), "no iteration 3"),
        (("analyze", "temporal_breakdown", DDP, "--streams", "999"), "no stream 999"),
        (("analyze", "temporal_breakdown", DDP, "--window", "25ms:10ms"), "25ms:10ms"),
        (("analyze", "temporal_breakdown", DDP, "--window", "1h:2h"), "1h"),
        (("analyze", "temporal_breakdown", DDP, "--window", "10s:20s"), "holds nothing"),
        (("analyze", "temporal_breakdown", DDP, "--window", "0.5ns:2"), "finer than a nanosecond"),
        (("analyze", "temporal_breakdown", DDP, "--option", "by"), "'by'"),
        (("analyze", "temporal_breakdown", DDP, "--option", "by=moon"), "rank|iteration"),
        (("analyze", "temporal_breakdown", DDP, "--option", "moon=1"), "its options are by"),
        (("analyze", "comm_comp_overlap", DDP, "--option", "moon=1"), "it has none"),
        (("analyze", "kernel_breakdown", DDP, "--option", "top=two"), "INTEGER"),
        (("analyze", "kernel_breakdown", DDP, "--option", "share=7"), "between 0 and 1"),
        (("analyze", "temporal_breakdown", DDP, "--limit", "-2"), "--limit"),
        (("report", DDP, "-o", "r.html", "--panels", "moon"), "moon"),
    ],
)
def test_bad_usage(run: Run, argv: tuple[Any, ...], word: str) -> None:
    failed(run(*argv), 2, word)


@pytest.mark.parametrize("command", [("summary",), ("health",), ("analyze", "temporal_breakdown")])
def test_no_trace_there(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    failed(run(*command, tmp_path / "nowhere"), 3, "nowhere")
    failed(run(*command, tmp_path), 3)
    (tmp_path / "a.json").write_text("not json at all")
    failed(run(*command, tmp_path), 3, "a.json")
    failed(run(*command, "nosuchscheme://a/b"), 3, "nosuchscheme")


def test_missing_data_comes_with_its_remedy(run: Run) -> None:
    failed(run("analyze", "cupti_counters", DDP), 4, "CUPTI", "Record with")


def test_host_only_trace(run: Run) -> None:
    path = shared_trace("hta/cpu_only")
    failed(run("analyze", "temporal_breakdown", path), 4, "ProfilerActivity.CUDA")
    assert run("analyze", "op_counts", path).code == 0
    summary = run("summary", path)
    assert summary.code == 0
    assert summary.out.count("no device events") == 2  # the headline, and the question that it leaves open
    assert run("summary", path, "--json").json["answers"]["idle_breakdown"]["missing"]["remedy"]
    assert run("health", path).code == 0
    assert run("health", path, "--fail-on", "warning").code == 1


def test_one_corrupt_file_among_good_ones(run: Run, tmp_path: Path) -> None:
    for file in sorted(DDP.iterdir())[:2]:
        shutil.copy(file, tmp_path)
    (tmp_path / "rank-2.json.gz").write_bytes(b"\x1f\x8b broken")
    done = run("analyze", "temporal_breakdown", tmp_path, "--format", "json")
    assert done.code == 0
    assert [row["rank"] for row in done.json["rows"]] == [0, 1]
    assert done.err.count("\n") == 1 and "warning: rank-2.json.gz is left out" in done.err
    assert run("summary", tmp_path, "-q").err == ""
    assert "rank-2.json.gz" in run("summary", tmp_path, "--json").json["job"]["failed"]
    health = run("health", tmp_path)
    assert (health.code, health.err) == (1, "")
    assert "unreadable" in health.out and "rank-2.json.gz" in health.out
    assert run("health", tmp_path, "--fail-on", "never").code == 0
    counts = run("health", tmp_path, "--json").json["counts"]
    assert counts["error"] == 1


def test_clean_trace_is_healthy(run: Run) -> None:
    done = run("health", DDP, "--fail-on", "warning")
    assert done.code == 0
    assert done.out.startswith("No errors or warnings in 4 ranks.")


def test_output_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    failed(run("summary", DDP, "-o", tmp_path), 5, "folder")
    failed(run("health", DDP, "-o", tmp_path / "no" / "where"), 5, "no folder")
    failed(run("report", DDP, "-o", tmp_path / "no" / "where.html"), 5, "no folder")


def test_defects_are_reported_as_such(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_kind: str) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("hta_widgets.cli.analyze.known_kind", broken)
    failed(run("analyze", "temporal_breakdown", DDP), 70, r"RuntimeError: two\nlines", "--debug")
    done = run("analyze", "temporal_breakdown", DDP, "--debug")
    assert done.code == 70 and "Traceback" in done.err


def test_interrupted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_kind: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hta_widgets.cli.analyze.known_kind", interrupted)
    assert run("analyze", "temporal_breakdown", DDP) == Done(130, "", "")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hta-widgets ")
    assert main(["--help"]) == 0
    assert "the trace lacks what the question needs" in capsys.readouterr().out
    assert main(["analyze", "--list"]) == 0
    listed = capsys.readouterr().out
    for analysis in kinds.ANALYSES.values():
        assert analysis.kind in listed and analysis.title in listed


def test_page_tells_every_code() -> None:
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    for line in codes_in_words().splitlines():
        code, words = line.split(maxsplit=1)
        assert f"| {code} | {words}" in page


def test_a_wrong_path_is_refused_at_once_with_what_lies_there(run: Run, tmp_path: Path) -> None:
    for name in ("run_17", "run_18"):
        (tmp_path / name).mkdir()
    failed(run("diagnose", tmp_path / "rn_17"), 3, "did you mean 'run_17'?", "holds run_17 and run_18")
    failed(run("event", tmp_path / "run_17" / "a" / "b", "0:1"), 3, "run_17 is empty")
    for number in range(9):
        (tmp_path / "run_18" / f"{number}.json").touch()
    failed(
        run("summary", tmp_path / "run_18" / "moon"),
        3,
        "holds 0.json, 1.json, 2.json, 3.json, 4.json and 4 more",
    )
