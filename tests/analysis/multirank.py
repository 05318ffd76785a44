"""Hand-made jobs of several ranks: collectives and memory events, as the Kineto files they would be."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hta_widgets.trace.model import Trace

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
# Absolute times of real traces are of this size; all times below are ns after it.
EPOCH_NS = 1_700_000_000_000_000_000
# Files count from a zero before any event.
BOOT_NS = 1_000_000_000


@dataclass
class RankFile:
    """What one rank recorded. `clock_ns` is what its clock shows beyond the true time."""

    rank: int
    clock_ns: int = 0
    base: bool = True
    device_bytes: int = 0
    groups: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    def add(self, cat: str, name: str, start: int, dur: int | None = None, **fields: Any) -> RankFile:
        shown = BOOT_NS + start + self.clock_ns + (0 if self.base else EPOCH_NS)
        event = {"ph": "i" if dur is None else "X", "cat": cat, "name": name, "pid": 1, "tid": 1}
        event["ts"] = f"@{shown // 1000}.{shown % 1000:03d}@"
        if dur is not None:
            event["dur"] = f"@{dur // 1000}.{dur % 1000:03d}@"
        self.events.append({**event, **fields})
        return self

    def step(self, number: int, start: int, end: int) -> RankFile:
        return self.add("user_annotation", f"ProfilerStep#{number}", start, end - start)

    def kernel(
        self,
        start: int,
        end: int,
        name: str = ALL_REDUCE,
        stream: int = 20,
        launched: int | None = None,
        **args: Any,
    ) -> RankFile:
        correlation = len(self.events) + 1
        if launched is not None:
            call = {"correlation": correlation}
            self.add("cuda_runtime", "cudaLaunchKernelExC", launched, 10, args=call)
        args = {"device": self.rank, "stream": stream, "correlation": correlation, **args}
        return self.add("kernel", name, start, end - start, pid=self.rank, tid=stream, args=args)

    def memory(
        self,
        time: int,
        change: int,
        address: int,
        total: int | None = None,
        device: int = 1,
        reserved: int = 4096,
        **fields: Any,
    ) -> RankFile:
        args: dict[str, Any] = {"Bytes": change, "Addr": address, "Device Type": device}
        args["Device Id"] = 0 if device else -1
        if total is not None:
            args |= {"Total Allocated": total, "Total Reserved": reserved}
        return self.add("cpu_instant_event", "[memory]", time, args=args, **fields)

    def write(self, folder: Path, world_size: int) -> None:
        content: dict[str, Any] = {"schemaVersion": 1, "traceEvents": self.events}
        content["distributedInfo"] = {"backend": "nccl", "rank": self.rank, "world_size": world_size}
        if self.groups:
            content["distributedInfo"] |= {"pg_count": len(self.groups), "pg_config": self.groups}
        if self.base:
            content["baseTimeNanoseconds"] = EPOCH_NS
        if self.device_bytes:
            content["deviceProperties"] = [{"id": 0, "name": "GPU", "totalGlobalMem": self.device_bytes}]
        text = json.dumps(content).replace('"@', "").replace('@"', "")
        (folder / f"rank-{self.rank}.json").write_text(text)


def job(folder: Path, *ranks: RankFile) -> Trace:
    folder.mkdir(exist_ok=True)
    for rank_trace in ranks:
        rank_trace.write(folder, len(ranks))
    return Trace.open(folder, cache=False)
