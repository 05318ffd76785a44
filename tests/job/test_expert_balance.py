"""Loads of experts: those that were simulated, what they cost, and what hides them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets import examples
from hta_widgets.analysis import ANALYSES, expert_balance, parallelism
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.job.parallel_jobs import NS_PER_TOKEN, UNDEFINED, WIDTH, ParallelJob, balanced, opened, towards
from tests.verdicts.planted.rank_programs import US, Collective, Compute, Group, Pace, Play, Program, Step


def in_turn(step: int, exchange: int, source: int, destination: int) -> int:
    """Another rank has the popular experts in each exchange."""
    return balanced(step, exchange, source, destination) * (2 if destination == (step + exchange) % 4 else 1)


JOBS = {
    "even": ParallelJob(data=4, expert=4, microbatches=2),
    "one is full": ParallelJob(data=4, expert=4, microbatches=2, layers=2, tokens=towards(1, times=2.0)),
    "two groups": ParallelJob(data=4, expert=2, microbatches=2, tokens=towards(1, 2, times=1.5)),
    "in turn": ParallelJob(data=4, expert=4, microbatches=4, tokens=in_turn),
    "undescribed": ParallelJob(data=4, expert=4, tokens=towards(3, times=1.2), described=UNDEFINED),
    "in a pipeline": ParallelJob(data=2, expert=2, pipeline=2, microbatches=2, tokens=towards(0, times=1.5)),
}


@pytest.mark.parametrize("name", JOBS)
def test_loads_are_those_that_were_simulated(name):
    job = JOBS[name]
    frame = expert_balance(opened(job))
    layers = job.layers if isinstance(job.layers, int) else 1
    each = 2 * job.microbatches * layers  # forward and backward
    assert len(frame) == each * job.steps * job.size
    for row in frame.itertuples():
        group = job.groups[row.rank]["expert"]
        assert (row.process_group, row.size, row.ranks_recorded) == (
            group.name,
            len(group.ranks),
            len(group.ranks),
        )
        key = row.iteration, row.exchange % each
        received = {
            rank: sum(job.tokens(*key, source, rank) for source in group.ranks) for rank in group.ranks
        }
        assert row.tokens == received[row.rank]
        assert row.elements == WIDTH * received[row.rank]
        mean = sum(received.values()) / len(received)
        assert row.load_pct == pytest.approx(100 * received[row.rank] / mean)
        assert row.expert_ns == NS_PER_TOKEN * received[row.rank]
        assert row.excess_ns == pytest.approx(NS_PER_TOKEN * (received[row.rank] - mean), abs=1)
        assert row.wait_ns == NS_PER_TOKEN * (max(received.values()) - received[row.rank])
    assert (frame["phase"] == "forward").sum() == len(frame) // 2


SAYS = {
    "even": ("gets 1.00 times the mean", "the experts are balanced"),
    "one is full": ("gets 1.60 times the mean", "(mostly rank 1)", "Equal loads would save a group at most"),
    "two groups": ("(mostly ranks 1, 2, each in its group)",),
    "in turn": ("gets 1.60 times the mean", "(not mostly the same rank)"),
}


@pytest.mark.parametrize("name", SAYS)
def test_the_sentence(name):
    frame = expert_balance(opened(JOBS[name]))
    told = ANALYSES["expert_balance"].sentence(frame)
    assert all(words in told for words in SAYS[name]), told


def test_slow_experts_are_not_full_ones(tmp_path):
    """The others wait as long, but for a rank with as many tokens."""
    job = ParallelJob(data=4, expert=4, microbatches=2, paces={2: Pace(1.5)})
    frame = expert_balance(job.open(tmp_path))
    assert frame.loc[frame["rank"] != 2, "wait_ns"].min() > 500 * US
    assert frame["load_pct"].between(99, 101).all()
    assert "balanced" in ANALYSES["expert_balance"].sentence(frame)


def test_lists_that_are_cut_leave_the_elements(tmp_path):
    """PyTorch keeps 30 entries, so that of more ranks the number of tokens is not known."""
    job = ParallelJob(data=32, expert=32, steps=1, tokens=towards(5, times=2.0))
    frame = expert_balance(job.open(tmp_path))
    assert frame["tokens"].isna().all()
    fullest = frame.loc[frame.groupby("exchange")["load_pct"].idxmax()]
    assert fullest["rank"].tolist() == [5, 5]
    assert fullest["load_pct"].to_numpy() == pytest.approx(100 * 2 * 32 / 33, rel=1e-3)


def test_ranks_that_were_not_recorded(tmp_path):
    frame = expert_balance(JOBS["one is full"].open(tmp_path, (1,)))
    assert set(frame["ranks_recorded"]) == {3}
    assert frame["load_pct"].between(99, 101).all()


def test_steps_in_which_ranks_exchange_unequally_often_are_left_out(tmp_path):
    """In the second step one rank's list of exchanges is not whole: they cannot be told apart."""
    job = JOBS["even"]
    play = job.play()
    file = play.file(3)
    splits = [event for event in file.events if event.get("args", {}).get("In split size", "[]") != "[]"]
    for event in splits[-2:]:
        event["args"] |= {"In split size": "[]", "Out split size": "[]"}
    frame = expert_balance(play.open(tmp_path))
    assert set(frame["iteration"]) == {0}
    for event in splits[:2]:
        event["args"] |= {"In split size": "[]", "Out split size": "[]"}
    (tmp_path / "none").mkdir()
    with pytest.raises(MissingDataError, match="exchanges of tokens on two ranks"):
        expert_balance(play.open(tmp_path / "none"))


def test_ranks_and_iterations_of_the_scope():
    trace = opened(JOBS["even"])
    whole = expert_balance(trace)
    part = expert_balance(trace, Scope(ranks=(2,), iterations=(1,)))
    chosen = whole["rank"].eq(2) & whole["iteration"].eq(1)
    assert part.equals(whole[chosen].reset_index(drop=True))


def embeddings(folder: Path) -> Trace:
    """Sharded embeddings: unequal all-to-alls in forward, and the same the other way round in backward."""
    group = Group("1", (0, 1))
    sent = {0: (10, 30), 1: (50, 20)}
    programs: dict[int, Program] = {}
    for rank in range(2):
        received = tuple(sent[other][rank] for other in range(2))
        there = Collective("all_to_allv", group, sent[rank], received, WIDTH)
        back = Collective("all_to_allv", group, received, sent[rank], WIDTH, backward=True)
        work = [Compute("gemm", 100 * US), Compute("gemm", 100 * US, backward=True)]
        programs[rank] = []
        for step in range(2):
            programs[rank] += [Step(step), there, *work, back]
    return Play(programs).open(folder)


def test_sharded_embeddings_are_no_experts(tmp_path):
    trace = embeddings(tmp_path)
    assert set(parallelism(trace)["dimension"]) == {"unknown"}
    with pytest.raises(MissingDataError, match="expert parallelism"):
        expert_balance(trace)


@pytest.mark.parametrize(
    ("make", "missing"),
    [
        (lambda folder: examples.load("ddp_4ranks"), "expert parallelism"),
        (lambda folder: ParallelJob(tensor=2, data=2).open(folder), "expert parallelism"),
        (lambda folder: ParallelJob(data=4, expert=4, padded=True).open(folder), "split sizes of tokens"),
        (lambda folder: JOBS["even"].open(folder, (1, 2, 3)), "exchanges of tokens on two ranks"),
    ],
)
def test_what_is_missing(make, missing, tmp_path):
    with pytest.raises(MissingDataError) as raised:
        expert_balance(make(tmp_path))
    assert raised.value.field == missing
    assert "Record" in raised.value.remedy
