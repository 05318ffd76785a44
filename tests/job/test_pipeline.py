"""Pipelines: schedule, bubbles and stages of simulated jobs, against the times that were simulated."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.analysis import ANALYSES, collectives, pipeline
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.parallelism.microbatches import Passes
from hta_widgets.analysis.parallelism.schedules import schedule_of
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.multirank import RankFile
from tests.job.parallel_jobs import UNDEFINED, ParallelJob, opened, played
from tests.job.schedules import SCHEDULES, Slot, dualpipe, one_f_one_b
from tests.support import crossed
from tests.verdicts.planted.rank_programs import US, Pace, Play

NAMES = {"zero bubble": "zero bubble (ZB-H1)"}
PARTS = ["before_ns", "compute_ns", "stalled_ns", "warm_up_ns", "steady_ns", "drain_ns", "after_ns"]
JOBS = {
    "GPipe": ParallelJob(pipeline=3, microbatches=5, schedule="GPipe"),
    "1F1B": ParallelJob(pipeline=4, microbatches=6),
    "1F1B of two": ParallelJob(pipeline=2, microbatches=3, layers=2),
    "1F1B of few microbatches": ParallelJob(pipeline=4, microbatches=2),
    "interleaved": ParallelJob(pipeline=3, microbatches=6, schedule="interleaved 1F1B", chunks=2),
    "interleaved in three": ParallelJob(pipeline=4, microbatches=4, schedule="interleaved 1F1B", chunks=3),
    "zero bubble": ParallelJob(pipeline=4, microbatches=6, schedule="zero bubble"),
    "slow stage": ParallelJob(pipeline=4, microbatches=6, paces={2: Pace(1.5)}),
    "stage with more layers": ParallelJob(pipeline=3, microbatches=6, layers=(1, 1, 2)),
    "late host": ParallelJob(pipeline=3, microbatches=4, paces={1: Pace(idle_ns=400 * US)}),
    "clocks": ParallelJob(pipeline=4, microbatches=6, clocks_ns=(0, 300 * US, -300 * US, 77 * US)),
    "no partners": ParallelJob(pipeline=4, microbatches=6, partners=""),
    "undescribed": ParallelJob(pipeline=4, microbatches=6, described=UNDEFINED),
}

UNEQUAL = ("slow stage", "stage with more layers", "late host")


def scheduled(orders: list[list[Slot]], took: dict[tuple[int, str], float], chunks: int) -> float:
    """How long a schedule takes, slot by slot, when a slot begins as soon as what it needs has ended."""
    stages = len(orders)
    ends: dict[tuple[str, int, int], float] = {}
    at, free = [0] * stages, [0.0] * stages
    while any(position < len(order) for position, order in zip(at, orders, strict=True)):
        for stage, order in enumerate(orders):
            if at[stage] == len(order):
                continue
            kind, microbatch, chunk = order[at[stage]]
            virtual = chunk * stages + stage
            need = virtual + (-1 if kind == "F" else 1)
            passed = "B" if kind == "I" else kind
            if kind != "W" and 0 <= need < stages * chunks and (passed, microbatch, need) not in ends:
                continue
            begin = max(free[stage], ends.get((passed, microbatch, need), 0.0) if kind != "W" else 0.0)
            free[stage] = ends[passed, microbatch, virtual] = begin + took[stage, kind]
            at[stage] += 1
    return max(free)


def orders_of(job: ParallelJob) -> list[list[Slot]]:
    schedule = SCHEDULES[job.schedule]
    return [schedule(stage, job.pipeline, job.microbatches, job.chunks) for stage in range(job.pipeline)]


def slots_of(play: Play, rank: int, step: int) -> list[tuple[str, int, int]]:
    """Kind, start and end of each pass of a rank in a step, by the true clock."""
    found: dict[tuple[str, int, int], tuple[int, int]] = {}
    for kernel in play.computed(rank):
        if kernel.step == step:
            start, end = found.get(kernel.mark, (kernel.start, kernel.end))
            found[kernel.mark] = min(start, kernel.start), max(end, kernel.end)
    return sorted(((mark[0], *times) for mark, times in found.items()), key=lambda slot: slot[1])


def bubbles(slots: list[tuple[str, int, int]], begin: int, end: int) -> tuple[int, int, int]:
    """Time without a pass before the first backward, between, and after the last forward."""
    backward = min(start for kind, start, _ in slots if kind != "F")
    forward = max(stop for kind, _, stop in slots if kind == "F")
    first, second = (backward, forward) if backward < forward else (forward, forward)
    found = [0, 0, 0]
    edges = [begin, *(time for _, start, stop in slots for time in (start, stop)), end]
    for low, high in zip(edges[::2], edges[1::2], strict=True):
        for part, (left, right) in enumerate(pairwise((begin, first, second, end))):
            found[part] += max(min(high, right) - max(low, left), 0)
    return found[0], found[1], found[2]


@pytest.mark.parametrize("name", JOBS)
def test_schedule_and_parts_are_those_that_were_simulated(name):
    job = JOBS[name]
    play, trace = played(job)
    frame = pipeline(trace)
    assert set(frame["schedule"]) == {NAMES.get(job.schedule, job.schedule)}
    assert set(frame["microbatches"]) == {job.microbatches}
    assert set(frame["chunks"]) == {job.chunks}
    assert (frame[PARTS].sum(axis=1) == frame["step_ns"]).all()
    assert list(zip(frame["iteration"], frame["stage"], strict=True)) == [
        (step, stage) for step in range(job.steps) for stage in range(job.pipeline)
    ]
    ended = dict.fromkeys(range(job.pipeline), 0)
    for step, rows in frame.groupby("iteration"):
        slots = {rank: slots_of(play, rank, step) for rank in range(job.pipeline)}
        begin = min(found[0][1] for found in slots.values())
        end = max(stop for found in slots.values() for _, _, stop in found)
        for row in rows.itertuples():
            own = slots[row.rank]
            kinds = [kind for kind, _, _ in orders_of(job)[row.stage] if kind != "W"]
            assert row.order == "".join(kinds).replace("I", "B")
            assert (row.warm_up_ns, row.steady_ns, row.drain_ns) == bubbles(own, begin, end)
            computed = [kernel for kernel in play.computed(row.rank) if kernel.step == step]
            assert row.compute_ns == sum(kernel.end - kernel.start for kernel in computed)
            first, last = play.steps(row.rank)[step]
            assert row.before_ns == begin - max(first, ended[row.rank])
            assert row.after_ns == max(last, end) - end
            ended[row.rank] = max(last, end)


@pytest.mark.parametrize("name", [name for name in JOBS if name not in UNEQUAL])
def test_the_ideal_is_that_of_the_schedule_with_equal_stages(name):
    """An independent run of the schedule with passes of one length, without transfers, has that bubble."""
    job = JOBS[name]
    frame = pipeline(opened(job))
    orders = orders_of(job)
    took = {"F": 1.0, "B": 2.0, "I": 1.0, "W": 1.0}
    equal = scheduled(
        orders, {(stage, kind): took[kind] for stage in range(job.pipeline) for kind in took}, job.chunks
    )
    work = sum(took[kind] for kind, _, _ in orders[0])
    assert frame["ideal_bubble_pct"].to_numpy() == pytest.approx(100 * (1 - work / equal), rel=2e-3)
    assert (frame["bubble_pct"] >= frame["ideal_bubble_pct"]).all()
    assert frame["imbalance_pct"].abs().max() < 0.1
    assert "Equal stages" not in ANALYSES["pipeline"].sentence(frame)


SCHEDULED = ["GPipe", "1F1B", "interleaved 1F1B", "zero bubble"]


@pytest.mark.parametrize(
    ("schedule", "stage"), dict.fromkeys([*crossed(SCHEDULED, range(4)), *crossed(SCHEDULED, (3, 2, 1, 0))])
)
def test_unequal_stages(schedule, stage, tmp_path):
    chunks = 2 if schedule == "interleaved 1F1B" else 1
    job = ParallelJob(
        pipeline=4, microbatches=8, schedule=schedule, chunks=chunks, paces={stage: Pace(1.4)}, steps=1
    )
    frame = pipeline(job.open(tmp_path))
    took = {"F": 0.8, "B": 1.6, "I": 0.8, "W": 0.8}
    own = {(at, kind): took[kind] * (1.4 if at == stage else 1.0) for at in range(4) for kind in took}
    level = {(at, kind): took[kind] * 1.1 for at in range(4) for kind in took}
    orders = orders_of(job)
    saved = (scheduled(orders, own, chunks) - scheduled(orders, level, chunks)) * 1e6
    lasts = frame["step_ns"] - frame["before_ns"] - frame["after_ns"]
    assert (frame["imbalance_pct"] * lasts / 100).to_numpy() == pytest.approx(saved, rel=0.02)
    assert frame["stage_work_pct"].idxmax() == stage
    assert f"stage {stage} takes 1.27 times the mean" in ANALYSES["pipeline"].sentence(frame)


def test_a_little_unequal_is_not_told(tmp_path):
    job = ParallelJob(pipeline=4, microbatches=8, paces={1: Pace(1.008)}, steps=1)
    assert "Equal stages" not in ANALYSES["pipeline"].sentence(pipeline(job.open(tmp_path)))


def test_collectives_of_a_stage_are_in_its_passes(tmp_path):
    """What the passes hold beside their kernels are the all-reduces of activations."""
    job = ParallelJob(pipeline=2, tensor=2, data=2, microbatches=3)
    trace = job.open(tmp_path)
    frame, found = pipeline(trace), collectives(trace)
    for row in frame.itertuples():
        group = job.groups[row.rank]["tensor"].name
        mine = found[(found["rank"] == row.rank) & (found["iteration"] == row.iteration)]
        assert row.stalled_ns == mine.loc[mine["process_group"] == group, "dur_ns"].sum()
    assert (frame[PARTS].sum(axis=1) == frame["step_ns"]).all()
    assert sorted(frame.loc[frame["iteration"] == 0, "rank"]) == list(range(8))


@pytest.mark.parametrize(("stages", "microbatches"), [(4, 8), (4, 12), (6, 12), (8, 16)])
def test_dualpipe(stages, microbatches, tmp_path):
    job = ParallelJob(pipeline=stages, microbatches=microbatches, chunks=2, schedule="DualPipe", steps=1)
    play = job.play()
    frame = pipeline(play.open(tmp_path))
    assert set(frame["schedule"]) == {"DualPipe"}
    assert set(frame["microbatches"]) == {microbatches}
    assert (frame[PARTS].sum(axis=1) == frame["step_ns"]).all()
    assert frame[["ideal_bubble_pct", "imbalance_pct"]].isna().all(axis=None)
    slots = {rank: slots_of(play, rank, 0) for rank in range(stages)}
    begin = min(found[0][1] for found in slots.values())
    end = max(stop for found in slots.values() for _, _, stop in found)
    for row in frame[frame["stage"].between(1, stages - 2)].itertuples():
        found = row.warm_up_ns, row.steady_ns, row.drain_ns
        assert found == bubbles(slots[row.rank], begin, end)
    told = ANALYSES["pipeline"].sentence(frame)
    assert told.startswith(f"DualPipe over {stages} stages") and "itself" not in told


def test_both_ends_alone_are_no_dualpipe(tmp_path, monkeypatch):
    """Microbatches enter at both ends as in Chimera, too: the order in between decides."""

    def two_by_turns(stage: int, stages: int, microbatches: int, chunks: int = 2) -> list[Slot]:
        slots = dualpipe(stage, stages, microbatches)
        return [slot for slot in slots if slot[0] == "F"] + [slot for slot in slots if slot[0] != "F"]

    monkeypatch.setitem(SCHEDULES, "DualPipe", two_by_turns)
    job = ParallelJob(pipeline=4, microbatches=8, chunks=2, schedule="DualPipe", steps=1)
    assert set(pipeline(job.open(tmp_path))["schedule"]) == {"unknown"}


def eager(stage: int, stages: int, microbatches: int, chunks: int = 1) -> list[Slot]:
    """1F1B that runs two forwards more ahead."""
    return one_f_one_b(stage, stages + 2, microbatches)


def test_an_order_of_no_schedule_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setitem(SCHEDULES, "eager", eager)
    frame = pipeline(ParallelJob(pipeline=3, microbatches=6, schedule="eager").open(tmp_path))
    assert set(frame["schedule"]) == {"unknown"}
    assert frame["evidence"].str.contains("FFFFFBFBBBBB on the first stage").all()
    assert frame[["microbatches", "ideal_bubble_pct", "imbalance_pct"]].isna().all(axis=None)
    assert (frame[PARTS].sum(axis=1) == frame["step_ns"]).all()
    assert "is unknown" in ANALYSES["pipeline"].sentence(frame)


def test_one_microbatch_tells_no_schedule(tmp_path):
    frame = pipeline(ParallelJob(pipeline=3, microbatches=1).open(tmp_path))
    assert set(frame["schedule"]) == {"unknown"}
    assert frame["evidence"].str.contains("single microbatch").all()


def test_ranks_and_iterations_of_the_scope():
    trace = opened(JOBS["1F1B"])
    whole = pipeline(trace)
    part = pipeline(trace, Scope(ranks=(2,), iterations=(1,)))
    pd.testing.assert_frame_equal(part, whole.iloc[[6]].reset_index(drop=True))
    assert "No complete step" in ANALYSES["pipeline"].sentence(pipeline(trace, Scope(iterations=(9,))))


def test_clocks_that_differ_a_little_do_no_harm(tmp_path):
    job = ParallelJob(pipeline=3, microbatches=4, partners="", clocks_ns=(0, -150 * US, 0))
    frame = pipeline(job.open(tmp_path))
    assert set(frame["schedule"]) == {"1F1B"}
    assert (frame[PARTS].sum(axis=1) == frame["step_ns"]).all()


def test_clocks_that_cannot_be_set_tell_no_schedule(tmp_path):
    """Without partners no send meets its receive: a clock that is behind has a stage begin too early."""
    job = ParallelJob(pipeline=3, microbatches=4, partners="", clocks_ns=(0, -2000 * US, 0))
    with pytest.raises(MissingDataError, match="times of stages that agree"):
        pipeline(job.open(tmp_path))


def passes(order: str, weights: int) -> Passes:
    """Passes of 100 ns one after the other, with `weights` ns for the gradients of weights after each "B"."""
    kinds = [kind for each in order for kind in (("B", "W") if each == "B" and weights else (each,))]
    took = np.array([weights if kind == "W" else 100 for kind in kinds])
    end = took.cumsum()
    return Passes(np.array(kinds), end - took, end, Intervals.union(end - took, end), order[1] == "F")


@pytest.mark.parametrize(
    ("weights", "name"),
    [
        ((0, 100, 100), "zero bubble (ZB-H1)"),
        # what one stage computes after its sends, or all of them a little, is another thing
        ((0, 100, 0), "1F1B"),
        ((0, 5, 5), "1F1B"),
    ],
)
def test_gradients_of_weights_are_apart_on_all_stages(weights, name):
    stages = zip(("FFFBFBBB", "FFBFBFBB", "FBFBFBFB"), weights, strict=True)
    assert schedule_of([passes(*each) for each in stages]).name == name


def without_sends(folder) -> Trace:
    """Two ranks of a group that is described as a pipeline, in which nothing is sent."""
    for rank in range(2):
        own = RankFile(rank)
        own.groups = [{"pg_name": "1", "pg_desc": "mesh_pp", "pg_size": 2, "ranks": [0, 1]}]
        own.step(0, 0, 1000 * US).kernel(10 * US, 20 * US, "gemm", 7, launched=5 * US).write(folder, 2)
    return Trace.open(folder, cache=False)


@pytest.mark.parametrize(
    ("make", "missing"),
    [
        (lambda folder: examples.load("ddp_4ranks"), "pipeline stages"),
        (lambda folder: ParallelJob(tensor=2, data=2).open(folder), "pipeline stages"),
        (lambda folder: JOBS["1F1B"].open(folder, (1,)), "every stage of a pipeline"),
        (without_sends, "sends and receives between stages"),
        (lambda folder: ParallelJob(pipeline=2, described=UNDEFINED).open(folder), "pipeline stages"),
    ],
)
def test_what_is_missing(make, missing, tmp_path):
    with pytest.raises(MissingDataError) as raised:
        pipeline(make(tmp_path))
    assert raised.value.field == missing
    assert "Record" in raised.value.remedy
