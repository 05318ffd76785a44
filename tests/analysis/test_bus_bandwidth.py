"""Sizes and bandwidths of collectives: nccl-tests' definitions, and the same from the plain JSON."""

import gzip
import json
from statistics import median

import pytest

from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.trace.model import Trace
from tests.analysis.multirank import RankFile, job
from tests.support import shared_trace

MS = 1_000_000
RESNET = "tracelens/mi300/resnet_act_checkpoint.json.gz"
NCCL_DATA = "hta/nccl_parser_config/nccl_data.json.gz"


def one(
    tmp_path, operation: str, ranks: int = 4, elements: tuple[int, int] = (1000, 4000), recorded: int = 1
):
    """A collective of `ranks` ranks in which rank r runs for 1 + r ms; the first row of the answer."""
    files = []
    for rank in range(recorded):
        args = {"Collective name": operation, "dtype": "Float", "Process Group Name": "0", "Seq": 1}
        args |= {"In msg nelems": elements[0], "Out msg nelems": elements[1], "Group size": ranks}
        files.append(RankFile(rank).kernel(10 * MS - rank * MS, 11 * MS, **args))
    return collectives(job(tmp_path / "job", *files)).iloc[-1]


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("allreduce", 1.5),
        ("_allgather_base", 0.75),
        ("_reduce_scatter_base", 0.75),
        ("all_to_all", 0.75),
        ("gather", 0.75),
        ("scatter", 0.75),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("send", 1.0),
        ("recv", 1.0),
    ],
)
def test_bus_bandwidth_of_four_ranks(tmp_path, operation, factor):
    row = one(tmp_path, operation)
    assert row["bytes"] == 16_000
    assert row["transfer_ns"] == MS
    assert row["algbw_gbps"] == pytest.approx(0.016)  # 16 kB in 1 ms
    assert row["busbw_gbps"] == pytest.approx(0.016 * factor)
    assert row["bandwidth_is"] == "at least"


def test_the_last_to_arrive_tells_how_long_the_transfer_takes(tmp_path):
    row = one(tmp_path, "allreduce", ranks=3, recorded=3)
    assert (row["dur_ns"], row["transfer_ns"], row["bandwidth_is"]) == (3 * MS, MS, "exact")
    assert row["busbw_gbps"] == pytest.approx(16e3 / 1e6 * 4 / 3)


def test_a_rank_that_was_not_recorded_may_have_been_the_last(tmp_path):
    row = one(tmp_path, "allreduce", ranks=4, recorded=3)
    assert (row["transfer_ns"], row["bandwidth_is"]) == (MS, "at least")


def test_ranks_leave_a_broadcast_one_by_one(tmp_path):
    row = one(tmp_path, "broadcast", ranks=3, recorded=3)
    assert (row["transfer_ns"], row["bandwidth_is"]) == (3 * MS, "at least")


@pytest.mark.parametrize(("operation", "ranks"), [("barrier", 4), ("something_new", 4), ("allreduce", 1)])
def test_no_bandwidth_without_a_definition_or_a_partner(tmp_path, operation, ranks):
    row = one(tmp_path, operation, ranks)
    assert row[["algbw_gbps", "busbw_gbps", "bandwidth_is"]].isna().all()


def plain(path, from_host: bool) -> list[float]:
    """Bus bandwidth of the all-reduces above 4 MB, from the JSON: by the kernels' arguments or the host's."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    calls = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") == "cuda_runtime" and "correlation" in event["args"]
    }
    around = [event for event in events if event["name"] == "record_param_comms"]
    found = []
    for kernel in events:
        if kernel.get("cat") != "kernel" or "nccl" not in kernel["name"]:
            continue
        args = kernel["args"]
        if from_host:
            call = calls.get(args["correlation"], {"tid": None, "ts": 0})
            args = next(
                (
                    event["args"]
                    for event in around
                    if event["tid"] == call["tid"] and 0 <= call["ts"] - event["ts"] <= event["dur"]
                ),
                {},
            )
        size = {"Float": 4, "BFloat16": 2}.get(args.get("dtype"), 0) * args.get("In msg nelems", 0)
        if args.get("Collective name") == "allreduce" and size > 4e6:
            ranks = args["Group size"]
            found.append(size / 1e9 / (kernel["dur"] / 1e6) * 2 * (ranks - 1) / ranks)
    return sorted(found)


@pytest.mark.parametrize(
    ("name", "from_host", "count", "middle"), [(NCCL_DATA, False, 15, 5.76), (RESNET, True, 6, 2.43)]
)
def test_recorded_all_reduces(name, from_host, count, middle):
    path = shared_trace(name)
    frame = collectives(Trace.open(path))
    large = frame[frame["collective"].eq("allreduce") & frame["bytes"].gt(4_000_000)]
    assert len(large) == count
    assert large["busbw_gbps"].median() == pytest.approx(middle, abs=0.005)
    slow = plain(path, from_host)
    assert sorted(large["busbw_gbps"]) == pytest.approx(slow, rel=1e-5)
    assert median(slow) == pytest.approx(large["busbw_gbps"].median(), rel=1e-5)


def test_sizes_come_from_the_host_where_the_kernels_say_nothing(tmp_path):
    with gzip.open(shared_trace(RESNET)) as file:
        content = json.load(file)
    told = ("Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "Process Group Name")
    for event in content["traceEvents"]:
        if event.get("cat") == "kernel":
            event["args"] = {key: value for key, value in event["args"].items() if key not in told}
    path = tmp_path / "bare.json"
    path.write_text(json.dumps(content))
    columns = ["collective", "group_size", "bytes", "busbw_gbps"]
    bare = collectives(Trace.open(path, cache=False))[columns]
    whole = collectives(Trace.open(shared_trace(RESNET)))[columns]
    assert bare.equals(whole)
