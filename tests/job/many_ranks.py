"""A job of many small ranks that train alike, but for one that is slow, as its files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

STEPS, LAYERS = 4, 3
# us: what a kernel takes, and how much longer those of the slow rank take
PRODUCT_US, ADD_US, LATER_US = 60, 20, 40
ALIKE = 4  # so many kinds of ranks, which differ by microseconds
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

# how many ranks, and which one is slow, in jobs that browsers show
SLOW = {8: 5, 64: 41, 1024: 700}

Event = dict[str, Any]


def write_job(
    folder: Path,
    ranks: int,
    slow: int,
    steps: int = STEPS,
    layers: int = LAYERS,
    products: int = 1,
    packed: bool = False,
    written: int | None = None,
) -> Path:
    """Files of `ranks` ranks of which `slow` computes longer, so that the others wait in every collective.

    Args:
        products: matrix products of a layer, before its all-reduce.
        packed: as .json.gz.
        written: so many of the ranks, the first ones; default all.
    """
    folder.mkdir()
    pack = gzip.compress if packed else bytes
    texts = {}
    for rank in range(ranks if written is None else written):
        kind = rank % ALIKE, rank == slow
        if kind not in texts:
            events = json.dumps([*_events(*kind, ranks, steps, layers, products)])
            texts[kind] = pack(f'"traceEvents": {events}}}'.encode())
        info = json.dumps({"backend": "nccl", "rank": rank, "world_size": ranks})
        head = pack(f'{{"distributedInfo": {info}, "baseTimeNanoseconds": 0, '.encode())
        (folder / f"rank{rank}.json{'.gz' if packed else ''}").write_bytes(head + texts[kind])
    return folder


def _events(kind: int, slow: bool, ranks: int, steps: int, layers: int, products: int) -> Iterator[Event]:
    correlations = count(1)
    layer_us = products * (PRODUCT_US + ADD_US + LATER_US) + 60
    for step in range(steps):
        begin = 1000 + step * (layers * layer_us + 20)
        yield _host("user_annotation", f"ProfilerStep#{step}", begin, layers * layer_us + 10)
        for layer in range(layers):
            at = begin + layer * layer_us
            slower = LATER_US if slow else 0
            small = (3 * kind + step) % ALIKE  # no two ranks are quite alike
            kernels = []
            free = at + 10
            for _ in range(products):
                product = free
                add = product + PRODUCT_US + slower + small
                free = add + ADD_US
                kernels += [
                    ("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n", product, add, 7),
                    ("vectorized_elementwise_kernel", add, free, 7),
                ]
                small = 0
            met = at + 10 + products * (PRODUCT_US + LATER_US + ADD_US) + 4  # by then the slow one is there
            kernels.append((ALL_REDUCE, free + 2, met + 25, 20))
            for place, (name, start, end, stream) in enumerate(kernels):
                number = next(correlations)
                launched = {"correlation": number}
                call = at + 4 * place
                if stream == 7:
                    operator = "aten::add" if place % 2 else "aten::mm"
                    yield _host("cpu_op", operator, call, 4, {"Input Dims": [[64, 64], [64, 64]]})
                    yield _host("cuda_runtime", "cudaLaunchKernel", call + 1, 2, launched)
                    group: Event = {}
                else:
                    yield _host("cuda_runtime", "cudaLaunchKernelExC", call, 2, launched)
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
