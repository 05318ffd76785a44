"""The names of findings in labels and headlines, and the class of time that each is lost as."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

__all__ = ["NOUNS", "Class", "Noun"]

Class = Literal["compute", "communication", "memory", "idle", "host"]


class Noun(NamedTuple):
    """How a finding is named.

    Attributes:
        label: over its part of the bar, three words at most.
        cause: in a headline, behind a colon or "and".
        lost_as: the class of the time that it costs.
    """

    label: str
    cause: str
    lost_as: Class


NOUNS: Final[dict[str, Noun]] = {
    "data_stall": Noun("Data loader", "the data loader", "idle"),
    "sync_calls": Noun("Synchronising calls", "synchronising calls", "idle"),
    "idle_host": Noun("Late launches", "kernels launched too late", "idle"),
    "launch_bound": Noun("Launch latency", "launch latency", "idle"),
    "tiny_kernels": Noun("Gaps between kernels", "gaps between kernels", "idle"),
    "device_wait": Noun("Blocked launches", "launched work that is blocked", "idle"),
    "host_stall": Noun("CPU pauses", "pauses of the CPU", "idle"),
    "unmarked_host": Noun("Unnamed CPU work", "CPU work that nothing names", "idle"),
    "optimizer_not_fused": Noun("Optimizer", "an optimizer that is not fused", "idle"),
    "zero_grad_fills": Noun("zero_grad", "zeroing gradients", "idle"),
    "bucket_copies": Noun("DDP bucket copies", "copies of DDP's buckets", "memory"),
    "allocator_calls": Noun("Allocating memory", "memory allocated with the driver", "idle"),
    "python_heavy": Noun("Slow Python module", "slow Python in one module", "idle"),
    "devices_in_turn": Noun("GPUs in turn", "GPUs that work in turn", "idle"),
    "queue_full": Noun("Full launch queue", "a full launch queue", "idle"),
    "host_operators": Noun("CPU operators", "operators on the CPU", "host"),
    "host_loading": Noun("Data loader", "the data loader", "host"),
    "host_straggler": Noun("Late rank", "a late rank", "host"),
    "host_collectives": Noun("CPU collectives", "collectives of the CPUs", "host"),
    "host_outside": Noun("Outside of operators", "time outside of operators", "host"),
    "host_optimizer": Noun("Optimizer", "parameters updated one by one", "host"),
    "layout_transposes": Noun("Layout changes", "changes of tensor layout", "compute"),
    "tensor_copies": Noun("Tensor copies", "copies and casts of tensors", "compute"),
    "straggler": Noun("Late rank", "a late rank", "communication"),
    "pipeline_bubble": Noun("Pipeline bubble", "the pipeline bubble", "communication"),
    "exposed_communication": Noun("Exposed communication", "communication without compute", "communication"),
    "late_collective": Noun("Late collectives", "collectives that start late", "communication"),
    "fsdp_prefetch": Noun("Late all-gathers", "FSDP's late all-gathers", "communication"),
    "tiny_collectives": Noun("Small collectives", "many small collectives", "communication"),
    "buffers_broadcast": Noun("Buffer broadcasts", "broadcasts of DDP's buffers", "communication"),
    "slowed_by_communication": Noun("Slowed compute", "communication that slows compute", "compute"),
    "memory_copies": Noun("Exposed copies", "copies without compute", "memory"),
    "slow_kernels": Noun("Slow kernels", "slow kernels of one rank", "compute"),
    "pageable_copies": Noun("Pageable copies", "copies of pageable memory", "memory"),
    "slow_copies": Noun("Slow copies", "slow copies", "memory"),
    "imbalance": Noun("More work", "a rank with more work", "compute"),
    "mutual_waiting": Noun("Ranks in turn", "ranks that wait in turn", "communication"),
    "fp32_units": Noun("fp32 matmuls", "matmuls in full fp32", "compute"),
    "tf32_units": Noun("TF32 matmuls", "matmuls in TF32", "compute"),
    "attention_not_fused": Noun("Unfused attention", "unfused attention", "compute"),
    "unaligned_shapes": Noun("Unaligned matmuls", "matmuls of unaligned sizes", "compute"),
    "wave_quantization": Noun("Partial waves", "waves that fill the GPU in part", "compute"),
    "low_occupancy": Noun("Low occupancy", "kernels that fill little of the GPU", "compute"),
    "tiny_products": Noun("Small matmuls", "matmuls too small for the GPU", "compute"),
    "pointwise_chains": Noun("Unfused pointwise kernels", "pointwise kernels that are not fused", "compute"),
    "recomputation": Noun("Recomputation", "parts of the forward pass run again", "compute"),
    "slow_steps": Noun("Slow steps", "unusually long steps", "idle"),
    "clock_drift": Noun("Slowing down", "steps that get slower", "compute"),
    "unrecorded_idle": Noun("Unrecorded cause", "idle time without a recorded cause", "idle"),
    "no_work_due": Noun("No work", "time without any work", "idle"),
    "start_up": Noun("Start-up", "start-up", "idle"),
}
"""Of the topic of a rule; a rule without one goes by its title."""
