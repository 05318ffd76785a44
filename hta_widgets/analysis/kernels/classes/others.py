"""Names of kernels that multiply no matrices, and of products that name neither tile nor instruction."""

from __future__ import annotations

import re

from hta_widgets.analysis.kernels.classes.record import KernelClass, epilogue_of, unit_of_types

_BMM = re.compile(
    r"^bmm_(?P<out>[A-Z][a-z0-9]+)_(?P<a>(?:Bfloat16|Fp16|E\dm\d|Mx\w\dm\d))(?P<b>Bfloat16|Fp16|E\dm\d|Mx\w\dm\d)?_"
)
_BMM_TYPES = {"Bfloat16": "bf16", "Fp16": "fp16"}
# the types of the result, of activations and of weights, which are converted to the activations'
_OGS = re.compile(
    r"^_?matmul_ogs_(?:[NT]+_[a-z]+\d+\w*?x(?P<type>[a-z]+\d+)\w*?x)?\w*?_(?P<tile>\d+x\d+x\d+)x(?P<split>\d+)"
)
_PRODUCTS = (
    (re.compile(r"\bdeep_gemm::\w*fp8_\w*gemm"), KernelClass("DeepGEMM", "gemm", "tensor_8bit")),
    (re.compile(r"\bdeep_gemm::"), KernelClass("DeepGEMM", "gemm")),
    (re.compile(r"\bmarlin\w*::Marlin\b|\bMarlin<"), KernelClass("Marlin", "gemm")),
    (re.compile(r"^fused_moe_kernel"), KernelClass("Triton", "gemm")),
    (re.compile(r"^gemm_kernel$"), KernelClass("oneDNN", "gemm")),
)


def other_product(name: str) -> KernelClass | None:
    """Matrix products of TensorRT-LLM, triton_kernels, DeepGEMM, Marlin and oneDNN."""
    if found := _BMM.match(name):
        types = [_BMM_TYPES.get(found[side], found[side] or "") for side in ("a", "b")]
        tile, stages = re.search(r"_t(\d+x\d+x\d+)", name), re.search(r"_s(\d{1,2})_", name)
        unit = unit_of_types(type_ for type_ in types if type_)
        return KernelClass(
            "TensorRT-LLM", "gemm", unit, tile[1] if tile else None, stages=int(stages[1]) if stages else None
        )
    if found := _OGS.match(name):
        words = name[found.end() :].split("_")
        unit = unit_of_types([found["type"]]) if found["type"] else None
        return KernelClass(
            "Triton", "gemm", unit, found["tile"], split_k=found["split"] != "1", epilogue=epilogue_of(words)
        )
    return next((known for pattern, known in _PRODUCTS if pattern.search(name)), None)


_TRITON = re.compile(r"^triton_(poi|red|per|tem|mm|bmm|for|split_scan)_")
_TRITON_KINDS = {
    "poi": "elementwise", "for": "elementwise", "red": "reduction", "per": "reduction", "mm": "gemm",
    "bmm": "gemm", "split_scan": "scan",
}  # fmt: skip


def triton(name: str) -> KernelClass | None:
    """Kernels that torch.compile generates: pointwise, reductions, persistent reductions and templates."""
    found = _TRITON.match(name)
    if found is None:
        return None
    operation = _TRITON_KINDS.get(found[1])
    if found[1] == "tem" and re.search(r"_(?:mm|addmm|bmm|baddbmm)(?:_|$)", name):
        operation = "gemm"
    return KernelClass("Triton", operation)


_NATIVE = re.compile(
    r"\bat::(?:native|cuda)\b|_ZN2at6native|\bcunn_|\bmulti_tensor_apply_kernel<|\bat::\w+_kernel<"
)
# The first that is found decides; what a kernel applies tells more than the loop that applies it.
_NATIVE_KINDS = tuple(
    (re.compile(pattern), operation)
    for pattern, operation in (
        (r"[sS]oft[mM]ax", "softmax"),
        (
            r"[lL]ayer_?[nN]orm|[bB]atch_?[nN]orm|[gG]roup_?[nN]orm|RMSNorm|GammaBeta|ComputeInternalGradients",
            "normalization",
        ),
        (r"[aA]dam|sgd|Lamb|FusedOptimizer", "optimizer"),
        (r"embedding|Embedding|compute_grad_weight", "embedding"),
        (
            r"direct_copy_kernel|bfloat16_copy_kernel|float\w*_copy_kernel|CatArray|copy_device_to_device",
            "copy",
        ),
        (r"FillFunctor|fill_kernel", "fill"),
        (r"conv_depthwise|conv2d_|slow_conv|im2col|col2im", "convolution"),
        (r"index|gather|scatter|masked_|Indices", "indexing"),
        (r"[sS]ort|[tT]op[kK]", "sort"),
        (r"scan|cumsum", "scan"),
        (r"reduce_kernel|reduce_1Block|ReduceOp|pool|NLLCriterion|nll_loss", "reduction"),
        (
            r"elementwise_kernel|multi_tensor_apply|foreach|distribution_|fused_dropout|PointwiseOp|ForeachFunctor",
            "elementwise",
        ),
    )
)


def pytorch(name: str) -> KernelClass | None:
    """PyTorch's own kernels, by what they apply."""
    if not _NATIVE.search(name):
        return None
    kind = next((operation for pattern, operation in _NATIVE_KINDS if pattern.search(name)), None)
    return KernelClass("PyTorch", kind)


_SIMPLE = tuple(
    (re.compile(pattern), KernelClass(library, operation))
    for pattern, library, operation in (
        (r"^nccl(?:Dev)?Kernel|^ncclSymk|^void nccl", "NCCL", "collective"),
        (
            r"\b(?:at_cuda_detail::)?cub::Device(?:Radix|Merge|Segmented)?Sort\w*|\bDeviceRadixSort",
            "CUB",
            "sort",
        ),
        (r"\bcub::Device\w*Scan", "CUB", "scan"),
        (r"\bcub::Device\w*Reduce", "CUB", "reduction"),
        (r"\bcub::", "CUB", None),
        (r"\brocprim::", "rocPRIM", None),
        (r"split_embedding_\w*(?:forward|backward|grad)|permute_pooled_embs", "FBGEMM", "embedding"),
        (r"\bfbgemm_gpu::", "FBGEMM", None),
        (r"\bvllm::\w*(?:rms|layer)_norm", "vLLM", "normalization"),
        (r"\bvllm::\w*(?:act_and_mul|rotary_embedding)", "vLLM", "elementwise"),
        (r"\bvllm::\w*(?:reshape_and_cache|copy_blocks|gather_cache)", "vLLM", "copy"),
        (r"\bvllm::", "vLLM", None),
        (r"\bflashinfer::norm::", "FlashInfer", "normalization"),
        (r"\bflashinfer::", "FlashInfer", None),
        (r"\btransformer_engine::normalization", "Transformer Engine", "normalization"),
        (r"\btransformer_engine::", "Transformer Engine", None),
        (r"\b(?:act|silu|gelu)_and_mul\w*|\b\w*rotary_embedding_kernel", None, "elementwise"),
        (r"\bstore_kv_?cache|\breshape_and_cache", None, "copy"),
        (r"\bsoftmax_(?:warp|fwd|bwd)", None, "softmax"),
    )
)


def simple(name: str) -> KernelClass | None:
    """Everything else that is known by a word."""
    return next((known for pattern, known in _SIMPLE if pattern.search(name)), None)
