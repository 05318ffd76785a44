"""Ranks side by side: parts against a count from event to event, planted places, the costs of `slowdown`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, Trace, analysis, examples
from hta_widgets.analysis.communication.waits import longest_wait
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from tests.job.many_ranks import LAYERS, STEPS, write_job
from tests.job.parallel_jobs import ParallelJob
from tests.verdicts.planted.late_ranks import CASES, replicas
from tests.verdicts.planted.rank_programs import Play

SLOW = 5
PARTS = ["compute_ns", "waiting_ns", "transferring_ns", "copying_ns", "idle_ns"]


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return Trace.open(write_job(tmp_path_factory.mktemp("jobs") / "job", 8, SLOW), cache=False)


@pytest.fixture(scope="module")
def ddp() -> Trace:
    return examples.load("ddp_4ranks")


def counted(trace: Trace, rank: int, start: int, end: int) -> list[int]:
    """The parts of a window, from one event to the next: what runs between two of their edges."""
    exchanges = analysis.collectives(trace)
    least = exchanges.groupby("match")["dur_ns"].transform("min")
    most = exchanges.groupby("match")["dur_ns"].transform("max")
    uneven = (most - least > 10_000) & ((most - least) * 100 > least)
    exchanges["arrived_ns"] = exchanges["start_ns"] + (exchanges["dur_ns"] - least).where(uneven, 0)
    own = exchanges[exchanges["rank"] == rank]
    rank_trace = trace.rank(rank)
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC))
    work = pd.DataFrame(
        {
            "start": rank_trace.start[rows],
            "end": rank_trace.end[rows],
            "kind": rank_trace.event_class[rows],
        }
    )
    edges = {start, end, *work["start"], *work["end"], *own["arrived_ns"]}
    inside = sorted(edge for edge in edges if start <= edge <= end)
    parts = dict.fromkeys(PARTS, 0)
    for begin, until in pairwise(inside):
        now = work[(work["start"] <= begin) & (work["end"] > begin)]["kind"].tolist()
        waits = ((own["start_ns"] <= begin) & (own["arrived_ns"] > begin)).any()
        memory = {int(EventClass.MEMORY_COPY), int(EventClass.MEMORY_SET)}
        if any(kind not in memory | {int(EventClass.COMMUNICATION)} for kind in now):
            part = "compute_ns"
        elif EventClass.COMMUNICATION in now:
            part = "waiting_ns" if waits else "transferring_ns"
        else:
            part = "copying_ns" if now else "idle_ns"
        parts[part] += until - begin
    return [parts[part] for part in PARTS]


def test_parts_are_those_of_a_count_from_event_to_event(eight: Trace, ddp: Trace) -> None:
    for trace, ranks in ((eight, (0, SLOW)), (ddp, (0, 2))):
        frame = analysis.job_iterations(trace)
        assert (frame[PARTS].sum(axis=1) == frame["window_ns"]).all()
        for rank in ranks:
            step = trace.iterations.query("rank == @rank").iloc[1]
            own = frame[(frame["rank"] == rank) & (frame["iteration"] == step["iteration"])]
            expected = counted(trace, rank, int(step["start_ns"]), int(step["end_ns"]))
            assert own[PARTS].to_numpy().tolist() == [expected]


def test_they_agree_with_the_temporal_breakdown(ddp: Trace) -> None:
    scope = Scope(iterations=(11, 12), window_ns=(25_000_000, 50_000_000))
    frame = analysis.job_iterations(ddp, scope)
    split = analysis.temporal_breakdown(ddp, scope, by="iteration")
    assert frame["rank"].tolist() == split["rank"].tolist()
    assert frame["iteration"].tolist() == split["iteration"].tolist()
    both = frame["waiting_ns"] + frame["transferring_ns"]
    assert both.tolist() == split["exposed_communication_ns"].tolist()
    for column in ("window_ns", "compute_ns", "idle_ns"):
        assert frame[column].tolist() == split[column].tolist()


def test_the_slow_rank_waits_for_nobody_and_all_others_for_it(eight: Trace) -> None:
    frame = analysis.job_ranks(eight).set_index("rank")
    assert frame["iterations"].tolist() == [STEPS] * 8
    assert frame.loc[SLOW, "waiting_ns"] == 0
    assert (frame["waiting_ns"].drop(SLOW) > 0).all()
    pairs = analysis.rank_waits(eight)
    assert frame.loc[SLOW, "caused_ns"] == pairs["wait_ns"].sum() > 0
    assert (frame["caused_ns"].drop(SLOW) == 0).all()
    assert frame["stage"].isna().all()
    assert frame["node"].isna().all()  # all on device 0


def test_costs_and_culprits_are_those_of_slowdown(eight: Trace) -> None:
    frame = analysis.job_ranks(eight, Scope(iterations=(1, 2)))
    said = analysis.slowdown(eight, Scope(iterations=(1, 2)), "rank").query("scope == 'rank'")
    assert frame["cost_ns"].tolist() == said["cost_ns"].tolist()
    assert frame.loc[frame["culprit"], "rank"].tolist() == [SLOW]
    assert frame.loc[frame["culprit"], "cause"].tolist() == ["same kernels slower"]
    assert frame["iterations"].tolist() == [2] * 8


def test_stages_and_replicas_of_a_pipeline(tmp_path: Path) -> None:
    frame = analysis.job_ranks(Play(replicas(slow=2)).open(tmp_path))
    assert frame["stage"].tolist() == [0, 1, 0, 1]  # stage s of replica r is rank 2 r + s
    assert frame["replica"].tolist() == [0, 0, 1, 1]
    assert frame.loc[frame["culprit"], "rank"].tolist() == [2]


def test_places_are_those_of_the_process_groups(tmp_path: Path) -> None:
    job = ParallelJob(tensor=2, pipeline=2, data=2, microbatches=4)
    frame = analysis.job_ranks(job.open(tmp_path)).set_index("rank")
    for rank, place in job.coordinates.items():
        found = frame.loc[rank, ["stage", "replica", "tensor"]].tolist()
        assert found == [place["pipeline"], place["data"], place["tensor"]]
    assert frame["context"].isna().all()


def test_nodes_where_device_numbers_begin_again(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", 8, SLOW)
    for rank in range(8):
        path = job / f"rank{rank}.json"
        path.write_text(path.read_text().replace('"device": 0', f'"device": {rank % 4}'))
    assert analysis.job_ranks(Trace.open(job, cache=False))["node"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    last = job / "rank7.json"
    last.write_text(last.read_text().replace('"device": 3', '"device": 2'))
    assert analysis.job_ranks(Trace.open(job, cache=False))["node"].isna().all()


def test_without_a_common_step_there_are_parts_but_no_costs(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", 4, slow=1)
    path = job / "rank3.json"
    path.write_text(path.read_text().replace("ProfilerStep#", "ProfilerStep#1"))
    trace = Trace.open(job, cache=False)
    parts = analysis.job_iterations(trace)
    assert sorted(set(parts["iteration"])) == [0, 1, 2, 3, 10, 11, 12, 13]
    frame = analysis.job_ranks(trace)
    assert frame["cost_ns"].isna().all()
    assert not frame["culprit"].any()
    assert frame["caused_ns"].idxmax() == 1
    with pytest.raises(MissingDataError, match="step that all ranks"):
        analysis.slowdown(trace)


def test_one_rank_is_no_job() -> None:
    for function in (analysis.job_iterations, analysis.job_ranks):
        with pytest.raises(MissingDataError, match="second rank"):
            function(examples.load("gpt2_baseline"))


def test_the_longest_wait_is_one_of_the_matrix(eight: Trace) -> None:
    met = longest_wait(eight, SLOW, Scope(iterations=(2,)))
    assert met["rank"].iloc[0] == SLOW
    assert met["is_last"].iloc[0]
    assert met["waits"].sum() == 1
    assert met.loc[met["waits"], "waited_ns"].item() == met["waited_ns"].max()
    step = eight.iterations.query("iteration == 2")
    assert met["start_ns"].between(step["start_ns"].min(), step["end_ns"].max()).all()
    assert len(met) == 8
    # a victim's is that in which it waits, and of an exchange it has a part in
    own = longest_wait(eight, 0, Scope())
    assert own.loc[own["waits"], "rank"].tolist() == [0]
    assert own.loc[own["rank"] == 0, "waited_ns"].item() > 0


def test_who_has_no_part_in_any_waiting_has_no_exchange(tmp_path: Path) -> None:
    trace = CASES["equal_ranks_4"].play().open(tmp_path)
    assert longest_wait(trace, 0, Scope()).empty
    assert analysis.job_ranks(trace)["caused_ns"].sum() == 0


def test_layers_are_the_exchanges(eight: Trace) -> None:
    """The fixture is what the numbers above assume: an exchange for each layer and step."""
    assert analysis.collectives(eight)["match"].nunique() == LAYERS * STEPS
