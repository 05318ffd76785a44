"""The grid of ranks: that of simulated jobs, by description or traffic, and unknown where nothing tells."""

from __future__ import annotations

import pytest

from hta_widgets import Trace, examples
from hta_widgets.analysis import ANALYSES, parallelism
from hta_widgets.analysis.parallelism.dimensions import EXPERT, PIPELINE, described
from hta_widgets.analysis.parallelism.grid import groups_of_experts, may_have_pipeline, purposes
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.scope import Scope
from tests.job.parallel_jobs import MEGATRON, MESH, UNDEFINED, ParallelJob, opened, towards
from tests.support import shared_trace

JOBS = {
    "tensor, data": ParallelJob(tensor=2, data=2, microbatches=2),
    "pipeline": ParallelJob(pipeline=4, microbatches=4),
    "interleaved": ParallelJob(pipeline=4, schedule="interleaved 1F1B", microbatches=4, chunks=2),
    "hybrid": ParallelJob(data=4, shard=2, described=MESH),
    "context": ParallelJob(context=4, data=2, microbatches=2),
    "experts": ParallelJob(data=4, expert=2, microbatches=2),
    "all": ParallelJob(tensor=2, context=2, data=2, pipeline=2, expert=2, microbatches=2),
}
# Without descriptions, what traffic alone tells; the rest is unknown.
BY_TRAFFIC = {
    "tensor, data": ParallelJob(tensor=2, data=2, microbatches=2, described=UNDEFINED),
    "pipeline": ParallelJob(pipeline=4, microbatches=4, described=UNDEFINED),
    "hybrid": ParallelJob(data=4, shard=2, described=UNDEFINED),
    "ring": ParallelJob(context=4, microbatches=2, described=UNDEFINED),
    "experts": ParallelJob(data=4, expert=4, microbatches=2, described=UNDEFINED, tokens=towards(1, times=2)),
}


def truth(job: ParallelJob) -> set[tuple[int, str, str, int, int]]:
    """rank, dimension, role, coordinate and size, from how the job was made."""
    return {
        (rank, "data" if name in ("shard", "replicate") else name,
         name if name in ("shard", "replicate") else "", group.ranks.index(rank), len(group.ranks))
        for rank, own in job.groups.items()
        for name, group in own.items()
    }  # fmt: skip


def told(trace: Trace) -> set[tuple[int, str, str, int, int]]:
    frame = parallelism(trace)
    return set(frame[["rank", "dimension", "role", "coordinate", "size"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    "job", [*JOBS.values(), *BY_TRAFFIC.values()], ids=[*JOBS, *(f"{n}, plain" for n in BY_TRAFFIC)]
)
def test_pipelines_and_experts_are_told_early(job):
    """Never no where there is such a group, and no of jobs that only add up gradients."""
    trace = opened(job)
    told = purposes(trace, Scope())
    experts = {each.group.members for each in told if EXPERT in each.dimension.split(" and ")}
    assert {group.members for group in groups_of_experts(trace)} == experts
    has_pipeline = any(PIPELINE in each.dimension.split(" and ") for each in told)
    assert may_have_pipeline(trace) or not has_pipeline
    if not has_pipeline and job.context == job.pipeline == job.expert == 1:
        assert not may_have_pipeline(trace)


@pytest.mark.parametrize("name", JOBS)
def test_described_groups(name):
    assert told(opened(JOBS[name])) == truth(JOBS[name])


@pytest.mark.parametrize("name", BY_TRAFFIC)
def test_groups_that_only_their_traffic_tells(name):
    trace = opened(BY_TRAFFIC[name])
    assert told(trace) == truth(BY_TRAFFIC[name])
    assert set(parallelism(trace)["known_by"]) == {"traffic"}


def test_stages_are_in_the_order_of_the_microbatches():
    """Whatever the order of their numbers, the first stage begins with a send."""
    frame = parallelism(opened(BY_TRAFFIC["pipeline"]))
    assert frame["coordinate"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("job", "without", "reason"),
    [
        # two ranks that send to each other: a pipeline, or a ring
        (ParallelJob(pipeline=2, microbatches=4, described=UNDEFINED), (), "only sends and receives"),
        (ParallelJob(context=2, microbatches=2, described=UNDEFINED), (), "only sends and receives"),
        # a chain that comes round again is no chain, and may be a ring that goes both ways
        (
            ParallelJob(
                pipeline=4, schedule="interleaved 1F1B", microbatches=4, chunks=2, described=UNDEFINED
            ),
            (),
            "only sends and receives",
        ),
        # with a rank missing, a ring looks like a chain
        (ParallelJob(context=4, microbatches=2, described=UNDEFINED), (2,), "only sends and receives"),
    ],
)
def test_what_traffic_cannot_tell_is_unknown(job, without, reason, tmp_path):
    frame = parallelism(job.open(tmp_path, without))
    assert set(frame["dimension"]) == {"unknown"}
    assert frame["evidence"].str.contains(reason).all()
    assert "is unknown" in ANALYSES["parallelism"].sentence(frame)


def test_equal_splits_do_not_tell_experts(tmp_path):
    """All-to-all in equal parts also moves the heads of sequences."""
    job = ParallelJob(
        data=4, expert=4, described=UNDEFINED, tokens=lambda step, exchange, source, destination: 4096
    )
    frame = parallelism(job.open(tmp_path))
    assert set(frame["dimension"]) == {"data", "unknown"}


def test_a_rank_that_was_not_recorded_keeps_its_place(tmp_path):
    frame = parallelism(JOBS["pipeline"].open(tmp_path, (0, 2)))
    assert frame[["rank", "coordinate"]].values.tolist() == [[1, 1], [3, 3]]


def test_ranks_of_the_scope():
    trace = opened(JOBS["all"])
    whole = parallelism(trace)
    part = parallelism(trace, Scope(ranks=(3,)))
    assert part.equals(whole[whole["rank"] == 3].reset_index(drop=True))


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("TENSOR_MODEL_PARALLEL_GROUP", (("tensor",), "")),
        ("DATA_PARALLEL_GROUP_WITH_CP", (("data", "context"), "")),
        ("MODEL_PARALLEL_GROUP", (("pipeline", "tensor"), "")),
        ("EXPERT_DATA_PARALLEL_GROUP", (("data", "expert"), "")),
        ("EMBEDDING_GROUP", (("embedding",), "")),
        ("mesh_dp_shard", (("data",), "shard")),
        ("mesh_dp_shard_cp", (("data", "context"), "")),
        ("mesh_default", ((), "")),
        ("mesh_dim_0", ((), "")),
        # parts of words name nothing
        ("wrapper", ((), "")),
        ("undefined", ((), "")),
        ("default_pg", ((), "")),
    ],
)
def test_words(description, expected):
    assert described(description) == expected


@pytest.mark.parametrize("names", [MEGATRON, MESH])
def test_every_dimension_is_described_by_its_own_name(names):
    for dimension, description in names.items():
        found, _ = described(description)
        assert found == ("data" if dimension in ("shard", "replicate") else dimension,)


@pytest.mark.parametrize(
    ("name", "size", "evidence"),
    [
        ("hta/nccl_parser_config/nccl_data.json.gz", 2, "5 buckets"),
        ("tracelens/mi300/resnet_act_checkpoint.json.gz", 8, "2 buckets"),
    ],
)
def test_recorded_jobs(name, size, evidence):
    row = parallelism(Trace.open(shared_trace(name))).iloc[0]
    assert (row["dimension"], row["coordinate"], row["size"], row["known_by"]) == ("data", 0, size, "traffic")
    assert evidence in row["evidence"]


@pytest.mark.parametrize("name", ["hta/trace_filter", "hta/trace_diff/control"])
def test_jobs_of_several_ranks_without_groups(name):
    with pytest.raises(MissingDataError, match="process groups"):
        parallelism(Trace.open(shared_trace(name)))


def test_one_rank_has_no_group():
    frame = parallelism(examples.load("gpt2_baseline"))
    assert frame.empty
    assert ANALYSES["parallelism"].sentence(frame).startswith("No process group")


def test_the_sentence():
    frame = parallelism(opened(JOBS["hybrid"]))
    assert ANALYSES["parallelism"].sentence(frame) == (
        "Ranks per group along each dimension: data (replicate) 2, data (shard) 2 (4 recorded ranks)."
    )
