"""One training under four strategies: what each sends and keeps follows from the model."""

from collections import Counter
from dataclasses import replace
from itertools import chain

import pandas as pd
import pytest

from examples.simulator import SimulatedJob, Simulation, simulate
from examples.simulator.__main__ import DATA
from examples.simulator.bundled import JOBS
from examples.simulator.collective import Collective
from examples.simulator.device import NCCL_STREAM
from hta_widgets import analysis, examples
from hta_widgets.trace.scope import Scope

FOUR = ["gpt2_baseline", "gpt2_ddp", "gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op"]
TWO_RANKS = FOUR[1:]
FSDP = FOUR[2:]
BUDGET_BYTES = 350 * 1024
BF16 = 2
# 12 w^2 + 13 w for a block of width w; the embedding and the last layer norm outside of them.
BLOCK = 12 * 768**2 + 13 * 768
OUTSIDE = 50_304 * 768 + 2 * 768
GATHER, SCATTER, REDUCE = "_allgather_base", "_reduce_scatter_base", "allreduce"
OPERATIONS = {GATHER: "allgather", SCATTER: "reduce_scatter", REDUCE: "allreduce"}


def small(strategy: str, **changes: object) -> SimulatedJob:
    fields = {"name": "test", "strategy": strategy, "ranks": 2, "steps": 2, "layers": 2, **changes}
    return SimulatedJob(**fields)  # type: ignore[arg-type]


def step_of(simulation: Simulation, step: int) -> list[Collective]:
    """The collectives of the step at position `step`: every step has the same number."""
    met = simulation.truth.collectives
    count = len(met) // simulation.job.steps
    return list(met[step * count : (step + 1) * count])


def durations(simulation: Simulation, part: str) -> list[int]:
    return [
        work.end_ns - work.start_ns
        for rank in simulation.ranks
        for work in rank.device.work
        if part in work.name and work.collective is None
    ]


def counts(simulation: Simulation, category: str) -> Counter[str]:
    records = chain.from_iterable(rank.recorder.slices for rank in simulation.ranks)
    return Counter(record.name for record in records if record.category == category)


def test_the_four_jobs_come_last_and_in_order() -> None:
    assert examples.names(recorded=False) == [
        "ddp_4ranks",
        "single_gpu_dataloader_stall",
        "inference_cuda_graphs",
        "continuous_batching",
        *FOUR,
    ]


def test_the_four_jobs_are_small() -> None:
    sizes = [path.stat().st_size for name in FOUR for path in (DATA / name).iterdir()]
    assert len(sizes) == 7
    assert sum(sizes) <= BUDGET_BYTES


def test_the_four_jobs_differ_in_strategy_alone() -> None:
    jobs = [replace(JOBS[name], name="", strategy="ddp", ranks=2, seed=0) for name in FOUR]
    assert len(set(jobs)) == 1
    assert {simulate(JOBS[name]).truth.unit_parameters for name in FOUR} == {(OUTSIDE, BLOCK, BLOCK)}


def test_full_shard_gathers_blocks_twice() -> None:
    simulation = simulate(JOBS["gpt2_fsdp_full_shard"])
    blocks = JOBS["gpt2_fsdp_full_shard"].layers
    for step in range(simulation.job.steps):
        met = step_of(simulation, step)
        gathered = [item.nbytes for item in met if item.operation == GATHER]
        assert gathered == [BF16 * OUTSIDE, *[BF16 * BLOCK] * (2 * blocks)]
        assert [item.nbytes for item in met if item.operation == SCATTER] == [
            *[BF16 * BLOCK] * blocks,
            BF16 * OUTSIDE,
        ]


def test_shard_grad_op_gathers_everything_once() -> None:
    simulation = simulate(JOBS["gpt2_fsdp_shard_grad_op"])
    whole = BF16 * sum(simulation.truth.unit_parameters)
    for step in range(simulation.job.steps):
        total: Counter[str] = Counter()
        for item in step_of(simulation, step):
            total[item.operation] += item.nbytes
        assert total == {GATHER: whole, SCATTER: whole}


@pytest.mark.parametrize("bucket_mb", [1, 25, 1000])
def test_buckets_hold_every_gradient_once(bucket_mb: int) -> None:
    simulation = simulate(small("ddp", bucket_mb=bucket_mb))
    buckets = [item.nbytes for item in step_of(simulation, 1)]
    assert sum(buckets) == BF16 * sum(simulation.truth.unit_parameters)
    assert all(nbytes >= bucket_mb * 2**20 for nbytes in buckets[:-1])
    assert len(buckets) == {1: 9, 25: 2, 1000: 1}[bucket_mb]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_send_what_the_formulas_say(ranks: int) -> None:
    """Units are padded to equal shards; a ring sends (n-1)/n of the whole, an all-reduce twice that."""
    units = [OUTSIDE, BLOCK, BLOCK]
    padded = [-(-unit // ranks) * ranks for unit in units]
    expected = {
        "ddp": 2 * (ranks - 1) * BF16 * sum(units) / ranks,
        "fsdp_full_shard": (ranks - 1) * BF16 * (2 * sum(padded) + sum(padded[1:])) / ranks,
        "fsdp_shard_grad_op": (ranks - 1) * BF16 * 2 * sum(padded) / ranks,
    }
    for strategy, nbytes in expected.items():
        met = step_of(simulate(small(strategy, ranks=ranks)), 0)
        # Each collective rounds down to a whole byte.
        assert 0 <= nbytes - sum(item.sent_bytes for item in met) < len(met)


@pytest.mark.parametrize("name", TWO_RANKS)
def test_collectives_are_the_truth(name: str) -> None:
    truth = simulate(JOBS[name]).truth
    frame = analysis.collectives(examples.load(name))
    for rank in truth.ranks:
        found = frame[frame["rank"] == rank]
        assert list(found["collective"]) == [OPERATIONS[item.operation] for item in truth.collectives]
        assert list(found["bytes"]) == [item.nbytes for item in truth.collectives]
        assert list(found["seq"]) == [item.sequence for item in truth.collectives]
        assert list(found["dur_ns"]) == [
            item.end_ns[rank] - item.start_ns[rank] for item in truth.collectives
        ]
        gathers, scatters = found["collective"] == "allgather", found["collective"] == "reduce_scatter"
        assert (found["out_elements"][gathers] == 2 * found["in_elements"][gathers]).all()
        assert (found["in_elements"][scatters] == 2 * found["out_elements"][scatters]).all()
    assert (frame["match_ranks"] == 2).all()
    assert (frame["group_size"] == 2).all()
    assert set(frame["dtype"]) == {"BFloat16"}


@pytest.mark.parametrize("name", TWO_RANKS)
def test_overlap_is_the_truth(name: str) -> None:
    trace, truth = examples.load(name), simulate(JOBS[name]).truth
    for rank, expected in truth.ranks.items():
        for iteration, step in expected.steps.items():
            scope = Scope(ranks=(rank,), iterations=(iteration,))
            (found,) = analysis.comm_comp_overlap(trace, scope).to_dict("records")
            assert found["communication_ns"] == step.communication_ns
            assert found["exposed_ns"] == step.exposed_communication_ns
            assert 0 < found["overlapped_ns"] == step.communication_ns - step.exposed_communication_ns


@pytest.mark.parametrize("name", FSDP)
def test_blocks_compute_while_the_next_is_gathered(name: str) -> None:
    """Only the unit around the blocks has nothing to hide behind."""
    simulation = simulate(JOBS[name])
    for rank in simulation.ranks:
        compute = sorted(
            (work.start_ns, work.end_ns)
            for work in rank.device.work
            if work.category == "kernel" and work.stream != NCCL_STREAM
        )
        for item in step_of(simulation, 1):
            if item.operation == GATHER and item.nbytes == BF16 * BLOCK:
                start, end = item.start_ns[rank.index], item.end_ns[rank.index]
                first_block = item is step_of(simulation, 1)[1]
                assert first_block or any(a < end and b > start for a, b in compute)


@pytest.mark.parametrize("strategy", ["fsdp_full_shard", "fsdp_shard_grad_op"])
def test_work_waits_for_the_parameters(strategy: str) -> None:
    """Compute never overtakes the all-gather whose unit it needs, nor the optimizer the last gradient."""
    simulation = simulate(small(strategy, straggler=1, slowdown_permille=1500))
    for rank in simulation.ranks:
        work = rank.device.work
        for step in range(simulation.job.steps):
            met = step_of(simulation, step)
            first_ends = [item.end_ns[rank.index] for item in met if item.operation == GATHER][:3]
            window = simulation.truth.ranks[rank.index].steps[10 + step]
            norms = [
                item.start_ns
                for item in work
                if "vectorized_layer_norm" in item.name
                and window.start_ns <= item.launch.start_ns < window.end_ns
            ]
            assert len(norms) == 5
            assert norms[0] > first_ends[1] and norms[2] > first_ends[2]
            updates = [item.start_ns for item in work if "FusedAdam" in item.name]
            per_step = len(updates) // simulation.job.steps
            assert updates[step * per_step] > met[-1].end_ns[rank.index]


@pytest.mark.parametrize("name", FOUR)
def test_memory_starts_with_the_shards_and_comes_back(name: str) -> None:
    simulation = simulate(JOBS[name])
    truth, ranks = simulation.truth, simulation.job.ranks if name in FSDP else 1
    # Weights and AdamW's two moments, in bfloat16.
    assert truth.held_bytes == 3 * BF16 * sum(truth.unit_parameters) // ranks
    trace = examples.load(name)
    for rank in trace.ranks:
        args = pd.DataFrame([event.args for event in simulation.ranks[rank].recorder.instants])
        assert args["Total Allocated"][0] - args["Bytes"][0] == truth.held_bytes
        # What the last step leaves is its gradients, whole or in shards, each rounded up to 512 bytes.
        gradients = args["Total Allocated"].iloc[-1] - truth.held_bytes
        tensors = 3 if name in FSDP else len(simulation.job.shape.weights())
        assert 0 <= gradients - BF16 * sum(truth.unit_parameters) // ranks < 512 * tensors


@pytest.mark.parametrize("name", FSDP)
def test_annotations_are_those_of_pytorch(name: str) -> None:
    job = JOBS[name]
    units, rank_steps = 1 + job.layers, job.steps * job.ranks
    found = counts(simulate(job), "user_annotation")
    prefix = "FullyShardedDataParallel."
    for hook in ("forward", "_pre_forward", "_post_forward", "_pre_backward_hook", "_post_backward_hook"):
        assert found[prefix + hook] == units * rank_steps
    for hook in ("_root_pre_forward", "_post_backward_final_callback"):
        assert found[prefix + hook] == rank_steps
    twice = job.layers if job.strategy == "fsdp_full_shard" else 0
    assert found["nccl:_all_gather_base"] == (units + twice) * rank_steps
    assert found["nccl:_reduce_scatter_base"] == units * rank_steps


def test_a_slow_kernel_alone_is_slow() -> None:
    usual, planted = simulate(small("ddp")), simulate(small("ddp", slow_kernel=("gemm", 2000)))
    assert durations(planted, "gemm") == [2 * ns for ns in durations(usual, "gemm")]
    assert durations(planted, "flash") == durations(usual, "flash")
    assert counts(planted, "cpu_op") == counts(usual, "cpu_op")


def test_an_extra_op_alone_is_added() -> None:
    usual, planted = simulate(small("ddp")), simulate(small("ddp", extra_op="aten::clone"))
    job = usual.job
    times = job.layers * job.steps * job.ranks
    added = counts(planted, "kernel") - counts(usual, "kernel")
    assert list(added.values()) == [times]
    assert "clone" in next(iter(added))
    operators = counts(planted, "cpu_op")
    operators.subtract(counts(usual, "cpu_op"))
    assert {name: count for name, count in operators.items() if count} == {
        "aten::clone": times,
        "aten::empty": times,
        "CloneBackward0": times,
        "autograd::engine::evaluate_function: CloneBackward0": times,
    }


@pytest.mark.parametrize("strategy", ["single", "ddp", "fsdp_full_shard"])
def test_seeds_change_times_and_nothing_else(strategy: str) -> None:
    ranks = 1 if strategy == "single" else 2
    runs = [simulate(small(strategy, ranks=ranks, seed=seed, drift_permille=6)) for seed in (1, 2)]
    for category in ("cpu_op", "kernel", "cuda_runtime", "user_annotation"):
        assert counts(runs[0], category) == counts(runs[1], category)
    first, second = (
        [step.window_ns for rank in run.truth.ranks.values() for step in rank.steps.values()] for run in runs
    )
    assert first != second
    assert sum(first) == pytest.approx(sum(second), rel=0.03)


def test_steps_drift_within_their_bound() -> None:
    job = small("single", ranks=1, steps=6)
    steady, drifting = simulate(job), simulate(replace(job, drift_permille=50))
    ratios = [b / a for a, b in zip(durations(steady, "gemm"), durations(drifting, "gemm"), strict=True)]
    assert min(ratios) < 0.99 and max(ratios) > 1.01
    assert all(0.949 < ratio < 1.051 for ratio in ratios)
