"""HTA's defects, redone on a trace: changes to a document after which our answer must be HTA's about the
original.

Events are never taken out, only made unreadable, so that every other keeps its index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.parity.variants import DEVICE

# What HTA's queue lengths know as launches (TraceSymbolTable.get_runtime_launch_events_mask).
QUEUED_CALLS = {
    "cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync",
    "cudaMemsetAsync", "runFunction - job_prep_and_submit_for_execution", "hipLaunchKernel",
    "hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync", "hipMemcpyWithStream",
}  # fmt: skip
MTIA_WAITS = {"event_wait", "event_record"}
MTIA_ENGINE = "pe_exe"
Events = list[dict[str, Any]]


def correlation(event: dict[str, Any]) -> Any:
    args = event.get("args")
    return args.get("correlation") if isinstance(args, dict) else None


def is_device(event: dict[str, Any]) -> bool:
    return event.get("cat") in DEVICE


def is_call(event: dict[str, Any]) -> bool:
    """A host call that may have launched something."""
    return (
        event.get("ph") == "X" and not is_device(event) and event.get("cat") not in ("cuda_sync", "gpu_sync")
    )


def called(events: Events) -> set[Any]:
    return {correlation(event) for event in events if is_call(event)} - {None}


def forget(event: dict[str, Any]) -> None:
    event.clear()
    event |= {"ph": "M", "name": "forgotten", "pid": 0, "tid": 0, "ts": 0, "args": {}}


def unlaunched_work_is_dropped(events: Events) -> None:
    """With two or more steps HTA joins device rows to host rows by correlation (Q-55)."""
    known = called(events)
    for event in events:
        if is_device(event) and correlation(event) not in known:
            forget(event)


def waits_are_work(events: Events) -> None:
    """Whatever carries a stream is taken for work of the device (Q-9)."""
    for event in events:
        if event.get("cat") == "cuda_sync" and event.get("args", {}).get("stream", -1) >= 0:
            event["cat"] = "gpu_memset"


def operators_with_a_stream_are_work(events: Events) -> None:
    """The same for the host's launches of compiled Triton kernels (Q-10)."""
    for event in events:
        if event.get("cat") == "cpu_op" and "stream" in event.get("args", {}):
            event["cat"] = "kernel"


def waiting_kernels_are_work(events: Events) -> None:
    """MTIA records waits as kernels; under another name they are computation to us as well."""
    for event in events:
        if is_device(event) and event["name"] in MTIA_WAITS:
            event["name"] = "work"


def engines_are_memory(events: Events) -> None:
    """What HTA cannot name is busy but no computation."""
    for event in events:
        if is_device(event) and event["name"] == MTIA_ENGINE:
            event["name"] = "Memset"


def engines_are_nothing(events: Events) -> None:
    """And it is missing in the tables of kernels."""
    for event in events:
        if is_device(event) and event["name"] == MTIA_ENGINE:
            forget(event)


def other_calls_launch_nothing(events: Events) -> None:
    """A queue knows twelve names of calls (Q-13)."""
    for event in events:
        if is_call(event) and correlation(event) is not None and event["name"] not in QUEUED_CALLS:
            del event["args"]["correlation"]


def stream_zero_is_not_launched(events: Events) -> None:
    """Only kernels of streams above 0 are linked to calls (Q-6)."""
    zero = {correlation(e) for e in events if is_device(e) and e.get("args", {}).get("stream") == 0}
    for event in events:
        if is_call(event) and correlation(event) in zero:
            del event["args"]["correlation"]


def work_on_stream_zero_has_no_step(events: Events) -> None:
    """Only work on streams above 0 takes the step of its launch, so what is compared by step misses it."""
    for event in events:
        if is_device(event) and event.get("args", {}).get("stream") == 0:
            forget(event)


def the_devices_step_ends_the_trace(events: Events) -> None:
    """The last step begins where the last of its copies on the device does (Q-7)."""
    steps = [event for event in events if str(event.get("name", "")).startswith("ProfilerStep")]
    last = max((event["name"] for event in steps), key=lambda name: int(name.partition("#")[2]))
    copies = [event for event in steps if event["name"] == last]
    latest = max(copies, key=lambda event: event["ts"])
    for event in copies:
        event["cat"] = "user_annotation" if event is latest else "gpu_user_annotation"


def orphans_belong_to_event_zero(events: Events) -> None:
    """A partner that is missing is kept as index 0, which is also the first event (Q-24)."""
    known, shared = called(events), -24
    for event in events:
        if is_device(event) and correlation(event) not in known:
            event["args"]["correlation"] = shared
    events[0] |= {"cat": "cuda_runtime", "args": {"correlation": shared}}


def annotations_after_the_cut_are_dropped(events: Events) -> None:
    """The device's annotations are cut by the time of the host's last step."""
    cut = last_step(events)
    for event in events:
        if event.get("cat") == "gpu_user_annotation" and event["ts"] >= cut:
            forget(event)


def last_step(events: Events) -> float:
    """Start of the host's last step."""
    return max(
        event["ts"]
        for event in events
        if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep")
    )


def graphs_launch_one_kernel(events: Events) -> None:
    """Of several kernels with one correlation id only the last is linked (Q-34)."""
    seen: set[Any] = set()
    for event in sorted((e for e in events if is_device(e)), key=lambda e: e["ts"], reverse=True):
        if correlation(event) in seen:
            forget(event)
        seen.add(correlation(event))


def the_latest_operator_owns_a_launch(events: Events) -> None:
    """Of all operators around a launch, on any thread, the last to start owns it; of equals the outer."""
    operators = [event for event in events if is_operator(event)]
    for call in [event for event in events if is_call(event) and correlation(event) is not None]:
        end = call["ts"] + call["dur"]
        around = [item for item in operators if item["ts"] <= call["ts"] and item["ts"] + item["dur"] >= end]
        if not around:
            continue
        owner, *inner = sorted(
            (item for item in around if item["ts"] == max(other["ts"] for other in around)),
            key=lambda item: item["dur"],
            reverse=True,
        )
        call |= {"pid": owner["pid"], "tid": owner["tid"]}
        for item in inner:
            item["name"] = f"inner {item['name']}"


def is_operator(event: dict[str, Any]) -> bool:
    return event.get("ph") == "X" and str(event.get("name")).startswith("aten::")


HTA_DEFECTS: dict[str, Callable[[Events], None]] = {
    function.__name__: function
    for function in (
        unlaunched_work_is_dropped,
        waits_are_work,
        operators_with_a_stream_are_work,
        waiting_kernels_are_work,
        engines_are_memory,
        engines_are_nothing,
        other_calls_launch_nothing,
        stream_zero_is_not_launched,
        work_on_stream_zero_has_no_step,
        the_devices_step_ends_the_trace,
        orphans_belong_to_event_zero,
        annotations_after_the_cut_are_dropped,
        graphs_launch_one_kernel,
        the_latest_operator_owns_a_launch,
    )
}
