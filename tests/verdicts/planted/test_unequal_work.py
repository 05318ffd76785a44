"""A rank that computes longer as it has more requests, or fuller experts; and devices that are slow."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hta_widgets import Trace
from hta_widgets.analysis import overview, serving_steps
from tests.analysis.kineto_file import job
from tests.analysis.serving.servers import Batch
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS, US, Program

DISPATCH = (
    "void deep_ep::intranode::dispatch<8, 768, 8192>",
    "void deep_ep::intranode::combine<__nv_bfloat16>",
)
PPLX = ("void pplx::internode::dispatchKernel<128>", "void pplx::internode::combineKernel<float>")
GATHER = ("ncclDevKernel_AllGather_RING_LL", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL")
TO_ALL = ("ncclDevKernel_SendRecv", "ncclDevKernel_SendRecv")
PRODUCT = "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0, 7168, 2048>"
DUMMY = "vllm/v1/worker/gpu_worker.py(640): execute_dummy_batch"
LAYERS = 8


def rows_of(trace: Trace) -> dict[str, dict]:
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    return {row["topic"]: row for row in frame.to_dict("records")}


def served(program: Program, requests: int, engine: str) -> AbstractContextManager[None]:
    """A step of so many requests; without any one that no annotation of vLLM names."""
    if engine == "sglang" and not requests:
        return program.inside("user_annotation", "step[IDLE bs=0]")
    if requests:
        return program.inside("user_annotation", getattr(Batch(decodes=requests), engine))
    program._calls += 1
    return program.inside("python_function", DUMMY, **{"Python id": program._calls})


def ranks(
    folder: Path,
    *steps: tuple[tuple[int, int, int], ...],
    by: tuple[str, str] = DISPATCH,
    engine: str = "vllm",
    expert: str = PRODUCT,
    steps_of_profiler: bool = False,
) -> Trace:
    """Ranks in lockstep. Of each step and rank: requests, ns of a layer around attention, and of experts."""
    programs = [Program() for _ in steps[0]]
    for number in range(8):
        step = steps[number % len(steps)]
        slowest, fullest = max(each[1] for each in step), max(each[2] for each in step)
        for program, (requests, dense, experts) in zip(programs, step, strict=True):
            mark = program.step(number) if steps_of_profiler else served(program, requests, engine)
            with mark:
                for _ in range(LAYERS):
                    program.launch(dense // 2, "flash_fwd_kernel<>")
                    program.launch(dense - dense // 2, "nvjet_tst_64x8_64x16_4x1_v_bz_TNT")
                    program.launch(slowest - dense + 20 * US, by[0])
                    program.launch(experts, expert)
                    program.launch(fullest - experts + 20 * US, by[1])
                program.synchronise()
    return job(folder, *(program.events for program in programs))


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("always", [True, False])
def test_a_rank_without_requests_computes_dummy_batches(tmp_path: Path, engine: str, always: bool) -> None:
    busy, dummy = ((32, 100 * US, 100 * US), (32, 100 * US, 100 * US)), (0, 40 * US, 100 * US)
    steps = [(busy[0], dummy)] if always else [(busy[0], dummy), busy]
    trace = ranks(tmp_path, *steps, engine=engine)
    frame = serving_steps(trace)
    mine = frame[frame["rank"] == 1]
    assert len(mine) == 8
    assert (mine["phase"] == "idle").sum() == (8 if always else 4)
    assert mine.loc[mine["phase"] == "idle", "tokens"].eq(0).all()
    rows = rows_of(trace)
    row = rows["straggler" if always else "mutual_waiting"]
    assert "Rank 0 computes 32 tokens per step" in row["text"]
    assert "Rank 1 has no requests in" in row["text"]
    assert row["suggestion"].startswith("Spread requests evenly over the ranks")
    assert not always or row["title"] == "Waiting for a rank with more requests"
    assert ("--load-balance-method" in row["suggestion"]) is (engine == "sglang")
    assert not {"slow_kernels", "imbalance", "outside", "withheld"} & set(rows)


def test_dummy_batches_that_nothing_names_lie_outside_of_steps(tmp_path: Path) -> None:
    """Without Python stacks: what is advised is not about set-up."""
    own = (32, 100 * US, 100 * US)
    ranks(tmp_path, *((own, own) if at < 2 else (own, (0, *own[1:])) for at in range(8)))
    for path in tmp_path.iterdir():
        path.write_text(path.read_text().replace(DUMMY, "engine.py(3): run"))
    row = rows_of(Trace.open(tmp_path, cache=False))["outside"]
    assert row["suggestion"].startswith("A server names no step while it has no requests")


@pytest.mark.parametrize("others", [(), ((8, 50 * US, 100 * US),)])
def test_a_rank_that_never_names_a_step(tmp_path: Path, others) -> None:
    """Without Python stacks nothing says that all its batches are dummies."""
    busy, dummy = (32, 100 * US, 100 * US), (0, 40 * US, 100 * US)
    ranks(tmp_path, (busy, *others, dummy))
    for path in tmp_path.iterdir():
        path.write_text(path.read_text().replace(DUMMY, "engine.py(3): run"))
    row = rows_of(Trace.open(tmp_path, cache=False))["straggler"]
    assert f"Rank {1 + len(others)} names no step: likely dummy batches" in row["text"]
    assert ("the others 8 on average" in row["text"]) is bool(others)
    assert row["suggestion"].startswith("Spread requests evenly over the ranks")


def test_a_rank_of_another_program_has_no_dummy_batches(tmp_path: Path) -> None:
    """It exchanges no tokens of experts."""
    busy, other = (32, 100 * US, 100 * US), (0, 40 * US, 100 * US)
    names = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
    ranks(tmp_path, (busy, other), by=names)
    for path in tmp_path.iterdir():
        path.write_text(path.read_text().replace(DUMMY, "engine.py(3): run"))
    rows = rows_of(Trace.open(tmp_path, cache=False))
    assert not any("names no step" in row["text"] for row in rows.values())


def test_ranks_with_batches_of_other_sizes(tmp_path: Path) -> None:
    row = rows_of(ranks(tmp_path, ((64, 140 * US, 100 * US), (16, 60 * US, 100 * US))))["straggler"]
    assert "Rank 0 computes 64 tokens per step, the others 16 on average." in row["text"]
    assert "no requests" not in row["text"]


def test_a_slow_device_with_as_many_requests(tmp_path: Path) -> None:
    rows = rows_of(ranks(tmp_path, ((32, 140 * US, 140 * US), (32, 100 * US, 100 * US))))
    assert "tokens per step" not in rows["straggler"]["text"]
    assert "clocks" in rows["slow_kernels"]["suggestion"]
    assert "experts take longer" not in rows["slow_kernels"]["text"]


EVEN = (32, 100 * US, 60 * US)
FULL = (32, 100 * US, 120 * US)


@pytest.mark.parametrize("by", [DISPATCH, PPLX, GATHER, TO_ALL])
def test_experts_of_one_rank_are_fuller(tmp_path: Path, by: tuple[str, str]) -> None:
    """Their products are named like any others: they run between the exchanges of tokens."""
    rows = rows_of(ranks(tmp_path, (EVEN, FULL, EVEN), by=by))
    assert "Only kernels of experts take longer, 2 times as long" in rows["slow_kernels"]["text"]
    assert "clocks" not in rows["slow_kernels"]["suggestion"]
    assert rows["straggler"]["suggestion"].startswith("Its experts get more tokens")
    assert rows["straggler"]["title"] == "Waiting for a rank with fuller experts"
    assert "--enable-eplb" in rows["straggler"]["suggestion"]
    assert rows["uneven_experts"]["part_of"] == "straggler"
    assert rows["serving_work"]["text"].startswith("Of the device's work in decode steps: ")
    assert "experts" in rows["serving_work"]["text"]
    assert "Stages of a pipeline" not in rows.get("exposed_communication", {"suggestion": ""})["suggestion"]


def test_experts_of_a_training_job_by_the_names_of_products(tmp_path: Path) -> None:
    grouped = "cutlass::device_kernel<GemmUniversal<cutlass::gemm::GroupProblemShape<int>>>"
    trace = ranks(tmp_path, (EVEN, FULL, EVEN), by=TO_ALL, expert=grouped, steps_of_profiler=True)
    row = rows_of(trace)["slow_kernels"]
    assert "Only kernels of experts take longer, 2 times as long" in row["text"]


def test_the_fullest_experts_change_from_step_to_step(tmp_path: Path) -> None:
    trace = ranks(tmp_path, (EVEN, FULL, EVEN), (FULL, EVEN, EVEN), (EVEN, EVEN, FULL))
    row = rows_of(trace)["mutual_waiting"]
    assert row["suggestion"].startswith("Experts of some ranks get more tokens")


@pytest.mark.parametrize(
    "steps",
    [
        ((32, 100 * US, 60 * US), (32, 140 * US, 84 * US)),  # all of it takes 1.4 times as long
        ((32, 100 * US, 60 * US), (32, 200 * US, 60 * US)),  # attention alone does
    ],
)
def test_other_work_that_takes_longer_is_none_of_experts(tmp_path: Path, steps) -> None:
    rows = rows_of(ranks(tmp_path, steps))
    assert "experts take longer" not in rows["slow_kernels"]["text"]
    assert "experts" not in rows["straggler"]["suggestion"]


def test_stages_of_a_pipeline_send_around_attention(tmp_path: Path) -> None:
    """What lies between two exchanges there is all of a stage."""
    program = Program()
    for _ in range(10):
        with served(program, 32, "vllm"):
            program.launch(MS, "ncclDevKernel_SendRecv")
            for _ in range(LAYERS):
                program.launch(50 * US, "flash_fwd_kernel<>")
                program.launch(50 * US, PRODUCT)
            program.launch(MS, "ncclDevKernel_SendRecv")
            program.synchronise()
    assert "experts" not in rows_of(job(tmp_path, program.events))["serving_work"]["text"]
