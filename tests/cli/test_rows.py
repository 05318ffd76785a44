"""`analyze` with --where, --sort, --top, --columns and --budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hta_widgets import analysis, examples
from hta_widgets.analysis.wholes import shown_scope
from hta_widgets.trace.scope import Scope
from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("opened_once")

DDP = examples.path("ddp_4ranks")
GAPS = ("analyze", "idle_gaps", DDP, "--format", "json")


def gaps() -> list[int]:
    trace = examples.load("ddp_4ranks")
    return analysis.idle_gaps(trace, shown_scope(trace, "idle_gaps", Scope()))["dur_ns"].tolist()


def test_what_matters_comes_first_and_says_what_is_left_out(run: Run) -> None:
    document = run(*GAPS).json
    found, known = [row["dur_ns"] for row in document["rows"]], gaps()
    assert found == sorted(known, reverse=True)[: len(found)]
    assert document["truncated"] == {"rows": len(found), "of": len(known)}


@pytest.mark.parametrize("budget", [450, 800, 4000])
def test_a_budget_is_kept_and_used(run: Run, budget: int) -> None:
    done = run(*GAPS, "--budget", budget)
    assert budget * 0.6 < len(done.out) / 4 <= budget
    assert json.loads(done.out)["rows"]


def test_all_rows_on_request_and_in_files(run: Run, tmp_path: Path) -> None:
    every = run(*GAPS, "--budget", "all").json
    assert every["truncated"] is None and len(every["rows"]) == len(gaps())
    path = tmp_path / "gaps.json"
    assert run("analyze", "idle_gaps", DDP, "-o", path).code == 0
    assert json.loads(path.read_text()) == every


def test_rows_that_fit_are_all_there(run: Run) -> None:
    document = run("analyze", "temporal_breakdown", DDP, "--format", "json").json
    assert document["truncated"] is None and len(document["rows"]) == 4


def test_an_order_of_choice(run: Run) -> None:
    own = [row["dur_ns"] for row in run(*GAPS, "--budget", "all", "--sort", "none").json["rows"]]
    assert own == gaps()
    up = [row["dur_ns"] for row in run(*GAPS, "--budget", "all", "--sort", "dur_ns:asc").json["rows"]]
    assert up == sorted(own)
    ranks = [row["rank"] for row in run(*GAPS, "--budget", "all", "--sort", "rank").json["rows"]]
    assert ranks == sorted(ranks, reverse=True)
    done = run("analyze", "idle_gaps", DDP, "--format", "csv", "--columns", "dur_ns")
    assert [int(line) for line in done.out.split()[1:]] == gaps()  # files for programs keep their order


def test_conditions(run: Run) -> None:
    def found(*where: str) -> list[dict[str, object]]:
        words = [word for each in where for word in ("--where", each)]
        rows: list[dict[str, object]] = run(*GAPS, "--budget", "all", *words).json["rows"]
        return rows

    known = gaps()
    assert len(found("dur_ns>10us")) == sum(ns > 10_000 for ns in known) > 0
    assert len(found("dur_ns > 1e4")) == len(found("dur_ns>10us"))
    assert len(found("dur_ns<=10us")) == sum(ns <= 10_000 for ns in known)
    assert {row["rank"] for row in found("rank=2", "dur_ns>10us")} == {2}
    assert {row["rank"] for row in found("rank!=2")} == {0, 1, 3}
    assert {row["cause"] for row in found("cause=data_stall")} == {"data_stall"}
    assert {row["cause"] for row in found("cause~STALL")} == {"data_stall"}
    assert found("dur_ns>10s") == []


def test_columns_and_rows_of_choice(run: Run) -> None:
    document = run(*GAPS, "--columns", "cause,dur_ns", "--top", "3").json
    assert [list(row) for row in document["rows"]] == [["cause", "dur_ns"]] * 3
    assert document["truncated"] == {"rows": 3, "of": len(gaps())}
    assert list(document["columns"]) == ["cause", "dur_ns"]


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (("--sort", "dur"), "did you mean 'dur_ns'"),
        (("--sort", "dur_ns:up"), "COLUMN:asc"),
        (("--columns", "cause,moon"), "no column 'moon'"),
        (("--where", "dur_ns"), "is not a condition"),
        (("--where", "moon>1"), "no column 'moon'"),
        (("--where", "dur_ns>long"), "holds numbers"),
        (("--where", "rank>1ms"), "holds numbers"),
        (("--where", "cause>1"), "holds text"),
        (("--where", "__import__('os')=1"), "is not a condition"),
        (("--budget", "0"), "number of tokens"),
        (("--budget", "much"), "number of tokens"),
        (("--window", "10:20ms"), "has no unit"),
    ],
)
def test_mistakes_are_named(run: Run, argv: tuple[str, ...], word: str) -> None:
    done = run(*GAPS, *argv)
    assert (done.code, done.out) == (2, "") and word in done.err


def test_a_window_may_begin_at_0(run: Run) -> None:
    assert run(*GAPS, "--window", "0:20ms").json["scope"]["window_ns"] == [0, 20_000_000]


def test_the_critical_path_by_name(run: Run) -> None:
    document = run("analyze", "critical_path_summary", DDP, "--format", "json", "--ranks", "0").json
    path = run("analyze", "critical_path", DDP, "--format", "json", "--ranks", "0", "--budget", "all").json
    total = sum(row["dur_ns"] for row in path["rows"])
    first = document["rows"][0]
    own = [
        row for row in path["rows"] if (row["name"], row["bound_by"]) == (first["name"], first["bound_by"])
    ]
    assert (first["dur_ns"], first["count"]) == (sum(row["dur_ns"] for row in own), len(own))
    assert first["share_pct"] == pytest.approx(100 * first["dur_ns"] / total)
    assert first["event_id"] == max(own, key=lambda row: row["dur_ns"])["event_id"]
    assert len(document["rows"]) <= 30
    times = [row["dur_ns"] for row in document["rows"]]
    assert times == sorted(times, reverse=True)


def test_modules_by_class(run: Run) -> None:
    path = examples.path("gpt2_ddp")
    command = ("analyze", "operators", path, "--format", "json", "--budget", "all", "--ranks", "0")
    each = run(*command, "--option", "by=module").json["rows"]
    classes = run(*command, "--option", "by=module_class").json["rows"]
    assert {row["name"] for row in classes} == {row["name"].rpartition("_")[0] or row["name"] for row in each}
    for row in classes:
        own = [other for other in each if (other["name"].rpartition("_")[0] or other["name"]) == row["name"]]
        for column in ("calls", "kernels", "device_self_ns", "host_self_ns"):
            assert row[column] == sum(other[column] for other in own)
    assert len(classes) < len(each)
