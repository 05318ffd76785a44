"""The table of operators: by hand, and against plain JSON."""

from __future__ import annotations

import gzip
import json
import math
from bisect import bisect_right
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, Trace
from hta_widgets.analysis import formula_coverage, kernel_breakdown, op_kernels, operators, register_formula
from hta_widgets.analysis.operators.table import sentence
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import Event, event, job, kernel, launch
from tests.support import shared_trace

MODELS = ["h100/gaunernst_bert*", "mi300/gaunernst_bert*", "h100/Qwen*", "mi300/Qwen*"]


def recorded(pattern: str) -> Path:
    folder, name = pattern.split("/")
    (path,) = shared_trace(f"tracelens/{folder}").glob(name)
    return path


def op(name: str, start: int, dur: int, tid: int = 1, **args: Any) -> Event:
    return event("cpu_op", name, start, dur, tid, **args)


def shaped(name: str, start: int, dur: int, dims: Any, types: Any, values: Any = None) -> Event:
    arguments = {"Input Dims": dims, "Input type": types}
    return op(name, start, dur, **arguments, **({"Concrete Inputs": values} if values is not None else {}))


MM = ([[4, 8], [8, 2]], ["float", "float"])
EVENTS = [
    op("aten::matmul", 0, 100),
    shaped("aten::mm", 10, 60, *MM),
    launch(20, 1, dur=5),
    event("cuda_driver", "cuLaunchKernel", 21, 3, correlation=1),  # inside the call of the runtime
    launch(40, 2, dur=5),
    shaped("aten::copy_", 80, 15, [[4, 2], [4, 2], []], ["c10::Half", "float", "Scalar"]),
    event("cuda_runtime", "cudaMemcpyAsync", 82, 4, correlation=3),
    launch(150, 4),  # in no operator
    # On another thread at the same time: its own callers only.
    op("aten::add", 15, 70, tid=2),
    event("cuda_runtime", "cudaLaunchKernel", 30, 9, 2, correlation=5),
    kernel("gemm", 200, 1000, correlation=1),
    kernel("splitk", 1200, 200, correlation=2),
    kernel("Memcpy HtoD", 1400, 30, cat="gpu_memcpy", correlation=3),
    kernel("free", 1430, 7, correlation=4),
    kernel("add", 1500, 50, correlation=5),
    kernel("nobody", 1600, 3),  # without a launch
]


def test_each_nanosecond_belongs_to_the_innermost_operator(tmp_path: Path) -> None:
    frame = operators(job(tmp_path, EVENTS)).set_index("name")
    numbers = ["calls", "host_self_ns", "host_runtime_ns", "host_total_ns", "kernels", "device_self_ns",
               "device_total_ns"]  # fmt: skip
    assert {name: row.tolist() for name, row in frame[numbers].iterrows()} == {
        "aten::mm": [1, 60, 10, 60, 2, 1200, 1200],
        "aten::add": [1, 70, 9, 70, 1, 50, 50],
        "aten::copy_": [1, 15, 4, 15, 1, 30, 30],
        "(no operator)": [0, 0, 0, 0, 2, 10, 10],
        "aten::matmul": [1, 25, 0, 100, 0, 0, 1230],
    }
    assert frame["parent"].to_dict() == {
        "aten::mm": "aten::matmul", "aten::copy_": "aten::matmul", "aten::add": "", "(no operator)": "",
        "aten::matmul": "",
    }  # fmt: skip
    assert frame["longest_kernel"].to_dict() == {
        "aten::mm": "gemm", "aten::copy_": "Memcpy HtoD", "aten::add": "add", "(no operator)": "free",
        "aten::matmul": "",
    }  # fmt: skip
    assert frame.loc["aten::mm", "device_self_pct"] == 100 * 1200 / 1290
    assert frame.loc["aten::add", "mean_device_ns"] == 50
    assert np.isnan(frame.loc["(no operator)", "mean_device_ns"])
    assert frame.loc["aten::mm", "category"] == "matmul" and frame.loc["(no operator)", "category"] == ""


def test_a_formula_describes_a_call_with_all_in_it(tmp_path: Path) -> None:
    trace = job(tmp_path, EVENTS)
    frame = operators(trace).set_index("name")
    figures = ["flops", "bytes", "tflops_s", "gb_s", "formula_pct"]
    mm = [2 * 4 * 8 * 2, 4 * (32 + 16 + 8), 128 / 1200 / 1000, 224 / 1200, 100.0]
    copy = [0.0, 8 * (2 + 4), 0.0, 48 / 30, 100.0]
    assert frame.loc["aten::mm", figures].tolist() == pytest.approx(mm)
    assert frame.loc["aten::copy_", figures].tolist() == pytest.approx(copy)
    # Without a formula of its own, a call costs what is in it.
    outer = [128.0, 272.0, 128 / 1230 / 1000, 272 / 1230, 100.0]
    assert frame.loc["aten::matmul", figures].tolist() == pytest.approx(outer)
    assert frame.loc["aten::matmul", "flops_per_byte"] == pytest.approx(128 / 272)
    # No shapes, no figures.
    assert frame.loc["aten::add", ["flops", "bytes", "tflops_s", "gb_s"]].isna().all()
    assert frame.loc["aten::add", "formula_pct"] == 0.0
    with register_formula("aten::matmul", flops=lambda inputs: 1000):
        changed = operators(trace).set_index("name")
        assert changed.loc["aten::matmul", "flops"] == 1000 and np.isnan(changed.loc["aten::matmul", "bytes"])
        assert changed.loc["aten::mm", "flops"] == 128
        assert operators(trace, by="category").set_index("name").loc["matmul", "flops"] == 1000
    assert operators(trace).equals(frame.reset_index()[list(operators(trace).columns)])
    with pytest.raises(ValueError, match="flops, bytes"):
        register_formula("my::op")


GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_k_off"
SQUARE = ([[4096, 4096], [4096, 4096]], ["c10::BFloat16", "c10::BFloat16"])


def bounds(folder: Path, device: str, gemm: str = GEMM) -> dict[str, tuple[Any, Any]]:
    events = [
        shaped("aten::mm", 0, 50, *SQUARE), launch(5, 1),
        shaped("aten::bmm", 100, 50, [[1, 64, 64], [1, 64, 4096]], SQUARE[1]), launch(105, 2),
        shaped("aten::add", 200, 50, [[1 << 20], [1 << 20], []], ["float", "float", "Scalar"]),
        launch(205, 3),
        op("my::op", 300, 50), launch(305, 4),
        kernel(gemm, 1000, 277_822, correlation=1), kernel(gemm, 300_000, 1000, correlation=2),
        kernel("add", 400_000, 7508, correlation=3), kernel("mine", 500_000, 10, correlation=4),
    ]  # fmt: skip
    path = job(folder, events).rank(0).path
    head = f'"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "{device}"}}]'
    Path(path).write_text(Path(path).read_text().replace('"schemaVersion": 1', head))
    frame = operators(Trace.open({0: path}, cache=False)).set_index("name")
    limits = frame[["bound", "efficiency_pct"]].astype(object)
    return {name: (row.iloc[0], row.iloc[1]) for name, row in limits.where(limits.notna(), None).iterrows()}


def test_the_peak_is_that_of_the_unit_which_the_kernel_uses(tmp_path: Path) -> None:
    found = bounds(tmp_path, "NVIDIA H100 80GB HBM3")
    assert found["aten::mm"] == ("compute", pytest.approx(100 * 2 * 4096**3 / 989.4e3 / 277_822))
    moved = 2 * (64 * 64 + 64 * 4096 + 64 * 4096)
    assert found["aten::bmm"] == ("memory", pytest.approx(100 * moved / 3352 / 1000))
    assert found["aten::add"] == ("memory", pytest.approx(100 * 3 * 4 * 2**20 / 3352 / 7508))
    assert found["my::op"] == (None, None)
    # Nothing is guessed about a unit that no name tells, nor about a device without known peaks.
    assert bounds(tmp_path, "NVIDIA H100 80GB HBM3", "Kernel3")["aten::mm"] == (None, None)
    assert {*bounds(tmp_path, "Somebody's device").values()} == {(None, None)}


def test_recursion_counts_once(tmp_path: Path) -> None:
    events = [
        op("outer", 0, 100), op("inner", 10, 80), op("outer", 20, 30), launch(25, 1), launch(60, 2),
        kernel("k", 200, 10, correlation=1), kernel("k", 210, 5, correlation=2),
    ]  # fmt: skip
    trace = job(tmp_path, events)
    frame = operators(trace).set_index("name")
    columns = ["calls", "host_self_ns", "host_total_ns", "device_self_ns", "device_total_ns"]
    assert frame.loc["outer", columns].tolist() == [2, 50, 100, 10, 15]
    assert frame.loc["inner", columns].tolist() == [1, 50, 80, 5, 15]
    # The outer call starts before this window, so the inner one is the outermost that belongs to it.
    within = operators(trace, Scope(window_ns=(5, 10**6))).set_index("name")
    assert within.loc["outer", ["calls", "host_self_ns", "host_total_ns"]].tolist() == [1, 30, 30]


SAME_SHAPES: list[tuple[Any, Any]] = [
    ([[5185, 64], [64, 3], [], []], ["c10::BFloat16", "c10::BFloat16", "Scalar", "double"]),
    ("[[5185, 64], [64, 3], [], []]", '["BFloat16", "BFloat16", "Scalar", "double"]'),
    (["[5185,64]", "[64,3]", "[]", "[]"], ["c10::BFloat16", "c10::BFloat16", "Scalar", "double"]),
]


def test_shapes_are_the_same_however_they_were_written(tmp_path: Path) -> None:
    events = [shaped("aten::mm", 100 * at, 50, *inputs) for at, inputs in enumerate(SAME_SHAPES)]
    events += [
        shaped("aten::mm", 400, 50, [[5185, 64], [64, 4]], ["c10::BFloat16", "c10::BFloat16"]),
        shaped("aten::cat", 500, 50, [[[2, 3], [4]], []], ["TensorList", "Scalar"]),
        op("aten::mm", 600, 50),
    ]
    frame = operators(job(tmp_path, events), by="shapes")
    assert frame[["name", "input_shapes", "input_types", "calls"]].to_numpy().tolist() == [
        ["aten::mm", "(5185, 64), (64, 3), (), ()", "bfloat16, bfloat16, Scalar, float64", 3],
        ["aten::mm", "(5185, 64), (64, 4)", "bfloat16, bfloat16", 1],
        ["aten::cat", "[(2, 3), (4,)], ()", "TensorList, Scalar", 1],
        ["aten::mm", "", "", 1],
    ]
    assert frame["flops"].tolist()[:2] == [3 * 2 * 5185 * 64 * 3, 2 * 5185 * 64 * 4]


def test_backward_work_belongs_to_the_module_of_its_forward_operator(tmp_path: Path) -> None:
    python = "python_function"
    events = [
        event(python, "nn.Module: Net_0", 0, 100), event(python, "nn.Module: Linear_0", 10, 50),
        shaped("aten::mm", 20, 20, *MM) | {"args": {
            "Input Dims": MM[0], "Input type": MM[1], "Sequence number": 7, "Fwd thread id": 0}},
        launch(25, 1), op("aten::add", 70, 10), launch(72, 2),
        op("autograd::engine::evaluate_function: MmBackward0", 200, 40, 2,
           **{"Sequence number": 7, "Fwd thread id": 1}),
        op("aten::mm", 210, 20, 2), event("cuda_runtime", "cudaLaunchKernel", 212, 2, 2, correlation=3),
        op("aten::mul", 300, 20, 2), event("cuda_runtime", "cudaLaunchKernel", 302, 2, 2, correlation=4),
        *(kernel("k", 1000 + 100 * number, 10**number, correlation=number) for number in (1, 2, 3, 4)),
    ]  # fmt: skip
    frame = operators(job(tmp_path, events), by="module").set_index("name")
    columns = ["calls", "host_self_ns", "host_total_ns", "device_self_ns", "device_total_ns", "forward_ns",
               "backward_ns"]  # fmt: skip
    assert frame.loc["Linear_0", columns].tolist() == [1, 50, 50, 1010, 1010, 10, 1000]
    assert frame.loc["Net_0", columns].tolist() == [1, 50, 100, 100, 1110, 100, 0]
    assert frame.loc["(no module)", "device_self_ns"] == 10000
    assert frame.loc[["Linear_0", "Net_0"], "flops"].tolist() == [128, 128]
    assert frame.loc["Linear_0", "parent"] == "Net_0"


def test_memory_belongs_to_the_operator_that_was_open(tmp_path: Path) -> None:
    def memory(at: int, change: int, kind: int, tid: int = 1) -> Event:
        item = {"Bytes": change, "Addr": at, "Device Type": kind, "Device Id": 0 if kind else -1}
        return {**event("cpu_instant_event", "[memory]", at, 0, tid, **item), "ph": "i", "s": "t"}

    events = [op("outer", 0, 100), op("inner", 20, 30), memory(10, 512, 1), memory(30, 1024, 1),
              memory(40, -8, 0), memory(60, -256, 1), memory(150, 7, 0),
              memory(30, 99, 1, tid=2)]  # fmt: skip
    trace = job(tmp_path, events)
    columns = ["device_memory_self_bytes", "device_memory_total_bytes", "host_memory_self_bytes",
               "host_memory_total_bytes"]  # fmt: skip
    frame = operators(trace).set_index("name")[columns]
    assert frame.loc["outer"].tolist() == [256, 1280, 0, -8]
    assert frame.loc["inner"].tolist() == [1024, 1024, -8, -8]
    assert frame.loc["(no operator)"].tolist() == [99, 99, 7, 7]
    early = operators(trace, Scope(window_ns=(0, 35))).set_index("name")[columns]
    assert early.loc["outer"].tolist() == [512, 1536, 0, 0]
    other = tmp_path / "without"
    other.mkdir()
    assert operators(job(other, events[:2]))[columns].isna().all(axis=None)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    trace = job(tmp_path, [op("aten::add", 0, 10)])
    assert operators(trace)["host_self_ns"].tolist() == [10]
    assert sentence(operators(trace)) == (
        "The host spends most time in aten::add itself: 10 ns. No operator launched device work."
    )
    for by, flag in (("shapes", "record_shapes=True"), ("module", "with_stack=True")):
        with pytest.raises(MissingDataError) as missing:
            operators(trace, by=by)  # type: ignore[arg-type]
        assert flag in missing.value.remedy
    alone = tmp_path / "device"
    alone.mkdir()
    with pytest.raises(MissingDataError, match="operators"):
        operators(job(alone, [kernel("k", 0, 10)]))
    with pytest.raises(MissingDataError, match="device events"):
        formula_coverage(trace)
    with pytest.raises(ValueError, match="call_path"):
        operators(trace, by="stack")  # type: ignore[arg-type]


def test_ranks_are_never_added(tmp_path: Path) -> None:
    trace = job(tmp_path, EVENTS, [*EVENTS[:3], kernel("gemm", 200, 10, correlation=1)])
    frame = operators(trace)
    assert frame.loc[frame["name"] == "aten::mm", ["rank", "device_self_ns"]].to_numpy().tolist() == [
        [0, 1200], [1, 10]]  # fmt: skip
    assert frame.groupby("rank")["device_self_pct"].sum().tolist() == pytest.approx([100, 100])
    assert set(operators(trace, Scope(ranks=(1,)))["rank"]) == {1}


def test_coverage_adds_up_and_says_why_not(tmp_path: Path) -> None:
    events = [
        *EVENTS, op("my::op", 300, 20), launch(305, 6), kernel("mine", 2000, 11, correlation=6),
        op("c10d::allreduce_", 400, 20), launch(405, 7),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3000, 13, correlation=7),
    ]  # fmt: skip
    trace = job(tmp_path, events)
    frame = formula_coverage(trace)
    assert frame[["state", "name", "device_ns"]].to_numpy().tolist() == [
        ["formula", "aten::mm", 1200],
        ["inputs not recorded", "aten::add", 50],
        ["formula", "aten::copy_", 30],
        ["communication", "c10d::allreduce_", 13],
        ["no formula", "my::op", 11],
        ["no operator", "(no operator)", 10],
    ]
    assert frame["device_pct"].sum() == pytest.approx(100)
    with register_formula("my::op", bytes=lambda inputs: 5):
        assert formula_coverage(trace).set_index("name").loc["my::op", "state"] == "formula"


def times(number: Any) -> int:
    return int(Decimal(str(number)) * 1000)


def by_hand(path: Path) -> tuple[dict[str, int], dict[str, int], dict[str, list[Any]], int]:
    """Own and total device time by operator's name, and its calls, from the JSON with plain loops."""
    with gzip.open(path) as file:
        events = [
            item for item in json.load(file, parse_float=Decimal)["traceEvents"] if item.get("ph") == "X"
        ]
    threads: dict[Any, list[Any]] = defaultdict(list)
    calls, work = {}, []
    for item in events:
        first = times(item["ts"])
        span = (first, first + times(item["dur"]))
        if item["cat"] == "cpu_op":
            threads[item["pid"], item["tid"]].append((*span, item))
        elif item["cat"] in ("cuda_runtime", "cuda_driver"):
            calls.setdefault(item["args"].get("correlation"), (first, (item["pid"], item["tid"])))
        elif item["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            work.append((item["args"].get("correlation"), span[1] - span[0]))
    own, total, outside = defaultdict(int), defaultdict(int), 0
    found: dict[str, list[Any]] = defaultdict(list)
    spent: dict[int, int] = defaultdict(int)
    for spans in threads.values():
        spans.sort(key=lambda entry: (entry[0], -entry[1]))
    for correlation, dur in work:
        at, thread = calls.get(correlation, (0, None))
        spans = threads.get(thread, [])
        around = [
            item
            for first, end, item in spans[: bisect_right(spans, at, key=lambda entry: entry[0])]
            if at < end
        ]
        if not around:
            outside += dur
            continue
        own[around[-1]["name"]] += dur
        for name in {item["name"] for item in around}:
            total[name] += dur
        for item in around:
            spent[id(item)] += dur
    for spans in threads.values():
        for _, _, item in spans:
            found[item["name"]].append((item, spent[id(item)]))
    return own, total, found, outside


@pytest.mark.parametrize("pattern", MODELS)
def test_device_time_and_flops_are_those_of_the_json(pattern: str) -> None:
    path = recorded(pattern)
    own, total, found, outside = by_hand(path)
    frame = operators(Trace.open(path)).set_index("name")
    launching = frame[(frame["kernels"] > 0) & (frame.index != "(no operator)")]
    assert launching["device_self_ns"].to_dict() == own
    assert {name: value for name, value in frame["device_total_ns"].items() if name in total} == total
    assert frame["device_self_ns"].get("(no operator)", 0) == outside
    assert {name: len(calls) for name, calls in found.items()} == {
        name: count for name, count in frame["calls"].items() if count
    }
    products = {"aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1)}
    checked = 0
    for name, (left, right) in products.items():
        operations = time = 0
        for item, spent in found.get(name, []):
            dims = item["args"]["Input Dims"]
            operations += 2 * math.prod(dims[left]) * dims[right][-1]
            time += spent
        if operations:
            assert frame.loc[name, "flops"] == operations
            assert frame.loc[name, "tflops_s"] == pytest.approx(operations / time / 1000, rel=1e-3)
            checked += 1
    assert checked


@pytest.mark.parametrize("pattern", MODELS)
@pytest.mark.parametrize("by", ["name", "shapes", "category", "call_path", "module"])
def test_parts_add_up_in_every_scope(pattern: str, by: Any) -> None:
    trace = Trace.open(recorded(pattern))
    first, last = trace.extent_ns
    middle = (first + last) // 2
    parts = []
    for scope in (Scope(window_ns=(first, middle)), Scope(window_ns=(middle, last + 1)), Scope()):
        frame = operators(trace, scope, by)
        assert frame["device_self_ns"].sum() == kernel_breakdown(trace, scope)["sum_ns"].sum()
        phases = ["forward_ns", "backward_ns", "optimizer_ns", "other_ns"]
        assert (frame[phases].sum(axis=1) == frame["device_self_ns"]).all()
        assert (frame["device_total_ns"] >= frame["device_self_ns"]).all()
        parts.append(frame.groupby("name")[["calls", "host_self_ns", "device_self_ns"]].sum())
    early, late, whole = parts
    assert early.add(late, fill_value=0).astype("int64").equals(whole)


def test_overloads_that_call_each_other_are_one_call(tmp_path: Path) -> None:
    inner = [op("aten::sum", 0, 100), op("aten::sum", 10, 80), launch(20, 1), op("aten::fill_", 60, 20)]
    work = [kernel("k", 200, 7, correlation=1)]
    frame = operators(job(tmp_path, [*inner, *work])).set_index("name")
    columns = ["calls", "host_self_ns", "host_total_ns", "device_self_ns"]
    assert frame.loc["aten::sum", columns].tolist() == [1, 80, 100, 7]
    # One that does more than that is a call of its own.
    frame = operators(job(tmp_path, [*inner, op("aten::empty", 92, 5), *work])).set_index("name")
    assert frame.loc["aten::sum", columns].tolist() == [2, 75, 100, 7]
    frame = operators(job(tmp_path, [*inner, launch(95, 9), *work])).set_index("name")
    assert frame.loc["aten::sum", columns].tolist() == [2, 80, 100, 7]


@pytest.mark.parametrize("pattern", MODELS)
def test_sequences_of_kernels_have_the_time_of_their_operators(pattern: str) -> None:
    trace = Trace.open(recorded(pattern))
    frame = operators(trace).set_index("name")
    frame = frame[(frame["kernels"] > 0) & (frame.index != "(no operator)")]
    assert op_kernels(trace).groupby("op")["device_ns"].sum().to_dict() == frame["device_self_ns"].to_dict()


def test_generated_kernels_touch_the_tensors_that_they_are_passed() -> None:
    """By hand: sizes of tensors, 2 bytes each; block sizes times the grid are the elements once more."""
    path = shared_trace("tracelens/torch_compile_triton/trace.json.gz")
    rows, wide = 8 * 4096, 8 * 4096 * 8192
    hidden = rows * 2048
    expected = {
        "triton_red_fused_add_mean_mul_pow_rsqrt_0": (2 * hidden + 2048, rows),
        "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1": (3 * hidden + 2048, rows),
        "triton_poi_fused__unsafe_view_mul_silu_2": (2 * wide, wide),
        "triton_poi_fused__unsafe_view_add_3": (3 * hidden, hidden),
    }
    frame = operators(Trace.open(path)).set_index("name")
    recorded_calls = [
        item["args"]
        for item in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        if "kernel_kwargs" in item.get("args", {}) or "grid" in item.get("args", {})
    ]
    grids = {args["External id"]: args["grid"][0] for args in recorded_calls if "grid" in args}
    for args in recorded_calls:
        if "kernel_kwargs" not in args:
            continue
        elements, outermost = expected.pop(args["kernel_name"])
        assert frame.loc[args["kernel_name"], "bytes"] == 2 * elements
        assert frame.loc[args["kernel_name"], "bounded"] and math.isnan(
            frame.loc[args["kernel_name"], "flops"]
        )
        block = dict(part.split("=") for part in args["kernel_kwargs"].split(","))
        assert int(block["XBLOCK"]) * grids[args["External id"]] == outermost
    assert not expected


def test_categories_are_parts_of_the_whole() -> None:
    trace = Trace.open(recorded(MODELS[2]))
    by_name = operators(trace)
    grouped = by_name[by_name["category"] != ""].groupby("category")["device_self_ns"].sum()
    by_category = operators(trace, by="category").set_index("name")["device_self_ns"]
    pd.testing.assert_series_equal(
        grouped, by_category.drop("(no operator)"), check_names=False, check_like=True
    )


def test_operators_have_a_category_and_modules_none() -> None:
    trace = Trace.open(recorded(MODELS[2]))
    assert set(operators(trace, by="module")["category"]) == {""}
    by_category = operators(trace, by="category").set_index("name")["category"].to_dict()
    assert by_category == {name: "" if name == "(no operator)" else name for name in by_category}
