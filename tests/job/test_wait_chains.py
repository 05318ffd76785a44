"""Chains of waits over several ranks: from a victim to the planted culprit, hop by hop, as recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest

from hta_widgets import Trace, analysis
from hta_widgets.analysis.communication.waits import longest_wait, wait_chain, waits
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.notable_ranks import notable_ranks
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber
from tests.job.parallel_jobs import ParallelJob
from tests.verdicts.planted.rank_programs import Pace
from tests.widgets.test_timeline_scrubber import ask, ready

pytestmark = pytest.mark.slow

JOB = ParallelJob(pipeline=4, microbatches=4, layers=2)
CHAINS = {
    "the last stage": (replace(JOB, paces={3: Pace(2.0)}), [0, 1, 2, 3]),
    "the first stage": (replace(JOB, paces={0: Pace(2.0)}), [3, 2, 1, 0]),
    "clocks apart": (
        replace(JOB, paces={3: Pace(2.0)}, clocks_ns=(0, 300_000, -300_000, 90_000)), [0, 1, 2, 3]
    ),
    # rank 0 receives from rank 2, which meets rank 3 in sums of activations
    "a tensor rank of the next stage": (
        ParallelJob(tensor=2, pipeline=2, microbatches=4, layers=2, paces={3: Pace(4.0)}), [0, 2, 3]
    ),
}  # fmt: skip


def path(frame: pd.DataFrame) -> list[int]:
    return [*frame["rank"], *frame["awaited"].tail(1)]


Played = Callable[[str], tuple[Trace, list[pd.DataFrame]]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A job, and the chains of all its communication kernels that wait for somebody."""

    @cache
    def of(name: str) -> tuple[Trace, list[pd.DataFrame]]:
        trace = CHAINS[name][0].open(tmp_path_factory.mktemp("job"))
        kernels = analysis.collectives(trace)
        each = (wait_chain(trace, *key) for key in zip(kernels["rank"], kernels["event_id"], strict=True))
        return trace, [frame for frame in each if len(frame)]

    return of


@pytest.mark.parametrize("name", CHAINS)
def test_the_planted_culprit_is_at_the_end(name, played):
    planted, (_, found) = CHAINS[name][1], played(name)
    assert planted in [path(frame) for frame in found]
    ends = pd.Series([frame["wait_ns"].iloc[0] for frame in found]).groupby(
        [int(frame["awaited"].iloc[-1]) for frame in found]
    )
    assert ends.sum().idxmax() == planted[-1]


@pytest.mark.parametrize("name", CHAINS)
def test_hops_are_within_the_waits_of_their_kernels(name, played):
    """By durations alone: a kernel waits for what it takes longer than the shortest of its exchange."""
    trace, chains = played(name)
    kernels = analysis.collectives(trace)
    shortest = kernels.groupby("match")["dur_ns"].transform("min")
    waited = (kernels["dur_ns"] - shortest).groupby([kernels["rank"], kernels["event_id"]]).first()
    match = kernels.set_index(["rank", "event_id"])["match"]
    of_rank = kernels.assign(waited=kernels["dur_ns"] - shortest).groupby("rank")["waited"].sum()
    for frame in chains:
        for hop in frame.itertuples():
            key = (hop.rank, hop.event_id)
            assert hop.event_wait_ns <= waited[key]
            assert hop.event_wait_ns <= hop.wait_ns <= of_rank[hop.rank]
            assert match[key] == match[hop.awaited, hop.awaited_event_id]
        assert frame["wait_ns"].is_monotonic_decreasing
        assert frame["rank"].tolist()[1:] == frame["awaited"].tolist()[:-1]
        assert frame["rank"].is_unique


def test_a_chain_agrees_with_the_waits_of_its_first_kernel(played):
    trace, chains = played("the last stage")
    first = sum(int(frame["wait_ns"].iloc[0]) for frame in chains)
    assert first == pytest.approx(waits(trace)["wait_ns"].sum(), rel=0.05)


def test_who_does_not_wait_has_no_chain(played):
    trace, _ = played("the last stage")
    assert wait_chain(trace, 0, -5).empty
    kernels = analysis.collectives(trace)
    own = kernels[kernels["rank"] == 3]
    shortest = kernels.groupby("match")["dur_ns"].transform("min")
    last = own[own["dur_ns"] == shortest[own.index]]
    assert wait_chain(trace, 3, int(last["event_id"].iloc[0])).empty


def test_the_timeline_opens_on_the_whole_chain(played):
    """On all ranks between the culprit and the one that waits longest for it, from the first wait on."""
    trace, _ = played("the last stage")
    met = longest_wait(trace, 3, Scope())
    victim = met[met["waits"]].iloc[0]
    frame = wait_chain(trace, int(victim["rank"]), int(victim["event_id"]))
    assert path(frame) == [0, 1, 2, 3]
    shown = {one["rank"]: one["evidence"] for one in notable_ranks(trace, Scope(), analysis.job_ranks(trace))}
    evidence = shown[3]
    assert evidence["ranks"] == [0, 1, 2, 3]
    assert evidence["focus"] == [int(frame["awaited"].iloc[0]), int(frame["awaited_event_id"].iloc[0])]
    assert evidence["window"][0] == min(frame["start_ns"])
    assert evidence["window"][1] >= max(frame["end_ns"])


def test_the_timeline_draws_each_hop(played):
    trace, _ = played("the last stage")
    victim = longest_wait(trace, 3, Scope()).query("waits").iloc[0]
    frame = wait_chain(trace, int(victim["rank"]), int(victim["event_id"]))
    widget = ready(TimelineScrubber(trace))
    lanes = widget._require().lanes
    found = ask(widget, "waits", id=lanes.find(int(victim["rank"]), int(victim["event_id"])))
    assert lanes.track_of(found["last"]["id"]).rank == 1
    hops = [(hop["waiting"][0][0]["id"], hop["last"]["id"]) for hop in found["through"]]
    assert [tuple(lanes.track_of(at).rank for at in hop) for hop in hops] == [(1, 2), (2, 3)]
    assert [hop["whole"] for hop in found["through"]] == frame["wait_ns"].tolist()[1:]
    assert [hop["waiting"][0][1] for hop in found["through"]] == frame["event_wait_ns"].tolist()[1:]
    widget.close()
