"""A change to a program, as `edits` makes them: a class of its own, which takes no time to import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hta_widgets.analysis.job.replayed import Change
    from hta_widgets.analysis.replay.plan import Plan


@dataclass(frozen=True)
class Edit:
    """A change to a program."""

    expression: str  # the Python expression that makes it
    # it can be had at most in part (nobody's host is free): its saving may be anything down to 0
    bound: bool = False
    # how it changes the replay
    apply: Callable[[Plan], None] = field(default=lambda plan: None, repr=False, compare=False)
    # how it changes the replay of all ranks together; None: each rank is replayed by itself
    across: Change | None = field(default=None, repr=False, compare=False)
