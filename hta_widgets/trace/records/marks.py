"""What is wrong with a record, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt


class Mark(IntEnum):
    """Why a record cannot be true. The numbers are those of the column ``mark``."""

    NONE = 0
    NO_TIME = 1
    EARLY_START = 2
    LATE_END = 3
    OVERLAP = 4
    UNFINISHED = 5
    WORK_LOST = 6
    CALL_LOST = 7

    @property
    def label(self) -> str:
        """Name as shown in tables: ``"late_end"``; "" for none."""
        return self.name.lower() if self else ""


REASONS = {
    Mark.NONE: "",
    Mark.NO_TIME: "it carries no usable time",
    Mark.EARLY_START: "it starts before its launch",
    Mark.LATE_END: "it ends after later work of its in-order queue ended",
    Mark.OVERLAP: "it overlaps the next work of its in-order queue",
    Mark.UNFINISHED: "it was still open when the recording ended",
    Mark.WORK_LOST: "the device work of this launch was not recorded",
    Mark.CALL_LOST: "the call that launched it was not recorded",
}


@dataclass(frozen=True)
class Marked:
    """Records of a file whose times cannot be true, in file order."""

    rows: npt.NDArray[np.int32]  # int32 row in the event table
    mark: npt.NDArray[np.uint8]  # uint8 `Mark`
    # int64 ns as recorded, NULL where there is none
    start: npt.NDArray[np.int64]
    dur: npt.NDArray[np.int64]
    # int64 ns when it was launched, else its start as recorded; NULL where neither is known
    placed: npt.NDArray[np.int64]
    # bool, it is no slice: nothing like it tells how long it took. The others are estimated.
    excluded: npt.NDArray[np.bool_]
    error: npt.NDArray[np.int64]  # int64 ns by which the estimated length may be off

    def __len__(self) -> int:
        return len(self.rows)


_NO_TIMES = np.empty(0, np.int64)
NOTHING = Marked(
    np.empty(0, np.int32),
    np.empty(0, np.uint8),
    _NO_TIMES,
    _NO_TIMES,
    _NO_TIMES,
    np.empty(0, np.bool_),
    _NO_TIMES,
)
"""A file all of whose times can be true."""
