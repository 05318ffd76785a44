"""The host of a server: late between steps or in them, eager where graphs would do, without requests."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Trace
from hta_widgets.analysis import overview, serving_phases, serving_steps
from tests.analysis.kineto_file import job
from tests.analysis.serving.servers import Batch, Server
from tests.claims.checking import faults_of
from tests.first_lines import first_lines
from tests.verdicts.planted.host_program import MS, US

DECODE = Batch(decodes=32)
LOOP = "vllm/v1/engine/core.py(406): step"
ASLEEP = "vllm/v1/engine/core.py(930): _process_input_queue"


def rows_of(trace: Trace) -> dict[str, dict]:
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    return {row["topic"]: row for row in frame.to_dict("records")}


def launching(
    call: int, kernels: int = 60, graphs_up_to: int = 0, batches: tuple[int, ...] = (32,)
) -> Server:
    """Each step launches its kernels of 5 us one by one, or replays a graph of them."""
    server = Server(engine="vllm", schedule_ns=0, read_ns=0)
    program = server.program
    for number in range(12):
        batch = Batch(decodes=batches[number % len(batches)])
        with program.inside("user_annotation", batch.vllm):
            if batch.decodes <= graphs_up_to:
                program.replay(kernels, 5 * US)
            else:
                for _ in range(kernels):
                    program.launch(5 * US, "gemm", call=call)
            program.synchronise()
    return server


def test_decoding_that_launches_kernels_one_by_one(tmp_path: Path) -> None:
    row = rows_of(launching(20 * US).open(tmp_path))["eager_steps"]
    assert "There are 12 such steps, of 60 kernels each." in row["text"]
    assert row["suggestion"] == "Replay CUDA graphs in steps that decode (vLLM: without --enforce-eager)."
    assert row["share_pct"] == pytest.approx(100 * 15 * 59 / (20 * 59 + 32), rel=0.03)
    assert row["method"] == "replay"


def test_a_device_without_graphs_of_kernels(tmp_path: Path) -> None:
    """An XPU: nothing is said about CUDA's."""
    server = Server(engine="vllm", schedule_ns=0, read_ns=0)
    for _ in range(8):
        with server.program.inside("user_annotation", DECODE.vllm):
            for _ in range(60):
                server.program.launch(5 * US, "gemm_kernel", call=20 * US, api="urEnqueueKernelLaunch")
            server.program.synchronise(name="urQueueFinish")
    row = rows_of(server.open(tmp_path))["eager_steps"]
    assert "CUDA" not in row["suggestion"]
    assert row["suggestion"].startswith("Launch fewer, larger kernels")


def test_batches_above_the_largest_graph(tmp_path: Path) -> None:
    """The smaller ones replay graphs."""
    server = launching(20 * US, graphs_up_to=32, batches=(16, 32, 40))
    row = rows_of(server.open(tmp_path))["eager_steps"]
    assert "There are 4 such steps" in row["text"]
    assert "Steps of up to 32 requests replay graphs; these have 40 or more." in row["text"]
    assert "(vLLM: --max-cudagraph-capture-size or --cudagraph-capture-sizes)" in row["suggestion"]


@pytest.mark.parametrize(
    "server",
    [
        lambda: launching(3 * US),  # ahead of the device
        lambda: launching(20 * US, graphs_up_to=32),
        lambda: launching(20 * US, kernels=20),
    ],
)
def test_steps_that_are_no_worse_than_graphs(tmp_path: Path, server) -> None:
    assert "eager_steps" not in rows_of(server().open(tmp_path))


def test_eager_steps_of_two_ranks(tmp_path: Path) -> None:
    one = rows_of(launching(20 * US).open(tmp_path))["eager_steps"]
    both = rows_of(job(tmp_path, *(launching(20 * US).events for _ in range(2))))["eager_steps"]
    assert both["rank"] is None or pd.isna(both["rank"])
    assert both["share_pct"] == pytest.approx(one["share_pct"])
    assert "There are 12 such steps" in both["text"]


def pausing(within: int, between: int, work: int = 2 * MS, sampling: int = 0) -> Server:
    """In each step the host fills a mask before it samples, in a loop around steps that schedules between."""
    server = Server(engine="vllm")
    program = server.program
    for number in range(12):
        with program.inside("python_function", LOOP, **{"Python id": 1000 + number}):
            server._frame("vllm/v1/core/sched/scheduler.py(233): schedule", between)
            with program.inside("user_annotation", DECODE.vllm):
                program.launch(work, "gemm")
                program.synchronise()
                server._frame("vllm/v1/structured_output/utils.py(80): apply_grammar_bitmask", within)
                if sampling:
                    server._frame("vllm/v1/sample/sampler.py(80): gather_logprobs", sampling)
                program.launch(MS // 10, "argmax")
                program.synchronise()
    return server


def test_a_pause_within_steps(tmp_path: Path) -> None:
    server = pausing(within=3 * MS, between=MS // 10)
    trace = server.open(tmp_path)
    row = rows_of(trace)["bubble_between_steps"]
    assert row["text"].startswith("Within steps the device idles") or "and within steps" in row["text"]
    assert "The host runs utils.py(80): apply_grammar_bitmask then." in row["text"]
    assert "masks of structured output" in row["suggestion"]
    assert row["share_pct"] == pytest.approx(100 * 3.1 / 5.2, rel=0.03)
    assert row["saving_pct"] == pytest.approx(100 * 3 / 5.2, rel=0.05)


def test_a_mask_that_takes_longer_than_the_forward_pass(tmp_path: Path) -> None:
    """It is filled meanwhile, and still the device waits for its end: it is open nearly all of the time."""
    server = Server(engine="sglang")
    program = server.program
    for _ in range(10):
        with program.inside("user_annotation", DECODE.sglang):
            program.replay(60, 80 * US)
            server._frame("sglang/srt/constrained/xgrammar_backend.py(90): fill_vocab_mask", 7 * MS)
            program.launch(MS // 10, "argmax")
            program.synchronise()
    row = rows_of(server.open(tmp_path))["bubble_between_steps"]
    assert "The host runs xgrammar_backend.py(90): fill_vocab_mask then." in row["text"]
    assert row["suggestion"].startswith("Fill masks of structured output")


def test_two_parts_of_the_loop_share_the_wait(tmp_path: Path) -> None:
    """And the loop around both, in which the forward pass is, is no place."""
    row = rows_of(pausing(within=MS, between=MS).open(tmp_path))["bubble_between_steps"]
    assert "Between and within steps the device idles" in row["text"]
    assert "Then the host runs " in row["text"]
    assert "schedule for " in row["text"] and "apply_grammar_bitmask for " in row["text"]
    assert "step" not in row["text"].split("Then the host runs")[1]


@pytest.mark.parametrize(("sampling", "named"), [(MS // 2, False), (2 * MS, True)])
def test_of_three_parts_of_the_loop_the_longest_two_are_named(
    tmp_path: Path, sampling: int, named: bool
) -> None:
    server = pausing(within=MS, between=MS, sampling=sampling)
    text = rows_of(server.open(tmp_path))["bubble_between_steps"]["text"].split("Then the host runs ")[1]
    assert text.count(" for ") == 2 and ("gather_logprobs for " in text) == named


@pytest.mark.parametrize("silent", [MS // 10, 4 * MS])
def test_a_call_is_where_the_host_is_only_if_it_covers_most_of_the_wait(tmp_path: Path, silent: int) -> None:
    server = Server(engine="vllm", schedule_ns=MS, read_ns=0)
    for _ in range(12):
        server.serve(DECODE)
        server.program.silence(silent)
    rows = rows_of(server.open(tmp_path))
    covers = silent < MS
    assert ("between steps in schedule" in rows["serving_rate"]["headline"]) is covers
    assert ("schedule then." in rows["bubble_between_steps"]["text"]) is covers


def test_short_gaps_within_steps_are_no_pauses(tmp_path: Path) -> None:
    rows = rows_of(pausing(within=MS // 10, between=0).open(tmp_path))
    assert "within" not in rows.get("bubble_between_steps", {"text": ""})["text"]


def test_the_host_of_one_of_two_ranks_is_late(tmp_path: Path) -> None:
    """The device of the other one works longer."""
    trace = job(tmp_path, pausing(0, MS // 2, work=9 * MS // 2).events, pausing(0, 3 * MS).events)
    row = rows_of(trace)["bubble_between_steps"]
    assert row["rank"] == row["event_rank"] == 1
    assert "schedule then." in row["text"]


def test_a_late_host_for_which_the_other_rank_waits_is_one_loss(tmp_path: Path) -> None:
    """Both share each layer: the device of rank 0 waits in the exchange."""
    servers = [Server(schedule_ns=0, read_ns=0) for _ in range(2)]
    for _ in range(10):
        begin = max(server.program.now for server in servers)
        for server, late in zip(servers, (0, 3 * MS), strict=True):
            server.program.now = begin
            if late:
                server._frame("vllm/v1/worker/gpu_model_runner.py(9): _prepare_inputs", late)
            server.tail = (("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", MS // 5 + 3 * MS - late),)
            server.serve(DECODE)
    trace = job(tmp_path, *(server.events for server in servers))
    rows = rows_of(trace)
    row = rows["straggler"]
    assert row["rank"] == 1
    assert "cores of its own" in row["suggestion"]
    assert rows["bubble_between_steps"]["part_of"] == "straggler"
    assert "_prepare_inputs then." in rows["bubble_between_steps"]["text"]


@pytest.mark.parametrize(
    ("place", "moves"),
    [
        ("vllm/distributed/kv_transfer/kv_connector/v1/nixl_connector.py(1010): wait_for_save", True),
        ("sglang/srt/disaggregation/decode.py(500): pop_transferred", True),
        ("vllm/v1/core/kv_cache_manager.py(200): allocate_slots", False),
    ],
)
def test_a_host_that_waits_for_keys_and_values(tmp_path: Path, place: str, moves: bool) -> None:
    server = Server(engine="vllm", schedule_ns=0, read_ns=0)
    for _ in range(10):
        server._frame(place, 3 * MS)
        server.serve(DECODE)
    advice = rows_of(server.open(tmp_path))["bubble_between_steps"]["suggestion"]
    assert advice.startswith("Keys and values move then.") is moves
    assert ("--async-scheduling" in advice) is not moves


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("vllm/lora/worker_manager.py(160): set_active_adapters", "Adapters are loaded then"),
        ("subprocess.py(1165): communicate", "The device waits for tools"),
        ("agent/tools.py(77): call_tool", "The device waits for tools"),
        ("vllm/toolkit.py(7): collect", "Shorten what the host does then"),
    ],
)
def test_a_host_that_waits_for_adapters_or_tools(tmp_path: Path, place: str, first: str) -> None:
    server = Server(engine="vllm", schedule_ns=0, read_ns=0)
    for _ in range(10):
        server._frame(place, 3 * MS)
        server.serve(DECODE)
    advice = rows_of(server.open(tmp_path))["bubble_between_steps"]["suggestion"]
    assert advice.startswith(first)
    assert ("--max-loras" in advice) is ("lora" in place)


def comes_and_goes(asleep: bool, stays: int = 0) -> Server:
    """Requests come one at a time, 30 ms after the one before has ended; some others may stay."""
    server = Server(engine="vllm", schedule_ns=MS // 10, read_ns=MS // 10)
    for _ in range(5):
        if asleep:
            server._frame(ASLEEP, 30 * MS)
        else:
            server.program.silence(30 * MS)
        server.serve(Batch(prompts=1, prompt_tokens=512))
        for _ in range(5):
            server.serve(Batch(decodes=1 + stays))
    return server


@pytest.mark.parametrize(("asleep", "stays"), [(True, 0), (False, 0), (True, 3)])
def test_a_server_without_requests_loses_nothing(tmp_path: Path, asleep: bool, stays: int) -> None:
    trace = comes_and_goes(asleep, stays).open(tmp_path)
    frame, rows = serving_steps(trace), rows_of(trace)
    assert (frame["absent_ns"] > 29 * MS).sum() == 4
    assert frame.loc[frame["absent_ns"] > 0, "period_ns"].isna().all()
    row = rows["absent_requests"]
    assert row["share_pct"] == pytest.approx(
        100 * frame["absent_ns"].sum() / frame["recorded_ns"].sum(), rel=1
    )
    assert "The server has no requests for" in first_lines(trace)
    assert not {"host_stall", "slow_steps"} & set(rows)
    assert rows.get("bubble_between_steps", row)["share_pct"] <= row["share_pct"]
    assert serving_phases(trace).set_index("phase").loc["decode", "bubble_pct"] < 10


def test_a_pause_while_requests_wait_is_a_loss(tmp_path: Path) -> None:
    """Those that decode after the prompt were there before it."""
    trace = comes_and_goes(asleep=False, stays=3).open(tmp_path)
    assert "absent_requests" not in rows_of(trace)
    assert (serving_steps(trace)["absent_ns"].dropna() == 0).all()


def test_a_token_takes_longer_on_average_where_prompts_come_between(tmp_path: Path) -> None:
    """Every fourth step reads a prompt for 20 ms; decoding takes 4 ms."""
    server = Server(engine="vllm", schedule_ns=0, read_ns=0)
    for _ in range(6):
        for _ in range(3):
            server.serve(DECODE, token_ns=0)
        server.serve(Batch(prompts=1, prompt_tokens=10_000))
    trace = server.open(tmp_path)
    said = rows_of(trace)["serving_rate"]["text"]
    found = re.match(r"([\d.]+) ms per token \(([\d.]+) ms on average\); the GPU works", said)
    assert found
    assert float(found[1]) == pytest.approx(4.0, rel=0.02)
    assert float(found[2]) == pytest.approx((17 * 4 + 5 * 24) / 17, rel=0.02)
    even = Server(engine="vllm")
    for _ in range(8):
        even.serve(DECODE)
    assert "on average" not in rows_of(even.open(tmp_path))["serving_rate"]["text"]


def test_options_are_those_of_the_engine(tmp_path: Path) -> None:
    for engine, option in (
        ("sglang", "SGLang"),
        ("tensorrt_llm", "disable_overlap_scheduler: false"),
        ("atom", ""),
    ):
        server = Server(engine=engine)
        for _ in range(8):
            server.serve(DECODE)
        advice = rows_of(server.open(tmp_path))["bubble_between_steps"]["suggestion"]
        assert option in advice
        assert "vLLM" not in advice
        assert ("(" in advice) == bool(option)


def compiling(steps: tuple[int, ...]) -> Server:
    """In these of 12 steps the host compiles for 200 ms before it launches."""
    server = Server(engine="vllm", schedule_ns=MS // 10, read_ns=0)
    program = server.program
    for number in range(12):
        if number not in steps:
            server.serve(DECODE)
            continue
        with program.inside("user_annotation", DECODE.vllm):
            program.operator("CompiledFxGraph compile", 1)
            server._frame("torch/_inductor/compile_fx.py(1500): compile_fx", 200 * MS)
            program.launch(4 * MS, "gemm_0")
            program.synchronise()
    return server


def test_compiling_while_requests_wait(tmp_path: Path) -> None:
    trace = compiling((5, 8)).open(tmp_path)
    rows = rows_of(trace)
    row = rows["compiles_while_serving"]
    assert row["cost_ns"] == pytest.approx(400 * MS, rel=0.02)
    assert "in 2 of its later steps" in row["text"]
    assert "Requests wait 400 ms for compiling." in first_lines(trace)
    works = re.search(r"the GPU works ([\d.]+) % of it", rows["serving_rate"]["text"])
    assert works and float(works[1]) > 90, "the periods that hold it do not count"


def test_compiling_at_the_start_is_start_up(tmp_path: Path) -> None:
    rows = rows_of(compiling((0, 1)).open(tmp_path))
    assert "compiles_while_serving" not in rows
    assert "start_up" in rows
