"""Autograd in miniature: forward operators leave nodes on a tape, backward plays the tape from its end.

A node knows its name in the autograd graph, its sequence number, and the operators that compute its
gradients. Backward runs on a thread of its own, as in PyTorch, while the main thread waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from examples.simulator.kernels import Kernel
from examples.simulator.memory import Block
from examples.simulator.rank import Rank
from examples.simulator.records import Flow, Slice
from examples.simulator.tensor import Input, Tensor

_ACCUMULATE = "torch::autograd::AccumulateGrad"


@dataclass(frozen=True)
class Gradient:
    """One operator of a backward function and the kernels it launches."""

    op: str
    inputs: tuple[Input, ...]
    kernels: tuple[Kernel, ...]
    zeroed_bytes: int = 0


@dataclass(frozen=True)
class Backward:
    """How a forward operator is differentiated, and the parameters whose gradients that yields."""

    name: str
    gradients: tuple[Gradient, ...] = ()
    parameters: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Node:
    """What autograd remembers of one forward operator."""

    backward: Backward
    sequence_number: int
    forward: Slice
    activation: Block | None


class GradientListener(Protocol):
    """Who wants to know when gradients are there: data parallelism."""

    def gradient_ready(self, parameter: Tensor, gradient: Block) -> Block:
        """Take note of a gradient. Returns the memory that the optimizer will read."""
        ...

    def finalize_backward(self) -> None: ...


class Tape:
    def __init__(self, rank: Rank, training: bool) -> None:
        self._rank = rank
        self._training = training
        self._nodes: list[Node | Callable[[], None]] = []
        self._activations: list[Block] = []
        self._parameter_gradients: list[Block] = []

    @contextmanager
    def forward(
        self, op: str, inputs: Sequence[Input], result: Tensor | None, backward: Backward
    ) -> Iterator[None]:
        """A forward operator that allocates its result and, in training, leaves a node on the tape.

        Without a result it only gives a view of its input.
        """
        thread = self._rank.main
        number = self._rank.recorder.number("sequence")
        args = {"Sequence number": number, "Fwd thread id": 0} if self._training else None
        with thread.op(op, inputs, args) as record:
            activation = None
            if result is not None:
                with thread.op("aten::empty", (None, 15, 0, None, None, None)):
                    activation = self._rank.memory.allocate(thread, result.nbytes)
            yield
        if self._training:
            self._nodes.append(Node(backward, number, record, activation))
        elif activation is not None:
            self._activations.append(activation)

    def before_backward(self, hook: Callable[[], None]) -> None:
        """Call `hook` in backward, before the gradients of what ran so far."""
        self._nodes.append(hook)

    def play_back(self, listener: GradientListener | None) -> None:
        """Compute all gradients; the listener hears of each parameter's."""
        main, thread = self._rank.main, self._rank.autograd
        thread.now_ns = max(thread.now_ns, main.now_ns)
        thread.spend(8_000, 14_000)
        while self._nodes:
            node = self._nodes.pop()
            if not isinstance(node, Node):
                node()
                continue
            self._differentiate(node)
            for parameter in node.backward.parameters:
                gradient = self._accumulate(parameter)
                if listener is not None:
                    gradient = listener.gradient_ready(parameter, gradient)
                self._parameter_gradients.append(gradient)
        if listener is not None:
            listener.finalize_backward()
        main.now_ns = max(main.now_ns, thread.now_ns)
        main.spend(4_000, 8_000)

    def zero_grad(self) -> None:
        """Drop the parameters' gradients (`set_to_none=True`): their memory returns to the allocator."""
        self._free(self._parameter_gradients)

    def drop_activations(self) -> None:
        """The end of a forward pass that nobody differentiates."""
        self._free(self._activations)

    def _free(self, blocks: list[Block]) -> None:
        for block in blocks:
            self._rank.memory.free(self._rank.main, block)
        blocks.clear()

    def _differentiate(self, node: Node) -> None:
        thread, name = self._rank.autograd, node.backward.name
        args = {"Sequence number": node.sequence_number, "Fwd thread id": 1}
        with thread.op(f"autograd::engine::evaluate_function: {name}", args=args) as record:
            self._arrow(node.forward, record)
            with thread.op(name, args=args):
                for gradient in node.backward.gradients:
                    self._compute(gradient)
            if node.activation is not None:
                self._rank.memory.free(thread, node.activation)

    def _compute(self, gradient: Gradient) -> None:
        thread = self._rank.autograd
        with thread.op(gradient.op, gradient.inputs):
            if gradient.zeroed_bytes:
                with thread.op("aten::zero_", ()):
                    self._rank.fill(thread, gradient.zeroed_bytes)
            for kernel in gradient.kernels:
                self._rank.launch(thread, kernel)

    def _accumulate(self, parameter: Tensor) -> Block:
        thread = self._rank.autograd
        with (
            thread.op(f"autograd::engine::evaluate_function: {_ACCUMULATE}"),
            thread.op(_ACCUMULATE, (parameter,)),
        ):
            return self._rank.memory.allocate(thread, parameter.nbytes)

    def _arrow(self, forward: Slice, backward: Slice) -> None:
        """fwdbwd: from an operator to the evaluation of its gradient."""
        number = self._rank.recorder.number("fwdbwd")
        for phase, end in (("s", forward), ("f", backward)):
            flow = Flow(phase, "fwdbwd", number, end.pid, end.tid, end.start_ns)
            self._rank.recorder.flows.append(flow)
