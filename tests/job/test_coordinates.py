"""Places of ranks by their process groups: those of the played jobs, or none; and so in `slowdown`."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from hta_widgets.analysis import slowdown
from hta_widgets.analysis.core.components import components
from hta_widgets.analysis.parallelism import coordinates as of_groups
from hta_widgets.analysis.parallelism.coordinates import coordinates, listed_coordinates
from hta_widgets.analysis.parallelism.grid import UNKNOWN, purposes
from hta_widgets.trace.scope import Scope
from tests.job.parallel_jobs import MEGATRON, MESH, UNDEFINED, ParallelJob, opened
from tests.job.test_recordings import culprits, job_row
from tests.support import crossed
from tests.verdicts.planted.rank_programs import Pace

pytestmark = pytest.mark.slow

JOBS = {
    "pipeline": ParallelJob(pipeline=4, microbatches=8),
    "DualPipe": ParallelJob(pipeline=4, microbatches=8, schedule="DualPipe", chunks=2),
    "tensor": ParallelJob(tensor=4, data=2),
    "hybrid": ParallelJob(data=4, shard=2, layers=4),
    "context": ParallelJob(context=4, data=2),
    "three": ParallelJob(tensor=2, pipeline=2, data=2, microbatches=4),
    "context of stages": ParallelJob(context=2, pipeline=2, data=2, microbatches=4),
    "experts of stages": ParallelJob(data=4, expert=2, pipeline=2, microbatches=4),
}
ALONG = {"stage": "pipeline", "replica": "data", "tensor": "tensor", "context": "context"}


@pytest.mark.parametrize(("name", "described"), crossed(JOBS, [MEGATRON, MESH]))
def test_described_groups_tell_every_place(name, described):
    job = replace(JOBS[name], described=described)
    found = coordinates(opened(job))
    for attribute, dimension in ALONG.items():
        truth = {rank: place[dimension] for rank, place in job.coordinates.items()}
        assert getattr(found, attribute) == truth


@pytest.mark.parametrize("name", JOBS)
def test_where_only_traffic_tells_places_are_right_or_unknown(name):
    job = replace(JOBS[name], described=UNDEFINED)
    found = coordinates(opened(job))
    assert found is None or found.stage == {rank: at["pipeline"] for rank, at in job.coordinates.items()}
    assert found is None or found.replica == {rank: at["data"] for rank, at in job.coordinates.items()}
    assert (found is None) == (name not in ("pipeline", "hybrid", "context"))


@pytest.mark.parametrize(("name", "described"), crossed(JOBS, [MEGATRON, MESH]))
def test_files_alone_tell_the_same_places(name, described, tmp_path):
    trace = replace(JOBS[name], described=described).open(tmp_path, without=(1,))
    assert listed_coordinates(trace) == coordinates(trace)


@pytest.mark.parametrize("name", JOBS)
def test_files_that_describe_no_group_tell_no_place(name):
    assert listed_coordinates(opened(replace(JOBS[name], described=UNDEFINED))) is None


@pytest.mark.parametrize(("size", "told"), [(8, True), (7, False)])
def test_a_group_of_unknown_purpose_matters_unless_it_holds_all_ranks(monkeypatch, size, told):
    trace = opened(JOBS["tensor"])
    known = purposes(trace, Scope())
    other = known[0]._replace(group=SimpleNamespace(size=size), dimension=UNKNOWN, order=())
    expected = coordinates(trace)
    monkeypatch.setattr(of_groups, "purposes", lambda *_: [*known, other])
    assert expected is not None and trace.job_size == 8
    assert coordinates(trace) == (expected if told else None)


def test_places_of_chosen_ranks_are_those_in_the_job():
    job = JOBS["three"]
    found = coordinates(opened(job), (3, 5, 6))
    assert found.stage == {rank: job.coordinates[rank]["pipeline"] for rank in (3, 5, 6)}
    assert found.tensor == {rank: job.coordinates[rank]["tensor"] for rank in (3, 5, 6)}


def places(frame: pd.DataFrame) -> dict[str, str]:
    return frame[frame["scope"] == "rank"].set_index("key")["place"].to_dict()


def test_slowdown_names_the_place_of_a_slow_rank(tmp_path):
    frame = slowdown(replace(JOBS["three"], paces={5: Pace(1.5)}).open(tmp_path))
    assert culprits(frame) == [("rank", "5", "same kernels slower")]
    assert places(frame)["5"] == "stage 1, replica 0, tensor rank 1"
    assert job_row(frame)["evidence"].startswith("rank 5 (stage 1, replica 0, tensor rank 1). Its repair")
    counts = frame["scope"].value_counts()
    assert [counts.get(scope, 0) for scope in ("stage", "replica", "tensor", "context")] == [2, 2, 2, 0]


def test_ranks_of_a_tensor_group_are_no_stages(tmp_path):
    """The ranks that hold the last part of each layer are slow: they are of no stage, and no replica."""
    slow = {rank: Pace(1.5) for rank in (3, 7, 11, 15)}
    frame = slowdown(ParallelJob(tensor=4, data=4, microbatches=4, paces=slow).open(tmp_path))
    assert culprits(frame) == [("tensor", "3", "more work")]
    assert not frame["scope"].isin(("stage", "context")).any()
    assert places(frame)["7"] == "replica 1, tensor rank 3"
    assert "tensor rank 3 (ranks 3, 7, 11, 15). Its repair" in job_row(frame)["evidence"]


def test_ranks_without_a_pipeline_are_told_by_their_numbers(tmp_path):
    frame = slowdown(replace(JOBS["hybrid"], paces={2: Pace(1.5)}).open(tmp_path))
    assert set(places(frame).values()) == {""}
    assert job_row(frame)["evidence"].startswith("rank 2. Its repair")
    assert not frame["scope"].eq("stage").any()


def test_components_are_those_of_a_search_from_each_node():
    edges = [(3, 1), (5, 3), (2, 6), (4, 4), (6, 0)]
    near = {node: {a + b - node for a, b in edges if node in (a, b)} for node in range(8)}
    for node, lowest in components(range(8), edges).items():
        reached = {node}
        while (more := reached | set().union(*(near[at] for at in reached))) != reached:
            reached = more
        assert lowest == min(reached)
