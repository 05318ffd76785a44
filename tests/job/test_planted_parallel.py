"""Faults planted into jobs that are parallel in every way: `slowdown` names them, and near misses nobody."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest

from hta_widgets.analysis import ANALYSES, slowdown
from hta_widgets.errors import MissingDataError
from tests.job.parallel_jobs import ParallelJob, balanced, towards
from tests.job.test_recordings import culprits, job_row
from tests.support import EVERY_CASE, crossed
from tests.verdicts.planted.rank_programs import MS, US, Pace

pytestmark = pytest.mark.slow

SLOWER, MORE, HOST, COPIES, LINK = (
    "same kernels slower", "more work", "host late", "copies", "slow link",
)  # fmt: skip
SHAPES = {
    "1F1B": ParallelJob(pipeline=4, microbatches=8),
    "interleaved": ParallelJob(pipeline=4, microbatches=4, schedule="interleaved 1F1B", chunks=2),
    "zero bubble": ParallelJob(pipeline=4, microbatches=8, schedule="zero bubble"),
    "DualPipe": ParallelJob(pipeline=4, microbatches=8, schedule="DualPipe", chunks=2),
    "tensor": ParallelJob(tensor=4, data=2, microbatches=4),
    "experts": ParallelJob(data=4, expert=4, microbatches=4),
    "hybrid": ParallelJob(data=4, shard=2, layers=4),
    "context": ParallelJob(context=4, data=2, microbatches=4),
    "replicas of a pipeline": ParallelJob(pipeline=4, data=2, microbatches=8),
}
CLOCKS = (0, 300 * US, -300 * US, 100 * US)
FAULTS = {
    "slow rank": ({"paces": {1: Pace(1.5)}}, SLOWER),
    "late host": ({"paces": {1: Pace(idle_ns=MS)}}, HOST),
    "copies": ({"paces": {1: Pace(copy_ns=MS)}}, COPIES),
    "slow rank, clocks apart": ({"paces": {1: Pace(1.5)}, "clocks_ns": CLOCKS}, SLOWER),
}


@pytest.mark.parametrize(("shape", "fault"), crossed(SHAPES, FAULTS))
def test_a_rank(shape, fault, tmp_path):
    planted, cause = FAULTS[fault]
    frame = slowdown(replace(SHAPES[shape], **planted).open(tmp_path))
    assert culprits(frame) == [("rank", "1", cause)]
    assert job_row(frame)["slowdown"] > 1.02


EQUAL = ["1F1B", "zero bubble", "tensor", "experts", "hybrid"]  # unlike; of all shapes with EVERY_CASE


@pytest.mark.parametrize(("shape", "pace"), crossed(SHAPES if EVERY_CASE else EQUAL, [1.0, 1.005]))
def test_nobody(shape, pace, tmp_path):
    frame = slowdown(replace(SHAPES[shape], paces={1: Pace(pace)}).open(tmp_path))
    assert culprits(frame) == []
    assert job_row(frame)["cause"] == "none"


PLANTED = {
    "one link of tensor ranks": (
        replace(SHAPES["tensor"], links={("tensor", 4): 10.0}), "rank", (4, 5, 6, 7), LINK
    ),
    "one link of experts": (
        ParallelJob(data=8, expert=4, microbatches=4, links={("expert", 4): 10.0}), "rank", (4, 5, 6, 7), LINK
    ),
    "one link of shards": (
        ParallelJob(data=8, shard=4, layers=2, links={("shard", 4): 20.0}), "rank", (4, 5, 6, 7), LINK
    ),
    "one link of replicas": (
        ParallelJob(data=8, shard=4, layers=2, links={("replicate", 1): 20.0}), "rank", (1, 5), LINK
    ),
    "a stage with more layers": (
        replace(SHAPES["1F1B"], layers=(1, 1, 2, 1)), "rank", (2,), MORE
    ),
    "the last stage with more layers": (
        replace(SHAPES["1F1B"], layers=(1, 1, 1, 2)), "rank", (3,), MORE
    ),
    "a stage of replicas with more layers": (
        replace(SHAPES["replicas of a pipeline"], layers=(1, 1, 2, 1)), "stage", (2,), MORE
    ),
    "a stage of replicas that takes longer": (
        replace(SHAPES["replicas of a pipeline"], paces={4: Pace(1.4), 5: Pace(1.4)}), "stage", (2,), MORE
    ),
    "two ranks": (ParallelJob(data=8, layers=4, paces={1: Pace(1.3), 6: Pace(1.3)}), "rank", (1, 6), SLOWER),
    "larger grids": (replace(SHAPES["context"], paces={2: Pace(1.5, larger=2)}), "rank", (2,), MORE),
    "full experts": (replace(SHAPES["experts"], tokens=towards(1, times=3.0)), "rank", (1,), MORE),
}  # fmt: skip


@cache
def answer(name: str) -> pd.DataFrame:
    with TemporaryDirectory() as folder:
        return slowdown(PLANTED[name][0].open(Path(folder)))


@pytest.mark.parametrize("name", PLANTED)
def test_others(name):
    _, scope, keys, cause = PLANTED[name]
    assert culprits(answer(name)) == [(scope, str(key), cause) for key in keys]


def test_full_experts_are_told_by_their_tokens():
    frame = answer("full experts")
    assert "Experts get 2.00 times the mean of tokens" in job_row(frame)["evidence"]
    assert "Experts get 2.00 times" in ANALYSES["slowdown"].sentence(frame)


def test_slow_experts_with_as_many_tokens_are_slow(tmp_path):
    """Nor does a rank count as full that is slow and has a few tokens more."""
    job = replace(SHAPES["experts"], tokens=towards(2, times=1.1), paces={2: Pace(1.6)})
    assert culprits(slowdown(job.open(tmp_path))) == [("rank", "2", SLOWER)]


def test_experts_that_are_full_by_turns_are_nobody(tmp_path):
    def in_turn(step: int, exchange: int, source: int, destination: int) -> int:
        times = 3 if destination == (step + exchange) % 4 else 1
        return times * balanced(step, exchange, source, destination)

    frame = slowdown(replace(SHAPES["experts"], tokens=in_turn).open(tmp_path))
    assert culprits(frame) == []
    assert job_row(frame)["cause"] == "no single rank: sequence imbalance"


@pytest.mark.parametrize("shape", ["1F1B", "tensor"])
def test_a_culprit_that_was_not_recorded(shape, tmp_path):
    frame = slowdown(replace(SHAPES[shape], paces={1: Pace(1.5)}).open(tmp_path, (1,)))
    assert culprits(frame) == []
    assert job_row(frame)["cause"] == "a rank that was not recorded"


@pytest.mark.parametrize(("shape", "missing"), [("tensor", 6), ("experts", 3)])
def test_a_victim_that_was_not_recorded(shape, missing, tmp_path):
    frame = slowdown(replace(SHAPES[shape], paces={1: Pace(1.5)}).open(tmp_path, (missing,)))
    assert culprits(frame) == [("rank", "1", SLOWER)]


def test_links_that_are_slow_alike_are_not_told(tmp_path):
    """No peer is faster: only the bandwidth against the link's own says so."""
    frame = slowdown(replace(SHAPES["tensor"], links={"tensor": 10.0}).open(tmp_path))
    assert job_row(frame)["cause"] == "none"


def test_a_slow_stage_of_gpipe_is_named_or_nobody_is(tmp_path):
    """The order that is found may not explain the recording; then no answer is given."""
    job = ParallelJob(pipeline=4, microbatches=8, schedule="GPipe", paces={1: Pace(1.5)})
    trace = job.open(tmp_path)
    try:
        assert culprits(slowdown(trace)) == [("rank", "1", SLOWER)]
    except MissingDataError as missing:
        assert missing.field.startswith("order of operations")
