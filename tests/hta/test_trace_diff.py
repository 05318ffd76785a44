"""HTA's `TraceDiff`: small recordings by hand, HTA's own numbers on real ones."""

import functools

import numpy as np
import plotly.graph_objects as go
import pytest

from hta_widgets import examples
from hta_widgets.analysis import diff
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_, write


@functools.cache
def labeled(name, label=None):
    return LabeledTrace(label, trace_dir=str(shared_trace(name)))


def sizes(frame):
    return frame["counts_change_categories"].value_counts().to_dict()


def recording(folder, extra=(), rank=0):
    events = [
        slice_("ProfilerStep#4", "user_annotation", 0, 100),
        slice_("ProfilerStep#5", "user_annotation", 100, 100),
        slice_("aten::mm", "cpu_op", 10, 20.5),
        slice_("cudaLaunchKernel", "cuda_runtime", 95, 4, correlation=1),
        # Launched in step 4, run in step 5.
        kernel("void gemm<int>(int)", 110, 30.25, correlation=1, stream=0),
        # Its launch was not recorded: no step's.
        kernel("before", 20, 1, correlation=9),
        *extra,
    ]
    write(folder / f"{rank}.json", events, distributedInfo={"rank": rank})
    return str(folder)


@pytest.fixture
def pair(tmp_path):
    more = [
        slice_("aten::mm", "cpu_op", 40, 0.5),
        slice_("new", "cpu_op", 50, 1),
        # The same name in another category is the same operation.
        slice_("new", "python_function", 52, 1),
    ]
    return recording(tmp_path / "a"), recording(tmp_path / "b", more)


def test_comparison_of_two_folders(pair):
    frame = TraceDiff.compare_traces(*pair)
    assert list(frame.columns) == [
        "Control_counts", "Control_total_duration", "Test_counts", "Test_total_duration",
        "diff_counts", "diff_duration", "counts_change_categories",
    ]  # fmt: skip
    assert frame.index.name == "name"
    assert frame.index.tolist() == [
        "ProfilerStep#4", "aten::mm", "cudaLaunchKernel", "void gemm<int>(int)", "new"
    ]  # fmt: skip
    assert frame.loc["aten::mm"].tolist() == [1, 20.5, 2, 21.0, 1, 0.5, "+"]
    assert frame.loc["new"].tolist() == [0, 0.0, 2, 2.0, 2, 2.0, "+"]
    assert frame.loc["void gemm<int>(int)"].tolist() == [1, 30.25, 1, 30.25, 0, 0.0, "="]
    assert frame["Control_counts"].dtype == frame["diff_counts"].dtype == np.int64


def test_groups_of_operations(pair):
    assert TraceDiff.ops_diff(*pair) == {
        "added": ["new"],
        "deleted": [],
        "increased": ["aten::mm"],
        "decreased": [],
        "unchanged": ["ProfilerStep#4", "cudaLaunchKernel", "void gemm<int>(int)"],
    }
    backwards = TraceDiff.ops_diff(pair[1], pair[0])
    assert (backwards["deleted"], backwards["decreased"]) == (["new"], ["aten::mm"])


def test_devices_and_short_names(pair):
    names = {
        device: TraceDiff.compare_traces(*pair, device_type=device, use_short_name=True)
        for device in DeviceType
    }
    assert names[DeviceType.GPU].index.tolist() == ["gemm"]
    assert names[DeviceType.GPU].index.name == "short_name"
    assert len(names[DeviceType.ALL]) == len(names[DeviceType.GPU]) + len(names[DeviceType.CPU])


def test_kernels_of_one_short_name_are_counted_together(pair, tmp_path):
    more = [
        slice_("cudaLaunchKernel", "cuda_runtime", 60, 4, correlation=2),
        kernel("void gemm<float>(float)", 150, 9.75, correlation=2, stream=0),
    ]
    both = recording(tmp_path / "c", more)
    frame = TraceDiff.compare_traces(pair[0], both, device_type=DeviceType.GPU, use_short_name=True)
    assert frame.index.tolist() == ["gemm"]
    assert frame.loc["gemm"].tolist() == [1, 30.25, 2, 40.0, 1, 9.75, "+"]


def test_device_work_is_in_the_step_that_launched_it(pair):
    gpu = {"control_iteration": 5, "test_iteration": 4, "device_type": DeviceType.GPU}
    assert TraceDiff.ops_diff(*pair, **gpu)["added"] == ["void gemm<int>(int)"]


def test_the_same_recording_twice(pair):
    side = LabeledTrace("x", trace_dir=pair[0])
    frame = TraceDiff.compare_traces(side, side)
    assert list(frame.columns)[2] == "x_control_test_counts"
    assert (frame["diff_counts"] == 0).all() and (frame["diff_duration"] == 0).all()
    assert side.label == "x"


def test_a_loaded_trace_is_compared_whole_and_stays_loaded(pair):
    trace = Trace(trace_dir=pair[0])
    trace.load_traces()
    frame = trace.get_trace(0)
    side = LabeledTrace(t=trace)
    assert side.iterations() == [4, 5]
    assert len(side.extract_ops(iteration=5)) == 1
    assert trace.get_trace(0) is frame and trace.get_iterations() == [4]
    assert TraceDiff.compare_traces(trace, pair[1]).columns[0] == "Control_counts"


def test_extracted_events_of_several_ranks_carry_their_rank(tmp_path):
    for rank in (0, 1, 2):
        recording(tmp_path, [slice_(f"only{rank}", "cpu_op", 30, 1)], rank)
    side = LabeledTrace("all", trace_dir=str(tmp_path))
    side.t.decode_symbol_ids()
    ops = side.extract_ops([2, 0], [4, 5])
    assert list(ops.columns)[:3] == ["rank", "idx", "index"]
    names = side.s_tab[ops["name"]].to_numpy()
    assert ops.loc[names == "only2", "rank"].tolist() == [2]
    assert ops.loc[names == "only0", "rank"].tolist() == [0]
    assert set(ops["rank"]) == {0, 2}


def test_summary_of_extracted_events_agrees_with_the_comparison(pair):
    side = LabeledTrace("x", trace_dir=pair[1])
    summary = side.get_ops_summary(side.extract_ops())
    assert list(summary.columns) == [
        "cat", "name", "short_name", "counts", "total_duration", "cat_id", "name_id"
    ]  # fmt: skip
    by_name = summary.groupby("name")[["counts", "total_duration"]].sum()
    frame = TraceDiff.compare_traces(pair[0], pair[1])
    assert by_name["counts"].to_dict() == frame["Test_counts"].to_dict()
    assert by_name["total_duration"].to_dict() == frame["Test_total_duration"].to_dict()
    assert summary.set_index("name").loc["void gemm<int>(int)", "short_name"] == "gemm"


@pytest.mark.parametrize(
    "wrong",
    [
        {"control_rank": 7}, {"control_rank": "0"}, {"control_iteration": 99}, {"test_iteration": -1},
        {"control_rank": []}, {"test_rank": True},
    ],
)  # fmt: skip
def test_unknown_ranks_and_iterations(pair, wrong):
    with pytest.raises(ValueError, match=r"rank|iteration"):
        TraceDiff.compare_traces(*pair, **wrong)


def test_the_first_iteration_is_that_of_the_chosen_rank(tmp_path):
    for rank in (0, 1):
        step = slice_(f"ProfilerStep#{5 - rank}", "user_annotation", 0, 100)
        write(tmp_path / f"{rank}.json", [step], distributedInfo={"rank": rank})
    side = LabeledTrace(trace_dir=str(tmp_path))
    assert side.iterations() == [4, 5]
    assert side.scope(0).iterations == (5,) and side.scope([0, 1]).iterations == (4,)


def test_sides_that_are_no_recordings(pair, tmp_path):
    with pytest.raises(ValueError, match="int"):
        TraceDiff.compare_traces(3, pair[0])
    with pytest.raises(ValueError, match="folder"):
        LabeledTrace(trace_dir=str(tmp_path / "none"))
    with pytest.raises(ValueError, match="folder"):
        LabeledTrace()


def test_pictures(pair, monkeypatch):
    shown = []
    monkeypatch.setattr("hta_widgets.hta.trace_diff.show", shown.extend)
    frame = TraceDiff.compare_traces(*pair)
    TraceDiff.visualize_counts_diff(frame)
    TraceDiff.visualize_duration_diff(frame)
    TraceDiff.visualize_counts_diff(frame, show_image=False)
    counts, durations = shown
    assert isinstance(counts, go.Figure)
    assert [bars.name for bars in counts.data] == ["Control", "Test", "Difference"]
    assert counts.layout.title.text == "Ops Count Comparison" and counts.layout.barmode == "group"
    assert durations.layout.title.text == "Ops Duration Comparison"
    assert durations.layout.yaxis.title.text == "Total Duration (us)"
    assert "void gemm&lt;int>(int)" in counts.data[0].x
    with pytest.raises(ValueError, match="compare_traces"):
        TraceDiff.visualize_counts_diff(frame[["diff_counts"]])


def test_a_side_without_a_label_has_always_the_same(pair):
    sides = LabeledTrace(trace_dir=pair[0]), LabeledTrace(trace_dir=pair[1])
    assert [side.label for side in sides] == ["t", "t"]
    frame = TraceDiff.compare_traces(*sides)
    assert list(frame.columns)[:3:2] == ["t_counts", "t_control_test_counts"]


def test_one_step_is_no_sample():
    """What TraceDiff finds in one step of one rank, as HTA does, need not be there in all of them."""
    names = ("gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op")
    sides = [LabeledTrace(name, trace_dir=str(examples.path(name))) for name in names]
    frame = TraceDiff.compare_traces(*sides, device_type=DeviceType.GPU, use_short_name=True)
    assert frame.loc["ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "diff_duration"] == -291.737
    lines = diff({name: examples.load(name) for name in names}, "collective")
    lines = lines[lines["line"].str.startswith("reduce_scatter")].set_index("run")
    row = lines.loc[names[1]]
    assert round(row["change_ns"]) == -17_759 and row["low_ns"] < 0 < row["high_ns"]
    assert not row["significant"] and row["change"] == "same"


# -- HTA's numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "names", "changes", "counts", "duration"),
    [
        (DeviceType.ALL, 432, {"-": 203, "=": 162, "+": 67}, -914, 261378.0),
        (DeviceType.CPU, 231, None, -1842, 179039.0),
        (DeviceType.GPU, 201, None, 928, 82339.0),
    ],
)
def test_control_and_test(device, names, changes, counts, duration):
    frame = TraceDiff.compare_traces(
        labeled("hta/trace_diff/control"), labeled("hta/trace_diff/test", "u"), device_type=device
    )
    assert len(frame) == names
    assert changes is None or sizes(frame) == changes
    assert (frame["diff_counts"].sum(), frame["diff_duration"].sum()) == (counts, duration)


def test_control_and_test_by_short_name_and_group():
    sides = labeled("hta/trace_diff/control"), labeled("hta/trace_diff/test", "u")
    assert len(TraceDiff.compare_traces(*sides, use_short_name=True)) == 310
    assert {group: len(names) for group, names in TraceDiff.ops_diff(*sides).items()} == {
        "added": 32, "deleted": 138, "increased": 35, "decreased": 65, "unchanged": 162
    }  # fmt: skip


def test_cut_recordings():
    base, test = labeled("hta/trace_compare/base", "base"), labeled("hta/trace_compare/test", "test")
    assert base.iterations() == [1009, 1010]
    assert base.iteration_df["symbol"].tolist() == ["ProfilerStep#1009", "ProfilerStep#1010"]
    ops = base.extract_ops(1, 1010, DeviceType.CPU)
    assert len(ops) == 6 and len(base.extract_ops(1, 1010, DeviceType.GPU)) == 1
    summary = base.get_ops_summary(ops).set_index("name")
    assert (summary["counts"] == 1).all()
    assert summary["total_duration"].to_dict() == {
        "ProfilerStep#1010": 122149, "aten::as_strided": 0, "aten::empty": 0,
        "cudaEventQuery": 4, "cudaLaunchKernel": 4, "nccl:all_reduce": 67,
    }  # fmt: skip
    item = (base, test, 1, 1, 1010, 1010)
    assert sizes(TraceDiff.compare_traces(*item, device_type=DeviceType.CPU)) == {"=": 5, "+": 3, "-": 1}
    assert sizes(TraceDiff.compare_traces(*item, device_type=DeviceType.GPU)) == {"-": 1}
    assert TraceDiff.ops_diff(*item, device_type=DeviceType.CPU) == {
        "added": ["AddmmBackward0", "All2All_Pooled_Req", "CatBackward0"],
        "deleted": ["nccl:all_reduce"],
        "increased": [],
        "decreased": [],
        "unchanged": [
            "ProfilerStep#1010", "aten::as_strided", "aten::empty", "cudaEventQuery", "cudaLaunchKernel"
        ],
    }  # fmt: skip


def test_stream_zero_is_compared():
    side = labeled("hta/amd_trace", "amd")
    assert len(TraceDiff.compare_traces(side, side, device_type=DeviceType.GPU)) > 0


def test_recordings_without_profiler_steps_are_compared():
    side = labeled("tracelens/inference/vllm_decode_full", "vllm")
    assert len(side.iterations()) >= 1
    assert len(TraceDiff.compare_traces(side, side)) > 0
