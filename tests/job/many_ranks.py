"""A job of many small ranks that train alike, but for one that is slow, as its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

STEPS, LAYERS = 4, 3
# us: what a kernel takes, and how much longer those of the slow rank take
PRODUCT_US, ADD_US, LATER_US = 60, 20, 40
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

Event = dict[str, Any]


def write_job(folder: Path, ranks: int, slow: int, steps: int = STEPS, layers: int = LAYERS) -> Path:
    """Files of `ranks` ranks of which `slow` computes longer, so that the others wait in every collective."""
    folder.mkdir()
    for rank in range(ranks):
        trace = {
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
            "baseTimeNanoseconds": 0,
            "traceEvents": [*_events(rank, ranks, rank == slow, steps, layers)],
        }
        (folder / f"rank{rank}.json").write_text(json.dumps(trace))
    return folder


def _events(rank: int, ranks: int, slow: bool, steps: int, layers: int) -> Iterator[Event]:
    correlations = count(1)
    layer_us = PRODUCT_US + ADD_US + LATER_US + 60
    for step in range(steps):
        begin = 1000 + step * (layers * layer_us + 20)
        yield _host("user_annotation", f"ProfilerStep#{step}", begin, layers * layer_us + 10)
        for layer in range(layers):
            at = begin + layer * layer_us
            slower = LATER_US if slow else 0
            small = (3 * rank + step) % 4  # no two ranks are quite alike
            product = at + 10
            add = product + PRODUCT_US + slower + small
            late = add + ADD_US
            met = at + 10 + PRODUCT_US + LATER_US + ADD_US + 4  # by then the slow one is there
            for name, start, end, stream in (
                ("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n", product, add, 7),
                ("vectorized_elementwise_kernel", add, late, 7),
                (ALL_REDUCE, late + 2, met + 25, 20),
            ):
                number = next(correlations)
                launched = {"correlation": number}
                if stream == 7:
                    operator = "aten::mm" if start == product else "aten::add"
                    call = at + (0 if start == product else 4)
                    yield _host("cpu_op", operator, call, 4, {"Input Dims": [[64, 64], [64, 64]]})
                    yield _host("cuda_runtime", "cudaLaunchKernel", call + 1, 2, launched)
                    group: Event = {}
                else:
                    yield _host("cuda_runtime", "cudaLaunchKernelExC", at + 8, 2, launched)
                    group = {
                        "Collective name": "allreduce",
                        "In msg nelems": 1000,
                        "Out msg nelems": 1000,
                        "dtype": "Float",
                        "Group size": ranks,
                        "Process Group Name": "0",
                        "Process Group Description": "default_pg",
                        "Seq": number,
                    }
                args = {"device": 0, "stream": stream, **launched, **group}
                yield _event("kernel", name, start, end - start, 0, stream, args)


def _host(cat: str, name: str, start: int, dur: int, args: Event | None = None) -> Event:
    return _event(cat, name, start, dur, 1, 1, args or {})


def _event(cat: str, name: str, start: int, dur: int, pid: int, tid: int, args: Event) -> Event:
    where = {"pid": pid, "tid": tid, "ts": start, "dur": dur}
    return {"ph": "X", "cat": cat, "name": name, **where, "args": args}
