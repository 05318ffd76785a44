"""A recording for each finding, in which it is found: a bundled example, or a small job made by the tests."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from docs.made import folder_for
from hta_widgets import Trace, examples
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.analysis.serving.servers import Batch, Server
from tests.claims import test_communication, test_planted_kernels
from tests.verdicts.planted import (
    late_ranks,
    test_bimodal_steps,
    test_contention,
    test_dense_gradients,
    test_fsdp,
    test_growing_steps,
    test_host_alone,
    test_host_work,
    test_items,
    test_known_calls,
    test_late_hosts,
    test_leading_cause,
    test_lost_device_events,
    test_modes,
    test_offload,
    test_one_rank,
    test_passes,
    test_pauses,
    test_pipelines,
    test_queue_full,
    test_serving,
    test_serving_host,
    test_serving_work,
    test_shared_device,
    test_turns,
)
from tests.verdicts.planted.devices import H100, opened
from tests.verdicts.planted.host_program import MS, US, Program

Build = Callable[[Path], Trace]

# Finding -> the bundled example that has it.
BUNDLED = {
    **dict.fromkeys(("straggler", "slow_kernels"), "ddp_4ranks"),
    "data_stall": "h100_gpt2_loader_stall",
    "idle_host": "h100_gpt2_small_batch",
    "tiny_kernels": "h100_decode_cuda_graphs",
    "start_up": "h100_decode",
    **dict.fromkeys(("serving_rate", "serving_work", "bubble_between_steps"), "continuous_batching"),
    "decode_behind_prefill": "continuous_batching",
    "memory_copies": "h100_resnet50_pageable",
    "pageable_copies": "h100_resnet50_pageable",
    "exposed_communication": "gpt2_ddp",
    "compute_bound": "h100_gpt2_compiled",
    "tensor_copies": "h100_gpt2",
    "unaligned_shapes": "h100_gpt2_unpadded",
    "fp32_units": "h100_gpt2_fp32",
    "tf32_units": "h100_gpt2_tf32",
    "layout_transposes": "h100_resnet50_channels_first",
    "low_occupancy": "h100_resnet50_channels_first",
}


def _one_rank(name: str) -> Build:
    return lambda folder: test_one_rank.CASES[name].program().open(folder)


def _ranks(name: str) -> Build:
    return lambda folder: late_ranks.CASES[name].play().open(folder)


def _leading(name: str) -> Build:
    return lambda folder: test_leading_cause.KINDS[name](random.Random(3), folder).trace


def _kernels(name: str) -> Build:
    return test_planted_kernels.PROGRAMS[name][1]


def _host(body: Callable[[Program, int], None]) -> Build:
    return lambda folder: test_host_alone.opened(folder, test_host_alone.steps(body))


def _lost(body: Callable[[Program], None], times: int = 20) -> Build:
    return lambda folder: test_lost_device_events.lost(body, times).open(folder)


def _serves(server: Server, batch: Batch) -> Server:
    for _ in range(12):
        server.serve(batch)
    return server


def _optimizes(program: Program, number: int) -> None:
    with program.inside("user_annotation", "Optimizer.step#Adam.step"):
        for _ in range(200):
            program.operator("aten::addcdiv_", 10 * US)


def _augments(program: Program, number: int) -> None:
    with program.inside("python_function", "/home/x/train.py(7): augment", **{"Python id": number}):
        program.silence(6 * MS)


def _without_launches(folder: Path) -> Trace:
    events = [event("user_annotation", f"ProfilerStep#{step}", step * MS, MS) for step in range(4)]
    for step in range(4):
        events.append(event("cpu_op", "aten::mm", step * MS + 5 * US, 20 * US))
        events.append(kernel("gemm", step * MS + 100 * US, 400 * US, correlation=step + 1))
    return job(folder, events)


def _ends_early(folder: Path) -> Trace:
    events = [
        event("user_annotation", "ProfilerStep#0", 0, MS),
        event("cpu_op", "aten::save", 990 * US, 9 * US),
    ]
    for at in range(2):
        events += [
            launch(US + at * US, at + 1),
            kernel("gemm", (20 + 200 * at) * US, 190 * US, correlation=at + 1),
        ]
    return job(folder, events)


# Finding -> what makes a job that has it.
MADE: dict[str, Build] = {
    "sync_calls": _one_rank("blocked"),
    "launch_bound": _one_rank("slow launches"),
    "device_wait": _one_rank("held back by an event"),
    "host_stall": lambda folder: test_pauses.steps(test_pauses.silent(30 * MS, (5,))).open(folder),
    "recompiling": lambda folder: test_late_hosts.compiling_in(4, 7).open(folder),
    "blocking_launches": lambda folder: test_late_hosts.blocking().open(folder),
    "without_core": lambda folder: test_contention.waiting(ns=3 * MS, kernel=20 * US).open(folder),
    "unused_parameters": lambda folder: test_known_calls.steps(
        test_known_calls.SEARCH, 9 * MS, 5 * MS
    ).open(folder),
    "checkpoints": lambda folder: test_known_calls.steps(
        test_known_calls.SAVE, 60 * MS, 5 * MS, every=4, copy_ns=20 * MS
    ).open(folder),
    "unmarked_host": lambda folder: test_pauses.steps(test_pauses.silent(1500 * US)).open(folder),
    "optimizer_on_host": lambda folder: test_offload.updating(test_offload.RANGE).open(folder),
    "kv_transfer": lambda folder: test_serving.transferring(
        "multi_layer_kv_transfer_kernel", "cache.py(3): save"
    ).open(folder),
    "absent_requests": lambda folder: test_serving_host.comes_and_goes(asleep=True).open(folder),
    "compiles_while_serving": lambda folder: test_serving_host.compiling((5, 8)).open(folder),
    "eager_steps": lambda folder: test_serving_host.launching(20 * US).open(folder),
    "fallback_convolutions": _one_rank("fallback convolutions"),
    "few_requests": lambda folder: test_serving_work.ending((64, 32, 7, 1)).open(folder),
    "adapters": lambda folder: test_serving_work.with_tail("_lora_shrink_kernel").open(folder),
    "sampling_work": lambda folder: test_serving_work.with_tail(test_serving_work.SAMPLER).open(folder),
    "unaccepted_drafts": lambda folder: test_serving_work.drafting(accepted=20).open(folder),
    "passes_in_turn": lambda folder: test_passes.denoising().open(folder),
    "drafting_time": lambda folder: test_serving_work.drafting_in(test_serving_work.PROPOSE).open(folder),
    "one_batch_in_flight": lambda folder: test_serving_work.pipeline(folder, (1, 2)),
    "padding": lambda folder: _serves(
        Server(engine="atom", schedule_ns=0, read_ns=0), Batch(decodes=100, kv=5000)
    ).open(folder),
    "uneven_experts": lambda folder: test_serving.with_experts(folder, (MS, 16 * MS // 10)),
    "shared_device": lambda folder: test_shared_device.sliced().open(folder),
    "optimizer_not_fused": _one_rank("optimizer in many launches"),
    "zero_grad_fills": _one_rank("zero_grad"),
    "values_read_back": lambda folder: test_items.layers(each=True, host_ns=500 * US).open(folder),
    "bucket_copies": _one_rank("copies from buckets"),
    "allocator_calls": _one_rank("allocator calls"),
    "python_heavy": _one_rank("two modules"),
    "devices_in_turn": lambda folder: opened(folder, test_turns.steps(True), H100),
    "queue_full": lambda folder: test_queue_full.ahead(150).open(folder),
    "host_operators": _host(test_host_alone.nothing),
    "growing_tensor": _host(test_host_alone.answers),
    "host_compiling": _host(test_host_alone.compiles),
    "host_contention": lambda folder: test_contention.waiting().open(folder),
    "host_conversions": _host(lambda program, _: test_host_work.copy(program, 2 * MS, "bfloat16", "float")),
    "host_recomputation": _host(
        lambda program, _: test_host_work.checkpointed(program, test_host_work.LAYER)
    ),
    "host_doubles": _host(
        lambda program, _: program.operator("aten::mul", 4 * MS, **test_host_work.DOUBLES)
    ),
    "host_dense_gradients": _host(
        lambda program, _: test_dense_gradients.step(program, False, optimizer=test_dense_gradients.SINGLE)
    ),
    "gradient_checks": _host(lambda program, _: test_host_work.backward(program, *test_host_work.CHECKS)),
    "host_elsewhere": _host(lambda program, _: test_host_work.elsewhere(program, 3 * MS, 3 * MS)),
    "host_loading": _host(lambda program, _: program.load(6 * MS)),
    "host_outside": _host(_augments),
    "host_optimizer": _host(_optimizes),
    "host_straggler": _leading("a_late_host"),
    "host_in_turn": _leading("hosts_late_in_turn"),
    "host_collectives": _leading("long_transfers_of_hosts"),
    "host_self_time": _lost(test_lost_device_events.computes),
    "host_allocations": _lost(test_lost_device_events.allocates),
    "host_copies": _lost(test_lost_device_events.copies),
    "host_waits": _lost(test_lost_device_events.waits),
    "host_launches": _lost(test_lost_device_events.launches),
    "host_set_up": _lost(test_lost_device_events.sets_up, 1),
    "pipeline_bubble": lambda folder: test_pipelines.CASES["1F1B"][0].open(folder),
    "late_collective": test_communication.late,
    "fsdp_prefetch": lambda folder: test_fsdp.DRAINED.open(folder),
    "tiny_collectives": test_communication.tiny,
    "buffers_broadcast": test_communication.broadcasts,
    "slowed_by_communication": test_communication.slowed,
    "slow_copies": _kernels("pinned"),
    "imbalance": _ranks("data_parallel_more_launches"),
    "mutual_waiting": _leading("ranks_late_in_turn"),
    "attention_not_fused": _kernels("attention"),
    "wave_quantization": _kernels("waves"),
    "tiny_products": _kernels("tiny"),
    "pointwise_chains": _kernels("chains"),
    "recomputation": _kernels("recomputation"),
    "dense_gradients": _kernels("dense gradients"),
    "fp64_units": _kernels("fp64"),
    "slow_steps": _one_rank("a slow step"),
    "bimodal_steps": lambda folder: test_bimodal_steps.steps(
        30, 2, 31, 30, 2, 29, 30, 30, 2, 31, 30, 2
    ).open(folder),
    "clock_drift": _kernels("clock"),
    "growing_steps": lambda folder: test_growing_steps.program_of(
        test_growing_steps.more_kernels
    ).open(folder),
    "without_eval": lambda folder: test_modes.program("True", backward=False).open(folder),
    "without_train": lambda folder: test_modes.program("False", backward=True).open(folder),
    "maybe_communication": _one_rank("exchange under an unknown name"),
    "unrecorded_idle": _without_launches,
    "no_work_due": _ends_early,
    "memory_leak": _kernels("leak"),
    "memory_full": _kernels("full"),
    "memory_fragmentation": _kernels("slack"),
}  # fmt: skip


@cache
def trace_of(topic: str) -> Trace:
    """The recording that shows a finding."""
    if topic in BUNDLED:
        return _bundled(BUNDLED[topic])
    return MADE[topic](folder_for(topic))


@cache
def _bundled(name: str) -> Trace:
    return Trace.open(examples.path(name))
