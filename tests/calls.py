"""How much work something is, in calls: unlike its time the same on every machine and under any load."""

from __future__ import annotations

import cProfile
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["calls"]

Answer = TypeVar("Answer")


def calls(work: Callable[[], Answer]) -> tuple[int, Answer]:
    """How many functions the work calls, in this thread and those that it starts; and its answer."""
    profiles = [cProfile.Profile()]

    def begin(*_: Any) -> None:
        profiles.append(cProfile.Profile())
        profiles[-1].enable()

    if sys.version_info < (3, 12):  # since then one profile counts those of all threads
        threading.setprofile(begin)
    try:
        answer = profiles[0].runcall(work)
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
    return sum(entry.callcount for profile in profiles for entry in profile.getstats()), answer
