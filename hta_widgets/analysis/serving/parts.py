"""Which part of a transformer a kernel may belong to, by its name, its operator, or its module's."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from hta_widgets.analysis.kernels.classes import kernel_class

PRODUCT: Final = "product"
"""A matrix product: which one it is follows from its place."""
UNKNOWN: Final = "unknown"
LIGHT: Final = ("copy", "elementwise", "gather")
"""Kernels that only move or change numbers: their names do not tell what for."""

# The first that is found decides. Words of several engines: vLLM, SGLang, aiter, FlashInfer, TensorRT-LLM.
_WORDS: Final = tuple(
    (re.compile("|".join(patterns), re.IGNORECASE), part)
    for part, patterns in (
        (
            "communication",
            (r"all_?reduce", r"all_?gather", r"reduce_?scatter", r"all_?to_?all", r"cross_device_reduce",
             r"nccl", r"rccl", r"deep_?ep"),
        ),
        ("lm_head", (r"(?:^|_|\b)lm_head",)),
        ("lora", (r"(?:^|_|\b)lora_", r"(?:^|_|\b)[bs]gmv")),  # of vLLM, SGLang and Punica
        (
            "cache",
            (r"_and_(?:\w+_)?cache", r"store_(?:kv)?_?cache", r"set_(?:mla_)?kv_buffer",
             r"append_?paged_?kv", r"(?:kv|write)_?cache_?(?:update|write|store|scatter)",
             r"(?:update|write)_?(?:paged_?)?kv_?cache", r"rope_?and_?assign_?qkv"),
        ),
        # Triton's in SGLang, whose second name may end in _rope
        ("attention", (r"^_fwd_(?:grouped_)?kernel(?:_stage\d\w*)?$",)),
        ("rope", (r"rotary", r"\brope", r"_rope", r"rope_", r"rotate_half")),
        (
            "experts",
            (r"moe", r"expert", r"matmul_ogs", r"bitmatrix", r"combined_routing", r"finalize_matmul",
             r"topk_?(?:forward|gating|softmax|sigmoid)", r"group(?:ed)?_?(?:\w+_)?gemm",
             r"GroupProblemShape", r"\bGemmType\)[12]",  # products of groups of CUTLASS and of DeepGEMM
             r"group(?:ed)?_topk", r"^bmm_\w*_dynB", r"_ep_(?:scatter|gather)"),
        ),
        ("norm", (r"(?:rms|layer|group|qk)_?norm", r"norm_quant", r"mean_mul_(?:pow|rsqrt)", r"_rsqrt")),
        (
            "attention",
            (r"reduce_segments", r"splitkv_(?:combine|mla)", r"merge_attn", r"merge_?state", r"fmha",
             r"mla_(?:dec|reduce|a\d+w\d+|prefill)", r"multihead_attention", r"\bkernel_?mha", r"\bxqa",
             r"prepare_varlen_num_blocks", r"\bpa_(?:bf16|fp16|fp8|decode|prefill|ragged)",  # paged, of aiter
             r"(?:paged|unified|flash|fused|decode|prefill|mla|ragged|extend)_?(?:attention|attn|mla|mha)",
             r"(?:attn|attention)_fwd", r"scaled_dot_product", r"mqa_logits"),
        ),
        ("activation", (r"act_and_mul", r"silu", r"swiglu", r"gelu", r"_relu")),
        (
            "sampling",
            (r"argmax", r"multinomial", r"sampl", r"top_?[pk]_?(?:mask|renorm|filter|top_?p)", r"penalt",
             r"token_bitmask|grammar_bitmask", r"resolve_future_token"),
        ),
        (
            "quantization",
            (r"(?:per_token|per_tensor|scaled|dynamic|block|group|static)_?\w*quant", r"quantize",
             r"(?:fp8|act)_quant", r"cvt_fp"),
        ),
    )
)  # fmt: skip
_OF_OPERATION: Final = {
    "gemm": PRODUCT, "gemv": PRODUCT, "attention": "attention", "normalization": "norm",
    "embedding": "embedding", "collective": "communication", "copy": "copy", "fill": "copy",
    "layout": "copy", "indexing": "gather", "elementwise": "elementwise", "reduction": "elementwise",
    "softmax": "elementwise", "sort": "sampling", "scan": "elementwise",
}  # fmt: skip
_PRODUCTS: Final = re.compile(
    r"^Cijk_|\bnvjet|gemm|gemv|splitK|(?:^|_)matmul|cutlass|wvSplitK|LLGemm|\bmarlin|awq_|gptq_|tgemm|skinny|^bmm_|wv_splitk"
)
_COPIES: Final = re.compile(
    r"^Mem(?:cpy|set)|to_copy|copy|\bcat\b|CatArray|concat|clone|transpose|contiguous", re.IGNORECASE
)
# What may be written into the names of products that do it as well: `..._ldg8_relu_f2f_tn`.
_EPILOGUES: Final = ("activation", "quantization")
_FUSED: Final = re.compile(r"^triton_(?:poi|red|per)_fused")
_NAMELESS: Final = re.compile(r"^triton_\w+?_fused_\d+$")

_OPERATORS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), part)
    for pattern, part in (
        (r"^aten::(?:mm|addmm|bmm|baddbmm|linear|matmul|_scaled_mm|_grouped_mm)$", PRODUCT),
        (r"^aten::(?:copy_|clone|_to_copy|contiguous|cat|fill_|zero_|slice_scatter)$", "copy"),
        (r"^aten::(?:embedding|index_select)$", "embedding"),
        (r"^aten::(?:argmax|multinomial|topk|sort)$", "sampling"),
    )
)
_COMPUTES: Final = re.compile(r"^aten::(?:add|sub|mul|div|neg|sum|mean|cumsum|arange|argmax)_?$")
_MOVES: Final = re.compile(
    rf"{_COMPUTES.pattern}|^aten::(?:_?foreach_copy|copy|clone|_to_copy|cat|fill|zero|embedding|index\w*)_?$"
)
# What no operator launches that only moves or changes numbers.
_OF_MODELS: Final = (
    "norm", "rope", "cache", "attention", "experts", "activation", PRODUCT, "lm_head", "lora"
)  # fmt: skip
_MODULES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), role)
    for pattern, role in (
        (r"(?:^|[._])lm_head|logits_?processor|LMHead_\d+$|output_layer$", "lm_head"),
        (r"qkv|(?:^|[._])[qkv]_(?:[ab]_)?proj|query_key_value|kv_a_proj|QKVParallelLinear", "qkv"),
        (r"Attention\w*\.RowParallelLinear", "o_proj"),
        (r"Attention\w*\.(?:Replicated|ColumnParallel)Linear", "qkv"),  # of latents
        (r"MLP\w*\.RowParallelLinear", "down"),
        (r"MoE\w*\.ReplicatedLinear|MoEGate", "router"),
        (r"(?:self_attn|attn|attention)\.(?:o_proj|out_proj|dense|proj|wo)|(?:^|[._])o_proj", "o_proj"),
        (r"gate_up|gate_proj|up_proj|w1_w3|fc1|c_fc|MergedColumnParallelLinear", "gate_up"),
        (r"down_proj|fc2|mlp\.c_proj|(?:^|\.)w2", "down"),
        (r"(?:mlp|moe|block_sparse_moe)\.(?:gate|router)(?:$|\.)|(?:^|[._])router", "router"),
        (r"expert|FusedMoE", "experts"),
        (r"rotary|rope", "rope"),
        (r"norm", "norm"),
        (r"embed|wte|VocabParallelEmbedding", "embedding"),
        (r"act_fn|SiluAndMul|GeluAndMul|activation", "activation"),
        (r"sampler", "sampling"),
        (r"(?:self_)?attn|attention", "attention"),
    )
)  # fmt: skip


@lru_cache(maxsize=100_000)
def part_of_kernel(name: str) -> str:
    """The part that a kernel's name tells, `PRODUCT` for any matrix product, or `UNKNOWN`."""
    text = name[:4096]
    if _NAMELESS.search(text):  # of operators that are fused into it, none is named
        return UNKNOWN
    named = next((part for pattern, part in _WORDS if pattern.search(text)), "")
    if named and named not in _EPILOGUES:
        return named
    operation = kernel_class(text).operation
    if operation in ("attention", "normalization"):  # which may be written with what multiplies matrices
        return _OF_OPERATION[operation]
    if operation in ("gemm", "gemv") or _PRODUCTS.search(text):
        return PRODUCT
    if named:
        return named
    if _COPIES.search(text):
        return "copy"
    if operation in _OF_OPERATION:
        return _OF_OPERATION[operation]
    return "elementwise" if _FUSED.search(text) else UNKNOWN


@lru_cache(maxsize=10_000)
def part_of_operator(name: str) -> str:
    """The part that an operator's name tells."""
    for pattern, part in (*_OPERATORS, *_WORDS):
        if pattern.search(name):
            return part
    return UNKNOWN


def role_of_part(part: str) -> str:
    """What a part that no place makes anything else of is called as a role, "" for what is not known."""
    return "elementwise" if part == "gather" else "" if part == UNKNOWN else part


def contradicts(part: str, operator: str) -> bool:
    """Whether a kernel that looks like this part is none that PyTorch's operator launches."""
    return (part in _OF_MODELS and bool(_MOVES.search(operator))) or (
        part == "copy" and bool(_COMPUTES.search(operator))
    )


@lru_cache(maxsize=10_000)
def part_of_module(name: str) -> str:
    """The role of a module by its full name, or its class's; "" where neither tells."""
    return next((role for pattern, role in _MODULES if pattern.search(name)), "")
