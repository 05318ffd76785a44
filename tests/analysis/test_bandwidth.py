"""Memory bandwidth: exact sums, weighted by time, and nothing where nothing was recorded."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets.analysis.copies.bandwidth import bandwidth_summary, memory_bandwidth, sentence
from hta_widgets.analysis.copies.flows import copy_kind
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.support import shared_trace, tried
from tests.trace.helpers import kernel, write


def opened(tmp_path, events):
    """Copies that overlap on one stream, as no device makes them."""
    return Trace.open(write(tmp_path / "trace.json", events), cache=False, repair=False)


def copy(name, start, dur, gbps=None, size=None, category="gpu_memcpy", stream=7):
    event = {**kernel(name, start, dur, 0, stream), "cat": category}
    if gbps is not None:
        event["args"]["memory bandwidth (GB/s)"] = gbps
    if size is not None:
        event["args"]["bytes"] = size
    return event


EVENTS = [
    copy("Memcpy HtoD (Pinned -> Device)", 0, 10, 0.1, 1000),
    copy("Memcpy HtoD (Pageable -> Device)", 5, 10, 0.2, 2000, stream=8),
    copy("Memcpy HtoD (Pageable -> Device)", 15, 5, 0.3, 1500),
    copy("Memset (Device)", 40, 4, 0.0, 8000, "gpu_memset"),
    copy("Memset (Device)", 50, 4, category="gpu_memset"),
    copy("Memcpy DtoD", 60, 0, 5.0, 10),
    kernel("k", 0, 100),
]


def test_copies_of_one_kind_add_up_and_leave_no_residue(tmp_path):
    frame = memory_bandwidth(opened(tmp_path, EVENTS))
    rows = frame[frame["kind"] == "Memcpy HtoD"]
    assert (rows["time_ns"] // 1000).tolist() == [0, 5, 10, 15, 15, 20]
    assert rows["gbps"].tolist() == [0.1, 0.3, 0.2, 0.0, 0.3, 0.0]
    # No bandwidth recorded: bytes by time. Neither: left out.
    assert frame[frame["kind"] == "Memset"]["gbps"].tolist() == [2.0, 0.0]


def test_the_summary_tells_what_was_moved_and_what_is_unknown(tmp_path):
    frame = bandwidth_summary(opened(tmp_path, EVENTS)).set_index("kind")
    up = frame.loc["Memcpy HtoD"]
    assert up[["copies", "bytes", "gpu_ns", "busy_ns", "window_ns"]].tolist() == [
        3, 4500, 25_000, 20_000, 100_000,
    ]  # fmt: skip
    moved = 0.1 * 10 + 0.2 * 10 + 0.3 * 5
    assert up["mean_gbps"] == pytest.approx(moved / 100, rel=1e-15)
    assert up["mean_busy_gbps"] == pytest.approx(moved / 20, rel=1e-15)
    assert (up["max_gbps"], up["effective_gbps"]) == (0.3, 4500 / 25_000)
    fill = frame.loc["Memset"]
    assert fill[["copies", "copies_without_bandwidth", "copies_without_bytes"]].tolist() == [2, 1, 1]
    assert fill["effective_gbps"] == 8000 / 4000, "the time of copies of unknown size moves nothing known"
    assert frame.loc["Memcpy DtoD", "busy_ns"] == 0


def test_what_the_trace_tells_comes_before_bytes_by_time(tmp_path):
    frame = memory_bandwidth(opened(tmp_path, [copy("Memcpy DtoD", 0, 10, 0.5, 1000)]))
    assert frame["gbps"].tolist() == [0.5, 0.0]


@pytest.mark.filterwarnings("error")
def test_a_bandwidth_that_no_memory_has_is_not_known(tmp_path):
    huge = [copy("Memcpy DtoD", 0, 10, 1e300, 1000), copy("Memcpy HtoD", 20, 0.001, None, 2**62)]
    frame = memory_bandwidth(opened(tmp_path, huge))
    assert frame["kind"].tolist() == ["Memcpy DtoD", "Memcpy DtoD"], (
        "the other's bytes by time are none either"
    )
    assert frame["gbps"].tolist() == [0.1, 0.0], "bytes by time"


@pytest.mark.parametrize("hours", [1e-9, 2])
def test_the_mean_is_exact_however_fast_and_long_the_copy(tmp_path, hours):
    frame = bandwidth_summary(opened(tmp_path, [copy("Memcpy DtoD", 0, hours * 3.6e9, 3000.5)]))
    assert frame[["mean_gbps", "mean_busy_gbps"]].to_numpy().tolist() == [[3000.5, 3000.5]]


def test_windows_add_up(tmp_path):
    trace = opened(tmp_path, EVENTS)
    parts = [bandwidth_summary(trace, Scope(window_ns=w)) for w in ((0, 7_000), (7_000, 100_000))]
    whole = bandwidth_summary(trace, Scope(window_ns=(0, 100_000)))
    for column in ("copies", "bytes", "gpu_ns", "busy_ns", "window_ns"):
        assert (parts[0][column] + parts[1][column]).tolist() == whole[column].tolist()
    points = memory_bandwidth(trace, Scope(window_ns=(7_000, 12_000)))
    rows = points[points["kind"] == "Memcpy HtoD"]
    assert rows["gbps"].tolist() == [0.3, 0.2] and rows["event_id"].tolist() == [-1, 0]


@settings(max_examples=tried(50))
@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 20), st.floats(1e-6, 4e3, allow_subnormal=False)),
        min_size=1,
        max_size=20,
    )
)
def test_when_nothing_runs_the_bandwidth_is_exactly_zero(tmp_path_factory, copies):
    path = tmp_path_factory.mktemp("copies") / "trace.json"
    events = [copy("Memcpy DtoD", start, dur, gbps) for start, dur, gbps in copies]
    path.write_text(json.dumps({"traceEvents": events}))
    frame = memory_bandwidth(Trace.open(path, cache=False, repair=False))  # whatever overlaps
    busy = np.zeros(80, np.int64)
    first = min(start for start, _, _ in copies)
    for start, dur, gbps in copies:
        busy[start - first : start - first + dur] += round(gbps * 1e9)
    last = frame.drop_duplicates("time_ns", keep="last")
    assert (last["gbps"].to_numpy() == busy[last["time_ns"] // 1000] / 1e9).all()
    assert (frame["gbps"] >= 0).all()


@pytest.mark.parametrize("name", ["hta/ns_resolution_trace", "hta/trace_diff/test"])
def test_no_residue_on_recorded_traces(name):
    """HTA counts 1e-16 GB/s as bandwidth here."""
    frame = memory_bandwidth(Trace.open(shared_trace(name)))
    ends = frame.groupby(["rank", "device", "kind"])["gbps"].last()
    assert (ends == 0.0).all()
    assert frame.loc[frame["gbps"] > 0, "gbps"].min() > 1e-5


def test_kinds_of_all_vendors():
    kinds = {
        "Memcpy DtoH (Device -> Pageable)": "Memcpy DtoH",
        "Memcpy PtoP (Device -> Device)": "Memcpy PtoP",
        "Memset (Device)": "Memset",
        "CopyDeviceToDevice": "Memcpy DtoD",
        "CopyHostToDevice": "Memcpy HtoD",
        "FillBuffer": "Memset",
        "hipMemcpyDtoH": "Memcpy DtoH",
        "dma_request": "Memcpy Unknown",
    }
    assert {name: copy_kind(name) for name in kinds} == kinds


def test_streams_and_names_pick_copies(tmp_path):
    trace = opened(tmp_path, EVENTS)
    assert bandwidth_summary(trace, Scope(streams=(8,)))["bytes"].tolist() == [2000]
    assert set(memory_bandwidth(trace, Scope(names=("Memset (Device)",)))["kind"]) == {"Memset"}
    empty = memory_bandwidth(trace, Scope(streams=(99,)))
    assert empty.empty and (empty.dtypes == memory_bandwidth(trace).dtypes).all()
    assert bandwidth_summary(trace, Scope(streams=(99,))).empty


def test_abstains_without_bandwidth_and_bytes(tmp_path):
    with pytest.raises(MissingDataError, match=r"memory bandwidth \(GB/s\)"):
        memory_bandwidth(Trace.open(shared_trace("hta/mtia_inference_trace")))
    with pytest.raises(MissingDataError, match="no copies"):
        bandwidth_summary(opened(tmp_path, EVENTS[-1:]))


def test_words_and_picture(tmp_path):
    trace = opened(tmp_path, EVENTS)
    assert "Memcpy HtoD takes most time, 20.0 µs in all, at up to 300 MB/s" in sentence(
        bandwidth_summary(trace)
    )
    assert "No memory" in sentence(bandwidth_summary(trace, Scope(streams=(99,))))
    figure = ANALYSES["memory_bandwidth"].figure(memory_bandwidth(trace))
    assert len(figure.data) == 2
    assert figure.layout.yaxis.title.text == "Bandwidth (GB/s)"
