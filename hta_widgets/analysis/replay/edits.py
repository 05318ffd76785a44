"""Changes to a program whose effect can be replayed: small values, made together as a list.

    from hta_widgets import analysis, edits

    analysis.what_if(trace, edits.without("enumerate(DataLoader)*"))
    analysis.what_if(trace, [edits.kernels(2.0, name="*gemm*"), edits.communication(0)])

Names are patterns as in file names: ``*`` stands for any text, ``?`` for one character, ``[ab]`` for a or b.
A call may be given as a path, ``"train_step / *Decoder* / aten::linear"``: inside calls of these names,
outermost first, whatever lies between them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

from hta_widgets.analysis.idle.pauses import LEAST_NS
from hta_widgets.analysis.job import buckets, changes
from hta_widgets.analysis.replay import applied
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.places import STEP
from hta_widgets.analysis.strategy.fsdp_passes import BACKWARD, FORWARD

__all__ = [
    "Edit",
    "allocator",
    "at_roof",
    "batched_products",
    "bus_bandwidth",
    "communication",
    "copies",
    "copy_bandwidth",
    "even_operations",
    "exactly",
    "faster_links",
    "filled_device",
    "full_waves",
    "fused_attention",
    "fused_optimizer",
    "fused_pointwise",
    "graphs",
    "host",
    "kernel_time",
    "kernels",
    "larger_buckets",
    "launches",
    "median_rank",
    "microbatches",
    "no_recomputation",
    "no_stragglers",
    "overlap",
    "own_stream",
    "padded_products",
    "pauses",
    "prefetch",
    "prompt_communication",
    "syncs",
    "unprofiled",
    "without",
]


def exactly(name: str) -> str:
    """The pattern that only this name matches.

    Args:
        name: of a call or kernel, with any characters.
    """
    return re.sub(r"([*?[])", r"[\1]", name).replace(STEP, STEP.replace("/", "[/]"))


def host(
    time: float = 0.0, within: str | None = None, outside: str | None = None, exposed: bool = False
) -> Edit:
    """The host's own time, in calls and between them, times a factor: 0.5 is a host twice as fast, 0 is free.

    Args:
        time: what is left of each ns, at least 0.
        within: only inside operators, annotations and Python functions of this name.
        outside: only while none of this name is open, such as a data loader.
        exposed: only while devices idle because it launches too late (`host_busy_ns` of `idle_breakdown`),
            waiting for data and in synchronising calls aside. That is no bound: a faster host gets ahead, and
            saves more.

    Raises:
        ValueError: the factor is negative or no number.
    """
    free = time == 0 and not exposed
    return _edit(
        applied.host, _factor(time), within=within, outside=outside, exposed=bool(exposed), bound=free
    )


def launches(time: float = 0.0) -> Edit:
    """The time of calls that launch device work and do not wait, times a factor; 0: launching is free.

    Args:
        time: what is left of each ns, at least 0.

    Raises:
        ValueError: the factor is negative or no number.
    """
    return _edit(applied.launches, _factor(time), bound=time == 0)


def syncs(call: str | None = None, within: str | None = None) -> Edit:
    """Synchronising calls and blocking copies no longer wait for the device.

    A wait that the program needs cannot be removed: this is a bound.

    Args:
        call: only calls of this name; by default all but those that wait for the whole device
            (``*DeviceSynchronize``), with which programs take their time.
        within: only inside operators, annotations and Python functions of this name.
    """
    return _edit(applied.syncs, call=call, within=within, bound=True)


def allocator() -> Edit:
    """Calls that allocate or free device memory take no time and wait for nothing: a caching allocator."""
    return _edit(applied.allocator)


def unprofiled(step_ns: int) -> Edit:
    """The host without the profiler's own work, which a step that waits for launches is mostly of.

    Every event of the host takes less by as much as makes the mean step as long as it was without the
    profiler; what the host does between events stays, such as loading data. Other edits save less then:
    compare their step with this one.

    Args:
        step_ns: how long a step of the same program took without the profiler, on average, ns, above 0. One
            that took longer than it was recorded changes nothing.

    Raises:
        ValueError: `step_ns` is not above 0.
    """
    if not step_ns > 0:
        raise ValueError(f"step_ns must be more than 0, not {step_ns!r}")
    return _edit(applied.unprofiled, int(step_ns))


def without(name: str, keep_ns: int = 0) -> Edit:
    """Take operators, annotations or Python functions out of the host's time, such as a data loader.

    Device work that they launched stays.

    Args:
        name: of the calls.
        keep_ns: how much of each call to keep, ns.

    Raises:
        ValueError: `keep_ns` is negative.
    """
    if keep_ns < 0:
        raise ValueError(f"keep_ns must not be negative, it is {keep_ns}")
    return _edit(applied.without, name, keep_ns=int(keep_ns) or None)


def pauses(before: str | None = None, longer_than_ns: int = 1_000_000) -> Edit:
    """Take pauses out of the host's time: no thread that launches has an operator or a runtime call open.

    Python functions may be open, and annotations that hold operators or calls.

    Args:
        before: only pauses that a call of this name ends.
        longer_than_ns: only pauses of this length or more, ns, at least 1 ms.

    Raises:
        ValueError: `longer_than_ns` is less than 1 ms.
    """
    longer_than_ns = int(longer_than_ns)
    if longer_than_ns < LEAST_NS:
        raise ValueError(f"longer_than_ns must be at least {LEAST_NS:,}, it is {longer_than_ns}")
    return _edit(applied.pauses, before=before, longer_than_ns=longer_than_ns)


def kernels(
    faster: float, name: str | None = None, within: str | None = None, operation: str | None = None
) -> Edit:
    """Compute kernels take 1/`faster` of their time; `math.inf`: none.

    Args:
        faster: how many times as fast, more than 0.
        name: only kernels of this name.
        within: only kernels launched inside operators, annotations and Python functions of this name.
        operation: only kernels that do this ("gemm", "attention", "elementwise", ...), as far as their names
            say it: `operation` of `kernel_classes`.

    Raises:
        ValueError: `faster` is not above 0.
    """
    faster = _faster(faster)
    return _edit(
        applied.kernels, faster, name=name, within=within, operation=operation, bound=faster == math.inf
    )


def at_roof(
    reached: float = 1.0, name: str | None = None, within: str | None = None, operation: str | None = None
) -> Edit:
    """Kernels take no longer than their operations or their bytes do at this share of the device's peaks.

    A kernel under an operator without a formula, whose shapes were not recorded, stays as it is; so does one
    that is faster already. How near a kernel can come to the roof is for its authors to say: this is a bound.

    Args:
        reached: share of the peak of its unit, and of the memory's bandwidth; above 0, at most 1.
        name: only kernels of this name.
        within: only kernels launched inside operators, annotations and Python functions of this name.
        operation: only kernels that do this, as in `kernels`.

    Raises:
        ValueError: `reached` is not above 0 and at most 1.
    """
    if not 0 < reached <= 1:
        raise ValueError(f"reached is a share of the peaks, above 0 and at most 1, not {reached}")
    return _edit(applied.at_roof, float(reached), name=name, within=within, operation=operation, bound=True)


def copies(faster: float, name: str | None = None, within: str | None = None) -> Edit:
    """Copies and fills on the device take 1/`faster` of their time; `math.inf`: none.

    Args:
        faster: how many times as fast, more than 0.
        name: only copies of this name.
        within: only copies launched inside operators, annotations and Python functions of this name.

    Raises:
        ValueError: `faster` is not above 0.
    """
    faster = _faster(faster)
    return _edit(applied.copies, faster, name=name, within=within, bound=faster == math.inf)


def communication(time: float = 0.0, name: str | None = None, within: str | None = None) -> Edit:
    """The duration of collectives and of sends and receives, times a factor; 0: it is free.

    Their recorded duration includes waiting for other ranks, which are taken to arrive as they did.

    Args:
        time: what is left of each ns, at least 0.
        name: only kernels of this name.
        within: only what is launched inside operators, annotations and Python functions of this name.

    Raises:
        ValueError: the factor is negative or no number.
    """
    return _edit(applied.communication, _factor(time), name=name, within=within, bound=time == 0)


def copy_bandwidth(gbps: float, name: str | None = None, within: str | None = None) -> Edit:
    """Copies and fills take no longer than their bytes do at a bandwidth.

    Args:
        gbps: in 1e9 bytes per s, more than 0.
        name: only copies of this name.
        within: only copies launched inside operators, annotations and Python functions of this name.

    Raises:
        ValueError: the bandwidth is not above 0.
    """
    return _edit(applied.copy_bandwidth, _bandwidth(gbps), name=name, within=within)


def bus_bandwidth(gbps: float, name: str | None = None) -> Edit:
    """Collectives take no longer than at a bus bandwidth: bytes of the larger buffer, times 2 (n - 1) / n for
    an all-reduce of n ranks, (n - 1) / n where ranks gather, scatter or exchange, by time.

    Their recorded duration includes waiting for other ranks, which this takes away, too: this is a bound.

    Args:
        gbps: in 1e9 bytes per s, more than 0.
        name: only kernels of this name.

    Raises:
        ValueError: the bandwidth is not above 0.
    """
    return _edit(applied.bus_bandwidth, _bandwidth(gbps), name=name, bound=True)


def kernel_time(ns: int, name: str, within: str | None = None) -> Edit:
    """Compute kernels of a name take no longer than this.

    Args:
        ns: the longest that one of them takes, at least 0.
        name: of the kernels.
        within: only kernels launched inside operators, annotations and Python functions of this name.

    Raises:
        ValueError: `ns` is negative.
    """
    if ns < 0:
        raise ValueError(f"ns must not be negative, it is {ns}")
    return _edit(applied.kernel_time, int(ns), name, within=within, bound=ns == 0)


def overlap(name: str | None = None) -> Edit:
    """Communication that nothing hides runs beside compute, which it slows down.

    Compute takes as many times as long beside it as kernels of the same name and grid do in the recording,
    by the medians of three or more beside communication and alone; as long as it did, where there are none.
    Whether there is compute that does not need the result is not known: this is a bound.

    Args:
        name: only kernels of this name.
    """
    return _edit(applied.overlap, name=name, bound=True)


def own_stream(name: str, within: str | None = None) -> Edit:
    """Kernels, copies and collectives of a name on a stream of their own.

    They keep the waits that are recorded or inferred, but no longer wait for the work before them on their
    stream, nor that behind for them. Work may need what it no longer waits for: this is a bound.

    Args:
        name: of the device work.
        within: only what is launched inside operators, annotations and Python functions of this name.
    """
    return _edit(applied.own_stream, name, within=within, bound=True)


def prompt_communication(name: str | None = None) -> Edit:
    """Communication starts when the work that it waits for has ended and its stream is free.

    As if it were launched in time, and before all other work. What it waits for is inferred where no waits
    between streams are recorded, and the host may be late for reasons that remain: this is a bound.

    Args:
        name: only kernels of this name.
    """
    return _edit(applied.prompt_communication, name=name, bound=True)


def prefetch(units: int = 1, phase: str | None = None) -> Edit:
    """The all-gather of each FSDP unit is issued in the turn of the unit so many before it, in order of use.

    As with `set_modules_to_forward_prefetch` and `set_modules_to_backward_prefetch`. It is issued right after
    the last all-gather of that turn, or when that turn begins, and what fills its buffer with it; no earlier
    than its pass begins. One that is issued that early already stays as it is. It takes as long as recorded,
    and waits for what its stream waited for by then; calls of the host stay where they are. Further units are
    gathered at the same time, up to so many (`bytes` of `fsdp_units`), and that memory may not be there: this
    is a bound.

    Args:
        units: how many units ahead, 1 or more.
        phase: "forward" or "backward"; None: both.

    Raises:
        ValueError: `units` is below 1, or there is no such phase.
    """
    if units < 1:
        raise ValueError(f"units must be 1 or more, not {units!r}")
    if phase not in (None, FORWARD, BACKWARD):
        raise ValueError(f"phase must be {FORWARD!r}, {BACKWARD!r} or None, not {phase!r}")
    return _edit(applied.prefetch, int(units), phase=phase, bound=True)


def fused_optimizer(name: str = "Optimizer.step*") -> Edit:
    """The optimizer updates all parameters in a few launches: `fused=True`.

    A tenth of the host's time in it is left, and its launches take none. Its kernels take as long as those of
    the operator among them that takes longest: all of them together read and write at least that much. More
    is left in truth: this is a bound.

    Args:
        name: of its annotation.
    """
    return _edit(applied.fused_optimizer, name, bound=True)


def graphs(at_least: int = 50, shorter_than_ns: int = 50_000) -> Edit:
    """Runs of launches of short kernels without a wait between them as CUDA graphs: one launch, short gaps.

    This is an estimate: the first launch of each run and what lies between runs stay, and a program that
    captures its whole step saves more. Under the profiler launches take two to three times as long: see
    `unprofiled`.

    Args:
        at_least: launches of a run that is worth a graph.
        shorter_than_ns: a longer kernel ends a run.
    """
    return _edit(applied.graphs, at_least=at_least, shorter_than_ns=shorter_than_ns)


def fused_attention() -> Edit:
    """Attention that writes its scores to memory becomes one kernel for each pass: flash attention.

    It takes the time of its operations at half the peak of its unit, or of its bytes at that of memory, and
    no less than 5 us; on the host, that of the first of its operators. This is an estimate: what a library
    reaches depends on the shapes and the device.
    """
    return _edit(applied.fused_attention)


def fused_pointwise(kernels: str | None = None) -> Edit:
    """Each chain of pointwise kernels becomes one, which writes no result that only the next one reads.

    That one reads what another has written is inferred from shapes and types, and a result may be needed
    later, as by a backward pass: this is a bound.

    Args:
        kernels: only chains of just these kernels, their names joined with ``|``, as `fusion_candidates`
            lists them.
    """
    return _edit(applied.fused_pointwise, kernels=kernels, bound=True)


def no_recomputation() -> Edit:
    """Kernels of the forward pass that the backward pass runs again take no time: results are stored.

    That takes memory, which may not be there: this is a bound.
    """
    return _edit(applied.no_recomputation, bound=True)


def padded_products() -> Edit:
    """Matrix products of unaligned sizes, in kernels that load less than 16 bytes at once, get padded ones.

    They take the time of their padded operations at the share of the peak that aligned products of their unit
    reach in the recording, at least at half of it, or of their bytes at the peak of memory. This is an
    estimate: what a library reaches depends on the sizes.
    """
    return _edit(applied.padded_products)


def batched_products() -> Edit:
    """Matrix products of less than 10 us that wait for nothing but their own start and end: many at once.

    They take the time of their operations at half the peak of their unit, or of their bytes at that of
    memory. Which of them can be one is for the program to say: this is a bound.
    """
    return _edit(applied.batched_products, bound=True)


def full_waves() -> Edit:
    """Kernels whose last wave of blocks is not full take as much less as it lacks.

    No less than their operations at half the peak of their unit, or their bytes at that of memory. Blocks of
    a wave that is not full may run faster: this is a bound.
    """
    return _edit(applied.full_waves, bound=True)


def filled_device() -> Edit:
    """Kernels that keep few warps on the device, far from the roof, become as much faster as it has room.

    No less than their operations at half the peak of their unit, or their bytes at that of memory. More warps
    may bring less: this is a bound.
    """
    return _edit(applied.filled_device, bound=True)


def no_stragglers() -> Edit:
    """No rank is slow: every operation of the job takes its ideal time, as `slowdown` defines it."""
    return Edit(_stated("no_stragglers"), across=changes.no_stragglers)


def median_rank(rank: int) -> Edit:
    """A rank computes and copies as long as the median of its peers, and waits as usual for its host.

    Its peers are the other ranks of its stage, or of the job where there are none. What it spends on each
    name is scaled to the median of what they spend on it: nothing, if most do not have it. Transfers, which
    are of all members, stay.

    Args:
        rank: its number in the job.
    """
    return Edit(_stated("median_rank", int(rank)), across=partial(changes.median_rank, rank=int(rank)))


def even_operations(name: str) -> Edit:
    """Operations of a name take their ideal time on all ranks: computation and copies the mean of all ranks
    and steps, transfers the median, as `slowdown` defines it.

    Args:
        name: of kernels, or of collectives: ``all_reduce``, as `collectives` names them.
    """
    return Edit(_stated("even_operations", name), across=partial(changes.even_operations, name=name))


def faster_links(faster: float, name: str | None = None) -> Edit:
    """Transfers between ranks take 1/`faster` of their time; `math.inf`: none. Waiting for ranks stays.

    Args:
        faster: how many times as fast, more than 0.
        name: only kernels or collectives of this name.

    Raises:
        ValueError: `faster` is not above 0.
    """
    faster = _faster(faster)
    change = partial(changes.faster_links, share=1.0 / faster, name=name)
    return Edit(_stated("faster_links", faster, name=name), faster == math.inf, across=change)


def microbatches(count: int, same_size: bool = False) -> Edit:
    """A step of a pipeline runs so many microbatches, in the order of its schedule.

    Passes take the mean of the recorded ones of their stage and direction. The batch stays as it is: of twice
    as many microbatches the kernels of each compute half as long, which those of small ones may not. With
    `same_size` each takes as long as now, and the batch grows. Communication, in passes and between stages,
    takes as long as recorded; the range has that of smaller messages, too. Made alone: the order of other
    work is not known then. GPipe, 1F1B and its interleaved form are replayed so; others are refused. What
    memory allows is not checked.

    Args:
        count: of a step, 2 or more; of interleaved stages a multiple of their number.
        same_size: a microbatch stays as large as it is.

    Raises:
        ValueError: `count` is below 2: one microbatch is no pipeline.
    """
    if count < 2:
        raise ValueError(f"count must be 2 or more, not {count!r}")
    change = partial(changes.microbatches, count=int(count), same_size=bool(same_size))
    expression = _stated("microbatches", int(count), same_size=bool(same_size))
    return Edit(expression, across=change)


def larger_buckets(most_bytes: int, name: str = "allreduce") -> Edit:
    """Collectives of a group that follow one another in a step become one, of at most so many bytes.

    As the gradient buckets of data parallelism (`bucket_cap_mb`). The merged one begins when the data of its
    last part is there, and takes as long as its size does by the latency and bandwidth that fit the group's
    transfers (`alpha_beta`). Refused where there are too few sizes for a fit, where a bucket would be much
    larger than all that was recorded, and where other work waits for one of the parts. Smaller buckets than
    the recorded ones cannot be had: when each gradient is ready is not recorded.

    Args:
        most_bytes: of a bucket, more than 0. A collective that is larger stays as it is.
        name: of kernels, or of collectives, as `collectives` names them.

    Raises:
        ValueError: `most_bytes` is not above 0.
    """
    if not most_bytes > 0:
        raise ValueError(f"most_bytes must be more than 0, not {most_bytes!r}")
    change = partial(buckets.larger_buckets, most_bytes=int(most_bytes), name=name)
    expression = _stated("larger_buckets", int(most_bytes), **({} if name == "allreduce" else {"name": name}))
    return Edit(expression, across=change)


def _edit(change: Callable[..., None], *values: object, bound: bool = False, **named: object) -> Edit:
    """The edit that `applied` has a function of the same name and arguments for."""
    return Edit(_stated(change.__name__, *values, **named), bound, partial(change, *values, **named))


def _stated(function: str, *values: object, **named: object) -> str:
    """The call that makes an edit; of arguments by name those that are not None or False."""
    parts = [_value(value) for value in values]
    parts += [
        f"{name}={_value(value)}" for name, value in named.items() if value is not None and value is not False
    ]
    return f"edits.{function}({', '.join(parts)})"


def _value(value: object) -> str:
    return "math.inf" if value == math.inf else repr(value)


def _factor(time: float) -> float:
    if not time >= 0 or time == math.inf:
        raise ValueError(f"the factor of a time must be a number of at least 0, not {time!r}")
    return float(time)


def _bandwidth(gbps: float) -> float:
    if not 0 < gbps < math.inf:
        raise ValueError(f"the bandwidth must be a number of more than 0, not {gbps!r}")
    return float(gbps)


def _faster(faster: float) -> float:
    if not faster > 0:
        raise ValueError(f"faster must be more than 0, not {faster!r}")
    return float(faster)
