"""Steps, periods, bubbles and rates of servers that are simulated, and of recorded ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, Trace, examples
from hta_widgets.analysis import overview, roles, serving_phases, serving_steps
from hta_widgets.analysis.serving import phases, steps
from hta_widgets.analysis.serving.traffic import _Call, _token_bytes
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration
from tests.analysis.kineto_file import job
from tests.analysis.serving.servers import ACCEPTED, DETOKENIZER, SCHEDULER, Batch, Server, speculating
from tests.support import shared_input, shared_trace
from tests.verdicts.planted.host_program import MS

pytestmark = pytest.mark.slow

DECODE = Batch(decodes=32)


def continuous(engine: str = "sglang") -> tuple[Server, list[Batch]]:
    """Prompts come in while others decode: prefill, decode, pieces of a prompt beside decoding."""
    batches = [Batch(prompt_tokens=4096, prompts=2)]
    batches += [Batch(decodes=2, kv=4100 + 2 * step) for step in range(2)]
    batches += [Batch(prompt_tokens=2048, prompts=1, decodes=2, kv=4104 + 2 * step) for step in range(3)]
    batches += [Batch(decodes=32, kv=50_000 + 32 * step) for step in range(20)]
    batches += [Batch(decodes=8, kv=12_000)] * 4
    server = Server(engine=engine)
    for batch in batches:
        server.serve(batch)
    return server, batches


@pytest.mark.parametrize("engine", ["sglang", "vllm", "tensorrt_llm", "atom"])
def test_a_server_with_continuous_batching(tmp_path: Path, engine: str) -> None:
    server, batches = continuous(engine)
    frame = serving_steps(server.open(tmp_path))
    assert frame["phase"].tolist() == [batch.phase for batch in batches]
    assert frame["tokens"].tolist() == [batch.tokens for batch in batches]
    assert frame["requests"].tolist() == [batch.prompts + batch.decodes for batch in batches]
    # how many of the tokens are of prompts, ATOM does not say of steps that do both
    read = [None if engine == "atom" and batch.phase == "mixed" else batch.prompt_tokens for batch in batches]
    assert frame["prompt_tokens"].astype(object).where(frame["prompt_tokens"].notna(), None).tolist() == read
    decodes = frame["phase"] == "decode"
    padded = [batch.padded for batch in batches if batch.phase == "decode"]
    assert frame.loc[decodes, "padded"].dropna().tolist() == (padded if engine == "atom" else [])
    lengths = [batch.kv for batch in batches if batch.phase == "decode"]
    assert frame.loc[decodes, "kv_tokens"].dropna().tolist() == ([] if engine == "tensorrt_llm" else lengths)
    assert frame.loc[decodes, "emitted"].tolist() == [batch.decodes for batch in batches if not batch.prompts]
    assert frame["period_ns"].iloc[:-1].tolist() == pytest.approx(server.periods, rel=0.01)
    assert frame["bubble_ns"].iloc[:-1].tolist() == pytest.approx(server.bubbles, rel=0.01)
    assert (
        (frame["device_ns"] + frame["other_ns"] + frame["bubble_ns"])
        .iloc[:-1]
        .equals(frame["period_ns"].iloc[:-1])
    )
    by_phase = frame[["decoding_ns", "prefilling_ns", "mixing_ns", "doing_ns"]]
    assert by_phase.sum(axis=1).equals(frame["device_ns"])
    assert (by_phase.gt(0).sum(axis=1) == 1).all()
    assert frame["bubble_ns"].isna().tolist() == [False] * (len(batches) - 1) + [True]
    assert set(frame["host_frame"].iloc[:-1]) == {"scheduler.py(88): schedule"}
    decode = frame[frame["phase"] == "decode"]
    assert decode["state"].tolist() == ["ramp"] * 2 + ["steady"] * 20 + ["drain"] * 4
    assert frame.loc[frame["phase"] != "decode", "state"].eq("steady").all()


@pytest.mark.parametrize("engine", ["sglang", "vllm", "tensorrt_llm", "atom"])
def test_the_phases_of_a_server_are_never_mixed(tmp_path: Path, engine: str) -> None:
    server, batches = continuous(engine)
    frame = serving_phases(server.open(tmp_path)).set_index("phase")
    periods = np.array(server.periods)
    steady = slice(6, 26)
    decode = frame.loc["decode"]
    assert decode["steps"] == 20
    assert decode["left_out"] == 6
    assert decode["tpot_ns"] == pytest.approx(np.median(periods[steady]), rel=0.01)
    assert decode["tpot_p95_ns"] == pytest.approx(np.quantile(periods[steady], 0.95), rel=0.01)
    assert decode["tokens_per_s"] == pytest.approx(32 * 20 / periods[steady].sum() * 1e9, rel=0.01)
    assert decode["bubble_pct"] == pytest.approx(
        100 * sum(server.bubbles[steady]) / periods[steady].sum(), rel=0.01
    )
    mixed = frame.loc["mixed"]
    assert mixed["tpot_ns"] == pytest.approx(np.median(periods[3:6]), rel=0.01)
    assert mixed["tokens_per_s"] == pytest.approx(2050 * 3 / periods[3:6].sum() * 1e9, rel=0.01)
    assert np.isnan(frame.loc["prefill", "tokens_per_s"]) == (batches[0].tokens == 0)
    assert frame["tpot_ns"].isna()["prefill"]


def test_a_server_that_schedules_while_the_device_works(tmp_path: Path) -> None:
    server = Server(overlapped=True)
    for _ in range(10):
        server.serve(DECODE)
    frame = serving_steps(server.open(tmp_path))
    assert frame["period_ns"].iloc[:-1].tolist() == pytest.approx(server.periods, rel=0.01)
    assert (frame["bubble_ns"].iloc[:-1] < 20_000).all()


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_tokens_of_drafts_that_were_accepted(tmp_path: Path, engine: str) -> None:
    """Each request verifies 3 drafts; how many hold shows in the lengths of the next step."""
    server, kv, accepted = Server(engine=engine), 40_000, [40, 64, 16, 50, 33]
    for new in [*accepted, 0]:
        server.serve(Batch(decodes=16, drafts=3, kv=kv))
        kv += new
    frame = serving_steps(server.open(tmp_path))
    assert frame["tokens"].tolist() == [64] * 6
    assert frame["emitted"].iloc[:-1].tolist() == accepted
    assert frame["emitted"].isna().iloc[-1]
    row = serving_phases(server.open(tmp_path)).iloc[0]
    assert row["tokens_per_s"] == pytest.approx(sum(accepted) / sum(server.periods) * 1e9, rel=0.01)
    per_token = np.median([16 * period / new for period, new in zip(server.periods, accepted, strict=True)])
    assert row["tpot_ns"] == pytest.approx(per_token, rel=0.01)


@pytest.mark.parametrize("around", [False, True])
def test_a_server_whose_drafts_are_steps_of_their_own(tmp_path: Path, around: bool) -> None:
    server = speculating(around)
    trace = server.open(tmp_path)
    frame, phases = serving_steps(trace), serving_phases(trace).set_index("phase")
    verified = frame[frame["phase"] == "verify"]
    assert verified["tokens"].tolist() == [64] * 6
    assert verified["emitted"].iloc[:-1].tolist() == list(ACCEPTED)
    starts = np.array(server.starts)[0 if around else 2 :: 4]
    turns = np.diff(starts)
    assert verified["turn_ns"].iloc[:-1].tolist() == pytest.approx(turns.tolist(), rel=0.01)
    row = phases.loc["verify"]
    assert row["tokens_per_s"] == pytest.approx(sum(ACCEPTED) / turns.sum() * 1e9, rel=0.01)
    per_token = [16 * turn / new for turn, new in zip(turns, ACCEPTED, strict=True)]
    assert row["tpot_ns"] == pytest.approx(np.median(per_token), rel=0.01)
    if not around:
        words = ["draft", "draft", "verify", "draft"]
        assert frame["phase"].tolist() == words * 6
        assert phases.loc["draft", ["tpot_ns"]].isna().all()
        assert frame.loc[frame["phase"] == "draft", "emitted"].isna().all()


def test_decoding_that_no_step_verifies_is_no_drafting(tmp_path: Path) -> None:
    server = speculating(around=False)
    for _ in range(3):
        server.serve(DECODE)
    assert serving_steps(server.open(tmp_path))["phase"].tolist()[-3:] == ["decode"] * 3


def test_where_accepted_drafts_are_not_known_there_is_only_a_bound(tmp_path: Path) -> None:
    server = Server()
    for _ in range(6):
        server.serve(Batch(decodes=16, drafts=3, kv=40_000))  # lengths that do not grow
    row = serving_phases(server.open(tmp_path)).iloc[0]
    assert np.isnan(row["tokens_per_s"])
    assert row[["tpot_ns"]].isna().all()
    assert row["tpot_least_ns"] == pytest.approx(np.median(server.periods) / 4, rel=0.01)


def test_two_ranks_of_one_server_have_the_same_steps(tmp_path: Path) -> None:
    servers = [Server(), Server(read_ns=2 * MS)]
    for server in servers:
        for _ in range(8):
            server.serve(DECODE)
    frame = serving_phases(job(tmp_path, *(server.events for server in servers)))
    assert frame["rank"].tolist() == [0, 1]
    assert frame["tpot_ns"].tolist() == pytest.approx(
        [np.median(server.periods) for server in servers], rel=0.01
    )


def test_two_ranks_that_share_every_layer(tmp_path: Path) -> None:
    """Tensor parallel: the rank whose experts take less waits in the all-reduce for the other one."""
    reduce, experts = 200_000, (1_000_000, 1_600_000)
    servers = [
        Server(
            tail=(
                ("fused_moe_kernel", own),
                ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", max(experts) - own + reduce),
            )
        )
        for own in experts
    ]
    for server in servers:
        for _ in range(8):
            server.serve(DECODE)
    assert servers[0].periods == servers[1].periods
    trace = job(tmp_path, *(server.events for server in servers))
    frame = serving_phases(trace)
    for (_, row), server in zip(frame.iterrows(), servers, strict=True):
        assert row["tpot_ns"] == pytest.approx(np.median(server.periods), rel=0.01)
        assert row["bubble_ns"] == pytest.approx(np.median(server.bubbles), rel=0.01)
        assert row["tokens_per_s"] == pytest.approx(32 * 7 / sum(server.periods) * 1e9, rel=0.01)
    by_role = roles(trace).set_index(["rank", "role"])["time_ns"]
    for rank, own in enumerate(experts):
        assert by_role[rank, "experts"] == 8 * own
        assert by_role[rank, "communication"] == 8 * (max(experts) - own + reduce)


def test_pieces_of_prompts_beside_decoding(tmp_path: Path) -> None:
    """Chunked prefill: 12 pieces of one prompt, each in a step in which 24 requests decode."""
    server, read = Server(), 0
    for step in range(30):
        piece = 2048 if 8 <= step < 20 else 0
        read += piece
        server.serve(Batch(prompt_tokens=piece, prompts=int(piece > 0), decodes=24, kv=24_000 + 24 * step))
    trace = server.open(tmp_path)
    frame, by_phase = serving_steps(trace), serving_phases(trace).set_index("phase")
    assert frame["phase"].tolist() == ["decode"] * 8 + ["mixed"] * 12 + ["decode"] * 10
    assert frame["prompt_tokens"].sum() == read
    mixed, periods = slice(8, 20), np.array(server.periods)
    assert by_phase.loc["mixed", "tpot_ns"] == pytest.approx(np.median(periods[mixed]), rel=0.01)
    assert by_phase.loc["mixed", "tokens_per_s"] == pytest.approx(
        12 * 2072 / periods[mixed].sum() * 1e9, rel=0.01
    )
    alone = np.r_[periods[:8], periods[20:]]
    assert by_phase.loc["decode", "tpot_ns"] == pytest.approx(np.median(alone), rel=0.01)
    assert by_phase.loc["decode", "tpot_p95_ns"] == pytest.approx(np.quantile(alone, 0.95), rel=0.01)


def test_work_between_steps_is_not_waiting(tmp_path: Path) -> None:
    server = Server()
    for _ in range(6):
        server.serve(DECODE)
        server.program.launch(500_000, "sample")
        server.program.synchronise()
    frame = serving_steps(server.open(tmp_path)).iloc[:-1]
    assert frame["other_ns"].tolist() == [500_000] * 5
    assert (frame["bubble_ns"] < np.array(server.bubbles)).all()


def test_what_the_host_does_is_named_or_said_to_be_unknown(tmp_path: Path) -> None:
    server = Server(schedule_ns=0, read_ns=0)
    for _ in range(4):
        server.serve(DECODE)
        server.program.silence(5 * MS)
    frame = serving_steps(server.open(tmp_path))
    assert frame["host_frame"].iloc[0].startswith("nothing recorded after detokenizer.py(31): update")
    server = Server(schedule_ns=0, read_ns=5 * MS)
    for _ in range(4):
        server.serve(DECODE)
    frame = serving_steps(server.open(tmp_path))
    assert frame["host_frame"].iloc[0] == "detokenizer.py(31): update"
    assert DETOKENIZER.endswith("detokenizer.py(31): update")
    assert SCHEDULER.endswith("schedule")


def test_one_step_does_not_say_when_the_next_one_begins(tmp_path: Path) -> None:
    server = Server()
    server.serve(DECODE)
    trace = server.open(tmp_path)
    frame, row = serving_steps(trace), serving_phases(trace).iloc[0]
    assert frame["period_ns"].isna().all()
    assert frame["recorded_ns"].tolist() == [server.ends[0] - server.starts[0]], "a bar all the same"
    assert (frame["until_ns"] - frame["start_ns"]).equals(frame["recorded_ns"])
    assert "how soon the next one follows is not recorded" in steps.sentence(frame)
    assert not row["follows"]
    assert row["tpot_ns"] == server.ends[0] - server.starts[0]
    assert phases.sentence(serving_phases(trace)).count(", if the next one follows at once.") == 1


def test_steps_of_which_none_is_steady_are_told_all_the_same() -> None:
    frame = serving_steps(examples.load("inference_cuda_graphs"))
    decoding = frame["phase"].eq("decode") & frame["period_ns"].notna()
    said = f"A decode step takes {duration(frame.loc[decoding, 'period_ns'].median())} at the median."
    assert steps.sentence(frame.assign(state="ramp")).startswith(said)


def test_a_window_chooses_the_steps_that_it_touches(tmp_path: Path) -> None:
    server, _ = continuous()
    trace = server.open(tmp_path)
    frame = serving_steps(trace, Scope(window_ns=(server.starts[4], server.ends[6])))
    assert frame["iteration"].tolist() == [4, 5, 6]
    assert serving_steps(trace, Scope(iterations=(3, 8)))["iteration"].tolist() == [3, 8]
    assert steps.sentence(serving_steps(trace, Scope(window_ns=(0, 1)))).startswith("No step")


@pytest.mark.parametrize("engine", ["execute_diffusion_2_1024x1024", "denoising_step_{}"])
def test_steps_of_a_diffusion_engine(tmp_path: Path, engine: str) -> None:
    """They have no tokens; how long a step takes, and the time between steps, is known all the same."""
    server = Server(engine="word")
    for step in range(10):
        server.serve(Batch(word=engine.format(step)))
    trace = server.open(tmp_path)
    frame, row = serving_steps(trace), serving_phases(trace).iloc[0]
    assert set(frame["phase"]) == {"diffusion"}
    assert frame["period_ns"].iloc[:-1].tolist() == pytest.approx(server.periods, rel=0.01)
    assert frame["bubble_ns"].iloc[:-1].tolist() == pytest.approx(server.bubbles, rel=0.01)
    assert frame["tokens"].isna().all()
    assert row["period_ns"] == pytest.approx(np.median(server.periods), rel=0.01)
    assert np.isnan(row["tokens_per_s"])
    assert pd.isna(row["tpot_ns"])
    assert " tokens" not in phases.sentence(serving_phases(trace))


HOSTILE = (
    "step[DECODE bs=99999999999999999999]", "step[DECODE bs=1e9 g_sq=-4]", "decode[bs=4/2 tok=1 sk=]",
    "execute_context_5(1)_generation_900(0)", "step[ bs=]", "step[\u202eEDOCED bs=4]",
    "step[<img src=x onerror=alert(1)> bs=4]", "[Executor] _forward_step 1: x ctx reqs, y gen reqs",
)  # fmt: skip


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_that_say_nothing_true_leave_times_known_and_numbers_unknown(
    tmp_path: Path, label: str
) -> None:
    server = Server(engine="word")
    for _ in range(6):
        server.serve(Batch(word="step[DECODE bs=4]"))
        server.serve(Batch(word=label))
    trace = server.open(tmp_path)
    frame = serving_steps(trace)
    others = frame[frame["requests"].isna() | frame["tokens"].isna()]
    assert len(frame) - len(others) == 6
    assert others["tokens"].isna().all()
    assert others["tokens_per_s"].isna().all()
    own = frame[frame["tokens"].notna()]
    assert own["tokens"].tolist() == [4] * 6
    assert own["start_ns"].diff().iloc[1:].tolist() == np.diff(server.starts[::2]).tolist()
    assert own["device_ns"].tolist() == [
        end - start for start, end in zip(server.starts[::2], server.ends[::2], strict=True)
    ]
    assert serving_phases(trace).set_index("phase").loc["decode", "steps"] >= 6


def test_labels_that_say_nothing_true_leave_a_verdict(tmp_path: Path) -> None:
    server = Server(engine="word")
    for label in HOSTILE:
        server.serve(Batch(word="step[DECODE bs=4]"))
        server.serve(Batch(word=label))
    assert overview(server.open(tmp_path))["severity"].eq("verdict").any()


@pytest.mark.parametrize("name", ["ddp_4ranks", "single_gpu_dataloader_stall"])
@pytest.mark.parametrize("question", [serving_steps, serving_phases])
def test_a_training_job_has_no_steps_of_a_server(name: str, question) -> None:
    with pytest.raises(MissingDataError, match="steps of a server"):
        question(examples.load(name))


def test_a_recorded_server_that_waits_between_steps() -> None:
    trace = Trace.open(shared_input("cases/serving/decode_every_15ms.json.gz"))
    frame, row = serving_steps(trace), serving_phases(trace).iloc[0]
    assert row["period_ns"] == pytest.approx(15_000_000, rel=0.001)
    assert row["tpot_ns"] == pytest.approx(15_000_000, rel=0.001)
    assert row["device_ns"] == pytest.approx(10_743_000, rel=0.001)
    assert row["bubble_pct"] == pytest.approx(28.4, rel=0.01)
    assert row["tokens_per_s"] == pytest.approx(32 / 0.015, rel=0.001)
    assert frame["host_frame"].iloc[0] == "nothing recorded after gpu_model_runner.py(3380): execute_model"


@pytest.mark.parametrize(
    ("name", "host_us", "device_us", "idle_pct", "rate", "kv"),
    [
        ("tracelens/inference/vllm_decode_full", 2_409, 10_743, 0.24, 2_979, 55_086),
        ("tracelens/inference/sglang_decode", None, 10_367, 6.49, 3_087, 32_785),
    ],
)
def test_recorded_decode_steps(
    name: str, host_us: int | None, device_us: int, idle_pct: float, rate: int, kv: int
) -> None:
    trace = Trace.open(shared_trace(name))
    step, row = serving_steps(trace).iloc[0], serving_phases(trace).iloc[0]
    assert host_us is None or step["host_ns"] == pytest.approx(1000 * host_us, rel=0.01)
    assert step["device_ns"] == pytest.approx(1000 * device_us, rel=0.01)
    assert 100 * (1 - step["busy_ns"] / step["device_ns"]) == pytest.approx(idle_pct, rel=0.02)
    assert row["tokens_per_s"] == pytest.approx(rate, rel=0.01)
    assert (step["requests"], step["tokens"], step["kv_tokens"]) == (32, 32, kv)


def with_capture(name: str) -> Trace:
    return Trace.open(
        shared_trace(f"tracelens/inference/{name}"), capture=shared_input(f"recordings/captures/{name}")
    )


def test_what_a_recorded_decode_step_reads_and_computes() -> None:
    row = serving_phases(with_capture("sglang_decode")).iloc[0]
    assert row["weight_bytes"] == pytest.approx(15.136e9, rel=0.001)
    assert row["kv_bytes"] == pytest.approx(4.834e9, rel=0.001)
    assert row["mbu_pct"] == pytest.approx(36.3, rel=0.01)
    assert row["mfu_pct"] == pytest.approx(3.6, rel=0.01)
    assert row["covered_pct"] > 80
    assert not row["why"]


def test_layers_with_a_window_are_bounded_until_it_is_given() -> None:
    trace = with_capture("vllm_decode_full")
    row = serving_phases(trace).iloc[0]
    assert row["kv_bytes"] == pytest.approx(2.71e9, rel=0.01)
    assert row["kv_least_bytes"] == pytest.approx(1.354e9, rel=0.01)
    assert serving_phases(trace, sliding_window="128").iloc[0]["kv_bytes"] == pytest.approx(
        1.454e9, rel=0.001
    )
    with pytest.raises(ValueError, match="sliding_window"):
        serving_phases(trace, sliding_window="none")


def test_experts_are_bounded_by_what_tokens_may_choose() -> None:
    """32 tokens choose 4 of 32 experts, of 1536 x 5888 and 1472 x 3072 bytes each, in 24 layers."""
    row = serving_phases(with_capture("vllm_decode_full"), sliding_window=128).iloc[0]
    an_expert = 24 * (1536 * 5888 + 1472 * 3072)
    assert row["weight_bytes"] - row["weight_least_bytes"] == 28 * an_expert
    products = 24 * 2 * (2880 * 5120 + 4096 * 2880 + 2880 * 32) + 1_158_266_880
    assert row["weight_least_bytes"] == products + 4 * an_expert
    assert row["covered_pct"] > 90
    least, most = (row[name] + row["kv_bytes"] for name in ("weight_least_bytes", "weight_bytes"))
    assert row["mbu_pct"] == pytest.approx(100 * most / row["period_ns"] / 5300, rel=0.001)
    assert row["mbu_least_pct"] == pytest.approx(
        100 * (row["weight_least_bytes"] + row["kv_least_bytes"]) / row["period_ns"] / 5300, rel=0.001
    )
    assert least < most
    assert np.isnan(row["mfu_pct"]), "how many numbers a packed byte holds is not recorded"
    assert " to 25.1 %." in phases.sentence(pd.DataFrame([row]))


BF16 = "c10::BFloat16"


@pytest.mark.parametrize(
    ("operator", "dims", "size"),
    [
        ("sglang::store_cache", [[32, 1024], [32, 1024]], 2 * 1024 * 2),
        ("_C_cache_ops::reshape_and_cache_flash", [[32, 8, 64], [32, 8, 64]], 2 * 8 * 64 * 2),
        ("_C_cache_ops::concat_and_cache_mla", [[32, 512], [32, 64]], (512 + 64) * 2),
        ("sgl_kernel::set_mla_kv_buffer", [[32, 1, 512], [32, 1, 64]], (512 + 64) * 2),
        ("_C_cache_ops::reshape_and_cache", [[32, 512], [32, 64]], 0),
        ("_C_cache_ops::concat_and_cache_mla", [[32, 512], []], 0),
    ],
)
def test_what_a_token_takes_in_the_cache_of_a_layer(operator: str, dims: list[list[int]], size: int) -> None:
    assert _token_bytes([_Call(1, operator, dims, [BF16, BF16])]) == size


def test_shares_of_the_peak_need_half_of_the_time() -> None:
    row = serving_phases(Trace.open(shared_trace("tracelens/inference/vllm_decode_full"))).iloc[0]
    assert np.isnan(row["mbu_pct"])
    assert row["covered_pct"] < 50
    assert "of the device's time move is not known" in row["why"]
    without = serving_phases(Trace.open(shared_trace("tracelens/inference/sglang_decode"))).iloc[0]
    assert np.isnan(without["mbu_pct"])
    assert "capture=" in without["why"]


@pytest.mark.parametrize(
    ("role", "gb_s"), [("gate_up", 3025), ("down", 2505), ("qkv", 2032), ("o_proj", 2037), ("lm_head", 3162)]
)
def test_how_fast_products_of_a_recorded_step_read(role: str, gb_s: float) -> None:
    frame = roles(with_capture("sglang_decode")).set_index("role")
    assert frame.loc[role, "gb_s"] == pytest.approx(gb_s, rel=0.001)


def test_how_fast_recorded_attention_reads() -> None:
    frame = roles(with_capture("sglang_decode")).set_index("role")
    assert frame.loc["attention", "gb_s"] == pytest.approx(2272, rel=0.001)
    windowed = roles(with_capture("vllm_decode_full")).set_index("role")
    assert windowed.loc["attention", "gb_s"] == pytest.approx(1.353793536e9 / 724_360, rel=0.001), "at least"
    eager = windowed.loc["lm_head"]
    assert eager["gb_s"] == pytest.approx(4234, rel=0.001)
    assert eager["tflops_s"] == pytest.approx(134, rel=0.01)
