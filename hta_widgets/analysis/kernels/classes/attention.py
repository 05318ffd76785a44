"""Names of fused attention: flash-attention 2 and 3, the memory-efficient kernels, FlashInfer and others."""

from __future__ import annotations

import re

from hta_widgets.analysis.kernels.classes.record import KernelClass, unit_of_types
from hta_widgets.analysis.kernels.units import Unit

# <head dimension, rows of Q, rows of K and V, ...>
_FLASH2 = re.compile(r"\bflash_(?:fwd|bwd)\w*<")
_TRAITS = re.compile(r"Flash_(?:fwd|bwd)_kernel_traits<(?:\(int\))?\d+, (?:\(int\))?(\d+), (?:\(int\))?(\d+)")
_FLASH3 = re.compile(r"FlashAttn(?:Fwd|Bwd)(?:Sm90|Combine|\w*)|N5flash\d+FlashAttn")
_FLASH4 = re.compile(r"FlashAttention(?:Forward|Backward)Sm(?:90|1\d\d)")
_TYPE = re.compile(r"(?:cutlass::|7cutlass\d{1,2})(half_t|bfloat16_t|float_e4m3_t)")
_EFFICIENT = re.compile(
    r"\bfmha_cutlass(?P<pass>[FB])_(?P<type>f16|bf16|f32)_\w*?(?P<tile>\d+x\d+)_\w*?sm(?P<arch>\d{2,3})"
)
_FLASHINFER = re.compile(
    r"\bflashinfer::\w*(?:(?:Batch|Single)(?:Prefill|Decode|MLA)|attention|Attention)|fmhaSm\d+\w*Kernel"
)
_TRTLLM = re.compile(r"\bfmhaSm\d+\w*?Qkv?(E4m3|Bfloat16|Fp16|E2m1)")
_TRTLLM_TYPES: dict[str, Unit] = {
    "E4m3": "tensor_8bit", "Bfloat16": "tensor_16bit", "Fp16": "tensor_16bit",
}  # fmt: skip
_NAMED = re.compile(
    r"\b_?(?:attn_fwd|attn_bwd|bwd_kernel_dk_dv|bwd_kernel_dq|kernel_unified_attention|paged_attention|fwd_grouped_"
    r"kernel_stage|flash_attn)|flex_attention"
)


def attention(name: str) -> KernelClass | None:
    """The class of a kernel that computes attention as a whole; None of others."""
    if _FLASH3.search(name):
        found = _TYPE.search(name)
        return KernelClass("flash-attention 3", "attention", unit_of_types([found[1]]) if found else None)
    if _FLASH4.search(name):
        return KernelClass("flash-attention 4", "attention")
    if _FLASH2.search(name):
        traits = _TRAITS.search(name)
        # Its products are of 16 bits only; the kernels beside it convert and add up.
        unit: Unit | None = "tensor_16bit" if "kernel_traits" in name and not _BESIDE.search(name) else None
        return KernelClass(
            "flash-attention 2", "attention", unit, f"{traits[1]}x{traits[2]}" if traits else None
        )
    if found := _EFFICIENT.search(name):
        arch = int(found["arch"])
        if found["type"] != "f32":
            return KernelClass(
                "mem-efficient", "attention", "tensor_16bit" if arch >= 70 else None, found["tile"]
            )
        # CUTLASS multiplies fp32 thrice in TF32, which keeps its precision
        units: Unit | None = "tensor_tf32" if arch >= 80 else None
        return KernelClass("mem-efficient", "attention", units, found["tile"], operand="fp32")
    if found := _TRTLLM.search(name):
        return KernelClass("TensorRT-LLM", "attention", _TRTLLM_TYPES.get(found[1]))
    if _FLASHINFER.search(name):
        return KernelClass("FlashInfer", "attention")
    if found := _NAMED.search(name):
        library = "Triton" if name.startswith(("triton_", "kernel_unified_attention")) else None
        return KernelClass("vLLM" if "vllm::" in name[:24] else library, "attention")
    return None


_BESIDE = re.compile(r"\bflash_(?:fwd_splitkv_combine|bwd_(?:dot|convert|clear))")
