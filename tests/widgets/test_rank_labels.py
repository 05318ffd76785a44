"""What ranks are called: number and place where files describe their groups, else the number alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hta_widgets import RankSelector, TimelineScrubber, Trace
from hta_widgets.trace.reader import cache
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.rank_labels import lane_labels, rank_options
from tests.job.parallel_jobs import MEGATRON, UNDEFINED, ParallelJob

GRID = ParallelJob(tensor=2, pipeline=2, data=2, microbatches=4)


def expected(rank: int) -> str:
    at = GRID.coordinates[rank]
    return f"stage {at['pipeline']}, replica {at['data']}, tensor rank {at['tensor']}"


def test_lanes_and_picker_name_the_place_of_each_rank(tmp_path: Path) -> None:
    trace = GRID.open(tmp_path)
    timeline, picker = TimelineScrubber(trace), RankSelector(trace)
    settle([timeline, picker])
    assert list(timeline.lanes["group"].unique()) == [f"Rank {rank} · {expected(rank)}" for rank in range(8)]
    timeline.lane_filter = "stage 1"
    shown = timeline.lanes[timeline.lanes["shown"]]
    assert set(shown["rank"]) == {rank for rank, at in GRID.coordinates.items() if at["pipeline"] == 1}
    assert [option["place"] for option in picker.options] == [expected(rank) for rank in range(8)]
    timeline.close()
    picker.close()


def test_replicas_of_one_rank_each_are_called_by_their_numbers(tmp_path: Path) -> None:
    trace = ParallelJob(data=4).open(tmp_path)
    assert lane_labels(trace, trace.ranks) == {rank: str(rank) for rank in range(4)}


def test_undescribed_groups_name_no_place(tmp_path: Path) -> None:
    trace = replace(GRID, described=UNDEFINED).open(tmp_path)
    assert {option["place"] for option in rank_options(trace)} == {""}


def test_files_of_two_jobs_name_no_place(tmp_path: Path) -> None:
    for name, job in {"one": GRID, "two": ParallelJob(pipeline=4, microbatches=4)}.items():
        (tmp_path / name).mkdir()
        job.open(tmp_path / name)
    both = Trace.open({0: tmp_path / "one/rank-0.json", 1: tmp_path / "two/rank-1.json"})
    assert both.several_jobs
    assert {option["place"] for option in rank_options(both)} == {""}


def test_names_take_no_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    GRID.open(tmp_path)
    read: list[Path] = []
    read_table = cache.read_table
    monkeypatch.setattr(cache, "read_table", lambda file: (read.append(file), read_table(file))[1])
    again = GRID.open(tmp_path)
    assert rank_options(again)[5]["place"] == expected(5)
    assert not read


def test_a_group_without_purpose_that_divides_the_job_leaves_places_unknown(tmp_path: Path) -> None:
    described = {**MEGATRON, "tensor": UNDEFINED["tensor"]}
    trace = replace(GRID, described=described).open(tmp_path)
    assert {option["place"] for option in rank_options(trace)} == {""}
