"""Names of C++ templates that multiply matrices: cuBLAS's vectors, cuDNN's engines, CUTLASS's kernels."""

from __future__ import annotations

import re

from hta_widgets.analysis.kernels.classes.record import KernelClass, unit_of_types
from hta_widgets.analysis.kernels.units import Unit

_SIMT_OF: dict[str, Unit] = {"float": "simt_fp32", "double": "simt_fp64"}
# The type in which the sum is kept is the last of the four types.
_VECTOR = re.compile(
    r"\b(?:gemv\w*|gemvx::kernel)<(?:int, int, )?(?:[\w:]+, ){3}(?P<sum>[\w:]+)[,>]"
    r"|\bgemv\w*<|\bgemvx::kernel<"
)
_SMALL = re.compile(r"\b(?:gemmSN_(?P<layout>[NT]{2})\w*|gemmk1_kernel|gemm_kernel\w*)<(?P<sum>\w+),")
_LARGE_K = re.compile(r"\b(?P<sum>[sd])gemm_largek\w*<")
_MAGMA = re.compile(r"\bmagma(?:_lds128)?_(?P<sum>[sd])gemm\w*<")


def simt_template(name: str) -> KernelClass | None:
    """Kernels of cuBLAS without tensor cores whose types are template arguments."""
    if found := _VECTOR.search(name):
        return KernelClass("cuBLAS", "gemv", _SIMT_OF.get(found["sum"] or ""))
    if found := _SMALL.search(name):
        layout = found["layout"]
        return KernelClass(
            "cuBLAS", "gemm", _SIMT_OF.get(found["sum"]), layout=layout.lower() if layout else None
        )
    if found := _LARGE_K.search(name) or _MAGMA.search(name):
        library = "MAGMA" if "magma" in found[0] else "cuBLAS"
        return KernelClass(library, "gemm", "simt_fp32" if found["sum"] == "s" else "simt_fp64")
    if "splitKreduce_kernel" in name:
        return KernelClass("cuBLASLt" if "cublasLt::" in name else "cuBLAS", "reduction", split_k=True)
    return None


_DIRECT = re.compile(
    r"\b(?:(?P<named>(?:im|ex)plicit_convolve_(?P<sum>[sdh])gemm|precomputed_convolve_(?P<other>[sdh])gemm)"
    r"|(?:[dw]grad\w*_engine|[dw]grad2d_\w+|[dw]grad_\w*alg\w*))(?:<(?P<type>\w+))?"
)
_SDPA = re.compile(r"\bcudnn_generated_\w*?sdpa_\w*?(?P<pass>fprop|bprop)_(?P<rest>\w+)")
_CUDNN = re.compile(r"\b(?:cudnn(?:_infer|_train)?|cask_cudnn(?:_infer|_train)?|cask__5x_cudnn)::")
_GROUPED = re.compile(
    r"\b(?:conv2d_grouped_direct_kernel|[dw]grad2d_grouped_direct_kernel|conv2d_c1_k1_nc?hw?\w*"
    r"|convolve_common_engine\w*?)(?:_(?=float_)|<(?:[^<>]*?, )??(?=float|double|__half))?"
    r"(?P<type>float|double)?"
)
_OLD = re.compile(r"\bcudnn_convolve_(?:precomputed_)?(?P<sum>[sdh])gemm")
_HMMA = re.compile(r"\b\w+_hmma_implicit_gemm_\w*?_(?P<tile>\d+x\d+x\d+)|xmma_cudnn::\w+_hmma_\w*traits")
_WINOGRAD = re.compile(r"\bwinograd(?:_nonfused)?::\w+<(?P<type>\w+)")
_BESIDE_CONVOLUTION = re.compile(
    r"[wW]inograd|\bfft[12]d_|\bDSE::\w*fft|im2col|computeOffsets|\bflip_filter\b"
)
_OF_LETTER: dict[str, Unit] = {"s": "simt_fp32", "d": "simt_fp64", "h": "simt_fp16"}
_LAYOUT_CHANGE = re.compile(r"(?:nchwToNhwc|nhwcToNchw|nchwToFold|nhwcAddPadding)", re.IGNORECASE)


def cudnn_engine(name: str) -> KernelClass | None:
    """Kernels of cuDNN: convolutions without tensor cores, their helpers, attention and normalization."""
    if found := _DIRECT.search(name):
        letter = found["sum"] or found["other"]
        unit = _OF_LETTER[letter] if letter else _SIMT_OF.get(found["type"] or "")
        return KernelClass("cuDNN", "convolution", unit)
    if found := _SDPA.search(name):
        words = found["rest"].split("_")
        tile = next((word for word in words if re.fullmatch(r"\d+x\d+x\d+", word)), None)
        types = [word for word in words if word in ("f16", "bf16", "fp8", "e4m3")]
        return KernelClass("cuDNN", "attention", unit_of_types(types[:1]) if types else None, tile)
    if _LAYOUT_CHANGE.search(name):
        return KernelClass("cuDNN", "layout")
    if found := _GROUPED.search(name):  # the types of input, weights and result
        return KernelClass("cuDNN", "convolution", _SIMT_OF.get(found["type"] or ""))
    if found := _OLD.search(name):
        return KernelClass("cuDNN", "convolution", _OF_LETTER[found["sum"]])
    if found := _HMMA.search(name):
        return KernelClass("cuDNN", "convolution", "tensor_16bit", found["tile"])
    if found := _WINOGRAD.search(name):
        return KernelClass("cuDNN", "convolution", _SIMT_OF.get(found["type"] or ""))
    if _BESIDE_CONVOLUTION.search(name):
        return KernelClass("cuDNN" if _CUDNN.search(name) or "fft" in name else None, "convolution")
    if _CUDNN.search(name):
        return KernelClass("cuDNN", "normalization" if re.search(r"\bbn_|norm", name) else None)
    return None


_MMA_ATOM = re.compile(
    r"SM\d{2,3}_(?:MMA_)?\d+x\d+x\d+_(?:\d+x\d+x\d+_)?(?P<sum>F32|F16|S32|F64)"
    r"(?P<a>E4M3|E5M2|BF16|TF32|F16|F64|S8|U8|E2M1)(?P<b>E4M3|E5M2|BF16|TF32|F16|F64|S8|U8|E2M1)"
)
_ELEMENT = re.compile(
    r"(?:cutlass::|7cutlass\d{1,2})(half_t|bfloat16_t|float_e4m3_t|float_e5m2_t|tfloat32_t)"
)
_SHAPE = re.compile(r"GemmShape<(\d+), ?(\d+), ?(\d+) ?>|GemmShapeILi(\d+)ELi(\d+)ELi(\d+)E")
_STAGES = re.compile(r"\bMainloop\w+<(\d{1,2})[,>]")


def cutlass_template(name: str) -> KernelClass | None:
    """Kernels of CUTLASS that are named by their template, not by the generator of its library."""
    if "cutlass" not in name:
        return None
    if "ReduceSplitK" in name:
        return KernelClass("CUTLASS 2", "reduction", split_k=True)
    three = "device_kernel<" in name or "13device_kernelI" in name
    convolution = "ImplicitGemm" in name
    if not convolution and "Gemm" not in name and "gemm::" not in name:
        return None
    atom, element, shape = _MMA_ATOM.search(name), _ELEMENT.findall(name), _SHAPE.search(name)
    unit = unit_of_types([atom["a"], atom["b"]]) if atom else None
    if unit is None and three and element:
        unit = unit_of_types(element[:1])
    stages = _STAGES.search(name)
    return KernelClass(
        "CUTLASS 3" if three else "CUTLASS 2",
        "convolution" if convolution else "gemm",
        unit,
        "x".join(side for side in shape.groups() if side) if shape else None,
        stages=int(stages[1]) or None if stages else None,
    )
