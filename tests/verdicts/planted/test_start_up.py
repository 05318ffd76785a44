"""Programs that compile, load or search once: that is start-up, named, and what follows is judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings import overview
from tests.analysis.kineto_file import event
from tests.claims.checking import faults_of
from tests.first_lines import first_lines
from tests.verdicts.planted.host_program import MS, US, Program

Body = Callable[[Program, int], None]


def steady(program: Program, kernels: int = 10) -> None:
    """The device works 3 of 4 parts of the time."""
    for _ in range(kernels):
        program.operator("aten::slow_op", 80 * US)
        program.launch(240 * US)
        program.synchronise()


def marked(cold: Callable[[Program], None], every: bool = False) -> Program:
    """Six steps, of which the first one, or each, begins cold."""
    program = Program()
    program.launch(50 * US)
    program.synchronise()
    for number in range(1, 7):
        with program.step(number):
            if every or number == 1:
                cold(program)
            steady(program)
    return program


def unmarked(cold: Callable[[Program], None]) -> Program:
    """As much work without marks."""
    program = Program()
    program.launch(50 * US)
    program.synchronise()
    cold(program)
    steady(program, 60)
    return program


def frame(program: Program, name: str, number: int, parent: int = 0) -> object:
    return program.inside("python_function", name, **{"Python id": number, "Python parent id": parent})


def triton(program: Program) -> None:
    """A kernel is compiled as it is first launched."""
    with (
        frame(program, "vllm/fused_moe.py(120): invoke_fused_moe_kernel", 1),
        frame(program, "triton/runtime/jit.py(708): run", 2, 1),
    ):
        with frame(program, "triton/compiler/compiler.py(226): compile", 3, 2):
            program.silence(30 * MS)
        program.launch(100 * US, "fused_moe_kernel")


def dynamo(program: Program) -> None:
    with program.inside("python_function", "nn.Module: Decoder_0", **{"Python id": 4}):
        program.silence(1 * US)
        with program.inside("user_annotation", "_compile.compile_inner (dynamo_timed)"):
            program.silence(10 * MS)
            with program.inside("user_annotation", "inductor_compile (dynamo_timed)"):
                program.silence(15 * MS)
        program.launch(100 * US)


def calls_compiled_code(program: Program) -> None:
    """Frames that are open whenever compiled code runs."""
    with frame(program, "torch/_dynamo/eval_frame.py(738): _fn", 5):
        with frame(program, "torch/_inductor/compile_fx.py(332): run", 6, 5):
            program.silence(30 * MS)
        program.launch(100 * US)


def searches(others: int = 40, first: int = 30 * MS, other: int = 300 * US) -> Callable[[Program], None]:
    def cold(program: Program) -> None:
        for place in range(others + 1):
            with program.inside("cpu_op", "aten::conv2d"):
                program.silence(first if place == 0 else other)
                program.launch(300 * US)
        program.synchronise()

    return cold


def loads_beside(program: Program) -> None:
    """In one gap the loader takes 20 ms, and a driver call 10 ms."""
    program.load(20 * MS)
    program.driver("cudaFree", 10 * MS)
    program.launch(100 * US)


def flushes(program: Program) -> None:
    """The profiler makes room for its records, and the host waits for that."""
    program.events.append(event("overhead", "Activity Buffer Request", program.now, 30 * MS, tid=0, pid=-1))
    program.silence(30 * MS)


def judged(program: Program, folder: Path) -> pd.DataFrame:
    trace = program.open(folder)
    found = overview(trace)
    own = found[found["topic"].isin(("start_up", "outside"))]
    assert not list(map(str, faults_of(trace, own)))
    return found


@pytest.mark.parametrize(
    ("cold", "said"),
    [
        (triton, "compiling fused_moe_kernel (30.0 ms)"),
        (dynamo, "compiling nn.Module: Decoder_0 (25.0 ms)"),
        (searches(), "the first call of aten::conv2d (30.0 ms)"),
    ],
)
def test_it_is_named_and_left_out_of_steady_steps(
    cold: Callable[[Program], None], said: str, tmp_path: Path
) -> None:
    found = judged(marked(cold), tmp_path).set_index("topic")
    row = found.loc["start_up"]
    assert f"the device waits, once, for {said}" in row["text"].replace("The device", "the device")
    assert "Iteration 1 holds start-up" in row["text"]
    assert found.loc["idle_host", "share_pct"] == pytest.approx(100 * 80 / 338, abs=3)
    assert found["steps"].dropna().eq(5).all()


@pytest.mark.parametrize("every", [False, True])
def test_work_of_the_profiler_is_left_out_unless_each_step_has_it(every: bool, tmp_path: Path) -> None:
    found = judged(marked(flushes, every), tmp_path).set_index("topic")
    assert ("start_up" in found.index) is not every
    if not every:
        text = found.loc["start_up", "text"]
        assert text.startswith("Iteration 1 holds work of the profiler and is left out")
        assert "the profiler's Activity Buffer Request (30.0 ms)" in text
        assert "costs 0 %" not in first_lines(marked(flushes, every).open(tmp_path))


def test_a_flush_while_the_device_works_is_no_start_up(tmp_path: Path) -> None:
    def hidden(program: Program) -> None:
        program.events.append(event("overhead", "Buffer Flush", program.now, 30 * MS, tid=0, pid=-1))
        program.launch(40 * MS)

    assert "start_up" not in set(judged(marked(hidden), tmp_path)["topic"])


@pytest.mark.parametrize(
    ("cold", "what"),
    [
        (triton, "compiling fused_moe_kernel"),
        (dynamo, "compiling nn.Module: Decoder_0"),
        (lambda program: program.driver("cudaModuleLoadData", 30 * MS), "cudaModuleLoadData"),
        (flushes, "the profiler's Activity Buffer Request"),
    ],
)
def test_without_marked_steps_what_follows_is_judged(
    cold: Callable[[Program], None], what: str, tmp_path: Path
) -> None:
    found = judged(unmarked(cold), tmp_path)
    assert found["topic"].iloc[0] == "start_up" and what in found["text"].iloc[0]
    said = first_lines(unmarked(cold).open(tmp_path))
    assert "Start-up takes " in said and f"mostly {what}" in said
    late = found.set_index("topic").loc["idle_host"]
    assert late["share_pct"] == pytest.approx(100 * 80 / 338, abs=3)
    assert "of the time after start-up" in late["text"]
    assert late["section"] == "unknown" and "start-up included" in late["saving"]


@pytest.mark.parametrize(
    "program",
    [
        marked(triton, every=True),
        marked(calls_compiled_code),
        marked(searches(others=2)),  # too few to tell
        marked(searches(first=5 * MS)),  # no more than 17 times as long
    ],
    ids=["in every step", "compiled code runs", "few calls", "hardly longer"],
)
def test_what_is_no_start_up(program: Program, tmp_path: Path) -> None:
    assert "start_up" not in set(judged(program, tmp_path)["topic"])


@pytest.mark.parametrize(
    ("call", "numbers", "is_start_up"),
    [
        ("cudaFree", (4, 8), False),  # as when memory is given back for each checkpoint
        ("cudaHostAlloc", (3, 6, 9), False),
        ("cudaFree", (4,), True),
        ("cudaFree", (1, 5, 9), True),  # the first step has it, too
        ("cudaFree", (4, 7), True),  # would come in step 1 as well, and in step 10
        ("cudaMalloc", (2, 4), True),  # memory that is asked for at first
        ("cudaModuleLoadData", (4, 8), True),  # of other code each time
    ],
)
def test_calls_for_memory_that_come_regularly_belong_to_the_loop(
    call: str, numbers: tuple[int, ...], is_start_up: bool, tmp_path: Path
) -> None:
    program = Program()
    program.launch(50 * US)
    program.synchronise()
    for number in range(1, 11):
        with program.step(number):
            if number in numbers:
                program.driver(call, 5 * MS)
            steady(program)
    assert ("start_up" in set(judged(program, tmp_path)["topic"])) is is_start_up


@pytest.mark.parametrize(
    ("cold", "is_start_up"),
    [
        (lambda program: program.launch(50 * US, "other", call=5 * MS), True),  # its code is loaded
        (lambda program: program.launch(50 * US, "gemm", call=5 * MS), False),  # it is there: a busy core
        (lambda program: program.replay(4, 20 * US, call=5 * MS), True),
    ],
)
def test_only_the_first_launch_of_a_kernel_loads_code(
    cold: Callable[[Program], None], is_start_up: bool, tmp_path: Path
) -> None:
    program = Program()
    program.launch(50 * US)
    program.synchronise()
    for number in range(1, 11):
        with program.step(number):
            if number == 4:
                cold(program)
            steady(program)
    assert ("start_up" in set(judged(program, tmp_path)["topic"])) is is_start_up


def test_a_wait_for_work_that_is_not_recorded_is_no_start_up(tmp_path: Path) -> None:
    """The records of two steps are lost: there, calls that wait for their work seem to wait for nothing."""
    program = Program()
    for number in range(1, 9):
        with program.step(number):
            for _ in range(60):
                program.operator("aten::mm", 2 * US)
                program.launch(100 * US, recorded=("call",) if number in (4, 5) else ("call", "work"))
            program.synchronise()
            program.silence(2 * MS)
    assert "start_up" not in set(judged(program, tmp_path)["topic"])


def test_what_the_loader_takes_beside_it_is_the_loaders(tmp_path: Path) -> None:
    program = Program()
    with program.step(1):
        program.launch(50 * US)
        program.synchronise()
        loads_beside(program)
        steady(program, 200)
    shares = judged(program, tmp_path).set_index("topic")["cost_ns"]
    assert shares["start_up"] == pytest.approx(10 * MS, rel=0.02)
    assert shares["data_stall"] == pytest.approx(20 * MS, rel=0.02)


def test_nothing_is_judged_where_hardly_anything_follows(tmp_path: Path) -> None:
    program = Program()
    program.launch(50 * US)
    program.synchronise()
    triton(program)
    steady(program, 10)
    found = judged(program, tmp_path)
    assert found["topic"].iloc[0] == "start_up" and "idle_host" not in set(found["topic"])
    assert found["title"].iloc[0] == "Starting up, compiling fused_moe_kernel,"
    assert found["text"].str.contains("The trace has no steady state").any()


@pytest.mark.parametrize(
    "call", ["cudaFree", "cuCtxCreate", "cudaDeviceGetStreamPriorityRange", "cudaMalloc"]
)
def test_a_context_made_before_the_first_work_is_start_up(call: str, tmp_path: Path) -> None:
    program = Program()
    program.driver(call, 500 * MS)
    steady(program, 5)
    found = judged(program, tmp_path)
    assert found["topic"].iloc[0] == "start_up" and f"once, for {call} (500 ms)" in found["text"].iloc[0]
    assert found["share_pct"].iloc[0] == pytest.approx(99.6, abs=0.3)
    assert not {"idle_host", "launch_bound", "outside", "no_work_due"} & set(found["topic"])


@pytest.mark.parametrize("inside", [True, False])
def test_a_context_made_before_marked_steps_is_start_up(inside: bool, tmp_path: Path) -> None:
    program = Program()
    if not inside:
        program.driver("cudaFree", 500 * MS)
    for number in range(1, 7):
        with program.step(number):
            if inside and number == 1:
                program.driver("cudaFree", 500 * MS)
            steady(program)
    found = judged(program, tmp_path)
    texts = " ".join(found["text"])
    assert "lie before the complete steps. The process starts up: the host is in cudaFree for 500 ms" in texts
    assert inside is ("Iteration 1 holds start-up" in texts)
    assert found.set_index("topic").loc["idle_host", "share_pct"] == pytest.approx(100 * 80 / 338, abs=3)
    assert "no_work_due" not in set(found["topic"])


def test_start_up_and_what_follows_are_all_of_it(tmp_path: Path) -> None:
    program = Program()
    program.driver("cudaMalloc", 100 * MS)
    program.launch(50 * MS)
    program.synchronise()
    program.driver("cudaModuleLoadData", 30 * MS)
    steady(program, 200)
    found = judged(program, tmp_path)
    stated = json.loads(found["claims"].iloc[0])
    times = {claim["measure"]: claim["value"] for claim in stated if claim["unit"] == "ns"}
    assert found["topic"].iloc[0] == "start_up" and "outside" not in set(found["topic"])
    assert times["start_up_until"] == pytest.approx(
        180 * MS, rel=0.01
    )  # 50 of that is work between the calls
    assert times["start_up"] == pytest.approx(130 * MS, rel=0.01)
    assert times["start_up_until"] + times["judged_time"] == times["recorded_work"]


@pytest.mark.parametrize("call", ["cudaDeviceSynchronize", "cudaMemcpy"])
def test_a_wait_for_work_from_before_the_recording_is_no_start_up(call: str, tmp_path: Path) -> None:
    program = Program()
    program.driver(call, 60 * MS)
    steady(program, 60)
    found = judged(program, tmp_path)
    assert "start_up" not in set(found["topic"])
    assert (
        found["topic"].iloc[0] == "outside" and f"The host is in {call} for 60.0 ms" in found["text"].iloc[0]
    )


def test_a_short_context_in_a_long_preparation_is_no_start_up(tmp_path: Path) -> None:
    program = Program()
    program.driver("cudaFree", 10 * MS)
    program.operator("load_the_data", 90 * MS)
    steady(program, 60)
    assert judged(program, tmp_path)["topic"].iloc[0] == "outside"


# -- before the first device work, and after the last ---------------------------------------------------


def around(before: int, after: int, doing: str = "aten::empty_strided") -> Program:
    """A program of 20 ms on the device, and what its host does before and after it."""
    program = Program()
    program.operator(doing, before)
    steady(program, 60)
    program.operator("save", after)
    return program


def profiler(ts: str, dur: int) -> dict[str, object]:
    """The profiler's own span."""
    name = "PyTorch Profiler"
    own = {"ph": "X", "cat": "Trace", "name": f"{name} (0)", "pid": "Spans", "tid": name, "args": {}}
    return {**own, "ts": ts, "dur": dur}


def test_what_lies_before_the_first_kernel_comes_first(tmp_path: Path) -> None:
    found = judged(around(60 * MS, MS), tmp_path)
    row = found.iloc[0]
    assert row["topic"] == "outside" and "The host is in aten::empty_strided for 60.0 ms" in row["text"]
    said = first_lines(around(60 * MS, MS).open(tmp_path))
    assert said.startswith("61.") and "mostly in aten::empty_strided; of the rest, " in said


def test_a_loader_is_named_as_one(tmp_path: Path) -> None:
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    assert "mostly in the data loader" in first_lines(around(60 * MS, MS, loader).open(tmp_path))


def test_after_the_last_kernel(tmp_path: Path) -> None:
    assert "mostly in save" in first_lines(around(MS, 60 * MS).open(tmp_path))


def test_little_of_it_is_not_worth_a_word(tmp_path: Path) -> None:
    assert "outside" not in set(judged(around(5 * MS, 5 * MS), tmp_path)["topic"])


def test_the_profilers_own_time_is_told_apart(tmp_path: Path) -> None:
    program = around(MS, MS)
    first = min(float(event["ts"]) for event in program.events)
    own = {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "PyTorch Profiler",
    }
    program.events.append({**own, "ts": f"{first:.3f}", "dur": 200 * MS, "args": {}})
    found = judged(program, tmp_path)
    assert "the profiler ends" in found["text"].iloc[0]
    assert "while the profiler ends" in first_lines(program.open(tmp_path))


def test_a_pause_between_two_recordings_is_not_outside(tmp_path: Path) -> None:
    program = Program()
    for begin in (1, 4):
        for number in range(begin, begin + 3):
            with program.step(number):
                steady(program)
        program.silence(200 * MS)
    assert "outside" not in set(judged(program, tmp_path)["topic"])


def test_a_host_alone_is_judged_from_its_first_call_to_its_last(tmp_path: Path) -> None:
    program = Program()
    first = program.now
    for _ in range(100):
        program.operator("aten::mm", 100 * US)
    own = {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "PyTorch Profiler",
    }
    program.events.append({**own, "ts": f"{first / 1000:.3f}", "dur": 500 * MS, "args": {}})
    found = judged(program, tmp_path).set_index("topic")
    assert found.loc["host_operators", "share_pct"] == pytest.approx(100)
    assert "host_outside" not in found.index and "outside" in found.index


@pytest.mark.parametrize(
    ("name", "starts"),
    [("aten::empty_strided", True), ("aten::_local_scalar_dense", False), ("c10d::barrier", False)],
)
def test_a_first_call_that_waits_is_no_start_up(tmp_path: Path, name: str, starts: bool) -> None:
    program = Program()
    program.operator(name, 60 * MS)
    for _ in range(4):
        for _ in range(15):
            program.operator("aten::mm", 5 * US)
            program.launch(200 * US)
        program.operator(name, 10 * US)
        program.synchronise()
    said = first_lines(program.open(tmp_path))
    assert "recorded lie before any device work" in said
    assert ("mostly start-up (" in said) is starts
