"""Where the events of a file begin: its first `traceEvents` key that lies in no other value.

The search reads every byte once, whatever the file looks like.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import kernel

EVENTS_KEY: Final = b'"traceEvents"'
_ASSIGNED: Final = re.compile(EVENTS_KEY + rb"\s*+:\s*+(?P<value>[^\s])")
_NAME: Final = np.frombuffer(b"traceEvents", np.uint8)
_PATIENCE: Final = 16 << 20
"""How much is read after a key in another value: the head may only seem to nest it, being damaged."""

_SPACE, _QUOTE, _BACKSLASH, _COLON = ord(" "), ord('"'), ord("\\"), ord(":")
_OPENING, _CLOSING = (ord("["), ord("{")), (ord("]"), ord("}"))

# the state of the search between two pieces
_DEPTH, _IN_STRING, _ESCAPED, _MATCHED, _EXPECTS, _KEY_AT, _STATES = range(7)
_NOTHING, _A_COLON, _A_VALUE = range(3)
_OTHER: Final = -1  # of _MATCHED: the string is not the key


@dataclass(frozen=True)
class Events:
    """Where the key `traceEvents` begins, where its value does, and the first byte of that."""

    key: int
    value: int
    first: int

    @property
    def is_array(self) -> bool:
        """Whether the value is an array."""
        return self.first == _OPENING[0]


class HeadSearch:
    """Looks for the events in a text that is handed over in pieces."""

    def __init__(self) -> None:
        self.text = bytearray()
        self._state = np.zeros(_STATES, np.int64)
        self._first_key = -1

    def feed(self, piece: bytes, last: bool) -> Events | None:
        """Add a piece of the text; where the events begin, once that is known.

        Without a key of the outermost object, the first `traceEvents` counts.
        """
        before = len(self.text)
        at = int(_search(np.frombuffer(piece, np.uint8), self._state))
        self.text += piece
        if at >= 0:
            return Events(int(self._state[_KEY_AT]) + before, at + before, piece[at])
        self._state[_KEY_AT] -= len(piece)  # relative to the next piece
        if self._first_key < 0:
            self._first_key = self.text.find(EVENTS_KEY, max(0, before - len(EVENTS_KEY)))
        if self._first_key >= 0 and (last or len(self.text) - self._first_key > _PATIENCE):
            match = _ASSIGNED.search(self.text, self._first_key)
            if match is not None:
                return Events(match.start(), match.start("value"), match["value"][0])
            self._first_key = -1  # what was searched has no value; go on behind it
        return None


def second_key(tail: bytes) -> int | None:
    """Where in the text behind the events another `traceEvents` key of the same object is."""
    state = np.zeros(_STATES, np.int64)
    state[_DEPTH] = 1
    return int(state[_KEY_AT]) if _search(np.frombuffer(tail, np.uint8), state) >= 0 else None


@kernel
def _search(text: npt.NDArray[np.uint8], state: npt.NDArray[np.int64]) -> int:
    """Index of the first byte of the events in a piece of text, -1 if they do not begin there."""
    depth, in_string, escaped = state[_DEPTH], state[_IN_STRING], state[_ESCAPED]
    matched, expects = state[_MATCHED], state[_EXPECTS]
    found = -1
    for i in range(len(text)):
        c = text[i]
        if in_string:
            if escaped:
                escaped = False
            elif c == _BACKSLASH:
                escaped, matched = True, _OTHER
            elif c == _QUOTE:
                in_string = False
                if matched == len(_NAME):
                    expects = _A_COLON
            elif 0 <= matched < len(_NAME) and c == _NAME[matched]:
                matched += 1
            else:
                matched = _OTHER
            continue
        if c <= _SPACE:
            continue
        if expects == _A_VALUE:
            found = i
            break
        expects = _A_VALUE if expects == _A_COLON and c == _COLON else _NOTHING
        if c == _QUOTE:
            in_string = True
            matched = 0 if depth == 1 else _OTHER
            if depth == 1:
                state[_KEY_AT] = i
        elif c in _OPENING:
            depth += 1
        elif c in _CLOSING:
            depth -= 1
    state[_DEPTH], state[_IN_STRING], state[_ESCAPED] = depth, in_string, escaped
    state[_MATCHED], state[_EXPECTS] = matched, expects
    return found
