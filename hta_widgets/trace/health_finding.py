"""One row of the health table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One row of the health table."""

    rank: int | None  # None for the job as a whole
    severity: str
    check: str
    count: int
    detail: str
    remedy: str = ""
    name: str = ""  # the full name of the device work that the row is about, if it is about one
