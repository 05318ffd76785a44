"""Undo and redo: the states of a selection before each action of the user."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import traitlets as t

from hta_widgets.engine import UI_LOCK

KEPT = 100

State = dict[str, Any]


class History(t.HasTraits):
    """The states that an object's traits had, oldest first.

    An action is the change of one trait, or all changes under `hold_trait_notifications()`. Drags and typing
    need no rule of their own: views write a window or a text when the user pauses, not at every step.

    Args:
        owner: the object whose traits are recorded.
        names: which of its traits.
    """

    can_undo = t.Bool(help="whether there is an earlier state")
    can_redo = t.Bool(help="whether an undone state can be brought back")

    def __init__(self, owner: t.HasTraits, names: Sequence[str]) -> None:
        super().__init__()
        self._owner, self._names = owner, tuple(names)
        self._past: deque[State] = deque(maxlen=KEPT)
        self._future: list[State] = []
        self._now = self._state()
        owner.observe(self._note, list(names))

    def undo(self) -> None:
        """Go back to the state before the last action; nothing happens if there is none."""
        with UI_LOCK:
            if self._past:
                self._future.append(self._now)
                self._restore(self._past.pop())

    def redo(self) -> None:
        """Restore what the last `undo()` reverted; nothing happens if there is none."""
        with UI_LOCK:
            if self._future:
                self._past.append(self._now)
                self._restore(self._future.pop())

    def _state(self) -> State:
        return {name: getattr(self._owner, name) for name in self._names}

    def _note(self, _change: Any) -> None:
        with UI_LOCK:
            state = self._state()
            if state == self._now:  # a further trait of the same action, or a state that was restored
                return
            self._past.append(self._now)
            self._future.clear()
            self._now = state
            self._publish()

    def _restore(self, state: State) -> None:
        self._now = state
        with self._owner.hold_trait_notifications():
            for name, value in state.items():
                setattr(self._owner, name, value)
        self._publish()

    def _publish(self) -> None:
        self.can_undo, self.can_redo = bool(self._past), bool(self._future)
