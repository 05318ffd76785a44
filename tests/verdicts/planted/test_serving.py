"""Servers that wait between steps, or decode behind prompts; near misses; and what is no server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hta_widgets import Trace, examples
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.headline import sentence
from tests.analysis.serving.servers import Batch, Server, speculating
from tests.claims.checking import check_job
from tests.support import shared_input
from tests.verdicts.planted.host_program import MS

DECODE = Batch(decodes=32)
OURS = {"serving_rate", "bubble_between_steps", "decode_behind_prefill", "kv_transfer"}


def rows_of(trace: Trace) -> dict[str, dict]:
    return {row["topic"]: row for row in overview(trace).to_dict("records")}


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_scheduler_that_the_device_waits_for(tmp_path: Path, engine: str) -> None:
    server = Server(engine=engine)
    for _ in range(12):
        server.serve(DECODE)
    trace = server.open(tmp_path)
    assert not check_job(trace)
    row = rows_of(trace)["bubble_between_steps"]
    share = 100 * sum(server.bubbles) / sum(server.periods)
    assert row["share_pct"] == pytest.approx(share, rel=0.01)
    assert not row["part_of"]
    assert "The host runs scheduler.py(88): schedule then." in row["text"]
    assert "async-scheduling" in row["suggestion"]
    assert row["method"] == "replay"
    scheduling = 100 * 3 * MS * 12 / sum(server.periods) * 11 / 12
    assert row["saving_pct"] == pytest.approx(scheduling, rel=0.05)
    said = sentence(overview(trace))
    assert said.startswith("8.0")
    assert " ms per token (" in said
    assert "scheduler.py(88): schedule" in said


def test_a_server_that_schedules_ahead_waits_for_nothing(tmp_path: Path) -> None:
    server = Server(overlapped=True)
    for _ in range(12):
        server.serve(DECODE)
    trace = server.open(tmp_path)
    assert not check_job(trace)
    rows = rows_of(trace)
    assert "bubble_between_steps" not in rows
    assert "bubble_between_steps" in rows["nothing_found"]["checked"].split()
    assert "of it" in rows["serving_rate"]["text"]


@pytest.mark.parametrize("around", [False, True])
def test_a_server_that_verifies_drafts(tmp_path: Path, around: bool) -> None:
    trace = speculating(around).open(tmp_path)
    assert not check_job(trace)
    said = sentence(overview(trace))
    assert " per token (" in said
    assert "tokens per second in all" in said


def test_a_server_whose_host_records_nothing_between_steps(tmp_path: Path) -> None:
    server = Server(schedule_ns=0, read_ns=0)
    for _ in range(12):
        server.serve(DECODE)
        server.program.silence(4 * MS)
    trace = server.open(tmp_path)
    assert not check_job(trace)
    row = rows_of(trace)["bubble_between_steps"]
    assert "is not recorded" in row["text"]
    assert "with_stack=True" in row["suggestion"]
    assert row["method"] == "analytic"
    assert row["saving_ns"] == row["cost_ns"]
    assert "can be saved: scheduled ahead" in row["saving"]


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
    assert not check_job(trace)
    row = rows_of(trace)["decode_behind_prefill"]
    usual, long = sorted(server.periods)[10], max(server.periods)
    assert row["cost_ns"] == pytest.approx(3 * (long - usual), rel=0.01)
    assert row["severity"] == "note"
    assert "instead of" in row["text"]


def test_decoding_behind_prompts_in_steps_of_their_own(tmp_path: Path) -> None:
    server = Server(schedule_ns=0, read_ns=0)
    for step in range(24):
        server.serve(Batch(prompt_tokens=4096, prompts=1) if step % 8 == 4 else DECODE)
    trace = server.open(tmp_path)
    assert not check_job(trace)
    assert rows_of(trace)["decode_behind_prefill"]["cost_ns"] == pytest.approx(
        sum(server.periods[at] for at in (4, 12, 20)), rel=0.02
    )


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
    assert not check_job(trace)
    row = rows_of(trace)["kv_transfer"]
    assert row["role"] == "aside"
    (said,) = [each for each in json.loads(row["claims"]) if each["measure"] == "kv_moved_alone"]
    assert said["value"] == pytest.approx(100 * 11 * MS / sum(server.periods), rel=0.02)
    assert row["cost_ns"] == pytest.approx(11 * MS, rel=0.02)
    assert "recording of its own" in row["text"]


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


def test_what_no_recording_holds_is_refused_with_the_servers_own_metric(tmp_path: Path) -> None:
    server = Server()
    for _ in range(4):
        server.serve(DECODE)
    frame = overview(server.open(tmp_path))
    (row,) = frame[frame["text"].str.contains("times of requests")].to_dict("records")
    assert "time_to_first_token_seconds" in row["suggestion"]


def test_a_recorded_server_that_waits_between_steps() -> None:
    trace = Trace.open(shared_input("cases/serving/decode_every_15ms.json.gz"))
    assert not check_job(trace)
    rows = rows_of(trace)
    assert rows["bubble_between_steps"]["share_pct"] == pytest.approx(28.4, rel=0.01)
    assert "gpu_model_runner.py(3380): execute_model" in rows["bubble_between_steps"]["text"]
    assert sentence(overview(trace)).startswith("15.0 ms per token")
    assert rows["device_wait"]["part_of"] == "bubble_between_steps"
