"""`get_temporal_breakdown`, `get_comm_comp_overlap`, `get_profiler_steps` against HTA's own numbers."""

import numpy as np
import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.errors import MissingDataWarning
from hta_widgets.hta.methods import breakdowns
from hta_widgets.hta.methods.breakdowns import comm_comp_overlap, profiler_steps, temporal_breakdown
from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.trace.model import Trace
from tests.hta.recorded import golden, job
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_, write

COLUMNS = [
    "rank",
    "idle_time(us)",
    "compute_time(us)",
    "non_compute_time(us)",
    "kernel_time(us)",
    "idle_time_pctg",
    "compute_time_pctg",
    "non_compute_time_pctg",
]
# Whole microseconds, every kernel linked, no sync event or host operator that HTA takes for device work.
EXACT = ["hta/trace_filter", "hta/trace_diff/control"]
UNLINKED = ["hta/trace_diff/test", "kineto/resnet50_num_workers_0/worker0.pt.trace.json.gz"]
ROUNDED = [
    "hta/amd_trace",
    "hta/nccl_parser_config",
    "hta/ns_resolution_trace",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "tracelens/mi210/gpu_only_trace",
]
WITH_SYNC_EVENTS = ["hta/critical_path/alexnet", "hta/critical_path/simple_add"]


def linked_only(of: Trace) -> Trace:
    """HTA drops device work without a recorded launch once a trace has two steps."""
    return of.keep(lambda item: ~item.is_device | (item.launch >= 0))


def temporal_of_hta(name: str) -> pd.DataFrame:
    return pd.DataFrame(golden()[name]["temporal"])[COLUMNS].astype(float).astype({"rank": int})


def opened(tmp_path, events) -> Trace:
    return Trace.open(write(tmp_path / "trace.json", events), cache=False)


@pytest.mark.parametrize("name", EXACT)
def test_temporal_breakdown_is_that_of_hta(name):
    pd.testing.assert_frame_equal(temporal_breakdown(job(name), False), temporal_of_hta(name))


@pytest.mark.parametrize("name", UNLINKED)
def test_temporal_breakdown_counts_work_without_a_launch(name):
    pd.testing.assert_frame_equal(temporal_breakdown(linked_only(job(name)), False), temporal_of_hta(name))
    ours, theirs = temporal_breakdown(job(name), False), temporal_of_hta(name)
    assert (ours["compute_time(us)"] > theirs["compute_time(us)"]).all()


@pytest.mark.parametrize("name", ROUNDED)
def test_temporal_breakdown_differs_by_rounding_only(name):
    """HTA's rounding takes under 2 us off an event; one without a whole microsecond becomes -1 us long."""
    ours, theirs = temporal_breakdown(job(name), False), temporal_of_hta(name)
    bound = 3 * int(job(name).rank(0).is_device.sum())
    times = [column for column in COLUMNS if column.endswith("(us)")]
    assert (abs(ours[times] - theirs[times]) < bound).all(axis=None)
    assert (ours["idle_time(us)"] < theirs["idle_time(us)"]).all()
    assert (ours["compute_time(us)"] > theirs["compute_time(us)"]).all()
    assert (abs(ours["kernel_time(us)"] - theirs["kernel_time(us)"]) < 2).all()


@pytest.mark.parametrize("name", WITH_SYNC_EVENTS)
def test_synchronisation_is_not_busy_time(name):
    """HTA counts the cuda_sync rows that carry a stream as non-compute time."""
    ours, theirs = temporal_breakdown(job(name), False), temporal_of_hta(name)
    assert ours["compute_time(us)"].tolist() == theirs["compute_time(us)"].tolist()
    assert (ours["non_compute_time(us)"] < theirs["non_compute_time(us)"]).all()


def test_events_shorter_than_a_microsecond_do_not_stop_the_answer():
    """HTA gives them a duration of -1, and its own assertion fails on this trace."""
    name = "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
    assert "AssertionError" in golden()[name]["temporal"]
    row = temporal_breakdown(job(name), False).iloc[0]
    parts = row["idle_time(us)"] + row["compute_time(us)"] + row["non_compute_time(us)"]
    assert parts == pytest.approx(row["kernel_time(us)"], abs=1e-9)


def test_a_compiled_launch_is_not_device_work():
    """The host operator that launches a Triton kernel carries its stream; HTA takes it for a kernel."""
    assert temporal_of_hta("hta/triton_example")["compute_time(us)"].tolist() == [94.0]
    assert temporal_breakdown(job("hta/triton_example"), False)["compute_time(us)"].tolist() == [1.76]


@pytest.mark.parametrize("name", [*EXACT, "hta/amd_trace", "hta/critical_path/alexnet"])
def test_overlap_is_that_of_hta(name):
    frame = comm_comp_overlap(job(name), False)
    theirs = pd.DataFrame(golden()[name]["overlap"]).astype({"comp_comm_overlap_pctg": float})
    pd.testing.assert_frame_equal(frame, theirs[["rank", "comp_comm_overlap_pctg"]])


def test_overlap_counts_work_without_a_launch():
    name = "hta/trace_diff/test"
    theirs = [row["comp_comm_overlap_pctg"] for row in golden()[name]["overlap"]]
    assert comm_comp_overlap(linked_only(job(name)), False)["comp_comm_overlap_pctg"].tolist() == theirs
    assert comm_comp_overlap(job(name), False)["comp_comm_overlap_pctg"].tolist() != theirs


def test_overlap_without_rounding():
    """The number HTA itself gives with its rounding switched off."""
    name = "hta/nccl_parser_config"
    assert golden()[name]["overlap"][0]["comp_comm_overlap_pctg"] == 14.31
    assert comm_comp_overlap(job(name), False)["comp_comm_overlap_pctg"].tolist() == [14.76]


@pytest.mark.parametrize("name", [*EXACT, *UNLINKED, *ROUNDED, *WITH_SYNC_EVENTS])
def test_profiler_steps_are_those_of_hta(name):
    steps = profiler_steps(job(name))
    assert steps == golden()[name]["profiler_steps"]
    assert all(type(step) is int for step in steps)


def test_steps_are_those_of_the_host():
    """The device's side of a dropped step survives in HTA, which then lists the step."""
    name = "tracelens/mi300/resnet_act_checkpoint.json.gz"
    assert golden()[name]["profiler_steps"] == [15, 16, 17]
    assert profiler_steps(job(name)) == [15, 16]


def test_no_steps():
    assert profiler_steps(job("tracelens/mi210/gpu_only_trace")) == []


def two_ranks(tmp_path) -> Trace:
    """Rank 0 has no device work; rank 3 computes 10 us, communicates 10 us, 5 of them at once."""
    host = [slice_("aten::add", "cpu_op", 0, 5)]
    device = [kernel("gemm", 0, 10), kernel("ncclDevKernel_AllReduce", 5, 10, stream=20)]
    paths = {
        0: write(tmp_path / "host.json", host),
        3: write(tmp_path / "device.json", [*host, *device]),
    }
    return Trace.open(paths, cache=False)


def test_ranks_without_device_work(tmp_path):
    of = two_ranks(tmp_path)
    frame = temporal_breakdown(of, False)
    assert frame.to_numpy().tolist() == [[3, 0.0, 10.0, 5.0, 15.0, 0.0, 66.67, 33.33]]
    assert list(frame.columns) == COLUMNS
    overlap = comm_comp_overlap(of, False)
    assert overlap["rank"].tolist() == [0, 3]
    np.testing.assert_array_equal(overlap["comp_comm_overlap_pctg"], [np.nan, 50.0])


def test_without_device_events_they_warn():
    of = Trace.open(shared_trace("hta/cpu_only"))
    with pytest.warns(MissingDataWarning, match="ProfilerActivity"):
        frame = temporal_breakdown(of, False)
    assert frame.empty
    assert list(frame.columns) == COLUMNS
    with pytest.warns(MissingDataWarning, match="ProfilerActivity"):
        overlap = comm_comp_overlap(of, False)
    assert overlap["rank"].tolist() == of.ranks
    assert overlap["comp_comm_overlap_pctg"].isna().all()


def test_communication_without_compute_overlaps_nothing(tmp_path):
    of = opened(tmp_path, [kernel("ncclDevKernel_AllReduce", 5, 10)])
    assert comm_comp_overlap(of, False)["comp_comm_overlap_pctg"].tolist() == [0.0]


def test_plots_are_those_of_hta(monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(breakdowns, "show", shown.extend)
    of = two_ranks(tmp_path)
    temporal_breakdown(of, True)
    comm_comp_overlap(of, True)
    temporal, overlap = shown
    assert [bar.name for bar in temporal.data] == ["idle_time", "compute_time", "non_compute_time"]
    assert [bar.y.tolist()[0] for bar in temporal.data] == [0.0, 10 / 15, 5 / 15]
    assert temporal.layout.title.text == "Temporal breakdown across ranks"
    assert temporal.layout.yaxis.title.text == "Percentage"
    assert temporal.layout.legend.title.text == "Time Breakdown"
    assert overlap.data[0].x.tolist() == [0, 3]
    assert overlap.layout.title.text == "Computation-Communication Overlap"
    assert overlap.layout.yaxis.title.text == "Computation-Communication Overlap Percentage"
    for figure in shown:
        assert figure.layout.yaxis.tickformat == ".2%"
        assert figure.layout.xaxis.title.text == "Rank"


def test_the_last_step_begins_where_the_hosts_does():
    """HTA cuts at the step's last copy on the device, when the host has launched most of the step."""
    whole = examples.load("gpt2_fsdp_full_shard")

    def device_begins(item):
        step = np.array([name == "ProfilerStep#12" for name in item.names])[item.name]
        return item.start[step].max()

    def launched_before_it(item):
        return ~item.is_device | (item.start[item.launch] < device_begins(item))

    ours = temporal_breakdown(without_last_step(whole), False).iloc[0]
    assert ours[["compute_time(us)", "kernel_time(us)"]].tolist() == [18803.482, 24347.339]
    # HTA prints 27,314 and 34,814: it rounds every kernel to whole us.
    as_hta = temporal_breakdown(whole.keep(launched_before_it), False).iloc[0]
    assert as_hta[["compute_time(us)", "kernel_time(us)"]].tolist() == [27528.193, 34815.760]
    first = whole.rank(0)
    in_step = first.is_device & (first.iteration == 12)
    assert (in_step.sum(), (in_step & launched_before_it(first)).sum()) == (89, 73)
    hosts = first.iterations.set_index("iteration")["start_ns"][12]
    assert round((device_begins(first) - hosts) / 1e6, 1) == 1.3
