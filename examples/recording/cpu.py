"""Record programs of a CPU with one known cause each: `python cpu.py OUT [NAME...]`. Needs PyTorch alone.

Kept in the folder `cpu` is what hta_widgets had read wrong once; tests/verdicts/own.toml has what is right.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, TensorDataset

KEPT = ("schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds")
Step = Callable[[int], object]


def record(
    folder: Path, step: Step, steps: int = 6, rank: int = 0, marked: bool = True, **options: Any
) -> None:
    """The steps after two that warm up, without the names of the machine and its folders."""
    if marked:
        options["schedule"] = schedule(wait=1, warmup=1, active=steps)
    with profile(activities=[ProfilerActivity.CPU], **options) as recorder:
        for number in range(steps + 2 if marked else steps):
            step(number)
            if marked:
                recorder.step()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rank{rank}.json"
    recorder.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    path.unlink()
    kept = {key: trace[key] for key in KEPT if key in trace}
    text = json.dumps({**kept, "traceEvents": trace["traceEvents"]}, separators=(",", ":"))
    path.with_suffix(".json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def perceptron(width: int = 256, layers: int = 3) -> nn.Sequential:
    """Linear layers of one width."""
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)))


def trainer(model: nn.Module, optimizer: torch.optim.Optimizer, width: int = 256) -> Callable[[], None]:
    """A step on random data."""

    def step() -> None:
        optimizer.zero_grad()
        functional.mse_loss(model(torch.randn(64, width)), torch.randn(64, width)).backward()
        optimizer.step()

    return step


def growing_cache(out: Path) -> None:
    """Keys and values grow by torch.cat in each token."""
    cache = [torch.randn(4, 8, 512, 64) for _ in range(2)]

    def step(_: int) -> None:
        x = torch.randn(4, 8, 1, 64)
        for at in range(len(cache)):
            cache[at] = torch.cat([cache[at], x], 2)
            x = functional.scaled_dot_product_attention(x, cache[at], cache[at])

    with torch.no_grad():
        record(out, step, 12, record_shapes=True)


def cold_compile(out: Path) -> None:
    """torch.compile in the first of a few calls."""
    model = torch.compile(nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 24)))
    with torch.no_grad():
        record(out, lambda _: model(torch.randn(16, 32)), 3, marked=False)


def validation(out: Path) -> None:
    """Every fourth step validates, with a slow data loader of its own."""

    def slow(batch: list[Any]) -> torch.Tensor:
        time.sleep(0.02)
        return torch.stack([each[0] for each in batch])

    model = perceptron()
    train = trainer(model, torch.optim.SGD(model.parameters(), 0.01))
    data = DataLoader(TensorDataset(torch.randn(64, 256)), 16, collate_fn=slow)

    def step(number: int) -> None:
        train()
        if number % 4 == 3:
            with torch.no_grad():
                for batch in data:
                    model(batch)

    record(out, step, 8)


def saves_each_step(out: Path) -> None:
    """A checkpoint in each step, in a region of the program."""
    model = perceptron(1024)
    train = trainer(model, torch.optim.SGD(model.parameters(), 0.01), 1024)

    def step(_: int) -> None:
        train()
        with record_function("save_checkpoint"):
            torch.save(model.state_dict(), "/dev/null")
            time.sleep(0.1)

    record(out, step, 4)


def unfused_optimizer(out: Path) -> None:
    """Adam updates many small parameters one by one."""
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(20)))
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    train = trainer(model, optimizer, 16)
    record(out, lambda _: train(), 3)


def dense_embedding(out: Path) -> None:
    """Adam updates all rows of an embedding, of which few have gradients."""
    table = nn.Embedding(100_000, 64)
    optimizer = torch.optim.Adam(table.parameters())

    def step(_: int) -> None:
        optimizer.zero_grad()
        table(torch.randint(0, 100_000, (64, 20))).pow(2).sum().backward()
        optimizer.step()

    record(out, step, 4)


def late_once(out: Path) -> None:
    """Of two ranks one sleeps in one step, and the other waits for it."""
    mp.spawn(_of_rank, (out,), nprocs=2)


def _of_rank(rank: int, out: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29717", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(perceptron(128, 2))
    train = trainer(model, torch.optim.SGD(model.parameters(), 0.01), 128)

    def step(number: int) -> None:
        if rank == 1 and number == 4:
            time.sleep(0.1)
        train()

    record(out, step, 6, rank)
    dist.destroy_process_group()


PROGRAMS = (
    growing_cache,
    cold_compile,
    validation,
    saves_each_step,
    unfused_optimizer,
    dense_embedding,
    late_once,
)

if __name__ == "__main__":
    torch.set_num_threads(1)
    for program in PROGRAMS:
        if program.__name__ in sys.argv[2:] or not sys.argv[2:]:
            program(Path(sys.argv[1]) / program.__name__)
