"""The simulator of parallel jobs: its files open, carry what PyTorch records, and keep the truth."""

from __future__ import annotations

import pytest

from hta_widgets.analysis import collectives, training_strategy
from tests.job.parallel_jobs import MESH, ParallelJob, towards
from tests.job.schedules import SCHEDULES

JOBS = {
    "tensor and data": ParallelJob(tensor=2, data=2, microbatches=2),
    "interleaved": ParallelJob(pipeline=4, schedule="interleaved 1F1B", microbatches=8, chunks=2),
    "hybrid": ParallelJob(data=4, shard=2, described=MESH),
    "context": ParallelJob(context=4, data=2, microbatches=2),
    "experts": ParallelJob(data=4, expert=4, microbatches=2, tokens=towards(1, times=2.0)),
    "all": ParallelJob(tensor=2, context=2, data=2, pipeline=2, expert=2, microbatches=4),
}


@pytest.mark.parametrize("name", JOBS)
def test_every_rank_records_its_groups_and_all_exchanges_match(name, tmp_path):
    job = JOBS[name]
    trace = job.open(tmp_path)
    assert trace.ranks == list(range(job.size))
    listed = trace.metadata(0)["distributedInfo"]["pg_config"]
    assert {group["pg_desc"] for group in listed} == {group.description for group in job.groups[0].values()}
    found = collectives(trace)
    members = {group.name: len(group.ranks) for own in job.groups.values() for group in own.values()}
    assert (found["process_group"].map(members) == found["group_size"]).all()
    whole = found[~found["collective"].isin(("send", "recv"))]
    assert (whole["match_ranks"] == whole["group_size"]).all()
    sends = found[found["collective"].isin(("send", "recv"))]
    assert (sends["match_ranks"] == 2).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_microbatch_passes_each_chunk_once_in_each_direction(schedule):
    chunks = 2 if schedule in ("interleaved 1F1B", "DualPipe") else 1
    microbatches = 4 if schedule == "DualPipe" else 8  # in each direction
    expected = [(microbatch, chunk) for microbatch in range(microbatches) for chunk in range(chunks)]
    for stage in range(4):
        slots = SCHEDULES[schedule](stage, 4, 8, chunks)
        for kinds in ("F", "BI", "BW"):
            assert sorted(tuple(slot[1:]) for slot in slots if slot[0] in kinds) == expected


def test_a_planted_pace_and_link_are_in_the_recording(tmp_path):
    job = ParallelJob(data=4, expert=2, microbatches=2, links={("expert", 2): 5.0})
    found = collectives(job.open(tmp_path))
    large = found[found["collective"].eq("all_to_all") & found["dtype"].eq("BFloat16")]
    transfer = large.groupby("process_group")["transfer_ns"].min()
    slow, fast = job.groups[2]["expert"].name, job.groups[0]["expert"].name
    assert transfer[slow] == 5 * transfer[fast]


def test_hybrid_sharding_is_told_from_its_traffic(tmp_path):
    frame = training_strategy(JOBS["hybrid"].open(tmp_path))
    assert set(frame["role"]) == {"shard", "replicate"}
