"""Every real trace opens, counts exactly and has iterations."""

import gzip
import json
import math
from decimal import Decimal

import numpy as np
import pytest

from hta_widgets.errors import TraceFormatError
from hta_widgets.trace import EventClass, Trace
from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, NULL
from tests.support import EVERY_CASE, SHARED_TRACES, is_asked, shared_trace

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset", "mtia_ccp_events"}
FOREIGN = ("benchmark_simple_add_et", "memory_timeline")
FILES = sorted(
    str(path.relative_to(SHARED_TRACES))
    for path in SHARED_TRACES.rglob("*.json*")
    if not any(word in path.name for word in FOREIGN) and is_asked(path)
)
LONG = [
    "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "tracelens/mi300/resnet_act_checkpoint.json.gz",
    "kineto/resnet50_num_workers_0/worker0.pt.trace.json.gz",
]
EXPECTED = {
    "hta/trace_filter/sampled_rank-0.json.gz": ("ProfilerStep", [551, 552]),
    "hta/nccl_parser_config/nccl_data.json.gz": ("ProfilerStep", [4, 5, 6]),
    "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": (
        "ProfilerStep",
        [101, 102, 103, 104, 105],
    ),
    "hta/trace_diff/control/control.json.gz": ("ProfilerStep", [1009, 1010, 1011, 1012, 1013, 1014]),
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": ("ProfilerStep", [6]),
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": ("ProfilerStep", [6]),
    "tracelens/mi300/resnet_act_checkpoint.json.gz": ("ProfilerStep", [15, 16, 17]),
    "kineto/resnet50_num_workers_0/worker0.pt.trace.json.gz": ("ProfilerStep", [5, 6, 7, 8, 9, 10]),
    "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz": ("serving step", [0]),
    "tracelens/inference/vllm_decode_full/graph_execution.json.gz": ("serving step", [0]),
}


def plain(path):
    """The file by the standard library, times as exact decimals."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return json.loads(text, parse_float=Decimal)["traceEvents"]


def only(name):
    trace = Trace.open(shared_trace(name))
    return trace.rank(trace.ranks[0])


@pytest.mark.parametrize("name", FILES or ["hta"])
def test_opens_and_counts_exactly(name):
    rank = only(name)
    events = plain(shared_trace(name))
    slices = [
        event
        for event in events
        if event.get("ph") == "X" and event.get("dur") is not None and event["dur"] >= 0
    ]
    assert rank.n == len(slices)
    device = [item for item in slices if item.get("cat") in DEVICE]
    assert int(rank.is_device.sum()) == len(device)
    assert int(rank.dur[rank.is_device].sum()) == sum(Decimal(item["dur"]) * 1000 for item in device)
    assert rank.event_class[rank.is_device].max(initial=0) <= EventClass.SYNC

    calls = {
        item["args"]["correlation"]
        for item in slices
        if item.get("cat", "").lower().endswith(("runtime", "driver"))
        and item.get("args", {}).get("correlation")
    }
    launched = sum(item.get("args", {}).get("correlation") in calls for item in device)
    assert int((rank.launch >= 0).sum()) == launched

    child = np.flatnonzero(rank.parent >= 0)
    parent = rank.parent[child]
    assert (rank.start[parent] <= rank.start[child]).all()
    assert (rank.end[parent] >= rank.end[child]).all()
    assert (rank.depth[parent] < rank.depth[child]).all()
    assert ((rank.depth < 0) == rank.is_device).all()

    frame = rank.iterations
    assert len(frame) >= 1
    assert (frame["start_ns"] < frame["end_ns"]).all()
    assert (frame["end_ns"].to_numpy()[:-1] <= frame["start_ns"].to_numpy()[1:]).all()


@pytest.mark.parametrize("name", FILES or ["hta"])
def test_frames_of_every_trace(name):
    trace = Trace.open(shared_trace(name))
    frame = trace.events()
    rank = trace.rank(trace.ranks[0])
    assert len(frame) == rank.n
    assert frame["start_ns"].is_monotonic_increasing
    assert frame["dur_ns"].sum() == rank.dur.sum()
    assert len(rank.threads) > 0
    assert {"rank", "severity", "check", "count", "detail", "remedy", "name"} == set(trace.health.columns)


@pytest.mark.parametrize("name", EXPECTED)
def test_known_iterations(name):
    frame = only(name).iterations
    source, numbers = EXPECTED[name]
    assert set(frame["source"]) == {source}
    assert frame["iteration"].tolist() == numbers


def test_serving_steps_tell_phase_and_size():
    row = only("tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz").iterations.iloc[0]
    assert (row["phase"], row["batch_size"], row["tokens"]) == ("decode", 32, 32)


def test_two_ranks_of_one_job():
    trace = Trace.open(shared_trace("hta/trace_filter"))
    assert trace.ranks == [0, 1]
    assert trace.clock.method == "shared"
    assert trace.summary["world_size"] == 128
    assert set(trace.iterations["rank"]) == {0, 1}


def test_amd_streams_and_collectives():
    rank = only("tracelens/mi300/resnet_act_checkpoint.json.gz")
    assert 0 in rank.stream[rank.is_device]
    assert int((rank.event_class == EventClass.COMMUNICATION).sum()) == 17


def test_a_graph_launch_owns_all_its_kernels():
    rank = only("tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz")
    launch, counts = np.unique(rank.launch[rank.launch >= 0], return_counts=True)
    assert counts.max() > 500
    assert "GraphLaunch" in rank.names[rank.name[launch[np.argmax(counts)]]]


def test_files_that_are_no_traces():
    folder = shared_trace("hta/execution_trace")
    with pytest.raises(TraceFormatError):
        Trace.open(folder / "benchmark_simple_add_et.json.gz")
    trace = Trace.open(folder)
    assert len(trace.ranks) == 1
    assert "skipped" in set(trace.health["check"])
    with pytest.raises(
        TraceFormatError, match=r"a memory timeline, not a trace: analysis\.memory_categories"
    ):
        Trace.open(shared_trace("hta/memory_analysis"))


@pytest.mark.parametrize(
    "name",
    [
        "hta/nccl_parser_config/nccl_data.json.gz",
        "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
        *(LONG if EVERY_CASE else []),
    ],
)
def test_numeric_arguments_are_those_of_the_file(name):
    rank = only(name)
    events = plain(shared_trace(name))
    recorded = [events[row].get("args", {}) for row in rank.event_id.tolist()]
    found = set()
    for column in ARGUMENT_COLUMNS:
        if column.kind in ("int", "float") and not column.name.startswith("args_"):
            keys = (column.key, *column.aliases)
            told = [next((args[key] for key in keys if key in args), None) for args in recorded]
            values = rank.argument(column.name)
            if column.kind == "float":
                expected = np.array([math.nan if value is None else float(value) for value in told])
            else:
                expected = np.array([NULL if value is None else int(value) for value in told], np.int64)
            assert values.dtype == expected.dtype
            np.testing.assert_array_equal(values, expected, column.name)
            found |= {column.name} if any(value is not None for value in told) else set()
    assert len(found) > 8
    if "h100" in name:
        fractions = rank.argument("blocks_per_sm")
        assert (fractions[~np.isnan(fractions)] % 1 > 0).any()
