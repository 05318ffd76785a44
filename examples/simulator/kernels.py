"""GPU kernels: names as PyTorch, cuBLAS, FlashAttention and NCCL give them, and a cost model.

A kernel takes as long as its arithmetic or its memory traffic, whichever is longer, on a made-up GPU of about
an H100's size. The point is not to predict a GPU but to give durations whose proportions are believable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from examples.simulator.tensor import Tensor

SM_COUNT = 132
WARPS_PER_SM = 64
REGISTERS_PER_SM = 65_536
SHARED_BYTES_PER_SM = 233_472
TENSOR_FLOPS_PER_NS = 420_000
MEMORY_BYTES_PER_NS = 2_300
SHORTEST_KERNEL_NS = 1_800

_BF16 = "c10::BFloat16"
_ANONYMOUS = "at::native::(anonymous namespace)::"

# Division by a number: PyTorch multiplies by its inverse.
DIVISION = (
    "at::native::BUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16,"
    " at::native::binary_internal::MulFunctor<c10::BFloat16> >"
)


@dataclass(frozen=True)
class Kernel:
    name: str
    duration_ns: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_bytes: int = 0

    def arguments(self) -> dict[str, Any]:
        """The launch facts Kineto records, with its own arithmetic for blocks, warps and occupancy."""
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        threads = self.block[0] * self.block[1] * self.block[2]
        warps_per_sm = blocks * threads / 32 / SM_COUNT
        return {
            "registers per thread": self.registers,
            "shared memory": self.shared_bytes,
            "blocks per SM": round(blocks / SM_COUNT, 6),
            "warps per SM": round(warps_per_sm, 6),
            "grid": list(self.grid),
            "block": list(self.block),
            "est. achieved occupancy %": self._occupancy_pct(threads, warps_per_sm),
        }

    def _occupancy_pct(self, threads: int, warps_per_sm: float) -> int:
        """Resident warps are bounded by what was launched, by registers and by shared memory."""
        block_warps = threads // 32
        limits = [WARPS_PER_SM // block_warps, REGISTERS_PER_SM // (self.registers * threads)]
        if self.shared_bytes:
            limits.append(SHARED_BYTES_PER_SM // self.shared_bytes)
        resident = min(warps_per_sm, float(min(limits) * block_warps))
        return int(100 * resident / WARPS_PER_SM)


def _ns(flops: int, nbytes: int) -> int:
    return max(SHORTEST_KERNEL_NS, flops // TENSOR_FLOPS_PER_NS, nbytes // MEMORY_BYTES_PER_NS)


def _blocks(count: int, size: int) -> int:
    return -(-count // size)


def gemm(m: int, n: int, k: int, layout: str = "tn") -> Kernel:
    """C[m, n] = A[m, k] B[k, n] in bfloat16; small `m` takes a small tile, as cuBLAS does."""
    tile_m, tile_n = (128, 128) if m >= 128 else (64, 64)
    duration = _ns(2 * m * n * k, 2 * (m * n + m * k + n * k))
    return Kernel(
        f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_{layout}_n_tilesize{tile_m}x{tile_n}x64_warpgroupsize1x1x1"
        "_execute_segment_k_off_kernel__5x_cublas",
        duration,
        (_blocks(n, tile_n), _blocks(m, tile_m), 1),
        (384, 1, 1),
        168,
        164_864,
    )


def elementwise(functor: str, result: Tensor, tensors: int) -> Kernel:
    """One pass over `tensors` tensors of the result's size."""
    return Kernel(
        f"void at::native::vectorized_elementwise_kernel<4, {functor}, std::array<char*, {tensors}ul> >"
        f"(int, {functor}, std::array<char*, {tensors}ul>)",
        _ns(0, tensors * result.nbytes),
        (_blocks(result.numel, 512), 1, 1),
        (128, 1, 1),
        32,
    )


def layer_norm(rows: int, width: int) -> Kernel:
    return Kernel(
        f"void {_ANONYMOUS}vectorized_layer_norm_kernel<c10::BFloat16, float, false>"
        f"(int, float, {_BF16} const*, {_BF16} const*, {_BF16} const*, float*, float*, {_BF16}*)",
        _ns(0, 4 * rows * width),
        (rows, 1, 1),
        (32, 4, 1),
        32,
        24,
    )


def layer_norm_backward(rows: int, width: int) -> tuple[Kernel, Kernel]:
    """The gradient of the input, then of weight and bias."""
    inner = "c10::BFloat16, float"
    return (
        Kernel(
            f"void {_ANONYMOUS}layer_norm_grad_input_kernel_vectorized<{inner}, false>"
            f"({_BF16} const*, {_BF16} const*, float const*, float const*, {_BF16} const*, {_BF16}*, int)",
            _ns(0, 8 * rows * width),
            (rows, 1, 1),
            (128, 1, 1),
            40,
            512,
        ),
        Kernel(
            f"void {_ANONYMOUS}GammaBetaBackwardCUDAKernelTemplate<{inner}, 64u, 1u, 128u,"
            f" true, true, false>(long, long, {_BF16} const*, {_BF16} const*, float const*, float const*,"
            f" {_BF16}*, {_BF16}*)",
            _ns(0, 6 * rows * width),
            (_blocks(width, 32), 32, 1),
            (32, 4, 1),
            48,
            4_224,
        ),
    )


def flash_attention(batch: int, heads: int, sequence: int, head_width: int, backward: bool) -> Kernel:
    """Causal attention: half of the full product, and 2.5 times the work on the way back."""
    flops = 2 * batch * heads * sequence * sequence * head_width * (5 if backward else 2) // 2
    way, registers = ("bwd", 255) if backward else ("fwd", 224)
    name = "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel" if backward else "flash_fwd_kernel"
    return Kernel(
        f"void pytorch_flash::{name}<pytorch_flash::Flash_{way}_kernel_traits"
        f"<{head_width}, 128, 128, 4, false,"
        " false, cutlass::bfloat16_t>, false, true, false, false, true, true, false, false>"
        f"(pytorch_flash::Flash_{way}_params)",
        _ns(2 * flops, 8 * batch * heads * sequence * head_width),
        (_blocks(sequence, 128), batch, heads),
        (128, 1, 1),
        registers,
        49_152,
    )


def decode_attention(batch: int, heads: int, context: int, head_width: int) -> Kernel:
    """One new token per sequence: the whole key-value cache is read once."""
    return Kernel(
        "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits"
        f"<{head_width}, 64, 128, 4, false, false,"
        " cutlass::bfloat16_t>, false, false, false, false, true, false, false, false>(Flash_fwd_params)",
        _ns(0, 4 * batch * heads * context * head_width),
        (1, 4, batch * heads),
        (128, 1, 1),
        168,
        81_920,
    )


def reduction(rows: int, width: int) -> Kernel:
    """Sum over rows: the gradient of a bias."""
    return Kernel(
        f"void at::native::reduce_kernel<128, 4, at::native::ReduceOp<{_BF16},"
        f" at::native::func_wrapper_t<{_BF16},"
        f" at::native::sum_functor<{_BF16}, float, {_BF16}>::operator()(at::TensorIterator&)"
        f"::{{lambda(float, float)#1}}>, unsigned int, {_BF16}, 4, 4> >",
        _ns(0, 2 * rows * width),
        (_blocks(width, 64), 4, 1),
        (32, 16, 1),
        46,
        8_208,
    )


def softmax(rows: int, width: int, backward: bool) -> Kernel:
    way = "SoftMaxBackward" if backward else "SoftMaxForward"
    return Kernel(
        f"void {_ANONYMOUS}cunn_{way}<8, c10::BFloat16, float, c10::BFloat16,"
        f" at::native::(anonymous namespace)::Log{way}Epilogue>({_BF16}*, {_BF16} const*, int)",
        _ns(0, (6 if backward else 4) * rows * width),
        (rows, 1, 1),
        (1024, 1, 1),
        40,
        128,
    )


def nll_loss(rows: int, backward: bool) -> Kernel:
    way = "backward" if backward else "forward"
    return Kernel(
        f"void {_ANONYMOUS}nll_loss_{way}_reduce_cuda_kernel_2d<{_BF16}, float, long>"
        f"({_BF16}*, {_BF16}*, {_BF16} const*, long const*, {_BF16} const*, bool, long, long, long, long)",
        _ns(0, 200 * rows),
        (1, 1, 1),
        (32, 1, 1),
        32,
        128,
    )


def argmax(rows: int, width: int) -> Kernel:
    return Kernel(
        f"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<{_BF16}, at::native::ArgMaxOps<float>,"
        " unsigned int, long, 4, 4> >",
        _ns(0, 2 * rows * width),
        (rows, 1, 1),
        (512, 1, 1),
        32,
        4_096,
    )


def gather_rows(rows: int, width: int) -> Kernel:
    return Kernel(
        "void at::native::vectorized_gather_kernel<16, long>"
        "(char*, char*, long*, int, long, long, long, long, bool)",
        _ns(0, 4 * rows * width),
        (rows, 1, 1),
        (96, 1, 1),
        24,
    )


def embedding_backward(rows: int, width: int) -> Kernel:
    return Kernel(
        f"void {_ANONYMOUS}compute_grad_weight<{_BF16}, long>(long const*, {_BF16} const*,"
        " long const*, long, long, long const*, long const*, float*, long)",
        _ns(0, 8 * rows * width),
        (_blocks(rows, 32), _blocks(width, 256), 1),
        (128, 1, 1),
        38,
    )


def fused_adamw(numel: int) -> Kernel:
    """Reads weight, gradient and two moments, writes all but the gradient."""
    return Kernel(
        f"void {_ANONYMOUS}multi_tensor_apply_kernel<{_ANONYMOUS}FusedOptimizerTensorListMetadata<4>,"
        f" {_ANONYMOUS}FusedAdamMathFunctor<{_BF16}, 4, (at::native::ADAM_MODE)1, false>, float const*,"
        " double, double, double, double, double, bool, float*, float*>",
        _ns(0, 14 * numel),
        (min(320, _blocks(numel, 65_536)), 1, 1),
        (512, 1, 1),
        64,
    )


def cat(result: Tensor) -> Kernel:
    """Copies many tensors into one."""
    return Kernel(
        f"void {_ANONYMOUS}CatArrayBatchedCopy_aligned16_contig<{_ANONYMOUS}OpaqueType<2u>,"
        " unsigned int, 1, 128, 1>",
        _ns(0, 2 * result.nbytes),
        (264, 16, 1),
        (512, 1, 1),
        32,
    )


def nccl(operation: str, duration_ns: int) -> Kernel:
    """`operation` as NCCL spells it: `AllGather`, `AllReduce_Sum_bf16`."""
    return Kernel(
        f"ncclDevKernel_{operation}_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        duration_ns,
        (24, 1, 1),
        (544, 1, 1),
        96,
        84_248,
    )
