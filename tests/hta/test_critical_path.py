"""HTA's critical path graph: its own numbers, hand-made graphs, what-if, saving, overlays."""

import functools
import gzip
import json
import zipfile
from pathlib import Path

import networkx as nx
import pytest

from hta_widgets.errors import MissingDataWarning, TraceFormatError
from hta_widgets.hta.analyzers.critical_path_analysis import (
    BoundType,
    CPEdgeType,
    CPGraph,
    CriticalPathAnalysis,
    restore_cpgraph,
)
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.configs.env_options import HTAEnvOptions
from tests.analysis.kineto_file import event, kernel, write
from tests.support import shared_trace

FORWARD = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"

pytestmark = pytest.mark.filterwarnings("ignore::hta_widgets.errors.MissingDataWarning")

# HTA 0.6.1: graph nodes, edges, nodes on the path, length of the path in us. Where lengths have a fraction
# they are those with HTA_DISABLE_NS_ROUNDING=1: rounding takes away events that hold no whole microsecond.
HTA = {
    ("hta/critical_path/simple_add", FORWARD, 1): (414, 415, 315, 241724),
    ("hta/critical_path/alexnet", FORWARD, 1): (418, 421, 149, 35834),
    ("hta/critical_path/alexnet", "", None): (1388, 1416, 1002, 43355486),
    ("hta/critical_path/cuda_event_sync", "ProfilerStep", 0): (54, 57, 40, 2411),
    ("hta/ns_resolution_trace", "ProfilerStep", 1): (18370, 18367, 2438, 95736.087),
    ("hta/amd_trace", "ProfilerStep", 0): (212, 210, 86, 7452.353),
    ("hta/amd_trace", "ProfilerStep", 1): (84, 83, 70, 747.447),
}
SUMMARY = {
    ("hta/critical_path/alexnet", FORWARD, 1): {
        "": 0.0,
        "cpu_bound": 89.4179,
        "gpu_compute_bound": 10.3589,
        "gpu_kernel_kernel_overhead": 0.1395,
        "gpu_kernel_launch_overhead": 0.0837,
    },
    ("hta/critical_path/cuda_event_sync", "ProfilerStep", 0): {
        "": 0.0,
        "cpu_bound": 98.0921,
        "gpu_compute_bound": 1.4932,
        "gpu_kernel_launch_overhead": 0.4148,
    },
    ("hta/ns_resolution_trace", "ProfilerStep", 1): {
        "gpu_compute_bound": 98.8041,
        "gpu_kernel_kernel_overhead": 1.1959,
    },
    ("hta/amd_trace", "ProfilerStep", 1): {"": 0.0, "cpu_bound": 100.0},
}


@functools.cache
def traced(name: str) -> Trace:
    t = Trace(trace_dir=str(shared_trace(name)))
    t.load_traces()
    return t


def graph_of(name: str, annotation: str, instance) -> CPGraph:
    t = traced(name)
    graph, success = CriticalPathAnalysis.critical_path_analysis(t, t.job.ranks[0], annotation, instance)
    assert success
    return graph


def made(tmp_path, *events: dict) -> Trace:
    t = Trace(trace_files={0: str(write(tmp_path / "rank0.json", list(events)))}, trace_dir="")
    t.load_traces()
    return t


def length(graph: CPGraph) -> float:
    return sum(edge.weight for edge in graph.critical_path_edges_set)


@pytest.fixture
def causal_edges():
    options = HTAEnvOptions.instance()
    options.set_critical_path_add_zero_weight_launch_edges(True)
    yield
    options.set_critical_path_add_zero_weight_launch_edges(False)


@pytest.mark.parametrize(("key", "expected"), HTA.items(), ids=[" ".join(map(str, key)) for key in HTA])
def test_graph_and_path_are_htas(key, expected):
    graph = graph_of(*key)
    nodes, edges, on_path, total = expected
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (nodes, edges)
    assert len(graph.critical_path_nodes) == on_path
    # HTA's floats of microseconds since 1970 hold no more than 1/4 us: that much per edge of the path.
    whole = isinstance(total, int)
    assert length(graph) == pytest.approx(total, abs=0 if whole else 0.25 * on_path, rel=0)


@pytest.mark.parametrize(
    ("key", "expected"), SUMMARY.items(), ids=[" ".join(map(str, key)) for key in SUMMARY]
)
def test_summary_is_htas(key, expected, capsys):
    summary = graph_of(*key).summary()
    assert capsys.readouterr().out == "Critical Path broken down by boundedness = (in % of duration)\n"
    assert (summary.name, summary.index.name) == ("duration", "bound_by")
    assert summary.to_dict() == pytest.approx(expected, abs=1e-3)


def test_our_longest_path_is_that_of_networkx():
    for key in HTA:
        graph = graph_of(*key)
        assert graph.critical_path_nodes == nx.dag_longest_path(graph)
        before = graph.critical_path_nodes
        assert graph.critical_path()
        assert graph.critical_path_nodes == before


def test_nodes_edges_and_attribution(causal_edges):
    """The assertions of HTA's own test on this trace."""
    graph = graph_of("hta/critical_path/simple_add", FORWARD, 1)
    for ev, numbers in {286: (57, 62), 287: (58, 61), 1005: (59, 60)}.items():
        assert tuple(node.idx for node in graph.get_nodes_for_event(ev)) == numbers
    weights = [graph.edges[number, number + 1]["weight"] for number in range(57, 62)]
    assert weights == [15, 14, 17, 15, 32]
    edges = [graph.edges[number, number + 1]["object"] for number in range(57, 62)]
    assert [graph.get_event_attribution_for_edge(edge) for edge in edges] == [286, 287, 1005, 287, 286]
    assert graph.get_edges_attributed_to_event(286) == [edges[0], edges[4]]
    assert graph.get_events_for_edge(edges[0]) == (286, 287)
    start = graph.event_to_start_node_map
    launches = {
        edge[2].end: edge[2]
        for edge in graph.edges(data="object")
        if edge[2].type.name == "KERNEL_LAUNCH_DELAY"
    }
    assert launches[start[1051]].weight == 27
    assert launches[start[1067]].weight == 0
    assert graph.edges[graph.event_to_end_node_map[1051], start[1067]]["weight"] == 7
    sync = graph.edges[graph.event_to_end_node_map[1275], graph.event_to_end_node_map[1281]]
    assert (sync["weight"], sync["object"].type) == (0, CPEdgeType.SYNC_DEPENDENCY)
    assert len(graph.critical_path_nodes) == 315
    assert len(graph.critical_path_events_set) == 159
    assert graph.get_nodes_for_event(10**9) == (None, None)


def test_breakdown_adds_up_and_lies_in_the_order_of_the_path():
    graph = graph_of("hta/ns_resolution_trace", "ProfilerStep", 1)
    breakdown = graph.get_critical_path_breakdown()
    assert list(breakdown) == [
        "event_idx", "duration", "type", "s_name", "cat", "pid", "tid", "stream", "index", "bound_by",
    ]  # fmt: skip
    assert len(breakdown) == len(graph.critical_path_edges_set)
    first, last = (
        graph.node_list[at] for at in (graph.critical_path_nodes[0], graph.critical_path_nodes[-1])
    )
    assert breakdown["duration"].sum() == pytest.approx(last.ts - first.ts, abs=1e-6)
    assert breakdown["event_idx"].iloc[0] == first.ev_idx


def test_what_if(capsys):
    """Edited weights count everywhere; HTA's summary goes on with the old ones."""
    graph = graph_of("hta/critical_path/alexnet", FORWARD, 1)
    total = graph.get_critical_path_breakdown()["duration"].sum()
    copies = [edge for edge in graph.critical_path_edges_set if edge.weight > 1000]
    for edge in copies:
        graph.edges[edge.begin, edge.end]["weight"] = 0
    assert graph.critical_path()
    assert graph.get_critical_path_breakdown()["duration"].sum() < total
    again = graph_of("hta/critical_path/alexnet", FORWARD, 1)
    for begin, end in again.edges:
        again.edges[begin, end]["weight"] *= 2
    assert again.critical_path()
    assert again.get_critical_path_breakdown()["duration"].sum() == 2 * total


@pytest.mark.parametrize("key", [key for key in HTA if key[1]], ids=str)
def test_saved_and_restored(key, tmp_path):
    graph = graph_of(*key)
    begin, end = graph.critical_path_nodes[:2]
    graph.edges[begin, end]["weight"] = 123456.789
    file = graph.save(str(tmp_path / "saved"))
    assert file == str(tmp_path / "saved.zip")
    assert sorted(zipfile.ZipFile(file).namelist()) == ["cp_data.json", "cp_graph.json", "trace_data.csv"]
    restored = restore_cpgraph(file, traced(key[0]), graph.rank)
    assert restored.critical_path_nodes == graph.critical_path_nodes
    assert restored.critical_path_edges_set == graph.critical_path_edges_set
    assert restored.node_list == graph.node_list
    assert restored.edge_to_event_map == graph.edge_to_event_map
    assert dict(restored.edges) == dict(graph.edges)
    assert restored.get_critical_path_breakdown().equals(graph.get_critical_path_breakdown())
    assert restored.trace_df.equals(graph.trace_df)
    assert restored.critical_path()
    assert graph.critical_path()
    assert restored.critical_path_nodes == graph.critical_path_nodes


def test_what_is_no_saved_graph_is_not_restored(tmp_path):
    t = traced("hta/amd_trace")
    pickled = tmp_path / "pickled.zip"
    with zipfile.ZipFile(pickled, "w") as archive:
        archive.writestr("cp_graph.pkl", b"cos\nsystem\n(S'touch /tmp/pwned'\ntR.")
    with pytest.raises(TraceFormatError):
        restore_cpgraph(str(pickled), t, 0)
    other = graph_of("hta/ns_resolution_trace", "ProfilerStep", 1).save(str(tmp_path / "other"))
    with pytest.raises(TraceFormatError, match="not about rank 0"):
        restore_cpgraph(other, t, 0)
    with pytest.raises(TraceFormatError, match="no rank 5"):
        restore_cpgraph(other, t, 5)


def events_in(path) -> list[dict]:
    text = path.read_bytes()
    return json.loads(gzip.decompress(text) if path.name.endswith(".gz") else text)["traceEvents"]


def test_overlays(tmp_path, causal_edges):
    """The counts of HTA's own test on this trace."""
    name = "hta/critical_path/simple_add"
    t, graph = traced(name), graph_of(name, FORWARD, 1)

    def overlay(**options) -> list[dict]:
        file = CriticalPathAnalysis.overlay_critical_path_analysis(
            t, 0, graph, str(tmp_path / "new"), **options
        )
        assert file.startswith(str(tmp_path / "new" / "overlaid_critical_path_"))
        return events_in(tmp_path / "new" / file.rsplit("/", 1)[-1])

    def flows(events: list[dict]) -> list[dict]:
        return [event for event in events if event.get("cat") == "critical_path"]

    everything = overlay(only_show_critical_events=False, show_all_edges=True)
    assert (
        sum(item.get("args", {}).get("critical", 0) == 1 for item in everything if item["ph"] == "X") == 159
    )
    drawn = flows(everything)
    without_weight = sum(
        edge.type == CPEdgeType.KERNEL_LAUNCH_DELAY and not edge.weight
        for *_, edge in graph.edges(data="object")
    )
    assert len(drawn) == 2 * (graph.number_of_edges() - without_weight)
    assert sum(item["args"]["critical"] for item in drawn) == 2 * 314
    begin, end = drawn[:2]
    assert (begin["ph"], end["ph"], end["bp"], begin["id"], end["id"]) == ("s", "f", "e", 0, 0)
    assert len(flows(overlay(only_show_critical_events=False))) == 2 * 21
    critical = overlay()
    lasting = [
        item
        for item in critical
        if item["ph"] == "X" and item["cat"] not in ("user_annotation", "python_function")
    ]
    assert len(lasting) == 159
    assert len(flows(overlay(edge_types_to_viz={CPEdgeType.KERNEL_KERNEL_DELAY}))) % 2 == 0


def test_overlays_keep_every_digit(tmp_path):
    """A flow ends inside the event it belongs to, at the exact time; HTA cuts times down to whole us."""
    t, graph = traced("hta/ns_resolution_trace"), graph_of("hta/ns_resolution_trace", "ProfilerStep", 1)
    kernels = {CPEdgeType.KERNEL_KERNEL_DELAY}
    file = CriticalPathAnalysis.overlay_critical_path_analysis(
        t, 0, graph, str(tmp_path), only_show_critical_events=False, edge_types_to_viz=kernels
    )
    text = gzip.decompress(Path(file).read_bytes()).decode()
    edge = min(
        (edge for edge in graph.critical_path_edges_set if edge.type in kernels), key=lambda item: item.begin
    )
    row = list(t.job.rank(0).event_id).index(graph.node_list[edge.end].ev_idx)
    us, ns = divmod(int(t.job.rank(0).slices.start[row]), 1000)
    flow = next(line for line in text.split('{"ph":"f"') if line.startswith(',"id":0,'))
    assert f'"ts":{us}.{ns:03d}' in flow


def test_an_overlay_needs_a_folder(tmp_path):
    graph = graph_of("hta/amd_trace", "ProfilerStep", 0)
    (tmp_path / "file").write_text("")
    args = (traced("hta/amd_trace"), 0, graph)
    assert CriticalPathAnalysis.overlay_critical_path_analysis(*args, str(tmp_path / "file")) == ""


def call(name: str, start: int, end: int, tid: int = 1, **args) -> dict:
    return event("cuda_runtime", name, start, end - start, tid=tid, **args)


def step(end: int, number: int = 1, start: int = 0) -> dict:
    return event("user_annotation", f"ProfilerStep#{number}", start, end - start)


def test_a_call_that_waits_for_the_lock_keeps_the_time_it_holds_it(tmp_path):
    """Q-23: of calls [100, 200] and [150, 300] us the second has the lock from 200 to 300."""
    us = 1000
    t = made(
        tmp_path,
        step(400 * us),
        call("cudaLaunchKernel", 100 * us, 200 * us, tid=1, correlation=1),
        call("cudaLaunchKernel", 150 * us, 300 * us, tid=2, correlation=2),
        kernel("a", 210 * us, us, correlation=1),
        kernel("b", 310 * us, us, stream=8, correlation=2),
    )
    graph, _ = CriticalPathAnalysis.critical_path_analysis(t, 0, "ProfilerStep")
    ends = graph.event_to_end_node_map
    held = graph.edges[ends[1], ends[2]]
    assert (held["weight"], held["object"].type) == (100.0, CPEdgeType.OPERATOR_KERNEL)
    assert graph.get_event_attribution_for_edge(held["object"]) == 2


def test_instances_are_host_annotations_in_time_order(tmp_path):
    """Q-47: neither the order in the file nor the device's copies change what instance 0 is."""
    us = 1000
    t = made(
        tmp_path,
        event("gpu_user_annotation", "part", 0, 50 * us, tid=7, pid=0, stream=7, device=0),
        event("user_annotation", "part", 200 * us, 100 * us),
        event("user_annotation", "part", 20 * us, 100 * us),
        call("cudaLaunchKernel", 30 * us, 40 * us, correlation=1),
        call("cudaLaunchKernel", 210 * us, 220 * us, correlation=2),
        kernel("a", 50 * us, us, correlation=1),
        kernel("b", 230 * us, us, correlation=2),
    )
    launches = [
        set(CriticalPathAnalysis.critical_path_analysis(t, 0, "part", instance)[0].event_to_start_node_map)
        for instance in (0, 1, (0, 1), None, 2)
    ]
    assert launches == [{3, 5}, {4, 6}, {3, 4, 5, 6}, {3, 5}, {3, 5}]
    with pytest.raises(ValueError, match="instance 3"):
        CriticalPathAnalysis.critical_path_analysis(t, 0, "part", 3)
    assert CriticalPathAnalysis.critical_path_analysis(t, 0, "nothing", 0) is None
    assert CriticalPathAnalysis.critical_path_analysis(t, 0, "part", "0") is None


def test_a_child_that_ends_after_its_caller(tmp_path, capsys):
    """The time between is no negative length, neither in the graph nor in the breakdown."""
    t = made(
        tmp_path,
        step(100_000),
        event("cpu_op", "outer", 10_000, 20_000),
        call("cudaLaunchKernel", 15_000, 35_000, correlation=1),
        kernel("a", 20_000, 70_000, correlation=1),
    )
    graph, success = CriticalPathAnalysis.critical_path_analysis(t, 0, "ProfilerStep", 0)
    assert success
    assert all(data["weight"] >= 0 for *_, data in graph.edges(data=True))
    assert (graph.get_critical_path_breakdown()["duration"] >= 0).all()
    options = HTAEnvOptions.instance()
    options.set_critical_path_strict_negative_weight_check(True)
    try:
        assert not CriticalPathAnalysis.critical_path_analysis(t, 0, "ProfilerStep", 0)[1]
    finally:
        options.set_critical_path_strict_negative_weight_check(False)


def test_a_graph_launch_onto_an_idle_stream_has_a_launch_delay(tmp_path):
    t = made(
        tmp_path,
        step(100_000),
        call("cudaGraphLaunch", 10_000, 20_000, correlation=1),
        kernel("a", 25_000, 5_000, correlation=1),
        kernel("b", 31_000, 5_000, correlation=1),
    )
    graph, _ = CriticalPathAnalysis.critical_path_analysis(t, 0, "ProfilerStep", 0)
    start, end = graph.event_to_start_node_map, graph.event_to_end_node_map
    assert graph.edges[start[1], start[2]]["weight"] == 15.0
    assert graph.edges[end[2], start[3]]["object"].type == CPEdgeType.KERNEL_KERNEL_DELAY
    assert not graph.has_edge(start[1], start[3])


def test_traces_of_2021_work():
    """`Runtime` and `Operator` categories, on which HTA fails an assertion."""
    graph = graph_of("kineto/resnet50_num_workers_0", "ProfilerStep", 1)
    assert set(graph.summary().index) >= {"cpu_bound", "gpu_compute_bound"}


def test_calls_of_other_runtimes_are_calls():
    """HTA gives `mtia_runtime` calls no node: unrounded, its path is 29 of 460 ms, on the device."""
    graph = graph_of("hta/mtia_inference_trace", "", None)
    categories = {graph.full_trace_df.loc[event, "cat"] for event in graph.event_to_start_node_map}
    names = {graph.symbol_table.sym_table[code] for code in categories}
    assert "mtia_runtime" in names
    breakdown = graph.get_critical_path_breakdown()
    assert breakdown["duration"].sum() == pytest.approx(248_816.41)
    assert set(breakdown["bound_by"]) == {"", "cpu_bound"}


def test_bound_by_of_an_edge():
    graph = graph_of("hta/ns_resolution_trace", "ProfilerStep", 1)
    breakdown = graph.get_critical_path_breakdown()
    rows = breakdown.to_dict("records")
    assert [graph.bound_by(row) for row in rows] == breakdown["bound_by"].tolist()
    # Without the event, by HTA's rule: on this trace names and streams say the same.
    told = [{name: row[name] for name in ("type", "s_name", "stream")} for row in rows]
    assert [graph.bound_by(row) for row in told] == breakdown["bound_by"].tolist()
    on_device = {"type": CPEdgeType.OPERATOR_KERNEL.value, "stream": 7}
    assert graph.bound_by({**on_device, "s_name": "ncclKernel"}) == BoundType.GPU_COMMUNICATION_BOUND.value
    assert graph.bound_by({**on_device, "s_name": "gemm"}) == BoundType.GPU_COMPUTE_BOUND.value
    on_host = {"type": CPEdgeType.OPERATOR_KERNEL.value, "stream": -1, "s_name": "load batch"}
    assert graph.bound_by(on_host) == BoundType.CPU_BOUND.value
    loading = graph.copy()
    loading.data_load_events = ["^load"]
    assert loading.bound_by(on_host) == BoundType.DATA_LOADING.value


def test_data_loading_events(tmp_path):
    t = made(
        tmp_path,
        step(100_000),
        event("user_annotation", "load batch", 0, 60_000),
        call("cudaLaunchKernel", 61_000, 70_000, correlation=1),
        kernel("a", 71_000, 1_000, correlation=1),
    )
    graph, _ = CriticalPathAnalysis.critical_path_analysis(t, 0, "ProfilerStep", 0, ["load batch"])
    assert graph.summary()["data_loading"] == pytest.approx(100 * 60 / 71, abs=5)


def test_without_launches_the_answer_is_none_with_the_reason():
    t = traced("hta/cpu_only")
    with pytest.warns(MissingDataWarning, match="launch"):
        assert CriticalPathAnalysis.critical_path_analysis(t, t.job.ranks[0], "", None) is None
    with pytest.raises(ValueError, match="no rank 99"):
        CriticalPathAnalysis.critical_path_analysis(t, 99, "", None)


def test_the_first_event_of_a_file_may_be_the_only_launch(tmp_path):
    t = made(
        tmp_path,
        call("cudaLaunchKernel", 0, 20_000, correlation=1),
        step(100_000, start=10_000),
        kernel("a", 25_000, 5_000, correlation=1),
    )
    assert CriticalPathAnalysis.critical_path_analysis(t, 0, "ProfilerStep", 0) is not None


def test_missing_sync_events_are_reported(tmp_path):
    t = made(
        tmp_path,
        step(100_000),
        call("cudaLaunchKernel", 10_000, 20_000, correlation=1),
        kernel("a", 25_000, 5_000, correlation=1),
    )
    with pytest.warns(MissingDataWarning, match="enable_cuda_sync_events"):
        CriticalPathAnalysis.critical_path_analysis(t, 0, "", None)


def test_networkx_can_copy_and_cut_it():
    graph = graph_of("hta/critical_path/cuda_event_sync", "ProfilerStep", 0)
    assert nx.is_directed_acyclic_graph(graph)
    copied = graph.copy()
    assert dict(copied.edges) == dict(graph.edges)
    assert graph.subgraph(graph.critical_path_nodes).number_of_nodes() == len(graph.critical_path_nodes)
    assert graph.reverse().number_of_edges() == graph.number_of_edges()
    node = graph.critical_path_nodes[0]
    assert set(graph.reverse(copy=False).pred[node]) == set(graph[node]) == set(graph.succ[node]) != set()
    assert set(graph.reverse(copy=False)[node]) == set(graph.pred[node])
    assert len(CPGraph()) == 0


def test_event_order_in_the_file_does_not_matter(tmp_path):
    """Ids change with the order; times, types and names of the path do not."""
    source = next(shared_trace("hta/critical_path/alexnet").iterdir())
    data = json.loads(gzip.decompress(source.read_bytes()))
    data["traceEvents"].reverse()
    target = tmp_path / "reversed.json"
    target.write_text(json.dumps(data))
    t = Trace(trace_files={0: str(target)}, trace_dir="")
    t.load_traces()
    graph, _ = CriticalPathAnalysis.critical_path_analysis(t, 0, FORWARD, 1)
    assert length(graph) == 35834


def test_all_kernels_of_a_graph_launch_are_in_the_graph():
    """HTA keeps the last kernel of each launch: 17720 nodes, 17707 edges; two launches have 841."""
    graph = graph_of("hta/trace_diff/test", "ProfilerStep", 2)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (19398, 19387)
    assert 19398 - 17720 == 2 * (339 + 502 - 2)
    assert (len(graph.critical_path_nodes), length(graph)) == (6342, 115051)


def test_hip_calls_that_wait_have_no_time_of_their_own(tmp_path):
    t = made(
        tmp_path,
        step(100_000),
        call("hipLaunchKernel", 10_000, 20_000, correlation=1),
        kernel("a", 25_000, 50_000, stream=0, correlation=1),
        call("hipDeviceSynchronize", 30_000, 80_000),
    )
    graph, _ = CriticalPathAnalysis.critical_path_analysis(t, 0, "ProfilerStep", 0)
    start, end = graph.event_to_start_node_map, graph.event_to_end_node_map
    assert graph.edges[start[3], end[3]]["weight"] == 0
    assert graph.critical_path_events_set == {1, 2}
    assert length(graph) == 65.0


def test_streams_of_two_devices_with_one_number_are_two(tmp_path):
    other = {**kernel("b", 22_000, 5_000, correlation=2), "pid": 1}
    other["args"] = {**other["args"], "device": 1}
    t = made(
        tmp_path,
        step(100_000),
        call("cudaLaunchKernel", 10_000, 14_000, correlation=1),
        call("cudaLaunchKernel", 15_000, 19_000, correlation=2),
        kernel("a", 16_000, 3_000, correlation=1),
        other,
    )
    graph, _ = CriticalPathAnalysis.critical_path_analysis(t, 0, "ProfilerStep", 0)
    start, end = graph.event_to_start_node_map, graph.event_to_end_node_map
    assert not graph.has_edge(end[3], start[4])
    assert graph.edges[start[1], start[3]]["weight"] == 6.0
    assert graph.edges[start[2], start[4]]["weight"] == 7.0
