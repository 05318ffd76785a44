"""One entry: differences of one cause, and how each of them is proven to have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.parity.compare import Difference
from tests.parity.compared_job import ComparedJob

Check = Callable[[Difference, ComparedJob], bool]


@dataclass(frozen=True)
class Deviation:
    """Differences of one cause.

    `row` is the key of a row in docs/differences.md, `question` a pattern and `jobs` names with spaces
    between; `kinds` and `columns` narrow it. `defects` are redone together (`defects.py`, `patches.py`): a
    difference is explained if it is gone then. `check` decides of a single difference whether it is what the
    row says.
    """

    row: str
    question: str
    jobs: str
    kinds: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    check: Check | None = None
    defects: tuple[str, ...] = ()

    def names(self, job: str) -> bool:
        return job in self.jobs.split()

    def is_about(self, question: str) -> bool:
        """Of a question with parts, such as ``kernels.1``, the pattern names one."""
        return fnmatchcase(question, self.question.partition(".")[0])

    def could_cover(self, difference: Difference) -> bool:
        return (
            fnmatchcase(difference.question, self.question)
            and (not self.kinds or difference.kind in self.kinds)
            and (not self.columns or difference.column in self.columns)
        )

    def covers(self, difference: Difference, job: ComparedJob) -> bool:
        return (
            self.could_cover(difference)
            and (self.check is None or self.check(difference, job))
            and (not self.defects or job.is_gone(difference, self.defects))
        )
