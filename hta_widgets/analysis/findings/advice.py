"""What to try against idle time, as far as what was recorded does not show that it is done already."""

from __future__ import annotations

import re

import numpy as np

from hta_widgets.analysis.device_time.busy import device_work
from hta_widgets.analysis.findings.callers import begins_in
from hta_widgets.analysis.findings.compiled import device_compiled, host_compiled
from hta_widgets.analysis.findings.idle_time import MOST, Where
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.serving_advice import graphs_switch
from hta_widgets.analysis.idle.causes import named, rows_named
from hta_widgets.analysis.idle.pauses import LEAST_NS
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.arrays import Bool
from hta_widgets.formatting import brief
from hta_widgets.trace.classify import EventClass, is_optimizer_step

_JOIN = "Copy fewer, larger pieces: put what belongs together into one pinned buffer, and copy that at once."
_READ_LATER = "Read back later or less often, or launch more before."
_DO_NOT_WAIT_FOR_COPIES = (
    "It waits there for copies to the device: from pinned memory, with non_blocking=True, it need not."
)
_TO_DEVICE = re.compile(r"^Memcpy (?:HtoD|[HM]2D)")
_PINNED = re.compile(r"^aten::_?pin_memory$|^Memcpy HtoD \(Pinned")
# Parts of a training loop whose host work PyTorch or its backend can cut, by a word in their name.
_REMEDIES = {
    "zero_grad": "zero_grad(set_to_none=True) launches nothing",
    "Optimizer.step": "fused=True or foreach=True of the optimizer launch far less",
    "aclopCompile": "torch.npu.set_compile_mode(jit_compile=False) takes operators that CANN has compiled",
}

_ON_CPU = re.compile("CPUAdam|CPUAdagrad")  # optimizers that launch nothing


def data_stall(inputs: Inputs, where: Where) -> str:
    """The loader's workers, or the function that its time goes to."""
    if inputs.loads_in_the_loop:
        return (
            "num_workers is 0, so the loop itself makes each batch: give the DataLoader workers, and "
            "pin_memory=True."
        )
    if where.longest_ns < LEAST_NS:
        return (
            "Each batch is there within a millisecond, so more workers do not help: fetch the next one while "
            "the device works, before anything waits for it, or let one batch hold more."
        )
    if len(where.places) == 1:
        return f"Speed up {_first(where)}, or give the DataLoader more workers to run it in."
    pin = "" if inputs.any_name(_PINNED) else " set pin_memory=True,"
    return (
        f"Raise num_workers or prefetch_factor of the DataLoader,{pin} or move costly transforms out of the "
        "loop."
    )


def sync_calls(inputs: Inputs, where: Where) -> str:
    """What makes a host wait."""
    read_back = (
        "Look for .item(), .cpu(), print of a tensor and "
        f"{inputs.accelerator.call('synchronize')} in the loop; read values back once in many steps."
    )
    if not where.allocates:
        return read_back
    keep = f"{_first(where)} waits for all that the device has to do. {inputs.accelerator.keep_memory}"
    return keep if where.only_allocates else f"{keep} {read_back}"


def idle_host(inputs: Inputs, where: Where) -> str:
    """What keeps the host from being ahead; what runs on it meanwhile; then, less work for it."""
    said = _late_host(inputs, where)
    if where.recorded and not where.long and not where.once:
        # Measured on an H100: 6 us for each operator; steps that take 8 ms were recorded with 17.
        said += (
            " Recording Python stacks slows the host down: record without with_stack to see what is left."
            if inputs.has_stacks
            else " Recording slows the host down, too: time steps without the profiler to see what is left."
        )
    if not where.drained_by:
        return said
    drained = (
        f"Look at {brief(where.drained_by)}: the host cannot be ahead of a device for which it waits. "
        f"{_DO_NOT_WAIT_FOR_COPIES if _after_copies(inputs, where) else _READ_LATER}"
    )
    # what holds the host for long comes first: without the wait before it, it takes as long
    return f"{said} {drained}" if where.recorded and where.long and where.places else f"{drained} {said}"


def _late_host(inputs: Inputs, where: Where) -> str:
    if not where.recorded:
        look = f"Look at {_first(where)}. " if where.places else ""
        return look + _record_host(inputs)
    if where.once:
        place = _first(where) if where.places else "what the host does in the longest gap"
        return f"Look at {place}: most of it is one gap. Record more steps to see whether it comes again."
    if not where.places:
        return _less_host_work(inputs, where)
    if where.allocates:
        return inputs.accelerator.keep_memory
    if where.long:
        return (
            f"Look at {_first(where)}: for a millisecond or more at a time the host launches nothing, so "
            "less work for each launch does not help. Do it while the device has work, in another thread or "
            "process, on the device, or less often."
        )
    if _between_copies(inputs, where):
        return f"Look at {_first(where)} first. {_JOIN}"
    calls = (where.places[0].name, *where.places[0].within)
    around = [name for name in calls if not _ON_CPU.search(name)]
    remedy = next((text for word, text in _REMEDIES.items() if any(word in name for name in around)), "")
    first = f"Look at {_first(where)} first{': ' if remedy else ''}{remedy}."
    return f"{first} {_less_host_work(inputs, where)}"


def _is_most(where: Where, gaps: Bool) -> bool:
    """Whether some of the gaps are most of the idle time."""
    return bool((where.idle.end - where.idle.start)[gaps].sum() > MOST * where.idle.length)


def _before_optimizer(inputs: Inputs, where: Where) -> bool:
    """Whether most of the time lies before kernels that the optimizer launches."""
    rank_trace, idle = inputs.trace.rank(where.rank), inputs.idle_causes(where.rank)
    steps = rows_named(rank_trace, is_optimizer_step)
    steps = steps[~rank_trace.is_device[steps]]
    launch = rank_trace.launch[idle.next_row[idle.gaps.end.searchsorted(where.idle.end)]].astype(np.int64)
    known = launch >= 0
    of_optimizer = np.zeros(len(launch), np.bool_)
    of_optimizer[known] = begins_in(rank_trace, launch[known], steps)
    return _is_most(where, of_optimizer)


def _after_copies(inputs: Inputs, where: Where) -> bool:
    """Whether most of the time follows copies to the device."""
    rank_trace = inputs.trace.rank(where.rank)
    work = device_work(rank_trace)
    order = np.argsort(work.end, kind="stable")
    before = work.rows[order][work.end[order].searchsorted(where.idle.start, "right") - 1]
    to_device = named(rank_trace, _TO_DEVICE.search)[before]
    return _is_most(where, to_device)


def _between_copies(inputs: Inputs, where: Where) -> bool:
    """Whether most of the time lies between one copy and the next of its kind."""
    rank_trace = inputs.trace.rank(where.rank)
    work = device_work(rank_trace)
    copies, name = work.event_class == EventClass.MEMORY_COPY, rank_trace.name[work.rows]
    if len(copies) < 2:
        return False
    after = np.searchsorted(work.start, where.idle.end).clip(1, len(copies) - 1)
    between = copies[after] & copies[after - 1] & (name[after] == name[after - 1])
    return _is_most(where, between)


def launch_bound(inputs: Inputs, where: Where) -> str:
    """Launching ahead, or fewer launches."""
    if _between_copies(inputs, where):
        return _JOIN
    if inputs.replays_graphs and where.places and "GraphLaunch" in where.places[0].name:
        return "Launching the graph takes this long: launch it earlier, while the device still has work."
    if where.drained_by:
        ahead = "Let the host run ahead of the device (fewer synchronising calls)"
        other = "launch many kernels at once with CUDA graphs"
        return f"{ahead}." if inputs.replays_graphs or not inputs.has_graphs else f"{ahead}, or {other}."
    slow = "The host takes longer to launch the work than the device to do it"
    if inputs.replays_graphs or not inputs.has_graphs:
        return f"{slow}: launch fewer, larger pieces."
    return f"{slow}: launch many kernels at once with CUDA graphs, or fewer, larger ones."


def tiny_kernels(inputs: Inputs, where: Where) -> str:
    """Fewer and larger kernels."""
    if _before_optimizer(inputs, where):
        return f"Most of it lies between kernels of the optimizer: {_REMEDIES['Optimizer.step']}."
    if not inputs.has_graphs or device_compiled(inputs, where.rank, where.idle):
        return "Run fewer, larger kernels: a larger batch gives each more to do."
    return "Run fewer, larger kernels: torch.compile fuses small ones; a larger batch gives each more to do."


def device_wait(inputs: Inputs, where: Where) -> str:
    """What orders graphs or streams; on the only stream, what else may hold work back."""
    if where.of_graphs and where.in_replays_ns >= where.between_replays_ns:
        return (
            "These pauses lie inside of graphs: their kernels wait for other nodes. Look at how they were "
            "captured (branches, copies, host functions), and at other processes on the device."
        )
    if where.of_graphs:
        return (
            "The next graph is queued already, so the host is not late: the device takes this long from one "
            "replay to the next. Capture more of the work in one graph, so that there are fewer of them."
        )
    if not inputs.has_streams:
        return (
            "All work is recorded on one stream, so it waits for no other stream. Look for code that is "
            "loaded at its first launch, other processes on the device, and work that was not recorded."
        )
    return (
        "Look at the stream that the waiting work depends on; events and stream.wait_stream() may order more "
        "than they must."
    )


def _first(where: Where) -> str:
    return brief(short_place(where.places[0].name, where.places[0].within))


def _less_host_work(inputs: Inputs, where: Where) -> str:
    if not inputs.has_graphs:
        return (
            "Cut the host's work per step: fewer and larger operations, or work of Python in another process."
        )
    if inputs.replays_graphs:
        return (
            "Cut the host's work between graphs: capture more of the step, or prepare the next one earlier."
        )
    if switch := graphs_switch(inputs):
        return f"Unless something keeps it eager, {switch}."
    if host_compiled(inputs, where.rank, where.idle):
        return (
            'Cut the host\'s work in and around the compiled code: CUDA graphs (mode="reduce-overhead"), '
            "fewer graph breaks, or work of Python in another process."
        )
    return (
        "Cut the host's work per step: torch.compile, CUDA graphs, fewer and larger operations, or work of "
        "Python in another process."
    )


def _record_host(inputs: Inputs) -> str:
    if inputs.has_stacks:
        return "Mark what the loop does then with torch.profiler.record_function."
    return "Record what the host does then: ProfilerActivity.CPU and with_stack=True."
