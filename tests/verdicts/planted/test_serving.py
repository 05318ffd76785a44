"""Servers that wait between steps, or decode behind prompts; near misses; and what is no server."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Trace, examples
from hta_widgets.analysis import overview, serving_phases, serving_steps, step_times
from hta_widgets.analysis.device_time.step_times import ANALYSIS
from hta_widgets.analysis.device_time.step_times import sentence as step_times_sentence
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.serving.roles import roles_of
from hta_widgets.charts.trend_points import trend_points
from hta_widgets.formatting import duration, percent
from tests.analysis.kineto_file import job
from tests.analysis.serving.servers import Batch, Server, speculating
from tests.claims.checking import Fault, faults_of
from tests.first_lines import first_lines
from tests.support import shared_input, shared_trace
from tests.verdicts.planted.host_program import MS

DECODE = Batch(decodes=32)
OURS = {
    "serving_rate", "serving_work", "bubble_between_steps", "decode_behind_prefill", "kv_transfer", "padding",
    "uneven_experts",
}  # fmt: skip


@cache
def said_of(trace: Trace) -> pd.DataFrame:
    """The overview, asked once."""
    return overview(trace)


def rows_of(trace: Trace) -> dict[str, dict]:
    return {row["topic"]: row for row in said_of(trace).to_dict("records")}


def faults(trace: Trace) -> list[Fault]:
    """What a slow reader finds wrong with it."""
    return list(faults_of(trace, said_of(trace)))


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_scheduler_that_the_device_waits_for(tmp_path: Path, engine: str) -> None:
    server = Server(engine=engine)
    for _ in range(12):
        server.serve(DECODE)
    trace = server.open(tmp_path)
    assert not faults(trace)
    rows = rows_of(trace)
    assert "unmarked_host" not in rows, "what the host does between steps has a finding of its own"
    row = rows["bubble_between_steps"]
    share = 100 * sum(server.bubbles) / sum(server.periods)
    assert row["share_pct"] == pytest.approx(share, rel=0.01)
    assert not row["part_of"]
    assert "The host runs scheduler.py(88): schedule then." in row["text"]
    switch = {"sglang": "SGLang: its overlap scheduler", "vllm": "vLLM: --async-scheduling"}[engine]
    assert f"({switch}" in row["suggestion"]
    assert row["method"] == "replay"
    scheduling = 100 * 3 * MS * 12 / sum(server.periods) * 11 / 12
    assert row["saving_pct"] == pytest.approx(scheduling, rel=0.05)
    said = first_lines(trace, said_of(trace))
    assert said.startswith("8.0")
    works = 100 * (1 - sum(server.bubbles) / sum(server.periods))
    first = re.match(
        r"[\d.]+ ms per token; the GPU works (.+) % of it; 4\.0\d ms between steps in schedule\.", said
    )
    assert first
    assert float(first[1]) == pytest.approx(works, rel=0.01)
    assert "tokens per second in all" in rows["serving_rate"]["text"]


@pytest.mark.parametrize("others", [DECODE, Batch(prompts=1, prompt_tokens=1000)])
def test_the_time_between_steps_has_one_figure(tmp_path: Path, others: Batch) -> None:
    """Also where some steps wait longer for the next: a median would differ from what the finding costs."""
    server = Server()
    for number in range(13):
        server.schedule_ns = 9 * MS if number % 3 == 2 else MS
        server.serve(others if number % 3 == 2 else DECODE)
    trace = server.open(tmp_path)
    assert not faults(trace)
    rows = rows_of(trace)
    mean = duration(sum(server.bubbles) / len(server.bubbles))
    assert f"; {mean} between steps in schedule." in rows["serving_rate"]["text"]
    assert f"({mean} per step)" in rows["bubble_between_steps"]["text"]


def test_no_figure_between_steps_without_a_next_one(tmp_path: Path) -> None:
    server = Server()
    server.serve(DECODE)
    rows = rows_of(server.open(tmp_path))
    assert "between steps" not in rows["serving_rate"]["text"]
    assert "bubble_between_steps" not in rows


def test_gaps_within_steps_are_no_work(tmp_path: Path) -> None:
    """Without graphs a host that launches late leaves the device idle in its steps, not between them."""
    server = Server()
    for _ in range(8):
        with server.program.inside("user_annotation", DECODE.sglang):
            for _ in range(4):
                server.program.launch(MS // 2, "gemm")
                server.program.silence(2 * MS)
            server.program.synchronise()
    trace = server.open(tmp_path)
    assert not faults(trace)
    said = first_lines(trace, said_of(trace))
    work, row = 4 * MS // 2, serving_phases(trace).iloc[0]
    assert row["works_pct"] == pytest.approx(100 * work / row["period_ns"], rel=0.01)
    assert row["works_pct"] < 30
    assert f"the GPU works {percent(row['works_pct'])} of it" in said


@pytest.mark.parametrize("scope", ["gpu_model_runner: {}", "{}"])
def test_a_runner_that_names_only_parts_of_its_steps(tmp_path: Path, scope: str) -> None:
    """vLLM with scopes, since 0.12 and before: nothing says what a step computes, only when it is."""
    server = Server(schedule_ns=2 * MS)
    program = server.program
    for _ in range(10):
        server._frame("vllm/v1/core/sched/scheduler.py(180): schedule", 2 * MS)
        for part in ("Preprocess", "Forward", "Postprocess", "Sample", "Bookkeep"):
            name = scope.format(part if scope == "{}" else part.lower())
            with program.inside("user_annotation", name):
                for _ in range({"Preprocess": 0, "Forward": 8, "Bookkeep": 0}.get(part, 1)):
                    program.launch(MS // 2, f"gemm_{part}")
                if part == "Bookkeep":
                    program.synchronise()
    trace = server.open(tmp_path)
    assert not faults(trace)
    said = first_lines(trace, said_of(trace))
    first = re.match(
        r"([\d.]+) ms per step; the GPU works (.+) % of it; 2\.0\d ms between steps in schedule\.", said
    )
    assert first
    assert float(first[1]) == pytest.approx(7, rel=0.01)
    assert float(first[2]) == pytest.approx(100 * 5 / 7, rel=0.01)
    assert "of the device's work in steps:" in rows_of(trace)["serving_work"]["text"].lower()


def test_a_server_that_schedules_ahead_waits_for_nothing(tmp_path: Path) -> None:
    server = Server(overlapped=True)
    for _ in range(12):
        server.serve(DECODE)
    trace = server.open(tmp_path)
    assert not faults(trace)
    rows = rows_of(trace)
    assert "bubble_between_steps" not in rows
    assert "bubble_between_steps" in rows["nothing_found"]["checked"].split()
    assert "of it" in rows["serving_rate"]["text"]


@pytest.mark.parametrize("around", [False, True])
def test_a_server_that_verifies_drafts(tmp_path: Path, around: bool) -> None:
    trace = speculating(around).open(tmp_path)
    assert not faults(trace)
    said = first_lines(trace, said_of(trace))
    assert " per token; the GPU works " in said
    assert "tokens per second in all" in rows_of(trace)["serving_rate"]["text"]


def test_a_server_whose_host_records_nothing_between_steps(tmp_path: Path) -> None:
    server = Server(schedule_ns=0, read_ns=0)
    for _ in range(12):
        server.serve(DECODE)
        server.program.silence(4 * MS)
    trace = server.open(tmp_path)
    assert not faults(trace)
    row = rows_of(trace)["bubble_between_steps"]
    assert "is not recorded" in row["text"]
    assert "with_stack=True" in row["suggestion"]
    assert row["method"] == "analytic"
    assert row["saving_ns"] == row["cost_ns"]
    assert "can be saved: scheduled ahead" in row["saving"]


def test_what_is_recorded_between_steps_needs_no_further_recording(tmp_path: Path) -> None:
    server = Server(schedule_ns=0, read_ns=0)
    for _ in range(12):
        server.serve(DECODE)
        server._frame("/srv/engine/loggers.py(120): log", 3 * MS)
    trace = server.open(tmp_path)
    assert not faults(trace)
    row = rows_of(trace)["bubble_between_steps"]
    assert "The host runs loggers.py(120): log then." in row["text"]
    assert row["suggestion"].startswith("Shorten what the host does then")


def chunked(prompts: int) -> Server:
    """Decoding, with a piece of a prompt beside it now and then."""
    server = Server(schedule_ns=0, read_ns=0)
    for step in range(24):
        beside = step % 6 == 3 and step // 6 < prompts
        server.serve(Batch(decodes=32, prompt_tokens=4096 if beside else 0, prompts=int(beside)))
    return server


def test_decoding_behind_pieces_of_prompts(tmp_path: Path) -> None:
    server = chunked(3)
    trace = server.open(tmp_path)
    assert not faults(trace)
    row = rows_of(trace)["decode_behind_prefill"]
    usual, long = sorted(server.periods)[10], max(server.periods)
    assert row["cost_ns"] == pytest.approx(3 * (long - usual), rel=0.01)
    assert row["severity"] == "note"
    assert "instead of" in row["text"]


@pytest.mark.parametrize(
    ("called", "encodes"),
    [
        ("vllm/model_executor/models/qwen2_5_vl.py(1377): embed_multimodal", True),
        ("sglang/srt/models/qwen2_5_vl.py(560): get_image_feature", True),
        ("vllm/v1/worker/gpu_model_runner.py(2410): _execute_mm_encoder", False),  # in every step
    ],
)
def test_pieces_of_prompts_do_not_divide_what_is_encoded(called: str, encodes: bool, tmp_path: Path) -> None:
    server = chunked(3)
    with server.program.inside("python_function", called, **{"Python id": 1}):
        server.program.silence(100)
    trace = server.open(tmp_path)
    assert not faults(trace)
    row = rows_of(trace)["decode_behind_prefill"]
    assert ("pieces of prompts half as large" in row["text"]) is not encodes
    assert row["suggestion"].startswith("Images, video or audio are encoded") is encodes


def test_decoding_behind_prompts_in_steps_of_their_own(tmp_path: Path) -> None:
    server = Server(schedule_ns=0, read_ns=0)
    for step in range(24):
        server.serve(Batch(prompt_tokens=4096, prompts=1) if step % 8 == 4 else DECODE)
    trace = server.open(tmp_path)
    assert not faults(trace)
    assert rows_of(trace)["decode_behind_prefill"]["cost_ns"] == pytest.approx(
        sum(server.periods[at] for at in (4, 12, 20)), rel=0.02
    )


@pytest.mark.parametrize("around", [False, True])
def test_verifying_drafts_behind_prompts(tmp_path: Path, around: bool) -> None:
    server = speculating(around, prompt_before=(2, 4))
    trace = server.open(tmp_path)
    assert not faults(trace)
    row = rows_of(trace)["decode_behind_prefill"]
    prompts = [at for at, end in enumerate(server.ends) if end - server.starts[at] > 10 * MS]
    assert len(prompts) == 2
    assert row["cost_ns"] == pytest.approx(sum(server.periods[at] for at in prompts), rel=0.02)
    assert "next token takes up to" in row["text"]
    assert "decode_behind_prefill" not in rows_of(speculating(around).open(tmp_path))


def test_drafts_in_steps_of_their_requests_are_one_turn(tmp_path: Path) -> None:
    """vLLM verifies drafts in steps that decode: what prompts delay is a step, not a token's part of it."""
    server, kv = Server(engine="vllm", schedule_ns=0, read_ns=0), 40_000
    for step in range(24):
        beside = step % 8 == 4
        prompt = {"prompt_tokens": 4096, "prompts": 1} if beside else {}
        server.serve(Batch(decodes=16, drafts=3, kv=kv, **prompt))
        kv += 40
    trace = server.open(tmp_path)
    assert not faults(trace)
    usual, long = sorted(server.periods)[10], max(server.periods)
    cost = rows_of(trace)["decode_behind_prefill"]["cost_ns"]
    assert cost == pytest.approx(3 * (long - usual), rel=0.01)


def test_prompts_before_anything_decodes_delay_nobody(tmp_path: Path) -> None:
    server = Server(schedule_ns=0, read_ns=0)
    for step in range(20):
        server.serve(Batch(prompt_tokens=4096, prompts=1) if step < 4 else DECODE)
    assert "decode_behind_prefill" not in rows_of(server.open(tmp_path))


@pytest.mark.parametrize("name", ["ddp_4ranks", "single_gpu_dataloader_stall"])
def test_nothing_is_said_of_servers_where_there_is_none(name: str) -> None:
    frame = overview(examples.load(name))
    assert not OURS & set(frame["topic"])
    assert (
        not frame["text"].str.contains("times of requests|between steps the device|gaps between steps").any()
    )


CONNECTOR = "/srv/vllm/kv_transfer/nixl_connector.py(210): save_kv_layer"


@pytest.mark.parametrize(
    ("tokens", "slow"),
    [
        (lambda number: 4096, True),
        (lambda number: 4096, False),
        (lambda number: 4096 if number % 3 else 8192, False),  # near miss: prompts of two lengths
        (lambda number: 3000 + 500 * number, False),  # no two prompts are as long: no usual time of them
    ],
)
def test_steps_are_long_only_beside_those_that_do_the_same(tmp_path: Path, tokens, slow: bool) -> None:
    """Most steps read prompts, which takes longer than to decode."""
    server = Server(schedule_ns=0, read_ns=0)
    for number in range(12):
        server.serve(DECODE, base_ns=4 * MS + 20 * MS * (slow and number == 5))
        for _ in range(2):
            server.serve(Batch(prompts=1, prompt_tokens=tokens(number)))
    trace = server.open(tmp_path)
    assert not faults(trace)
    rows = rows_of(trace)
    assert "bimodal_steps" not in rows
    assert ("slow_steps" in rows) is slow
    if slow:
        text = rows["slow_steps"]["text"]
        assert re.search(
            r"^1 of 3[56] .*; 4\.\d+ ms is usual\. It computes 20\.0 ms longer, with no more", text
        )
    said = step_times_sentence(step_times(trace))
    assert re.match(r"A step takes 1\d\.\d ms at the median where the phase is prefill[.,]", said)
    assert said.endswith(f"takes {duration(server.periods[15])} in iteration 15 on rank 0.") is slow
    _, _, band = trend_points(ANALYSIS.chart, step_times(trace))
    assert band.startswith("middle half of its prefill steps")


def test_a_server_that_only_decodes_has_steps_of_two_lengths(tmp_path: Path) -> None:
    server = Server(schedule_ns=0, read_ns=0)
    for number in range(16):
        server.serve(DECODE, base_ns=4 * MS + 20 * MS * bool(number % 3))
    trace = server.open(tmp_path)
    assert not faults(trace)
    assert "bimodal_steps" in rows_of(trace)
    assert step_times_sentence(step_times(trace)).startswith("A step takes 24.")


def transferring(name: str, frame: str) -> Server:
    """A server that moves something on a stream of its own: half of the time beside its own work."""
    server = Server(schedule_ns=0, read_ns=0)
    kind, api = ("gpu_memcpy", "cudaMemcpyAsync") if "Mem" in name else ("kernel", "cudaLaunchKernel")
    for _ in range(12):
        server.serve(DECODE, kernels=4)
        server.program._calls += 1
        with server.program.inside("python_function", frame, **{"Python id": server.program._calls}):
            server.program.launch(2 * MS, name, stream=20, kind=kind, api=api)
        server.program.launch(MS, "sample")
        server.program.synchronise()
    return server


@pytest.mark.parametrize(
    ("name", "frame"),
    [("Memcpy DtoH (Device -> Pinned)", CONNECTOR), ("multi_layer_kv_transfer_kernel", "cache.py(3): save")],
)
def test_keys_and_values_that_move_to_another_memory(tmp_path: Path, name: str, frame: str) -> None:
    server = transferring(name, frame)
    trace = server.open(tmp_path)
    assert not faults(trace)
    row = rows_of(trace)["kv_transfer"]
    assert row["role"] == "aside"
    (said,) = [each for each in json.loads(row["claims"]) if each["measure"] == "kv_moved_alone"]
    assert said["value"] == pytest.approx(100 * 11 * MS / sum(server.periods), rel=0.02)
    assert row["cost_ns"] == pytest.approx(11 * MS, rel=0.02)
    assert "If that is another server" in row["text"]


def test_keys_and_values_that_are_swapped_within_steps(tmp_path: Path) -> None:
    """Copies are a part of a step's work, and no other kernels."""
    server = Server(schedule_ns=0, read_ns=0, engine="vllm")
    program = server.program
    for _ in range(12):
        program._calls += 1
        offloads = "vllm/v1/kv_offload/worker/cpu_gpu.py(150): transfer_async"
        with program.inside("user_annotation", DECODE.vllm):
            program.silence(1_000)
            with program.inside("python_function", offloads, **{"Python id": program._calls}):
                for _ in range(4):
                    program.copy(MS, "Memcpy HtoD (Pinned -> Device)")
            program.launch(6 * MS, "gemm")
            program.synchronise()
    trace = server.open(tmp_path)
    assert not faults(trace)
    assert "matrix products 60.0 % and copies 40.0 %" in rows_of(trace)["serving_work"]["text"]
    assert "kv_transfer" in rows_of(trace)
    assert re.search(r"; 39\.\d % of the time is due to exposed copies$", story(trace).headline)


@pytest.mark.parametrize(("apart_ns", "rank"), [(0, None), (3 * MS, 1)])
def test_a_rank_is_named_where_it_alone_waits_between_steps(tmp_path: Path, apart_ns: int, rank) -> None:
    servers = [Server(schedule_ns=0 if apart_ns else 3 * MS, read_ns=0) for _ in range(2)]
    for _ in range(12):
        for nth, server in enumerate(servers):
            if nth and apart_ns:
                server._frame("/srv/engine/loggers.py(120): log", apart_ns)
            server.serve(DECODE, base_ns=4 * MS if nth else 4 * MS + apart_ns)
    trace = job(tmp_path, *(server.events for server in servers))
    assert not faults(trace)
    found = rows_of(trace)["bubble_between_steps"]["rank"]
    assert (None if pd.isna(found) else found) == rank


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("Memcpy DtoH (Device -> Pinned)", "/srv/engine/detokenizer.py(31): update"),
        ("reshape_and_cache_flash_kernel", "f"),
    ],
)
def test_other_copies_are_no_transfers(tmp_path: Path, name: str, frame: str) -> None:
    assert "kv_transfer" not in rows_of(transferring(name, frame).open(tmp_path))


def test_a_loop_that_is_named_after_transfers_is_none(tmp_path: Path) -> None:
    """A server of one side runs all of its steps in such a function."""
    server = Server()
    loop = {"Python id": 10**6}
    with server.program.inside("python_function", "/srv/kv_transfer/decode.py(7): event_loop", **loop):
        for _ in range(12):
            server.serve(DECODE)
    assert "kv_transfer" not in rows_of(server.open(tmp_path))


REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def with_experts(folder: Path, *experts: tuple[int, int], reduce: int = 200_000) -> Trace:
    """Two ranks by step: each waits in the all-reduce (0: there is none) for the other's experts."""
    servers = [Server(schedule_ns=0, read_ns=0), Server(schedule_ns=0, read_ns=0)]
    for step in range(8):
        for server, own in zip(servers, experts[step % len(experts)], strict=True):
            wait = ((REDUCE, max(experts[step % len(experts)]) - own + reduce),) if reduce else ()
            server.tail = (("fused_moe_kernel", own), *wait)
            server.serve(DECODE)
    return job(folder, *(server.events for server in servers))


def test_experts_of_one_rank_that_have_more_to_do(tmp_path: Path) -> None:
    trace = with_experts(tmp_path, (MS, 16 * MS // 10))
    assert not faults(trace)
    row = rows_of(trace)["uneven_experts"]
    assert row["cost_ns"] == pytest.approx(8 * 300_000, rel=0.15)
    assert "rank 1 has most" in row["text"]
    assert "eplb" in row["suggestion"]


def test_experts_that_are_unequal_in_turn(tmp_path: Path) -> None:
    """No rank has more to do in the sum, and still they wait in every step."""
    trace = with_experts(tmp_path, (MS, 2 * MS), (2 * MS, MS))
    assert not faults(trace)
    assert "2.00 ms per step on the slowest rank and 1.50 ms" in rows_of(trace)["uneven_experts"]["text"]


@pytest.mark.parametrize(("experts", "reduce"), [((MS, MS), 200_000), ((MS, 105 * MS // 100), 200_000),
                                                ((MS, 2 * MS), 0)])  # fmt: skip
def test_equal_experts_and_ranks_that_exchange_nothing(tmp_path: Path, experts, reduce: int) -> None:
    assert "uneven_experts" not in rows_of(with_experts(tmp_path, experts, reduce=reduce))


SAMPLER = "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<>"
ALL_REDUCE = "void sglang::cross_device_reduce_1stage<__nv_bfloat16, 8>"


@pytest.mark.parametrize(
    ("batch", "tail", "parts", "advice"),
    [
        (DECODE, (), "matrix products 100 %", "larger batches"),
        (DECODE, ((SAMPLER, MS),), "matrix products 80.3 % and sampling 19.7 %", "fused sampler"),
        (DECODE, ((ALL_REDUCE, 6 * MS),), "communication 59.6 % and matrix products 40.4 %", "one-shot"),
        (DECODE, (("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", 6 * MS), (ALL_REDUCE, 2 * MS)),
         "experts 49.7 % and matrix products 33.7 %. Then communication 16.6 %", "weights of experts"),
        (DECODE, (("fused_moe_kernel", 6 * MS),), "experts 59.6 % and matrix products 40.4 %", "experts"),
        (DECODE, (("_lora_shrink_kernel", MS), ("_lora_expand_kernel", MS)),
         "matrix products 67.0 % and LoRA 33.0 %", "Merge the adapter"),
        (Batch(prompts=1, prompt_tokens=1000), (), "matrix products 100 %", "prefix cache"),
    ],
)  # fmt: skip
def test_what_steps_work_on(tmp_path: Path, batch: Batch, tail, parts: str, advice: str) -> None:
    server = Server(schedule_ns=0, read_ns=0, tail=tail)
    for _ in range(12):
        server.serve(batch)
    trace = server.open(tmp_path)
    assert not faults(trace)
    row = rows_of(trace)["serving_work"]
    assert row["text"] == f"Of the device's work in {batch.phase} steps: {parts}."
    assert advice in row["suggestion"]
    assert row["cost_ns"] == 0
    assert " between steps" not in rows_of(trace)["serving_rate"]["text"], "9 µs are not worth a word"


def test_graphs_that_are_larger_than_the_batch(tmp_path: Path) -> None:
    server = Server(engine="atom", schedule_ns=0, read_ns=0)
    for _ in range(12):
        server.serve(Batch(decodes=100, kv=5000))
    trace = server.open(tmp_path)
    assert not faults(trace)
    row = rows_of(trace)["padding"]
    assert row["share_pct"] == pytest.approx(100 * 28 / 128, rel=0.01)
    assert "replayed for 128 requests where 100 decode" in row["text"]
    assert row["method"] == "analytic"


def test_batches_that_fill_their_graphs_and_no_graphs(tmp_path: Path) -> None:
    for name, engine, decodes in (("full", "atom", 128), ("eager", "sglang", 100)):
        server = Server(engine=engine, schedule_ns=0, read_ns=0)
        for _ in range(12):
            server.serve(Batch(decodes=decodes, kv=5000))
        (tmp_path / name).mkdir()
        frame = overview(server.open(tmp_path / name))
        assert "padding" not in set(frame["topic"])
        assert not frame["text"].str.contains("sizes of the replayed graphs").any()


@pytest.mark.parametrize("name", ["sglang_decode", "vllm_decode_full"])
def test_the_batch_of_a_recorded_graph_is_that_of_its_capture(name: str) -> None:
    path = shared_trace(f"tracelens/inference/{name}")
    trace = Trace.open(path, capture=shared_input(f"recordings/captures/{name}"))
    assert serving_steps(trace)["padded"].tolist() == [32]
    assert "padding" not in rows_of(trace)
    texts = overview(Trace.open(path))["text"]
    assert texts.str.contains("no sizes of the replayed graphs: it is unknown how many requests").any()


def test_the_batch_of_a_graph_is_that_of_most_of_its_products(tmp_path: Path) -> None:
    """As of a layer that only looks at some rows: a product of another size does not change the batch."""
    captured = shared_input("recordings/captures/sglang_decode")
    record = json.loads(gzip.decompress((captured / "bs_32_rank0.json.gz").read_bytes()))
    products = [each for each in record["traceEvents"] if each.get("name") == "aten::mm"]
    dims = [each["args"]["Input Dims"] for each in products if each["args"]["Input Dims"][0][0] == 32]
    for few in dims[:2]:
        few[0][0] = 40
    for name, text in (("bs_32_rank0.json", json.dumps(record)), ("execution_details.json", None)):
        (tmp_path / name).write_text(text or (captured / name).read_text())
    trace = Trace.open(shared_trace("tracelens/inference/sglang_decode"), capture=tmp_path)
    known = roles_of(trace.rank(0))
    assert any(each is not None and each.dims.startswith("[[40,") for each in known.captured)
    assert serving_steps(trace)["padded"].tolist() == [32]


@pytest.mark.parametrize(
    ("name", "parts", "said"),
    [
        (
            "vllm_decode_full",
            "experts 72.7 % and matrix products 11.5 %. Then attention 6.76 %",
            "experts 72.7 % and matrix products 11.5 %. Nothing to save stands out.",
        ),
        ("sglang_decode", "matrix products 59.6 % and attention 22.0 %", ""),
    ],
)
def test_what_recorded_steps_work_on(name: str, parts: str, said: str) -> None:
    trace = Trace.open(shared_trace(f"tracelens/inference/{name}"))
    assert not faults(trace)
    assert f"Of the device's work in decode steps: {parts}" in rows_of(trace)["serving_work"]["text"]
    assert first_lines(trace, said_of(trace)).endswith(said)


def test_what_no_recording_holds_is_refused_with_the_servers_own_metric(tmp_path: Path) -> None:
    server = Server()
    for _ in range(4):
        server.serve(DECODE)
    frame = overview(server.open(tmp_path))
    (row,) = frame[frame["text"].str.contains("times of requests")].to_dict("records")
    assert "time_to_first_token_seconds" in row["suggestion"]


def test_a_recorded_server_that_waits_between_steps() -> None:
    trace = Trace.open(shared_input("cases/serving/decode_every_15ms.json.gz"))
    assert not faults(trace)
    rows = rows_of(trace)
    assert rows["bubble_between_steps"]["share_pct"] == pytest.approx(28.4, rel=0.01)
    assert "gpu_model_runner.py(3380): execute_model" in rows["bubble_between_steps"]["text"]
    assert first_lines(trace, said_of(trace)).startswith("15.0 ms per token")
    assert rows["device_wait"]["part_of"] == "bubble_between_steps"


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("h100_decode", "78.8 % of the time is due to decoding without graphs"),  # named in small part before
        ("h100_decode_cuda_graphs", "25.8 % of the time is due to decoding that waits behind prompts"),
        ("continuous_batching", "142 µs between steps in get_next_batch_to_run"),  # which is most of the loss
    ],
)
def test_a_headline_ends_with_the_largest_loss(name: str, loss: str) -> None:
    assert story(Trace.open(examples.path(name))).headline.endswith(f"; {loss}")
