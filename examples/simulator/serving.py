"""A small inference server: prompts are read eagerly, tokens are decoded by replaying CUDA graphs.

There is no `ProfilerStep`; a step is what the scheduler names, as SGLang does: `step[EXTEND bs=4 toks=2048]`,
`step[DECODE bs=16]`.
"""

from __future__ import annotations

from collections.abc import Iterator

from examples.simulator import kernels
from examples.simulator.device import COMPUTE_STREAM
from examples.simulator.gpt import Gpt, GptShape
from examples.simulator.kernels import Kernel
from examples.simulator.rank import Rank
from examples.simulator.tensor import Tensor

_CONTEXT_TOKENS = 1_600


def serve(rank: Rank, model: Gpt, steps: int, decode_batches: tuple[int, ...]) -> Iterator[None]:
    """One prompt step, then decode steps whose batch size changes as requests come and go."""
    prompt = model.shape
    yield from _extend(rank, model, prompt)
    for step in range(steps - 1):
        batch = decode_batches[step * len(decode_batches) // max(1, steps - 1)]
        yield from _decode(rank, prompt, batch, graph_id=1 + decode_batches.index(batch))


def serve_continuously(rank: Rank, model: Gpt, plan: tuple[tuple[int, int], ...]) -> Iterator[None]:
    """Steps whose batches change as requests come: (prompts, requests that decode) of each.

    Prompts are read eagerly, alone or beside requests that decode; what only decodes is a graph.
    """
    shape, lengths = model.shape, 0
    graphs = sorted({decodes for prompts, decodes in plan if not prompts})
    for prompts, decodes in plan:
        lengths = max(lengths, decodes * _CONTEXT_TOKENS) + decodes
        with rank.main.annotation(_label(shape, prompts, decodes, lengths)):
            _copy_input(rank, Tensor((shape.tokens * prompts + decodes,), "long int"))
            if prompts:
                model.forward()
                _decode_beside(rank, shape, decodes)
            else:
                graph = _captured_graph(shape, decodes)
                rank.launch_graph(rank.main, 1 + graphs.index(decodes), graph)
            yield from _sample(rank, shape, prompts + decodes)
        _schedule(rank)


def _label(shape: GptShape, prompts: int, decodes: int, lengths: int) -> str:
    """As SGLang's detailed annotations name a step."""
    read = shape.tokens * prompts
    context = f"c_sq={read} c_sqsq={read * read} c_sqsk={read * read} c_sk={read}"
    decoding = f"g_sq={decodes} g_sqsq={decodes} g_sqsk={lengths} g_sk={lengths}"
    if prompts and decodes:
        return f"step[MIXED bs={prompts + decodes} c={prompts} g={decodes} {context} {decoding}]"
    if prompts:
        return f"step[EXTEND bs={prompts} toks={read} {context}]"
    return f"step[DECODE bs={decodes} {decoding}]"


def _decode_beside(rank: Rank, shape: GptShape, decodes: int) -> None:
    """Attention of the requests that decode while a prompt is read."""
    if not decodes:
        return
    query = Tensor((decodes, shape.width))
    for _ in range(shape.layers):
        with rank.main.op("vllm::unified_attention", (query, query, query)):
            rank.launch(
                rank.main, kernels.decode_attention(decodes, shape.heads, _CONTEXT_TOKENS, shape.head_width)
            )


def _captured_graph(shape: GptShape, batch: int) -> list[Kernel]:
    """As `_decode_graph`, with the kernels of a server: rotary embedding, and the write to the cache."""
    width = shape.width
    hidden, wide = Tensor((batch, width)), Tensor((batch, 4 * width))
    norm = kernels.layer_norm(batch, width)
    layer = [
        norm,
        kernels.gemm(batch, 3 * width, width),
        kernels.elementwise("vllm::rotary_embedding_kernel", hidden, 4),
        kernels.elementwise("vllm::reshape_and_cache_flash_kernel", hidden, 4),
        kernels.decode_attention(batch, shape.heads, _CONTEXT_TOKENS, shape.head_width),
        kernels.gemm(batch, width, width),
        norm,
        kernels.gemm(batch, 4 * width, width),
        kernels.elementwise("at::native::GeluCUDAKernelImpl", wide, 2),
        kernels.gemm(batch, width, 4 * width),
    ]
    return [
        kernels.gather_rows(batch, width),
        *(layer * shape.layers),
        norm,
        kernels.gemm(batch, shape.vocabulary, width),
    ]


def _extend(rank: Rank, model: Gpt, shape: GptShape) -> Iterator[None]:
    with rank.main.annotation(f"step[EXTEND bs={shape.batch} toks={shape.tokens}]"):
        _copy_input(rank, Tensor((shape.tokens,), "long int"))
        model.forward()
        yield from _sample(rank, shape, shape.batch)
    _schedule(rank)


def _decode(rank: Rank, shape: GptShape, batch: int, graph_id: int) -> Iterator[None]:
    with rank.main.annotation(f"step[DECODE bs={batch}]"):
        _copy_input(rank, Tensor((batch,), "long int"))
        rank.launch_graph(rank.main, graph_id, _decode_graph(shape, batch))
        yield from _sample(rank, shape, batch)
    _schedule(rank)


def _decode_graph(shape: GptShape, batch: int) -> list[Kernel]:
    """The kernels captured for one batch size, in the order of their graph nodes."""
    width = shape.width
    hidden, wide = Tensor((batch, width)), Tensor((batch, 4 * width))
    residual = kernels.elementwise("at::native::CUDAFunctor_add<c10::BFloat16>", hidden, 3)
    layer = [
        kernels.layer_norm(batch, width),
        kernels.gemm(batch, 3 * width, width),
        kernels.decode_attention(batch, shape.heads, _CONTEXT_TOKENS, shape.head_width),
        kernels.gemm(batch, width, width),
        residual,
        kernels.layer_norm(batch, width),
        kernels.gemm(batch, 4 * width, width),
        kernels.elementwise("at::native::GeluCUDAKernelImpl", wide, 2),
        kernels.gemm(batch, width, 4 * width),
        residual,
    ]
    return [
        kernels.gather_rows(batch, width),
        *(layer * shape.layers),
        kernels.layer_norm(batch, width),
        kernels.gemm(batch, shape.vocabulary, width),
    ]


def _copy_input(rank: Rank, tokens: Tensor) -> None:
    """New tokens go into the buffer the graph was captured with."""
    with rank.main.op("aten::copy_", (tokens, tokens, True)):
        rank.copy(rank.main, "HtoD", tokens.nbytes)
    with rank.main.op("aten::copy_", (tokens, tokens, True)):
        rank.copy(rank.main, "DtoD", tokens.nbytes)


def _sample(rank: Rank, shape: GptShape, batch: int) -> Iterator[None]:
    """Greedy sampling; the scheduler needs the tokens, so the host waits."""
    thread, logits = rank.main, Tensor((batch, shape.vocabulary))
    with thread.op("aten::argmax", (logits, -1, False)):
        rank.launch(thread, kernels.argmax(batch, shape.vocabulary))
    with thread.op("aten::copy_", (Tensor((batch,), "long int"), Tensor((batch,), "long int"), False)):
        rank.copy(thread, "DtoH", 8 * batch)
        yield from rank.synchronize(thread, COMPUTE_STREAM)


def _schedule(rank: Rank) -> None:
    """Between steps the scheduler picks the next batch in Python: the device waits."""
    with rank.main.frame("scheduler.py(88): get_next_batch_to_run"):
        rank.main.spend(90_000, 160_000)
