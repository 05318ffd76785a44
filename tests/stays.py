"""How far apart in the code is what belongs together: the files that a reader goes through, by traced calls.

A *stay* is a stretch of a way that lies in one file; who comes back to a file makes another one. What a
decorator adds to a function (`PASSED_OVER`) is no stay: in the code stands a call of the function itself.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hta_widgets

ROOT = f"{Path(hta_widgets.__file__).parent}/"
PASSED_OVER = ("analysis/core/memoize.py", "analysis/core/kept.py")


def place(code: CodeType) -> str:
    """The file of a function of the package; "" of all others."""
    name = code.co_filename.removeprefix(ROOT)
    return "" if name == code.co_filename or name in PASSED_OVER else name


def stays(places: Iterable[str]) -> list[str]:
    """The files in turn."""
    return [name for name, _ in groupby(filter(None, places))]


def open_calls(frame: FrameType | None) -> list[str]:
    """The places of the calls that lead to a frame, the outermost first."""
    found = []
    while frame is not None:
        found.append(place(frame.f_code))
        frame = frame.f_back
    return found[::-1]


def traced(work: Callable[[], Any], see: Callable[[FrameType, str, Any], None]) -> Any:
    """What some work returns; `see` is called as by `sys.setprofile`, here and in threads that it starts."""
    threading.setprofile(see)
    sys.setprofile(see)
    try:
        return work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


class Handed:
    """The places of functions that are handed a thing or return it, in the order in which they first do."""

    def __init__(self, is_it: Callable[[Any], bool]) -> None:
        self.is_it = is_it
        self.places: list[str] = []
        self._seen: set[CodeType] = set()

    def __call__(self, frame: FrameType, event: str, returned: Any) -> None:
        code = frame.f_code
        if code in self._seen or not place(code):
            return
        if event == "call":
            many = code.co_argcount + code.co_kwonlyargcount
            values = [frame.f_locals.get(name) for name in code.co_varnames[:many]]
        else:
            values = [returned] if event == "return" else []
        if any(map(self._holds, values)):
            self._seen.add(code)
            self.places.append(place(code))

    def _holds(self, value: Any, depth: int = 2) -> bool:
        """Whether a value is the thing, or a list, mapping or record that has it."""
        if self.is_it(value):
            return True
        if not depth:
            return False
        parts: Iterable[Any] = ()
        if isinstance(value, list | tuple):
            parts = value[:20]
        elif isinstance(value, dict):
            parts = list(value.values())[:20]
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
        return any(self._holds(part, depth - 1) for part in parts)
