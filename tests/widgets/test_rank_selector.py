"""The selector of many ranks: which stand out, who waits, and which belong together."""

import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hta_widgets import RankSelector, Trace, analysis
from hta_widgets.analysis.findings import judged_scope
from hta_widgets.charts.rank_outliers import outliers
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.rank_groups import rank_groups
from tests.job.many_ranks import write_job
from tests.job.parallel_jobs import ParallelJob
from tests.trace.helpers import kernel, write

PARTS = {"compute_ns": "Compute", "idle_ns": "Idle"}


def split(*compute: int, whole: int = 1000) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "rank": range(len(compute)),
            "whole_ns": whole,
            "compute_ns": compute,
            "idle_ns": [whole - own for own in compute],
        }
    )


def found(frame: pd.DataFrame) -> list[int]:
    return [one["rank"] for one in outliers(frame, "whole_ns", PARTS)]


def slowly(frame: pd.DataFrame) -> set[int]:
    """The same by plain loops, with the median of Python's library."""
    unlike = set()
    for column in PARTS:
        values = frame[column].tolist()
        middle = statistics.median(values)
        usual = statistics.median(abs(value - middle) for value in values)
        for rank, value, whole in zip(frame["rank"], values, frame["whole_ns"], strict=True):
            off = abs(value - middle)
            if whole and off > 5 * 1.4826 * usual and off >= 0.05 * whole:
                unlike.add(rank)
    return unlike


def test_the_slow_rank_stands_out_and_says_why(tmp_path: Path) -> None:
    selector = RankSelector(write_job(tmp_path / "job", 16, slow=11))
    settle([selector])
    (only,) = selector.outliers
    assert only["rank"] == 11
    frame = analysis.temporal_breakdown(selector.trace, judged_scope(selector.trace))
    own, usual = frame["compute_ns"].iloc[11], frame["compute_ns"].median()
    share = 100 * (own - usual) / frame["window_ns"].iloc[11]
    assert only["why"] == f"compute 1.46 ms, median {usual / 1000:.0f} µs (+{share:.1f} % of the time)"


def test_what_stands_out_and_what_nearly_does() -> None:
    assert found(split(500, 500, 500, 500, 560)) == [4]
    assert found(split(500, 500, 500, 500, 549)) == []  # below 5 % of the time
    assert found(split(400, 450, 500, 550, 600, 640)) == []  # all differ
    assert found(split(500, 500, 900)) == []  # of three none is usual
    assert found(split(500, 500, 500, 500, 100, 700)) == [4, 5]  # the farthest first
    less = split(500, 500, 500, 500, 500)
    less.loc[4, "compute_ns"] = 100  # and no other part is longer for it
    assert found(less) == [4]
    assert found(split(0, 0, 0, 0, 0, whole=0)) == []
    assert len(found(split(*[500] * 99, *range(700, 740)))) == 16


def test_outliers_are_those_of_a_plain_computation() -> None:
    random = np.random.default_rng(7)
    for _ in range(40):
        values = random.normal(500, random.uniform(1, 80), 15).astype(int).tolist()
        frame = split(*values, *random.integers(0, 1000, 3).tolist())
        assert set(found(frame)) == slowly(frame)


def test_waits_are_those_of_the_analysis(tmp_path: Path) -> None:
    selector = RankSelector(write_job(tmp_path / "job", 8, slow=5))
    answer: dict[str, Any] = selector.ask("waits", {})[0]
    waiting, caused = [0] * 8, [0] * 8
    for row in analysis.rank_waits(selector.trace).to_dict("records"):
        waiting[row["rank"]] += row["wait_ns"]
        if row["awaited"] >= 0:
            caused[row["awaited"]] += row["wait_ns"]
    assert answer == {"waits": {"waiting": waiting, "caused": caused}, "missing": ""}
    assert caused[5] == sum(waiting) > 0


def test_where_nothing_is_exchanged_it_says_why_nobody_waits(tmp_path: Path) -> None:
    for rank in range(2):
        write(tmp_path / f"rank{rank}.json", [kernel("gemm", 0, 10)], distributedInfo={"rank": rank})
    answer = RankSelector(tmp_path).ask("waits", {})[0]
    assert answer["waits"] is None
    assert "communication" in answer["missing"]


@pytest.mark.parametrize(("hosts", "ways"), [("aabb", 1), ("aaaa", 0), ("aab", 1)])
def test_ranks_are_grouped_by_their_hosts(tmp_path: Path, hosts: str, ways: int) -> None:
    for rank, host in enumerate(hosts):
        write(
            tmp_path / f"rank{rank}.json", [kernel("gemm", 0, 10)],
            distributedInfo={"rank": rank}, host_name=f"gpu-{host}",
        )  # fmt: skip
    groups = rank_groups(Trace.open(tmp_path))
    assert len(groups) == ways
    for way in groups:
        assert way["name"] == "Host"
        assert [way["groups"][number] for number in way["of"]] == [f"gpu-{host}" for host in hosts]


def test_the_groups_of_a_parallel_job_are_those_it_was_made_with(tmp_path: Path) -> None:
    job = ParallelJob(tensor=2, data=2, pipeline=2, microbatches=2)
    trace = job.open(tmp_path)
    ways = {way["name"]: way for way in rank_groups(trace)}
    for dimension in ("tensor", "data", "pipeline"):
        way = ways[f"{dimension.capitalize()} group"]
        together = {
            rank: frozenset(
                other for other, at in zip(trace.ranks, way["of"], strict=True) if at == way["of"][place]
            )
            for place, rank in enumerate(trace.ranks)
        }
        assert together == {rank: frozenset(own[dimension].ranks) for rank, own in job.groups.items()}
    stages = ways["Pipeline stage"]
    assert sorted(stages["groups"]) == ["stage 0", "stage 1"]
    for rank, number in zip(trace.ranks, stages["of"], strict=True):
        stage = job.groups[rank]["pipeline"].ranks.index(rank)
        assert stages["groups"][number] == f"stage {stage}"
