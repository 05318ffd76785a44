"""One training step, as a script with a data loader, data parallelism and AdamW runs it."""

from __future__ import annotations

from collections.abc import Iterator

from examples.simulator import kernels
from examples.simulator.autograd import GradientListener
from examples.simulator.ddp import DistributedDataParallel
from examples.simulator.device import COMPUTE_STREAM, COPY_STREAM
from examples.simulator.gpt import Gpt
from examples.simulator.rank import Rank
from examples.simulator.tensor import Tensor

# AdamW's fused kernel takes this many tensors at a time.
_TENSORS_PER_LAUNCH = 24


def train(
    rank: Rank, model: Gpt, listener: GradientListener | None, first_step: int, steps: int, stall_ns: int
) -> Iterator[None]:
    """Run `steps` steps. Yields where the host blocks on the device."""
    for step in range(first_step, first_step + steps):
        rank.begin_step(step)
        with rank.main.annotation(f"ProfilerStep#{step}"):
            _next_batch(rank, stall_ns)
            _copy_batch(rank, model)
            _zero_grad(rank, model)
            _forward(rank, model, isinstance(listener, DistributedDataParallel))
            _backward(rank, model, listener)
            # Reading the loss before the optimizer is common, and lets the optimizer's kernels
            # run on into the next step.
            yield from _read_loss(rank)
            _optimizer_step(rank, model)
        rank.main.spend(6_000, 12_000)


def _next_batch(rank: Rank, stall_ns: int) -> None:
    thread = rank.main
    with (
        thread.frame("torch/utils/data/dataloader.py(734): __next__"),
        thread.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        thread.frame("torch/utils/data/_utils/fetch.py(47): fetch"),
    ):
        thread.spend(40_000 + stall_ns * 9 // 10, 70_000 + stall_ns * 11 // 10)


def _copy_batch(rank: Rank, model: Gpt) -> None:
    """Tokens and targets travel on their own stream; the compute stream waits for them."""
    thread = rank.main
    batch = Tensor((model.shape.batch, model.shape.sequence), "long int")
    for _ in ("tokens", "targets"):
        with (
            thread.op("aten::to", (batch, None, None, None, None, True, False, None)),
            thread.op("aten::_to_copy", (batch, None, None, None, None, True, None)),
            thread.op("aten::copy_", (batch, batch, True)),
        ):
            rank.copy(thread, "HtoD", batch.nbytes, COPY_STREAM)
    rank.wait_event(thread, COMPUTE_STREAM, rank.record_event(thread, COPY_STREAM))


def _zero_grad(rank: Rank, model: Gpt) -> None:
    with rank.main.annotation("Optimizer.zero_grad#AdamW.zero_grad"):
        model.zero_grad()


def _forward(rank: Rank, model: Gpt, replicated: bool) -> None:
    with rank.main.annotation("DistributedDataParallel.forward" if replicated else "## forward ##"):
        model.forward()


def _backward(rank: Rank, model: Gpt, listener: GradientListener | None) -> None:
    with rank.main.annotation("## backward ##"), rank.main.frame("torch/_tensor.py(575): backward"):
        model.backward(listener)


def _read_loss(rank: Rank) -> Iterator[None]:
    """`loss.item()`: the one place in a step where the host waits for the device."""
    thread, loss = rank.main, Tensor(())
    with thread.op("aten::item", (loss,)), thread.op("aten::_local_scalar_dense", (loss,)):
        rank.copy(thread, "DtoH", loss.nbytes)
        yield from rank.synchronize(thread, COMPUTE_STREAM)


def _optimizer_step(rank: Rank, model: Gpt) -> None:
    thread = rank.main
    with thread.annotation("Optimizer.step#AdamW.step"):
        for first in range(0, len(model.parameters), _TENSORS_PER_LAUNCH):
            group = model.parameters[first : first + _TENSORS_PER_LAUNCH]
            with thread.op("aten::_fused_adamw_", ()):
                rank.launch(thread, kernels.fused_adamw(sum(weight.numel for weight in group)))
