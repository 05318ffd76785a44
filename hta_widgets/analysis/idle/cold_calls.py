"""Calls that take long because code runs for the first time, while the device waits for them.

Four kinds: calls of the driver that load a module, as at the first launch of a kernel, create a context or
handle, map memory; compilers, of
which the recording holds Python frames or annotations; operators whose first call takes many times as long as
all others, as when a library searches for its fastest algorithm or compiles without being recorded; and the
profiler's own work, such as making room for records, which the recorder states as overhead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.libraries import LIBRARY
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.causes import IdleCauses, rows_named
from hta_widgets.arrays import Bool, Int64
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

LONG_NS: Final = 1_000_000
"""A call of the runtime returns in microseconds unless it waits for the device. One that lasts this long
while the device is idle does something else: it loads a module, creates a context or handle, maps memory."""

_DRIVER = re.compile(r"(?:cuda|hip|cu|musa|cnrt)[A-Z]")
COMPILES: Final = re.compile(
    r"\(dynamo_timed\)$|^(?:nvrtc|hiprtc)CompileProgram"
    r"|(?:^|/)torch/_dynamo/convert_frame\.py\(\d+\): "
    r"|(?:^|/)torch/_inductor/[\w/]+\.py\(\d+\): (?:\w*(?:compile(?!d)|autotune)\w*|codegen\w*|benchmark\w*)$"
    r"|(?:^|/)triton/[\w/]+\.py\(\d+\): (?:_?benchmark\w*|ast_to_ttir|make_\w+)$"
    r"|(?:jit|compiler)[\w/]*\.py\(\d+\): build\w*$"
    r"|(?<!\bre)(?<!sre_compile)(?<!re/__init__)\.py\(\d+\): "
    r"(?:_?(?:do_|jit_|nvrtc_|hiprtc_)?compile(?:_(?:inner|kernel|module|fx|fx_inner|and_load|program|source))?"
    r"|build_and_load|do_bench\w*|_bench|benchmark_all_configs)$"
)
"""Calls that run when something is compiled, or the fastest of several compiled kernels is searched for; what
only calls compiled code, such as `eval_frame._fn`, is none."""
PREPARES: Final = re.compile(
    r"^aten::(?:(?:cudnn_|miopen_|_)?conv\w*|_?mm|addmm|bmm|baddbmm|linear|matmul|_scaled\w+|_?fft\w*|linalg\w*)$"
    r"|^(?!aten::|autograd::|c10d::|torch::|record_param)\w+::\w+$"
)
"""Operators of libraries that prepare kernels at their first call."""
_TIMES, _OTHERS, _NEXT = 20, 3, 5
"""So many times the median of so many other calls, and of the next longest one."""

_PART: Final = 5
"""A call is no more than those inside it if one part in so many of its wait is theirs."""


class ColdCall(NamedTuple):
    """A call that takes long once."""

    row: int  # of the call
    kind: str  # "driver", "compiler", "profiler" or "first"
    about: str  # what is compiled, a kernel or what asks for it, "" if that is unknown; else the call's name


def cold_calls(rank_trace: RankTrace, idle: IdleCauses) -> list[ColdCall]:
    """The calls of these kinds in which the device is idle for a millisecond or more at a time, by start.

    What lies in another one of them is a part of that.
    """
    waits = idle.late_host
    found: list[ColdCall] = []
    for kind, chosen in _long_calls(rank_trace).items():
        before = np.array([call.row for call in found], np.int64)
        known = Intervals.union(rank_trace.start[before], rank_trace.end[before])
        found += _of_kind(rank_trace, kind, chosen, waits, known)
    return sorted(found, key=lambda call: int(rank_trace.start[call.row]))


@memoize_per_rank()
def _long_calls(rank_trace: RankTrace) -> dict[str, Int64]:
    """The rows of long calls of each kind, whoever waits for them, as no selection changes them."""
    rows = np.flatnonzero(rank_trace.on_host & (rank_trace.dur >= LONG_NS))
    runtime = rank_trace.event_class[rows] == EventClass.RUNTIME
    return {
        "compiler": rows[_of_names(rank_trace, rows, COMPILES.search)],
        "profiler": rows[rank_trace.event_class[rows] == EventClass.OVERHEAD],
        "driver": _without_later_launches(
            rank_trace, rows[runtime & _of_names(rank_trace, rows, _DRIVER.match)]
        ),
        "first": np.array(_first_calls(rank_trace, rows), np.int64),
    }


def _without_later_launches(rank_trace: RankTrace, rows: Int64) -> Int64:
    """Calls without those that launch one kernel, and no graph, whose name ran before: its code is there."""
    work = rank_trace.by_launch
    call, name = rank_trace.launch[work].astype(np.int64), rank_trace.name[work]
    first = np.zeros(len(rank_trace.names), np.int64)
    first[name[::-1]] = rank_trace.start[call[::-1]]
    mine = np.isin(call, rows)  # few of all
    call, name = call[mine], name[mine]
    _, of, count = np.unique(call, return_inverse=True, return_counts=True)
    return np.setdiff1d(rows, call[(count[of] == 1) & (rank_trace.start[call] > first[name])])


def _of_kind(
    rank_trace: RankTrace, kind: str, rows: Int64, waits: Intervals, known: Intervals
) -> Iterator[ColdCall]:
    """The outermost of these calls that the device waits for, but for what lies in calls that are known.

    A call around known ones is another one only if most of its time is not theirs.
    """
    windows = np.column_stack([rank_trace.start[rows], rank_trace.end[rows]])
    waited = waits.within_each(windows)
    own = (waited >= LONG_NS) & (_PART * known.within_each(windows) < waited)
    rows = rows[own]
    until: dict[int, int] = {}
    for row in rows[np.lexsort((-rank_trace.dur[rows], rank_trace.start[rows]))].tolist():
        begin, end = int(rank_trace.start[row]), int(rank_trace.end[row])
        thread = int(rank_trace.thread[row])
        inside = waits.clip(begin, end)
        if begin < until.get(thread, begin) or int((inside.end - inside.start).max()) < LONG_NS:
            continue
        until[thread] = end
        name = rank_trace.names[int(rank_trace.name[row])]
        yield ColdCall(row, kind, _compiled(rank_trace, row) if kind == "compiler" else name)


def _of_names(rank_trace: RankTrace, rows: Int64, is_wanted: Callable[[str], object]) -> Bool:
    """Whether each row has such a name; names are many, those of long calls are few."""
    codes, code = np.unique(rank_trace.name[rows], return_inverse=True)
    wanted = np.array([bool(is_wanted(rank_trace.names[each])) for each in codes.tolist()], np.bool_)
    return wanted[code] if len(rows) else np.zeros(0, np.bool_)


def _first_calls(rank_trace: RankTrace, long: Int64) -> list[int]:
    """The first calls of operators that take far longer than all others of their name."""
    long = long[rank_trace.event_class[long] == EventClass.HOST_OP]
    codes = np.unique(rank_trace.name[long[_of_names(rank_trace, long, PREPARES.match)]]).tolist()
    found = (first_call(rank_trace, rank_trace.names[code]) for code in codes)
    return [row for row in found if row is not None]


def first_call(rank_trace: RankTrace, name: str) -> int | None:
    """The row of the first call of an operator, if that takes far longer than all others of its name."""
    rows = rows_named(rank_trace, name.__eq__)
    rows = rows[rank_trace.event_class[rows] == EventClass.HOST_OP]
    rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
    others = rank_trace.dur[rows[1:]]
    if len(others) < _OTHERS or rank_trace.dur[rows[0]] < max(
        _TIMES * np.median(others), _NEXT * others.max()
    ):
        return None
    return int(rows[0])


def _compiled(rank_trace: RankTrace, row: int) -> str:
    """What a call compiles: the kernel that the library around it launches next there; else who asks."""
    begin, end = rank_trace.start[row], rank_trace.end[row]
    mine = (rank_trace.thread == rank_trace.thread[row]) & ~rank_trace.is_device
    around = np.flatnonzero(mine & (rank_trace.start <= begin) & (rank_trace.end >= end))
    names = [
        (outer, name)
        for outer in around[np.argsort(rank_trace.dur[around], kind="stable")].tolist()
        if not COMPILES.search(name := rank_trace.names[int(rank_trace.name[outer])])
    ]
    if names and LIBRARY.search(names[0][1]):
        inside = mine & (rank_trace.start >= end) & (rank_trace.end <= rank_trace.end[names[0][0]])
        work = np.flatnonzero(rank_trace.is_device & np.isin(rank_trace.launch, np.flatnonzero(inside)))
        if len(work):
            first = int(work[rank_trace.start[rank_trace.launch[work]].argmin()])
            return short_kernel_name(rank_trace.names[int(rank_trace.name[first])])
    steps = set(rank_trace.iterations["label"])
    return next((name for _, name in names if not LIBRARY.search(name) and name not in steps), "")
