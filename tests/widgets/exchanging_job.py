"""A job of two ranks that exchange data by kernels whose names no rule knows."""

from pathlib import Path
from typing import Any

from tests.trace.helpers import kernel, slice_, write

RING = "void (anonymous namespace)::tokenSend<4>(int)"
MARKUP = "tokenSend<img src=x onerror=document.body.dataset.ran=1>"


def write_job(folder: Path, *names: str) -> Path:
    """A file per rank: two steps with compute on stream 7 and, beside it, each of the names on stream 27."""
    for rank in (0, 1):
        events: list[dict[str, Any]] = []
        for step in (0, 1):
            at = 1000 * step
            events.append(slice_(f"ProfilerStep#{step}", "user_annotation", at, 1000))
            for number, (name, stream) in enumerate([*[("gemm", 7)] * 9, *((name, 27) for name in names)]):
                correlation, place = 100 * (step + 1) + number, number % 9
                call, start = at + 2 * number, at + 50 + 100 * place + 50 * (stream == 27)
                events.append(slice_("cudaLaunchKernel", "cuda_runtime", call, 1, correlation=correlation))
                events.append(kernel(name, start, 95, correlation, stream))
        write(folder / f"rank{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    return folder
