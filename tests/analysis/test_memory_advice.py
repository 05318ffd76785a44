"""Owners at the peak and memory advice: loops of known blocks, and a slow count from plain JSON."""

import gzip
import itertools
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.analysis import memory_advice, memory_owners, memory_peak, memory_timeline
from hta_widgets.analysis.memory.advice import memory_levels
from hta_widgets.analysis.memory.growth import chance_of, slope_of
from hta_widgets.analysis.memory.owners import BEFORE_RECORDING, OwnersBy
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.training_memory import Training
from tests.support import EVERY_CASE, shared_trace

INFERENCE = "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz"


def owners(trace: Trace, by: str, scope: Scope | None = None) -> dict[str, int]:
    frame = memory_owners(trace, scope, by)
    assert (frame.groupby(["rank", "device"])["bytes"].sum() == frame["peak_bytes"].iloc[0]).all()
    return dict(zip(frame["name"], frame["bytes"], strict=True))


# -- owners ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_steps(tmp_path_factory) -> Trace:
    """The optimizer keeps 200 in the first step; each step's peak is in backward, all of its kinds alive."""
    loop = Training(held=1000)
    loop.step(1, state=200, reduced=50)
    loop.step(2, reduced=50)
    return loop.open(tmp_path_factory.mktemp("two"))


def test_owners_by_lifetime(two_steps):
    assert owners(two_steps, "lifetime") == {
        BEFORE_RECORDING: 1000, "activation": 500, "optimizer state": 200, "gradient": 100,
        "communication": 50,
    }  # fmt: skip
    assert owners(two_steps, "lifetime", Scope(iterations=(1,))) == {
        BEFORE_RECORDING: 1000, "activation": 500, "gradient": 100, "communication": 50,
    }  # fmt: skip


def test_owners_by_phase_operator_and_module(two_steps):
    assert owners(two_steps, "phase") == {
        BEFORE_RECORDING: 1000, "forward": 500, "optimizer": 200, "backward": 150,
    }  # fmt: skip
    node = "autograd::engine::evaluate_function: AddmmBackward0"
    assert owners(two_steps, "operator") == {
        BEFORE_RECORDING: 1000, "aten::linear": 500, "aten::_foreach_add_": 200, node: 150,
    }  # fmt: skip
    assert owners(two_steps, "module") == {BEFORE_RECORDING: 1000, "Net_0": 500, "(no module)": 350}


def test_an_owner_names_the_call_that_allocated_most(two_steps):
    frame = memory_owners(two_steps, by="lifetime").set_index("name")
    assert frame.loc["activation", "operator"] == "aten::linear"
    events = two_steps.events(Scope(names=("aten::linear",)))
    assert frame.loc["activation", "event_id"] == events["event_id"].iloc[1]  # of the second step
    assert pd.isna(frame.loc[BEFORE_RECORDING, "event_id"]) and frame.loc[BEFORE_RECORDING, "blocks"] == 0
    assert frame["blocks"].sum() == 4


def test_what_no_evidence_tells_is_unknown(tmp_path):
    loop = Training(held=0)
    loop.step(1, activation=5, leak=900)
    loop.step(2, activation=5)
    found = owners(loop.open(tmp_path), "lifetime")
    assert found["unknown"] == 900


def test_kept_from_before_the_first_forward_is_a_parameter_only_if_it_is_trained(tmp_path):
    for trained, said in ((True, "parameter"), (False, "unknown")):
        loop = Training(held=0)
        with loop.call("cpu_op", "aten::empty"):
            loop.allocate(800)
        if trained:
            loop.step(1, activation=5)
        else:
            with loop.call("python_function", "nn.Module: Net_0"), loop.call("cpu_op", "aten::relu"):
                loop.free(loop.allocate(5))
        assert owners(loop.open(tmp_path / said), "lifetime")[said] == 800


def test_forward_blocks_without_a_backward_are_temporary(tmp_path):
    loop = Training(held=0)
    with loop.call("python_function", "nn.Module: Net_0"), loop.call("cpu_op", "aten::relu"):
        first = loop.allocate(40)
    with loop.call("python_function", "nn.Module: Net_0"), loop.call("cpu_op", "aten::relu"):
        loop.allocate(2)  # kept
    loop.free(first)
    assert owners(loop.open(tmp_path), "lifetime") == {"temporary": 40, "unknown": 2}


def slow_owners(path) -> dict[str, Counter]:
    """By device the operators of its peak: the file read once more, each event held against each."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path) as file:
        events = json.load(file)["traceEvents"]
    changes = [event for event in events if event.get("name") == "[memory]"]
    calls = [event for event in events if event.get("cat") == "cpu_op"]
    found = {}
    for kind in sorted({event["args"]["Device Type"] for event in changes}):
        here = [event for event in changes if event["args"]["Device Type"] == kind]
        here.sort(key=lambda event: event["ts"])
        totals = [event["args"]["Total Allocated"] for event in here]
        live = {}
        for event in here[: totals.index(max(totals)) + 1]:
            if event["args"]["Bytes"] > 0:
                live[event["args"]["Addr"]] = event
            else:
                live.pop(event["args"]["Addr"], None)
        by = Counter()
        for event in live.values():
            around = [
                call
                for call in calls
                if call["tid"] == event["tid"] and call["ts"] <= event["ts"] <= call["ts"] + call["dur"]
            ]
            longest = max(around, key=lambda call: call["dur"], default=None)
            by[longest["name"] if longest else "(no operator)"] += event["args"]["Bytes"]
        by[BEFORE_RECORDING] = max(totals) - sum(by.values())
        found["cpu" if kind == 0 else "cuda:0"] = +by
    return found


def test_owners_of_a_recording_equal_a_slow_count():
    path = shared_trace(INFERENCE)
    frame = memory_owners(Trace.open(path))
    for device, rows in frame.groupby("device"):
        assert dict(zip(rows["name"], rows["bytes"], strict=True)) == slow_owners(path)[device]


@pytest.mark.parametrize("name", ["gpt2_ddp", "gpt2_fsdp_full_shard"])
def test_owners_add_up_to_the_peak_of_every_step(name):
    trace = examples.load(name)
    steps = sorted(set(trace.iterations["iteration"]))
    for scope in (None, *(Scope(iterations=(number,)) for number in (steps if EVERY_CASE else steps[1:2]))):
        peak = memory_peak(trace, scope).groupby(["rank", "device"])["peak_bytes"].first()
        for by in OwnersBy:
            frame = memory_owners(trace, scope, by)
            assert (frame.groupby(["rank", "device"])["bytes"].sum() == peak).all()
            assert frame["bytes"].dtype == frame["peak_bytes"].dtype == np.int64


def test_owners_need_memory_events_and_modules(tmp_path):
    for function in (memory_owners, memory_advice):
        with pytest.raises(MissingDataError, match="profile_memory=True"):
            function(Trace.open(shared_trace("hta/cpu_only")))
    loop = Training()
    with loop.call("cpu_op", "aten::relu"):
        loop.allocate(1)
    with pytest.raises(MissingDataError, match="with_stack=True"):
        memory_owners(loop.open(tmp_path), by="module")
    with pytest.raises(ValueError, match="by must be one of operator, module, phase, lifetime"):
        memory_owners(loop.open(tmp_path), by="name")


# -- growth ------------------------------------------------------------------------------------------------


def slopes_of(levels):
    return [(levels[j] - levels[i]) / (j - i) for i, j in itertools.combinations(range(len(levels)), 2)]


@pytest.mark.parametrize("levels", [(1, 2, 3, 4, 5), (3, 1, 2, 5, 4), (5, 4, 3, 2, 1), (2, 9, 4, 7, 5, 8)])
def test_growth_by_trying_all_orders(levels):
    def score(order):
        return sum(np.sign(b - a) for a, b in itertools.combinations(order, 2))

    orders = [score(order) for order in itertools.permutations(levels)]
    assert slope_of(np.array(levels)) == np.median(slopes_of(levels))
    assert chance_of(np.array(levels)) == pytest.approx(np.mean(np.array(orders) >= score(levels)))


def test_slopes_of_levels_some_of_which_are_equal():
    for levels in itertools.chain(*(itertools.product(range(3), repeat=n) for n in range(2, 7))):
        assert slope_of(np.array(levels)) == np.median(slopes_of(levels))


def test_growth_of_many_levels_is_close_to_that_of_few():
    levels = np.random.default_rng(3).permutation(31)
    # one value more, in the middle of all orders, changes little
    assert chance_of(levels) == pytest.approx(chance_of(levels[:30]), abs=0.1)


def test_equal_levels_do_not_grow():
    assert slope_of(np.full(8, 3)) == 0 and chance_of(np.full(8, 3)) > 0.5


# -- advice ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt2_ddp", "gpt2_fsdp_full_shard"])
def test_levels_are_the_columns_that_need_no_lifetimes(name, monkeypatch):
    trace = examples.load(name)
    scope = Scope(iterations=(int(trace.iterations["iteration"].iloc[1]),))
    expected = [memory_advice(trace, each) for each in (Scope(), scope)]
    monkeypatch.setattr("hta_widgets.analysis.memory.advice.lifetimes_of", None)
    for frame, each in zip(expected, (Scope(), scope), strict=True):
        columns = frame.columns[: frame.columns.get_loc("leak_basis") + 1]
        pd.testing.assert_frame_equal(memory_levels(trace, each), frame[columns])


def advice(loop: Training, folder, scope: Scope | None = None) -> pd.Series:
    frame = memory_advice(loop.open(folder), scope)
    assert len(frame) == 1
    return frame.iloc[0]


def test_a_leak_is_the_slope_of_the_lowest_levels(tmp_path):
    loop = Training()
    for number in range(6):
        loop.step(number, state=300 if number == 0 else 0, leak=10)
    row = advice(loop, tmp_path)
    assert (row["steps"], row["leak_bytes_per_step"]) == (6, 10)
    assert row["leak_p"] == pytest.approx(1 / 720)


def test_state_that_is_allocated_once_is_no_leak(tmp_path):
    loop = Training()
    for number in range(8):
        loop.step(number, state=300 if number == 0 else 0)
    row = advice(loop, tmp_path)
    assert row["leak_bytes_per_step"] == 0 and row["leak_p"] > 0.1


def test_few_steps_tell_no_leak(tmp_path):
    loop = Training()
    for number in range(4):
        loop.step(number, leak=10)
    row = advice(loop, tmp_path)
    assert pd.isna(row["leak_bytes_per_step"]) and np.isnan(row["leak_p"])
    assert row["leak_basis"] == "unknown: 4 complete steps, 5 are needed"


def test_slack_is_what_is_reserved_in_vain(tmp_path):
    loop = Training(held=1000, slack=64)
    loop.step(1, activation=500)
    row = advice(loop, tmp_path)
    assert (row["allocated_bytes"], row["reserved_bytes"], row["slack_bytes"]) == (1600, 1664, 64)
    # after the step only what was held is left
    assert (row["most_reserved_bytes"], row["most_slack_bytes"]) == (1664, 664)
    timeline = memory_timeline(loop.open(tmp_path))
    assert (timeline["slack_bytes"] == timeline["reserved_bytes"] - timeline["allocated_bytes"]).all()
    assert timeline.loc[timeline["slack_bytes"].idxmax(), "time_ns"] == row["most_slack_ns"]


@pytest.mark.parametrize(
    ("update", "temporary", "optimizer"), [(0, 0, 1100), (450, 450, 1550), (900, 900, 2000)]
)
def test_the_optimizer_has_a_peak_of_its_own(tmp_path, update, temporary, optimizer):
    loop = Training(held=1000)
    loop.step(1, activation=500, gradient=100, update=update)
    row = advice(loop, tmp_path)
    assert row["training_peak_bytes"] == 1600
    assert (row["optimizer_peak_bytes"], row["optimizer_temporary_bytes"]) == (optimizer, temporary)
    assert row["allocated_bytes"] == max(1600, optimizer)


def test_a_micro_batch_grows_into_what_is_free(tmp_path):
    loop = Training(held=1000, device_bytes=3600)
    loop.step(1, activation=500, gradient=100)
    row = advice(loop, tmp_path)
    # 2000 are free, and 500 activations grow
    assert (row["device_bytes"], row["activation_bytes"]) == (3600, 500)
    assert (row["headroom_low"], row["headroom_high"]) == (5.0, 5.0)
    wasteful = Training(held=1000, device_bytes=3600, slack=400)
    wasteful.step(1, activation=500, gradient=100)
    row = advice(wasteful, tmp_path / "wasteful")
    # of 3600 a fifth is slack: 2880 are usable, 1280 of them free
    assert row["headroom_low"] == pytest.approx(1 + 1280 / 500) and row["headroom_high"] == 5.0


def test_headroom_is_unknown_without_its_evidence(tmp_path):
    loop = Training()
    loop.step(1)
    assert advice(loop, tmp_path)["headroom_basis"].startswith("unknown: the recording does not state")
    inference = Training(device_bytes=3600)
    with inference.call("cpu_op", "aten::relu"):
        inference.free(inference.allocate(40))
    row = advice(inference, tmp_path / "inference")
    assert np.isnan(row["headroom_high"]) and row["headroom_basis"].startswith("unknown: no activations")
    full = Training(held=4000, device_bytes=3600)
    full.step(1)
    assert (
        advice(full, tmp_path / "full")["headroom_basis"] == "unknown: more is allocated than the device has"
    )


def test_the_host_reserves_nothing():
    frame = memory_advice(Trace.open(shared_trace(INFERENCE))).set_index("device")
    assert pd.isna(frame.loc["cpu", "slack_bytes"])
    assert frame.loc["cuda:0", "device_bytes"] == 85_018_279_936
    assert frame.loc["cuda:0", "slack_bytes"] == (
        frame.loc["cuda:0", "reserved_bytes"] - frame.loc["cuda:0", "allocated_bytes"]
    )
