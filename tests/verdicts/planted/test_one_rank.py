"""Programs of one rank whose time goes to a known place: it is said, with its place, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings import (
    CHECKED,
    OPEN,
    idle_rules,
    overview,
    pause_rules,
    python_rules,
    region_rules,
    verdict_rules,
)
from hta_widgets.analysis.registry import ANALYSES
from tests.claims.checking import faults_of
from tests.first_lines import first_lines
from tests.verdicts.planted.host_program import MS, US, Program

STEPS = range(1, 7)


@dataclass(frozen=True)
class Case:
    """A program, and what must be said of it.

    Attributes:
        program: builds it.
        first: the topic that comes first; "" if nothing may be said of its time.
        also: further topics that must be told; all others must not.
        words: what the text or the advice of the first must contain.
        never: what no text and no advice may contain.
        share: the share (%) of the first, to a tenth of a point.
        clock: how the iterations are timed when it is opened.
        texts: what some text must contain.
        unknown: what a question that stays open says is missing.
    """

    program: Callable[[], Program]
    first: str
    also: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    share: float | None = None
    clock: str = "auto"
    unknown: str = ""
    texts: tuple[str, ...] = ()


def loop(body: Callable[[Program, int], None], steps: range = STEPS) -> Callable[[], Program]:
    """A program of marked steps, each `body(program, number)`."""

    def build() -> Program:
        program = Program()
        for number in steps:
            with program.step(number):
                body(program, number)
        return program

    return build


def busy(program: Program, kernels: int = 20, ns: int = 100 * US) -> None:
    """Kernels that are launched far ahead, and a wait for them at the end: the device is never idle."""
    for _ in range(kernels):
        program.launch(ns)
    program.synchronise()


def late(program: Program, name: str = "aten::slow_op", ns: int = 100 * US, kernels: int = 10) -> None:
    """A kernel of 50 us after each operator of 100 us: the device waits for the host."""
    for _ in range(kernels):
        program.operator(name, ns)
        program.launch(50 * US)
    program.synchronise()


def compiled(program: Program, number: int) -> None:
    for _ in range(10):
        program.operator("aten::slow_op", 100 * US)
        program.launch(50 * US, "triton_poi_fused_add_0")
    program.synchronise()


def graphs(program: Program, number: int) -> None:
    program.operator("prepare", 400 * US)
    program.replay(20, 20 * US)
    program.synchronise()


def replays(recorded: dict[int, int], **numbered: int) -> Callable[[], Program]:
    """A step is three replays of a graph; `recorded` says of which steps' second one how much is recorded."""

    def body(program: Program, number: int) -> None:
        for place in range(3):
            program.operator("prepare", 10 * US)
            kernels = recorded.get(number) if place == 1 else None
            program.replay(40, 100 * US, recorded=kernels, **numbered)
        program.synchronise()

    return loop(body)


def replays_of_batches(program: Program, number: int) -> None:
    """Two graphs for batches of different sizes, one of which comes once."""
    program.replay(40, 100 * US)
    program.replay(40, 100 * US)
    if number == 3:
        program.replay(10, 100 * US, grid=8)
    program.synchronise()


def replays_in_pieces(program: Program, number: int) -> None:
    """A step is many small graphs; the last piece of the last step is another one, as when it samples."""
    for _ in range(20):
        program.replay(8, 100 * US)
    if number == 5:
        program.replay(2, 100 * US)
    program.synchronise()


def replays_of_halves(program: Program, number: int) -> None:
    """A large graph, and a small one of some of its kernels, in turn."""
    program.replay(40, 100 * US)
    program.replay(10, 100 * US)
    program.synchronise()


def stalls(program: Program, number: int) -> None:
    program.load(MS)
    busy(program, 10)


def loads_in_the_loop(program: Program, number: int) -> None:
    program.load(MS, "_SingleProcessDataLoaderIter")
    busy(program, 10)


def loads_in_a_function(program: Program, number: int) -> None:
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    with program.inside("user_annotation", name):
        program.silence(100 * US)
        with program.inside(
            "python_function", "/home/x/transforms.py(12): decode_jpeg", **{"Python id": number}
        ):
            program.silence(900 * US)
    busy(program, 10)


def loads_ahead(program: Program, number: int) -> None:
    for _ in range(10):
        program.launch(100 * US)
    program.load(800 * US)  # while the device works
    program.synchronise()


def blocked(program: Program, number: int) -> None:
    for _ in range(5):
        program.launch(100 * US)
        program.synchronise(tail=80 * US, name="cudaStreamSynchronize")


def reads_back(rounds: int) -> Callable[[Program, int], None]:
    """So often the host reads a value of what it launched, and does something with it before it goes on."""

    def body(program: Program, number: int) -> None:
        for at in range(10):
            program.launch(100 * US)
            if at < rounds:
                with program.inside("cpu_op", "aten::item"):
                    program.silence(US)
                    program.synchronise(name="cudaStreamSynchronize")
                program.operator("route", 60 * US)
            else:
                program.operator("aten::slow_op", 200 * US)
        program.synchronise()

    return body


def launches_slowly(program: Program, number: int) -> None:
    for _ in range(20):
        program.launch(20 * US, call=30 * US)
    program.synchronise()


def launches_after_waits(program: Program, number: int) -> None:
    for _ in range(20):
        program.launch(60 * US, call=30 * US)
        program.synchronise(name="cudaStreamSynchronize")


def small_kernels_of_the_optimizer(program: Program, number: int) -> None:
    """The host is far ahead of them, so that its own time says nothing."""
    program.launch(1_000 * US)
    with program.inside("user_annotation", "Optimizer.step#SGD.step"):
        for _ in range(300):
            program.launch(US, call=US)
    program.synchronise()


def small_kernels(program: Program, number: int) -> None:
    program.launch(200 * US)
    for _ in range(100):
        program.launch(4 * US, call=US)
    program.synchronise()


def waits_for_a_stream(program: Program, number: int) -> None:
    program.launch(100 * US)
    program.launch(100 * US, stream=20, at=program.now + 600 * US)  # as an event would hold it back
    program.synchronise()


def waits_for_nothing(program: Program, number: int) -> None:
    program.launch(100 * US)
    program.launch(100 * US, at=program.now + 600 * US)  # as another process on the device would
    program.synchronise()


def fetches(program: Program, number: int) -> None:
    program.load(300 * US)
    busy(program, 15)


def first_step_starts_up(program: Program, number: int) -> None:
    if number == 1:
        program.operator("aten::conv2d", 10 * US)
        program.launch(100 * US, call=20 * MS)
    late(program)


def only_start_up(program: Program, number: int) -> None:
    program.operator("aten::conv2d", 10 * US)
    program.launch(100 * US)
    program.synchronise()
    program.driver("cudaFree", 20 * MS)
    program.driver("cudaStreamCreateWithFlags", 15 * MS)
    program.driver("cudaFree", 10 * MS)
    late(program)


def allocates_in_every_step(program: Program, number: int) -> None:
    program.launch(500 * US)
    program.synchronise()
    program.driver("cudaMalloc", 2 * MS)
    busy(program, 10)


def frees_in_every_step(program: Program, number: int) -> None:
    program.launch(500 * US)
    program.synchronise(tail=MS, name="cudaFree")
    program.launch(500 * US)
    program.synchronise()


def steps_on_the_host(ns: int, pieces: int = 1) -> Callable[[Program, int], None]:
    """An optimizer that computes on the host for so long, in operators with a kernel behind each."""

    def body(program: Program, number: int) -> None:
        busy(program, 10)
        with program.inside("user_annotation", "Optimizer.step#CPUAdam.step"):
            for _ in range(pieces):
                program.operator("CPUAdam", ns // pieces)
                program.launch(5 * US, "add")
        program.synchronise()

    return body


def logs(program: Program, number: int) -> None:
    """The host reports in a range of its own, which holds no call."""
    with program.inside("user_annotation", "log_metrics"):
        program.silence(400 * US)
    busy(program, 10)


def captures() -> Program:
    program = Program()
    busy(program, 3)
    with program.capture():
        for _ in range(50):
            program.operator("aten::mm", 10 * US)
            program.launch(50 * US)
    program.driver("cudaGraphInstantiate", 500 * US)
    return program


def captures_a_little(program: Program, number: int) -> None:
    if number == 1:
        with program.capture():
            for _ in range(3):
                program.launch(50 * US)
    busy(program)


def host_late(program: Program, number: int) -> None:
    late(program)


def numbered(every: int) -> Callable[[], Program]:
    """Operators of which only each n-th is in the file."""

    def build() -> Program:
        program = Program()
        for number in STEPS:
            with program.step(number):
                late(program)
        operators = sorted(
            (e for e in program.events if e["cat"] == "cpu_op"), key=lambda e: e["args"]["External id"]
        )
        removed = {id(e) for at, e in enumerate(operators) if at % every}
        program.events = [e for e in program.events if id(e) not in removed]
        return program

    return build


def filtered(body: Callable[[Program, int], None]) -> Callable[[], Program]:
    """A file from which four of five operators were removed."""

    def build() -> Program:
        program = loop(lambda program, number: (body(program, number), late(program))[0])()
        operators = [event for event in program.events if event["cat"] == "cpu_op"]
        operators.sort(key=lambda event: event["args"]["External id"])
        removed = {id(event) for at, event in enumerate(operators) if at % 5}
        program.events = [event for event in program.events if id(event) not in removed]
        return program

    return build


def earlier_work_first(waits: bool) -> Callable[[], Program]:
    """One step. The device is busy with earlier work for 10 ms; the host waits for it, or launches ahead."""

    def build() -> Program:
        program = Program()
        with program.step(1):
            program.earlier(10 * MS)
            if waits:
                program.synchronise()
            late(program, kernels=20)
        return program

    return build


def runs_behind(program: Program, number: int) -> None:
    for _ in range(40):
        program.launch(100 * US)


def once_in_a_step() -> Program:
    program = Program()
    with program.step(1):
        busy(program, 5)
        program.operator("aten::checkpoint", 3 * MS)
        busy(program, 5)
    return program


def clears_a_cache(program: Program, number: int) -> None:
    """A region of the user's that ends before the next launch, and holds a call for a fifth of its time."""
    for _ in range(5):
        with program.inside("user_annotation", "clear_cache"):
            program.silence(120 * US)
            program.operator("aten::empty", 30 * US)
        program.launch(50 * US)
    busy(program, 10)


def says_nothing(program: Program, number: int) -> None:
    for _ in range(10):
        program.silence(100 * US)
        program.launch(50 * US)
    program.synchronise()


def says_nothing_with_stacks(program: Program, number: int) -> None:
    with program.inside("python_function", "train.py(3): step", tid=9, **{"Python id": number}):
        says_nothing(program, number)


def copies(program: Program, number: int) -> None:
    program.copy(500 * US)
    busy(program, 10)


def copies_beside_compute(program: Program, number: int) -> None:
    for _ in range(10):
        program.launch(100 * US)
    program.copy(500 * US, name="Memcpy HtoD (Pinned -> Device)", stream=20)
    program.synchronise()


def copies_of_level_zero(program: Program, number: int) -> None:
    program.copy(500 * US, name="zeCommandListAppendMemoryCopy(M2D)")
    busy(program, 10)


def copies_within_the_device(program: Program, number: int) -> None:
    program.copy(500 * US, name="Memcpy DtoD (Device -> Device)")
    busy(program, 10)


def copies_while_the_host_is_late(program: Program, number: int) -> None:
    for _ in range(5):
        program.copy(100 * US, name="Memcpy HtoD (Pinned -> Device)")
        program.operator("aten::slow_op", 400 * US)
        program.launch(50 * US)
        program.operator("aten::slow_op", 200 * US)


def loses_device_work(kept_every: int) -> Callable[[], Program]:
    def body(program: Program, number: int) -> None:
        for at in range(20):
            program.operator("aten::mm", 100 * US)
            program.launch(50 * US, recorded=("call", "work") if at % kept_every == 0 else ("call",))
        program.synchronise()

    return loop(body)


def lacks_launches(program: Program, number: int) -> None:
    program.launch(10 * US)
    for _ in range(10):
        program.operator("aten::mm", 100 * US)
        program.launch(50 * US, recorded=("work",))
    program.synchronise()


def lacks_a_launch(program: Program, number: int) -> None:
    for _ in range(10):
        program.operator("aten::mm", 10 * US)
        program.launch(50 * US)
        program.synchronise()
    program.operator("aten::mm", 40 * US)
    program.launch(50 * US, recorded=("work",))
    program.synchronise()


def ends_early(program: Program, number: int) -> None:
    busy(program)
    if number == max(STEPS):
        program.silence(60 * MS)


def one_step_is_slow(excess: int) -> Callable[[], Program]:
    def body(program: Program, number: int) -> None:
        busy(program, 20 + (excess if number == 5 else 0))

    return loop(body, range(1, 11))


def slow_every(period: int, first: int, kernels: bool = False) -> Callable[[], Program]:
    """Of nine steps the first of these and each of a period have slower kernels, or more for their host."""

    def body(program: Program, number: int) -> None:
        slow = (number - first) % period == 0
        busy(program, ns=150 * US if slow and kernels else 100 * US)
        if not kernels:
            if slow:
                program.operator("aten::log", MS)
            busy(program, 5)

    return loop(body, range(1, 10))


def zeroes_gradients(program: Program, number: int) -> None:
    with program.inside("user_annotation", "Optimizer.zero_grad#SGD.zero_grad"):
        for _ in range(20):
            program.operator("aten::zero_", 40 * US)
            program.launch(5 * US, "fill")
    busy(program, 5)


def fills_ahead(program: Program, number: int) -> None:
    """Long fills, which the host launches quickly."""
    with program.inside("user_annotation", "Optimizer.zero_grad#SGD.zero_grad"):
        for _ in range(20):
            program.launch(100 * US, "Memset (Device)", kind="gpu_memset", api="cudaMemsetAsync")
    for _ in range(10):
        program.launch(100 * US)
    program.synchronise()


def optimizes(launches: int, name: str = "Optimizer.step#SGD.step") -> Callable[[Program, int], None]:
    """An optimizer that launches an update of 5 us for each parameter, after an operator of 40 us."""

    def body(program: Program, number: int) -> None:
        busy(program, 10)
        with program.inside("user_annotation", name):
            for _ in range(launches):
                program.operator("aten::add_", 40 * US)
                program.launch(5 * US, "add")
        program.synchronise()

    return body


def copies_buckets(copies: int) -> Callable[[Program, int], None]:
    """DDP copies buckets into gradients, each in an operator of 20 us, and waits between them."""

    def body(program: Program, number: int) -> None:
        busy(program, 10)
        for _ in range(copies):
            with program.inside("cpu_op", "torch.distributed.ddp.reducer::copy_bucket_to_grad"):
                program.operator("aten::copy_", 18 * US)
                program.copy(2 * US, "Memcpy DtoD (Device -> Device)")
        program.synchronise()

    return body


def optimizes_behind_the_host(program: Program, number: int) -> None:
    """The device has work for longer than the optimizer takes its host."""
    with program.inside("user_annotation", "Optimizer.step#SGD.step"):
        for _ in range(40):
            program.operator("aten::add_", 20 * US)
            program.launch(100 * US, "add")
    program.synchronise()


def without_steps(body: Callable[[Program, int], None]) -> Callable[[], Program]:
    def build() -> Program:
        program = Program()
        for number in STEPS:
            body(program, number)
        return program

    return build


def allocates(calls: int, *names: str) -> Callable[[Program, int], None]:
    """The host asks the driver for memory while the device has nothing to do, by each name in turn."""
    names = names or ("cudaMalloc",)

    def body(program: Program, number: int) -> None:
        busy(program, 10)
        for call in range(calls):
            program.driver(names[call % len(names)], 600 * US // calls)
        busy(program, 10)

    return body


_COPY_KERNEL = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda()>"
_FALLBACK_KERNEL = "naive_conv_ab_nonpacked_fwd_nchw_half_double_half"
_LAYOUT_KERNEL = (
    "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>"
)


def also_runs(kernel: str, ns: int, operators: tuple[str, ...]) -> Callable[[Program, int], None]:
    """Kernels of 2 ms, and one more, launched inside these operators in a module at a line."""

    def body(program: Program, number: int) -> None:
        with (
            program.inside("python_function", "/home/x/train.py(12): step", **{"Python id": 3 * number}),
            program.inside("python_function", "nn.Module: Block_0", **{"Python id": 3 * number + 1}),
            ExitStack() as stack,
        ):
            for operator in operators:
                stack.enter_context(program.inside("cpu_op", operator))
                program.silence(US)
            program.launch(ns, kernel)
        busy(program, 20)

    return body


def in_a_module(program: Program, number: int) -> None:
    """The device waits in two modules about as long, and a little elsewhere."""
    for name, ns in (("Rotary_0", 430 * US), ("Embedding_0", 400 * US), ("Norm_0", 170 * US)):
        with program.inside("python_function", f"nn.Module: {name}", **{"Python id": 1}):
            program.operator("aten::op", ns)
            program.launch(50 * US)
    program.synchronise()


def exchanges(name: str) -> Callable[[], Program]:
    """Kernels on a stream of their own, beside compute; the file states a job of two ranks."""

    def body(program: Program, number: int) -> None:
        for _ in range(20):
            program.launch(100 * US)
        program.launch(900 * US, name, stream=27)
        program.synchronise()

    return loop(body)


def no_device() -> Program:
    program = Program()
    for number in STEPS:
        with program.step(number):
            program.operator("aten::mm", MS)
    return program


CASES = {
    "host late": Case(
        loop(host_late),
        "idle_host",
        words=("lies in aten::slow_op", "Look at aten::slow_op first", "CUDA graphs"),
    ),
    "host ahead": Case(loop(lambda program, _: busy(program)), "compute_bound", never=("launches too late",)),
    "compiled code, host late": Case(
        loop(compiled), "idle_host", never=("torch.compile,", "torch.compile fuses")
    ),
    "graphs, host late between them": Case(
        loop(graphs),
        "idle_host",
        words=("prepare",),
        never=("CUDA graphs", "torch.compile"),
    ),
    "loader": Case(loop(stalls), "data_stall", words=("num_workers or prefetch_factor",)),
    "loader in the loop": Case(loop(loads_in_the_loop), "data_stall", words=("num_workers is 0",)),
    "loader in one function": Case(
        loop(loads_in_a_function),
        "data_stall",
        words=(
            "90.0 % of it lies in transforms.py(12): decode_jpeg",
            "Speed up transforms.py(12): decode_jpeg",
        ),
        never=("/home/x", "num_workers is 0"),
    ),
    "loader behind compute": Case(loop(loads_ahead), "compute_bound", never=("loader",)),
    "blocked": Case(loop(blocked), "sync_calls", ("launch_bound",), words=("cudaStreamSynchronize",)),
    "slow launches": Case(
        loop(launches_slowly),
        "launch_bound",
        words=("The host takes longer to launch",),
        never=("cudaLaunchKernel (", "synchronising"),
    ),
    "launches after waits": Case(
        loop(launches_after_waits),
        "launch_bound",
        words=("after the host had waited in cudaStreamSynchronize", "fewer synchronising calls"),
        never=("takes longer to launch",),
    ),
    "small kernels": Case(
        loop(small_kernels), "tiny_kernels", ("compute_bound",), words=("torch.compile fuses",)
    ),
    "small kernels of the optimizer": Case(
        loop(small_kernels_of_the_optimizer),
        "tiny_kernels",
        ("compute_bound", "optimizer_not_fused"),
        words=("between kernels of the optimizer: fused=True",),
        never=("larger batch",),
    ),
    "reading values back before going on": Case(
        loop(reads_back(10)),
        "values_read_back",
        words=("10 times (aten::item)",),
        texts=(
            "of it lies in route",
            " of it lies after the host had waited in aten::item until the device had nothing left to do",
            "Look at aten::item: the host cannot be ahead",
            "Look at route first",
        ),
        also=("idle_host",),
    ),
    "reading few values back": Case(
        loop(reads_back(2)),
        "idle_host",
        words=("of it lies in aten::slow_op",),
        never=("had waited", "ahead of a"),
        also=("values_read_back",),
    ),
    "held back on the only stream": Case(
        loop(waits_for_nothing),
        "device_wait",
        words=("recorded on one stream", "other processes"),
        never=("wait_stream", "another stream;", "as if it waited"),
    ),
    "fetching a batch that is there": Case(
        loop(fetches),
        "data_stall",
        ("compute_bound",),
        words=("more workers do not help",),
        never=("num_workers or", "give the DataLoader more"),
    ),
    "held back by an event": Case(loop(waits_for_a_stream), "device_wait", words=("wait_stream",)),
    "start-up in the first step": Case(
        loop(first_step_starts_up),
        "idle_host",
        ("start_up", "outside"),
        words=("aten::slow_op",),
        never=("Start-up takes",),
    ),
    "only start-up": Case(
        loop(only_start_up, range(1, 2)),
        "start_up",
        words=("cudaFree (30.0 ms), cudaStreamCreateWithFlags (15.0 ms", "warmup=3"),
        never=("torch.compile", "too late"),
        unknown="steady state",
    ),
    "allocation in every step": Case(
        loop(allocates_in_every_step),
        "idle_host",
        words=("lies in cudaMalloc", "empty_cache()"),
        never=("tart-up", "torch.compile"),
    ),
    "frees in every step": Case(
        loop(frees_in_every_step),
        "sync_calls",
        words=("lies in cudaFree", "cudaFree waits for all", "empty_cache()"),
        never=(".item()",),
    ),
    "an optimizer on the host": Case(
        loop(steps_on_the_host(4 * MS)),
        "idle_host",
        words=("lies in CPUAdam", "the host launches nothing", "in another thread or process"),
        never=("torch.compile", "foreach=True"),
    ),
    "an optimizer on the host, in small pieces": Case(
        loop(steps_on_the_host(4 * MS, pieces=20)),
        "idle_host",
        words=("lies in CPUAdam", "torch.compile"),
        never=("in another thread", "foreach=True"),  # it launches nothing
    ),
    "host with an annotation": Case(
        loop(logs), "idle_host", words=("lies in log_metrics",), never=("recorded nothing", "Mark what")
    ),
    "capture": Case(captures, "graph_capture", words=("50 of 53 launches", "do not run"), never=("idle 9",)),
    "capture of a little": Case(loop(captures_a_little), "compute_bound", never=("captured",)),
    "filtered": Case(
        numbered(5), "filtered", words=("removed", "21.4 % of the operators"), never=("too late",)
    ),
    "every other operator": Case(numbered(2), "filtered"),
    "not filtered": Case(numbered(1), "idle_host", never=("removed",)),
    "earlier work": Case(
        earlier_work_first(waits=True),
        "idle_host",
        ("earlier_work",),
        texts=("the host waits 10.0 ms in cudaDeviceSynchronize for work that was launched before",),
    ),
    "earlier work, host ahead": Case(earlier_work_first(waits=False), "compute_bound", never=("too late",)),
    "device behind its host": Case(loop(runs_behind), "compute_bound", never=("idle",)),
    "device behind, by the host's clock": Case(
        loop(runs_behind), "", clock="host", unknown="step whose time holds its own device work"
    ),
    "once": Case(once_in_a_step, "idle_host", words=("in one gap", "aten::checkpoint"), never=("CUDA",)),
    "host without records": Case(
        loop(says_nothing),
        "idle_host",
        words=("recorded nothing", "with_stack=True"),
        never=("torch.compile",),
    ),
    "host with a region and few calls": Case(
        loop(clears_a_cache),
        "idle_host",
        words=(
            "lies in clear_cache",
            "% of it lies where the host recorded no call",
            "Look at clear_cache. ",
        ),
        never=("recorded nothing",),
    ),
    "host without records, with stacks": Case(
        loop(says_nothing_with_stacks), "idle_host", words=("recorded nothing", "record_function")
    ),
    "copies": Case(
        loop(copies),
        "memory_copies",
        words=("Memcpy HtoD (Pageable -> Device)", "pin_memory=True"),
        never=("path",),
    ),
    "copies beside compute": Case(loop(copies_beside_compute), "compute_bound", never=("copy",)),
    "copies within the device": Case(
        loop(copies_within_the_device), "memory_copies", words=("DtoD", ".clone()"), never=("pin_memory",)
    ),
    "copies of level zero": Case(
        loop(copies_of_level_zero), "memory_copies", words=("M2D", "pin_memory=True")
    ),
    "copies while the host is late": Case(
        loop(copies_while_the_host_is_late),
        "idle_host",
        ("memory_copies",),
        never=("copy fill",),
    ),
    "most device work lost": Case(
        loses_device_work(4), "", never=("launches too late",), unknown="of the launches was not recorded"
    ),
    "some device work lost": Case(loses_device_work(1), "idle_host"),
    "replays lack kernels": Case(
        replays({2: 5, 3: 9, 5: 14}), "", never=("idle 1", "too late"), unknown="graph replays lack kernels"
    ),
    "replays lack some kernels": Case(
        replays({2: 25, 3: 25, 5: 25}, **{"graph id": 3}), "", unknown="graph replays lack kernels"
    ),
    "a replay lacks few kernels": Case(replays({2: 37}, **{"graph id": 3}), "compute_bound"),
    "a replay lacks kernels, which hardly matters": Case(replays({2: 19}), "compute_bound"),
    "graphs for several sizes": Case(loop(replays_of_batches), "compute_bound"),
    "graphs of some kernels of others": Case(loop(replays_of_halves), "compute_bound"),
    "graphs of pieces of a step": Case(loop(replays_in_pieces), "compute_bound"),
    "most launches not recorded": Case(
        loop(lacks_launches), "", never=("too late",), unknown="records were probably lost"
    ),
    "launches not recorded": Case(
        loop(lacks_a_launch), "idle_host", ("unrecorded_idle",), texts=("the cause was not recorded",)
    ),
    # what follows the last work of the last step is the profiler's tail, and no part of the step
    "end of the program": Case(loop(ends_early), "compute_bound", ("outside",)),
    "a slow step": Case(one_step_is_slow(10), "compute_bound", ("slow_steps",)),
    "a step with more kernels": Case(
        one_step_is_slow(10),
        "compute_bound",
        ("slow_steps",),
        texts=(
            "It computes 1.00 ms longer, with 10 kernels more.",
            "only happens in these",
        ),
        never=("They come every",),
    ),
    "a step with slower kernels": Case(
        slow_every(100, 4, kernels=True),
        "compute_bound",
        ("slow_steps",),
        texts=("It computes 1.00 ms longer, with no more kernels.", "new shapes, autotuning"),
        never=("They come every",),
    ),
    "a step with more on the host, every third": Case(
        slow_every(3, 2),
        "idle_host",
        ("slow_steps", "compute_bound"),
        texts=("The device is idle 1.00 ms longer.", "They come every 3 steps", "checkpoints"),
    ),
    "a hardly slower step": Case(one_step_is_slow(1), "compute_bound", never=("unusually",)),
    "zero_grad": Case(
        loop(zeroes_gradients),
        "zero_grad_fills",
        ("idle_host",),
        words=("launches 20 kernels and fills", "set_to_none=True"),
    ),
    "zero_grad that the device waits for": Case(
        loop(fills_ahead),
        "zero_grad_fills",
        ("memory_copies",),
        share=100 * 20 * 100 / (20 * 101 + 10 * 101 + 9),
        words=("takes the device 65.", "the host 1.", "For 0"),
    ),
    "zero_grad of 3 tensors": Case(
        loop(optimizes(3, "Optimizer.zero_grad#SGD.zero_grad")), "compute_bound", ("idle_host",)
    ),
    "zero_grad without steps": Case(
        # the annotation comes regularly and marks the steps
        without_steps(zeroes_gradients),
        "zero_grad_fills",
        ("idle_host",),
    ),
    "optimizer in many launches": Case(
        loop(optimizes(31)),
        "optimizer_not_fused",
        ("idle_host",),
        texts=("the optimizer launches 31 kernels and fills (Optimizer.step#SGD.step)",),
    ),
    "optimizer in 30 launches": Case(loop(optimizes(30)), "idle_host", never=("foreach=True, which",)),
    "optimizer that the device hides": Case(
        loop(optimizes_behind_the_host),
        "compute_bound",
        ("optimizer_not_fused",),
        texts=("Simulated with a fused optimizer, the steps take as long",),
    ),
    "optimizer without steps": Case(
        # the annotation comes regularly and marks the steps
        without_steps(optimizes(31)),
        "optimizer_not_fused",
        ("idle_host",),
    ),
    "an optimizer by another name": Case(
        loop(optimizes(31, "my_optimizer")), "idle_host", never=("foreach=True, which",)
    ),
    "allocator calls": Case(
        loop(allocates(6)),
        "allocator_calls",
        ("idle_host",),
        words=("memory is allocated or freed with the driver 6 times", "empty_cache()"),
    ),
    "allocator calls of two names": Case(
        loop(allocates(12, "cudaMalloc", "cudaHostAlloc")),
        "allocator_calls",
        ("idle_host",),
        words=("12 times (cudaMalloc and cudaHostAlloc)",),
    ),
    "allocator calls of two names, one of them rare": Case(
        loop(allocates(12, *["cudaMalloc"] * 11, "cudaHostAlloc")),
        "allocator_calls",
        ("idle_host",),
        words=("12 times (cudaMalloc)",),
    ),
    "few allocator calls": Case(loop(allocates(5)), "idle_host", never=("expandable_segments",)),
    "allocator calls without steps": Case(
        without_steps(allocates(6)), "idle_host", never=("expandable_segments",)
    ),
    "copies from buckets": Case(
        loop(copies_buckets(51)),
        "bucket_copies",
        ("idle_host", "memory_copies"),
        words=("51 copies", "gradient_as_bucket_view=True"),
    ),
    "few copies from buckets": Case(
        loop(copies_buckets(50)), "idle_host", ("memory_copies",), never=("gradient_as_bucket_view",)
    ),
    "copies from buckets without steps": Case(
        without_steps(copies_buckets(51)),
        "idle_host",
        ("memory_copies",),
        never=("gradient_as_bucket_view",),
    ),
    "tensor copies": Case(
        loop(also_runs(_COPY_KERNEL, 200 * US, ("aten::contiguous", "aten::clone", "aten::copy_"))),
        "compute_bound",
        ("tensor_copies",),
        texts=(
            "Most of it (100 %) comes from aten::contiguous in nn.Module: Block_0 at train.py(12): step.",
        ),
    ),
    "copies of FSDP's": Case(
        loop(also_runs(_COPY_KERNEL, 200 * US, ("fsdp::all_gather_copy_in", "aten::copy_"))), "compute_bound"
    ),
    "few tensor copies": Case(loop(also_runs(_COPY_KERNEL, 100 * US, ("aten::copy_",))), "compute_bound"),
    "a kernel that also copies": Case(
        loop(also_runs("fused_rotary_copy_kernel", 200 * US, ("aten::copy_",))), "compute_bound"
    ),
    "tensor copies, filtered": Case(
        filtered(also_runs(_COPY_KERNEL, 200 * US, ("aten::contiguous", "aten::copy_"))),
        "filtered",
        never=("contiguous",),
    ),
    "layout": Case(
        loop(also_runs(_LAYOUT_KERNEL, 200 * US, ("aten::conv2d", "aten::cudnn_convolution"))),
        "compute_bound",
        ("layout_transposes",),
        texts=(
            "Most of it (100 %) comes from aten::cudnn_convolution in nn.Module: Block_0",
            "channels_last",
        ),
    ),
    "fallback convolutions": Case(
        loop(also_runs(_FALLBACK_KERNEL, 900 * US, ("aten::conv2d", "aten::miopen_convolution"))),
        "compute_bound",
        ("fallback_convolutions",),
        texts=(
            "Kernels that MIOpen falls back on for convolutions take ",
            "comes from aten::miopen_convolution",
            "MIOPEN_FIND_MODE=NORMAL",
            "how long other kernels for these convolutions take is not known",
        ),
    ),
    "few fallback convolutions": Case(
        loop(also_runs(_FALLBACK_KERNEL, 50 * US, ("aten::miopen_convolution",))), "compute_bound"
    ),
    "a convolution with another kernel": Case(
        loop(also_runs("miopenSp3AsmConv_v30_3_1", 900 * US, ("aten::miopen_convolution",))), "compute_bound"
    ),
    "hardly any layout": Case(
        loop(also_runs(_LAYOUT_KERNEL, 50 * US, ("aten::cudnn_convolution",))), "compute_bound"
    ),
    "a transpose of the program": Case(
        loop(also_runs("transpose_readWrite_alignment_kernel", 200 * US, ("acme::transpose",))),
        "compute_bound",
    ),
    "layout, filtered": Case(
        filtered(also_runs(_LAYOUT_KERNEL, 200 * US, ("aten::conv2d", "aten::cudnn_convolution"))),
        "filtered",
        never=("channels_last",),
    ),
    "TF32, filtered": Case(
        filtered(also_runs("cutlass_80_tensorop_s1688gemm_128x128_32x3_tn_align4", 3 * MS, ("aten::mm",))),
        "filtered",
        never=("TF32",),
    ),
    "two modules": Case(
        loop(in_a_module),
        "idle_host",
        ("python_heavy",),
        words=("lies in nn.Module: Rotary_0", "nn.Module: Embedding_0"),
        texts=("In nn.Module: Rotary the host takes 432 µs for each launch",),
    ),
    "exchange under an unknown name": Case(
        exchanges("acme::token_dispatch_combine_kernel"),
        "compute_bound",
        ("maybe_communication",),
    ),
    "work beside compute": Case(exchanges("acme::gemm_kernel"), "compute_bound"),
    "no device": Case(no_device, "no_device", unknown="device events"),
}


MODULES = (idle_rules, pause_rules, region_rules, verdict_rules)
ABOUT_IDLE = {python_rules.RULE.topic, *(rule.topic for module in MODULES for rule in module.RULES)}
SAVINGS = {"saving", "changes", "replayed_rank"}


def claimed(frame: pd.DataFrame) -> pd.DataFrame:
    """What is said of idle devices and their host, without what a change would save."""
    about = frame[frame["topic"].isin(ABOUT_IDLE)].assign(saving="")
    claims = (json.loads(cell or "[]") for cell in about["claims"])
    return about.assign(
        claims=[json.dumps([each for each in cell if each["measure"] not in SAVINGS]) for cell in claims]
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_planted_cause(case: Case, tmp_path: Path) -> None:
    trace = case.program().open(tmp_path, clock=case.clock)
    frame = overview(trace)
    said = frame[~frame["severity"].isin((OPEN, CHECKED))]
    assert set(said["topic"]) == {case.first, *case.also} - {""}, said[
        ["topic", "share_pct", "text"]
    ].to_string()
    said = said[(said["role"] != "aside") | (said["headline"] == "")]  # which is of another time
    told = frame[frame["severity"] != CHECKED]  # what is not there has its name said
    texts = [*told["text"], *told["saving"], *told["suggestion"], first_lines(trace, frame)]
    for text in case.never:
        assert not any(text in other for other in texts), (text, texts)
    if case.first:
        assert said["topic"].iloc[0] == case.first
        first = f"{said['text'].iloc[0]} {said['suggestion'].iloc[0]}"
        for text in case.words:
            assert text in first
    for text in case.texts:
        assert any(text in other for other in texts), (text, texts)
    if case.share is not None:
        assert said["share_pct"].iloc[0] == pytest.approx(case.share, abs=0.1)
    if case.unknown:
        assert any(case.unknown in text for text in frame.loc[frame["severity"] == OPEN, "text"])
    assert set(said["kind"]) <= {*ANALYSES, ""}
    assert said["share_pct"].between(0, 100).all()
    assert not list(map(str, faults_of(trace, claimed(frame))))
