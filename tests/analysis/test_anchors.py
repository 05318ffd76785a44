"""Instants of two runs that correspond, and the alignment of sequences that they come from."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.simulator import SimulatedJob, simulate
from hta_widgets.analysis.compare.alignment import aligned, longest_rise
from hta_widgets.analysis.compare.anchors import anchors
from hta_widgets.trace import Trace
from hta_widgets.trace.classify import EventClass
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.support import shared_trace, tried

sequences = st.integers(1, 6).flatmap(lambda size: st.lists(st.integers(0, size), max_size=40))


# -- sequences -------------------------------------------------------------------------------------


def numbers(values):
    return np.array(values, np.int64)


def assert_pairs(first, second):
    pairs = aligned(first, second)
    assert (first[pairs[:, 0]] == second[pairs[:, 1]]).all()
    assert (np.diff(pairs, axis=0) > 0).all()
    return pairs


def longest_common(first, second):
    """Its length, by the textbook's table."""
    lengths = np.zeros((len(first) + 1, len(second) + 1), np.int64)
    for i, item in enumerate(first):
        for j, other in enumerate(second):
            lengths[i + 1, j + 1] = (
                lengths[i, j] + 1 if item == other else max(lengths[i, j + 1], lengths[i + 1, j])
            )
    return lengths[-1, -1]


@given(sequences, sequences)
@settings(max_examples=tried(150), deadline=None)
def test_short_sequences_align_as_long_as_can_be(first, second):
    pairs = assert_pairs(numbers(first), numbers(second))
    assert len(pairs) == longest_common(first, second)


@given(st.lists(st.integers(0, 30), max_size=60))
@settings(deadline=None)
def test_the_longest_rise(values):
    rise = longest_rise(numbers(values))
    assert (np.diff(rise) > 0).all() and (np.diff(numbers(values)[rise]) > 0).all()
    best = []
    for place, value in enumerate(values):
        best.append(1 + max((best[at] for at in range(place) if values[at] < value), default=0))
    assert len(rise) == max(best, default=0)


def test_long_sequences_align_well():
    layers = np.tile(np.arange(1, 31), 2_000)  # nothing in it is unique
    extra = np.insert(layers, np.arange(0, len(layers), 25), 0)
    assert len(assert_pairs(layers, extra)) == len(layers)
    fewer = layers[np.arange(len(layers)) % 3 > 0]
    assert len(assert_pairs(layers, fewer)) == len(fewer)
    # A block that only one of them has, far longer than what one search goes through.
    marked = np.concatenate([[100], layers[:30_000], [101], layers[30_000:], [102]])
    block = np.random.default_rng(0).integers(200, 300, 5_000)
    longer = np.concatenate([marked[:30_001], block, marked[30_001:]])
    assert len(assert_pairs(marked, longer)) > 0.99 * len(marked)


@pytest.mark.parametrize("kinds", [2, 50, 5_000, 100_000])
def test_time_is_bounded_whatever_the_sequences(kinds):
    dice = np.random.default_rng(kinds)
    first, second = dice.integers(0, kinds, (2, 100_000))
    aligned(first[:10], second[:10])  # compiles
    begin = time.perf_counter()
    assert_pairs(first, second)
    assert_pairs(np.arange(kinds), np.arange(kinds)[::-1].copy())
    assert_pairs(first, second + kinds)
    assert time.perf_counter() - begin < 5  # 0.3 s on an idle machine; a quadratic one takes minutes


# -- runs ------------------------------------------------------------------------------------------


def marks(begin=0):
    """A step, and the next one, which says when it ends."""
    return [event("user_annotation", f"ProfilerStep#{n}", begin + 100_000 * n, 100_000) for n in (0, 1)]


def rank(folder, work, begin=0, device=True, gap=100):
    """One step; each (operator, kernel, ns) launches 1 us after the last; the device does them one by one."""
    events = marks(begin)
    free = begin + 5_000
    for place, (operator, name, dur) in enumerate(work):
        at = begin + 1_000 * (place + 1)
        events.append(event("cpu_op", operator, at, 500))
        if device:
            events += [launch(at + 100, place + 1), kernel(name, free, dur, correlation=place + 1)]
            free += dur + gap
    folder.mkdir(exist_ok=True)
    return job(folder, events).rank(0)


def window(item):
    frame = item.iterations.iloc[0]
    return int(frame["start_ns"]), int(frame["end_ns"])


def between(base, other):
    found = anchors(base, window(base), other, window(other))
    assert found.dtype == np.int64 and (np.diff(found, axis=0) > 0).all()
    assert found[0].tolist() == [window(base)[0], window(other)[0]]
    assert found[-1].tolist() == [window(base)[1], window(other)[1]]
    return found


WORK = [("aten::mm", "gemm", 2_000), ("aten::relu", "relu", 1_000), ("aten::mm", "gemm", 3_000)]


def test_a_run_corresponds_to_itself(tmp_path):
    item = rank(tmp_path / "a", WORK)
    found = between(item, item)
    assert (found[:, 0] == found[:, 1]).all() and len(found) == 2 + 2 * len(WORK)


def test_the_same_work_with_other_kernels_at_other_times_corresponds(tmp_path):
    slow = [("aten::mm", "gemm2", 4_000), ("aten::tanh", "tanh", 500), *WORK[1:]]
    base, other = rank(tmp_path / "a", WORK), rank(tmp_path / "b", slow, begin=50_000)
    begin = np.array([window(base)[0], window(other)[0]])
    inner = (between(base, other)[1:-1] - begin).tolist()
    assert inner == [
        [5_000, 5_000], [7_000, 9_000],
        [7_100, 9_700], [8_100, 10_700],  # behind what only the other run does
        [8_200, 10_800], [11_200, 13_800],
    ]  # fmt: skip


def test_work_without_gaps_corresponds_to_work_with_gaps(tmp_path):
    base, other = rank(tmp_path / "a", WORK, gap=0), rank(tmp_path / "b", WORK, gap=300)
    for item, two in ((base, other), (other, base)):
        assert len(between(item, two)) == 2 + 2 * len(WORK) - 2  # an end and the next start are one instant


def test_operators_correspond_where_there_is_no_device_work(tmp_path):
    base, other = rank(tmp_path / "a", WORK, device=False), rank(tmp_path / "b", WORK[1:])
    begin = np.array([window(base)[0], window(other)[0]])
    inner = (between(base, other)[1:-1] - begin).tolist()
    assert inner == [[2_000, 1_000], [2_500, 1_500], [3_000, 2_000], [3_500, 2_500]]


def test_windows_without_anything_in_common_have_their_edges(tmp_path):
    base, other = rank(tmp_path / "a", WORK[:1]), rank(tmp_path / "b", WORK[1:2])
    assert len(between(base, other)) == 2
    with pytest.raises(ValueError, match="must end after it starts"):
        anchors(base, (10, 10), other, window(other))


def test_instances_of_one_kind_of_module_correspond(tmp_path):
    def modules(folder, *numbers):
        events = marks()
        for place, number in enumerate(numbers):
            at = 10_000 * (place + 1)
            events += [
                event("python_function", f"nn.Module: Linear_{number}", at, 5_000),
                event("cpu_op", "aten::mm", at + 100, 500),
                launch(at + 200, place + 1),
                kernel("gemm", at + 1_000, 2_000, correlation=place + 1),
            ]
        folder.mkdir()
        return job(folder, events).rank(0)

    base, other = modules(tmp_path / "a", 0, 1, 2), modules(tmp_path / "b", 7, 8, 9)
    found = between(base, other)
    assert (found[:, 0] == found[:, 1]).all() and len(found) == 2 + 2 * 3


@pytest.mark.parametrize("names", [("op0", "op1"), ("op", "op")])
def test_time_does_not_run_backwards_where_streams_overtake_each_other(tmp_path, names):
    """Also where only the order of their launches tells them apart."""

    def two_streams(folder, first, second):
        folder.mkdir()
        events = marks()
        for place, (stream, start) in enumerate(((7, first), (8, second))):
            at = 1_000 * (place + 1)
            events += [
                event("cpu_op", names[place], at, 500),
                launch(at + 100, place + 1),
                kernel("k", start, 1_000, stream=stream, correlation=place + 1),
            ]
        return job(folder, events).rank(0)

    base, other = two_streams(tmp_path / "a", 10_000, 20_000), two_streams(tmp_path / "b", 20_000, 10_000)
    assert len(between(base, other)) == 4


@cache
def shared(name):
    trace = Trace.open(shared_trace(name), cache=False)
    return trace.rank(trace.ranks[0])


def test_the_device_work_of_one_model_on_two_vendors_corresponds():
    """All that H100 has too: 24 of MI300's 1,054 kernels zero a buffer for its attention."""
    name = "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
    h100, mi300 = shared(f"tracelens/h100/{name}"), shared(f"tracelens/mi300/{name}")
    found = anchors(h100, h100.device_span, mi300, mi300.device_span)
    assert (np.diff(found, axis=0) > 0).all()
    launched = np.flatnonzero(
        mi300.is_device & (mi300.event_class != EventClass.SYNC) & (mi300.iteration >= 0)
    )
    corresponds = np.isin(mi300.start[launched], found[:, 1])
    assert corresponds.mean() > 0.97
    # What corresponds was launched by operators of the same name.
    other = {int(h100.start[row]): row for row in np.flatnonzero(h100.is_device).tolist()}
    pairs = dict(zip(found[:, 1].tolist(), found[:, 0].tolist(), strict=True))
    for row in launched[corresponds].tolist():
        partner = other.get(pairs[int(mi300.start[row])])
        if partner is not None:
            assert operator(h100, partner) == operator(mi300, row)


@pytest.mark.parametrize(
    "other", [{"strategy": "fsdp_full_shard"}, {"extra_op": "aten::tanh"}, {"layers": 4}]
)
def test_another_setup_of_one_model_corresponds_kernel_by_kernel(other):
    """FSDP wraps each block in a module of its own: the paths differ, what runs inside does not."""
    base, changed = simulated(seed=1), simulated(seed=2, **other)
    found = between(base, changed)
    computed = base.is_device & (base.event_class == EventClass.COMPUTE)
    computed &= (base.start > window(base)[0]) & (base.start < window(base)[1])
    corresponds = np.isin(base.start[computed], found[:, 0])
    assert corresponds.mean() > 0.9
    pairs = dict(found.tolist())
    names = {int(changed.start[row]): changed.names[changed.name[row]] for row in range(changed.n)
             if changed.is_device[row]}  # fmt: skip
    for row in np.flatnonzero(computed)[corresponds].tolist():
        assert (
            names.get(pairs[int(base.start[row])], base.names[base.name[row]]) == base.names[base.name[row]]
        )


@cache
def simulated(**fields):
    fields = {"strategy": "ddp", "ranks": 2, "steps": 2, "layers": 3, "python_frames": True} | fields
    with TemporaryDirectory() as folder:
        files = simulate(SimulatedJob("job", **fields)).write(Path(folder))
        return Trace.open(files, cache=False).rank(0)


def operator(item, row):
    """The name of the operator that launched device work: the caller of the launching call."""
    at = item.parent[item.launch[row]]
    while at >= 0 and item.event_class[at] != EventClass.HOST_OP:
        at = item.parent[at]
    return item.names[item.name[at]] if at >= 0 else ""
