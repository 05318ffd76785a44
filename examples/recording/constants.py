"""Measure what models of a device assume: `python constants.py --out recordings`.

Writes OUT/constants.json (launches, gaps, graphs, waiting, copies, products; medians) and a trace of the
same launches and copies, OUT/constants/rank-0.pt.trace.json.gz. Needs PyTorch and a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from recorder import machine
from torch.profiler import ProfilerActivity, profile, record_function

REPEATS = 7
LAUNCHES = 1000
PRODUCT = 8192
COPIED = 256 * 2**20  # bytes over the bus
MOVED = 4 * 2**30  # bytes within the device


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, default=Path("recordings"), help="folder (default: %(default)s)")
    return made


def host_ns(work: Callable[[], object], count: int = 1, settle: bool = True) -> float:
    """Median ns of the host for one of `count` repetitions."""
    samples = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(count):
            work()
        samples.append((time.perf_counter_ns() - start) / count)
        if settle:
            torch.cuda.synchronize()
    return statistics.median(samples)


def device_ns(work: Callable[[], object], count: int = 1) -> float:
    """Median ns of the device between two events, for one of `count` repetitions."""
    work()
    samples = []
    for _ in range(REPEATS):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        first.record()
        for _ in range(count):
            work()
        last.record()
        torch.cuda.synchronize()
        samples.append(first.elapsed_time(last) * 1e6 / count)
    return statistics.median(samples)


def graph_of(count: int) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    """A graph of `count` dependent kernels on one number."""
    number = torch.zeros(1, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        number.add_(1)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            number.add_(1)
    return graph, number


def launches() -> dict[str, float]:
    """What launching costs: alone, in a row, in a graph; and waiting."""
    number = torch.zeros(1, device="cuda")
    number.add_(1)
    graph, _ = graph_of(LAUNCHES)
    one, _ = graph_of(1)
    graph.replay()
    one.replay()
    return {
        "small_kernel_host_ns": host_ns(lambda: number.add_(1), LAUNCHES // 4),
        "small_kernel_in_a_row_ns": device_ns(lambda: number.add_(1), LAUNCHES),
        "small_kernel_in_graph_ns": device_ns(graph.replay) / LAUNCHES,
        "graph_launch_of_1_host_ns": host_ns(one.replay, 20),
        "graph_launch_of_1000_host_ns": host_ns(graph.replay),
        "graph_of_1_in_a_row_ns": device_ns(one.replay, 200),
        "synchronize_idle_ns": host_ns(torch.cuda.synchronize, 100),
        "launch_and_synchronize_ns": host_ns(lambda: (number.add_(1), torch.cuda.synchronize()), 100),
        "item_idle_ns": host_ns(number.item, 100),
    }


def copies() -> dict[str, float]:
    """Bytes per ns (GB/s) over the bus and within the device; the latter counts bytes read and written."""
    there = torch.empty(COPIED, dtype=torch.uint8, device="cuda")
    pageable = torch.ones(COPIED, dtype=torch.uint8)
    pinned = pageable.pin_memory()
    large = torch.ones(MOVED // 4, device="cuda")
    other = torch.empty_like(large)
    third = torch.ones_like(large)
    return {
        "host_to_device_pinned": COPIED / device_ns(lambda: there.copy_(pinned, non_blocking=True)),
        "host_to_device_pageable": COPIED / host_ns(lambda: there.copy_(pageable)),
        "device_to_host_pinned": COPIED / device_ns(lambda: pinned.copy_(there, non_blocking=True)),
        "device_to_host_pageable": COPIED / host_ns(lambda: pageable.copy_(there)),
        "device_to_device": 2 * MOVED / device_ns(lambda: other.copy_(large)),
        "fill": MOVED / device_ns(lambda: other.fill_(1)),
        "add_of_two": 3 * MOVED / device_ns(lambda: torch.add(large, third, out=other)),
    }


def products() -> dict[str, float | str]:
    """FLOPs per ns (GFLOP/s) x 1000 = TFLOP/s of a large product of random numbers, by data type."""
    found: dict[str, float | str] = {}

    def measure(name: str, dtype: torch.dtype, precision: str = "highest") -> None:
        torch.set_float32_matmul_precision(precision)
        first, second = (torch.randn(PRODUCT, PRODUCT, device="cuda", dtype=dtype) for _ in range(2))
        out = torch.empty_like(first)
        torch.mm(first, second, out=out)
        found[name] = 2 * PRODUCT**3 / device_ns(lambda: torch.mm(first, second, out=out), 5) / 1000

    measure("bf16", torch.bfloat16)
    measure("fp16", torch.float16)
    measure("tf32", torch.float32, "high")
    measure("fp32", torch.float32)
    measure("fp64", torch.float64)
    try:
        kind = torch.float8_e4m3fn
        first, second = (torch.randn(PRODUCT, PRODUCT, device="cuda").to(kind) for _ in range(2))
        one = torch.ones((), device="cuda")

        def scaled() -> torch.Tensor:
            return torch._scaled_mm(first, second.t(), one, one, out_dtype=torch.bfloat16)

        scaled()
        found["fp8"] = 2 * PRODUCT**3 / device_ns(scaled, 5) / 1000
    except (RuntimeError, AttributeError, TypeError) as error:
        found["fp8"] = f"not measured: {str(error)[:200]}"
    return found


def recorded(path: Path) -> None:
    """A trace of single launches, launches in a row, graphs, waits and copies; each under its own name."""
    number = torch.zeros(1, device="cuda")
    graph, _ = graph_of(100)
    one, _ = graph_of(1)
    there = torch.empty(64 * 2**20, dtype=torch.uint8, device="cuda")
    pageable = torch.ones(64 * 2**20, dtype=torch.uint8)
    pinned = pageable.pin_memory()
    parts: dict[str, Callable[[], object]] = {
        "single launches": lambda: [(number.add_(1), torch.cuda.synchronize()) for _ in range(50)],
        "launches in a row": lambda: [number.add_(1) for _ in range(300)],
        "graph of 100": lambda: [graph.replay() for _ in range(5)],
        "graph of 1": lambda: [one.replay() for _ in range(20)],
        "item": lambda: [number.item() for _ in range(20)],
        "host to device, pinned": lambda: there.copy_(pinned, non_blocking=True),
        "host to device, pageable": lambda: there.copy_(pageable),
        "device to host, pinned": lambda: pinned.copy_(there, non_blocking=True),
        "device to host, pageable": lambda: pageable.copy_(there),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in parts.values():
        part()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for name, part in parts.items():
            torch.cuda.synchronize()
            time.sleep(0.001)
            with record_function(name):
                part()
                torch.cuda.synchronize()
    profiler.export_chrome_trace(str(path))


def main(words: list[str]) -> None:
    """Measure, and write what was measured."""
    arguments = parser().parse_args(words)
    found: dict[str, Any] = {}
    with machine.place("cuda", None) as here:
        found["environment"] = machine.environment(here)
        for name, measure in {"ns": launches, "gigabytes_per_second": copies, "teraflops": products}.items():
            found[name] = measure()
            print(name, json.dumps(found[name], indent=1), flush=True)
        recorded(arguments.out / "constants" / "rank-0.pt.trace.json.gz")
    (arguments.out / "constants.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
