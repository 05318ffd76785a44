"""What the user is looking at: one object that every part reads and writes.

The hub of the hub and spokes. A part never talks to another part: it links its own traits to the `Selection`
of the same name, and whoever holds the `Selection`, a notebook cell included, can read it or set it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import traitlets as t

from hta_widgets.engine import FRONT
from hta_widgets.trace.scope import Scope


class Integers(t.TraitType[tuple[int, ...], Any]):
    """Distinct integers, ascending; `()` means all. Takes an iterable of integers, an integer, or None."""

    info_text = "an iterable of integers"
    default_value = ()

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[int, ...]:
        if value is None:
            return ()
        try:
            items = [value] if isinstance(value, int) else list(value)
            return tuple(sorted({_integer(item) for item in items}))
        except (TypeError, ValueError):
            self.error(obj, value)


class Window(t.TraitType[tuple[int, int] | None, Any]):
    """`(start, end)` in ns relative to the job's start, or None for all time. Swapped if end comes first."""

    info_text = "None or a pair of nanoseconds (start, end) of which end differs from start"
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
        if start == end:
            self.error(obj, value)
        return start, end


class Focus(t.TraitType[tuple[int, int] | None, Any]):
    """The one event looked at: `(rank, event_id)`, or None."""

    info_text = "None or a pair (rank, event_id)"
    default_value = None

    def validate(self, obj: t.HasTraits, value: Any) -> tuple[int, int] | None:
        if value is None:
            return None
        try:
            rank, event_id = (_integer(item) for item in value)
        except (TypeError, ValueError):
            self.error(obj, value)
        return rank, event_id


class Guarded(t.HasTraits):
    """Changes its traits under `FRONT`: two threads that set traits at once would lose notifications."""

    def __setattr__(self, name: str, value: Any) -> None:
        with FRONT:
            super().__setattr__(name, value)


class Selection(Guarded):
    """Ranks, iterations, a window of time, streams, a search text and a focused event.

    Every trait can be read, set and observed:

    >>> selection = Selection(ranks=[1, 0])
    >>> selection.ranks
    (0, 1)
    >>> selection
    Selection(ranks=(0, 1))
    """

    ranks = Integers(help="ranks; () means all")
    iterations = Integers(help="iterations; () means all")
    window = Window(help="(start, end) in ns relative to the job's start; None means all time")
    streams = Integers(help="device streams; () means all")
    query = t.Unicode("", help="text to search for in the names of events")
    focus = Focus(help="(rank, event_id) of the event looked at, or None")

    @property
    def scope(self) -> Scope:
        """The selection as an immutable value that analyses take. `query` and `focus` are no part of it."""
        with FRONT:
            return Scope(
                ranks=self.ranks or None,
                iterations=self.iterations or None,
                window_ns=self.window,
                streams=self.streams or None,
            )

    def scope_without(self, names: Iterable[str]) -> Scope:
        """The scope as if the named traits selected all: a selector must not filter itself away."""
        with FRONT:
            others = {name: value for name, value in self.to_dict().items() if name not in set(names)}
        return Selection(**others).scope

    def to_dict(self) -> dict[str, Any]:
        """The traits that select something, as keywords for `Selection`."""
        with FRONT:
            values = {name: getattr(self, name) for name in self.traits()}
        return {name: value for name, value in values.items() if value not in ((), None, "")}

    def clear(self) -> None:
        """Select everything."""
        with FRONT, self.hold_trait_notifications():
            for name, trait in self.traits().items():
                setattr(self, name, trait.default_value)

    def __repr__(self) -> str:
        return f"Selection({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"


def _integer(value: Any) -> int:
    """An int from anything that equals one (numpy integers, 3.0 from JSON)."""
    number = int(value)
    if isinstance(value, str) or number != value:
        raise ValueError(value)
    return number
