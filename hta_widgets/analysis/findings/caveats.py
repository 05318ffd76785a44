"""What a change may cost elsewhere, what it needs, and how sure its saving is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.finding import Finding

__all__ = ["CAVEATS", "Caveat", "caveat_of", "confidence_of"]

Confidence = Literal["high", "medium", "low", ""]

_HIGH: Final = 0.1
_MEDIUM: Final = 0.5


class Caveat(NamedTuple):
    """What can go wrong with the change that a finding suggests, and what has to be there for it."""

    risk: str = ""
    needs: str = ""


_GRAPHS = Caveat(
    "Captured work cannot read values back, allocate with the driver or change its shapes.",
    "Shapes and addresses that stay the same from step to step.",
)
_COMPILED = Caveat(
    "Compiling takes time at first and again for every new shape; results may differ in the last bits.",
    "torch.compile, or a fused kernel for these operators.",
)
_PINNED = Caveat(
    "Pinned memory is taken from what the host can page out.",
    "pin_memory=True and copies with non_blocking=True, read after they are done.",
)
_SHAPES = Caveat(
    "Larger sizes change the model, its memory and its results, unless the added part is masked.",
    "Sizes that may be chosen or padded.",
)
_BALANCED = Caveat(
    "Moving work between ranks moves memory, too.", "Data or layers that can be divided another way."
)
_WORKERS = Caveat(
    "More workers take memory and cores of the host, and each draws random numbers of its own.",
    "Free cores on the host.",
)
_LESS_HOST = Caveat("", "Access to the code that the host runs there.")

CAVEATS: dict[str, Caveat] = {
    "data_stall": _WORKERS,
    "host_loading": _WORKERS,
    "host_straggler": _BALANCED,
    "host_optimizer": Caveat("Sums are rounded in another order.", "An optimizer with fused=True for CPUs."),
    "sync_calls": Caveat(
        "Values that are read back later are older: logs and stopping rules lag behind.",
        "Values that the next step does not depend on.",
    ),
    "idle_host": _LESS_HOST,
    "host_stall": Caveat(
        "Without garbage collection in the loop, cycles stay in memory until it runs.",
        "Pauses that the program decides about.",
    ),
    "unmarked_host": _LESS_HOST,
    "python_heavy": _COMPILED,
    "launch_bound": _GRAPHS,
    "tiny_kernels": _GRAPHS,
    "optimizer_not_fused": Caveat(
        "Sums are rounded in another order.", "An optimizer with fused=True or foreach=True."
    ),
    "zero_grad_fills": Caveat("Code that reads .grad finds None.", "zero_grad(set_to_none=True)."),
    "bucket_copies": Caveat(
        "Gradients share the memory of the buckets: they must not be detached or replaced.",
        "DistributedDataParallel(gradient_as_bucket_view=True).",
    ),
    "buffers_broadcast": Caveat(
        "Statistics of batch normalisation differ between ranks until they are synchronised.",
        "DistributedDataParallel(broadcast_buffers=False).",
    ),
    "allocator_calls": Caveat("Memory stays reserved.", "Memory for the peak, or sizes that repeat."),
    "exposed_communication": Caveat(
        "Communication beside compute takes from its memory bandwidth and units.",
        "Compute that does not depend on the result.",
    ),
    "slowed_by_communication": Caveat(
        "Communication with fewer multiprocessors may take longer.", "Communication that is not exposed."
    ),
    "late_collective": Caveat(
        "What starts earlier holds its memory for longer.", "Data that is ready before the launch."
    ),
    "fsdp_prefetch": Caveat(
        "Parameters of one more unit are whole at a time.", "Free device memory, and units in a fixed order."
    ),
    "tiny_collectives": Caveat(
        "The first message waits for the last; joining them copies.", "Messages that are there together."
    ),
    "straggler": _BALANCED,
    "imbalance": _BALANCED,
    "mutual_waiting": _BALANCED,
    "pipeline_bubble": Caveat(
        "More microbatches keep more activations, or make kernels smaller.",
        "A batch that can be divided, or layers that can be divided another way.",
    ),
    "slow_kernels": Caveat("", "Access to the clocks and power limits of the devices."),
    "memory_copies": Caveat(
        "Pinned memory is taken from what the host can page out.",
        "Compute beside which the copies can run: pin_memory=True and non_blocking=True.",
    ),
    "pageable_copies": _PINNED,
    "slow_copies": Caveat("", "Access to the machine: its link, and what else uses it."),
    "tensor_copies": Caveat("", "Tensors that can be made in the type and place in which they are used."),
    "layout_transposes": Caveat(
        "Operators without a kernel for that layout copy back and forth.", "Tensors in channels_last."
    ),
    "fp32_units": Caveat(
        "TF32 keeps 10 bits of the mantissa, BF16 7: losses and metrics have to be compared.",
        "Units for matrices: Volta or later, CDNA.",
    ),
    "tf32_units": Caveat(
        "BF16 keeps 7 bits of the mantissa: losses and metrics have to be compared.",
        "torch.autocast, and a device of 2020 or later.",
    ),
    "attention_not_fused": Caveat(
        "Results differ in the last bits, and the scores are not there to be read.",
        "scaled_dot_product_attention with a mask, type and size of head that a fused kernel takes.",
    ),
    "unaligned_shapes": _SHAPES,
    "wave_quantization": _SHAPES,
    "tiny_products": Caveat(
        "Batched products need their operands side by side in memory.",
        "Products that do not depend on each other.",
    ),
    "low_occupancy": Caveat(
        "Fewer registers per thread may spill to memory.", "Access to the kernel and how it is launched."
    ),
    "pointwise_chains": _COMPILED,
    "recomputation": Caveat(
        "Activations that are kept take memory until the backward pass.", "Free device memory."
    ),
}


def caveat_of(topic: str) -> Caveat:
    """By the topic of a finding; empty for what suggests no change of the program."""
    return CAVEATS.get(topic, Caveat())


def confidence_of(finding: Finding, model_error_pct: float = 0.0) -> Confidence:
    """How well a saving is known.

    By how wide the range of the replay and the error of its model are together: up to a tenth of the saving
    ("high"), up to a half ("medium"), or more ("low"). Of what saves nothing now, they are compared with what
    it costs. Of a bound only the upper end is known: "low".

    Args:
        finding: with its saving.
        model_error_pct: of the replay, in % of the recording (`replay_quality`).
    """
    low, saves, high = finding.saving_low_ns, finding.saving_ns, finding.saving_high_ns
    if not finding.method or low is None or saves is None or high is None:
        return ""
    if finding.method != "replay" or not finding.cost_ns:
        return "low"
    whole_ns = 100 * finding.cost_ns / finding.share_pct
    unsure_ns = high - low + model_error_pct / 100 * whole_ns
    told_ns = saves if finding.section == "saves" else finding.cost_ns
    if unsure_ns <= _HIGH * told_ns:
        return "high"
    return "medium" if unsure_ns <= _MEDIUM * told_ns else "low"
