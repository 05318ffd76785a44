"""`get_idle_time_breakdown`: HTA's table, its numbers where they are right, and why ours differ elsewhere."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest

from hta_widgets.errors import MissingDataWarning
from hta_widgets.hta.methods import idle
from hta_widgets.hta.methods.idle import idle_figure, idle_time_breakdown
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.schema import NULL
from tests.hta.recorded import golden, job
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_, write

# Timestamps are whole microseconds, every kernel has its launch, and no kernels of one stream overlap.
EXACT = [
    "hta/trace_filter",
    "hta/trace_diff/control",
    "hta/critical_path/alexnet",
    "hta/critical_path/simple_add",
    "hta/critical_path/cuda_event_sync",
]
# Every trace of the list has fractions of microseconds, which HTA rounds away.
ROUNDED = [
    "hta/amd_trace",
    "hta/nccl_parser_config",
    "hta/ns_resolution_trace",
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "tracelens/mi210/gpu_only_trace",
]
# HTA drops device work without a recorded launch once a trace has two steps.
UNLINKED = ["hta/trace_diff/test", "kineto/resnet50_num_workers_0/worker0.pt.trace.json.gz"]


def ask(of: Trace, ranks=None, streams=None, statistics=False, delay=30):
    return idle_time_breakdown(of, ranks, streams, False, True, statistics, delay)


def cells(frame: pd.DataFrame) -> dict:
    keys = zip(frame["rank"], frame["stream"], frame["idle_category"], strict=True)
    return dict(zip(keys, zip(frame["idle_time"], frame["idle_time_ratio"], strict=True), strict=True))


def same(item: dict, other: dict) -> bool:
    return list(item) == list(other) and np.array_equal(
        np.array(list(item.values()), float), np.array(list(other.values()), float), equal_nan=True
    )


def of_hta(name: str) -> dict:
    return cells(pd.DataFrame(golden()[name]["idle"]).astype({"idle_time_ratio": float}))


def by_hta_rules(of: Trace, rank: int) -> dict:
    """HTA's table worked out event by event, by its rules and from times as it rounds them.

    Starts are rounded up and ends down; a pause is measured from the end of the event before; an event
    without a recorded launch takes event 0 of the file for it.
    """
    rank_trace = of.rank(rank)
    zero = np.flatnonzero(rank_trace.event_id == 0).tolist()
    # As floats, like HTA: in the file's own us since 1970 these are multiples of 0.25 us.
    times = [ns / 1000 for ns in rank_trace.table.ints("start_ns")[rank_trace.event_id].tolist()]
    start = [math.ceil(t) for t in times]
    end = [math.floor(t + dur / 1000) for t, dur in zip(times, rank_trace.dur.tolist(), strict=True)]
    table = {}
    working = np.flatnonzero(
        rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC) & (rank_trace.stream != NULL)
    )
    for stream in dict.fromkeys(rank_trace.stream[working].tolist()):
        rows = sorted(
            (r for r in working.tolist() if rank_trace.stream[r] == stream), key=lambda row: start[row]
        )
        sums = {"other": 0}
        for before, row in itertools.pairwise(rows):
            pause = start[row] - end[before]
            launch = [int(rank_trace.launch[row])] if rank_trace.launch[row] >= 0 else zero
            late = any(start[call] > end[before] for call in launch)
            category = "host_wait" if late else "kernel_wait" if pause < 30 else "other"
            sums[category] = sums.get(category, 0) + pause
        total = sum(sums.values())
        for category in ("host_wait", "kernel_wait", "other"):
            if category in sums:
                share = round(sums[category] / total, 2) if total else math.nan
                table[rank, stream, category] = (float(sums[category]), share)
    return table


@pytest.mark.parametrize("name", EXACT)
def test_numbers_are_those_of_hta(name):
    expected = of_hta(name)
    frame, nothing = ask(job(name), ranks=sorted({rank for rank, *_ in expected}))
    assert nothing is None
    assert same(cells(frame), expected)


@pytest.mark.parametrize("name", ROUNDED)
def test_only_rounding_separates_us_from_hta(name):
    """Under HTA's rounding the same events give HTA's numbers; without it they give ours."""
    assert same(by_hta_rules(job(name), 0), of_hta(name))
    frame, _ = ask(job(name))
    ours, theirs = cells(frame), of_hta(name)
    assert list(ours) == list(theirs)
    rank_trace = job(name).rank(0)
    for stream in frame["stream"].unique():
        mine = frame.loc[frame["stream"] == stream, "idle_time"].sum()
        rounded = sum(idle_time for (_, at, _), (idle_time, _) in theirs.items() if at == stream)
        # Each pause grows by less than 2 us when its ends are rounded; an event without a whole microsecond
        # inside becomes -1 us long and adds one more.
        assert abs(mine - rounded) < 3 * (rank_trace.stream == stream).sum()


@pytest.mark.parametrize("name", UNLINKED)
def test_device_work_without_a_launch_counts(name):
    """HTA's numbers come out when it is left out, as HTA does; it is work, so we keep it."""
    rank = job(name).ranks[0]
    linked = job(name).keep(lambda item: ~item.is_device | (item.launch >= 0))
    assert same(by_hta_rules(linked, rank), of_hta(name))
    assert ask(job(name), [rank])[0]["idle_time"].sum() > ask(linked, [rank])[0]["idle_time"].sum()


def test_table_has_the_shape_of_hta():
    frame, statistics = ask(job("hta/trace_filter"), ranks=[0, 1], statistics=True)
    assert list(frame.columns) == ["rank", "stream", "idle_category", "idle_time", "idle_time_ratio"]
    assert frame["stream"].dtype == np.int64
    first = (frame["rank"] == 0).sum()
    assert frame.index.tolist() == [*range(first), *range(len(frame) - first)]
    columns = ["rank", "stream", "count", "mean", "std", "min", "25%", "50%", "75%", "max"]
    assert list(statistics.columns) == columns
    assert statistics.index.name == "idle_category"
    assert statistics.index.tolist() == frame["idle_category"].tolist()
    np.testing.assert_allclose(
        (statistics["count"] * statistics["mean"]).fillna(0), frame["idle_time"], rtol=1e-3, atol=1
    )


# get_idle_time_breakdown(show_idle_interval_stats=True) of HTA 0.6.1 on rank 1 of hta/trace_filter.
HTA_STATISTICS = {
    ("other", 7): (228.0, 64049.0),
    ("host_wait", 84): (2.0, 205353.0),
    ("other", 84): (1.0, 23247.0),
    ("other", 203): (0.0, math.nan),
}


def test_statistics_are_those_of_hta():
    _, statistics = ask(job("hta/trace_filter"), ranks=[1], statistics=True)
    for (category, stream), (count, longest) in HTA_STATISTICS.items():
        row = statistics[statistics["stream"] == stream].loc[category]
        np.testing.assert_array_equal([row["count"], row["max"]], [count, longest])
    row = statistics[statistics["stream"] == 84].loc["host_wait"]
    assert [row["50%"], row["75%"]] == [125930.0, 165641.5]


def test_default_rank_streams_and_delay():
    of = job("hta/trace_filter")
    assert ask(of)[0]["rank"].unique().tolist() == [0]
    assert ask(of, [])[0].equals(ask(of)[0])
    chosen, _ = ask(of, streams=[84, 7, 9999])
    assert chosen["stream"].drop_duplicates().tolist() == [84, 7]
    nothing, statistics = ask(of, streams=[9999], statistics=True)
    assert nothing.empty
    assert statistics.empty
    assert nothing.dtypes.to_dict() == chosen.dtypes.to_dict()
    assert "kernel_wait" not in set(ask(of, delay=0)[0]["idle_category"])
    with pytest.raises(ValueError, match="no rank 7"):
        ask(of, [7])


def call(start, correlation):
    return slice_("cudaLaunchKernel", "cuda_runtime", start, 1, correlation=correlation)


def opened(tmp_path, events) -> Trace:
    return Trace.open(write(tmp_path / "trace.json", events), cache=False, repair=False)


def test_overlapping_kernels_do_not_shrink_idle_time(tmp_path):
    """HTA measures from the end of the row before, and books what overlaps as negative kernel_wait."""
    of = opened(tmp_path, [kernel("a", 0, 50), kernel("b", 10, 10), kernel("c", 30, 10), kernel("d", 60, 5)])
    assert by_hta_rules(of, 0) == {(0, 7, "kernel_wait"): (-10.0, 1.0), (0, 7, "other"): (0.0, 0.0)}
    assert cells(ask(of)[0]) == {(0, 7, "kernel_wait"): (10.0, 1.0), (0, 7, "other"): (0.0, 0.0)}


def test_overlapping_kernels_of_a_recorded_trace():
    """Apart from work without a launch, HTA's only mistake in this trace: 114 us of negative pauses."""
    linked = job("hta/trace_diff/test").keep(lambda item: ~item.is_device | (item.launch >= 0))
    ours, theirs = cells(ask(linked, [1])[0]), of_hta("hta/trace_diff/test")
    differing = {key: (ours[key][0], theirs[key][0]) for key in theirs if ours[key] != theirs[key]}
    assert differing == {(1, 7, "kernel_wait"): (42486.0, 42372.0)}


def test_a_kernel_without_launch_does_not_take_event_zero_for_it(tmp_path):
    """HTA's link 0 means both "none" and "event 0"; here event 0 begins after the first kernel's end."""
    of = opened(tmp_path, [call(15, 9), kernel("a", 0, 10), kernel("b", 20, 5)])
    assert by_hta_rules(of, 0)[0, 7, "host_wait"] == (10.0, 1.0)
    assert cells(ask(of)[0])[0, 7, "kernel_wait"] == (10.0, 1.0)


def test_streams_of_two_devices_do_not_mix(tmp_path):
    """They share a row, as in HTA, but the pauses are those of each device's own stream."""
    other = kernel("b", 12, 30)
    other["pid"] = other["args"]["device"] = 1
    of = opened(tmp_path, [kernel("a", 0, 10), other, kernel("c", 50, 5)])
    assert cells(ask(of)[0]) == {(0, 7, "other"): (40.0, 1.0)}


def test_waiting_is_no_device_work():
    """MTIA records its event waits as kernels: HTA counts them as work, and idles for less."""
    rank_trace = job("hta/mtia_inference_trace").rank(0)
    waits = rank_trace.is_device & (rank_trace.event_class == EventClass.SYNC)
    assert waits.any()
    frame, _ = ask(job("hta/mtia_inference_trace"))
    theirs = of_hta("hta/mtia_inference_trace")
    assert frame["idle_time"].sum() > sum(idle_time for idle_time, _ in theirs.values())


def test_without_device_events_it_warns_and_returns_nothing():
    of = Trace.open(shared_trace("hta/cpu_only"))
    with pytest.warns(MissingDataWarning, match="ProfilerActivity"):
        frame, statistics = ask(of, statistics=True)
    assert frame.empty
    assert list(frame.columns) == ["rank", "stream", "idle_category", "idle_time", "idle_time_ratio"]
    assert statistics is None


@pytest.mark.parametrize("as_ratio", [True, False])
def test_plots_are_those_of_hta(monkeypatch, as_ratio):
    shown = []
    monkeypatch.setattr(idle, "show", shown.extend)
    frame, _ = idle_time_breakdown(job("hta/trace_filter"), [0, 1], None, True, as_ratio, False, 30)
    assert frame["stream"].dtype == np.int64
    assert [figure.layout.title.text for figure in shown] == [
        f"Idle time breakdown on rank {rank} per CUDA stream" for rank in (0, 1)
    ]
    layout = shown[0].layout
    assert layout.yaxis.title.text == ("Percentage" if as_ratio else "Idle time (us)")
    assert layout.yaxis.tickformat == (".2%" if as_ratio else None)
    assert layout.legend.title.text == "Idle Time Breakdown"
    assert [bar.name for bar in shown[0].data] == ["host_wait", "kernel_wait", "other"]
    assert shown[0].data[0].x.tolist() == ["23", "84", "7"]


def test_plot_of_one_category():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame, _ = ask(job("hta/triton_example"))
    assert [bar.name for bar in idle_figure(frame, 0, True).data] == ["other"]
