"""What holds of every recording under every edit: random edits over groups of edges, and those of `edits`."""

import numpy as np
import pytest

from hta_widgets import edits
from hta_widgets.analysis.replay.passes import ESTIMATE, MOST, PINNED, WHOLE, binding_chain, happens
from hta_widgets.analysis.replay.plan import Plan
from tests.replay.recordings import RECORDINGS, Change, random_change, ranks_of, recorded, replayed

MODES = (PINNED, ESTIMATE, MOST)
EDITS = [
    edits.host(0),
    edits.host(0.5),
    edits.host(0.3, within="aten::*"),
    edits.launches(0),
    edits.syncs(),
    edits.syncs("*"),
    edits.allocator(),
    edits.without("*DataLoader*"),
    edits.without("aten::*", keep_ns=1_000),
    edits.kernels(2.0),
    edits.kernels(4.0, name="*gemm*", within="aten::*"),
    edits.copies(3.0),
    edits.communication(0),
    edits.communication(0.4, name="*AllReduce*"),
    edits.graphs(at_least=10),
]


@pytest.fixture(scope="module", params=RECORDINGS)
def ranks(request):
    """The recording of each name, for all tests before the next one: rank and graph of some ranks."""
    return ranks_of(recorded(request.param))


@pytest.fixture
def replays(ranks, request):
    """These, and random numbers of their own."""
    return ranks, np.random.default_rng(RECORDINGS.index(request.node.callspec.params["ranks"]))


def test_twice_the_weights_take_twice_the_time(replays):
    for _, graph in replays[0]:
        whole = graph.weight + graph.residual
        for factor in (2, 3):
            np.testing.assert_array_equal(
                happens(graph.first, graph.source, whole * factor), graph.time * factor
            )


def test_nothing_that_shortens_makes_anything_later(replays):
    """At no node, in no mode; two changes together are no later than either, and guesses keep their order."""
    ranks, dice = replays
    for _, graph in ranks:
        for _ in range(6):
            one, other = random_change(graph, dice), random_change(graph, dice)
            runs = {}
            for name, change in (("one", one), ("other", other), ("both", one.together(other))):
                runs[name] = [replayed(graph, change, mode) for mode in MODES]
                pinned, estimate, most = runs[name]
                assert (pinned <= graph.time).all()
                assert (pinned >= estimate).all() and (estimate >= most).all()
            for one_run, other_run, both in zip(*runs.values(), strict=True):
                assert (both <= np.minimum(one_run, other_run)).all()


def test_nothing_that_slows_down_makes_anything_earlier(replays):
    ranks, dice = replays
    for _, graph in ranks:
        for _ in range(3):
            factor = np.where(dice.random(len(graph.groups)) < 0.2, dice.choice([1.1, 1.7, 3.0]), 1.0)
            change = Change(factor, np.zeros(len(factor), np.bool_))
            pinned, estimate, most = (replayed(graph, change, mode) for mode in MODES)
            assert (graph.time <= pinned).all()
            assert (pinned <= estimate).all() and (estimate <= most).all()


def test_no_edit_that_saves_makes_anything_later(replays):
    for rank_trace, graph in replays[0]:
        for edit in EDITS:
            plan = Plan(graph, rank_trace)
            edit.apply(plan)
            pinned, estimate, most = (plan.replay(mode) for mode in MODES)
            assert (pinned <= graph.time).all(), edit
            assert (pinned >= estimate).all() and (estimate >= most).all(), edit


def test_edits_together_save_at_least_what_each_saves(replays):
    ranks, dice = replays
    for rank_trace, graph in ranks:
        for _ in range(4):
            chosen = [EDITS[at] for at in dice.choice(len(EDITS), 2, replace=False)]
            plans = [Plan(graph, rank_trace) for _ in range(3)]
            for plan, edit in zip(plans, chosen, strict=False):
                edit.apply(plan)
                edit.apply(plans[2])
            for mode in MODES:
                one, other, both = (plan.replay(mode) for plan in plans)
                assert (both <= np.minimum(one, other)).all(), chosen


def test_what_binds_adds_up_to_the_whole(replays):
    """The chain leads from the last node to the origin without a gap."""
    for _, graph in replays[0]:
        weight = graph.weight + graph.residual
        chain = binding_chain(graph.first, graph.source, weight, graph.time, graph.last, WHOLE)
        assert int(weight[chain].sum()) == graph.extent
        assert graph.time[graph.target[chain[0]]] == graph.extent and graph.source[chain[-1]] == 0
        np.testing.assert_array_equal(graph.source[chain[:-1]], graph.target[chain[1:]])
