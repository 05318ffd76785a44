"""The calls around an event and in it: callers, callees, operator, module and Python functions."""

from __future__ import annotations

import re

import numpy as np

from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.inspect.record import EventRef, Frame
from hta_widgets.analysis.inspect.refs import ref
from hta_widgets.analysis.operators.calls import module_calls, operator_calls
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

_FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): (?P<function>.+)$", re.DOTALL)


def callers(rank_trace: RankTrace, row: int) -> list[int]:
    """The rows around a row, innermost first: calls and annotations on its thread.

    Of device work: its launching call, and those around that.
    """
    parent = stacks(rank_trace, False).parent
    found = []
    row = int(parent[row])
    while row >= 0:
        found.append(row)
        row = int(parent[row])
    return found


def callees(rank_trace: RankTrace, row: int) -> Int64:
    """The rows that a call is the caller of, device work that it launched left out."""
    return np.flatnonzero((stacks(rank_trace, False).parent == row) & ~rank_trace.is_device)


def self_ns(rank_trace: RankTrace, row: int) -> int:
    """The time of a call in which no call that it made was open; all of that of anything else."""
    tree = stacks(rank_trace, False)
    inside = tree.depth[row] >= 0 and not rank_trace.is_device[row]
    return int(tree.self_ns[row] if inside else rank_trace.dur[row])


def work_in(rank_trace: RankTrace, row: int) -> Int64:
    """The device work that a call, and the calls in it, launched."""
    parent = stacks(rank_trace, False).parent
    work = rank_trace.launched
    near = np.zeros(len(work), np.bool_)
    for call in (rank_trace.launch[work], rank_trace.issuer[work]):
        near |= (
            (rank_trace.thread[call] == rank_trace.thread[row])
            & (rank_trace.start[call] >= rank_trace.start[row])
            & (rank_trace.start[call] <= rank_trace.end[row])
        )
    work = work[near]
    call = rank_trace.launch[work].astype(np.int64)
    found = call == row
    while (open_ := ~found & (call >= 0)).any():
        call[open_] = parent[call[open_]]
        found |= call == row
    return work[found]


def operator_of(rank_trace: RankTrace, row: int) -> int:
    """The operator that a row is, ran in, or was launched by; -1 for none.

    As in `operators`, one that is all that a caller of its name does is part of that.
    """
    calls = operator_calls(rank_trace)
    at = int(calls.around[row])
    return int(calls.rows[at]) if at >= 0 else -1


def module_of(rank_trace: RankTrace, row: int) -> int:
    """The call of the `nn.Module` that a row ran in or was launched by; -1 for none.

    What autograd runs belongs to the module of the forward operator that it differentiates.
    """
    modules, of_operator = module_calls(rank_trace)
    operator = int(operator_calls(rank_trace).around[row])
    at = int(of_operator[operator]) if operator >= 0 else int(modules.around[row])
    return int(modules.rows[at]) if at >= 0 else -1


def partners(rank_trace: RankTrace, around: list[int]) -> tuple[int, Int64]:
    """The forward operator that a row, or the next call around it with one, differentiates (-1: none), and
    the backward operators that differentiate it, or the next call around it that has any.
    """
    forward = next((int(rank_trace.forward[row]) for row in around if rank_trace.forward[row] >= 0), -1)
    if forward >= 0:
        return forward, np.empty(0, np.int64)
    operators = [row for row in around if rank_trace.event_class[row] == EventClass.HOST_OP]
    differentiated = np.isin(rank_trace.forward, operators)
    for row in operators if differentiated.any() else ():
        backward = np.flatnonzero(rank_trace.forward == row)
        if len(backward):
            return -1, backward
    return -1, np.empty(0, np.int64)


def python_of(rank_trace: RankTrace, around: list[int]) -> tuple[Frame, ...]:
    """The Python functions among rows, innermost first; where none is recorded, the stack that an operator
    among them carries.
    """
    frames = [row for row in around if rank_trace.event_class[row] == EventClass.PYTHON]
    if frames:
        return tuple(_frame(ref(rank_trace, row).name, ref(rank_trace, row)) for row in frames)
    codes = rank_trace.argument_codes("call_stack") if rank_trace.table.has("call_stack") else None
    code = -1 if codes is None else next((int(codes[row]) for row in around if codes[row] >= 0), -1)
    if code < 0:
        return ()
    texts = rank_trace.table.dictionary("call_stack")[code].split(";")
    return tuple(_frame(text.strip(), None) for text in texts if text.strip())


def _frame(text: str, event: EventRef | None) -> Frame:
    found = _FRAME.match(text)
    if not found:
        return Frame(text, "", 0, text, event)
    return Frame(text, found["file"], int(found["line"]), found["function"], event)
