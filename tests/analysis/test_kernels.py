"""Kernel tables: small jobs with known truth, the simulator's truth, and what must hold of any trace."""

import itertools
import math
import statistics
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.simulator import simulate
from examples.simulator.bundled import JOBS
from hta_widgets import examples
from hta_widgets.analysis.device_time import kernel_types
from hta_widgets.analysis.device_time.kernel_types import IDLE, kernel_type_breakdown
from hta_widgets.analysis.kernels import breakdown as kernels
from hta_widgets.analysis.kernels.breakdown import kernel_breakdown
from hta_widgets.analysis.kernels.durations import QUANTILES, kernel_durations
from hta_widgets.analysis.kernels.durations import sentence as durations_in_words
from hta_widgets.analysis.kernels.moments import described, merged, moments
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.support import SIMULATED, shared_trace, tried

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@pytest.fixture
def small(tmp_path) -> Trace:
    """Rank 0: a 10, 20, 30 ns; b 5; a collective 100; a copy; a fill; waits and annotations do not count."""
    rank_0 = [
        kernel("a", 1000, 10),
        kernel("a", 1020, 20),
        kernel("a", 1050, 30),
        kernel("b", 1060, 5, stream=8),
        kernel(NCCL, 1070, 100, stream=8),
        kernel("Memcpy HtoD", 1160, 40, stream=9, cat="gpu_memcpy"),
        kernel("Memset (Device)", 1300, 7, stream=9, cat="gpu_memset"),
        kernel("Stream Sync", 1000, 400, cat="cuda_sync"),
        kernel("region", 1000, 100, cat="gpu_user_annotation"),
        event("cpu_op", "triton_poi_fused_0", 1000, 900, stream=7),
    ]
    return job(tmp_path, rank_0, [kernel("a", 1000, 60), kernel("b", 1100, 6)])


def test_statistics_of_single_launches(small):
    frame = kernel_breakdown(small, Scope(ranks=(0,))).set_index("name")
    assert list(frame.index) == [NCCL, "a", "Memcpy HtoD", "Memset (Device)", "b"]
    a = frame.loc["a"]
    assert (a["count"], a["sum_ns"], a["min_ns"], a["max_ns"], a["mean_ns"]) == (3, 60, 10, 30, 20.0)
    assert a["std_ns"] == 10.0
    assert math.isnan(frame.loc["b", "std_ns"])
    assert frame["pct"].sum() == pytest.approx(100)
    assert a["pct"] == pytest.approx(100 * 60 / 212)
    assert frame["event_class"].tolist() == [
        "communication",
        "compute",
        "memory_copy",
        "memory_set",
        "compute",
    ]


def test_the_job_as_a_whole(small):
    frame = kernel_breakdown(small, by="job").set_index("name")
    assert "rank" not in frame
    assert (frame.loc["a", "count"], frame.loc["a", "sum_ns"]) == (4, 120)
    assert frame.loc["a", "std_ns"] == pytest.approx(statistics.stdev([10, 20, 30, 60]))


def test_others_have_the_statistics_of_their_launches(small):
    frame = kernel_breakdown(small, Scope(ranks=(1,)), top=0)
    assert frame["name"].tolist() == ["others"]
    row = frame.iloc[0]
    assert (row["names"], row["count"], row["sum_ns"], row["min_ns"], row["max_ns"]) == (2, 2, 66, 6, 60)
    assert (row["mean_ns"], row["std_ns"]) == (33.0, pytest.approx(statistics.stdev([60, 6])))


@pytest.mark.parametrize(("share", "shown"), [(0, 1), (60 / 66, 1), (0.92, 2), (1, 2)])
def test_share_shows_as_few_names_as_make_it_up(small, share, shown):
    frame = kernel_breakdown(small, Scope(ranks=(1,)), share=share)
    assert (frame["name"] != "others").sum() == shown
    assert frame["sum_ns"].sum() == 66


def test_the_share_is_of_each_class(small):
    """A collective alone takes more than the kernels of rank 0 together: theirs is a share of their own."""
    frame = kernel_breakdown(small, Scope(ranks=(0,)), share=0.9)
    of_compute = frame[frame["event_class"] == "compute"]
    assert of_compute["name"].tolist() == ["a", "others"]
    assert kernel_breakdown(small, Scope(ranks=(0,)), share=0.95)["name"].tolist().count("others") == 0


def test_arguments_are_checked(small):
    for wrong in ({"by": "stream"}, {"top": -1}, {"share": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            kernel_breakdown(small, **wrong)
    with pytest.raises(ValueError, match="by must be"):
        kernel_type_breakdown(small, by="job")


def test_kernel_types_are_exclusive_and_complete(small):
    frame = kernel_type_breakdown(small, Scope(ranks=(0,))).set_index("kernel_type")["dur_ns"]
    # a 1000-1010, 1020-1040, 1050-1080, collective 1070-1170, copy 1160-1200, fill 1300-1307
    assert frame.to_dict() == {
        "compute": 50,
        "communication": 80,
        "memory": 37,
        "compute + communication": 10,
        "communication + memory": 10,
        "idle": 120,
    }


def test_kernel_types_within_a_window(small):
    frame = kernel_type_breakdown(small, Scope(ranks=(0,), window_ns=(70, 165))).set_index("kernel_type")
    assert frame["dur_ns"].to_dict() == {
        "communication": 80,
        "compute + communication": 10,
        "communication + memory": 5,
    }
    assert frame["busy_pct"].sum() == pytest.approx(100)


def test_durations_across_ranks(small):
    frame = kernel_durations(small, Scope(names=("a", "b")))
    assert frame[["name", "rank"]].to_numpy().tolist() == [["a", 0], ["a", 1], ["b", 0], ["b", 1]]
    first = frame.iloc[0]
    quartiles = [first[name] for name in ("p25_ns", "median_ns", "p75_ns", "p99_ns")]
    assert quartiles == np.quantile([10, 20, 30], [0.25, 0.5, 0.75, 0.99]).tolist()
    assert frame["rank_ratio"].tolist() == [3.0, 3.0, 1.2, 1.2]
    assert "slowest on rank 1, 60 ns a launch, and fastest on rank 0, 20 ns" in durations_in_words(frame)


def test_device_work_belongs_to_the_iteration_that_launched_it(tmp_path):
    steps = [event("user_annotation", f"ProfilerStep#{n}", 1000 * n, 1000) for n in (1, 2)]
    launches = [launch(1100, 1), launch(1200, 2), launch(2100, 3)]
    late = [kernel("k", 1500, 10, correlation=1), kernel("k", 2050, 20, correlation=2)]
    trace = job(tmp_path, [*steps, *launches, *late, kernel("k", 2500, 40, correlation=3)])
    frame = kernel_breakdown(trace, by="iteration")
    assert frame[["iteration", "count", "sum_ns"]].to_numpy().tolist() == [[1, 2, 30], [2, 1, 40]]
    for iteration in (1, 2):
        alone = kernel_breakdown(trace, Scope(iterations=(iteration,)))
        expected = frame[frame["iteration"] == iteration].drop(columns="iteration")
        pd.testing.assert_frame_equal(alone, expected.reset_index(drop=True))


def test_sentences(small):
    assert kernels.sentence(kernel_breakdown(small, Scope(ranks=(1,)))) == (
        "Device work takes 66 ns. The largest part is a: 90.9 % in 1 launch."
    )
    assert kernel_types.sentence(kernel_type_breakdown(small, Scope(ranks=(0,)))) == (
        "Of 187 ns of busy time, 42.8 % is communication alone. Different kinds of work overlap for 10.7 %."
    )
    frame = kernel_durations(small, Scope(ranks=(0,), names=("a",)))
    assert durations_in_words(frame) == (
        "A launch of a on rank 0 takes 20 ns at the median. All take 10 ns to 30 ns."
    )
    empty = Scope(window_ns=(5000, 6000))
    assert "No device work" in kernels.sentence(kernel_breakdown(small, empty))
    assert "No device work" in durations_in_words(kernel_durations(small, empty))
    assert "No device work" in kernel_types.sentence(kernel_type_breakdown(small, empty))


def test_empty_selections_keep_columns_and_types(small):
    empty = Scope(window_ns=(5000, 6000))
    for function in (kernel_breakdown, kernel_durations):
        full, none = function(small), function(small, empty)
        assert none.empty
        pd.testing.assert_series_equal(none.dtypes, full.dtypes)
    assert kernel_type_breakdown(small, empty)["kernel_type"].tolist() == [IDLE, IDLE]


@pytest.mark.parametrize("function", [kernel_breakdown, kernel_type_breakdown, kernel_durations])
def test_a_trace_without_device_names_the_remedy(tmp_path, function):
    trace = job(tmp_path, [event("cpu_op", "aten::add", 0, 10)])
    with pytest.raises(MissingDataError, match="ProfilerActivity"):
        function(trace)


def test_figures_take_any_ranks_and_escape_names(tmp_path):
    evil = '<a href="javascript:x">k</a>'
    trace = Trace.open({5: _file(tmp_path, evil), 900: _file(tmp_path, evil)}, cache=False)
    for figure in (
        ANALYSES["kernel_breakdown"].figure(kernel_breakdown(trace)),
        ANALYSES["kernel_breakdown"].figure(kernel_breakdown(trace, by="iteration")),
        ANALYSES["kernel_breakdown"].figure(kernel_breakdown(trace, by="job")),
        ANALYSES["kernel_durations"].figure(kernel_durations(trace)),
        ANALYSES["kernel_type_breakdown"].figure(kernel_type_breakdown(trace)),
        ANALYSES["kernel_type_breakdown"].figure(kernel_type_breakdown(trace, by="iteration")),
    ):
        assert "<a href" not in str(figure.to_dict())


def _file(folder, name):
    job(folder, [kernel(name, 1000, 10), kernel("Memcpy", 1005, 10, stream=8, cat="gpu_memcpy")])
    return folder / "0.json"


# Truth of simulated jobs.


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_jobs(name):
    trace, truth = examples.load(name), simulate(JOBS[name]).truth
    totals = kernel_breakdown(trace).groupby(["rank", "event_class"])[["sum_ns", "count"]].sum()
    types = kernel_type_breakdown(trace).set_index(["rank", "kernel_type"])["dur_ns"]
    for rank, expected in truth.ranks.items():
        for kind, intervals in expected.intervals.items():
            classes = [kind] if kind != "memory" else ["memory_copy", "memory_set"]
            found = totals.loc[[(rank, item) for item in classes if (rank, item) in totals.index]].sum()
            assert found["sum_ns"] == sum(end - start for start, end in intervals)
            assert found["count"] == len(intervals)
        assert types.loc[rank].to_dict() == _swept(expected.intervals)


def _swept(intervals):
    """Time of each combination of kinds, found instant by instant between the edges of all work."""
    edges = sorted({edge for found in intervals.values() for pair in found for edge in pair})
    running, spent = dict.fromkeys(intervals, 0), {}
    changes = {}
    for kind, found in intervals.items():
        for start, end in found:
            changes.setdefault(start, []).append((kind, 1))
            changes.setdefault(end, []).append((kind, -1))
    for low, high in itertools.pairwise(edges):
        for kind, by in changes[low]:
            running[kind] += by
        label = " + ".join(kind for kind in kernel_types.KINDS if running.get(kind)) or IDLE
        spent[label] = spent.get(label, 0) + high - low
    return spent


# What holds of any trace.

REAL = ["hta/trace_filter", "hta/trace_diff/control", "tracelens/mi300/resnet_act_checkpoint.json.gz"]


@pytest.mark.parametrize("name", REAL)
def test_neighbouring_scopes_add_up(name):
    trace = Trace.open(shared_trace(name))
    first, last = trace.extent_ns
    cut = (first + last) // 2
    keys = ["rank", "event_class", "name"]
    halves = [kernel_breakdown(trace, Scope(window_ns=w)) for w in ((first, cut), (cut, last + 1))]
    whole = kernel_breakdown(trace).set_index(keys).sort_index()
    added = pd.concat(halves).groupby(keys)[["count", "sum_ns"]].sum().sort_index()
    pd.testing.assert_frame_equal(added, whole[["count", "sum_ns"]])
    for top, share in ((3, None), (None, 0.5), (2, 0.9)):
        collapsed = kernel_breakdown(trace, top=top, share=share)
        assert collapsed["sum_ns"].sum() == whole["sum_ns"].sum()
        assert collapsed["count"].sum() == whole["count"].sum()
        assert collapsed["names"].sum() == len(whole)


@pytest.mark.parametrize("name", REAL)
def test_kernel_types_fill_the_window(name):
    trace = Trace.open(shared_trace(name))
    random = np.random.default_rng(3)
    first, last = trace.extent_ns
    windows = np.sort(random.integers(first, last, (10, 2)), axis=1).tolist()
    for scope in [Scope(), *(Scope(window_ns=tuple(window)) for window in windows if window[0] < window[1])]:
        frame = kernel_type_breakdown(trace, scope)
        assert (frame["dur_ns"] > 0).all()
        for rank, part in frame.groupby("rank"):
            window = trace.rank(int(rank)).windows(scope)
            assert part["dur_ns"].sum() == (window[:, 1] - window[:, 0]).sum()


@pytest.mark.parametrize("name", REAL)
def test_durations_agree_with_numpy(name):
    trace = Trace.open(shared_trace(name))
    rank = trace.ranks[0]
    frame = kernel_durations(trace, Scope(ranks=(rank,)))
    events = trace.events(Scope(ranks=(rank,)))
    for _, row in frame.head(20).iterrows():
        chosen = (events["name"] == row["name"]) & (events["event_class"] == row["event_class"])
        dur = events.loc[chosen, "dur_ns"].to_numpy()
        found = [row[column] for column in QUANTILES]
        np.testing.assert_allclose(found, np.quantile(dur, list(QUANTILES.values())), rtol=1e-12)


# Durations from nanoseconds to months: products of the longest need more than 64 bits.
DURATIONS = st.lists(st.integers(0, 5) | st.integers(0, 2**53), min_size=1, max_size=30)


@settings(deadline=None, max_examples=tried(25))
@given(st.lists(DURATIONS, min_size=1, max_size=4))
def test_moments_are_exact(groups):
    """Of groups, and of groups merged in two steps."""
    dur = np.array([item for group in groups for item in group], np.int64)
    number = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    order = np.random.default_rng(0).permutation(len(dur))
    frame = moments(number[order], dur[order], len(groups) + 2)
    assert frame["squares"].tolist() == [sum(item**2 for item in group) for group in groups]
    pairs = merged(frame.assign(key=frame.index // 2, all=1), ["key", "all"])
    together = merged(pairs, ["all"])
    result = pd.concat([described(frame), described(together)])
    for row, group in zip(result.to_dict("records"), [*groups, dur.tolist()], strict=True):
        assert (row["count"], row["sum_ns"]) == (len(group), sum(group))
        assert (row["min_ns"], row["max_ns"]) == (min(group), max(group))
        if len(group) > 1:
            mean = Fraction(sum(group), len(group))
            variance = sum((item - mean) ** 2 for item in group) / (len(group) - 1)
            assert row["std_ns"] == math.sqrt(variance)
