"""`Selection`: what the user is looking at, shared by all parts.

Parts never communicate with each other directly: each links its traits to the `Selection`'s traits of the
same name, and any code that has the `Selection`, such as a notebook cell, can read and set it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import traitlets as t

from hta_widgets.engine import UI_LOCK
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.history import History

FARTHEST_NS = 1 << 53
"""104 days, the largest whole number that the browser holds exactly; sums over ranks stay below 64 bits."""

MOST_FLAGS = 1000
LONGEST_NOTE = 1000


class Integers(t.TraitType[tuple[int, ...], Any]):
    """Distinct integers, ascending; `()` means all. Takes an iterable of integers, an integer, or None."""

    info_text = "an iterable of integers"
    default_value = ()

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[int, ...]:
        if value is None:
            return ()
        try:
            items = [value] if isinstance(value, int | bytes) else list(value)
            return tuple(sorted({_integer(item) for item in items}))
        except (TypeError, ValueError, OverflowError):
            self.error(obj, value)


class Whole(t.Int[Any, Any]):
    """A whole number; no bool is one, though Python counts with them."""

    def validate(self, obj: t.HasTraits, value: Any) -> Any:
        if isinstance(value, bool):
            self.error(obj, value)
        return super().validate(obj, value)


class Names(t.TraitType[tuple[str, ...], Any]):
    """Distinct texts, ascending; `()` means all. Takes an iterable of strings, a string, or None."""

    info_text = "an iterable of strings"
    default_value = ()

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[str, ...]:
        if value is None:
            return ()
        try:
            items = [value] if isinstance(value, str) else list(value)
        except TypeError:
            self.error(obj, value)
        if not all(isinstance(item, str) for item in items):
            self.error(obj, value)
        return tuple(sorted({str(item) for item in items}))


class Window(t.TraitType[tuple[int, int] | None, Any]):
    """`(start, end)` in ns relative to the job's start, or None for all time. Swapped if end comes first."""

    info_text = "None or a pair of nanoseconds (start, end), at most 2**53, of which end differs from start"
    default_value = None

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[int, int] | None:
        if value is None:
            return None
        try:
            start, end = sorted(
                round(float(edge)) if isinstance(edge, float) else _integer(edge) for edge in value
            )
        except (TypeError, ValueError, OverflowError):
            self.error(obj, value)
        if start == end or max(-start, end) > FARTHEST_NS:
            self.error(obj, value)
        return start, end


class Focus(t.TraitType[tuple[int, int] | None, Any]):
    """The focused event: `(rank, event_id)`, or None."""

    info_text = "None or a pair (rank, event_id)"
    default_value = None

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[int, int] | None:
        if value is None:
            return None
        try:
            rank, event_id = (_integer(item) for item in value)
        except (TypeError, ValueError, OverflowError):
            self.error(obj, value)
        if rank < 0 or event_id < 0:
            self.error(obj, value)
        return rank, event_id


class Gap(t.TraitType[tuple[int, int, int] | None, Any]):
    """A moment at which a stream runs nothing: `(rank, stream, time in ns)`, or None."""

    info_text = "None or a triple (rank, stream, time_ns), at most 2**53"
    default_value = None

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[int, int, int] | None:
        if value is None:
            return None
        try:
            rank, stream, time_ns = (_integer(item) for item in value)
        except (TypeError, ValueError, OverflowError):
            self.error(obj, value)
        if rank < 0 or max(abs(stream), abs(time_ns)) > FARTHEST_NS:
            self.error(obj, value)
        return rank, stream, time_ns


class LaneGap(t.TraitType[tuple[int, int] | None, Any]):
    """A moment on a lane of a timeline: `(lane, time in ns)`, or None."""

    info_text = "None or a pair (lane, time_ns), at most 2**53"
    default_value = None

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[int, int] | None:
        if value is None:
            return None
        try:
            lane, time_ns = (_integer(item) for item in value)
        except (TypeError, ValueError, OverflowError):
            self.error(obj, value)
        if lane < 0 or abs(time_ns) > FARTHEST_NS:
            self.error(obj, value)
        return lane, time_ns


class Flags(t.TraitType[tuple[tuple[int, str], ...], Any]):
    """Moments with a note: `(time in ns, note)`, in their order; of one moment the last note counts."""

    info_text = f"at most {MOST_FLAGS} pairs (time_ns, note), at most 2**53 and {LONGEST_NOTE} characters"
    default_value = ()

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[tuple[int, str], ...]:
        try:
            flags = {_integer(time_ns): note for time_ns, note in value or ()}
        except (TypeError, ValueError, OverflowError):
            self.error(obj, value)
        if len(flags) > MOST_FLAGS or not all(
            isinstance(note, str) and len(note) <= LONGEST_NOTE and abs(time_ns) <= FARTHEST_NS
            for time_ns, note in flags.items()
        ):
            self.error(obj, value)
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


def _integer(value: Any) -> int:
    """An int of 64 bits from anything that equals one (numpy integers, 3.0 from JSON); no bool is one."""
    number = int(value)
    if isinstance(value, str | bytes | bool) or number != value or not -(1 << 63) < number < 1 << 63:
        raise ValueError(value)
    return number
