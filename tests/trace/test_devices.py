"""Devices other than CUDA's, and traces that other programs than Kineto wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets import analysis
from hta_widgets.trace import Scope, Trace
from hta_widgets.trace.accelerator import accelerator_in
from hta_widgets.trace.classify import EventClass, classify
from tests.support import shared_input
from tests.trace.helpers import kernel, rank_of, slice_, write


def opened(path: Any) -> Trace:
    return Trace.open(path, cache=False)


def split(trace: Trace) -> tuple[float, float, float]:
    """Computing, exposed communication and idle in µs over all steps."""
    steps = tuple(trace.rank(trace.ranks[0]).iterations["iteration"])
    row = analysis.temporal_breakdown(trace, Scope(iterations=steps)).iloc[0]
    return tuple(row[f"{name}_ns"] / 1e3 for name in ("compute", "exposed_communication", "idle"))


@pytest.mark.parametrize("case", ["b06_npu_trace_view_str", "h19_npu_direct_str"])
def test_ascend_inputs(case: str) -> None:
    trace = opened(shared_input(f"cases/{case}"))
    steps = trace.rank(0).iterations
    assert ((steps["end_ns"] - steps["start_ns"]) == 1_000_000).all() and len(steps) == 3
    assert split(trace) == (1800, 510, 690)
    assert "no_device_events" not in set(trace.health["check"])


def test_the_recording_of_ascend_agrees_with_its_own_sums() -> None:
    trace = opened(shared_input("recordings/ascend_trace_view"))
    rank = trace.rank(0)
    own = rank.name == rank.names.index("Computing")
    assert len(rank.iterations) == 1
    computing, communicating, _ = split(trace)
    assert communicating == 0
    assert computing == pytest.approx(rank.dur[own].sum() / 1e3, rel=1e-4)
    assert (rank.launch[rank.is_device] >= 0).mean() > 0.99


def ascend(queue: bool) -> list[dict[str, Any]]:
    """Two operators that launch a kernel and a collective, through a queue of the host or not."""

    def process(pid: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}

    def row(name: str, pid: int, tid: int, at: float, dur: float, **more: Any) -> dict[str, Any]:
        return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{at:.3f}", "dur": dur, **more}

    found = [process(1, "Python"), process(2, "CANN"), process(3, "Ascend Hardware"), process(4, "HCCL")]
    found.append(row("ProfilerStep#4", 1, 11, 0, 1000, cat="cpu_op", args={}))
    for number, at in enumerate((10, 30)):
        found.append(row("aten::mm", 1, 11, at, 15, cat="cpu_op", args={}))
        if queue:
            found.append(row("Enqueue", 1, 11, at + 2, 4, cat="enqueue", args={}))
        else:
            found.append(row("Node@launch", 2, 12, at + 3, 4, args={"connection_id": number}))
        found.append(row("MatMulV2", 3, 2, at + 100, 15, args={"Stream Id": 2, "connection_id": number}))
        for phase, pid, tid, moment in (("s", 1, 11, at), ("f", 3, 2, at + 100)):
            arrow = {"ph": phase, "name": "async_npu", "cat": "async_npu", "id": str(number), "bp": "e"}
            found.append({**arrow, "pid": pid, "tid": tid, "ts": f"{moment:.3f}"})
    found.append(row("hcom_allReduce__1_0_1", 4, 7, 200, 100, args={}))
    found.append(row("Notify_Wait", 4, 8, 210, 50, args={}))
    return [*found, row("EVENT_WAIT", 3, 5, 150, 300, args={"Stream Id": 5})]


@pytest.mark.parametrize("queue", [False, True])
def test_ascend_rows_have_classes_and_operators(tmp_path: Path, queue: bool) -> None:
    rank = rank_of(tmp_path, ascend(queue))
    classes = {rank.names[rank.name[row]]: EventClass(rank.event_class[row]).label for row in range(rank.n)}
    assert classes["MatMulV2"] == "compute" and classes["hcom_allReduce__1_0_1"] == "communication"
    assert (classes["EVENT_WAIT"], classes["Notify_Wait"]) == ("sync", "other")
    kernels = rank.name == rank.names.index("MatMulV2")
    callers = rank.parent[rank.launch[kernels]]
    assert (rank.launch[kernels] >= 0).all()
    assert [rank.names[code] for code in rank.name[callers]] == ["aten::mm"] * 2
    assert set(rank.stream[kernels]) == {2}


def test_autograds_own_export() -> None:
    trace = opened(shared_input("cases/e10_old_autograd_cuda"))
    rank = trace.rank(0)
    work = rank.dur[rank.is_device]
    assert (len(work), set(work.tolist())) == (30, {12_000})
    assert (rank.launch[rank.is_device] >= 0).all()
    real = opened(shared_input("recordings/autograd_profiler_torch1")).rank(0)
    total = real.dur[real.is_device].sum()
    conv = real.is_device & (real.name == real.names.index("aten::cudnn_convolution"))
    assert real.dur[conv].sum() > 0.99 * total


def test_autograds_operators_count_once(tmp_path: Path) -> None:
    def span(name: str, at: float, dur: float) -> dict[str, Any]:
        return {"name": name, "ph": "X", "ts": at, "dur": dur, "tid": 0, "pid": "CUDA functions", "args": {}}

    nested = [span("conv2d", 0, 100), span("cudnn_convolution", 1, 98), span("contiguous", 2, 5)]
    alone = [span("zeros", 200, 90), span("fill_", 210, 20)]
    rank = rank_of(tmp_path, [*nested, *alone])
    assert {rank.names[code] for code in rank.name[rank.is_device]} == {"cudnn_convolution", "zeros"}


@pytest.mark.parametrize(
    ("case", "launches"),  # of kernels, and of copies
    [("b01_xpu_no_stream", 12 + 3), ("i13_runtime_and_driver_share_corr", 12)],
)
def test_a_driver_call_inside_a_runtime_call_is_the_same_launch(case: str, launches: int) -> None:
    trace = opened(shared_input(f"cases/{case}"))
    assert (trace.rank(0).recording.launches, trace.rank(0).recording.unanswered) == (launches, 0)
    assert "lost_launches" not in set(trace.health["check"])
    assert not trace.rank(0).recording.lacks_device_work


def test_work_without_a_correlation_is_linked_by_its_operator_where_that_is_certain(tmp_path: Path) -> None:
    def comm(at: float, operator: int) -> dict[str, Any]:
        event = kernel("ncclDevKernel_Generic", at, 5, stream=140234567891234568)
        return {**event, "args": {**event["args"], "External id": operator}}

    def call(at: float, number: int, operator: int) -> dict[str, Any]:
        args = {"correlation": number, "External id": operator}
        return slice_("hipExtLaunchKernel", "cuda_runtime", at, 1, **args)

    certain = [call(1, 5, 1), comm(10, 1)]
    doubtful = [call(20, 6, 2), call(22, 7, 2), comm(30, 2)]
    rank = rank_of(tmp_path, [*certain, *doubtful])
    device = rank.is_device.nonzero()[0]
    assert rank.launch[device].tolist() == [0, -1]
    frame = opened(tmp_path / "trace.json").health.set_index("check")
    row = frame.loc["unlinked"]
    assert row["count"] == 1 and "without an id of their own" in row["detail"] and not row["remedy"]
    assert "orphans" not in frame.index
    assert set(rank.stream[device]) == {140234567891234568}


def test_rocm_input() -> None:
    trace = opened(shared_input("cases/c05_rocm_corr0_stream64"))
    rank = trace.rank(0)
    assert (rank.launch[rank.is_device] >= 0).all()
    assert not {"orphans", "lost_launches"} & set(trace.health["check"])


@pytest.mark.parametrize(
    ("category", "event_class"),
    [
        ("mlu_memcpy", EventClass.MEMORY_COPY),
        ("mlu_memset", EventClass.MEMORY_SET),
        ("privateuse1_kernel", EventClass.COMPUTE),
        ("mlu_runtime", EventClass.RUNTIME),
        ("hpu_op", EventClass.RUNTIME),  # Kineto: "HPU host side runtime event"
        ("some_memory", EventClass.OTHER),
    ],
)
def test_categories_of_other_vendors(category: str, event_class: EventClass) -> None:
    assert classify(category, "x")[0] == event_class


def test_cambricon_recording() -> None:
    rank = opened(shared_input("recordings/mlu370")).rank(0)
    copies = rank.event_class == EventClass.MEMORY_COPY
    assert (copies & rank.is_device).sum() == 20
    assert rank.accelerator.word == "MLU"


@pytest.mark.parametrize(
    ("signs", "record"),
    [
        (["cuda_runtime"], "ProfilerActivity.CUDA"),
        (["aten::mm", "hipLaunchKernel"], "ProfilerActivity.CUDA"),
        (["xpu_runtime"], "ProfilerActivity.XPU"),
        (["aclnnMm"], "torch_npu.profiler.ProfilerActivity.NPU"),
        (["cnrtMalloc"], "ProfilerActivity.MLU"),
        (["mtia_runtime"], "ProfilerActivity.MTIA"),
        (["privateuse1_runtime"], "ProfilerActivity.PrivateUse1"),
        (["aten::_mps_convolution"], "torch.mps.profiler"),
        (["aten::mm", "current", "zeros"], "XPU, MTIA, HPU"),
    ],
)
def test_the_remedy_names_the_device_that_is_there(signs: list[str], record: str) -> None:
    assert record in accelerator_in(signs).record


def test_lost_rows_are_no_reason_to_record_the_device(tmp_path: Path) -> None:
    calls = [slice_("cudaLaunchKernel", "cuda_runtime", 10 * at, 2, correlation=at) for at in range(1, 9)]
    row = opened(write(tmp_path / "a.json", calls)).health.set_index("check").loc["no_device_events"]
    assert row["count"] == 8 and "none of the work was recorded" in row["detail"]
    assert "torch.cuda.synchronize()" in row["remedy"] and "activities" not in row["remedy"]
