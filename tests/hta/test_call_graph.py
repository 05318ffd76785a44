"""HTA's call graphs, new and old, on a hand-made thread and on recorded traces."""

import numpy as np
import pandas as pd
import pytest

from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.hta.common import call_stack as old
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.common.trace_call_graph import CallGraph
from hta_widgets.hta.common.trace_call_stack import CallStackGraph, CallStackIdentity, CallStackNode
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable
from tests.analysis.test_stacks import EVENTS
from tests.support import shared_trace
from tests.trace.helpers import write

# index  0 ----------  4 --
#          1 ------      5
#            2 --- 3
START, DUR = [0, 1, 2, 5, 20, 21], [10, 8, 3, 2, 5, 1]
LINKS = pd.DataFrame({"cpu_index": np.empty(0, int), "gpu_index": np.empty(0, int)})


def frame(start=START, dur=DUR):
    n = len(start)
    return pd.DataFrame(
        {
            "index": range(n),
            "ts": start,
            "dur": dur,
            "stream": -1,
            "index_correlation": -1,
            "pid": 1,
            "tid": 9,
        }
    )


@pytest.fixture
def graph():
    return CallStackGraph(frame(), CallStackIdentity(0, 1, 9), LINKS, frame(), TraceSymbolTable())


@pytest.fixture
def trace():
    trace = Trace({0: str(shared_trace("hta/call_stack/backward_thread.json"))})
    trace.parse_traces()
    trace.decode_symbol_ids(use_shorten_name=False)
    return trace


def test_a_stack_can_be_walked(graph):
    assert graph.get_nodes()[1] == CallStackNode(0, 1, 2, children=[2, 3])
    assert graph.nodes[-9] == CallStackNode(-1, -1, 4, children=[0, 4])
    assert (graph.get_parent(2), graph.get_parent(0), graph.get_parent(77)) == (1, -9, -2)
    assert (graph.get_children(0), graph.get_children(77)) == ([1], [])
    assert (graph.get_root(3), graph.get_root(77)) == (-9, -1)
    assert graph.get_path_to_root(2) == [2, 1, 0, -9]
    assert graph.get_paths_to_leaves(0) == [[0, 1, 2], [0, 1, 3]]
    assert graph.get_leaf_nodes(0) == [2, 3]
    assert graph.get_descendants(1) == [1, 2, 3]
    assert graph.get_depth().to_dict() == {0: 0, 1: 1, 2: 2, 3: 2, 4: 0, 5: 1}
    visits = []
    graph.dfs_traverse(lambda i, _: visits.append(("in", i)), lambda i, _: visits.append(("out", i)))
    assert [i for kind, i in visits if kind == "in"] == [-9, 0, 1, 2, 3, 4, 5]
    assert [i for kind, i in visits if kind == "out"] == [2, 3, 1, 0, 5, 4, -9]


def test_stacks_that_share_nodes_can_be_linked():
    both = frame([*START, 0], [*DUR, 30]).assign(tid=[9] * 6 + [4])
    nodes = {}
    symbols = TraceSymbolTable()
    work = CallStackGraph(both.iloc[:6], CallStackIdentity(0, 1, 9), LINKS, both, symbols, nodes)
    main = CallStackGraph(both.iloc[6:], CallStackIdentity(0, 1, 4), LINKS, both, symbols, nodes)
    assert work.nodes is main.nodes
    work.update_parent_of_first_layer_nodes(6)
    assert main.get_children(6) == [0, 4]
    assert work.root_index == main.root_index == -4
    assert work.get_path_to_root(2) == [2, 1, 0, 6, -4]
    assert (nodes[2].depth, nodes[6].height, nodes[-4].height) == (3, 4, 5)
    with pytest.raises(ValueError, match="no node 99"):
        work.update_parent_of_first_layer_nodes(99)


def test_calls_without_length_lie_within():
    graph = CallStackGraph(
        frame([0, 0, 4, 5], [0, 5, 0, 0]), CallStackIdentity(0, 1, 9), LINKS, frame(), TraceSymbolTable()
    )
    assert [graph.get_parent(index) for index in range(4)] == [1, -9, 1, 1]


def test_a_thread_without_calls_has_a_root_alone():
    empty = frame([], [])
    graph = CallStackGraph(empty, CallStackIdentity(0, 1, 9), LINKS, empty, TraceSymbolTable())
    assert graph.get_nodes() == {-9: CallStackNode(-1, -1, -1)}
    assert (graph.get_children(-9), len(graph.get_depth())) == ([], 0)


def test_calls_that_partly_overlap_do_not_close_each_other():
    # 0: 0..10, 1: 5..15 (an annotation across a frame), 2: 11..14 inside 1 only.
    graph = CallStackGraph(
        frame([0, 5, 11], [10, 10, 3]), CallStackIdentity(0, 1, 9), LINKS, frame(), TraceSymbolTable()
    )
    assert [graph.get_parent(index) for index in range(3)] == [-9, -9, 1]


def test_htas_numbers_of_a_backward_thread(trace):
    graph = CallGraph(trace, [0])
    stack = graph.get_stack_of_node(5)
    assert stack["s_name"].tolist() == [
        "ProfilerStep#552", "## backward ##", "autograd::engine::evaluate_function: AddmmBackward0",
        "AddmmBackward0", "aten::mm", "cudaLaunchKernel",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>",
    ]  # fmt: skip
    assert stack["depth"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert stack["height"].tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert stack["num_kernels"].tolist() == [1] * 7
    assert stack["parent"].tolist() == [-3914, 0, 1, 2, 3, 4, 6]
    assert stack["kernel_dur_sum"].tolist() == [45.0] * 7
    assert graph.get_stack_of_node(5, skip_ancestors=True)["parent"].tolist() == [6]
    assert graph.get_stack_of_node(2, skip_ancestors=True)["parent"].tolist() == [1, 2, 3, 4, 6]
    assert graph.get_csg_of_node(5).identity == CallStackIdentity(0, 3914, 24922)
    assert sorted(graph.rank_to_nodes[0]) == [-3914, *range(7)]


def test_the_mapping_lists_the_stacks(trace):
    graph = CallGraph(trace)
    assert graph.mapping.to_numpy().tolist() == [
        [0, 3914, 3914, "main", 0, -3914, 1], [0, 3914, 24922, "bwd", 1, -3914, 2],
    ]  # fmt: skip
    assert [stack.identity.tid for stack in graph.get_call_stacks(rank=0)] == [3914, 24922]
    assert [stack.identity.tid for stack in graph.get_call_stacks(tid=24922)] == [24922]
    assert list(graph.get_call_stacks(rank=5)) == []
    assert len(graph.rank_to_stacks[0]) == len(graph.call_stacks) == 2


def test_a_frame_alone_gives_the_same_graph(trace):
    before = trace.get_trace(0).copy()
    graph = CallGraph.from_dataframe(trace.get_trace(0), trace.symbol_table)
    nodes = graph.get_csg_of_node(1).nodes
    assert {index: node.parent for index, node in nodes.items()} == {
        -3914: -1, 0: -3914, 1: 0, 2: 1, 3: 2, 4: 3, 5: 6, 6: 4,
    }  # fmt: skip
    pd.testing.assert_frame_equal(trace.get_trace(0), before)


def test_without_the_annotation_backward_hangs_below_the_step(trace):
    df = trace.get_trace(0)
    trace.traces[0] = df[df["s_name"].ne("## backward ##")]
    stack = CallGraph(trace).get_csg_of_node(2, 0)
    assert stack.get_parent(2) == 0
    assert 2 in stack.get_children(0)


def test_kernels_are_distinguished(trace):
    graph = CallGraph(trace)
    assert graph.get_gpu_kernels(0)["index"].tolist() == [5]
    stack = graph.get_csg_of_node(6)
    assert stack.get_leaf_nodes(0) == [6]
    assert stack.get_leaf_nodes(0, include_gpu_kernel=True) == [5]
    assert stack.get_descendants(5) == []


def test_what_is_not_there_is_an_error(trace):
    with pytest.raises(ValueError, match="no rank"):
        CallGraph(trace, [8])
    graph = CallGraph(trace)
    with pytest.raises(ValueError, match="no event 99"):
        graph.get_stack_of_node(99)
    with pytest.raises(ValueError, match="no rank 3"):
        graph.get_node_attributes(0, rank=3)


def test_every_rank_is_looked_up_on_its_own(tmp_path):
    """HTA takes rank 0 for "no rank", and looks up stacks in the rank asked about before (Q-33)."""
    other = [event for event in EVENTS if event["name"] != "aten::linear"]
    files = {0: write(tmp_path / "rank0.json", EVENTS), 1: write(tmp_path / "rank1.json", other)}
    trace = Trace({rank: str(path) for rank, path in files.items()}, "")
    trace.load_traces()
    graph = CallGraph(trace)
    name = trace.symbol_table.get_sym_table()
    assert name[graph.get_node_attributes(1, rank=1)["name"]] == "aten::addmm"
    assert name[graph.get_node_attributes(1, rank=0)["name"]] == "aten::linear"


def test_times_of_kernels_are_on_the_axis_of_ts(tmp_path):
    """HTA mixes absolute ends with relative starts: kernel_span is garbage there (Q-3)."""
    trace = Trace({0: str(write(tmp_path / "rank0.json", EVENTS))}, "")
    trace.load_traces()
    CallGraph(trace)
    row = trace.get_trace(0).loc[0]
    assert row[["first_kernel_start", "last_kernel_end", "kernel_span"]].tolist() == [10.0, 47.0, 37.0]


def test_roots_never_collide(tmp_path):
    events = [{**event, "tid": {1: 0, 2: 1}.get(event["tid"], event["tid"])} for event in EVENTS[:7]]
    events += [{**EVENTS[1], "tid": 1, "ts": 50}, {**EVENTS[1], "tid": -1, "ts": 90}]
    trace = Trace({0: str(write(tmp_path / "rank0.json", events))}, "")
    trace.load_traces()
    graph = CallGraph(trace)
    roots = graph.mapping["stack_root"]
    assert roots.is_unique
    assert (roots < -2).all()


def test_depths_agree_with_hta_on_a_recorded_trace():
    """From HTA 0.6.1 on this trace; it has `aten::linear` at two depths, 150 calls below the other 355."""
    trace = Trace({3: str(shared_trace("hta/trace_diff/control"))}, "")
    trace.load_traces()
    CallGraph(trace)
    df = trace.get_trace(3)
    linear = df[df["name"].eq(trace.symbol_table.get_sym_index()["aten::linear"])]
    assert linear["depth"].value_counts().to_dict() == {3: 355, 4: 150}
    assert len(df) == 62_255


def test_waits_and_copies_of_annotations_are_no_kernels():
    trace = Trace({0: str(shared_trace("hta/ns_resolution_trace"))}, "")
    trace.load_traces()
    CallGraph(trace)
    df = trace.get_trace(0)
    rank_trace = trace.job.rank(0)
    assert (
        df["num_kernels"].where(df["height"].eq(0), 0).sum()
        == (rank_trace.is_device & (rank_trace.launch >= 0)).sum()
    )


@pytest.mark.parametrize(
    "name",
    ["hta/amd_trace", "hta/mtia_inference_trace", "hta/critical_path/cuda_event_sync", "hta/trace_filter"],
)
def test_frames_and_ranks_have_the_same_tree(name):
    trace = Trace(None, str(shared_trace(name)))
    trace.load_traces()
    CallGraph(trace)
    for rank in trace.get_ranks():
        rank_trace, df = trace.job.rank(rank), trace.get_trace(rank)
        tree, rows = stacks(rank_trace), df.set_index("index").reindex(rank_trace.event_id)
        assert (rows["depth"].fillna(-1).to_numpy() == tree.depth).all()
        assert (rows["num_kernels"].fillna(0).to_numpy() == tree.kernels).all()
        assert (rows["kernel_dur_sum"].fillna(0).to_numpy() == tree.kernel_dur_sum_ns / 1000).all()


class TestOld:
    def test_a_stack_can_be_walked(self):
        graph = old.CallStackGraph(frame(), CallStackIdentity(0, 1, 9))
        assert graph.get_nodes() == {
            -1: old.CallStackNode(-1, -1, [0, 4]), 0: old.CallStackNode(-1, 0, [1]),
            1: old.CallStackNode(0, 1, [2, 3]), 2: old.CallStackNode(1, 2, []),
            3: old.CallStackNode(1, 2, []), 4: old.CallStackNode(-1, 0, [5]), 5: old.CallStackNode(4, 1, []),
        }  # fmt: skip
        assert graph.get_path_to_root(2) == [2, 1, 0, -1]
        assert graph.get_leaf_nodes(0) == [2, 3]
        assert graph.get_depth().to_dict() == {0: 0, 1: 1, 2: 2, 3: 2, 4: 0, 5: 1}

    def test_a_filter_chooses_events(self):
        graph = old.CallStackGraph(frame(), CallStackIdentity(), lambda df: df[df["index"].ne(1)])
        assert graph.get_parent(2) == 0
        assert graph.get_parent(77) == old.NON_EXISTENT_NODE_INDEX

    def test_a_stream_has_no_stack(self):
        graph = old.CallStackGraph(frame().assign(stream=7), CallStackIdentity(0, 0, 7))
        assert graph.nodes == {}
        assert set(graph.get_depth()) == {-1}

    def test_columns_and_stacks_of_a_trace(self, trace):
        graph = old.CallGraph(trace)
        df = trace.get_trace(0)
        assert df["parent"].tolist() == [-1, 0, -1, 2, 3, 6, 4]
        assert df["depth"].tolist() == [0, 1, 0, 1, 2, -1, 3]
        assert graph.get_stack_of_node(5, 0)["index"].tolist() == [6, 4, 3, 2, 5]
        assert graph.mapping.loc[(0, 3914, 24922), "csg_index"] == 2

    def test_threads_can_be_merged(self, trace):
        old.CallGraph(trace, remapped_tids={0: {24922: 3914}})
        assert trace.get_trace(0)["depth"].tolist() == [0, 1, 2, 3, 4, -1, 5]

    def test_depth_can_be_left_out(self, trace, monkeypatch):
        monkeypatch.setenv("HTA_DISABLE_CG_DEPTH", "1")
        old.CallGraph(trace)
        assert "depth" not in trace.get_trace(0)

    def test_python_calls_are_cut_at_their_callers_end(self, trace):
        df = pd.DataFrame(
            {
                "ts": [0.0, 1.0, 2.0, 0.0], "dur": [10.0, 12.0, 20.0, 99.0], "tid": [1, 1, 1, 2],
                "python_id": [1, 2, 3, 4], "python_parent_id": [-1, 1, 2, 1],
            }
        )  # fmt: skip
        old.CallGraph(trace).constrain_child_time_withinin_parent(df)
        assert df["dur"].tolist() == [10.0, 9.0, 8.0, 99.0]
