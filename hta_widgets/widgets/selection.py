"""`Selection`: what the user is looking at, shared by all parts.

Parts never communicate with each other directly: each links its traits to the `Selection`'s traits of the
same name, and any code that has the `Selection`, such as a notebook cell, can read and set it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import traitlets as t

from hta_widgets.engine import UI_LOCK
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.history import History

T = TypeVar("T")

FARTHEST_NS = 1 << 53
"""104 days, the largest whole number that the browser holds exactly; sums over ranks stay below 64 bits."""

MOST_FLAGS = 1000
LONGEST_NOTE = 1000


class Parsed(t.TraitType[T, Any]):
    """A trait whose values are what `parsed` makes of those that are set; None stands for its default."""

    def validate(self, obj: t.HasTraits, value: Any) -> T:
        if value is None:
            return self.default_value
        try:
            return self.parsed(value)
        except (TypeError, ValueError, OverflowError):
            self.error(obj, value)

    def parsed(self, value: Any) -> T:
        """The value.

        Raises:
            TypeError, ValueError, OverflowError: it is none that the trait can have.
        """
        raise NotImplementedError


class Integers(Parsed[tuple[int, ...]]):
    """Distinct integers, ascending; `()` means all. Takes an iterable of integers, an integer, or None."""

    info_text = "an iterable of integers"
    default_value = ()

    def parsed(self, value: Any) -> tuple[int, ...]:
        items = [value] if isinstance(value, int | bytes) else value
        return tuple(sorted({_integer(item) for item in items}))


class Whole(t.Int[Any, Any]):
    """A whole number; no bool is one, though Python counts with them."""

    def validate(self, obj: t.HasTraits, value: Any) -> Any:
        if isinstance(value, bool):
            self.error(obj, value)
        return super().validate(obj, value)


class Names(Parsed[tuple[str, ...]]):
    """Distinct texts, ascending; `()` means all. Takes an iterable of strings, a string, or None."""

    info_text = "an iterable of strings"
    default_value = ()

    def parsed(self, value: Any) -> tuple[str, ...]:
        items = [value] if isinstance(value, str) else list(value)
        _require(all(isinstance(item, str) for item in items))
        return tuple(sorted({str(item) for item in items}))


class Window(Parsed[tuple[int, int] | None]):
    """`(start, end)` in ns relative to the job's start, or None for all time. Swapped if end comes first."""

    info_text = "None or a pair of nanoseconds (start, end), at most 2**53, of which end differs from start"
    default_value = None

    def parsed(self, value: Any) -> tuple[int, int]:
        edges = [round(float(edge)) if isinstance(edge, float) else _integer(edge) for edge in value]
        start, end = sorted(edges)
        _require(start != end and max(-start, end) <= FARTHEST_NS)
        return start, end


class Focus(Parsed[tuple[int, int] | None]):
    """The focused event: `(rank, event_id)`, or None."""

    info_text = "None or a pair (rank, event_id)"
    default_value = None

    def parsed(self, value: Any) -> tuple[int, int]:
        rank, event_id = map(_integer, value)
        _require(rank >= 0 and event_id >= 0)
        return rank, event_id


class Gap(Parsed[tuple[int, int, int] | None]):
    """A moment at which a stream runs nothing: `(rank, stream, time in ns)`, or None."""

    info_text = "None or a triple (rank, stream, time_ns), at most 2**53"
    default_value = None

    def parsed(self, value: Any) -> tuple[int, int, int]:
        rank, stream, time_ns = map(_integer, value)
        _require(rank >= 0 and max(abs(stream), abs(time_ns)) <= FARTHEST_NS)
        return rank, stream, time_ns


class LaneGap(Parsed[tuple[int, int] | None]):
    """A moment on a lane of a timeline: `(lane, time in ns)`, or None."""

    info_text = "None or a pair (lane, time_ns), at most 2**53"
    default_value = None

    def parsed(self, value: Any) -> tuple[int, int]:
        lane, time_ns = map(_integer, value)
        _require(lane >= 0 and abs(time_ns) <= FARTHEST_NS)
        return lane, time_ns


class Flags(Parsed[tuple[tuple[int, str], ...]]):
    """Moments with a note: `(time in ns, note)`, in their order; of one moment the last note counts."""

    info_text = f"at most {MOST_FLAGS} pairs (time_ns, note), at most 2**53 and {LONGEST_NOTE} characters"
    default_value = ()

    def parsed(self, value: Any) -> tuple[tuple[int, str], ...]:
        flags = {_integer(time_ns): note for time_ns, note in value}
        _require(len(flags) <= MOST_FLAGS)
        for time_ns, note in flags.items():
            _require(isinstance(note, str) and len(note) <= LONGEST_NOTE and abs(time_ns) <= FARTHEST_NS)
        return tuple(sorted(flags.items()))


class Guarded(t.HasTraits):
    """Changes its traits under `UI_LOCK`: two threads that set traits at once would lose notifications."""

    def __setattr__(self, name: str, value: Any) -> None:
        with UI_LOCK:
            super().__setattr__(name, value)


class Selection(Guarded):
    """Ranks, iterations, a window of time, streams, chosen events, and a focused event or gap.

    `ranks`, `iterations`, `window` and `streams` select a part of the job: breakdowns follow them. `names`,
    `query` and `focus` choose events within it: these are highlighted in the timeline and filter tables of
    events, but do not change breakdowns. Nor does `gap`: an event or a gap is looked at, whichever came last.
    `flags` are the reader's notes on the timeline: they select nothing, and `clear()` keeps them.

    Every trait can be read, set and observed, and every change but those of `focus` and `gap` can be undone:

    >>> selection = Selection(ranks=[1, 0])
    >>> selection.ranks
    (0, 1)
    >>> selection.ranks = 3
    >>> selection.undo()
    >>> selection
    Selection(ranks=(0, 1))
    """

    ranks = Integers(help="ranks; () means all")
    iterations = Integers(help="iterations; () means all")
    window = Window(help="(start, end) in ns relative to the job's start; None means all time")
    streams = Integers(help="device streams; () means all")
    names = Names(help="exact names of the chosen events; () means all")
    query = t.Unicode("", help="text to search for in the names of events")
    focus = Focus(help="(rank, event_id) of the event looked at, or None")
    gap = Gap(help="(rank, stream, time_ns): the gap of a stream that is looked at, or None")
    flags = Flags(help="(time_ns, note) of each flagged moment")

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.history = History(self, [name for name in self.traits() if name not in ("focus", "gap")])
        self.observe(self._look_at, ["focus", "gap"])

    def _look_at(self, change: Any) -> None:
        if change["new"] is not None:
            setattr(self, "gap" if change["name"] == "focus" else "focus", None)

    @property
    def scope(self) -> Scope:
        """The selection as an immutable value for analyses, without the traits that only choose events."""
        return self.scope_without(())

    def scope_without(self, names: Iterable[str]) -> Scope:
        """The scope as if the named traits selected all: a selector must not filter itself away."""
        with UI_LOCK:
            parts: dict[str, Any] = {
                "ranks": self.ranks or None,
                "iterations": self.iterations or None,
                "window_ns": self.window,
                "streams": self.streams or None,
            }
        left_out = {"window_ns" if name == "window" else name for name in names}
        return Scope(**{name: value for name, value in parts.items() if name not in left_out})

    def to_dict(self) -> dict[str, Any]:
        """The traits that select something, as keywords for `Selection`."""
        with UI_LOCK:
            values = {name: getattr(self, name) for name in self.traits()}
        return {name: value for name, value in values.items() if value not in ((), None, "")}

    def clear(self) -> None:
        """Select everything."""
        with UI_LOCK, self.hold_trait_notifications():
            for name, trait in self.traits().items():
                if name != "flags":
                    setattr(self, name, trait.default_value)

    @property
    def can_undo(self) -> bool:
        """Whether there is something to undo."""
        return self.history.can_undo

    @property
    def can_redo(self) -> bool:
        """Whether there is something to redo."""
        return self.history.can_redo

    def undo(self) -> None:
        """Undo the last action; changes under `hold_trait_notifications()` are one action."""
        self.history.undo()

    def redo(self) -> None:
        """Redo the action that `undo()` has undone."""
        self.history.redo()

    def __repr__(self) -> str:
        return f"Selection({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"


def _require(possible: bool) -> None:
    if not possible:
        raise ValueError


def _integer(value: Any) -> int:
    """An int of 64 bits from anything that equals one (numpy integers, 3.0 from JSON); no bool is one."""
    number = int(value)
    if isinstance(value, str | bytes | bool) or number != value or not -(1 << 63) < number < 1 << 63:
        raise ValueError(value)
    return number
