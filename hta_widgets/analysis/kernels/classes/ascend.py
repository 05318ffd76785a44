"""Names of CANN, for Ascend: an operator of its library, or a node of a graph, by its type and a number."""

from __future__ import annotations

import re

from hta_widgets.analysis.kernels.classes.record import KernelClass

_LONGEST = 100  # of a type's name
# "MatMulV2" is version 2 of its type, "Conv2D1" the node 1 of a graph, "MaxPoolV12" both
_TYPE = re.compile(r"(?P<type>[A-Z][A-Za-z0-9]*?)(?:V\d)?\d*")
_TYPES = tuple(
    (re.compile(pattern), operation)
    for pattern, operation in (
        (r"(?:Quant|WeightQuant|Transpose)?(?:Batch)?Mat[mM]ul|Grouped?Mat[mM]ul", "gemm"),
        (r"(?:Depthwise)?Conv[23]D(?:Transpose|Backprop(?:Filter|Input))?D?", "convolution"),
        (
            r"FlashAttentionScore(?:Grad)?|(?:Prompt|Incre)FlashAttention|FusedInferAttentionScore|PagedAttention\w*",
            "attention",
        ),
        (r"(?:Log)?Softmax(?:Grad)?", "softmax"),
        (r"(?:Add)?(?:Layer|Rms|Group|Batch)Norm(?:Grad)?", "normalization"),
        (r"TransData|Transpose|TransposeD", "layout"),
        (r"MemSet|ZerosLike|OnesLike|Fill", "fill"),
        (r"TensorMove|ConcatD?|SplitD?|SliceD?|StridedSliceD?", "copy"),
        (r"Reduce(?:Sum|Mean|Max|Min|All|Any)(?:Op|D)?|(?:Max|Avg)Pool\w*", "reduction"),
        (
            r"Cast|Adds?|Sub|Muls?|(?:Real)?Divs?|Addc(?:mul|div)|Axpy|Sqrt|Rsqrt|Exp|Neg|Pow|Tanh|Sigmoid|SwiGlu|"
            r"(?:Relu|Gelu|Silu)(?:Grad)?",
            "elementwise",
        ),
    )
)


def ascend(name: str) -> KernelClass | None:
    """Operators of CANN by their type, the last word: "aclnnMm_MatMulCommon_MatMulV2", "trans_TransData_9".

    Without `aclnn` before it others, too, may name a node so.
    """
    library = "CANN" if name.startswith("aclnn") else None
    words = name.split("_")
    if words[-1].isdecimal():
        words.pop()
    word = words[-1] if words else ""
    if not (library or name.startswith("trans_") or name[:1].isupper()) or len(word) > _LONGEST:
        return None
    found = _TYPE.fullmatch(word)
    kinds = (operation for pattern, operation in _TYPES if found and pattern.fullmatch(found["type"]))
    operation = next(kinds, None)
    return KernelClass(library, operation) if operation or library else None
