"""What a change of the job makes of its program. Nothing here looks at a run or at a trace.

Each function returns a change: a function from a program to the changed one. They bear the names of
`hta_widgets.edits`, whose estimates they are the truth for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import reduce

from tests.replay.planted.program import (
    MAIN,
    Allocate,
    Call,
    Enter,
    HandOver,
    Launch,
    Leave,
    Operation,
    Program,
    Record,
    Spend,
    Synchronise,
    Wait,
    Work,
)

__all__ = [
    "Change",
    "allocator",
    "bus_bandwidth",
    "communication",
    "copies",
    "copy_bandwidth",
    "fused_optimizer",
    "host",
    "kernel_time",
    "kernels",
    "later",
    "launches",
    "own_stream",
    "syncs",
    "together",
    "without",
]

Change = Callable[[Program], Program]


def host(factor: float) -> Change:
    """The host takes so many times as long, between calls and in them.

    What is no time of the host stays: launch latencies, and the time from the end of device work to the
    return of the call that waited for it.
    """
    return _each(lambda operation: _times(operation, factor))


def launches(factor: float) -> Change:
    """Calls that launch and do not wait take the host so many times as long."""
    return _each(
        lambda operation: (
            _times(operation, factor)
            if isinstance(operation, Launch) and not operation.blocking
            else operation
        )
    )


def kernels(faster: float, name: str = "*") -> Change:
    """Compute kernels with such a name run so many times as fast."""
    return _work("compute", 1 / faster, name)


def copies(faster: float) -> Change:
    """Copies and fills run so many times as fast."""
    return together(_work("copy", 1 / faster), _work("fill", 1 / faster))


def copy_bandwidth(gbps: float) -> Change:
    """Copies take no longer than at a bandwidth: a recording has 20 bytes for each ns that they took."""
    return _at_most(lambda work: math.ceil(20 * work.ns / gbps) if work.kind in ("copy", "fill") else work.ns)


def bus_bandwidth(gbps: float) -> Change:
    """All-reduces of two ranks take no longer than 4 bytes for each element do at a bandwidth."""
    return _at_most(
        lambda work: math.ceil(4 * work.elements / gbps) if work.kind == "communication" else work.ns
    )


def kernel_time(ns: int, name: str) -> Change:
    """Compute kernels with such a name take no longer than this."""
    return _at_most(
        lambda work: min(ns, work.ns) if work.kind == "compute" and fnmatchcase(work.name, name) else work.ns
    )


def own_stream(name: str) -> Change:
    """Work with such a name runs on a stream of its own, unless it has its stream for itself already."""

    def changed(program: Program) -> Program:
        launched = [each for each in program.operations if isinstance(each, Launch)]
        others = {work.stream for each in launched for work in each.work if not fnmatchcase(work.name, name)}
        return _each_work(
            lambda work: (
                replace(work, stream=100 + work.stream)
                if fnmatchcase(work.name, name) and work.stream in others
                else work
            ),
            in_graphs=False,
        )(program)

    return changed


def fused_optimizer(name: str = "Optimizer.step*") -> Change:
    """A tenth of the host's time in ranges with such a name is left, and none of it in launches."""

    def changed(program: Program) -> Program:
        left: list[Operation] = []
        opened: list[bool] = []  # all ranges, as the optimizer runs while no other thread does
        for operation in program.operations:
            if isinstance(operation, Enter):
                opened.append(fnmatchcase(operation.name, name))
            elif isinstance(operation, Leave):
                opened.pop()
            elif any(opened):
                operation = _times(operation, 0.0 if isinstance(operation, Launch) else 0.1)
            left.append(operation)
        return replace(program, operations=tuple(left))

    return changed


def communication(factor: float) -> Change:
    """Collectives take so many times as long."""
    return _work("communication", factor)


def without(name: str, keep_ns: int = 0) -> Change:
    """Of the host's time in each outermost range with such a name, only the first so many ns are left."""

    def changed(program: Program) -> Program:
        left: list[Operation] = []
        thread, opened = MAIN, dict[int, list[bool]]()
        kept = dict[int, int]()  # of the range that is open on a thread
        for operation in program.operations:
            inside = opened.setdefault(thread, [])
            if isinstance(operation, Enter):
                matches = fnmatchcase(operation.name, name)
                if matches and not any(inside):
                    kept[thread] = keep_ns
                inside.append(matches)
            elif isinstance(operation, Leave):
                inside.pop()
            elif any(inside):
                ns = min(_host_ns(operation), kept[thread])
                kept[thread] -= ns
                operation = _lasting(operation, ns)
            if isinstance(operation, HandOver):
                thread = operation.thread
            left.append(operation)
        return replace(program, operations=tuple(left))

    return changed


def syncs(name: str | None = None) -> Change:
    """Calls with such a name do not wait; without one, all but those that wait for the whole device."""

    def chosen(operation: Synchronise | Launch | Allocate) -> bool:
        return (
            operation.name != "cudaDeviceSynchronize" if name is None else fnmatchcase(operation.name, name)
        )

    def changed(operation: Operation) -> Operation:
        match operation:
            case Synchronise() | Allocate() if chosen(operation):
                return replace(operation, waits=False)
            case Launch() if chosen(operation):
                return replace(operation, blocking=False)
        return operation

    return _each(changed)


def allocator() -> Change:
    """Calls that allocate or free memory cost nothing and wait for nothing."""
    return _each(
        lambda operation: (
            replace(operation, own_ns=0, waits=False) if isinstance(operation, Allocate) else operation
        )
    )


def together(*changes: Change) -> Change:
    """All of them, one after the other."""
    return lambda program: reduce(lambda changed, change: change(changed), changes, program)


def later(change: Change, since: int, under_way: Set[int]) -> Change:
    """The change if it comes only with operation `since`.

    Args:
        under_way: the launches before, whose work was not done by then: it runs changed, too.
    """

    def changed(program: Program) -> Program:
        operations = list(change(program).operations)
        for index, before in enumerate(program.operations[:since]):
            after = operations[index]
            if index in under_way and isinstance(before, Launch) and isinstance(after, Launch):
                before = replace(before, work=after.work)
            operations[index] = before
        return replace(program, operations=tuple(operations))

    return changed


def _each(change: Callable[[Operation], Operation]) -> Change:
    return lambda program: replace(program, operations=tuple(map(change, program.operations)))


def _each_work(change: Callable[[Work], Work], in_graphs: bool = True) -> Change:
    return _each(
        lambda operation: (
            replace(operation, work=tuple(map(change, operation.work)))
            if isinstance(operation, Launch) and (in_graphs or len(operation.work) == 1)
            else operation
        )
    )


def _at_most(longest: Callable[[Work], int]) -> Change:
    return _each_work(lambda work: replace(work, ns=min(work.ns, longest(work))))


def _work(kind: str, factor: float, name: str = "*") -> Change:
    def changed(operation: Operation) -> Operation:
        if not isinstance(operation, Launch):
            return operation
        return replace(
            operation,
            work=tuple(
                replace(work, ns=_rounded(work.ns * factor))
                if work.kind == kind and fnmatchcase(work.name, name)
                else work
                for work in operation.work
            ),
        )

    return _each(changed)


def _times(operation: Operation, factor: float) -> Operation:
    return _lasting(operation, _rounded(_host_ns(operation) * factor))


def _host_ns(operation: Operation) -> int:
    """The time of the host that an operation takes by itself."""
    match operation:
        case Spend(ns) | HandOver(_, ns):
            return ns
        case Call() | Allocate() | Launch() | Record() | Wait() | Synchronise():
            return operation.own_ns
    return 0


def _lasting(operation: Operation, ns: int) -> Operation:
    """The operation if it takes the host this long."""
    match operation:
        case Spend() | HandOver():
            return replace(operation, ns=ns)
        case Call() | Allocate() | Launch() | Record() | Wait() | Synchronise():
            return replace(operation, own_ns=ns)
    return operation


def _rounded(ns: float) -> int:
    return math.floor(ns + 0.5)
