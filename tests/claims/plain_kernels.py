"""Which kernels could take less, the slow and obvious way: by their names, launches and operators' inputs."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tests.claims.job import Job, PlainRank, Record

__all__ = [
    "KINDS",
    "Found",
    "device_of",
    "document",
    "kernels_of",
    "limits_of",
    "longest",
    "operator_of",
    "unit_of",
]

Found = list[tuple[Record, float]]
"""Kernels, and how many ns would be left of each."""

# TFLOP/s of fp32 without and of TF32 and 16 bits with tensor cores; GB/s of memory: from the datasheets.
PEAKS: dict[str, tuple[float, float, float, float]] = {
    "V100": (15.7, 0, 125, 900), "T4": (8.1, 0, 65, 320), "A100 40GB": (19.5, 156, 312, 1555),
    "A100 80GB": (19.5, 156, 312, 2039), "H100": (66.9, 494.7, 989.4, 3352),
    "GH200": (66.9, 494.7, 989.4, 4000), "MI300X": (163.4, 653.7, 1307.4, 5300),
    "MI210": (45.3, 0, 181, 1638), "4090": (82.6, 82.6, 165.2, 1008),
}  # fmt: skip
SIZES = {
    "c10::BFloat16": 2, "c10::Half": 2, "float": 4, "long int": 8, "long": 8, "double": 8, "bool": 1,
    "int": 4,
}  # fmt: skip
PRODUCT = re.compile(
    r"gemm|Cijk_|conv|scudnn|wgrad|dgrad|fprop|winograd|xmma|cutlass|flash|fmha|attn_fwd|nvjet|computeOffsets",
    re.IGNORECASE,
)
NO_PRODUCT = re.compile(
    r"(?<!cublas)gemv|im2col|elementwise|at::native|nchwTo|nhwcTo|splitKreduce|reduce_|fbgemm|Wgrad\w*Offsets",
    re.IGNORECASE,
)
HALF = re.compile(
    r"bf16|fp?16|h16|h884|h1688|hmma|half|bfloat|_BBS_|_HHS_|_HSS_|_HBH_|_HB_|_BB_|_BS_B|_HS_B|i8|s8|e4m3|attn_fwd",
    re.IGNORECASE,
)
TF32 = re.compile(r"tf32|s1688|s16816|_XB?_|_SX_", re.IGNORECASE)
LOOK_UPS = ("aten::embedding", "aten::_embedding_bag")
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::linear", "aten::matmul")
FP64 = re.compile(r"dgemm|d884|d1688|gemm\w*_kernel<double|_DB?_B_|_DB_")
FP32 = re.compile(
    r"sgemm|gemm(?:k1|SN_\w+)_kernel<float|scudnn|ffma|simt|_engine<float|_S_B_|_SB_|_S_MX", re.I
)


@lru_cache(maxsize=2)
def document(path: str) -> dict[str, Any]:
    """One of Kineto's files."""
    data = Path(path).read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return json.loads(text.decode("utf-8", "replace"), strict=False)


def limits_of(job: Job, rank: int) -> dict[str, Any]:
    """What is recorded of the first device of a rank."""
    found = job.headers[rank].get("deviceProperties") or [{}]
    return found[0]


def device_of(job: Job, rank: int) -> tuple[float, float, float, float]:
    """The peaks of a rank's device."""
    limits = limits_of(job, rank)
    name, gib = str(limits.get("name", "")), int(limits.get("totalGlobalMem") or 0) / 2**30
    large = "80" in name or gib > 60
    for device, peaks in PEAKS.items():
        model, _, memory = device.partition(" ")
        if re.search(rf"\b{model}", name) and (not memory or (memory == "80GB") == large):
            return peaks
    raise AssertionError(f"the slow reader knows no datasheet of {name!r}")


@cache
def unit_of(name: str) -> str:
    """What a kernel multiplies with: `fp64`, `fp32`, `tf32`, `16 bits`, "" if it multiplies, else "none"."""
    if not PRODUCT.search(name) or NO_PRODUCT.search(name):
        return "none"
    for unit, pattern in (("fp64", FP64), ("16 bits", HALF), ("tf32", TF32), ("fp32", FP32)):
        if pattern.search(name):
            return unit
    return ""


def operator_of(rank: PlainRank, kernel: Record) -> Record | None:
    """The innermost operator around the launch of a kernel."""
    call = rank.launch(kernel)
    around = rank.around(call) if call else []
    return next((each for each in around if each.category == "cpu_op"), None)


Launch = tuple[str, str, str, str]
"""Name, grid, block, and shapes of the inputs of the operator: launches that are equal."""


def launch_as(rank: PlainRank, kernel: Record) -> Launch:
    operator = operator_of(rank, kernel)
    inputs = str(operator.args.get("Input Dims", "")) if operator else ""
    return kernel.name, str(kernel.args.get("grid", "")), str(kernel.args.get("block", "")), inputs


def shapes(operator: Record) -> list[tuple[tuple[int, ...], int]]:
    """Shape, and bytes of an element, of each input that is a tensor."""
    dims, types = operator.args.get("Input Dims", []), operator.args.get("Input type", [])
    return [
        (tuple(map(int, shape)), SIZES[kind])
        for shape, kind in zip(dims, types, strict=False)
        if kind in SIZES and all(not isinstance(side, list) for side in shape)
    ]


def product_of(operator: Record) -> tuple[int, int, int, int, int] | None:
    """How many products an operator is, of which [rows, inner] x [inner, columns], and what it adds."""
    if operator.name not in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"):
        return None
    found = [shape for shape, _ in shapes(operator)]
    matrices = [shape for shape in found if len(shape) >= 2]
    if len(matrices) < 2:
        return None
    left, right = matrices[-2:]
    if left[-1] != right[-2]:
        return None
    added = math.prod(found[0]) if len(found) > 2 else 0
    return math.prod(left[:-2]), left[-2], left[-1], right[-1], added


def least_of(operator: Record, tflops: float, memory: float) -> float | None:
    """ns of a product at half a peak, or at that of memory."""
    if operator.name == "aten::native_layer_norm":
        (rows, size), *weights = shapes(operator)
        return size * (2 * math.prod(rows) + sum(math.prod(shape) for shape, _ in weights)) / memory
    found = product_of(operator)
    if found is None:
        return None
    batch, rows, inner, columns, added = found
    elements = batch * (rows * inner + inner * columns + rows * columns) + added
    size = shapes(operator)[-1][1]
    return max(2 * batch * rows * inner * columns / (tflops * 500), size * elements / memory)


def reached(job: Job, rank: PlainRank, unit: str) -> float:
    """Which share of the roof products of aligned sizes reach together; at least half, and where few run."""
    _, tf32, half, memory = device_of(job, rank.number)
    taken: dict[int, float] = {}
    least: dict[int, float] = {}
    for kernel in rank.kernels:
        align, operator = re.search(r"align(\d)", kernel.name), operator_of(rank, kernel)
        slow = align and int(align[1]) < {"tf32": 4, "16 bits": 8}[unit]
        if unit_of(kernel.name) in (unit, "") and not slow and operator is not None and product_of(operator):
            taken[id(operator)] = taken.get(id(operator), 0) + kernel.dur
            least[id(operator)] = least_of(operator, 2 * (tf32 if unit == "tf32" else half), memory) or 0
    whole = sum(taken.values())
    return max(0.5, min(1.0, sum(least.values()) / whole)) if whole >= 1e6 else 0.5


def unaligned(job: Job, rank: PlainRank) -> Found:
    """Products on tensor cores that load less than 16 bytes at once, and have a size that is no multiple."""
    _, tf32, half, memory = device_of(job, rank.number)
    shares: dict[str, float] = {}
    found = []
    for kernel in rank.kernels:
        align = re.search(r"align(\d)", kernel.name)
        operator = operator_of(rank, kernel)
        unit = unit_of(kernel.name)
        multiple = {"tf32": 4, "16 bits": 8}.get(unit)
        if not align or multiple is None or int(align[1]) >= multiple or operator is None:
            continue
        product = product_of(operator)
        if product is None or all(size % multiple == 0 for size in product[1:4]):
            continue
        padding = math.prod(multiple * math.ceil(size / multiple) / size for size in product[1:4])
        if unit not in shares:
            shares[unit] = reached(job, rank, unit)
        peak = 2 * shares[unit] * (tf32 if unit == "tf32" else half)
        left = padding * (least_of(operator, peak, memory) or 0)
        if 0 < left < kernel.dur:
            found.append((kernel, left))
    return found


def tiny(job: Job, rank: PlainRank) -> Found:
    """Products of 16 bits under 10 us that would take less than a quarter of it."""
    _, _, half, memory = device_of(job, rank.number)
    found = []
    for kernel in rank.kernels:
        operator = operator_of(rank, kernel)
        if kernel.dur >= 10_000 or unit_of(kernel.name) in ("none", "fp32", "tf32") or operator is None:
            continue
        left = least_of(operator, half, memory)
        if left is not None and left < kernel.dur / 4:
            found.append((kernel, left))
    return found


POINTWISE = re.compile(
    r"aten::(add|sub|rsub|mul|div|neg|pow|rsqrt|sqrt|cos|sin|silu|gelu|tanh|exp|le|eq|gt|lt|where|copy|relu|sigmoid)_?$"
)


def written(operator: Record) -> tuple[tuple[int, ...], int]:
    found = shapes(operator)
    if operator.name == "aten::copy_":
        return found[0]
    dims = max(len(shape) for shape, _ in found)
    padded = [(1,) * (dims - len(shape)) + shape for shape, _ in found]
    size = max([size for shape, size in found if shape] or [found[0][1]])
    size = 1 if operator.name in ("aten::le", "aten::eq", "aten::gt", "aten::lt") else size
    return tuple(max(sides) for sides in zip(*padded, strict=True)), size


def read_by(operator: Record) -> list[tuple[tuple[int, ...], int]]:
    return shapes(operator)[1:] if operator.name == "aten::copy_" else shapes(operator)


def nbytes(tensor: tuple[tuple[int, ...], int]) -> int:
    return math.prod(tensor[0]) * tensor[1]


def chains(job: Job, rank: PlainRank) -> Found:
    """Pointwise kernels of which each reads what the one launched before it on the stream has written."""
    launched = [(kernel, rank.launch(kernel)) for kernel in rank.work]
    launched = [(kernel, call) for kernel, call in launched if call is not None]
    launched.sort(key=lambda pair: (str(pair[1].thread), pair[1].start, pair[0].start))
    often = Counter(id(operator_of(rank, kernel)) for kernel, _ in launched)
    grown: list[list[tuple[Record, Record]]] = [[]]
    before = None
    for kernel, call in launched:
        operator, place = operator_of(rank, kernel), (call.thread, kernel.stream)
        if (
            operator is None
            or not POINTWISE.match(operator.name)
            or "at::native" not in kernel.name
            or often[id(operator)] > 1
            or not shapes(operator)
        ):
            grown.append([])
        elif grown[-1] and before == place and written(grown[-1][-1][1]) in read_by(operator):
            grown[-1].append((kernel, operator))
        else:
            grown.append([(kernel, operator)])
        before = place
    found = []
    for chain in grown:
        if len(chain) > 1:
            moved = sum(sum(map(nbytes, read_by(each))) + nbytes(written(each)) for _, each in chain)
            again = sum(2 * nbytes(written(each)) for _, each in chain[:-1])
            found += [(kernel, kernel.dur * max(1 - again / moved, 0)) for kernel, _ in chain]
    return found


def recomputed(job: Job, rank: PlainRank) -> Found:
    """Kernels of operators inside nodes of autograd that make nodes themselves."""
    found = []
    for kernel in rank.kernels:
        call = rank.launch(kernel)
        operators = [each for each in rank.around(call) if each.category == "cpu_op"] if call else []
        inside = [at for at, each in enumerate(operators) if "evaluate_function" in each.name]
        again = operators[: inside[0]] if inside else []
        if any(
            "Sequence number" in each.args and not int(each.args.get("Fwd thread id", 0)) for each in again
        ):
            found.append((kernel, 0.0))
    return found


def dense(job: Job, rank: PlainRank) -> Found:
    """Kernels that make a gradient of a table of which a tenth or less is looked up, or update these."""
    operators = [each for each in rank.events if each.category == "cpu_op"]
    looked = [dims(each) for each in operators if each.name in LOOK_UPS]
    multiplied = [shape for each in operators if each.name in PRODUCTS for shape in dims(each)]
    tables: dict[tuple[int, ...], float] = {}
    for table, indices, *_ in looked:
        share = math.prod(indices) / table[0]
        if share <= 0.1 and table not in multiplied and table[::-1] not in multiplied:
            tables[table] = share
    found = []
    for kernel in rank.work:
        call = rank.launch(kernel)
        for each in rank.around(call) if call else []:
            first = dims(each)[0] if dims(each) else ()
            if each.name.endswith("dense_backward"):
                of = [share for (_, width), share in tables.items() if first[-1] == width]
                found += [(kernel, kernel.dur * of[0])] if of else []
                break
            lists = first if first and isinstance(first[0], tuple) else [first]
            if any(shape in tables for shape in lists) and "embedding" not in each.name:
                whole = sum(map(math.prod, lists))
                left = sum(math.prod(shape) * tables.get(shape, 1.0) for shape in lists)
                found.append((kernel, kernel.dur * left / whole))
                break
    return found


def dims(operator: Record) -> list[Any]:
    """The recorded shapes of its inputs, and lists of these, as tuples."""

    def read(value: Any) -> Any:
        return tuple(map(read, value)) if isinstance(value, list) else value

    return [read(each) for each in operator.args.get("Input Dims", [])]


def room_of(limits: dict[str, Any], kernel: Record) -> tuple[int, int, dict[str, int]]:
    """The blocks of a launch, the threads of each, and how many fit on a multiprocessor by each resource."""
    grid, block = (kernel.args.get(name, [0, 0, 0]) for name in ("grid", "block"))
    blocks, threads = math.prod(map(int, grid)), math.prod(map(int, block))
    warps = math.ceil(threads / 32)
    registers = max(math.ceil(int(kernel.args.get("registers per thread", 0)) * 32 / 256), 1) * 256
    shared = int(kernel.args.get("shared memory", 0)) + (1024 if limits["computeMajor"] >= 8 else 0)
    fits = {
        "registers": limits["regsPerMultiprocessor"] // 4 // registers * 4 // max(warps, 1),
        "shared memory": limits["sharedMemPerMultiprocessor"] // max(shared, 1),
        "block size": limits["maxThreadsPerMultiprocessor"] // max(32 * warps, 1),
    }
    return blocks, threads, fits


def partial_waves(job: Job, rank: PlainRank) -> Found:
    """Kernels of 10 us or more whose last wave leaves a tenth or more of the device idle, at most these."""
    limits, found = limits_of(job, rank.number), []
    for kernel in rank.kernels:
        if kernel.dur >= 10_000 and "grid" in kernel.args:
            blocks, _, fits = room_of(limits, kernel)
            waves = blocks / max(limits["numSms"] * min(fits.values()), 1)
            if waves > 1 and waves / math.ceil(waves) <= 0.9:
                found.append((kernel, kernel.dur * waves / math.ceil(waves)))
    return found


def underfilled(job: Job, rank: PlainRank) -> Found:
    """Kernels of 10 us or more that fill less than half of the warps, or leave multiprocessors empty."""
    limits, found = limits_of(job, rank.number), []
    for kernel in rank.kernels:
        if kernel.dur >= 10_000 and "grid" in kernel.args:
            blocks, threads, fits = room_of(limits, kernel)
            held = min(blocks / limits["numSms"], *fits.values())
            empty = blocks < limits["numSms"]
            few = held * threads / limits["maxThreadsPerMultiprocessor"] < 0.5
            if empty if unit_of(kernel.name) != "none" else few or empty:
                found.append((kernel, 0.0))
    return found


def attention(job: Job, rank: PlainRank) -> Found:
    """Kernels from a product to the next one around a softmax; with backward passes, at most these."""
    calls = []
    for thread in rank.all_threads.values():
        operators = [each for each in thread if each.category == "cpu_op"]
        for at, softmax in enumerate(operators):
            if softmax.name != "aten::_softmax":
                continue
            before = next((each for each in reversed(operators[:at]) if product_of(each)), None)
            after = next((each for each in operators[at:] if product_of(each)), None)
            if before is None or after is None:
                continue
            rates, scores = shapes(after)[-2][0], shapes(softmax)[0][0]  # heads may be one dimension or two
            if rates[-2:] != scores[-2:] or math.prod(rates) != math.prod(scores):
                continue
            around = [each for each in rank.around(softmax) if "scaled_dot_product" in each.name]
            whole = around[-1] if around else None
            calls.append((softmax, (whole or before).start, (whole or after).end))
    found = []
    for kernel in rank.kernels:
        call = rank.launch(kernel)
        names = [each.name for each in rank.around(call)] if call else []
        forward = call and any(
            call.thread == softmax.thread and start <= call.start < end for softmax, start, end in calls
        )
        if forward or (calls and any("Backward" in name for name in names)):
            found.append((kernel, 0.0))
    return found


KINDS: dict[str, tuple[Callable[[Job, PlainRank], Found], str]] = {
    "unaligned products": (unaligned, "exact"),
    "tiny products": (tiny, "exact"),
    "pointwise chains": (chains, "exact"),
    "dense gradients": (dense, "exact"),
    "recomputation": (recomputed, "kernels"),
    "partial waves": (partial_waves, "most"),
    "underfilled kernels": (underfilled, "most"),
    "unfused attention": (attention, "most"),
}
"""How each kind is found: "exact" with what would be left, the "kernels" alone, or at "most" these."""


def kernels_of(job: Job, rank: PlainRank, about: dict[str, Any]) -> list[Record]:
    """The kernels that a claim is about, in the judged time, by the `kind`, `pattern` or `units` of it."""
    if "kind" in about:
        return rank.judged([kernel for kernel, _ in KINDS[about["kind"]][0](job, rank)])
    if "pattern" in about:
        pattern = re.compile(about["pattern"])
        named = [kernel for kernel in rank.kernels if pattern.search(kernel.name)]
        return rank.judged([kernel for kernel in named if not of_fsdp(rank, kernel)])
    units = (wanted_unit(about), "")
    return rank.judged([kernel for kernel in rank.kernels if unit_of(kernel.name) in units])


def wanted_unit(about: dict[str, Any]) -> str:
    """What kernels multiply that a claim is about."""
    found: str = about["units"][0].rpartition("_")[2]
    return found


def of_fsdp(rank: PlainRank, kernel: Record) -> bool:
    """Whether an operator of FSDP launches it, to bring shards into and out of a collective's buffer."""
    call = rank.launch(kernel)
    around = rank.around(call) if call else []
    return any(each.category == "cpu_op" and each.name.startswith("fsdp::") for each in around)


def longest(kernels: Iterable[Record]) -> list[tuple[str, int]]:
    """The time of kernels by name, the longest first."""
    time: Counter[str] = Counter()
    for kernel in kernels:
        time[kernel.name] += kernel.dur
    return time.most_common()
