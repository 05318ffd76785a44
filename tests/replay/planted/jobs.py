"""Jobs of one rank, each with its own limit: the device, the host, the data loader, waiting, the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.replay.planted.author import AUTOGRAD, COMPUTE, MS, US, Author
from tests.replay.planted.program import MAIN, Program

__all__ = ["JOBS", "LOADER"]

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
_OPTIMIZER = "Optimizer.step#SGD.step"
_COPY, _SIDE, _NCCL = 13, 16, 20
_GEMM, _ATTENTION = "gemm_bf16_128x256_tn", "flash_fwd_kernel"
_ELEMENTWISE = "vectorized_elementwise_kernel"
_STEPS = 6


def compute_bound() -> Program:
    """One stream that never rests; the loss is read once a step."""
    author = Author(1)
    for _ in _steps(author):
        _load(author, 300 * US)
        author.copy("HtoD", 60 * US)
        with author.annotation("## forward ##"):
            for _ in range(10):
                _layer(author, 200 * US)
        with _backward(author):
            for _ in range(10):
                _layer(author, 200 * US, "Backward")
                _layer(author, 200 * US, "Backward")
        _optimizer(author, 8, 60 * US)
        author.item()
    return author.program()


def host_bound() -> Program:
    """Many small kernels: the device is idle most of the time. The batch comes from pageable memory."""
    author = Author(2)
    for _ in _steps(author):
        _load(author, 1_500 * US)
        author.copy("HtoD", 80 * US, blocking=True)
        author.fill(2 * US)
        with author.annotation("## forward ##"):
            for _ in range(12):
                _layer(author, 5 * US, pause=5 * US)
        with author.annotation("## log ##"):
            author.host(400 * US)
        with _backward(author):
            for _ in range(12):
                _layer(author, 5 * US, "Backward", pause=5 * US)
                _layer(author, 6 * US, "Backward", pause=5 * US)
        _optimizer(author, 70, 3 * US)
        author.item()
    return author.program()


def loader_bound() -> Program:
    """A slow data loader, copies on a stream of their own, and all-reduces beside the backward pass."""
    author = Author(3)
    for _ in _steps(author):
        _load(author, 9 * MS)
        author.allocate(250 * US, "cudaHostAlloc")
        author.copy("HtoD", 700 * US, _COPY)
        author.copy("HtoD", 40 * US, _COPY)
        author.wait(COMPUTE, author.record(_COPY))
        with author.annotation("DistributedDataParallel.forward"):
            for _ in range(8):
                _layer(author, 70 * US)
        _reducing_backward(author, 8, 70 * US, 700 * US)
        _optimizer(author, 16, 25 * US)
        author.item()
    return author.program()


def sync_bound() -> Program:
    """The host waits for the device in every layer, and the allocator goes to the driver."""
    author = Author(4)
    for _ in _steps(author):
        _load(author, 400 * US)
        author.copy("HtoD", 120 * US, blocking=True)
        for layer in range(10):
            _layer(author, 22 * US)
            if layer % 5 == 4:
                author.allocate(120 * US)
            if layer % 5 == 2:
                author.allocate(60 * US, "cudaFree")
            if layer % 2:
                author.item()
            else:
                event = author.record(COMPUTE)
                author.host(30 * US)
                author.synchronise(event=event)
                author.host(25 * US)
        with _backward(author):
            for _ in range(10):
                _layer(author, 40 * US, "Backward")
            author.synchronise(COMPUTE)
        _optimizer(author, 30, 8 * US)
    author.synchronise()
    return author.program()


def communication_bound() -> Program:
    """All-reduces that take longer than all computing; the host runs ahead."""
    author = Author(5)
    for _ in _steps(author):
        _load(author, 200 * US)
        author.copy("HtoD", 90 * US)
        with author.annotation("DistributedDataParallel.forward"):
            for _ in range(6):
                _layer(author, 90 * US)
        _reducing_backward(author, 6, 90 * US, 3 * MS)
        _optimizer(author, 10, 30 * US)
    author.synchronise()
    return author.program()


def queue_bound() -> Program:
    """Inference whose host runs ahead until the launch queue is full; the answer of each batch is read."""
    author = Author(6)
    for _ in _steps(author, 3):
        author.copy("HtoD", 30 * US)
        with author.annotation("## compiled ##"):
            for _ in range(260):
                for kernel, ns in (
                    (_GEMM, 70),
                    (_ELEMENTWISE, 10),
                    (_ATTENTION, 50),
                    (_GEMM, 55),
                    (_ELEMENTWISE, 12),
                ):
                    author.host(3 * US)
                    author.launch(kernel, ns * US)
        author.item()
    return author.program()


def unread() -> Program:
    """Nothing is read before the last step is done: the host is several steps ahead of the device."""
    author = Author(7)
    for _ in _steps(author, 8):
        _load(author, 100 * US)
        author.copy("HtoD", 60 * US)
        with author.annotation("## forward ##"):
            for _ in range(8):
                _layer(author, 110 * US)
        with _backward(author):
            for _ in range(8):
                _layer(author, 220 * US, "Backward")
        _optimizer(author, 20, 20 * US)
    author.synchronise()
    return author.program()


def hidden_communication() -> Program:
    """All-reduces and prefetched copies that computing hides; the loss is read every step."""
    author = Author(8)
    prefetched = None
    for _ in _steps(author):
        author.wait(COMPUTE, prefetched or _prefetch(author))
        with author.annotation("DistributedDataParallel.forward"):
            for _ in range(8):
                _layer(author, 100 * US)
        prefetched = _prefetch(author)
        _reducing_backward(author, 9, 100 * US, 500 * US)
        _optimizer(author, 12, 40 * US)
        author.item()
    return author.program()


def prefetched_gathers() -> Program:
    """As FSDP: each layer waits for its parameters, which are gathered while the one before computes."""
    author = Author(11)
    for _ in _steps(author):
        _load(author, 150 * US)
        author.copy("HtoD", 60 * US)
        for suffix in ("", "Backward"):
            gathered = _gather(author, 300 * US)
            for layer in range(8):
                following = _gather(author, 300 * US) if layer < 7 else None
                author.wait(COMPUTE, gathered)
                _layer(author, 90 * US, suffix)
                gathered = following or gathered
        _optimizer(author, 10, 40 * US)
        author.item()
    return author.program()


def side_stream() -> Program:
    """A layer forks into two streams that meet again, each the longer one in its turn."""
    author = Author(9)
    for _ in _steps(author):
        _load(author, 250 * US)
        author.copy("HtoD", 50 * US)
        for layer in range(12):
            _layer(author, 60 * US)
            author.wait(_SIDE, author.record(COMPUTE))
            with author.operator("moe::shared_expert"):
                author.launch(_GEMM, (700 if layer % 2 else 250) * US, _SIDE)
            joined = author.record(_SIDE)
            _layer(author, 90 * US)
            author.wait(COMPUTE, joined)
        _optimizer(author, 6, 60 * US)
        author.item()
    return author.program()


def graph_bound() -> Program:
    """Decoding by graphs: one launch for many kernels, and a scheduler on the host between two tokens."""
    author = Author(10)
    layer = [
        (_GEMM, 9 * US),
        (_ATTENTION, 6 * US),
        (_ELEMENTWISE, 3 * US),
        (_GEMM, 14 * US),
        (_ELEMENTWISE, 3 * US),
    ]
    for _ in _steps(author, 8):
        with author.annotation("## schedule ##"):
            author.host(900 * US)
        author.copy("HtoD", 3 * US)
        author.graph(layer * 30)
        with author.operator("aten::argmax"):
            author.launch("reduce_kernel", 12 * US)
        author.item()
    return author.program()


JOBS: Mapping[str, Callable[[], Program]] = {
    "compute_bound": compute_bound,
    "host_bound": host_bound,
    "loader_bound": loader_bound,
    "sync_bound": sync_bound,
    "communication_bound": communication_bound,
    "queue_bound": queue_bound,
    "unread": unread,
    "hidden_communication": hidden_communication,
    "prefetched_gathers": prefetched_gathers,
    "side_stream": side_stream,
    "graph_bound": graph_bound,
}


def _steps(author: Author, count: int = _STEPS) -> Iterator[int]:
    """Each step, while its annotation is open."""
    for step in range(count):
        with author.inside("user_annotation", f"ProfilerStep#{step}", 8 * US, 4 * US):
            yield step
        author.host(6 * US)


def _load(author: Author, ns: int) -> None:
    author.host(10 * US)
    with author.inside("user_annotation", LOADER):
        author.host(ns)


def _prefetch(author: Author) -> int:
    """Load a batch and copy it on a stream of its own; the event of its end."""
    _load(author, 600 * US)
    author.copy("HtoD", 800 * US, _COPY)
    return author.record(_COPY)


def _layer(author: Author, ns: int, suffix: str = "", pause: int = 3 * US) -> None:
    """Five operators, whose kernels take `ns` on average."""
    for operator, kernel, permille in (
        ("aten::native_layer_norm", "vectorized_layer_norm_kernel", 400),
        ("aten::mm", _GEMM, 1_700),
        ("aten::scaled_dot_product_attention", _ATTENTION, 1_200),
        ("aten::mm", _GEMM.replace("tn", "nn"), 1_400),
        ("aten::native_dropout", _ELEMENTWISE, 300),
    ):
        with author.operator(operator + suffix, pause):
            author.launch(kernel, ns * permille // 1000)


@contextmanager
def _backward(author: Author) -> Iterator[None]:
    """What is written meanwhile runs on the thread of autograd, and the main thread waits for it."""
    author.host(20 * US)
    author.hand_over(AUTOGRAD)
    yield
    author.hand_over(MAIN)
    author.host(15 * US)


def _reducing_backward(author: Author, layers: int, kernel_ns: int, reduce_ns: int) -> None:
    """A backward pass whose every other layer's gradients are exchanged, and waited for at its end."""
    with _backward(author):
        reduced = []
        for layer in range(layers):
            _layer(author, kernel_ns, "Backward")
            _layer(author, kernel_ns, "Backward")
            if layer % 2:
                reduced.append(_all_reduce(author, reduce_ns))
        for event in reduced:
            author.wait(COMPUTE, event)


def _all_reduce(author: Author, ns: int) -> int:
    """Sum a bucket on a stream of its own that waits for the gradients; the event of its end."""
    with author.operator("c10d::allreduce_", 8 * US):
        author.wait(_NCCL, author.record(COMPUTE))
        with author.annotation("nccl:all_reduce"):
            author.launch(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                ns,
                _NCCL,
                "communication",
                "cudaLaunchKernelExC",
                elements=ns,
            )
        return author.record(_NCCL)


def _gather(author: Author, ns: int) -> int:
    """Gather parameters on a stream that waits for nothing; the event of its end."""
    with author.operator("c10d::_allgather_base_", 8 * US):
        author.launch(
            "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            ns,
            _NCCL,
            "communication",
            "cudaLaunchKernelExC",
            elements=ns,
        )
        return author.record(_NCCL)


def _optimizer(author: Author, parameters: int, ns: int) -> None:
    with author.annotation(_OPTIMIZER):
        for _ in range(parameters):
            with author.operator("aten::add_", 4 * US):
                author.launch("multi_tensor_apply_kernel", ns)
