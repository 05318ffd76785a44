"""The bundled example jobs, as data."""

from __future__ import annotations

from examples.simulator import SimulatedJob, Strategy


def _gpt2(name: str, strategy: Strategy, ranks: int, seed: int) -> SimulatedJob:
    """The same model, batch per rank and machine for every strategy."""
    return SimulatedJob(
        name, strategy, ranks, steps=3, layers=2, dataloader_stall_ns=200_000, python_frames=True,
        events_by_category=True, bus_gbps=40, drift_permille=6, seed=seed,
    )  # fmt: skip


JOBS: dict[str, SimulatedJob] = {
    job.name: job
    for job in (
        # Four ranks whose all-reduces partly hide behind backward. The others wait for rank 2.
        SimulatedJob(
            "ddp_4ranks",
            "ddp",
            ranks=4,
            steps=4,
            layers=6,
            straggler=2,
            slowdown_permille=1120,
            dataloader_stall_ns=1_200_000,
        ),
        # The device waits for the data loader most of the time. Python frames are recorded.
        SimulatedJob(
            "single_gpu_dataloader_stall",
            "single",
            steps=3,
            layers=4,
            dataloader_stall_ns=14_000_000,
            python_frames=True,
        ),
        # No ProfilerStep: serving steps, and decoding by replayed CUDA graphs.
        SimulatedJob("inference_cuda_graphs", "serving", steps=13, layers=8, batch=4, sequence=512),
        # A server with continuous batching: prompts alone, beside requests that decode, and decoding alone.
        SimulatedJob(
            "continuous_batching",
            "serving",
            layers=6,
            batch=1,
            sequence=768,
            python_frames=True,
            seed=105,
            plan=(
                (1, 0),
                (1, 0),
                (0, 8),
                (0, 8),
                (1, 8),
                (1, 8),
                *((0, 16),) * 10,
                (1, 16),
                (1, 0),
                *((0, 16),) * 6,
                (0, 4),
                (0, 4),
            ),
        ),
        # One training, set up four ways: what changes from one to the next?
        _gpt2("gpt2_baseline", "single", 1, seed=101),
        _gpt2("gpt2_ddp", "ddp", 2, seed=102),
        _gpt2("gpt2_fsdp_full_shard", "fsdp_full_shard", 2, seed=103),
        _gpt2("gpt2_fsdp_shard_grad_op", "fsdp_shard_grad_op", 2, seed=104),
    )
}
