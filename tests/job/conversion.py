"""A labelled job as the Kineto files that its ranks would have recorded, kindly or not."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from hta_widgets.trace.model import Trace
from tests.job.labelled import labelled

EPOCH_NS = 1_700_000_000_000_000_000
BOOT_NS = 1_000_000_000
MS = 1_000_000

_STREAMS = {
    "forward-send": 20, "forward-recv": 21, "backward-send": 22, "backward-recv": 23,
    "params-all-gather": 30, "grads-reduce-scatter": 30, "layernorm-grads-all-reduce": 31,
    "embedding-grads-all-reduce": 32, "optimizer-clip-main-grad": 33,
}  # fmt: skip
_RECORDED = {
    "params-all-gather": "_allgather_base",
    "grads-reduce-scatter": "_reduce_scatter_base",
    "layernorm-grads-all-reduce": "allreduce",
    "embedding-grads-all-reduce": "allreduce",
    "optimizer-clip-main-grad": "allreduce",
    **dict.fromkeys(("forward-send", "backward-send"), "send"),
    **dict.fromkeys(("forward-recv", "backward-recv"), "recv"),
}
_KERNELS = {
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_reduce_scatter_base": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "allreduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "send": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "recv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
}


def recorded(
    folder: Path,
    name: str,
    steps: int | None = None,
    clock_ns: int = 0,
    drift: float = 0.0,
    missing: Collection[int] = (),
    clip_is_a_kernel: bool = False,
    norm_of_replicas: bool = False,
    times_replicas: int = 1,
) -> Trace:
    """Write the files of a job, one per worker, and open them.

    Args:
        steps: only the first of them. clock_ns, drift: standard deviation of the clocks' offsets, and of
        their speeds. missing: workers that were not recorded. clip_is_a_kernel: the clipping of gradients,
        for which all ranks meet, carries no sign of a collective. norm_of_replicas: the group of the
        layer-norm gradients is that of the replicas, not of tensor
            parallelism (whose other ranks were not recorded).
        times_replicas: how often each replica is there: a job of more ranks that takes as long.
    """
    frame = labelled(name, steps)
    frame = _more_replicas(frame[frame["optype"] != "gc"], times_replicas)
    size = int(frame["worker"].max()) + 1
    rng = np.random.default_rng(7)
    offset, speed = rng.normal(0, clock_ns, size).astype(np.int64), rng.normal(0, drift, size)
    length = frame.groupby("step")["end"].max() + 2 * MS
    begins = (length.cumsum() - length).to_dict()
    members = {
        kind: frame.groupby(column)["worker"].agg(lambda of: sorted(set(of))).to_dict()
        for kind, column in (("pp", "dp_rank"), ("dp", "stage"))
    }
    folder.mkdir(exist_ok=True)
    for worker, rows in frame.groupby("worker"):
        if worker in missing:
            continue
        place = rows.iloc[0]
        groups = {
            "pp": ("pp" + str(place["dp_rank"]), members["pp"][place["dp_rank"]]),
            "dp": ("dp" + str(place["stage"]), members["dp"][place["stage"]]),
            "tp": (f"tp{worker}", [worker]),
            "emb": ("emb" + str(place["dp_rank"]), [members["pp"][place["dp_rank"]][at] for at in (0, -1)]),
            "world": ("world", list(range(size))),
        }

        def shown(time: int, worker: int = worker) -> str:
            at = BOOT_NS + int(offset[worker]) + round(time * (1 + speed[worker]))
            return f"@{at // 1000}.{at % 1000:03d}@"

        events = [
            {
                "ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1,
                "ts": shown(begin), "dur": (length[step] - MS) / 1000,
            }
            for step, begin in begins.items()
        ]  # fmt: skip
        for row in rows.itertuples():
            stream = _STREAMS.get(row.optype, 7)
            args = {"device": 0, "stream": stream}
            plain = row.optype not in _RECORDED or (
                clip_is_a_kernel and row.optype == "optimizer-clip-main-grad"
            )
            if plain:
                args["stream"] = 7
                kernel = row.optype
            else:
                collective = _RECORDED[row.optype]
                kernel = _KERNELS[collective]
                kind = {
                    "p": "dp",
                    "g": "dp",
                    "e": "emb",
                    "o": "world",
                    "l": "dp" if norm_of_replicas else "tp",
                }
                group, ranks = groups["pp" if collective in ("send", "recv") else kind[row.optype[0]]]
                args |= {
                    "Collective name": collective,
                    "Process Group Name": group,
                    "Process Group Ranks": str(ranks),
                }
                args |= {"Group size": 4 if group.startswith("tp") else len(ranks)}
            begin = begins[row.step]
            events.append(
                {
                    "ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": args["stream"],
                    "ts": shown(begin + row.start), "dur": (row.end - row.start) / 1000, "args": args,
                }
            )  # fmt: skip
        content = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": worker, "world_size": size},
            "baseTimeNanoseconds": EPOCH_NS,
            "traceEvents": events,
        }
        text = json.dumps(content, default=int).replace('"@', "").replace('@"', "")
        (folder / f"rank-{worker}.json").write_text(text)
    # the labels' spans overlap on stream 7, and are the truth: none is an estimate
    return Trace.open(folder, cache=False, repair=False)


def _more_replicas(frame: pd.DataFrame, times: int) -> pd.DataFrame:
    """The operations of a job whose replicas do all of it several times, side by side."""
    workers, replicas = frame["worker"].max() + 1, frame["dp_rank"].max() + 1
    copies = [
        frame.assign(worker=frame["worker"] + copy * workers, dp_rank=frame["dp_rank"] + copy * replicas)
        for copy in range(times)
    ]
    return pd.concat(copies, ignore_index=True)
