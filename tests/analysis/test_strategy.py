"""Strategies, sizes, traffic and memory against the simulator's truth and real jobs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples.simulator import SimulatedJob, Simulation, simulate
from examples.simulator.bundled import JOBS
from hta_widgets import Trace, examples
from hta_widgets.analysis import strategies, strategy_memory, training_strategy
from hta_widgets.analysis.strategy.reading import NOT_RECOGNISED
from hta_widgets.analysis.strategy.table import runs_sentence, sentence
from hta_widgets.errors import MissingDataError
from tests.analysis.edited_jobs import only
from tests.analysis.kineto_file import event, write
from tests.support import shared_trace, tried

NAMES = {
    "ddp": "DDP",
    "fsdp_full_shard": "FSDP FULL_SHARD",
    "fsdp_shard_grad_op": "FSDP SHARD_GRAD_OP",
}
BUNDLED = [name for name, job in JOBS.items() if job.strategy in NAMES]
ALONE = [name for name in JOBS if name not in BUNDLED]
BF16 = 2


@cache
def simulated(name: str) -> Simulation:
    return simulate(JOBS[name])


def assert_is_the_truth(simulation: Simulation, found: pd.Series) -> None:
    """Every number of the row follows from what the simulation knows."""
    job, truth = simulation.job, simulation.truth
    assert found["strategy"] == NAMES[job.strategy]
    ranks = job.ranks
    units = truth.unit_parameters
    if job.strategy != "ddp":
        units = tuple(-(-unit // ranks) * ranks for unit in units)
    assert found["parameters"] == found["gradient_elements"] == sum(units)
    assert found["parameter_bytes"] == BF16 * sum(units)
    per_step = len(truth.collectives) // job.steps
    met = truth.collectives[-per_step:]
    # The simulation rounds each collective down to a byte, not their sum.
    assert 0 <= found["sent_bytes"] - sum(item.sent_bytes for item in met) < per_step
    assert found["expected_bytes"] == found["sent_bytes"]
    assert found["other_bytes"] == 0
    assert (found["group_size"], found["steps"], found["reducing_steps"]) == (ranks, job.steps, job.steps)
    assert found["ranks"] == ("0, 1" if ranks == 2 else f"0-{ranks - 1}")
    assert found["reduced_dtype"] == "BFloat16"
    if job.strategy == "ddp":
        assert found["units"] == per_step
        assert found["gathered_dtype"] == ""
    else:
        assert found["units"] == len(units)
        assert found["unit_elements"].startswith(f"{units[0]:,}")
        assert found["gathered_dtype"] == "BFloat16"


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_jobs_are_what_they_were_made_as(name: str) -> None:
    simulation = simulated(name)
    frame = training_strategy(examples.load(name))
    assert_is_the_truth(simulation, only(frame))
    if JOBS[name].ranks == 2:  # where nothing is rounded
        count = len(simulation.truth.collectives) // JOBS[name].steps
        sent = sum(item.sent_bytes for item in simulation.truth.collectives[:count])
        assert only(frame)["sent_bytes"] == sent
    assert sentence(frame).startswith(f"The job uses {NAMES[JOBS[name].strategy]} over ")
    assert sentence(frame).endswith("as expected.")


def test_one_process_on_two_devices_is_no_single_device(tmp_path: Path) -> None:
    events = [
        event("kernel", "gemm", 1_000 * (1 + number), 900, tid=7, pid=number % 2, device=number % 2, stream=7)
        for number in range(8)
    ]
    path = write(
        tmp_path / "0.json", [*events, event("user_annotation", "ProfilerStep#1", 0, 10_000)], ranks=1
    )
    row = only(training_strategy(Trace.open(path, cache=False)))
    assert row["strategy"] == "not recognised" and "one process uses 2 devices" in row["evidence"]


@pytest.mark.parametrize("name", ALONE)
def test_one_device_is_one_device(name: str) -> None:
    frame = training_strategy(examples.load(name))
    row = only(frame)
    steps = len(JOBS[name].plan) or JOBS[name].steps
    assert (row["strategy"], row["sent_bytes"], row["steps"]) == ("single device", 0, steps)
    assert pd.isna(row["parameters"])
    assert sentence(frame).startswith("The job runs on a single device: ")


@settings(
    max_examples=tried(12),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    strategy=st.sampled_from(sorted(NAMES)),
    ranks=st.integers(2, 5),
    layers=st.integers(1, 4),
    bucket_mb=st.integers(1, 60),
    steps=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_any_simulated_job_is_recognised(
    tmp_path_factory: pytest.TempPathFactory,
    strategy: str,
    ranks: int,
    layers: int,
    bucket_mb: int,
    steps: int,
    seed: int,
) -> None:
    job = SimulatedJob(
        "any",
        strategy,  # type: ignore[arg-type]
        ranks,
        steps=steps,
        layers=layers,
        bucket_mb=bucket_mb,
        seed=seed,
        batch=1,
    )
    simulation = simulate(job)
    folder = tmp_path_factory.mktemp("job")
    simulation.write(folder)
    assert_is_the_truth(simulation, only(training_strategy(Trace.open(folder, cache=False))))


# -- real jobs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ranks", "parameters", "item", "units"),
    [
        # torchvision's ResNet-50 and ResNet-18.
        ("hta/nccl_parser_config", 2, 25_557_032, 4, 5),
        ("tracelens/mi300/resnet_act_checkpoint.json.gz", 8, 11_689_512, 2, 2),
    ],
)
def test_real_ddp_jobs_have_their_models_parameters(
    name: str, ranks: int, parameters: int, item: int, units: int
) -> None:
    row = only(training_strategy(Trace.open(shared_trace(name))))
    assert (row["strategy"], row["group_size"]) == ("DDP", ranks)
    assert (row["parameters"], row["parameter_bytes"]) == (parameters, item * parameters)
    assert row["units"] == units
    assert row["sent_bytes"] == row["expected_bytes"] == 2 * (ranks - 1) * item * parameters // ranks
    assert row["other_bytes"] > 0  # batch normalisation's buffers


@pytest.mark.parametrize("name", ["hta/trace_filter", "hta/trace_diff/control", "hta/trace_diff/test"])
def test_real_jobs_without_sizes_abstain(name: str) -> None:
    with pytest.raises(MissingDataError, match="collective sizes"):
        training_strategy(Trace.open(shared_trace(name)))


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("hta/ns_resolution_trace", "the job has one rank"),  # DDP over a group of one
        ("hta/critical_path/alexnet", "no communication"),
        ("kineto/resnet50_num_workers_0", "no communication"),
        ("tracelens/inference/sglang_decode", "the job has one rank"),
        ("tracelens/mi210/gpu_only_trace", "no communication"),
    ],
)
def test_real_jobs_on_one_device(name: str, evidence: str) -> None:
    row = only(training_strategy(Trace.open(shared_trace(name))))
    assert row["strategy"] == "single device"
    assert evidence in row["evidence"]


@pytest.mark.parametrize(
    ("name", "field"),
    [("hta/cpu_only", "device events"), ("hta/trace_compare/base", "communication kernels")],
)
def test_real_jobs_of_many_without_kernels_abstain(name: str, field: str) -> None:
    with pytest.raises(MissingDataError) as missing:
        training_strategy(Trace.open(shared_trace(name)))
    assert missing.value.field == field


# -- several runs, and memory --------------------------------------------------------------------------


def test_runs_side_by_side() -> None:
    names = ["gpt2_baseline", "gpt2_ddp", "gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op"]
    frame = strategies({name: examples.load(name) for name in names})
    assert frame.columns[0] == "run"
    assert frame["run"].tolist() == names
    assert frame["strategy"].tolist() == ["single device", "DDP", "FSDP FULL_SHARD", "FSDP SHARD_GRAD_OP"]
    assert frame["parameters"].dropna().tolist() == [52_810_752] * 3
    assert runs_sentence(frame) == (
        "gpt2_baseline: single device; gpt2_ddp: DDP; gpt2_fsdp_full_shard: FSDP FULL_SHARD; "
        "gpt2_fsdp_shard_grad_op: FSDP SHARD_GRAD_OP."
    )
    with pytest.raises(ValueError, match="at least 1"):
        strategies({})


def test_a_run_that_cannot_tell_does_not_hide_the_others() -> None:
    runs = {"a": examples.load("gpt2_ddp"), "b": Trace.open(shared_trace("hta/trace_diff/test"))}
    frame = strategies(runs)
    assert frame["strategy"].tolist() == ["DDP", NOT_RECOGNISED]
    assert "no collective sizes" in frame["evidence"].iloc[1]


@pytest.mark.parametrize("name", BUNDLED)
def test_what_the_simulation_holds_is_what_the_formulas_say(name: str) -> None:
    """Weights and Adam's moments in their type: the allocator's total when the recording begins."""
    truth = simulated(name).truth
    frame = strategy_memory(examples.load(name))
    assert frame["rank"].nunique() == JOBS[name].ranks
    for _, rows in frame.groupby("rank"):
        computed = rows.set_index("component")["computed_bytes"]
        assert computed["parameters"] + computed["optimizer state"] == truth.held_bytes
        assert computed["gradients"] == computed["parameters"]
        measured = rows.set_index("component")["measured_bytes"]
        assert measured["allocated at the beginning"] == truth.held_bytes
        assert measured["allocated at the peak"] > truth.held_bytes
        # No number is both, and none is neither.
        assert (rows["computed_bytes"].isna() != rows["measured_bytes"].isna()).all()


def test_mixed_precision_takes_sixteen_bytes_per_parameter() -> None:
    """The example of the ZeRO paper: 2 + 2 + K, with K = 12 for Adam; an n-th of it where all is sharded."""
    for name, shares in (("gpt2_ddp", 1), ("gpt2_fsdp_full_shard", 2)):
        frame = strategy_memory(examples.load(name), master_weights=True, element_bytes=2)
        computed = frame[frame["rank"] == 0].set_index("component")["computed_bytes"]
        assert computed["model states"] == 16 * 52_810_752 // shares
        assert computed["master weights"] == 4 * 52_810_752 // shares
    frame = strategy_memory(examples.load("gpt2_ddp"), optimizer="sgd")
    assert frame.set_index("component")["computed_bytes"]["optimizer state"].eq(0).all()
    with pytest.raises(ValueError, match="adamw"):
        strategy_memory(examples.load("gpt2_ddp"), optimizer="lion")  # type: ignore[arg-type]


def test_gathered_parameters_are_whole_on_top() -> None:
    block, outside = 7_087_872, 38_635_008
    for name in ("gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op"):
        frame = strategy_memory(examples.load(name))
        computed = frame[frame["rank"] == 0].set_index("component")["computed_bytes"]
        assert computed["gathered parameters"] == BF16 * (outside + 2 * block)


def test_a_single_device_does_not_tell_the_size_of_its_model() -> None:
    with pytest.raises(MissingDataError, match="size of the model"):
        strategy_memory(examples.load("gpt2_baseline"))
