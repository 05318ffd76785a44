"""Folders as frameworks leave them: the names and contents of the files, and which rank each is."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

BASE_NS = 1_780_000_000 * 1_000_000_000
STEP_US = 1_000.0


@dataclass
class Layout:
    """Files and the truth about them.

    Attributes:
        texts: the content of each file, by its name.
        ranks: of the recording that is opened by default, the rank of each file.
        others: files of other recordings.
        strays: files that are no rank.
    """

    name: str
    texts: dict[str, bytes] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    strays: set[str] = field(default_factory=set)

    def lay(self, folder: Path) -> Path:
        """Write the files."""
        for name, text in self.texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
        return folder


def events(pid: int, group: list[int], seconds: float = 1.0, own: int | None = None) -> list[dict[str, Any]]:
    """One step: an operator, a kernel and an all-reduce; `own` is the rank that the all-reduce states."""
    at = seconds * 1e6 + pid % 7
    stated = {} if own is None else {"Rank": own}
    collective = {
        "Collective name": "allreduce", "Group size": len(group), "Process Group Name": "0",
        "Process Group Ranks": json.dumps(group), "In msg nelems": 8, "dtype": "Float", **stated,
    }  # fmt: skip
    found = [
        _slice("aten::mm", "cpu_op", pid, at, 10, {"External id": 1}),
        _slice("cudaLaunchKernel", "cuda_runtime", pid, at + 1, 2, {"correlation": 1, "External id": 1}),
        {**_slice("gemm", "kernel", 0, at + 5, 100, {"correlation": 1, "stream": 7, "device": 0}), "tid": 7},
    ]
    if len(group) > 1:
        reduce = _slice("ncclDevKernel_AllReduce", "kernel", 0, at + 200, 50, {"stream": 9, "device": 0})
        found.append({**reduce, "tid": 9, "args": {**reduce["args"], **collective}})
    return found


def _slice(
    name: str, category: str, pid: object, at: float, dur: float, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X", "name": name, "cat": category, "pid": pid, "tid": pid, "ts": at, "dur": dur, "args": args,
    }  # fmt: skip


def document(found: list[dict[str, Any]], rank: int | None = None, world: int = 0) -> bytes:
    """A file of Kineto; with `rank` it states that and the size of its world."""
    info = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}}
    return json.dumps(
        {"schemaVersion": 1, **info, "baseTimeNanoseconds": BASE_NS, "traceEvents": found}
    ).encode()


def _grid(random: Random) -> tuple[int, int, int]:
    return random.choice([1, 2, 4]), random.choice([1, 1, 2]), random.choice([1, 2, 4, 8])


def vllm(random: Random) -> Layout:
    """Ranks of the job, or of each replica."""
    replicas, stages, tensor = _grid(random)
    inside, restarts = stages * tensor, random.random() < 0.5
    found = Layout("vllm " + ("restarting" if restarts else "global"))
    for rank in range(replicas * inside):
        dp, rest = divmod(rank, inside)
        pp, tp = divmod(rest, tensor)
        number, world = (rest, inside) if restarts else (rank, replicas * inside)
        name = f"dp{dp}_pp{pp}_tp{tp}_dcp0_ep{rank}_rank{number}.{1780000000000000 + rank}.pt.trace.json.gz"
        found.texts[name] = document(events(100 + rank, list(range(world))), number, world)
        found.ranks[name] = rank
    return found


def sglang(random: Random) -> Layout:
    """By place in the grid; a merged file may lie beside the parts."""
    _, stages, tensor = _grid(random)
    found = Layout("sglang")
    merged: list[dict[str, Any]] = []
    world = stages * tensor
    for rank in range(world):
        pp, tp = divmod(rank, tensor)
        place = f"-TP-{tp}" + (f"-PP-{pp}" if stages > 1 else "")
        name = f"1780000000.5{place}.trace.json.gz"
        own = events(100 + rank, list(range(world)))
        tag = f"[TP{tp:02d}" + (f"-PP{pp:02d}]" if stages > 1 else "]")
        merged += [{**event, "pid": f"{tag} {event['pid']}"} for event in own]
        found.texts[name] = document(own)
        found.ranks[name] = rank
    if world > 1 and random.random() < 0.5:
        merged.append({"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 2e6})
        found.texts["merged-1780000000.5.trace.json.gz"] = document(merged)
        found.strays.add("merged-1780000000.5.trace.json.gz")
    return found


def torchtitan(random: Random) -> Layout:
    """A folder for each of several iterations."""
    world, iterations = _size(random), random.sample(range(1, 200), random.choice([1, 2, 3]))
    found = Layout("torchtitan")
    for iteration in sorted(iterations):
        for rank in range(world):
            name = f"iteration_{iteration}/rank{rank}_trace.json"
            own = events(100 + rank, list(range(world)), iteration)
            found.texts[name] = document(own, rank, world)
            if iteration == max(iterations):
                found.ranks[name] = rank
            else:
                found.others.add(name)
    return found


def handler(random: Random) -> Layout:
    """`tensorboard_trace_handler`: host, process id and time; recorded once or twice, restarted or not."""
    world, rounds, restarted = _size(random), random.choice([1, 2]), random.random() < 0.5
    found = Layout("tensorboard handler")
    for turn in range(rounds):
        for rank in range(world):
            pid = 4000 + 7 * rank + (5000 * turn if restarted else 0)
            stamp = 1780000000000000000 + turn * 60_000_000_000 + rank
            name = f"node{rank // 8}_{pid}.{stamp}.pt.trace.json"
            found.texts[name] = document(events(pid, list(range(world)), 1 + 60 * turn), rank, world)
            if turn == rounds - 1:
                found.ranks[name] = rank
            else:
                found.others.add(name)
    return found


def _named(title: str, pattern: Callable[[int], str], states: bool | None = None) -> Callable[..., Layout]:
    def make(random: Random) -> Layout:
        world, stated = _size(random), random.random() < 0.5 if states is None else states
        found = Layout(title)
        for rank in range(world):
            own = events(100 + rank, list(range(world)))
            found.texts[pattern(rank)] = document(own, rank if stated else None, world)
            found.ranks[pattern(rank)] = rank
        return found

    return make


def moments(random: Random) -> Layout:
    """`rankN-iterM.json`."""
    world, iterations = _size(random), random.sample(range(1, 50), random.choice([2, 3]))
    found = Layout("rankN-iterM")
    for iteration in iterations:
        for rank in range(world):
            name = f"rank{rank}-iter{iteration}.json"
            found.texts[name] = document(events(100 + rank, list(range(world)), iteration))
            if iteration == max(iterations):
                found.ranks[name] = rank
            else:
                found.others.add(name)
    return found


def dynolog(random: Random) -> Layout:
    """Process ids in the names; collectives may state the rank."""
    world, states = max(2, _size(random)), random.random() < 0.5
    pids = sorted(random.sample(range(3000, 9000), world))
    ranks = random.sample(range(world), world) if states else list(range(world))
    found = Layout("dynolog")
    for pid, rank in zip(pids, ranks, strict=True):
        name = f"libkineto_trace_{pid}.json"
        found.texts[name] = document(events(pid, list(range(world)), own=rank if states else None))
        found.ranks[name] = rank
    return found


def experiments(random: Random) -> Layout:
    """Runs of one device each, numbered."""
    first, count = random.randrange(1, 90), random.choice([2, 3, 5])
    found = Layout("experiments")
    for turn in range(count):
        name = f"trace_{first + turn:02d}.json.gz"
        found.texts[name] = document(events(4000 + turn, [0], 1 + 100 * turn))
        found.others.add(name)
    found.others.discard(name)
    found.ranks[name] = 0
    return found


def jobs(random: Random) -> Layout:
    """Jobs of different sizes, one after the other; of some only one rank was recorded."""
    found = Layout("jobs")
    for turn, size in enumerate(random.sample([1, 2, 3, 4, 8], random.choice([2, 3]))):
        recorded = [random.randrange(size)] if random.random() < 0.5 else range(size)
        stated = size > 1 or random.random() < 0.5
        found.others |= set(found.ranks)
        found.ranks = {}
        for rank in recorded:
            name = f"{random.choice(['bert', 'qwen'])}_{random.randrange(10**6):06d}-{'abcdefgh'[rank]}.json"
            own = events(100 * turn + rank, list(range(size)), 1 + 100 * turn)
            found.texts[name] = document(own, rank if stated else None, size)
            found.ranks[name] = rank
    return found


def _size(random: Random) -> int:
    return random.choice([1, 2, 3, 4, 8, 8, 16, 64]) if random.random() < 0.3 else random.choice([1, 2, 3, 4])


CONVENTIONS: tuple[Callable[[Random], Layout], ...] = (
    vllm,
    sglang,
    torchtitan,
    handler,
    moments,
    dynolog,
    experiments,
    jobs,
    _named("trtllm", lambda rank: f"trace-rank-{rank}.json"),
    _named("megatron", lambda rank: f"rank_{rank}.{1780000000000000000 + rank}.pt.trace.json"),
    _named("primus", lambda rank: f"primus-exp-rank[{rank}].{1780000000000000000 + rank}.pt.trace.json.gz"),
    _named("lightning", lambda rank: f"fit-logs-{rank}.{1780000000000000000 + rank}.pt.trace.json"),
    _named("accelerate", lambda rank: f"profile_{rank}.json"),
    _named("plain", lambda rank: f"rank{rank}.json.gz"),
    _named("folders", lambda rank: f"rank_{rank}/trace.json"),
    _named("deep", lambda rank: f"node{rank // 2}/rank{rank}.json"),
)


def strays(random: Random, found: Layout) -> Layout:
    """The layout with up to three files beside the traces that are none."""
    folder = next(iter(found.ranks)).rpartition("/")[0]
    below = f"{folder}/" if folder else ""
    world = len(found.ranks)
    kinds: dict[str, bytes] = {
        "et_0.json": json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1}]}).encode(),
        "config.json": b'{"lr": 0.1, "layers": [1, 2]}',
        "snapshot.pickle": pickle.dumps({"segments": [], "device_traces": []}),
        "report.nsys-rep": b"\x00\x01\x02\x03",
        "memory_timeline.json": b"[[1, 2], [[3, 4]]]",
        "notes.txt": b"lr 0.1",
    }
    if world > 1 and not any(name.startswith("trace_") for name in found.ranks):
        alone = events(999, [0])[:1]
        kinds["node7_999.async_llm.1780000009.pt.trace.json.gz"] = document(alone)
    for name in random.sample(sorted(kinds), random.choice([0, 1, 2, 3])):
        found.texts[below + name] = kinds[name]
        if name != "notes.txt":
            found.strays.add(below + name)
    return found


def layouts(count: int, seed: int = 0) -> Iterator[Layout]:
    """Layouts of every convention in turn."""
    for number in range(count):
        random = Random(seed * 1_000_003 + number)
        yield strays(random, CONVENTIONS[number % len(CONVENTIONS)](random))
