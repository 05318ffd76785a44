"""Queue length and bandwidth behind HTA's names, against its numbers, and traces with counters."""

import gzip
import io
import json
import shutil

import numpy as np
import pytest

from hta_widgets.errors import MissingDataWarning
from hta_widgets.hta.common.types import TimeSeriesTypes
from hta_widgets.hta.methods import counters
from hta_widgets.hta.methods.counter_events import generate_trace_with_counters
from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.trace.model import Trace
from tests.analysis import test_bandwidth, test_queue
from tests.analysis.test_launches import opened
from tests.support import shared_trace
from tests.trace.helpers import slice_, write

EVENTS = test_queue.EVENTS + test_bandwidth.EVENTS[:-1]


def job_of(name):
    return without_last_step(Trace.open(shared_trace(name)))


# HTA 0.6.1: (rank, stream) -> count, mean and max of the points. It rounds times to whole us and puts points
# of one time in any order: each such point may be off by one.
QUEUES = {
    "hta/critical_path/alexnet": {(0, 7): (182, 3.346154, 18), (0, 20): (14, 0.642857, 2)},
    "hta/critical_path/simple_add": {(0, 7): (182, 0.917582, 5), (0, 20): (14, 0.5, 1)},
    "hta/trace_filter": {
        (0, 7): (1052, 23.619772, 76), (0, 23): (126, 0.595238, 4), (0, 25): (16, 4.0, 8),
        (0, 84): (8, 0.5, 1), (0, 203): (2, 0.5, 1), (1, 7): (1002, 24.665669, 75),
        (1, 23): (126, 0.547619, 2), (1, 25): (16, 4.0, 8), (1, 84): (8, 0.5, 1), (1, 203): (2, 0.5, 1),
    },
    "hta/trace_diff/control": {
        (3, 7): (14940, 35.432396, 287), (3, 20): (470, 2.576596, 10), (3, 21): (100, 0.76, 2),
        (3, 22): (240, 10.591667, 22),
    },
    "kineto/resnet50_num_workers_0": {(0, 7): (15470, 168.614932, 569)},
    "hta/ns_resolution_trace": {(0, 7): (9752, 812.413454, 1022)},
    "hta/nccl_parser_config": {(0, 7): (5004, 0.814548, 10), (0, 40): (28, 0.5, 1)},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(QUEUES))
def test_queue_summary_of_hta(name):
    job = job_of(name)
    frame = counters.queue_length_summary(job, job.ranks)
    series = counters.queue_length_time_series(job, job.ranks)
    assert frame.index.names == ["rank", "stream"]
    assert [column for _, column in frame.columns] == [
        "count", "mean", "std", "min", "25%", "50%", "75%", "max",
    ]  # fmt: skip
    got = {key: tuple(row) for key, row in frame["queue_length"][["count", "mean", "max"]].iterrows()}
    assert sorted(got) == sorted(QUEUES[name])
    for key, (count, mean, most) in QUEUES[name].items():
        assert got[key][0] == count
        points = series[key[0]][lambda item, stream=key[1]: item["stream"] == stream]
        tied = np.floor(points["ts"]).duplicated(keep=False).sum()
        assert got[key][1] == pytest.approx(mean, abs=tied / count + 1e-6)
        assert abs(got[key][2] - most) <= 1
    assert (frame["queue_length"]["min"] >= 0).all()


def test_queue_points_have_hta_s_columns():
    job = job_of("hta/trace_filter")
    series = counters.queue_length_time_series(job, [0, 1])
    assert list(series) == [0, 1]
    frame = series[0]
    assert list(frame) == ["ts", "pid", "tid", "stream", "queue_length"] and frame.index.name == "index"
    assert frame["stream"].is_monotonic_increasing
    for _, points in frame.groupby("stream"):
        assert points["ts"].is_monotonic_increasing
    assert (frame["tid"] == frame["stream"]).all() and (frame["pid"] == 0).all()
    assert counters.queue_length_summary_from_time_series(series).equals(
        counters.queue_length_summary(job, [0, 1])
    )
    assert "rank" not in frame
    assert counters.queue_length_summary_from_time_series({}) is None


def test_texts_of_the_file_stay_texts():
    frame = counters.queue_length_time_series(job_of("kineto/resnet50_num_workers_0"), None)[0]
    assert set(frame["tid"]) == {"stream 7"} and set(frame["pid"]) == {0}


# HTA's result for a limit of 10: stream, us, and the share of the time between first and last start.
BLOCKED = {
    "hta/critical_path/alexnet": (0, 7, 1316.0),
    "kineto/resnet50_num_workers_0": (0, 7, 450139.0),
    "hta/trace_filter": (0, 7, 287139.0),
}


@pytest.mark.parametrize("name", sorted(BLOCKED))
def test_blocked_time_of_hta(name):
    job = job_of(name)
    rank, stream, expected = BLOCKED[name]
    frame = counters.time_spent_blocked_on_full_queue(job, counters.queue_length_time_series(job, [rank]), 10)
    assert list(frame) == [
        "rank", "stream", "duration_at_max_queue_length", "relative_duration_at_max_queue_length",
    ]  # fmt: skip
    row = frame[frame["stream"] == stream].iloc[0]
    assert row["duration_at_max_queue_length"] == expected
    assert 0 < row["relative_duration_at_max_queue_length"] < 1


def test_blocked_time_is_a_share_of_the_whole_recording(tmp_path):
    """The queue of stream 7 holds two or more from 4 to 30 us; the recording goes on until 46."""
    job = opened(tmp_path, test_queue.EVENTS)
    frame = counters.time_spent_blocked_on_full_queue(job, counters.queue_length_time_series(job, None), 2)
    assert frame.to_numpy().tolist() == [[0, 7, 26.0, 26 / 46]]


def test_every_stream_has_a_blocked_time():
    """Q-16: HTA keeps one stream per rank, here 203."""
    job = job_of("hta/trace_filter")
    series = counters.queue_length_time_series(job, [0])
    frame = counters.time_spent_blocked_on_full_queue(job, series, 1)
    assert frame["stream"].tolist() == [7, 23, 25, 84, 203]
    none = counters.time_spent_blocked_on_full_queue(job, series, 1024)
    assert none.empty and list(none) == list(frame)
    assert counters.time_spent_blocked_on_full_queue(job, {}, 1).empty


# HTA 0.6.1: (rank, kind) -> count, mean, max of the points above 0.
BANDWIDTHS = {
    "hta/critical_path/alexnet": {
        (0, "Memcpy HtoD"): (16, 4.108898, 11.14669), (0, "Memset"): (3, 1.726877, 4.729927),
    },
    "hta/trace_filter": {
        (0, "Memcpy DtoD"): (4, 491.943204, 960.234432), (0, "Memcpy DtoH"): (4, 0.419659, 1.400735),
        (0, "Memcpy HtoD"): (12, 2.001442, 6.830521), (0, "Memset"): (5, 150.722967, 753.585586),
        (1, "Memcpy DtoD"): (4, 543.566338, 774.983634), (1, "Memcpy DtoH"): (4, 0.132589, 0.268531),
        (1, "Memcpy HtoD"): (12, 2.127952, 6.706594), (1, "Memset"): (5, 0.028457, 0.081897),
    },
    "tracelens/inference/sglang_decode": {
        (0, "Memcpy DtoD"): (2, 0.059682, 0.065206), (0, "Memcpy DtoH"): (1, 0.05655, 0.05655),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BANDWIDTHS))
def test_bandwidth_summary_of_hta(name):
    job = job_of(name)
    frame = counters.memory_bw_summary(job, job.ranks)["memory_bw_gbps"]
    got = {key: tuple(row) for key, row in frame[["count", "mean", "max"]].iterrows()}
    assert sorted(got) == sorted(BANDWIDTHS[name])
    for key, expected in BANDWIDTHS[name].items():
        assert got[key] == pytest.approx(expected, abs=1e-6)


def test_bandwidth_points_leave_no_residue():
    """Q-42: HTA's summary of this trace starts at 1.1e-16 GB/s."""
    job = job_of("hta/ns_resolution_trace")
    frame = counters.memory_bw_time_series(job, None)[0]
    assert list(frame) == ["ts", "pid", "name", "memory_bw_gbps"]
    assert sorted(frame.index) == list(range(len(frame)))
    summary = counters.memory_bw_summary(job, None)["memory_bw_gbps"]
    assert summary["min"].tolist() == pytest.approx([0.005, 0.075472], abs=1e-6)
    # One point per copy: 1280 copies and 116 fills in the steps that are kept.
    assert summary["count"].tolist() == [
        len(frame[frame["name"] == name]) / 2 for name in summary.index.levels[1]
    ]


def test_fills_that_hta_rounds_away():
    """Q-1: HTA counts 219 points; of the other fills it lets the end come before the start."""
    frame = counters.memory_bw_summary(job_of("tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"), None)
    assert frame["memory_bw_gbps"]["count"].to_dict() == {(0, "Memcpy DtoH"): 1, (0, "Memset"): 241}


def test_nothing_is_nothing(tmp_path):
    job = opened(tmp_path, [slice_("aten::add", "cpu_op", 0, 5)])
    for function, nothing in (
        (counters.queue_length_time_series, {}),
        (counters.queue_length_summary, None),
        (counters.memory_bw_time_series, {}),
        (counters.memory_bw_summary, None),
    ):
        with pytest.warns(MissingDataWarning):
            assert function(job, None) == nothing


def test_times_count_from_the_first_event_that_hta_reads(tmp_path):
    events = [
        {**slice_("PyTorch Profiler (0)", "Trace", -500, 5)},
        slice_("aten::add", "cpu_op", -7, 5),
        *EVENTS,
    ]
    frame = counters.queue_length_time_series(opened(tmp_path, events), None)[0]
    assert frame["ts"].min() == 7.0


def test_times_of_all_ranks_count_from_the_first_event_of_any(tmp_path):
    for rank, later in ((0, 20), (1, 0)):
        events = [{**event, "ts": event["ts"] + later} for event in EVENTS]
        write(tmp_path / f"{rank}.json", events, distributedInfo={"rank": rank})
    job = Trace.open(tmp_path, cache=False)
    for ranks in ([0, 1], [0]):
        first = {
            rank: frame["ts"].min() for rank, frame in counters.queue_length_time_series(job, ranks).items()
        }
        assert first == {rank: {0: 20.0, 1: 0.0}[rank] for rank in ranks}


# ---- traces with counters


def text_of(path):
    data = path.read_bytes()
    return gzip.decompress(data) if path.name.endswith(".gz") else data


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("trace.json", "trace_with_counters.json"),
        ("trace.json.gz", "trace_with_counters.json.gz"),
        ("trace.gz", "trace_with_counters.json.gz"),
    ],
)
def test_the_trace_is_copied_and_never_overwritten(name, new, tmp_path):
    """Q-27: HTA overwrites trace.gz, writes gzip into trace.json and edits the folder's name."""
    folder = tmp_path / "of.json.d"
    source = write(folder / "plain", EVENTS, traceName="x")
    source.rename(folder / name)
    if name.endswith(".gz"):
        (folder / name).write_bytes(gzip.compress((folder / name).read_bytes()))
    before = (folder / name).read_bytes()
    job = Trace.open(folder / name, cache=False)
    generate_trace_with_counters(job)
    assert sorted(path.name for path in folder.iterdir()) == sorted([name, new])
    assert (folder / name).read_bytes() == before
    written = json.loads(text_of(folder / new))
    assert written["traceName"] == "x"
    assert written["traceEvents"][: len(EVENTS)] == EVENTS
    # Once more: the result of a former call is replaced.
    generate_trace_with_counters(job, TimeSeriesTypes.MEMCPY_BANDWIDTH, [0], "")
    added = json.loads(text_of(folder / new))["traceEvents"][len(EVENTS) :]
    assert {event["name"] for event in added} == {"Memcpy HtoD", "Memset"}


def test_counter_events_show_what_the_frames_say(tmp_path):
    base = 1751410836123456
    events = [{**event, "ts": event["ts"] + base} for event in EVENTS]
    text = json.dumps({"traceEvents": events}).replace(f"{base + 4}", f"{base + 4}.123")
    (tmp_path / "trace.json").write_text(text)
    job = Trace.open(tmp_path / "trace.json", cache=False)
    generate_trace_with_counters(job, TimeSeriesTypes.QUEUE_LENGTH)
    text = (tmp_path / "trace_with_counters.json").read_bytes()
    assert b'"ts":%d.123' % (base + 4) in text
    added = json.loads(text)["traceEvents"][len(events) :]
    series = counters.queue_length_time_series(job, None)[0]
    assert list(added[0]) == ["pid", "ts", "args", "ph", "name", "id"]
    assert {(item["ph"], item["name"], item["pid"]) for item in added} == {("C", "Queue Length", 0)}
    assert [item["args"]["Queue Length"] for item in added] == series["queue_length"].tolist()
    assert [item["id"] for item in added] == series["stream"].tolist()
    assert np.allclose([item["ts"] - base for item in added], series["ts"], atol=0.3)


def test_our_own_output_is_no_second_rank(tmp_path):
    """Q-52"""
    for name in ("sampled_rank-0.json.gz", "sampled_rank-1.json.gz"):
        shutil.copy(shared_trace(f"hta/trace_filter/{name}"), tmp_path / name)
    generate_trace_with_counters(Trace.open(tmp_path, cache=False), ranks=[0, 1])
    assert len(list(tmp_path.iterdir())) == 4
    again = Trace.open(tmp_path, cache=False)
    assert again.ranks == [0, 1]
    whole = Trace.open(tmp_path / "sampled_rank-0_with_counters.json.gz", cache=False).rank(0)
    assert whole.n == again.rank(0).n
    assert whole.table.dictionary("phase").count("C") == 1


def test_a_file_of_the_user_is_not_replaced(tmp_path):
    job = Trace.open(write(tmp_path / "trace.json", EVENTS), cache=False)
    (tmp_path / "trace2.json").write_text("mine")
    with pytest.raises(FileExistsError, match="output_suffix"):
        generate_trace_with_counters(job, output_suffix="2")
    assert (tmp_path / "trace2.json").read_text() == "mine"


def test_a_rank_without_series_gives_no_file(tmp_path):
    job = Trace.open(write(tmp_path / "trace.json", [slice_("aten::add", "cpu_op", 0, 5)]), cache=False)
    with pytest.warns(MissingDataWarning):
        generate_trace_with_counters(job)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
    stream = Trace.open(io.BytesIO((tmp_path / "trace.json").read_bytes()), cache=False)
    with pytest.raises(ValueError, match="local disk"):
        generate_trace_with_counters(stream)
