"""Pipelines with a known bubble: what makes most of it is told once, and no other finding claims its time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, Trace
from hta_widgets.analysis import pipeline
from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.pipeline_rules import SCHEDULE, STAGES, TRANSFERS, bubble
from hta_widgets.errors import MissingDataError
from tests.claims.checking import faults_of
from tests.job.parallel_jobs import ParallelJob
from tests.verdicts.planted.rank_programs import MS, Pace

pytestmark = pytest.mark.slow

JOB = ParallelJob(pipeline=4, microbatches=8, layers=2, steps=3)
WAITING = ("pipeline_bubble", "mutual_waiting", "straggler", "exposed_communication")
CASES = {
    "1F1B": (replace(JOB, microbatches=4), SCHEDULE, "With 8 microbatches"),
    "GPipe": (replace(JOB, schedule="GPipe"), SCHEDULE, "1F1B keeps less in memory"),
    "interleaved": (
        replace(JOB, schedule="interleaved 1F1B", chunks=2), SCHEDULE, "more chunks per rank divide it"
    ),
    "zero bubble": (replace(JOB, schedule="zero bubble"), SCHEDULE, "With 16 microbatches"),
    "tensor": (replace(JOB, tensor=2), SCHEDULE, "With 16 microbatches"),
    "two stages with more layers": (
        replace(JOB, microbatches=16, layers=(2, 2, 4, 4)), STAGES, "Move work from stage"
    ),
    "transfers": (
        replace(JOB, microbatches=64, layers=1, steps=2), TRANSFERS, "Send and receive while passes run"
    ),
}  # fmt: skip


def told(frame: pd.DataFrame) -> pd.DataFrame:
    """The findings about waiting, by topic."""
    return frame[frame["topic"].isin(WAITING)].set_index("topic")


@pytest.mark.parametrize("name", CASES)
def test_what_makes_most_of_a_bubble_is_told(name, tmp_path):
    job, cause, advice = CASES[name]
    trace = job.open(tmp_path)
    found = bubble(Inputs(trace, Scope()))
    assert found.cause == cause
    frame = overview(trace)
    rows = told(frame)
    assert set(rows.index) == {"pipeline_bubble"} | (
        {"exposed_communication"} if name == "transfers" else set()
    )
    assert advice in rows.loc["pipeline_bubble", "suggestion"]
    assert rows.loc["pipeline_bubble", "share_pct"] >= 3
    rank = rows.loc["pipeline_bubble", "rank"]  # a bubble is of all ranks, but for a slow stage
    assert rank == 2 if cause == STAGES else pd.isna(rank)
    if cause != TRANSFERS:  # the largest job
        assert not list(map(str, faults_of(trace, frame[frame["topic"] == "pipeline_bubble"])))
    if name == "transfers":  # their own time, without the waiting for each other
        assert "bucket" not in rows.loc["exposed_communication", "suggestion"]
        assert "microbatches" not in rows.loc["exposed_communication", "suggestion"]
        exposed = Inputs(trace, Scope()).temporal["exposed_communication_ns"].sum()
        assert 4 * rows["cost_ns"].sum() <= exposed


@pytest.mark.parametrize("without", [(), (2,)])
def test_groups_of_two_neighbours_are_one_pipeline(without, tmp_path):
    """As DeepSpeed has them. With a stage that was not recorded, nothing is said."""
    JOB.play().write(tmp_path, without)
    for path in tmp_path.iterdir():
        recording = json.loads(path.read_text())
        del recording["distributedInfo"]["pg_config"]
        rank = recording["distributedInfo"]["rank"]
        for event in (each["args"] for each in recording["traceEvents"] if "args" in each):
            if event.get("Collective name") in ("send", "recv"):
                pair = sorted((rank, event.get("Dst Rank", event.get("Src Rank"))))
                event |= {"Process Group Name": f"p2p {pair}", "Process Group Ranks": pair, "Group size": 2}
        path.write_text(json.dumps(recording))
    trace = Trace.open(tmp_path, cache=False)
    if without:
        with pytest.raises(MissingDataError):
            pipeline(trace)
        return
    found = pipeline(trace)
    assert found["stages"].unique().tolist() == [4] and found["stage"].tolist()[:4] == [0, 1, 2, 3]
    assert found["schedule"].unique().tolist() == ["1F1B"]


@pytest.mark.parametrize("schedule", ["1F1B", "GPipe"])
def test_parts_are_those_of_the_played_passes(schedule, tmp_path):
    """(p - 1) (f + b) of the passes as they were played, and all of the bubble by its gaps."""
    play = replace(JOB, schedule=schedule).play()
    found = bubble(Inputs(play.open(tmp_path), Scope()))
    passes: dict[tuple[int, int, str, int], list[int]] = {}
    for rank in range(4):
        for kernel in play.computed(rank):
            kind, microbatch, _ = kernel.mark
            passes.setdefault((rank, kernel.step, kind, microbatch), []).extend((kernel.start, kernel.end))
    spans = {key: (min(times), max(times)) for key, times in passes.items()}
    mean = sum(end - begin for begin, end in spans.values()) / (4 * 8 * 3)
    assert found.schedule_ns == pytest.approx(3 * mean, rel=0.01)
    gaps = []
    for step in range(3):
        own = {key: span for key, span in spans.items() if key[1] == step}
        first, last = min(begin for begin, _ in own.values()), max(end for _, end in own.values())
        for rank in range(4):
            busy = sum(end - begin for key, (begin, end) in own.items() if key[0] == rank)
            gaps.append(last - first - busy)
    whole = found.schedule_ns + found.stages_ns + found.transfers_ns
    assert whole == pytest.approx(np.mean(gaps), rel=0.01)


def test_a_late_rank_and_the_bubble_are_told_apart(tmp_path):
    """What the others wait for rank 2 is claimed there; the rest of the bubble is that of the schedule."""
    trace = replace(JOB, paces={2: Pace(1.5)}).open(tmp_path)
    inputs = Inputs(trace, Scope())
    found = bubble(inputs)
    assert found.late == (2,)
    assert found.cause == SCHEDULE
    rows = told(overview(trace))
    assert set(rows.index) == {"straggler", "pipeline_bubble"}
    assert "besides waiting for late ranks" in rows.loc["pipeline_bubble", "text"]
    assert "Stage 2 takes longest" in rows.loc["pipeline_bubble", "text"]
    exposed = inputs.temporal.set_index("rank")["exposed_communication_ns"]
    straggling = inputs.waits[inputs.waits["culprit"] == 2].groupby("rank")["wait_ns"].sum()
    straggling = straggling.reindex(exposed.index, fill_value=0).clip(upper=exposed)
    assert (found.claimed + straggling <= exposed).all()
    assert found.claimed.sum() > 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"layers": (2, 2, 4, 4)}, "it launches 128 kernels more per step"),
        ({"paces": {2: Pace(2.0), 3: Pace(2.0)}}, "its kernels take"),
        ({"paces": {2: Pace(idle_ns=MS), 3: Pace(idle_ns=MS)}}, "which its kernels do not explain"),
    ],
)
def test_why_the_slowest_stage_is_slow(changed, words, tmp_path):
    found = overview(replace(JOB, microbatches=16, **changed).open(tmp_path)).set_index("topic")
    assert words in found.loc["pipeline_bubble", "text"]


def test_a_small_bubble_is_none(tmp_path):
    trace = ParallelJob(pipeline=2, microbatches=48, layers=6, steps=2).open(tmp_path)
    frame = overview(trace)
    assert told(frame).empty
    checked = frame.loc[frame["topic"] == "nothing_found", "checked"].iloc[0]
    assert "pipeline_bubble" in checked.split()


ABSTAINS = {
    "a schedule whose own bubble is not known": replace(JOB, schedule="DualPipe", chunks=2),
    "no pipeline": ParallelJob(data=4, layers=4),
}


@pytest.mark.parametrize("name", ABSTAINS)
def test_without_a_known_schedule_nothing_is_said_of_a_bubble(name, tmp_path):
    trace = ABSTAINS[name].open(tmp_path)
    assert bubble(Inputs(trace, Scope())) is None
    frame = overview(trace)
    assert "pipeline_bubble" not in set(frame["topic"])
    assert not frame["text"].str.contains("pipeline's stages").any()


def test_stages_that_were_not_all_recorded_have_no_bubble(tmp_path):
    assert bubble(Inputs(JOB.open(tmp_path, (1,)), Scope())) is None
