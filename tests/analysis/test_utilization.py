"""MFU, HFU and MBU by hand, and against the plain JSON of recordings."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import Scope, Trace, analysis, examples
from hta_widgets.analysis import Peaks, step_times, utilization
from hta_widgets.analysis.operators.utilization import sentence
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import Event, event, kernel, launch, write
from tests.support import shared_input, shared_trace

TF32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>(T1::Params)"
US = 1000
STEP = 10_000 * US
FLOPS = 2 * 1024**3
SQUARE = ([1024, 1024], [1024, 1024])
A100 = "NVIDIA A100-SXM4-40GB"


def product(at: int, correlation: int, tid: int = 1, *, shapes: Any = SQUARE, **args: Any) -> list[Event]:
    """aten::mm at this us, with a kernel of 100 us."""
    start = at * US
    if shapes:
        args |= {"Input Dims": list(shapes), "Input type": ["float"] * len(shapes)}
    return [
        event("cpu_op", "aten::mm", start, 50 * US, tid, **args),
        launch(start + 10 * US, correlation, tid, dur=5 * US),
        kernel(TF32, start + 60 * US, 100 * US, correlation=correlation),
    ]


def node(at: int, dur: int, *inside: list[Event]) -> list[Event]:
    """A backward function on the thread of autograd."""
    name = "autograd::engine::evaluate_function: MmBackward0"
    numbers = {"Sequence number": 7, "Fwd thread id": 1}
    return [
        event("cpu_op", name, at * US, dur * US, 2, **numbers),
        *(item for part in inside for item in part),
    ]


def opened(folder: Path, *parts: list[Event], device: str = A100, steps: int = 1) -> Trace:
    marks = [event("user_annotation", f"ProfilerStep#{at + 1}", at * STEP, STEP) for at in range(steps)]
    if steps == 1:  # a call up to its end: what follows the last one is the profiler's
        marks.append(event("cuda_runtime", "cudaDeviceSynchronize", STEP - US, US))
    path = write(folder / "0.json", [*marks, *(item for part in parts for item in part)])
    head = f'"schemaVersion": 1, "deviceProperties": {json.dumps([{"id": 0, "name": device}])}'
    path.write_text(path.read_text().replace('"schemaVersion": 1', head))
    return Trace.open({0: path}, cache=False)


def test_a_step_is_compared_with_the_peaks_of_its_unit_and_of_memory(tmp_path: Path) -> None:
    """Two products of 2 * 1024**3 operations and 12 MiB in 10 ms; an A100 does 156e12 and 1555e9 a second."""
    frame = utilization(opened(tmp_path, product(100, 1), product(500, 2)))
    assert frame["iteration"].isna().tolist() == [True, False]
    for row in frame.to_dict("records"):
        assert (row["steps"], row["step_ns"], row["model_flops"]) == (1, STEP, 2 * FLOPS)
        assert (row["hardware_flops"], row["moved_bytes"]) == (2 * FLOPS, 2 * 12 * 2**20)
        assert row["mfu_pct"] == row["hfu_pct"] == pytest.approx(100 * 2 * FLOPS / 10e-3 / 156e12)
        assert row["mbu_pct"] == pytest.approx(100 * 2 * 12 * 2**20 / 10e-3 / 1555e9)
        assert (row["unit"], row["device"], row["peak_tflops_s"]) == ("tensor_tf32", "A100 40GB", 156)
        assert row["mfu_reading"] == row["mbu_reading"] == "exact" and row["formula_pct"] == 100
    assert sentence(frame) == (
        "The job reaches 0.275 % MFU on A100 40GB. It reaches 0.275 % HFU and 0.162 % MBU. "
        "A step takes 10.0 ms, and 100 % of its device work, communication aside, has a formula."
    )


def test_repeats_that_are_guessed_are_not_called_steps(tmp_path: Path) -> None:
    frame = utilization(opened(tmp_path, product(100, 1), product(500, 2)))
    assert set(frame["known"]) == {"announced"}
    assert "The selected work takes 10.0 ms, " in sentence(frame.assign(known="guessed"))
    guessed = utilization(Trace.open(shared_input("recordings/resnet50_t4_gpu")))
    assert set(guessed["known"]) == {"guessed"}
    assert "A repeat of the same work takes 358 µs, " in sentence(guessed)


def test_the_first_row_is_all_steps_together(tmp_path: Path) -> None:
    trace = opened(tmp_path, product(100, 1), product(10_100, 2), product(10_500, 3), steps=2)
    frame = utilization(trace)
    assert frame["hardware_flops"].tolist() == [3 * FLOPS, FLOPS, 2 * FLOPS]
    assert frame["step_ns"].tolist() == [2 * STEP, STEP, STEP] and frame["steps"].tolist() == [2, 1, 1]
    assert utilization(trace, Scope(iterations=(2,)))["hardware_flops"].tolist() == [2 * FLOPS] * 2
    assert utilization(trace, Scope(window_ns=(0, STEP + 1)))["hardware_flops"].tolist() == [FLOPS] * 2


def test_steps_that_tell_little_are_left_out_where_there_are_others() -> None:
    """The last of three steps is cut where the recording stops: a step takes 51.5 ms, as the verdict says."""
    trace = Trace.open(shared_input("recordings/loader_t4_amp"))
    frame, steps = utilization(trace), step_times(trace)
    assert steps["open"].tolist() == [False, False, True]
    ended = steps[~steps["open"]]
    assert frame["iteration"].dropna().tolist() == ended["iteration"].tolist() and not frame["open"].any()
    assert frame["step_ns"].iloc[0] == ended["dur_ns"].sum()
    assert "A step takes 51.5 ms, " in sentence(frame)
    cut = utilization(trace, Scope(iterations=(4,)))
    assert cut["open"].all() and "The recorded part of a step takes 12.2 ms, " in sentence(cut)


def test_a_step_that_holds_start_up_is_left_out_where_there_are_others() -> None:
    trace = Trace.open(shared_input("recordings/resnet50_t4_gpu"))
    steps = step_times(trace)
    assert steps["start_up"].any() and not steps["start_up"].all()
    assert not utilization(trace)["iteration"].isin(steps.loc[steps["start_up"], "iteration"]).any()


def test_a_checkpoint_counts_for_the_hardware_alone(tmp_path: Path) -> None:
    """Two products forward, the same again in the backward pass (numbered), and two of its own."""
    numbers = {"Sequence number": 3, "Fwd thread id": 0}
    again = [product(1100, 3, 2, **numbers), product(1200, 4, 2, **numbers)]
    own = [product(1300, 5, 2), product(1500, 6, 2)]
    first = [product(100, 1, **numbers), product(200, 2, **numbers)]
    row = utilization(opened(tmp_path, *first, node(1000, 900, *again, *own))).iloc[0]
    assert (row["hardware_flops"], row["model_flops"]) == (6 * FLOPS, 4 * FLOPS)
    assert row["hfu_pct"] == pytest.approx(row["mfu_pct"] * 6 / 4)


def test_a_differentiable_backward_pass_repeats_nothing(tmp_path: Path) -> None:
    """With create_graph=True autograd numbers the products of the backward pass, which have other shapes."""
    numbers = {"Sequence number": 3, "Fwd thread id": 0}
    shapes = ([1024, 512], [512, 1024])
    other = [product(1100 + at, 3 + at, 2, shapes=shapes, **numbers) for at in (0, 100)]
    first = [product(100, 1, **numbers), product(200, 2, **numbers)]
    row = utilization(opened(tmp_path, *first, node(1000, 900, *other))).iloc[0]
    assert row["hardware_flops"] == row["model_flops"] == 2 * FLOPS + 2 * (FLOPS // 2)


def test_without_sequence_numbers_only_the_hardware_is_known(tmp_path: Path) -> None:
    backward = node(1000, 900, product(1100, 2, 2))
    del backward[0]["args"]["Sequence number"]
    row = utilization(opened(tmp_path, product(100, 1), backward)).iloc[0]
    assert "sequence numbers" in row["mfu_reason"] and math.isnan(row["mfu_pct"])
    assert row["hardware_flops"] == 2 * FLOPS and row["hfu_reason"] == ""


def test_fused_attention_computes_its_scores_once_more(tmp_path: Path) -> None:
    """Backward of 2 x 8 heads, 128 queries and keys of 64: five products, of which one is repeated."""
    tensor = [2, 8, 128, 64]
    op = event(
        "cpu_op", "aten::_scaled_dot_product_flash_attention_backward", 100 * US, 50 * US,
        **{"Input Dims": [tensor] * 4, "Input type": ["c10::BFloat16"] * 4, "Sequence number": 4,
           "Concrete Inputs": [""] * 11 + ["False"]},
    )  # fmt: skip
    work = [
        op,
        launch(110 * US, 1),
        kernel("flash_bwd_dq_dk_dv_loop_kernel", 200 * US, 50 * US, correlation=1),
    ]
    row = utilization(opened(tmp_path, work, product(500, 2))).iloc[0]
    scores = 2 * (2 * 8 * 128 * 128) * 64
    assert row["hardware_flops"] == FLOPS + 5 * scores and row["model_flops"] == FLOPS + 4 * scores


def test_work_without_a_formula_makes_it_at_least(tmp_path: Path) -> None:
    mine = [event("cpu_op", "my::op", 1000 * US, 50 * US, **{"Input Dims": [[4]], "Input type": ["float"]}),
            launch(1010 * US, 9), kernel("mine", 1100 * US, 300 * US, correlation=9)]  # fmt: skip
    row = utilization(opened(tmp_path, product(100, 1), mine)).iloc[0]
    assert row["mfu_reading"] == row["mbu_reading"] == "at least"
    assert row["formula_pct"] == pytest.approx(25)
    with analysis.register_formula("my::op", flops=lambda inputs: 1000 * inputs.numel(0)):
        row = utilization(opened(tmp_path, product(100, 1), mine)).iloc[0]
    assert row["hardware_flops"] == FLOPS + 4000 and row["mfu_reading"] == "exact"


def test_each_value_abstains_by_itself(tmp_path: Path) -> None:
    unknown = utilization(opened(tmp_path, product(100, 1), device="Future 1")).iloc[0]
    assert unknown["hardware_flops"] == FLOPS and math.isnan(unknown["hfu_pct"])
    assert all("register_peaks" in unknown[f"{name}_reason"] for name in ("mfu", "hfu", "mbu"))
    mine = Peaks("mine", {"tensor_tf32": 100.0}, 1000.0, "me")
    trace = opened(tmp_path, product(100, 1), device="Future 1")
    row = utilization(trace, peaks=mine).iloc[0]
    assert row["mfu_pct"] == pytest.approx(100 * FLOPS / 10e-3 / 100e12) and row["source"] == "me"
    other = utilization(trace, peaks=Peaks("mine", {"tensor_8bit": 100.0}, 1000.0, "me")).iloc[0]
    assert "no peak of tensor_tf32" in other["mfu_reason"] and other["mbu_reason"] == ""
    assert sentence(utilization(trace)).startswith("Utilization is unknown: the peaks of the device")


def test_what_is_missing_altogether_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="record_shapes"):
        utilization(opened(tmp_path, product(100, 1, shapes=None)))
    row = utilization(opened(tmp_path, product(100, 1, shapes=None)), tokens_per_step=8).iloc[0]
    assert "parameters" in row["mfu_reason"] and "record_shapes" in row["hfu_reason"]
    for wrong in (0, -1, "many"):
        with pytest.raises(ValueError, match="tokens_per_step is a whole number above 0"):
            utilization(opened(tmp_path, product(100, 1)), tokens_per_step=wrong)


def test_a_recording_without_steps_is_one(tmp_path: Path) -> None:
    """From the operator's start to the kernel's end, 160 us."""
    row = utilization(opened(tmp_path, product(100, 1), steps=0)).iloc[0]
    assert row["step_ns"] == 160 * US and row["mfu_pct"] == pytest.approx(100 * FLOPS / 160e-6 / 156e12)


def test_six_operations_per_parameter_and_token() -> None:
    """GPT-2 without embeddings: DDP's buckets and FSDP's units hold the same 52,810,752 parameters."""
    for name, strategy in (("gpt2_ddp", "DDP"), ("gpt2_fsdp_full_shard", "FSDP FULL_SHARD")):
        trace = examples.load(name)
        frame = utilization(trace, tokens_per_step=4096)
        assert frame["parameters"].eq(52_810_752).all() and frame["parameters_from"].eq(strategy).all()
        each = 6 * 52_810_752 * 4096 // len(trace.ranks)
        assert frame.loc[frame["iteration"].notna(), "model_flops"].eq(each).all()
        whole = frame[frame["iteration"].isna()].iloc[0]
        assert whole["model_flops"] == each * whole["steps"] and whole["mfu_reading"] == "about"
        speed = whole["model_flops"] / whole["step_ns"] / 1e3
        assert whole["mfu_pct"] == pytest.approx(100 * speed / whole["peak_tflops_s"])
    alone = utilization(examples.load("gpt2_baseline"), tokens_per_step="4,096").iloc[0]
    assert "single device" in alone["mfu_reason"] and alone["hfu_reason"] == ""


# -- recordings, by a slow reader of their JSON --------------------------------------------------------


def _of_product(item: Event) -> int:
    """Operations of one call by its dimensions; 0 for operators that multiply no matrices."""
    dims = item["args"].get("Input Dims") or []
    match item["name"]:
        case "aten::mm" | "aten::bmm":
            (*batch, m, k), (*_, n) = dims[:2]
            return 2 * math.prod(batch) * m * k * n
        case "aten::addmm":
            (m, k), (_, n) = dims[1:3]
            return int(2 * m * k * n)
        case "aten::_scaled_dot_product_efficient_attention" | "aten::_scaled_dot_product_flash_attention":
            (batch, heads, queries, width), (_, _, keys, _), (*_, value) = dims[:3]
            causal = item["args"]["Concrete Inputs"][6 if "efficient" in item["name"] else 4] == "True"
            pairs = sum(min(row + 1, keys) if causal else keys for row in range(queries))
            return int(2 * batch * heads * pairs * (width + value))
    return 0


@pytest.mark.parametrize("device", ["h100", "mi300"])
@pytest.mark.parametrize(
    "model", ["gaunernst_bert-small-uncased__1016001", "Qwen_Qwen1.5-0.5B-Chat__1016005"]
)
def test_products_of_recordings(device: str, model: str) -> None:
    path = shared_trace(f"tracelens/{device}/{model}.json.gz")
    events: list[Event] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    for row in utilization(Trace.open(path)).query("iteration.notna()").to_dict("records"):
        mark = next(item for item in events if item["name"] == f"ProfilerStep#{row['iteration']}")
        inside = [
            item for item in events
            if item.get("cat") == "cpu_op" and mark["ts"] <= item["ts"] < mark["ts"] + mark["dur"]
        ]  # fmt: skip
        assert row["hardware_flops"] == row["model_flops"] == sum(map(_of_product, inside)) > 0
        speed = row["hardware_flops"] / row["step_ns"] * 1e9
        assert row["hfu_pct"] == pytest.approx(100 * speed / {"h100": 989.4e12, "mi300": 1307.4e12}[device])


def test_a_recording_with_checkpoints() -> None:
    """ResNet-18, whose 20 convolutions are computed in forward, 19 of them again, and all backward twice."""
    path = shared_trace("tracelens/mi300/resnet_act_checkpoint.json.gz")
    events: list[Event] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    forward, again, backward = 0, 0, 0
    for item in events:
        if item.get("cat") != "cpu_op" or "Input Dims" not in item.get("args", {}):
            continue
        args = item["args"]
        dims = [json.loads(each) if isinstance(each, str) else each for each in args["Input Dims"]]
        if item["name"] == "aten::convolution":
            (batch, _, *image), weight = dims[:2]
            stride, pad = (json.loads(args["Concrete Inputs"][at])[0] for at in (3, 4))
            size = (image[0] + 2 * pad - weight[2]) // stride + 1
            cost = 2 * batch * size * size * math.prod(weight)
            main = item["tid"] == next(e["tid"] for e in events if "ProfilerStep" in e["name"])
            forward, again = forward + cost * main, again + cost * (not main)
        elif item["name"] == "aten::convolution_backward":
            (batch, _, *image), _, weight = dims[:3]
            wanted = args["Concrete Inputs"][10].count("True", 0, 12)  # of input and weight, not of the bias
            backward += wanted * 2 * batch * math.prod(image) * math.prod(weight)
        elif item["name"] == "aten::addmm":
            forward += 2 * dims[1][0] * dims[1][1] * dims[2][1]
        elif item["name"] == "aten::mm":
            backward += 2 * dims[0][0] * dims[0][1] * dims[1][1]
    row = utilization(Trace.open(path)).iloc[0]
    assert again > 0.8 * forward
    assert row["steps"] == 2  # of three: when the last one ended is not recorded
    counted = 3 * row["hardware_flops"], 3 * row["model_flops"]
    assert counted == (2 * (forward + again + backward), 2 * (forward + backward))
