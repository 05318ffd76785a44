"""Where an answer goes: which format a file gets, and that it is there whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.cli.output import write_lines
from tests.analysis.kineto_file import event, kernel, launch, write
from tests.cli.conftest import Run

DDP = examples.path("ddp_4ranks")


def test_the_format_that_is_asked_for_counts_more_than_the_ending(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "answer.csv"
    assert run("analyze", "temporal_breakdown", DDP, "--format", "json", "-o", path).code == 0
    assert json.loads(path.read_text())["kind"] == "temporal_breakdown"


def test_an_ending_in_capitals_is_the_same_format(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ANSWER.CSV"
    assert run("analyze", "temporal_breakdown", DDP, "-o", path).code == 0
    assert pd.read_csv(path)["rank"].tolist() == [0, 1, 2, 3]


def test_a_csv_has_as_many_rows_as_are_asked_for(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "gaps.csv"
    assert run("analyze", "idle_gaps", DDP, "--limit", "5", "-o", path).code == 0
    assert len(pd.read_csv(path)) == 5


def test_a_workbook_has_the_frame_as_its_sheet(run: Run, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "gaps.xlsx"
    assert run("analyze", "temporal_breakdown", DDP, "-o", path).code == 0
    sheet = openpyxl.load_workbook(path)["temporal_breakdown"]
    assert [row[0] for row in sheet.iter_rows(values_only=True)] == ["rank", 0, 1, 2, 3]


def test_a_workbook_of_the_whole_run(run: Run, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "run.xlsx"
    assert run("report", DDP, "-o", path, "--ranks", "2").out.strip() == str(path)
    sheet = openpyxl.load_workbook(path)["kernels"]
    assert {row[0] for row in sheet.iter_rows(values_only=True, min_row=2)} == {2}


@pytest.mark.parametrize("command", [("analyze", "overview"), ("summary",), ("health",), ("report",)])
@pytest.mark.parametrize("ending", [".xls", ".pickle", ".7"])
def test_an_ending_without_a_format_is_refused(
    run: Run, tmp_path: Path, command: tuple[str, ...], ending: str
) -> None:
    path = tmp_path / f"answer{ending}"
    done = run(*command, DDP, "-o", path)
    assert done.code == 2 and ending in done.err and not path.exists()


@pytest.mark.parametrize("command", ["summary", "health"])
def test_a_page_of_text_is_no_table(run: Run, tmp_path: Path, command: str) -> None:
    for ending in (".csv", ".parquet", ".xlsx"):
        assert run(command, DDP, "-o", tmp_path / f"page{ending}").code == 2
    assert run(command, DDP, "-o", tmp_path / "page.json").code == 0
    assert json.loads((tmp_path / "page.json").read_text())["kind"] == command
    assert run(command, DDP, "-o", tmp_path / "page.txt").code == 0
    assert not (tmp_path / "page.txt").read_text().startswith("{")


@pytest.mark.parametrize("name", ["answer", "answer.txt", "answer.LOG"])
def test_a_text_is_a_table(run: Run, tmp_path: Path, name: str) -> None:
    assert run("analyze", "temporal_breakdown", DDP, "-o", tmp_path / name).code == 0
    assert "compute" in (tmp_path / name).read_text()


def test_a_link_is_written_through(run: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "real.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    assert run("analyze", "temporal_breakdown", DDP, "-o", link).code == 0
    assert link.is_symlink() and pd.read_csv(target)["rank"].tolist() == [0, 1, 2, 3]


def test_an_answer_that_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "first"
        raise RuntimeError("broken")

    path = tmp_path / "answer.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="broken"):
        write_lines(str(path), lines())
    assert [file.name for file in tmp_path.iterdir()] == ["answer.txt"]
    assert path.read_text() == "old"


def test_iterations_are_those_of_the_chosen_ranks(run: Run, tmp_path: Path) -> None:
    for rank, steps in enumerate((2, 3)):
        events = []
        for step in range(steps):
            at = 100_000 * step
            events += [
                event("user_annotation", f"ProfilerStep#{step}", at, 100_000),
                launch(at + 10, step + 1),
                kernel("k", at + 100, 1_000, correlation=step + 1),
            ]
        write(tmp_path / f"{rank}.json", events, rank)
    command = ("analyze", "temporal_breakdown", tmp_path, "--iterations", "2", "--format", "json", "--ranks")
    refused = run(*command, "0")
    assert (refused.code, refused.out) == (2, "") and "no iteration 2: there is 0-1" in refused.err
    assert run(*command, "1").code == 0


def test_a_summary_lists_ten_kernels_of_each_class_and_sums_up_the_others(run: Run) -> None:
    answer = run("summary", DDP, "--json").json
    rows = pd.DataFrame(answer["answers"]["kernel_breakdown"]["rows"])
    steps = ",".join(map(str, answer["scope"]["iterations"]))
    command = ("analyze", "kernel_breakdown", DDP, "--option", "by=job", "--iterations", steps)
    every = pd.DataFrame(run(*command, "--format", "json").json["rows"])
    assert (every["event_class"] == "compute").sum() > 11
    for name, of_class in every.groupby("event_class"):
        shown, sums = rows[rows["event_class"] == name], of_class["sum_ns"].sort_values(ascending=False)
        assert shown["sum_ns"].tolist()[:10] == sums.tolist()[:10]
        assert shown["sum_ns"].tolist()[10:] == ([sums.iloc[10:].sum()] if len(sums) > 10 else [])
