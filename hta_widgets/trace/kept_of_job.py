"""Small tables about all ranks of a job, kept beside its answers, for which each rank would be read.

As with `kept_links`, a file is named after all that it follows from, so none is ever stale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pandas as pd

from hta_widgets.trace.arrow_frames import keep_frame, read_frame
from hta_widgets.trace.kept_links import TRACE_CODE, code_of

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

_FOLDER: Final = "jobs"
# of fewer, and of fewer slices, all is found before a file is written
_LEAST_RANKS: Final = 16
_LEAST_SLICES: Final = 100_000
_HERE: Final = Path(__file__).parent
_PART_OF_BUDGET: Final = 0.01


def kept_of_job(trace: Trace, what: str, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """A table about all ranks of a job: the one that is kept, or that of `compute`, which then is.

    Args:
        what: names the table. It follows from the files, and how they were put together (`Trace.key`).
    """
    file = _file(trace, what)
    known = None if file is None else read_frame(file)
    if known is None:
        known = compute()
        if file is not None:
            keep_frame(file, known, _PART_OF_BUDGET)
    return known


def is_kept(trace: Trace, what: str) -> bool:
    """Whether `kept_of_job` has a table without computing it."""
    file = _file(trace, what)
    return file is not None and file.exists()


def _file(trace: Trace, what: str) -> Path | None:
    code = code_of(*TRACE_CODE, _HERE / "reader", _HERE.parent)
    slices = sum(trace.rank(rank).n for rank in trace.ranks)
    few = len(trace.ranks) < _LEAST_RANKS and slices < _LEAST_SLICES
    if trace.answers is None or few or not trace.key or not code:
        return None
    named = hashlib.blake2b(f"{trace.key} {code} {what}".encode(), digest_size=16).hexdigest()
    return trace.answers.with_name(_FOLDER) / f"{named}.arrow"
