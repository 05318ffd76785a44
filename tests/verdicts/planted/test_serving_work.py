"""What a server works on that it need not: adapters, sampling, drafts; and pipelines that work in turn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hta_widgets import Trace
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.story import story
from tests.analysis.kineto_file import job
from tests.analysis.serving.servers import Batch, Server
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS

DECODE = Batch(decodes=32)
SAMPLER = "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<>"


def rows_of(trace: Trace) -> dict[str, dict]:
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    return {row["topic"]: row for row in frame.to_dict("records")}


def with_tail(name: str, ns: int = MS) -> Server:
    """Steps of 4 ms that end with one more kernel."""
    server = Server(engine="vllm", schedule_ns=0, read_ns=0, tail=((name, ns),))
    for _ in range(12):
        server.serve(DECODE)
    return server


@pytest.mark.parametrize(
    ("name", "topic", "advice"),
    [("_lora_shrink_kernel", "adapters", "Merge the adapter"), (SAMPLER, "sampling_work", "fused sampler")],
)
def test_work_beside_the_model(tmp_path: Path, name: str, topic: str, advice: str) -> None:
    rows = rows_of(with_tail(name).open(tmp_path))
    assert rows[topic]["share_pct"] == pytest.approx(100 / 5.1, rel=0.02)
    assert advice in rows[topic]["suggestion"]
    assert rows[topic]["method"] == "analytic"
    assert not {"adapters", "sampling_work"} & set(rows_of(with_tail(name, MS // 4).open(tmp_path)))


def drafting(accepted: int, drafts_ns: int = 3 * MS, known: bool = True) -> Server:
    """Steps of 4 ms verify 3 drafts of 16 requests, which a model between them makes."""
    server, kv = Server(engine="vllm", schedule_ns=MS // 10, read_ns=0), 40_000
    for _ in range(10):
        server.serve(Batch(decodes=16, drafts=3, kv=kv), token_ns=0)
        server.program.launch(drafts_ns, "gemm_draft")
        server.program.synchronise()
        kv += accepted if known else 0
    return server


def test_drafts_that_are_hardly_accepted(tmp_path: Path) -> None:
    """16 requests get 20 tokens in a turn of 7 ms; without drafts they get 16 in 4 ms."""
    row = rows_of(drafting(20).open(tmp_path))["unaccepted_drafts"]
    assert row["share_pct"] == pytest.approx(100 * (1 - (4.1 / 16) / (7.1 / 20)), rel=0.03)
    assert "A request gets 1.25 tokens per turn" in row["text"]
    assert "(vLLM: num_speculative_tokens of --speculative-config)" in row["suggestion"]


@pytest.mark.parametrize(
    "server",
    [
        lambda: drafting(40),  # 2.5 tokens in 7 ms are more than one in 4
        lambda: drafting(20, drafts_ns=MS // 2),
        lambda: drafting(20, known=False),
    ],
)
def test_drafts_that_pay_or_may(tmp_path: Path, server) -> None:
    assert "unaccepted_drafts" not in rows_of(server().open(tmp_path))


PROPOSE = "/srv/vllm/v1/spec_decode/eagle.py(205): propose"


def drafting_in(call: str, ns: int = 3 * MS, accepted: int = 0) -> Server:
    """Steps verify 3 drafts of 16 requests in 4 ms, and then draft in this call."""
    server, kv = Server(engine="vllm", schedule_ns=0, read_ns=0), 40_000
    program = server.program
    for _ in range(10):
        with program.inside("user_annotation", Batch(decodes=16, drafts=3, kv=kv).vllm):
            program.launch(4 * MS, "gemm")
            program._calls += 1
            with program.inside("python_function", call, **{"Python id": program._calls}):
                program.launch(ns, "gemm_draft")
            program.synchronise()
        kv += accepted
    return server


def test_drafts_of_which_nothing_shows_how_many_are_accepted(tmp_path: Path) -> None:
    trace = drafting_in(PROPOSE).open(tmp_path)
    row = rows_of(trace)["drafting_time"]
    assert row["share_pct"] == pytest.approx(100 * 3 / 7, rel=0.01)
    assert "if a request gets more than 1.75 tokens per turn" in row["text"]
    assert "(vLLM: num_speculative_tokens of --speculative-config)" in row["suggestion"]
    assert story(trace).headline.endswith("; 42.8 % of the time is due to drafting")


def test_a_model_that_drafts_in_steps_of_its_own(tmp_path: Path) -> None:
    server = Server(schedule_ns=0, read_ns=0)
    for _ in range(8):
        for _ in range(2):
            server.serve(Batch(decodes=16, word="DECODE"), token_ns=0, base_ns=MS, kernels=2)
        server.serve(Batch(decodes=16, drafts=3, word="TARGET_VERIFY"), token_ns=0)
    row = rows_of(server.open(tmp_path))["drafting_time"]
    assert row["share_pct"] == pytest.approx(100 * 2 / 6, rel=0.02)
    assert "more than 1.5 tokens per turn" in row["text"]


@pytest.mark.parametrize(
    "server",
    [
        lambda: drafting_in("/srv/vllm/v1/worker/gpu_model_runner.py(88): sample"),  # none that is known
        lambda: drafting_in(PROPOSE, accepted=40),  # which the lengths of sequences show
        lambda: drafting_in(PROPOSE, ns=MS // 10),
    ],
)
def test_drafts_of_which_more_is_known_or_that_take_little(tmp_path: Path, server) -> None:
    assert "drafting_time" not in rows_of(server().open(tmp_path))


def test_a_headline_has_the_largest_loss_of_a_server(tmp_path: Path) -> None:
    """Unless it has it already, or that is little."""
    lora = "_lora_shrink_kernel"
    said = story(with_tail(lora).open(tmp_path)).headline
    assert re.search(r"of it; 19\.\d % of the time is due to LoRA adapters$", said)
    assert "due to" not in story(with_tail(lora, MS // 4).open(tmp_path)).headline
    waiting = Server()
    for _ in range(12):
        waiting.serve(DECODE)
    assert story(waiting.open(tmp_path)).headline.endswith("between steps in schedule")


def pipeline(folder: Path, turns: tuple[int, ...], both: bool = False) -> Trace:
    """Each rank works 4 ms in its turn (0: in all of them) of as many as there are, and sends on."""
    servers = [Server(engine="vllm", schedule_ns=0, read_ns=0) for _ in turns]
    most = max(turns)
    for step in range(10):
        for server, turn in zip(servers, turns, strict=True):
            begin = (step * most + turn - 1) * 5 * MS
            server.program.now = max(server.program.now, begin)
            server.serve(DECODE, token_ns=0)
            if both:
                server.program.now = max(server.program.now, begin + 5 * MS)
                server.serve(DECODE, token_ns=0)
            server.program.launch(MS // 10, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
            server.program.synchronise()
    return job(folder, *(server.events for server in servers))


@pytest.mark.parametrize("turns", [(1, 2), (1, 1, 2, 2), (1, 2, 3)])
def test_stages_that_work_in_turn(tmp_path: Path, turns: tuple[int, ...]) -> None:
    trace = pipeline(tmp_path, turns)
    rows = rows_of(trace)
    row = rows["one_batch_in_flight"]
    assert story(trace).headline.endswith(" between steps: a pipeline with one batch in it")
    assert rows["bubble_between_steps"]["part_of"] == "one_batch_in_flight"
    stages = max(turns)
    assert f"Only one batch is on its way through {stages} stages." in row["text"]
    assert row["share_pct"] == pytest.approx(100 * (stages - 1) * 4 / (stages * 5), rel=0.1)
    assert "(vLLM: a smaller --max-num-seqs divides them)" in row["suggestion"]


def test_stages_that_work_at_the_same_time(tmp_path: Path) -> None:
    assert "one_batch_in_flight" not in rows_of(pipeline(tmp_path, (1, 2), both=True))
    assert "one_batch_in_flight" not in rows_of(pipeline(tmp_path, (1, 1)))


def ending(batches: tuple[int, ...], prompts_at: int = -1) -> Server:
    """Ten steps of each batch; prompts are read before one of them."""
    server = Server(engine="vllm", schedule_ns=0, read_ns=0)
    for at, decodes in enumerate(batches):
        if at == prompts_at:
            server.serve(Batch(prompts=1, prompt_tokens=512))
        for _ in range(10):
            server.serve(Batch(decodes=decodes), token_ns=0)
    return server


def test_the_last_few_requests_of_a_batch(tmp_path: Path) -> None:
    trace = ending((64, 32, 7, 1)).open(tmp_path)
    row = rows_of(trace)["few_requests"]
    assert row["share_pct"] == pytest.approx(50, abs=2) and row["section"] == "unknown"
    assert "There are 20 of them, with less than an eighth of the 64 requests" in row["text"]
    assert "is due to steps that decode the last few requests" in story(trace).headline


@pytest.mark.parametrize(
    ("batches", "prompts_at"),
    [
        ((64, 32, 8, 8), -1),
        ((64, 1, 64, 1), -1),
        ((64, 32, 1, 1), 3),
        ((4, 2, 1, 1), -1),
        ((1, 64, 64, 64), -1),
    ],
    ids=["no fewer", "others join", "a prompt is read", "never many", "few at first"],
)
def test_other_small_batches(batches: tuple[int, ...], prompts_at: int, tmp_path: Path) -> None:
    assert "few_requests" not in rows_of(ending(batches, prompts_at).open(tmp_path))
