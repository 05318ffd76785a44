"""HTA's `Trace`: the frame, cell by cell on small files; HTA's own numbers on real ones."""

import functools
import gzip
import json

import numpy as np
import pandas as pd
import pytest

from hta_widgets.errors import MissingDataError, TraceNotFoundError
from hta_widgets.hta.common.trace import (
    Trace,
    add_fwd_bwd_links,
    add_iteration,
    get_cpu_gpu_correlation,
    parse_trace_file,
    trace_event_timestamp_to_unixtime_ns,
    transform_correlation_to_index,
)
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_, write

COLUMNS = [
    "index", "cat", "name", "pid", "tid", "ts", "dur", "end",
    "stream", "correlation", "bytes", "memory_bw_gbps", "wait_on_stream", "wait_on_cuda_event_record_corr_id",
    "input_dims", "input_type", "input_strides", "external_id", "python_id", "python_parent_id",
    "collective_name", "in_msg_nelems", "out_msg_nelems", "msg_dtype", "group_size", "process_rank",
    "in_split_size", "out_split_size", "index_correlation", "iteration",
]  # fmt: skip


@functools.cache
def loaded(name, last=False):
    trace = Trace(trace_dir=str(shared_trace(name)))
    trace.load_traces(include_last_profiler_step=last)
    return trace


def written(tmp_path, events, rank=0, **metadata):
    write(tmp_path / f"rank{rank}.json", events, distributedInfo={"rank": rank}, **metadata)
    return Trace(trace_dir=str(tmp_path))


def step(number, start, dur, tid=1):
    return slice_(f"ProfilerStep#{number}", "user_annotation", start, dur, tid)


# Event 0 is the launch: HTA takes the index 0 for "no partner".
LAUNCH_FIRST = [
    slice_("cudaLaunchKernel", "cuda_runtime", 1010.25, 2.5, correlation=7),
    slice_("PyTorch Profiler (0)", "Trace", 1000.0, 500.0),
    step(3, 1000.5, 100),
    slice_("aten::mm", "cpu_op", 1005.001, 10.002, **{"Input Dims": [[2, 3], []], "External id": 9}),
    kernel("gemm", 1020.125, 0.5, correlation=7),
    kernel("orphan", 1030.0, 1.0, correlation=8),
    {"ph": "i", "name": "instant", "cat": "cpu_op", "pid": 10, "tid": 1, "ts": 1001.0},
    slice_("late", "cpu_op", 1200.0, 1.0, "Spans"),
]


def test_frame_has_htas_columns_in_its_order(tmp_path):
    trace = written(tmp_path, LAUNCH_FIRST)
    trace.load_traces()
    frame = trace.get_trace(0)
    assert list(frame.columns) == COLUMNS
    assert frame.index.tolist() == frame["index"].tolist() == [0, 2, 3, 4, 5, 7]
    assert frame.index.name is None
    integers = [name for name in COLUMNS if frame[name].dtype == np.int64]
    assert {"index", "cat", "name", "stream", "correlation", "index_correlation", "iteration"} <= set(
        integers
    )
    assert frame["ts"].dtype == frame["dur"].dtype == frame["end"].dtype == np.float64


def test_times_are_exact_and_relative_to_the_first_event(tmp_path):
    trace = written(tmp_path, LAUNCH_FIRST)
    trace.load_traces()
    frame = trace.get_trace(0)
    # The profiler's own span is no event: the step's start is time 0.
    assert frame["ts"].tolist() == [9.75, 0.0, 4.501, 19.625, 29.5, 199.5]
    assert frame["dur"].tolist() == [2.5, 100.0, 10.002, 0.5, 1.0, 1.0]
    assert frame["end"].tolist() == [12.25, 100.0, 14.503, 20.125, 30.5, 200.5]
    assert trace.min_ts == 1000.5


def test_links_and_steps(tmp_path):
    trace = written(tmp_path, LAUNCH_FIRST)
    trace.load_traces()
    frame = trace.get_trace(0)
    # The launch is event 0, and it is found; the orphan has no partner: -1, not 0.
    assert frame["index_correlation"].to_dict() == {0: 4, 2: -1, 3: -1, 4: 0, 5: -1, 7: -1}
    assert frame["iteration"].to_dict() == {0: 3, 2: 3, 3: 3, 4: 3, 5: 3, 7: -1}
    assert get_cpu_gpu_correlation(frame).to_dict("list") == {"gpu_index": [4], "cpu_index": [0]}


def test_arguments_and_defaults(tmp_path):
    trace = written(tmp_path, LAUNCH_FIRST)
    trace.load_traces()
    frame = trace.get_trace(0)
    assert frame.loc[3, "input_dims"] == [[2, 3], []]
    assert frame.loc[3, "external_id"] == 9
    defaults = frame.loc[7]
    assert (defaults["stream"], defaults["bytes"], defaults["memory_bw_gbps"]) == (-1, -1, 0.0)
    assert (defaults["input_dims"], defaults["in_split_size"], defaults["collective_name"]) == (
        "-1",
        "[]",
        "",
    )
    assert frame["pid"].tolist() == [10, 10, 10, 0, 0, 10]
    assert frame["tid"].tolist() == [1, 1, 1, 7, 7, "Spans"]


def test_a_graph_launch_points_to_its_last_kernel_and_each_kernel_to_it(tmp_path):
    events = [
        slice_("cudaGraphLaunch", "cuda_runtime", 10, 5, correlation=3),
        kernel("a", 20, 1, correlation=3),
        kernel("b", 22, 1, correlation=3, stream=0),
        # The driver's call inside the runtime's is no second launch.
        slice_("cuGraphLaunch", "cuda_driver", 11, 3, correlation=3),
    ]
    trace = written(tmp_path, events)
    trace.load_traces()
    assert trace.get_trace(0)["index_correlation"].tolist() == [2, 0, 0, -1]
    assert trace.get_trace(0)["stream"].tolist() == [-1, 7, 0, -1]


def test_waits_are_linked_to_their_calls(tmp_path):
    events = [
        slice_("cudaDeviceSynchronize", "cuda_runtime", 10, 5, correlation=3),
        slice_("Context Sync", "cuda_sync", 11, 3, correlation=3, stream=-1),
    ]
    trace = written(tmp_path, events)
    trace.load_traces()
    assert trace.get_trace(0)["index_correlation"].tolist() == [1, 0]


def test_the_last_step_goes_unless_wanted(tmp_path):
    events = [step(1, 0, 10), step(2, 10, 10), slice_("a", "cpu_op", 5, 1), slice_("b", "cpu_op", 15, 1)]
    trace = written(tmp_path, events)
    trace.load_traces()
    assert trace.get_trace(0).index.tolist() == [0, 2]
    assert trace.get_iterations() == [1]
    whole = Trace(trace_dir=str(tmp_path))
    whole.load_traces(include_last_profiler_step=True)
    assert whole.get_trace(0).index.tolist() == [0, 1, 2, 3]
    assert whole.get_iterations(0) == [1, 2]
    assert whole.get_iterations(5) == []


def test_parsing_alone_shifts_and_drops_nothing(tmp_path):
    trace = written(tmp_path, [step(1, 100, 10), step(2, 110, 10)])
    assert not trace.is_parsed and len(trace.traces) == 0
    with pytest.raises(ValueError, match="not loaded"):
        trace.get_trace(0)
    trace.parse_traces()
    assert trace.get_trace(0)["ts"].tolist() == [100.0, 110.0]
    assert trace.get_trace(0)["end"].tolist() == [110.0, 120.0]
    assert trace.min_ts == 0
    trace.align_and_filter_trace()
    assert trace.get_trace(0)["ts"].tolist() == [0.0]
    trace.align_and_filter_trace()
    assert trace.min_ts == 100.0


def test_loading_twice_warns_and_keeps_the_frames(tmp_path):
    trace = written(tmp_path, [step(1, 100, 10)])
    trace.load_traces()
    frame = trace.get_trace(0)
    with pytest.warns(UserWarning, match="already loaded"):
        trace.load_traces()
    assert trace.get_trace(0) is frame


def test_ranks_share_one_axis_and_one_symbol_table(tmp_path):
    base = {"baseTimeNanoseconds": 10**18}
    write(tmp_path / "a.json", [slice_("x", "cpu_op", 50.5, 1)], distributedInfo={"rank": 1}, **base)
    write(tmp_path / "b.json", [slice_("y", "cpu_op", 40.25, 1)], distributedInfo={"rank": 0}, **base)
    trace = Trace([str(tmp_path / "a.json"), str(tmp_path / "b.json")], "")
    trace.load_traces()
    assert list(trace.traces) == trace.get_ranks() == [0, 1]
    assert [trace.get_trace(rank)["ts"].tolist() for rank in (0, 1)] == [[0.0], [10.25]]
    assert trace.symbol_table.sym_table == ["cpu_op", "y", "x"]
    assert [trace.get_trace(rank)["name"].tolist() for rank in (0, 1)] == [[1], [2]]
    assert trace.get_trace_start_unixtime_ns(0) == 10**18 + 40_250
    assert trace.get_trace_start_unixtime_ns(1) == 10**18 + 40_250
    with pytest.raises(ValueError, match="rank 7"):
        trace.get_trace_start_unixtime_ns(7)


def test_one_rank_at_a_time(tmp_path):
    for rank in (0, 1, 2):
        write(tmp_path / f"{rank}.json", [slice_("x", "cpu_op", 5, 1)], distributedInfo={"rank": rank})
    trace = Trace(trace_dir=str(tmp_path))
    trace.parse_single_rank(2)
    assert trace.get_ranks() == [2]
    trace.parse_single_rank(9)
    trace.parse_multiple_ranks([0])
    assert trace.get_ranks() == [0, 2]
    trace.parse_traces(max_ranks=1)
    assert 1 not in trace.traces
    with pytest.raises(KeyError):
        trace.parse_multiple_ranks([9])


def test_frames_can_be_replaced_and_removed(tmp_path):
    trace = written(tmp_path, [step(1, 100, 10)])
    trace.load_traces()
    trace.traces[0] = trace.get_trace(0).head(0)
    assert trace.get_trace(0).empty
    del trace.traces[0]
    assert trace.get_all_traces() == {}
    with pytest.raises(KeyError):
        trace.traces[0]


def test_files_by_rank_and_relative_to_the_folder(tmp_path):
    write(tmp_path / "any.json", [step(1, 100, 10)])
    trace = Trace({4: "any.json"}, str(tmp_path))
    trace.load_traces()
    assert trace.get_ranks() == [4]
    assert trace.trace_files == {4: str(tmp_path / "any.json")}


def test_unusable_arguments(tmp_path):
    with pytest.raises(TraceNotFoundError):
        Trace(trace_dir=str(tmp_path / "nowhere"))
    with pytest.raises(TraceNotFoundError):
        Trace({0: "nowhere.json"}, str(tmp_path))
    with pytest.raises(TypeError, match="int"):
        Trace(5, str(tmp_path))
    assert issubclass(TraceNotFoundError, FileNotFoundError) and not issubclass(
        TraceNotFoundError, MissingDataError
    )


def test_frames_are_made_when_asked_for(tmp_path, monkeypatch):
    trace = written(tmp_path, [step(1, 100, 10)])
    monkeypatch.setattr(
        "hta_widgets.hta.common.trace.configured_frame", lambda *_: pytest.fail("not asked for")
    )
    trace.load_traces()
    assert trace.get_ranks() == [0] and 0 in trace.traces and len(trace.job.ranks) == 1


def test_symbol_ids_do_not_depend_on_the_order_of_events(tmp_path):
    forward = written(tmp_path / "a", LAUNCH_FIRST)
    backward = written(tmp_path / "b", LAUNCH_FIRST[::-1])
    assert forward.symbol_table.sym_table == backward.symbol_table.sym_table
    assert "Trace" not in forward.symbol_table.sym_table
    assert "instant" not in forward.symbol_table.sym_table


def test_decoding_adds_names(tmp_path):
    trace = written(tmp_path, [slice_("void f<int>(int)", "cpu_op", 1, 1)])
    trace.load_traces()
    trace.decode_symbol_ids()
    assert trace.get_trace(0)[["s_name", "s_cat"]].to_numpy().tolist() == [["f", "cpu_op"]]
    trace.decode_symbol_ids(use_shorten_name=False)
    assert trace.get_trace(0)["s_name"].tolist() == ["void f<int>(int)"]


def test_raw_documents_survive_reading_and_writing(tmp_path):
    trace = written(tmp_path, LAUNCH_FIRST)
    document = trace.get_raw_trace_for_one_rank(0)
    assert document["traceEvents"] == LAUNCH_FIRST
    for name in ("copy.json", "copy.json.gz"):
        trace.write_raw_trace(str(tmp_path / "new" / name), document)
    assert json.loads((tmp_path / "new" / "copy.json").read_text()) == document
    assert json.loads(gzip.decompress((tmp_path / "new" / "copy.json.gz").read_bytes())) == document
    with pytest.raises(ValueError, match="rank 5"):
        trace.get_raw_trace_for_one_rank(5)


def test_counter_events_are_on_the_files_clock(tmp_path):
    trace = written(tmp_path, LAUNCH_FIRST)
    trace.load_traces()
    series = pd.DataFrame({"pid": [1, 1], "tid": [0, 0], "ts": [0.0, 0.5], "length": [3, 4], "id": [8, 9]})
    assert trace.convert_time_series_to_events(series, "Queue", "length") == [
        {"ph": "C", "pid": 1, "ts": 1000.5, "name": "Queue", "args": {"Queue": 3}, "id": 8},
        {"ph": "C", "pid": 1, "ts": 1001, "name": "Queue", "args": {"Queue": 4}, "id": 9},
    ]
    with pytest.warns(UserWarning, match="'length'"):
        assert trace.convert_time_series_to_events(series.drop(columns="length"), "Queue", "length") == []


def test_flow_events():
    start = Trace.flow_event(1, 2, 3, 4.5, True, "n", "c", {"a": 1})
    assert start == {
        "ph": "s",
        "id": 1,
        "pid": 2,
        "tid": 3,
        "ts": 4.5,
        "cat": "c",
        "name": "n",
        "args": {"a": 1},
    }
    assert Trace.flow_event(1, 2, 3, 4, False, "n", "c")["bp"] == "e"


def test_duration_and_device(tmp_path):
    trace = written(tmp_path, LAUNCH_FIRST)
    trace.load_traces()
    assert trace.get_trace_duration() == 199.5
    assert trace.get_device_type() == "NVIDIA GPU"
    assert trace.meta_data[0]["distributedInfo"] == {"rank": 0}
    with pytest.raises(KeyError, match="baseTimeNanoseconds"):
        trace.get_trace_start_unixtime_ns(0)
    assert trace_event_timestamp_to_unixtime_ns(1.5, {"baseTimeNanoseconds": 100}) == 1600


def test_forward_and_backward_operators(tmp_path):
    number = "Sequence number"
    events = [
        slice_("aten::mul", "cpu_op", 1, 1, **{number: 5, "Fwd thread id": 0}),
        slice_("MulBackward0", "cpu_op", 9, 1, 2, **{number: 5, "Fwd thread id": 1}),
        slice_("other", "cpu_op", 20, 1),
    ]
    trace = written(tmp_path, events)
    trace.load_traces()
    trace.add_fwd_bwd_links(0)
    assert trace.get_trace(0)[["fwdbwd", "fwdbwd_index"]].to_numpy().tolist() == [[0, 1], [1, 0], [-1, -1]]


def test_forward_and_backward_operators_by_flow_events():
    rows = [
        (0, "cpu_op", "X", 1, None, None),
        (1, "cpu_op", "X", 1, None, None),
        (2, "cpu_op", "X", 9, None, None),
        (3, "fwdbwd", "s", 1, 77, None),
        (4, "fwdbwd", "f", 9, 77, "e"),
        (5, "fwdbwd", "s", 4, 78, None),
    ]
    frame = pd.DataFrame(rows, columns=["index", "cat", "ph", "ts", "id", "bp"]).assign(pid=1, tid=1)
    add_fwd_bwd_links(frame)
    assert frame["fwdbwd"].tolist() == [-1, 0, 1, -1, -1, -1]
    assert frame["fwdbwd_index"].tolist() == [-1, 2, 1, -1, -1, -1]
    plain = frame[frame["cat"].eq("cpu_op")][["index", "cat", "ts"]].copy()
    add_fwd_bwd_links(plain)
    assert list(plain.columns) == ["index", "cat", "ts"]


def test_linking_a_frame_made_elsewhere():
    names = ["launch", "Event Sync", "Context Sync"]
    frame = pd.DataFrame(
        {
            "index": range(8),
            "correlation": [15, 16, 22, -1, 15, 16, 30, -1],
            "stream": [-1, -1, -1, -1, 7, -1, -1, -1],
            "name": [0, 0, 0, 0, 0, 1, 2, 0],
        }
    )
    linked = transform_correlation_to_index(frame, TraceSymbolTable(names))
    assert linked["index_correlation"].tolist() == [4, 5, -1, -1, 0, 1, -1, -1]
    assert "index_correlation" not in transform_correlation_to_index(
        frame[["index"]].copy(), TraceSymbolTable()
    )


def test_steps_of_a_frame_made_elsewhere():
    frame = pd.DataFrame(
        {
            "index": range(5),
            "ts": [0, 5, 20, 30, 3],
            "dur": [10, 1, 1, 10, 20],
            "name": [0, 1, 1, 1, 0],
            "stream": [-1, -1, -1, 0, 7],
            "index_correlation": [-1, 3, -1, 1, -1],
        }
    )
    steps = add_iteration(frame, TraceSymbolTable(["ProfilerStep#12", "op"]))
    # The device's copy of the step (stream 7) is no step; the kernel on stream 0 has its launch's.
    assert steps[["ts", "s_name"]].to_numpy().tolist() == [[0, 12]]
    assert frame["iteration"].tolist() == [12, 12, -1, 12, 12]


# -- real traces: the counts and numbers that HTA 0.6 gives ---------------------------------------------


@pytest.mark.parametrize(
    ("name", "rank", "rows", "steps"),
    [
        ("hta/trace_filter", 0, 2403, [551]),
        ("hta/trace_filter", 1, 2339, [551]),
        ("hta/nccl_parser_config", 0, 17952, [4, 5]),
        ("hta/trace_diff/control", 3, 62255, [1009, 1010, 1011, 1012, 1013]),
        ("hta/critical_path/alexnet", 0, 867, []),
        ("hta/amd_trace", 0, 110, [1]),
        ("hta/mtia_inference_trace", 0, 14178, []),
    ],
)
def test_rows_and_steps_are_htas(name, rank, rows, steps):
    trace = loaded(name)
    assert len(trace.get_trace(rank)) == rows
    assert trace.get_iterations(rank) == steps


def test_rows_that_only_we_keep():
    # Two device rows at the cut follow the launch that HTA's cut by the device's own step annotation misses.
    assert 0 <= len(loaded("hta/ns_resolution_trace").get_trace(0)) - 36209 <= 2


def test_every_kernel_is_in_the_step_of_its_launch():
    frame = loaded("hta/trace_diff/control").get_trace(3)
    linked = frame[(frame["stream"] >= 0) & (frame["index_correlation"] >= 0)]
    launches = frame.loc[linked["index_correlation"]]
    assert (launches["iteration"].to_numpy() == linked["iteration"].to_numpy()).all()
    assert (launches["index_correlation"].to_numpy() == linked["index"].to_numpy()).all()


def test_stream_zero_has_links_and_steps():
    frame = loaded("hta/amd_trace").get_trace(0)
    kernels = frame[(frame["stream"] == 0) & (frame["correlation"] > 0)]
    assert len(kernels) and (kernels["iteration"] == 1).any()
    assert frame["iteration"].dtype == np.int64


def test_triton_launches_are_host_rows():
    trace = loaded("hta/triton_example")
    frame = trace.get_trace(0)
    triton = frame[frame["name"] == trace.symbol_table.sym_index["triton_poi_fused_add_cos_sin_0"]]
    launches = triton[triton["cat"] == trace.symbol_table.sym_index["cpu_op"]]
    assert len(launches) and (launches["stream"] == -1).all()


def test_start_time_since_the_epoch():
    trace = loaded("hta/triton_example")
    assert abs(trace.get_trace_start_unixtime_ns(0) - (2413669096090100 + 1727743122000000000)) <= 1000


def test_metadata_of_a_host_only_trace():
    trace = loaded("hta/cpu_only")
    info = trace.meta_data[34]["distributedInfo"]
    assert (info["backend"], info["rank"], info["world_size"], info["pg_count"]) == ("gloo", 34, 300, 10)
    assert trace.get_device_type() == "UNKNOWN GPU"


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("hta/trace_filter", "NVIDIA GPU"),
        ("hta/amd_trace", "AMD GPU"),
        ("hta/mtia_inference_trace", "MTIA"),
        ("hta/triton_example", "UNKNOWN GPU"),
    ],
)
def test_device_types(name, device):
    assert loaded(name).get_device_type() == device


def test_counters_of_the_hardware_are_columns():
    trace = loaded("hta/cupti_profiler")
    frame = trace.get_trace(trace.get_ranks()[0])
    counters = [name for name in frame if name.startswith("smsp__sass_thread_inst_executed_op")]
    assert len(counters) >= 9
    ranges = frame["cat"] == trace.symbol_table.sym_index["cuda_profiler_range"]
    assert ranges.sum() == 77
    assert (frame.loc[~ranges, counters] == -1).all(axis=None)
    assert (frame.loc[ranges, counters] >= 0).all(axis=None)


def test_one_file():
    meta, frame, symbols = parse_trace_file(str(next(shared_trace("hta/triton_example").iterdir())))
    assert meta["device_type"] == "UNKNOWN GPU"
    assert len(frame) == 7 and frame["name"].max() < len(symbols.sym_table)
