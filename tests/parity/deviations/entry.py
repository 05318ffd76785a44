"""One entry: differences of one cause, and how each of them is proven to have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.parity.compare import Difference
from tests.parity.told import Told

Check = Callable[[Difference, Told], bool]


@dataclass(frozen=True)
class Deviation:
    """Differences of one cause.

    `row` is the key of a row in docs/differences.md, `question` a pattern and `jobs` names with spaces
    between; `kinds` and `columns` narrow it. `faults` are redone together (`faults.py`, `patches.py`): a
    difference is explained if it is gone then. `check` tells of a single difference whether it is what the
    row says.
    """

    row: str
    question: str
    jobs: str
    kinds: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    check: Check | None = None
    faults: tuple[str, ...] = ()

    def names(self, job: str) -> bool:
        return job in self.jobs.split()

    def could_cover(self, one: Difference) -> bool:
        return (
            fnmatchcase(one.question, self.question)
            and (not self.kinds or one.kind in self.kinds)
            and (not self.columns or one.column in self.columns)
        )

    def covers(self, one: Difference, told: Told) -> bool:
        return (
            self.could_cover(one)
            and (self.check is None or self.check(one, told))
            and (not self.faults or told.is_gone(one, self.faults))
        )
