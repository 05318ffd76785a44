"""`hta-widgets what-if`: the numbers of `analysis.what_if`, in a sentence and in every format."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Scope, analysis, edits, examples
from hta_widgets.analysis.replay.answer import sentence
from hta_widgets.formatting import duration, percent
from tests.analysis.kineto_file import write
from tests.cli.conftest import Run
from tests.replay.program import only_a_script, steps_of
from tests.support import shared_trace

DDP = examples.path("ddp_4ranks")
CHANGE = ("--edit", "kernels(2.0, name='*gemm*')", "--edit", "edits.communication(0.5)")
EDITS = [edits.kernels(2.0, name="*gemm*"), edits.communication(0.5)]


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    return analysis.what_if(examples.load("ddp_4ranks"), EDITS)


def test_the_numbers_are_those_of_the_api(run: Run, expected: pd.DataFrame) -> None:
    written = run("what-if", DDP, *CHANGE, "--format", "json").json
    assert written["kind"] == "what_if"
    assert written["edits"] == [edit.expression for edit in EDITS]
    assert written["scope"]["ranks"] is None and written["sentence"] == sentence(expected)
    assert list(written["columns"]) == list(expected.columns)
    for column in ("rank", "clock", "before_ns", "low_ns", "after_ns", "high_ns", "idle_ns", "inferred"):
        assert [row[column] for row in written["rows"]] == expected[column].tolist()
    assert written["rows"][0]["iteration"] is None
    table = pd.read_csv(io.StringIO(run("what-if", DDP, *CHANGE, "--format", "csv").out))
    assert table["after_ns"].tolist() == expected["after_ns"].tolist()


def test_where_the_new_path_leads(run: Run) -> None:
    arguments = ("--ranks", "1", "--path", "--format", "json")
    rows = run("what-if", DDP, *CHANGE, *arguments).json["rows"]
    expected = analysis.what_if(examples.load("ddp_4ranks"), EDITS, Scope(ranks=(1,)), path=True)
    parts = [column for column in expected if column.startswith("path_")]
    assert [[row[part] for part in parts] for row in rows] == expected[parts].to_numpy().tolist()
    assert [sum(row[part] for part in parts) for row in rows] == expected["after_ns"].tolist()


def test_it_takes_what_a_finding_prints(run: Run) -> None:
    path = examples.path("single_gpu_dataloader_stall")
    finding = analysis.overview(examples.load("single_gpu_dataloader_stall")).iloc[0]
    assert finding["edits"].startswith("[edits.without(")
    rows = run("what-if", path, "--edit", finding["edits"], "--format", "json").json["rows"]
    steps = [row for row in rows if row["iteration"] is not None]
    assert sum(row["before_ns"] - row["after_ns"] for row in steps) == finding["saving_ns"]


def test_a_part_of_the_job(run: Run) -> None:
    arguments = ("--ranks", "1-2", "--iterations", "11", "--format", "json")
    rows = run("what-if", DDP, *CHANGE, *arguments).json["rows"]
    scope = Scope(ranks=(1, 2), iterations=(11,))
    expected = analysis.what_if(examples.load("ddp_4ranks"), EDITS, scope)
    assert len(expected) == 2
    assert [(row["rank"], row["iteration"], row["after_ns"]) for row in rows] == list(
        expected[["rank", "iteration", "after_ns"]].itertuples(index=False, name=None)
    )


def test_the_table_begins_with_the_answer(run: Run, expected: pd.DataFrame) -> None:
    done = run("what-if", DDP, *CHANGE)
    first, empty, heading, *rows = done.out.splitlines()
    assert (done.code, done.err, empty) == (0, "", "")
    steps = expected.dropna(subset="iteration")
    before, after = steps["before_ns"].median(), steps["after_ns"].median()
    change = percent(100 * (after / before - 1))
    assert first.startswith(f"Step {duration(before)} -> {duration(after)} at the median ({change}")
    assert "; the recording " in first and first.endswith(").")
    assert heading.split()[:2] == ["rank", "iteration"] and len(rows) == len(expected)


def test_the_sentence_of_one_recording(run: Run) -> None:
    path = shared_trace("kineto/resnet50_num_workers_0")
    change = "without('enumerate(DataLoader)*', keep_ns=1400000)"
    first = run("what-if", path, "--edit", change).out.splitlines()[0]
    assert re.fullmatch(
        r"Step 155 ms -> 11[89] ms at the median \(−23\.\d %\); "
        r"the recording 929 ms -> 743 ms \(−20\.0 %\)\.", first,
    )  # fmt: skip


def rows_of(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["iteration", "before_ns", "low_ns", "after_ns", "high_ns"])


def test_a_sentence_says_what_there_is() -> None:
    whole, one = (pd.NA, 10_000_000, 8_000_000, 9_000_000, 9_500_000), (3, 4_000, 6_000, 6_000, 6_000)
    told = "The recording 10.0 ms -> 9.00 ms (−10.0 %; 8.00 ms to 9.50 ms)."
    assert sentence(rows_of(whole)) == told
    assert sentence(rows_of(one)) == "Step 4.00 µs -> 6.00 µs (+50.0 %)."
    both = (
        "Step 4.00 µs -> 6.00 µs (+50.0 %); the recording 10.0 ms -> 9.00 ms (−10.0 %; 8.00 ms to 9.50 ms)."
    )
    assert sentence(rows_of(whole, one)) == both
    assert sentence(rows_of(one, one)).startswith("Step 4.00 µs -> 6.00 µs at the median (+50.0 %)")
    assert sentence(rows_of()) == "No iteration to replay."


@pytest.mark.parametrize("edit", ["kernels", "kernels(0)", "gpus(2)", "__import__('os').abort()", ""])
def test_what_is_no_edit_is_bad_usage(run: Run, edit: str) -> None:
    done = run("what-if", DDP, "--edit", edit)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("hta-widgets: argument --edit: ") and done.err.count("\n") == 1


def test_an_edit_is_required(run: Run) -> None:
    done = run("what-if", DDP)
    assert done.code == 2 and "--edit" in done.err


def test_a_recording_that_cannot_be_trusted_is_missing_data(run: Run) -> None:
    done = run("what-if", shared_trace("hta/trace_filter"), "--edit", "host()")
    assert (done.code, done.out) == (4, "")
    assert "rank 0: events were removed from the file" in done.err and done.err.count("\n") == 1


def test_without_device_work_there_is_no_answer(run: Run) -> None:
    done = run("what-if", shared_trace("hta/cpu_only"), "--edit", "host()")
    assert done.code == 4 and "no device events" in done.err


def test_a_rank_that_is_left_out_is_named(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "0.json", only_a_script(), 0)
    write(tmp_path / "1.json", steps_of(300_000)[0], 1)
    done = run("what-if", tmp_path, "--edit", "kernels(2.0)")
    assert done.code == 0
    assert done.err.startswith("hta-widgets: warning: rank 0 is left out: for 100 % of the time")
    assert run("what-if", tmp_path, "--edit", "kernels(2.0)", "-q").err == ""
