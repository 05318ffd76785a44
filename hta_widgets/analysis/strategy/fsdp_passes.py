"""Which FSDP unit each all-gather, kernel and reduction belongs to, by the ranges that FSDP records.

PyTorch's `fully_shard` names units: `FSDP::all_gather (layers.3)`. `FullyShardedDataParallel` does not: there
units are told by order. Forward passes nest as modules do; backward passes begin in the reverse of the order
in which forward passes ended, and each ends with its post-backward hook.
(torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and torch/distributed/fsdp/_runtime_utils.py)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.stacks import PREFIX
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

FORWARD: Final = "forward"
BACKWARD: Final = "backward"
ROOT: Final = "(root)"
"""`fully_shard` names no unit in the ranges of the outermost module."""

FULLY_SHARD: Final = "FSDP::"
RANGES: Final = (FULLY_SHARD, "FullyShardedDataParallel.")
"""How the names of FSDP's own ranges begin: those of `fully_shard`, and of the wrapper."""

RECORD: Final = (
    "Record a job that is sharded by fully_shard or FullyShardedDataParallel, with torch.profiler.profile("
    "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]): they record ranges of their own."
)

_RANGE = re.compile(r"^(?:FSDP::|FullyShardedDataParallel\._?)(\w+)(?: \((.+)\)| for .*)?$")
_PREFETCH = re.compile(r"prefetch")
# Ranges of the unit's own turn in which it gathers, and those in which it reduces its gradient.
_TURN = frozenset(("pre_forward", "pre_backward", "pre_backward_hook"))
_REDUCES = frozenset(("post_backward_reduce", "post_backward_hook"))
_ENDS_BACKWARD = frozenset(("root_post_backward_callback", "post_backward_final_callback"))
_WRAPPER = f"{PREFIX}FullyShardedDataParallel_"


@dataclass(eq=False)
class UnitPass:
    """One turn of a unit: its forward or its backward."""

    unit: int  # its number, in the order of forward
    name: str  # what the recording calls it
    phase: str  # `FORWARD` or `BACKWARD`
    opened_ns: int  # when its turn began on the host
    run: int  # the number of the forward pass of the whole model that it is part of, or goes back through
    # positions in the collectives
    gathers: list[int] = field(default_factory=list)
    reductions: list[int] = field(default_factory=list)
    ahead: set[int] = field(default_factory=set)  # those gathers sent for in others' turns


@dataclass(frozen=True)
class Passes:
    """The turns of a rank's units."""

    passes: list[UnitPass]  # in the order in which they began
    why: str  # why some turns are left out; "" if none is
    _switches: dict[int, tuple[Int64, Int64]]

    def of_launches(self, rank_trace: RankTrace, calls: Int64) -> Int64:
        """int64 position of the turn in which each call was made, -1 for none."""
        found = np.full(len(calls), -1, np.int64)
        for thread, (times, owner) in self._switches.items():
            mine = np.flatnonzero((calls >= 0) & (rank_trace.thread[calls] == thread))
            at = np.searchsorted(times, rank_trace.start[calls[mine]], side="right") - 1
            found[mine] = np.where(at >= 0, owner[at], -1)
        return found


class _Range(NamedTuple):
    """A range of FSDP: what it does, and the unit that it names ("" for none)."""

    kind: str
    unit: str
    row: int


def names_ranges(rank_trace: RankTrace) -> bool:
    """Whether a rank has any name of FSDP's ranges; without one it has no turns of units."""
    return any(_RANGE.match(name) for name in rank_trace.names)


def gather_ranges(rank_trace: RankTrace) -> Intervals:
    """When `fully_shard` prepares and issues all-gathers."""
    rows = np.array([each.row for each in _ranges(rank_trace) if each.kind == "all_gather"], np.int64)
    return Intervals.union(rank_trace.start[rows], rank_trace.end[rows])


def passes_of(rank_trace: RankTrace, collectives: pd.DataFrame, rows: Int64) -> Passes | None:
    """The turns of a rank's units; None if FSDP recorded no range.

    Args:
        collectives: its rows of `collectives`; rows: their positions in the rank.
    """
    ranges = list(_ranges(rank_trace))
    if not ranges:
        return None
    by_name = any(_is_fully_shard(rank_trace, each) for each in ranges)
    if not by_name and not any(each.kind == "pre_forward" for each in ranges):
        return Passes([], "PyTorch before 2.1 does not mark a unit's own all-gather", {})
    walk = _Walk(rank_trace, collectives, by_name)
    moments: list[tuple[int, int, int, _Range | int]] = []
    for each in ranges:
        # what ends comes before what begins, and of ranges that begin together the outer one first
        begin, end = int(rank_trace.start[each.row]), int(rank_trace.end[each.row])
        moments += [(begin, 1, -end, each), (end, 0, -begin, each)]
    launch = rank_trace.issuer[rows]
    for at in np.flatnonzero(launch >= 0).tolist():
        moments.append((int(rank_trace.start[launch[at]]), 2, 0, at))
    for time, order, _, what in sorted(moments, key=lambda moment: moment[:3]):
        if isinstance(what, _Range):
            walk.begin(time, what) if order else walk.end(time, what)
        else:
            walk.launched(what, int(rank_trace.thread[launch[what]]))
    return walk.finished()


def _ranges(rank_trace: RankTrace) -> Iterator[_Range]:
    known = {code: found for code, name in enumerate(rank_trace.names) if (found := _RANGE.match(name))}
    chosen = np.isin(rank_trace.name, list(known)) & rank_trace.on_host
    chosen &= np.isin(rank_trace.event_class, (EventClass.ANNOTATION, EventClass.HOST_OP))
    for row in np.flatnonzero(chosen).tolist():
        found = known[int(rank_trace.name[row])]
        yield _Range(found[1], found[2] or "", row)


def _is_fully_shard(rank_trace: RankTrace, what: _Range) -> bool:
    return str(rank_trace.names[rank_trace.name[what.row]]).startswith(FULLY_SHARD)


class _Walk:
    """Follows the ranges of a rank in time. Each thread has its open ranges and the turns that are open."""

    def __init__(self, rank_trace: RankTrace, collectives: pd.DataFrame, by_name: bool) -> None:
        self._rank_trace, self._by_name = rank_trace, by_name
        self._operation = collectives["collective"].tolist()
        self._elements = {
            column: collectives[column].fillna(-1).astype(np.int64).tolist()
            for column in ("in_elements", "out_elements")
        }
        self._passes: list[UnitPass] = []
        self._open: dict[int, list[_Range]] = {}
        self._turns: dict[int, list[int]] = {}
        self._switches: dict[int, list[tuple[int, int]]] = {}
        self._numbers: dict[str, int] = {}
        self._nameless = False  # units within units have the same name
        self._run = -1
        self._next = 0  # the number of the unit that comes next in this forward pass
        self._done: list[int] = []  # forward turns that ended, and have had no backward
        self._pending: list[tuple[int, str]] = []  # gathers that were sent for ahead, and for which unit

    def begin(self, time: int, what: _Range) -> None:
        thread = int(self._rank_trace.thread[what.row])
        self._open.setdefault(thread, []).append(what)
        turns = self._turns.setdefault(thread, [])
        recomputed = any(self._passes[turn].phase == BACKWARD for turn in turns)
        # `fully_shard` records what comes before and after a unit's forward, the wrapper all of it.
        if what.kind == ("pre_forward" if self._by_name else "forward") and not recomputed:
            self._nameless |= any(self._passes[turn].name == (what.unit or ROOT) for turn in turns)
            if not turns and self._is_new_run(what):
                self._run, self._next = self._run + 1, 0
            turns.append(self._opened(what, FORWARD, time))
        elif what.kind in ("pre_backward", "pre_backward_hook"):
            turns.append(self._opened(what, BACKWARD, time))
        elif what.kind == "post_backward_reduce":
            last = self._last(what.unit if self._by_name else None, BACKWARD)
            if last >= 0:
                turns.append(last)
        self._switched(thread, time)

    def _is_new_run(self, what: _Range) -> bool:
        """Whether a forward pass of the whole model begins with this outermost turn.

        `fully_shard` records no range of an outermost module without parameters of its own: units then follow
        each other, until a backward pass begins, or one of them comes again.
        """
        if not self._by_name or not self._passes or self._passes[-1].phase == BACKWARD:
            return True
        this = (each.name for each in self._passes if each.run == self._run and each.phase == FORWARD)
        return (what.unit or ROOT) in this

    def end(self, time: int, what: _Range) -> None:
        thread = int(self._rank_trace.thread[what.row])
        if what in (ranges := self._open.get(thread, [])):
            ranges.remove(what)
        turns = self._turns.setdefault(thread, [])
        if what.kind == ("post_forward" if self._by_name else "forward"):
            self._close(turns, what, FORWARD)
        elif what.kind in ("post_backward_reshard", "post_backward_hook", "post_backward_reduce"):
            self._close(turns, what, BACKWARD)
        elif what.kind in _ENDS_BACKWARD:
            turns[:] = [turn for turn in turns if self._passes[turn].phase == FORWARD]
            self._pending = [sent for sent in self._pending if sent[1]]
        self._switched(thread, time)

    def launched(self, at: int, thread: int) -> None:
        """A collective was launched."""
        ranges, turns = self._open.get(thread, []), self._turns.get(thread, [])
        kinds = [each.kind for each in ranges]
        if self._operation[at] == "allgather":
            named = [each.unit for each in ranges if each.kind == "all_gather"]
            if any(map(_PREFETCH.search, kinds)):
                self._pending.append((at, named[-1] or ROOT if self._by_name and named else ""))
            elif turns and _TURN.intersection(kinds):
                self._passes[turns[-1]].gathers.append(at)
            elif self._by_name and named:  # the program itself calls unshard()
                self._pending.append((at, named[-1] or ROOT))
        elif turns and _REDUCES.intersection(kinds) and self._passes[turns[-1]].phase == BACKWARD:
            self._passes[turns[-1]].reductions.append(at)

    def finished(self) -> Passes:
        kept, why = self._identified()
        position = {turn: place for place, turn in enumerate(kept)}
        switches = {
            thread: (
                np.array([time for time, _ in changes], np.int64),
                np.array([position.get(turn, -1) for _, turn in changes], np.int64),
            )
            for thread, changes in self._switches.items()
        }
        return Passes([self._passes[turn] for turn in kept], why, switches)

    def _opened(self, what: _Range, phase: str, time: int) -> int:
        """A new turn; it has the gathers that were sent for ahead for its unit."""
        turn, run = len(self._passes), self._run
        if self._by_name:
            name = what.unit or ROOT
            unit = self._numbers.setdefault(name, len(self._numbers))
        elif phase == FORWARD:
            unit, self._next = self._next, self._next + 1
            name = f"unit {unit}"
        else:
            forward = self._passes[self._done.pop()] if self._done else None
            unit, run = (forward.unit, forward.run) if forward else (-1, -1)
            name = f"unit {unit}"
        made = UnitPass(unit, name, phase, time, run)
        self._passes.append(made)
        if (ahead := self._sent_for(made)) is not None:
            made.gathers.append(ahead)
            made.ahead.add(ahead)
        return turn

    def _sent_for(self, made: UnitPass) -> int | None:
        """The oldest gather that was sent for ahead and may be for this unit: by its name, else its size."""
        size = self._size_of(made.unit)
        for place, (at, unit) in enumerate(self._pending):
            fits = unit == made.name if unit else size in (-1, self._elements["out_elements"][at])
            if fits:
                del self._pending[place]
                return at
        return None

    def _size_of(self, unit: int) -> int:
        """Elements of a unit's last gather in its own turn, -1 if there is none."""
        for other in reversed(self._passes):
            if other.unit == unit and (own := [at for at in other.gathers if at not in other.ahead]):
                return self._elements["out_elements"][own[-1]]
        return -1

    def _last(self, name: str | None, phase: str) -> int:
        """The latest turn of a unit, or of any if its name is None; -1 if there is none."""
        for turn in range(len(self._passes) - 1, -1, -1):
            each = self._passes[turn]
            if each.phase == phase and (name is None or each.name == (name or ROOT)):
                return turn
        return -1

    def _close(self, turns: list[int], what: _Range, phase: str) -> None:
        """End the innermost turn, or that of the unit that the range names."""
        for place in range(len(turns) - 1, -1, -1):
            each = self._passes[turns[place]]
            if each.phase == phase and (not self._by_name or each.name == (what.unit or ROOT)):
                if phase == FORWARD:
                    self._done.append(turns[place])
                del turns[place]
                return

    def _switched(self, thread: int, time: int) -> None:
        turns = self._turns[thread]
        self._switches.setdefault(thread, []).append((time, turns[-1] if turns else -1))

    def _identified(self) -> tuple[list[int], str]:
        """The turns whose unit is certain, and why others are not."""
        everything = list(range(len(self._passes)))
        if self._by_name:
            return ([], "PyTorch before 2.5 does not name the units") if self._nameless else (everything, "")
        count = Counter(each.run for each in self._passes if each.phase == FORWARD)
        whole = max(count.values(), default=0)
        kept = [turn for turn in everything if count[self._passes[turn].run] == whole > 0]
        odd = self._of_other_sizes(kept)
        why = "all-gathers and reductions of a unit have other sizes in other passes" if odd else ""
        if not odd and len(kept) < len(everything):
            why = "not all of their forward pass was recorded"
        kept = [turn for turn in kept if self._passes[turn].unit not in odd]
        return self._with_modules(kept), why

    def _of_other_sizes(self, turns: list[int]) -> set[int]:
        """Units that do not always have the same size: then turns are not what their order says."""
        sizes: dict[int, set[int]] = {}
        for turn in turns:
            each = self._passes[turn]
            for at in each.gathers:
                sizes.setdefault(each.unit, set()).add(self._elements["out_elements"][at])
            for at in each.reductions:
                if self._operation[at] == "reduce_scatter":
                    sizes.setdefault(each.unit, set()).add(self._elements["in_elements"][at])
        return {unit for unit, found in sizes.items() if len(found - {-1}) > 1}

    def _with_modules(self, turns: list[int]) -> list[int]:
        """Name units by the module that they wrap, where the Python stack was recorded."""
        rank_trace = self._rank_trace
        module = np.array(
            [name.startswith(PREFIX) and not name.startswith(_WRAPPER) for name in rank_trace.names]
            or [False]
        )
        rows = np.flatnonzero(module[rank_trace.name] & (rank_trace.event_class == EventClass.PYTHON))
        rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
        starts = rank_trace.start[rows]
        names: dict[int, str] = {}
        for place, turn in enumerate(turns, 1):
            each = self._passes[turn]
            at = int(np.searchsorted(starts, each.opened_ns))
            until = self._passes[turns[place]].opened_ns if place < len(turns) else np.inf
            if each.phase == FORWARD and at < len(rows) and starts[at] < until:
                name = rank_trace.names[rank_trace.name[rows[at]]].removeprefix(PREFIX)
                names.setdefault(each.unit, f"unit {each.unit} ({name})")
        for turn in turns:
            each = self._passes[turn]
            each.name = names.get(each.unit, each.name)
        return turns
