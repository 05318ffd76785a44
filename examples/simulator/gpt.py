"""A GPT-2 in bfloat16: the operators of one forward pass, as PyTorch dispatches them, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from examples.simulator import kernels
from examples.simulator.autograd import Backward, Gradient, GradientListener, Tape
from examples.simulator.fsdp import ROOT, FullyShardedDataParallel
from examples.simulator.kernels import Kernel
from examples.simulator.rank import Rank
from examples.simulator.tensor import Input, Tensor


@dataclass(frozen=True)
class GptShape:
    """Sizes of the model and of its batch; the defaults are those of GPT-2 small."""

    layers: int = 12
    batch: int = 8
    sequence: int = 1024
    width: int = 768
    heads: int = 12
    vocabulary: int = 50_304

    @property
    def tokens(self) -> int:
        return self.batch * self.sequence

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def weights(self) -> list[Tensor]:
        """All parameters; the output layer shares the embedding's."""
        return [weight for unit in self.units() for weight in unit]

    def units(self) -> list[list[Tensor]]:
        """The parameters outside the blocks, then those of each block."""
        width = self.width
        linear = ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width))
        norms = [Tensor((width,))] * 4
        block = norms + [Tensor(dims) for shape in linear for dims in (shape, shape[:1])]
        return [[Tensor((self.vocabulary, width)), *norms[:2]], *([block] * self.layers)]


class Gpt:
    """The model on one rank.

    Attributes:
        parameters: what the optimizer updates here: all weights, or this rank's shards of them.
    """

    def __init__(
        self,
        rank: Rank,
        shape: GptShape,
        training: bool,
        sharding: FullyShardedDataParallel | None = None,
        extra_op: str | None = None,
    ) -> None:
        self.shape = shape
        self.parameters = shape.weights() if sharding is None else sharding.shards
        self._rank = rank
        self._sharding = sharding
        self._extra_op = extra_op
        self._training = training
        self._tape = Tape(rank, training)
        # In training, AdamW keeps two moments beside each weight.
        rank.memory.hold(sum(weight.nbytes for weight in self.parameters) * (3 if training else 1))

    def forward(self) -> None:
        shape, thread = self.shape, self._rank.main
        with self._unit(ROOT), thread.frame("nn.Module: GPT2LMHeadModel_0", 0):
            self._embedding()
            for layer in range(shape.layers):
                with self._unit(1 + layer), thread.frame(f"nn.Module: GPT2Block_{layer}", 1 + layer):
                    self._block(layer)
            self._layer_norm()
            self._linear(shape.width, shape.vocabulary, bias=False)
        if self._training:
            self._loss()
        else:
            self._tape.drop_activations()

    def backward(self, listener: GradientListener | None) -> None:
        self._tape.play_back(listener)

    def zero_grad(self) -> None:
        self._tape.zero_grad()

    @contextmanager
    def _unit(self, index: int) -> Iterator[None]:
        """What is sharded as one: the model, or a block."""
        if self._sharding is None:
            yield
            return
        with self._sharding.unit(self._tape, index):
            yield

    def _leaves(self, *weights: Tensor) -> tuple[Tensor, ...]:
        """The weights whose gradients accumulate one by one. Sharded weights are views of a unit's."""
        return weights if self._sharding is None else ()

    def _block(self, layer: int) -> None:
        width, modules = self.shape.width, 1 + self.shape.layers
        thread = self._rank.main
        self._layer_norm()
        with thread.frame(f"nn.Module: GPT2Attention_{layer}", modules + 2 * layer):
            self._linear(width, 3 * width)
            self._attention()
            self._linear(width, width)
        self._residual()
        self._layer_norm()
        with thread.frame(f"nn.Module: GPT2MLP_{layer}", modules + 2 * layer + 1):
            self._linear(width, 4 * width)
            self._gelu()
            self._linear(4 * width, width)
            if self._extra_op is not None:
                self._extra(self._extra_op)
        self._residual()

    def _embedding(self) -> None:
        shape = self.shape
        tokens = Tensor((shape.batch, shape.sequence), "long int")
        table, hidden = Tensor((shape.vocabulary, shape.width)), self._hidden(shape.width)
        gradient = Gradient(
            "aten::embedding_dense_backward",
            (hidden, tokens, shape.vocabulary, -1, False),
            (kernels.embedding_backward(shape.tokens, shape.width),),
            zeroed_bytes=table.nbytes,
        )
        backward = Backward("EmbeddingBackward0", (gradient,), self._leaves(table))
        with (
            self._tape.forward("aten::embedding", (table, tokens), hidden, backward),
            self._rank.main.op("aten::index_select", (table, 0, tokens)),
        ):
            self._run(kernels.gather_rows(shape.tokens, shape.width))
        self._residual()

    def _layer_norm(self) -> None:
        shape = self.shape
        hidden, scale = self._hidden(shape.width), Tensor((shape.width,))
        inputs: tuple[Input, ...] = (hidden, None, scale, scale, 1e-05)
        gradient = Gradient(
            "aten::native_layer_norm_backward",
            (hidden, hidden, None, scale, scale),
            kernels.layer_norm_backward(shape.tokens, shape.width),
        )
        backward = Backward("NativeLayerNormBackward0", (gradient,), self._leaves(scale, scale))
        with (
            self._rank.main.op("aten::layer_norm", inputs),
            self._tape.forward("aten::native_layer_norm", inputs, hidden, backward),
        ):
            self._run(kernels.layer_norm(shape.tokens, shape.width))

    def _linear(self, width_in: int, width_out: int, bias: bool = True) -> None:
        thread, tokens = self._rank.main, self.shape.tokens
        source, result = Tensor((tokens, width_in)), Tensor((tokens, width_out))
        weight, offset = Tensor((width_out, width_in)), Tensor((width_out,))
        products = (
            Gradient("aten::mm", (result, weight), (kernels.gemm(tokens, width_in, width_out, "nn"),)),
            Gradient("aten::mm", (result, source), (kernels.gemm(width_out, width_in, tokens, "nt"),)),
        )
        inputs: tuple[Input, ...] = (source, weight)
        op, backward = "aten::mm", Backward("MmBackward0", products)
        if bias:
            total = Gradient("aten::sum", (result, 0, True), (kernels.reduction(tokens, width_out),))
            op, inputs = "aten::addmm", (offset, source, weight)
            backward = Backward("AddmmBackward0", (*products, total), self._leaves(weight, offset))
        with thread.op("aten::linear", (source, weight, offset if bias else None)):
            with thread.op("aten::t", (weight,)), thread.op("aten::transpose", (weight, 0, 1)):
                thread.spend(300, 600)
            with self._tape.forward(op, inputs, result, backward):
                self._run(kernels.gemm(tokens, width_out, width_in))

    def _attention(self) -> None:
        shape, thread = self.shape, self._rank.main
        sizes = (shape.batch, shape.heads, shape.sequence, shape.head_width)
        hidden = Tensor(sizes)
        inputs: tuple[Input, ...] = (hidden, hidden, hidden, 0.0, True)
        gradient = Gradient(
            "aten::_flash_attention_backward",
            (hidden, hidden, hidden, hidden, hidden),
            (kernels.flash_attention(*sizes, backward=True),),
        )
        backward = Backward("ScaledDotProductFlashAttentionBackward0", (gradient,))
        with (
            thread.op("aten::scaled_dot_product_attention", inputs),
            self._tape.forward("aten::_scaled_dot_product_flash_attention", inputs, hidden, backward),
            thread.op("aten::_flash_attention_forward", inputs),
        ):
            self._run(kernels.flash_attention(*sizes, backward=False))

    def _gelu(self) -> None:
        wide = self._hidden(4 * self.shape.width)
        kernel = kernels.elementwise("at::native::GeluBackwardCUDAKernelImpl", wide, 3)
        gradient = Gradient("aten::gelu_backward", (wide, wide), (kernel,))
        with self._tape.forward("aten::gelu", (wide,), wide, Backward("GeluBackward0", (gradient,))):
            self._run(kernels.elementwise("at::native::GeluCUDAKernelImpl", wide, 2))

    def _residual(self) -> None:
        hidden = self._hidden(self.shape.width)
        with self._tape.forward("aten::add", (hidden, hidden, 1), hidden, Backward("AddBackward0")):
            self._run(kernels.elementwise("at::native::CUDAFunctor_add<c10::BFloat16>", hidden, 3))

    def _extra(self, op: str) -> None:
        """One pass over the activations that the model does not need."""
        hidden = self._hidden(self.shape.width)
        name = op.rpartition(":")[2]
        with self._tape.forward(op, (hidden,), hidden, Backward(f"{name.title()}Backward0")):
            self._run(kernels.elementwise(f"at::native::{name}_kernel_cuda", hidden, 2))

    def _loss(self) -> None:
        tokens, vocabulary = self.shape.tokens, self.shape.vocabulary
        logits, target, loss = Tensor((tokens, vocabulary)), Tensor((tokens,), "long int"), Tensor(())
        log_softmax = Gradient(
            "aten::_log_softmax_backward_data",
            (logits, logits, 1),
            (kernels.softmax(tokens, vocabulary, backward=True),),
        )
        nll_loss = Gradient(
            "aten::nll_loss_backward",
            (loss, logits, target),
            (kernels.nll_loss(tokens, backward=True),),
            zeroed_bytes=logits.nbytes,
        )
        with self._rank.main.op("aten::cross_entropy_loss", (logits, target, None, 1, -100, 0.0)):
            backward = Backward("LogSoftmaxBackward0", (log_softmax,))
            with self._tape.forward("aten::_log_softmax", (logits, 1), logits, backward):
                self._run(kernels.softmax(tokens, vocabulary, backward=False))
            backward = Backward("NllLossBackward0", (nll_loss,))
            with self._tape.forward("aten::nll_loss_forward", (logits, target), loss, backward):
                self._run(kernels.nll_loss(tokens, backward=False))

    def _hidden(self, width: int) -> Tensor:
        return Tensor((self.shape.batch, self.shape.sequence, width))

    def _run(self, kernel: Kernel) -> None:
        self._rank.launch(self._rank.main, kernel)
