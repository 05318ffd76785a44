"""Call trees: on stacks drawn by hand, on random ones, and on recorded traces."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets.analysis.calls.call_stacks import call_stacks, sentence
from hta_widgets.analysis.calls.nesting import nest
from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.calls.tree import measure, owners
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_, write

# time     0         10        20        30        40
# thread 1 ProfilerStep#3 -------------------------
#          aten::linear ------ aten::mul   ## backward ## (30..40)
#            aten::addmm ----    launch C
#              launch A, B
# thread 2                                   autograd (32..38), launch D
# device       A=3 B=4            C=5                  D=6
EVENTS = [
    slice_("ProfilerStep#3", "user_annotation", 0, 40),
    slice_("aten::linear", "cpu_op", 0, 20),
    slice_("aten::addmm", "cpu_op", 2, 16),
    slice_("cudaLaunchKernel", "cuda_runtime", 4, 2, correlation=1),
    slice_("cudaLaunchKernel", "cuda_runtime", 8, 2, correlation=2),
    slice_("aten::mul", "cpu_op", 20, 5),
    slice_("cudaLaunchKernel", "cuda_runtime", 21, 2, correlation=3),
    slice_("## backward ##", "user_annotation", 30, 10),
    slice_("autograd::engine::evaluate_function: MulBackward0", "cpu_op", 32, 6, tid=2),
    slice_("cudaLaunchKernel", "cuda_runtime", 33, 1, tid=2, correlation=4),
    kernel("A", 10, 3, 1),
    kernel("B", 13, 4, 2, stream=8),
    kernel("C", 25, 5, 3),
    kernel("D", 41, 6, 4),
    kernel("orphan", 60, 100, 99),
]


@pytest.fixture
def trace(tmp_path):
    return Trace.open(write(tmp_path / "rank0.json", EVENTS))


def test_every_row_knows_its_caller_and_what_it_launched(trace):
    tree = stacks(trace.rank(0))
    assert tree.parent.tolist() == [-1, 0, 1, 2, 2, 0, 5, 0, 7, 8, 3, 4, 6, 9, -1]
    assert tree.depth.tolist() == [0, 1, 2, 3, 3, 1, 2, 1, 2, 3, 4, 4, 3, 4, -1]
    assert tree.height.tolist() == [4, 3, 2, 1, 1, 2, 1, 3, 2, 1, 0, 0, 0, 0, -1]
    assert tree.root.tolist() == [0] * 14 + [-1]
    assert tree.kernels.tolist() == [4, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]
    assert tree.kernel_dur_sum_ns[[0, 1, 5, 7]].tolist() == [18_000, 7_000, 5_000, 6_000]
    assert tree.first_kernel_start_ns[[0, 7, 14]].tolist() == [10_000, 41_000, NULL]
    assert tree.last_kernel_end_ns[[0, 1]].tolist() == [47_000, 17_000]
    assert tree.kernel_span_ns[[0, 1, 14]].tolist() == [37_000, 7_000, 0]
    # The backward thread runs beside its step and takes nothing of its time.
    assert tree.self_ns.tolist() == [
        5_000, 4_000, 12_000, 2_000, 2_000, 3_000, 2_000, 10_000, 5_000, 1_000, 0, 0, 0, 0, 0,
    ]  # fmt: skip


def test_backward_threads_stay_apart_if_asked(trace):
    tree = stacks(trace.rank(0), merge_backward=False)
    assert tree.parent[8] == -1
    assert tree.kernels[[0, 7]].tolist() == [3, 0]


def test_backward_hangs_below_the_step_where_there_is_no_annotation(tmp_path):
    events = [event for event in EVENTS if event["name"] != "## backward ##"]
    tree = stacks(Trace.open(write(tmp_path / "rank0.json", events)).rank(0))
    assert tree.parent[7] == 0


def test_a_backward_call_that_no_step_contains_stays_at_the_top(tmp_path):
    late = slice_("autograd::engine::evaluate_function: X", "cpu_op", 39, 6, tid=2)
    tree = stacks(Trace.open(write(tmp_path / "rank0.json", [*EVENTS, late])).rank(0))
    assert tree.parent[-1] == -1


def test_calls_shorter_than_the_clocks_tick_stay_with_their_caller():
    start, end = np.array([0, 0, 5, 5, 9, 5]), np.array([5, 0, 5, 9, 9, 9])
    zero = np.zeros(6, np.int64)
    # Row 2 touches the end of row 0 and the start of rows 3 and 5, which are equal: the innermost one is it.
    assert nest(start, end, zero, zero).tolist() == [-1, 0, 5, -1, 5, 3]


def test_what_stands_before_a_call_of_its_kind_in_the_file_was_not_made_by_it():
    # slice (0..5) makes as_strided in its last instant, where narrow (5..9) begins and makes to. Neither an
    # annotation (5..9) nor another thread say which operator came first.
    start, end = np.array([0, 5, 5, 5, 5, 5]), np.array([5, 5, 9, 5, 9, 9])
    kind, lane = np.array([1, 1, 1, 1, 0, 1]), np.array([0, 0, 0, 0, 0, 1])
    assert nest(start, end, lane, kind).tolist() == [-1, 0, 4, 2, -1, -1]
    # Without slice it lies where it starts.
    assert nest(start[1:3], end[1:3], lane[1:3], kind[1:3]).tolist() == [1, -1]
    # A file that does not list operators by start says nothing: then a call is made where it begins.
    start, end, zero = np.array([5, 5, 0]), np.array([5, 9, 5]), np.zeros(3, np.int64)
    assert nest(start, end, zero, zero).tolist() == [1, -1, -1]


def test_recorded_calls_without_length_stay_with_their_caller():
    """`aten::slice` makes `aten::as_strided`, also where the next `aten::narrow` begins in the same us."""
    rank_trace = Trace.open(shared_trace("hta/trace_diff/control")).rank(3)
    parent = stacks(rank_trace).parent
    row = {int(event): at for at, event in enumerate(rank_trace.event_id)}
    assert [int(rank_trace.event_id[parent[row[event]]]) for event in (5655, 10575)] == [5654, 10574]
    strided = np.flatnonzero(rank_trace.name == rank_trace.names.index("aten::as_strided"))
    assert "aten::narrow" not in {rank_trace.names[rank_trace.name[at]] for at in parent[strided]}


def test_calls_that_only_partly_overlap_are_not_nested():
    start, end = np.array([0, 5, 11]), np.array([10, 15, 14])
    zero = np.zeros(3, np.int64)
    assert nest(start, end, zero, zero).tolist() == [-1, -1, 1]


def test_paths_add_up(trace):
    frame = call_stacks(trace).set_index("name")
    assert frame["count"].tolist() == [1, 1, 1, 1, 1, 1, 1, 1, 2]
    assert frame["parent_node"].tolist() == [-1, 0, 0, 0, 1, 2, 3, 4, 5]
    assert frame.loc["ProfilerStep#3", ["host_ns", "host_self_ns", "kernels", "device_ns"]].tolist() == [
        40_000, 5_000, 4, 18_000,
    ]  # fmt: skip
    assert frame.loc["aten::addmm", ["host_ns", "host_self_ns", "kernels", "device_ns"]].tolist() == [
        16_000, 12_000, 2, 7_000,
    ]  # fmt: skip
    assert sentence(call_stacks(trace)).startswith("The most host time goes to aten::addmm itself: 12.0 µs")


def test_calls_without_a_name_are_said_to_have_none(trace):
    said = sentence(call_stacks(trace).assign(name=""))
    assert said.startswith("The most host time goes to a call without a name itself")
    assert said.endswith("ends in a call without a name.")


def test_windows_clip_host_time(trace):
    first = call_stacks(trace, Scope(window_ns=(0, 10_000))).set_index("name")
    assert first.loc["ProfilerStep#3", "host_ns"] == 10_000
    assert first.loc["aten::addmm", ["count", "host_ns", "host_self_ns"]].tolist() == [1, 8_000, 4_000]
    assert first["device_ns"].sum() == 0
    rest = call_stacks(trace, Scope(window_ns=(10_000, 100_000))).set_index("name")
    assert rest.loc["ProfilerStep#3", ["count", "host_ns", "kernels"]].tolist() == [0, 30_000, 4]


def test_a_scope_without_calls_is_empty_and_no_host_is_an_error(trace, tmp_path):
    empty = call_stacks(trace, Scope(window_ns=(10**9, 10**9 + 1)))
    assert empty.empty
    assert sentence(empty) == "No host call lies in the selection."
    alone = Trace.open(write(tmp_path / "device" / "rank0.json", [kernel("A", 0, 1, 1)]))
    with pytest.raises(MissingDataError, match="host events"):
        call_stacks(alone)


def test_the_tree_of_a_rank_is_grown_once(trace):
    assert stacks(trace.rank(0)) is stacks(trace.rank(0), merge_backward=True)
    assert stacks(trace.rank(0)) is not stacks(trace.rank(0), merge_backward=False)


def test_the_figure_shows_every_path_and_no_markup(trace, tmp_path):
    frame = call_stacks(trace)
    figure = ANALYSES["call_stacks"].figure(frame.assign(name="<b>x"))
    for icicle in figure.data:
        assert set(icicle.parents) - {""} <= set(icicle.ids)
        assert icicle.labels[-1] == "&lt;b&gt;x"
    host, device = figure.data
    assert sum(host["values"]) == frame["host_self_ns"].sum()
    assert device["values"][0] == 18_000
    assert [button.label for button in figure.layout.updatemenus[0].buttons] == ["Host time", "Kernel time"]


@st.composite
def forests(draw):
    """Random properly nested calls on two threads, shuffled; and what contains what."""
    rows = []

    def fill(first, last, lane, above):
        at = first
        while at < last and len(rows) < 40:
            begin = draw(st.integers(at, last))
            end = draw(st.integers(begin, last))
            if end == begin:
                break
            rows.append((begin, end, lane))
            if draw(st.booleans()):
                fill(begin, end, lane, len(rows) - 1)
            at = end
            if draw(st.booleans()):
                break

    for lane in (0, 1):
        fill(0, draw(st.integers(1, 60)), lane, -1)
    order = draw(st.permutations(range(len(rows))))
    return np.array([rows[i] for i in order], np.int64).reshape(-1, 3)


@given(forests())
def test_nesting_is_a_forest_and_time_is_conserved(rows):
    start, end, lane = rows.T.copy()
    parent = nest(start, end, lane, np.zeros(len(rows), np.int64))
    tree = measure(start, end, lane, parent, np.zeros(len(rows), np.bool_))
    has = parent >= 0
    assert (lane[parent[has]] == lane[has]).all()
    assert (start[parent[has]] <= start[has]).all()
    assert (end[parent[has]] >= end[has]).all()
    assert (tree.depth[has] == tree.depth[parent[has]] + 1).all()
    assert (tree.depth[~has] == 0).all()
    # Self times of a tree add up to its root; nothing is negative.
    assert (tree.self_ns >= 0).all()
    for root in np.flatnonzero(~has):
        assert tree.self_ns[tree.root == root].sum() == end[root] - start[root]
    # Depth is the number of other calls of the lane around it.
    around = (
        (lane[:, None] == lane)
        & (start[:, None] <= start)
        & (end[:, None] >= end)
        & ((start[:, None] < start) | (end[:, None] > end))
    ).sum(axis=0)
    equal = (lane[:, None] == lane) & (start[:, None] == start) & (end[:, None] == end)
    assert (tree.depth >= around).all()
    assert (tree.depth <= around + equal.sum(axis=0) - 1).all()


@given(forests(), st.data())
def test_owners_are_the_topmost_chosen_callers(rows, data):
    start, end, lane = rows.T.copy()
    parent = nest(start, end, lane, np.zeros(len(rows), np.int64))
    tree = measure(start, end, lane, parent, np.zeros(len(rows), np.bool_))
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_)
    owner = owners(tree, chosen)
    for row in range(len(rows)):
        path, at = [], row
        while at >= 0:
            path.append(at)
            at = parent[at]
        expected = [item for item in reversed(path) if chosen[item]]
        assert owner[row] == (expected[0] if expected else -1)


REAL = [
    "hta/trace_diff/control", "hta/ns_resolution_trace", "hta/nccl_parser_config", "hta/amd_trace",
    "tracelens/mi300/resnet_act_checkpoint.json.gz", "kineto/resnet50_num_workers_0",
]  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_recorded_traces_conserve_kernels_and_time(name):
    trace = Trace.open(shared_trace(name))
    rank_trace = trace.rank(trace.ranks[0])
    tree = stacks(rank_trace)
    tops = np.flatnonzero(tree.depth == 0)
    linked = rank_trace.is_device & (tree.depth >= 0)
    assert tree.kernels[tops].sum() == linked.sum()
    assert tree.kernel_dur_sum_ns[tops].sum() == rank_trace.dur[linked].sum()
    assert (rank_trace.is_device[tree.kernels == 1] | (tree.height[tree.kernels == 1] > 0)).all()
    frame = call_stacks(trace)
    assert frame.loc[frame["parent_node"] < 0, "device_ns"].sum() == rank_trace.dur[linked].sum()
    assert (frame["host_self_ns"] >= 0).all()
    children = frame[frame["parent_node"] >= 0].groupby("parent_node")["device_ns"].sum()
    parents = frame.set_index("node")["device_ns"]
    assert (children <= parents[children.index]).all()


@pytest.mark.parametrize("name", REAL[:3])
def test_neighbouring_windows_add_up(name):
    trace = Trace.open(shared_trace(name))
    first, last = trace.extent_ns
    middle = (first + last) // 2 + 1
    keys = ["rank", "node"]
    halves = [call_stacks(trace, Scope(window_ns=w)) for w in ((first, middle), (middle, last + 1))]
    both = pd.concat(halves).groupby(keys)[["count", "host_ns", "host_self_ns", "kernels", "device_ns"]].sum()
    whole = call_stacks(trace).set_index(keys)[both.columns]
    pd.testing.assert_frame_equal(both.reindex(whole.index), whole)


def test_the_order_of_the_file_does_not_matter(tmp_path):
    frames = []
    for folder, events in (("a", EVENTS), ("b", EVENTS[::-1])):
        frames.append(call_stacks(Trace.open(write(tmp_path / folder / "rank0.json", events))))
    pd.testing.assert_frame_equal(*frames)
