"""What a measurement was made on, in one line."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.setup import QUIET_S


def described(install: str, rounds: int, load: float, pace: float) -> str:
    """Date, install, processor, cores, memory, versions, rounds; load and pace when the measurement began."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    today = datetime.now(tz=UTC)
    return (
        f"*{today.day} {today:%B %Y}; {install}; {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"load {load:.1f} before; Python {platform.python_version()}, pandas {version('pandas')}, numpy "
        f"{version('numpy')}; median (least-most) of {rounds}. Goals in seconds are {pace:.2f} times those "
        f"for a machine that imports pandas in {QUIET_S} s.*"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
