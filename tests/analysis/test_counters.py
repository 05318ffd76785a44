"""Counters over time: those that follow from the events, and those that a recording holds itself."""

import gzip
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from hta_widgets import examples
from hta_widgets.analysis import counters, memory_bandwidth, memory_timeline, queue_length
from hta_widgets.analysis.counters import counters_of
from hta_widgets.errors import MissingDataError
from hta_widgets.hta.methods.counter_events import generate_trace_with_counters
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.support import shared_trace

QWEN = "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"


def last_at_each_time(frame, value):
    """What holds after all changes at a time."""
    return frame.groupby("time_ns", sort=True)[value].last()


def series(frame, name, key):
    rows = frame[(frame["counter"] == name) & (frame["key"] == key)]
    assert rows["time_ns"].is_monotonic_increasing and rows["time_ns"].is_unique
    return rows.set_index("time_ns")["value"]


def test_each_counter_is_what_its_analysis_says():
    trace = Trace.open(shared_trace(QWEN), cache=False)
    frame = counters(trace)
    queue, memory, copies = queue_length(trace), memory_timeline(trace), memory_bandwidth(trace)
    for stream in queue["stream"].unique():
        expected = last_at_each_time(queue[queue["stream"] == stream], "queue_length")
        assert series(frame, "queue length", f"stream {stream}").equals(expected.astype("float64"))
    for device, rows in memory.groupby("device"):
        expected = last_at_each_time(rows, "allocated_bytes").astype("float64")
        assert series(frame, "allocated memory", device).equals(expected)
        reserved = rows.dropna(subset="reserved_bytes")
        if len(reserved):
            expected = last_at_each_time(reserved, "reserved_bytes").astype("float64")
            assert series(frame, "reserved memory", device).equals(expected)
    for kind, rows in copies.groupby("kind"):
        assert np.allclose(series(frame, "copy bandwidth", kind), last_at_each_time(rows, "gbps"), rtol=1e-12)
    assert frame["unit"].unique().tolist() == ["launches", "bytes", "GB/s", "%"]
    of_streams = frame["counter"] == "queue length"
    assert frame["stream"].notna().equals(of_streams) and frame["device"].notna().equals(of_streams)


def test_sm_efficiency_is_that_of_a_plain_sum():
    path = next(examples.path("gpt2_ddp").glob("*"))
    trace = Trace.open(path, cache=False)
    content = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    kernels = [e for e in content["traceEvents"] if e.get("cat") == "kernel" and e["dur"] > 0]
    spans = [
        (int(e["ts"] * 1000), int((e["ts"] + e["dur"]) * 1000), min(Fraction(e["args"]["blocks per SM"]), 1))
        for e in kernels
    ]
    rank_trace = trace.rank(trace.ranks[0])
    first = int(rank_trace.table.ints("start_ns")[rank_trace.event_id[0]]) - int(rank_trace.start[0])
    found = series(counters(trace), "estimated SM efficiency", "device 0")
    assert len(found) > 100 and found.max() > 90 and found.min() == 0
    for time, value in list(found.items())[:: len(found) // 60]:
        plain = sum(share for start, end, share in spans if start <= time + first < end)
        assert value == pytest.approx(100 * float(min(plain, 1)), abs=1e-3)


def test_kernels_at_once_fill_a_device_together_and_no_more_than_all(tmp_path):
    wide = {"blocks per SM": 0.7}
    trace = job(
        tmp_path,
        [
            launch(0, 1),
            kernel("a", 10, 10, **wide),
            kernel("b", 15, 10, stream=8, **wide),
            kernel("c", 40, 5),
        ],
    )
    found = series(counters(trace), "estimated SM efficiency", "device 0")
    assert found.round(3).to_dict() == {10: 70, 15: 100, 20: 70, 25: 0}


def test_counter_events_are_read_by_process_name_id_and_key(tmp_path):
    def count(ts, args, name="Load", **more):
        return {"ph": "C", "name": name, "pid": 5, "ts": ts, "args": args, **more}

    events = [
        event("cpu_op", "a", 0, 100_000),
        count(3, {"in": 2, "out": 1.5}),
        count(1, {"in": 7}),
        count(3, {"in": 4}),  # the last at a time counts
        count(5, {"in": 1}, id=9),
        count(6, {"in": 1}, pid=6),
        count(7, {"in": True, "out": "many", "text": None}),  # no numbers
        count(8, {"in": 1e400}),  # nor is this one: a JSON reader makes it infinite
        count(9, "nothing"),
        count(10, {"<b>": -3}, name="<script>"),
    ]
    path = tmp_path / "rank.json"
    path.write_text(json.dumps({"traceEvents": events}).replace("Infinity", "1e400"))
    frame = counters(Trace.open(path, cache=False))
    assert frame["unit"].eq("").all() and frame["device"].isna().all()
    found = {
        (name, key): rows.set_index("time_ns")["value"].to_dict()
        for (name, key), rows in frame.groupby(["counter", "key"])
    }
    assert found == {
        ("Load", "in · process 5"): {1_000: 7, 3_000: 4},
        ("Load", "out · process 5"): {3_000: 1.5},
        ("Load", "in · 9 · process 5"): {5_000: 1},
        ("Load", "in · process 6"): {6_000: 1},
        ("<script>", "<b> · process 5"): {10_000: -3},
    }


def test_what_hta_writes_as_counters_is_read_again(tmp_path):
    source = next(examples.path("gpt2_ddp").glob("*"))
    (tmp_path / "rank0.json.gz").write_bytes(source.read_bytes())
    trace = Trace.open(tmp_path / "rank0.json.gz", cache=False)
    generate_trace_with_counters(trace)
    again = counters(Trace.open(tmp_path / "rank0_with_counters.json.gz", cache=False))
    for stream in (7, 20, 40):
        written = series(again, "Queue Length", f"Queue Length · {stream}")
        assert written.equals(series(again, "queue length", f"stream {stream}"))
    assert set(again["counter"]) >= {"Memcpy HtoD", "Memset"}


def test_a_window_begins_with_the_value_at_its_start():
    trace = examples.load("gpt2_ddp")
    whole = counters(trace)
    begin, last = trace.rank(0).windows(Scope(iterations=(11,)))[0].tolist()
    change = int(queue_length(trace, Scope(ranks=(0,)))["time_ns"].iloc[100])
    for scope, first in (
        (Scope(window_ns=(begin, last)), begin),
        (Scope(ranks=(0,), iterations=(11,)), begin),
        (Scope(window_ns=(change, last)), change),  # begins with a change
    ):
        part = counters(trace, scope)
        for one in counters_of(trace, 0):
            rows = part[(part["rank"] == 0) & (part["counter"] == one.name) & (part["key"] == one.key)]
            known = whole[(whole["rank"] == 0) & (whole["counter"] == one.name) & (whole["key"] == one.key)]
            inside = known[(known["time_ns"] > first) & (known["time_ns"] < last)]
            before = known[known["time_ns"] <= first]
            expected = [*before["value"].tail(1), *inside["value"]]
            assert rows["value"].tolist() == expected
            assert len(before) == 0 or rows["time_ns"].iloc[0] == first
    streams = counters(trace, Scope(streams=(7,)))["stream"].dropna().unique().tolist()
    assert streams == [7]


def test_without_anything_to_count_it_says_what_to_record(tmp_path):
    trace = job(tmp_path, [event("cpu_op", "a", 0, 10)])
    with pytest.raises(MissingDataError, match=r"no counters.*profile_memory=True"):
        counters(trace)
