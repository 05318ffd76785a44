"""Which part of the model each kernel of a step is: by annotation, capture, structure, or not at all."""

from __future__ import annotations

import random
import shutil
from itertools import chain, combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, Trace, examples
from hta_widgets.analysis import call_stacks, inspect_event, module_stacks, operators, overview, roles
from hta_widgets.analysis.compare.call_lines import operator_lines
from hta_widgets.analysis.serving.by_role import sentence
from hta_widgets.analysis.serving.captures import Captured, Graph, aligned, graphs_in
from hta_widgets.analysis.serving.layers import placed
from hta_widgets.analysis.serving.parts import part_of_kernel, part_of_module
from hta_widgets.analysis.serving.roles import operators_of, roles_of
from hta_widgets.errors import TraceNotFoundError
from hta_widgets.widgets.inspector_content import event_content
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.support import shared_input, shared_trace
from tests.trace.helpers import slice_, write

# What an expert reads from the captures, us.
TRUTH = {
    "vllm_decode_full": {
        "experts": 7789.1, "attention": 724.4, "qkv": 387.0, "o_proj": 366.2, "norm": 332.0, "copy": 292.4,
        "router": 200.7, "rope": 149.7, "cache": 136.4, "embedding": 10.6,
    },
    "sglang_decode": {
        "gate_up": 2417.7, "down": 1461.9, "qkv": 903.5, "o_proj": 602.3, "lm_head": 396.8,
        "attention": 2127.9, "norm": 684.0, "copy": 355.1, "activation": 324.4, "rope": 195.8, "cache": 173.5,
        "embedding": 13.5,
    },
}  # fmt: skip


def with_capture(name: str) -> Trace:
    return Trace.open(
        shared_trace(f"tracelens/inference/{name}"), capture=shared_input(f"recordings/captures/{name}")
    )


def replayed(trace: Trace) -> pd.DataFrame:
    """Role, how it is known, and time of the kernels that graphs launched."""
    rank_trace = trace.rank(0)
    known = roles_of(rank_trace)
    frame = pd.DataFrame(
        {"role": known.role, "known_by": known.known_by, "us": rank_trace.dur[known.rows] / 1000}
    )
    return frame[known.replayed]


@pytest.mark.parametrize("name", TRUTH)
@pytest.mark.parametrize("known_by", ["capture", "structure"])
def test_recorded_replays(name: str, known_by: str) -> None:
    trace_path = shared_trace(f"tracelens/inference/{name}")
    capture = shared_input(f"recordings/captures/{name}") if known_by == "capture" else None
    frame = replayed(Trace.open(trace_path, capture=capture))
    assert frame.loc[frame["known_by"] == known_by, "us"].sum() >= 0.99 * frame["us"].sum()
    assert frame.groupby("role")["us"].sum().to_dict() == pytest.approx(TRUTH[name], rel=0.01)


@pytest.mark.parametrize("name", TRUTH)
def test_a_capture_names_the_operator_of_each_kernel(name: str) -> None:
    trace = with_capture(name)
    known = roles_of(trace.rank(0))
    launched = [each for each, graph in zip(known.captured, known.replayed, strict=True) if graph]
    assert all(each is not None and each.operator for each in launched)
    kernels = [trace.rank(0).names[code] for code in trace.rank(0).name[known.rows[known.replayed]]]
    assert [each.kernel for each in launched if each] == kernels


def test_a_capture_beside_the_replay_is_found(tmp_path: Path) -> None:
    (replay,) = shared_trace("tracelens/inference/sglang_decode").glob("*.json.gz")
    (capture,) = shared_input("recordings/captures/sglang_decode").glob("*.json.gz")
    for file in (replay, capture):
        shutil.copy(file, tmp_path / file.name)
    for path in (tmp_path, tmp_path / replay.name):
        trace = Trace.open(path, cache=False)
        assert [each.name for each in trace.captures] == [capture.name]
        assert set(replayed(trace)["known_by"]) == {"capture"}


def test_a_capture_of_another_model_is_refused_and_structure_takes_over() -> None:
    trace = Trace.open(
        shared_trace("tracelens/inference/sglang_decode"),
        capture=shared_input("recordings/captures/vllm_decode_full"),
    )
    assert set(replayed(trace)["known_by"]) == {"structure"}
    assert "stand in the capture of 421" in roles_of(trace.rank(0)).refused[0]


def test_a_capture_that_is_not_there() -> None:
    with pytest.raises(TraceNotFoundError):
        Trace.open(shared_trace("tracelens/inference/sglang_decode"), capture="/nowhere/capture.json")


# -- structure, on a model that is written down --------------------------------------------------------------

NAMES = {
    "norm": "void vllm::rms_norm_kernel<c10::BFloat16>", "qkv": "nvjet_tst_128x64", "rope": "rotary_emb",
    "cache": "reshape_and_cache_flash_kernel",
    "attention": "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64, cutlass::half_t> >",
    "o_proj": "nvjet_tst_64x8", "gate_up": "nvjet_tst_256x64", "activation": "act_and_mul_kernel",
    "down": "nvjet_tst_192x8", "router": "nvjet_tst_16x8", "experts": "fused_moe_kernel",
    "lm_head": "nvjet_tst_512x8", "embedding": "vectorized_gather", "sampling": "argmax_kernel",
    "communication": "ncclDevKernel_AllReduce", "slow copy": "Memcpy DtoD (Device -> Device)",
    "copy": "Memcpy DtoD (Device -> Device)",
    "gather": "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)",
}  # fmt: skip
TIME = {
    "gate_up": 40,
    "down": 25,
    "experts": 60,
    "attention": 30,
    "qkv": 15,
    "o_proj": 12,
    "lm_head": 90,
    "slow copy": 50,
}
DENSE = ["norm", "qkv", "rope", "cache", "attention", "o_proj", "norm", "gate_up", "activation", "down"]
EXPERTS = ["norm", "qkv", "rope", "cache", "attention", "o_proj", "norm", "router", "experts", "experts"]
PARALLEL = [*DENSE[:6], "communication", *DENSE[6:], "communication"]
# Latent attention: the products of queries and keys are normed in between, that of values comes after it.
LATENT = ["norm", "qkv", "norm", "norm", "qkv", "qkv", "rope", "cache", "attention", "qkv", "o_proj"]
WRITTEN_FIRST = ["norm", "qkv", "norm", "norm", "qkv", "rope", "cache", "qkv", "attention", "qkv", "o_proj"]
LATENT_DENSE, LATENT_EXPERTS = [*LATENT, *DENSE[6:]], [*LATENT, "norm", "router", "experts", "experts"]
SHARED = [*EXPERTS[:8], "gate_up", "activation", "down", "experts", "experts"]
# The experts' own activation between their products, and shared experts after them.
SHARED_AFTER = [*EXPERTS[:9], "activation", "experts", "gate_up", "activation", "down"]
POST_NORMS = [*DENSE[:6], "norm", *DENSE[6:], "norm"]


def model(*layers: list[str], head: bool = True) -> list[str]:
    return ["embedding", *chain(*layers), "norm", *(["lm_head", "sampling"] if head else [])]


def read(truth: list[str], names: dict[str, str] = NAMES) -> tuple[tuple[str, ...], str]:
    found = placed([part_of_kernel(names[role]) for role in truth], [TIME.get(role, 3) for role in truth])
    return found.roles, found.refused


@pytest.mark.parametrize(
    "truth",
    [
        model(*[DENSE] * 8),
        model(*[DENSE] * 8, head=False),
        model(*[EXPERTS] * 8),
        model(DENSE, *[EXPERTS] * 7),
        model(*[PARALLEL] * 8),
        model(*[LATENT_DENSE] * 8),
        model(*[LATENT_DENSE] * 3, *[LATENT_EXPERTS] * 8),
        model(*[LATENT_EXPERTS] * 8, head=False),
        model(*[[*WRITTEN_FIRST, *DENSE[6:]]] * 8),
        model(*[SHARED] * 8),
        model(*[SHARED_AFTER] * 8),
        model(DENSE, *[[*LATENT, *SHARED_AFTER[6:]]] * 8),
        model(*[POST_NORMS] * 8),
    ],
)
def test_models_whose_kernels_are_known(truth: list[str]) -> None:
    found, refused = read(truth)
    assert not refused
    assert list(found) == truth


def test_a_router_that_sorts_is_one_of_the_experts() -> None:
    found, refused = read(model(*[[*EXPERTS[:8], "sampling", *EXPERTS[8:]]] * 8))
    assert not refused
    assert found[8:12] == ("router", "experts", "experts", "experts")


@pytest.mark.parametrize(
    ("truth", "why"),
    [
        (model(*[[*DENSE, "sampling"]] * 4), "look like sampling lie in layers"),
        (model(*[[*DENSE[:4], "cache", *DENSE[4:5], "qkv", *DENSE[5:]]] * 4), "2 products between"),
        (model(*[[*LATENT[:9], *LATENT_DENSE[10:]]] * 4), "1 products between"),
        ([*model(*[DENSE] * 4, head=False), "slow copy"], "outside of layers"),
        ([*model(*[DENSE] * 4, head=False), "router"], "shorter than those in layers"),
        (["embedding", "cache", *chain(*[[*DENSE[:3], *DENSE[4:]]] * 4)], "writes to the cache"),
        (model(DENSE), "calls of attention"),
        (model(*[DENSE] * 4, [role for role in DENSE if role != "cache"]), "writes to the cache"),
        (model(*[DENSE] * 4, [*DENSE[:5], *DENSE[6:]]), "layer 4"),
        (model(*[DENSE] * 4, [*DENSE, "gate_up", "gate_up"]), "layer 4"),
        ([*chain(*[DENSE[1:]] * 4)], "norm"),
    ],
)
def test_what_is_no_row_of_layers_is_refused(truth: list[str], why: str) -> None:
    found, refused = read(truth)
    assert not found
    assert why in refused


NORMED = ["norm", "qkv", "copy", "norm", "copy", "norm", "rope", *DENSE[3:]]


@pytest.mark.parametrize(
    "layer",
    [DENSE, EXPERTS, PARALLEL, LATENT_DENSE, SHARED, POST_NORMS, NORMED, ["norm", "qkv", "copy", *DENSE[2:]]],
)
def test_kernels_that_swap_their_names_never_mislead(layer: list[str]) -> None:
    truth = model(*[layer] * 8)
    right, refused = read(truth)
    assert not refused
    assert list(right) == truth
    time = [TIME.get(role, 3) for role in truth]
    for first, second in combinations(sorted(set(truth)), 2):
        found, _ = read(truth, {**NAMES, first: NAMES[second], second: NAMES[first]})
        wrong = sum(
            own for own, said, role in zip(time, found, truth, strict=False) if said not in ("", role)
        )
        assert wrong <= 0.01 * sum(time), (first, second)


@pytest.mark.parametrize("kind", ["all", "some", "mixed up"])
def test_names_changed_at_random_never_mislead(kind: str) -> None:
    for seed in range(60):
        do_not_mislead(seed, kind)


def do_not_mislead(seed: int, kind: str) -> None:
    """Nothing is said, or at most 1 % of the time is wrong."""
    draw, truth = random.Random(seed), model(*[DENSE, EXPERTS][seed % 2 :][:1] * 12)
    names = dict(NAMES)
    chosen = draw.sample(sorted(names), len(names) if kind != "some" else draw.randint(1, len(names) - 1))
    if kind == "mixed up":
        draw.shuffle(values := [names[role] for role in chosen])
        names |= dict(zip(chosen, values, strict=True))
        if part_of_kernel(names["attention"]) == "attention":
            return  # too much of it is in place
    else:
        names |= {role: f"k{draw.getrandbits(60):x}" for role in chosen}
    found, refused = read(truth, names)
    time = {role: TIME.get(role, 3) for role in truth}
    wrong = sum(time[right] for right, said in zip(truth, found, strict=False) if right != said)
    assert refused or wrong <= 0.01 * sum(time[role] for role in truth), seed


def renamed(names: list[str], kind: str, draw: random.Random) -> list[str]:
    """Kernels of one name get another one: all of them, some, one, or each that of another."""
    distinct = sorted(set(names))
    many = {"all": len(distinct), "some": draw.randint(1, len(distinct) - 1), "one": 1, "mixed up": 0}[kind]
    new = {name: f"k{draw.getrandbits(60):x}" for name in draw.sample(distinct, many)}
    if kind == "mixed up":
        new = dict(zip(distinct, draw.sample(distinct, len(distinct)), strict=True))
    return [new.get(name, name) for name in names]


@pytest.mark.parametrize("name", TRUTH)
def test_recorded_kernels_with_names_changed_at_random_never_mislead(name: str) -> None:
    trace = with_capture(name).rank(0)
    known = roles_of(trace)
    names = [trace.names[code] for code in trace.name[known.rows].tolist()]
    time = trace.dur[known.rows]
    refused = dict.fromkeys(("all", "some", "one", "mixed up"), 0)
    for seed, kind in product(range(40), refused):
        found = placed(
            [part_of_kernel(each) for each in renamed(names, kind, random.Random(seed))], time.tolist()
        )
        refused[kind] += bool(found.refused)
        wrong = [
            bool(ours) and ours != right
            for ours, right in zip(found.roles, known.role, strict=not found.refused)
        ]
        assert time[: len(wrong)][wrong].sum() <= 0.01 * time.sum(), (kind, seed)
    assert refused["all"] == refused["mixed up"] == 40
    assert 0 < refused["one"] < 40, "a name of no weight is none to refuse for"


@pytest.mark.parametrize("name", TRUTH)
def test_recorded_kernels_that_swap_their_names_never_mislead(name: str) -> None:
    """Any two of them, and three or more in turn: what is said then is right, or nothing is said."""
    trace = with_capture(name).rank(0)
    known = roles_of(trace)
    names = [trace.names[code] for code in trace.name[known.rows].tolist()]
    operators = operators_of(trace, known.rows, known.replayed)
    time, distinct, draw = trace.dur[known.rows], sorted(set(names)), random.Random(7)
    in_turn = [tuple(draw.sample(distinct, draw.randint(3, 6))) for _ in range(200)]
    answered = 0
    for chosen in (*combinations(distinct, 2), *in_turn):
        new = dict(zip(chosen, (*chosen[1:], chosen[0]), strict=True))
        found = placed([part_of_kernel(new.get(each, each)) for each in names], time.tolist(), operators)
        answered += not found.refused
        wrong = [
            bool(ours) and ours != right
            for ours, right in zip(found.roles, known.role, strict=not found.refused)
        ]
        assert time[: len(wrong)][wrong].sum() <= 0.01 * time.sum(), chosen
    assert answered, "names of kernels that are the same part may be swapped"


def test_kernels_that_are_named_as_no_operator_launches_them() -> None:
    truth = model(*[DENSE] * 8)
    parts, times = [part_of_kernel(NAMES[role]) for role in truth], [TIME.get(role, 3) for role in truth]
    for operator, part, is_refused in (
        ("aten::copy_", "copy", False), ("aten::copy_", "norm", True), ("aten::sub", "copy", True),
        ("aten::sub", "elementwise", False), ("aten::rms_norm", "norm", False), ("vllm::op", "norm", False),
    ):  # fmt: skip
        found = placed([part, *parts], [3, *times], [operator, *[""] * len(parts)])
        assert bool(found.refused) == is_refused, (operator, part)
        assert ("contradict" in found.refused) == is_refused


def test_slow_kernels_are_no_norms_or_copies() -> None:
    """A slow kernel among fast ones of its kind is something else, and so is one that takes all the time."""
    for role, time in (("norm", [3, 50]), ("norm", [50]), ("copy", [50])):
        truth = model(*[[*DENSE[:-1], *(["copy"] if role == "copy" else []), "down"]] * 8)
        times = [TIME.get(each, 3) for each in truth]
        slow = [at for at, each in enumerate(truth) if each == role]
        for place, at in enumerate(slow):
            times[at] = time[place % len(time)]
        parts = [part_of_kernel(NAMES[each]) for each in truth]
        assert f"look like {role}" in placed(parts, times).refused


def test_where_a_kernel_cannot_be_told_its_role_stays_unknown() -> None:
    """What moves numbers right after attention, or after experts, may be a part of these."""
    for layer in ([*DENSE[:5], "copy", *DENSE[5:]], [*EXPERTS, "copy"]):
        found, refused = read(model(*[layer] * 8))
        assert not refused
        said = dict.fromkeys(found[at] for at, role in enumerate(model(*[layer] * 8)) if role == "copy")
        assert list(said) == [""]


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (["norm", "qkv", "rope", "norm", "cache", *DENSE[4:]], "rope does not follow the norms"),
        (["norm", "qkv", "norm", "gather", "rope", *DENSE[3:]], "gather lies before attention"),
        (["norm", "qkv", "norm", "copy", "rope", *DENSE[3:]], "rope does not follow the norms"),
        (["norm", "qkv", "norm", "cache", *DENSE[4:]], "no rope before attention"),
        (["norm", "qkv", *["copy"] * 4, *DENSE[2:]], "too many kernels"),
        (["norm", "qkv", *["rope"] * 3, *DENSE[3:]], "too many kernels"),
        (["norm", "qkv", "copy", "qkv", *DENSE[2:]], "do not follow each other"),
        ([*DENSE[:5], "norm", *DENSE[5:]], "between attention and the product"),
        ([*DENSE[:8], "norm", "activation", "down"], "between the products of the feed-forward"),
        ([*EXPERTS[:9], "norm", "experts"], "between the router and the experts"),
        (["norm", "qkv", "slow copy", *DENSE[2:]], "take as long as products do"),
        (["norm", "qkv", "rope", "copy", "rope", *DENSE[3:]], "do not follow each other"),
        (["norm", "qkv", "rope", "copy", *DENSE[3:]], "copies come after rope"),
    ],
)
def test_layers_that_no_model_has(layer: list[str], why: str) -> None:
    found, refused = read(model(*[layer] * 8))
    assert not found
    assert why in refused


def test_what_only_moves_numbers_takes_no_longer_than_what_computes_them() -> None:
    truth = model(*[["norm", "qkv", "copy", *DENSE[2:]]] * 8)
    parts, times = [part_of_kernel(NAMES[role]) for role in truth], [TIME.get(role, 3) for role in truth]
    assert not placed(parts, times).refused
    for role, time, why in (
        ("copy", 20, "take longer than the products there"), ("attention", 2, "take longer than it"),
        ("gate_up", 2, "activations take longer"),
    ):  # fmt: skip
        other = [time if each == role else usual for each, usual in zip(truth, times, strict=True)]
        assert why in placed(parts, other).refused


def test_layers_that_begin_differently_are_refused() -> None:
    with_norms = ["norm", "qkv", "norm", "rope", *DENSE[3:]]
    assert "differ in norms or products" in read(model(*[DENSE, with_norms] * 4))[1]
    without_rope = [role for role in DENSE if role != "rope"]
    assert not read(model(*[DENSE, DENSE, DENSE, without_rope] * 2))[1], "some layers may have none"


@pytest.mark.parametrize("part", ["rope", "activation", "cache"])
def test_what_only_layers_have_lies_in_them(part: str) -> None:
    truth = model(*[DENSE] * 8)
    found, refused = read([part, *truth])
    assert not found
    assert part in refused or "writes to the cache" in refused
    assert not read(["norm", *truth])[1], "an embedding may be normalised"


# Names that engines give their kernels, and the libraries that they use.
SPOKEN = {
    "product": (
        "ampere_fp16_s16816gemm_fp16_128x128_ldg8_relu_f2f_tn", "wv_splitk_small_fp16_bf16_kernel",
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_tilesize64x64x64_gelu", "bmm_Bfloat16_E2m1E2m1_Fp32_t128x8x256",
        "_w8a8_block_fp8_matmul", "void deep_gemm::sm90_fp8_gemm_1d2d_impl<>", "dsv3_fused_a_gemm_kernel",
    ),
    "attention": (
        "_fwd_grouped_kernel_stage1_rope", "_fwd_kernel_stage2", "_fwd_kernel", "kn_mla_reduce_v1",
        "mla_dec_stage1_bf16_a16w16_subQ16_mqa16", "void flash::flash_fwd_splitkv_mla_fp8_sparse_kernel<>",
        "void flashinfer::PersistentVariableLengthMergeStatesKernel<>", "void kernel_mha<true>(unsigned int)",
        "void mmha::masked_multihead_attention_kernel<unsigned short>",
    ),
    "cache": (
        "fused_qk_rope_cat_and_cache_mla", "void vllm::concat_and_cache_mla_kernel<>",
        "void flashinfer::AppendPagedKVCacheKernel<>", "indexer_k_quant_and_cache_kernel",
        "void tensorrt_llm::kernels::applyBiasRopeUpdateKVCacheV2<>",
        "void tensorrt_llm::kernels::applyMLARopeAndAssignQKVKernelGeneration<>",
    ),
    "experts": (
        "void deep_gemm::sm90_m_grouped_fp8_gemm_masked<>", "void aiter::biased_grouped_topk_kernel<>",
        "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_biasM_clmp_swiGlu_dynB_sm100f",
        "_fwd_kernel_ep_scatter_1", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
    ),
    "activation": ("void vllm::silu_and_mul_per_block_quant_kernel<>", "_silu_and_mul_post_quant_kernel"),
    "sampling": ("_topk_topp_kernel", "apply_token_bitmask_inplace_kernel", "_apply_grammar_bitmask"),
    "quantization": ("_per_token_group_quant_fp8", "_act_quant_kernel"),
    "norm": ("void vllm::rms_norm_static_fp8_quant_kernel<>", "void FusedAddRMSNormKernel<>"),
    "copy": ("concat_mla_absorb_q_kernel", "void at::native::CatArrayBatchedCopy<>"),
}  # fmt: skip


@pytest.mark.parametrize(("part", "name"), [(part, name) for part in SPOKEN for name in SPOKEN[part]])
def test_what_a_kernel_is_by_its_name(part: str, name: str) -> None:
    assert part_of_kernel(name) == part


# -- captures ------------------------------------------------------------------------------------------------


def graph(*kernels: str, batch: int = 0) -> Graph:
    return Graph(tuple(Captured(name, f"op::{at}", "", "", "") for at, name in enumerate(kernels)), batch)


def align(kernels: list[str], *graphs: Graph, nodes: list[int] | None = None, batch: int = 0):
    times = np.full(len(kernels), 1000, np.int64)
    return aligned(kernels, times, np.array(nodes or [0] * len(kernels)), graphs, batch)


def test_graphs_of_a_capture_and_the_batches_that_they_are_for(tmp_path: Path) -> None:
    """The annotation on the host says it; on the device it is late, and beside the capture for another."""

    def capture(begin: int, *launches: str) -> list[dict]:
        calls = ["cudaStreamBeginCapture", *launches, "cudaStreamEndCapture_v10000"]
        return [slice_(name, "cuda_runtime", begin + 10 * at, 5) for at, name in enumerate(calls)]

    shadow = {**slice_("capture_16", "gpu_user_annotation", 150, 100, 7, stream=7, device=0), "pid": 0}
    events = [
        slice_("capture_16", "user_annotation", 0, 100),
        *capture(10, "cudaLaunchKernel", "cudaEventRecord", "cudaMemcpyAsync"),
        shadow,
        slice_("capture_8 (prefill)", "user_annotation", 200, 100),
        *capture(210, "cudaLaunchKernel"),
        *capture(310),  # nothing is captured
        slice_("recapture_4", "user_annotation", 400, 100),
        *capture(410, "cudaLaunchKernelExC"),
    ]
    found = graphs_in(str(write(tmp_path / "capture.json", events)))
    assert [(len(each.launches), each.batch) for each in found] == [(2, 16), (1, 8), (1, 0)]


def test_a_replay_in_order_of_its_capture() -> None:
    found, refused = align(["a", "b", "a", "Memcpy DtoD (x)"], graph("a", "b", "a", "Memcpy"))
    assert not refused
    assert [each.operator for each in found] == ["op::0", "op::1", "op::2", "op::3"]


def test_the_graph_of_the_batch_that_is_replayed() -> None:
    graphs = [graph("a", "b", batch=size) for size in (8, 16, 32)]
    found, _ = align(["a", "b"], *graphs, batch=12)
    assert found[0] is graphs[1].launches[0]


def test_few_kernels_may_differ_and_no_more() -> None:
    kernels = [f"k{at}" for at in range(200)]
    found, refused = align([*kernels[:100], "new", *kernels[100:]], graph(*kernels))
    assert not refused
    assert found[100] is None
    assert found[101].operator == "op::100"
    found, refused = align(kernels[:150], graph(*kernels))
    assert not any(found)
    assert "150 of 150 kernels stand in the capture of 200" in refused


def test_without_names_only_the_numbers_of_nodes_tell() -> None:
    found, refused = align(["a", "b"], graph("", ""), nodes=[2, 1])
    assert not refused
    assert [each.operator for each in found] == ["op::1", "op::0"]
    found, refused = align(["a", "b"], graph("", ""))
    assert not any(found)
    assert "it is unknown which is which" in refused


# -- modules -------------------------------------------------------------------------------------------------

CLASSES = {
    "embedding": "VocabParallelEmbedding_0", "norm": "Layer_{0}.RMSNorm_{0}",
    "qkv": "Layer_{0}.Qwen3Attention_{0}.QKVParallelLinear_{0}",
    "rope": "Layer_{0}.Qwen3Attention_{0}.RotaryEmbedding_0",
    "attention": "Layer_{0}.Qwen3Attention_{0}.RadixAttention_{0}",
    "o_proj": "Layer_{0}.Qwen3Attention_{0}.RowParallelLinear_{0}",
    "gate_up": "Layer_{0}.Qwen2MLP_{0}.MergedColumnParallelLinear_{0}",
    "activation": "Layer_{0}.Qwen2MLP_{0}.SiluAndMul_{0}",
    "down": "Layer_{0}.Qwen2MLP_{0}.RowParallelLinear_{0}", "lm_head": "LogitsProcessor_0",
}  # fmt: skip


def eager(layers: int) -> tuple[list[dict], list[str]]:
    """A step without graphs, whose layers write no cache: structure is refused, modules are recorded."""
    events, truth = [event("user_annotation", "step[EXTEND bs=1 toks=64]", 0, 10**6)], []
    start, free = 1000, 300_000
    dense = [role for role in DENSE if role != "cache"]
    steps = [(role, layer) for layer in range(layers) for role in dense]
    for at, (role, layer) in enumerate([("embedding", 0), *steps, ("lm_head", 0)]):
        for depth, name in enumerate(CLASSES[role].format(layer).split(".")):
            span = 900 - 100 * depth
            python = {"Python id": 10 * at + depth + 1}
            events.append(event("python_function", f"nn.Module: {name}", start + 10 * depth, span, **python))
        events.append(event("cpu_op", "aten::op", start + 100, 500))
        events.append(launch(start + 200, at + 1))
        events.append(kernel(NAMES[role], free, 1000 * TIME.get(role, 3), correlation=at + 1))
        free += 1000 * TIME.get(role, 3) + 500
        truth.append(role)
        start += 1000
    return events, truth


def test_modules_tell_where_layers_do_not_repeat(tmp_path: Path) -> None:
    events, truth = eager(6)
    known = roles_of(job(tmp_path, events).rank(0))
    assert known.role.tolist() == truth
    assert set(known.known_by) == {"operator"}
    assert known.layer.tolist() == [-1, *(layer for layer in range(6) for _ in range(9)), -1]


def test_classes_of_modules_that_say_nothing_leave_products_as_they_are(tmp_path: Path) -> None:
    events, truth = eager(6)
    for each in events:
        if each["cat"] == "python_function" and "Linear" in each["name"]:
            each["name"] = "nn.Module: Linear_3"
    known = roles_of(job(tmp_path, events).rank(0))
    products = {"qkv", "o_proj", "gate_up", "down"}
    assert known.role.tolist() == ["product" if role in products else role for role in truth]


def test_modules_of_a_recorded_capture_are_its_roles() -> None:
    """What structure says of each product of a recorded graph, its modules say as well."""
    trace = with_capture("sglang_decode")
    known = roles_of(trace.rank(0))
    checked = 0
    for role, captured in zip(known.role, known.captured, strict=True):
        if captured and captured.modules and role in {"qkv", "o_proj", "gate_up", "down", "lm_head", "rope"}:
            assert part_of_module(captured.modules) == role, captured.modules
            checked += 1
    assert checked == 36 * 5 + 1


# -- collectives ---------------------------------------------------------------------------------------------


def test_how_fast_collectives_are_that_an_operator_is_given(tmp_path: Path) -> None:
    """In graphs they have no arguments of their own; what launched them, or its capture, has."""
    events = [event("user_annotation", "step[DECODE bs=64]", 0, 10**6)]
    for at, dims in enumerate([[[64, 4096], []], [[], [64, 4096], [64, 4096]], [[[64, 4096]], []]]):
        types = {0: ["c10::BFloat16", ""], 1: ["Scalar", "c10::BFloat16", "c10::BFloat16"]}.get(
            at, ["TensorList", ""]
        )
        arguments = {"Input Dims": dims, "Input type": types}
        events.append(event("cpu_op", f"vllm::all_reduce_{at}", 1000 * at + 1000, 500, **arguments))
        events.append(launch(1000 * at + 1100, at + 1))
        name = f"void vllm::cross_device_reduce_1stage_{at}"
        events.append(kernel(name, 100_000 * (at + 1), 20_000, correlation=at + 1))
    for count, rate in ((1, 64 * 4096 * 2 / 20_000), (2, 64 * 4096 * 2 / 20_000)):
        frame = roles(job(tmp_path, events[: 1 + 3 * count]))
        assert frame["role"].tolist() == ["communication"]
        assert frame["gb_s"].iloc[0] == pytest.approx(rate)
    unknown = roles(job(tmp_path, [events[0], *events[7:]]))
    assert unknown["role"].tolist() == ["communication"]
    assert unknown["gb_s"].isna().all(), "of a list of tensors the type is not recorded"


# -- annotations ---------------------------------------------------------------------------------------------


def test_modules_that_annotate_kernels_of_graphs(tmp_path: Path) -> None:
    modules = ["model.layers.0.self_attn.qkv_proj", "model.layers.0.mlp.down_proj", "lm_head"]
    events = [event("user_annotation", "step[DECODE bs=4]", 0, 100_000)]
    events.append({**launch(1000, 7), "name": "cudaGraphLaunch"})
    for at, module in enumerate(modules):
        events.append(kernel("k", 10_000 + 5_000 * at, 4_000, correlation=7, module_fqn=module))
    frame = roles(job(tmp_path, events))
    assert dict(zip(frame["role"], frame["known_by"], strict=True)) == dict.fromkeys(
        ("qkv", "down", "lm_head"), "annotation"
    )


def test_nothing_known_says_why(tmp_path: Path) -> None:
    events = [event("user_annotation", "step[DECODE bs=4]", 0, 100_000)]
    events.append({**launch(1000, 7), "name": "cudaGraphLaunch"})
    events += [kernel(f"k{at}", 10_000 + 5_000 * at, 4_000, correlation=7) for at in range(3)]
    frame = roles(job(tmp_path, events))
    assert frame["role"].tolist() == ["(unknown)"]
    assert "calls of attention" in frame["why"].iloc[0]
    assert sentence(frame).startswith("It is unknown which part of the model each kernel is")
    assert sentence(frame).endswith("open the trace of the graphs' capture with it: capture=.")


def test_every_kernel_of_a_recorded_graph_is_known_by_its_annotation() -> None:
    frame = replayed(Trace.open(shared_input("cases/serving/ann_all.json.gz")))
    annotated = frame[frame["known_by"] == "annotation"]
    assert len(annotated) >= 540
    found = frame.groupby("role")["us"].sum()
    for role in ("gate_up", "down", "qkv", "o_proj", "lm_head", "attention", "norm", "rope", "cache"):
        assert found[role] == pytest.approx(TRUTH["sglang_decode"][role], rel=0.01)


@pytest.mark.parametrize("by", ["name", "category", "call_path"])
def test_operators_name_what_graphs_run(by: str) -> None:
    path = shared_trace("tracelens/inference/sglang_decode")
    frame = operators(Trace.open(path), by=by)
    rows = frame[frame["name"].str.startswith("[graph] ")]
    assert rows["device_self_ns"].sum() == replayed(Trace.open(path))["us"].sum() * 1000
    assert rows.set_index("name")["device_self_ns"]["[graph] qkv"] == pytest.approx(903_500, rel=0.01)
    outside = frame.loc[frame["name"] == "(no operator)", "device_self_pct"].sum()
    assert outside < 1
    assert frame["device_self_pct"].sum() == pytest.approx(100)


def test_modules_of_a_capture_are_those_of_the_replay() -> None:
    trace = Trace.open(shared_input("cases/serving/ann_all.json.gz"))
    frame = operators(trace, by="module")
    assert frame.loc[frame["name"] == "(no module)", "device_self_pct"].sum() < 1


# -- where else replayed kernels show: pieces of a graph within a module, call stacks, one event -------------


def in_pieces() -> list[dict]:
    """A step whose graph is replayed in two pieces, the second one within a module and an operator."""
    events = [event("user_annotation", "step[DECODE bs=4]", 0, 900_000)]
    events.append(event("cpu_op", "aten::embedding", 500, 100))
    events.append(event("python_function", "nn.Module: GraphModule_0", 4000, 4000, **{"Python id": 1}))
    events.append(event("cpu_op", "vllm::piece", 4500, 3000))
    for call, at in ((7, 1000), (8, 5000)):
        events.append({**launch(at, call), "name": "cudaGraphLaunch"})
    names = [NAMES[role] for role in model(*[DENSE] * 4)]
    times = [TIME.get(role, 3) for role in model(*[DENSE] * 4)]
    start = 10_000
    for at, (name, time) in enumerate(zip(names, times, strict=True)):
        events.append(kernel(name, start, 100 * time, correlation=7 if at < 20 else 8))
        start += 100 * time + 100
    return events


def in_pieces_around_attention(block: list[str], layers: int) -> tuple[list[dict], list[str]]:
    """vLLM's piecewise graphs: attention and its cache are launched by operators between them."""
    events: list[dict] = []
    truth: list[str] = []
    rest, begin = block[5:], ["norm", "qkv", "rope"]
    pieces = [(["embedding", *begin], "")]
    for layer in range(layers):
        pieces += [(["cache"], "vllm::kv_cache_update"), (["attention"], "vllm::unified_attention")]
        pieces.append(([*rest, *(begin if layer < layers - 1 else ["norm"])], ""))
    pieces += [(["lm_head"], "aten::mm"), (["sampling"], "aten::argmax")]
    free = 10_000
    for at, (piece, operator) in enumerate(pieces):
        if operator:
            events.append(event("cpu_op", operator, 1000 * at + 1000, 900))
        graph = {} if operator else {"name": "cudaGraphLaunch"}
        events.append({**launch(1000 * at + 1100, at + 1), **graph})
        for role in piece:
            events.append(kernel(NAMES[role], free, 1000 * TIME.get(role, 3), correlation=at + 1))
            free += 1000 * TIME.get(role, 3) + 500
        truth += piece
    label = "execute_context_0(0)_generation_32(32)"
    return [event("user_annotation", label, 0, 1000 * len(pieces) + 2000), *events], truth


@pytest.mark.parametrize("block", [DENSE, EXPERTS])
def test_graphs_in_pieces_between_attention_that_operators_launch(tmp_path: Path, block: list[str]) -> None:
    events, truth = in_pieces_around_attention(block, 6)
    known = roles_of(job(tmp_path, events).rank(0))
    assert not known.refused
    assert known.role.tolist() == truth
    eager = [role in ("cache", "attention", "lm_head", "sampling") for role in truth]
    assert known.known_by.tolist() == ["operator" if each else "structure" for each in eager]


@pytest.mark.parametrize(("by", "outside"), [("name", "(no operator)"), ("module", "(no module)")])
def test_pieces_of_graphs_within_operators_and_modules_count_once(tmp_path: Path, by, outside: str) -> None:
    trace = job(tmp_path, in_pieces())
    frame = operators(trace, by=by)
    rank_trace = trace.rank(0)
    work = int(rank_trace.dur[rank_trace.is_device].sum())
    assert frame["device_self_ns"].sum() == work
    assert (frame["device_self_ns"] >= 0).all()
    assert (frame["kernels"] >= 0).all()
    owner = frame.set_index("name")["kernels"]["vllm::piece" if by == "name" else "GraphModule_0"]
    assert owner == len(model(*[DENSE] * 4)) - 20
    assert outside not in set(frame["name"]) or by == "module"


def test_call_stacks_divide_a_graph_by_its_roles(tmp_path: Path) -> None:
    trace = job(tmp_path, in_pieces())
    frame = call_stacks(trace).set_index("node")
    added = frame[frame["name"].str.startswith("[graph] ")]
    launches = frame[frame["name"] == "cudaGraphLaunch"]
    assert len(launches) == 2
    assert added.groupby("parent_node")["device_ns"].sum().to_dict() == launches["device_ns"].to_dict()
    assert added.groupby("parent_node")["kernels"].sum().to_dict() == launches["kernels"].to_dict()
    assert added["host_ns"].eq(0).all()
    truth = pd.Series([TIME.get(role, 3) * 100 for role in model(*[DENSE] * 4)])
    by_role = truth.groupby([f"[graph] {role}" for role in model(*[DENSE] * 4)]).sum()
    assert added.groupby("name")["device_ns"].sum().to_dict() == by_role.to_dict()
    first = call_stacks(trace, Scope(names=(NAMES["attention"],))).set_index("node")
    assert first[first["name"].str.startswith("[graph] ")]["name"].unique().tolist() == ["[graph] attention"]
    assert first.index.isin(frame.index).all(), "a node has the same number in every scope"
    modules = module_stacks(trace)
    assert modules["device_ns"].sum() == truth.sum()


def test_one_replayed_kernel_says_what_it_is() -> None:
    path = shared_trace("tracelens/inference/sglang_decode")
    for capture, known_by, operator in (
        (None, "structure", ""),
        (shared_input("recordings/captures/sglang_decode"), "capture", "aten::mm"),
    ):
        trace = Trace.open(path, capture=capture)
        rank_trace, known = trace.rank(0), roles_of(trace.rank(0))
        at = int(np.flatnonzero(known.role == "down")[5])
        facts = inspect_event(trace, 0, int(rank_trace.event_id[known.rows[at]]), replay=False)
        assert facts.role is not None
        assert (facts.role.role, facts.role.layer, facts.role.known_by) == ("down", 5, known_by)
        assert facts.role.operator == operator
        assert "RowParallelLinear" in facts.role.module or capture is None
        shown = event_content(facts)
        (rows,) = (each["rows"] for each in shown["sections"] if each["title"] == "Part of the model")
        assert rows[0] == ["Role", ["down"]]


def test_why_a_replayed_kernel_has_no_role(tmp_path: Path) -> None:
    events = [event("user_annotation", "step[DECODE bs=4]", 0, 100_000)]
    events.append({**launch(1000, 7), "name": "cudaGraphLaunch"})
    events += [kernel(f"k{at}", 10_000 + 5_000 * at, 4_000, correlation=7) for at in range(3)]
    trace = job(tmp_path, events)
    facts = inspect_event(trace, 0, len(events) - 1, replay=False)
    assert facts.role is None
    assert "calls of attention" in facts.missing["role"]
    assert "capture=" in facts.missing["role"]
    assert facts.event.name == "k2"
    frame = call_stacks(trace)
    assert not frame["name"].str.startswith("[graph]").any()


def test_nothing_is_placed_where_there_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training job pays nothing for it."""

    def asked(*_: object) -> None:
        raise AssertionError("steps of a server were looked for")

    for module in ("roles", "bubbles", "table"):
        for name in ("own_work", "_labels"):
            monkeypatch.setattr(f"hta_widgets.analysis.serving.{module}.{name}", asked, raising=False)
    trace = Trace.open(examples.path("gpt2_ddp"), cache=False)
    overview(trace)
    operators(trace)
    assert not call_stacks(trace)["name"].str.startswith("[graph]").any()
    assert operator_lines(trace.rank(0), Scope(), "device").lines
    row = int(np.flatnonzero(trace.rank(0).is_device)[0])
    facts = inspect_event(trace, 0, int(trace.rank(0).event_id[row]), replay=False)
    assert facts.role is None
    assert "role" not in facts.missing


def test_runs_of_a_server_are_compared_by_roles(tmp_path: Path) -> None:
    lines = operator_lines(job(tmp_path, in_pieces()).rank(0), Scope(), "device").lines
    names = [line.name for line in lines]
    assert {"[graph] qkv", "[graph] attention", "vllm::piece"} <= set(names)
    assert "(no operator)" not in names
