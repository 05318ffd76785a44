"""What `diff --fail-on` takes: how much something may change."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

from hta_widgets.cli.exits import UsageError

CAUSES = (
    "host_sync", "data_stall", "host_busy", "launch_latency", "kernel_wait", "device_wait", "unknown", "edge",
)  # fmt: skip
MEASURES = (
    "step_time", "compute", "exposed_communication", "exposed_memory", "idle", *CAUSES, "communication",
    "peak_memory",
)  # fmt: skip
"""Listed here since `--help` must not wait for the analyses; a test compares them with theirs."""
LINES = ("kernel", "op", "call_path", "module", "phase", "collective")

_TIME = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_MEMORY = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_LIMIT = re.compile(
    r"""\s* (?P<of>[a-z_]+) (?: : "(?P<line>(?:[^"\\]|\\.)*)" )?
        \s* (?P<side>[<>]) \s* (?P<sign>[+-]?)
        (?P<number>\d+(?:\.\d*)?|\.\d+) \s* (?P<unit>%|[^\W\d_]+) \s*""",
    re.VERBOSE,
)
_SHAPE = 'METRIC>+NUMBER UNIT or METRIC<-NUMBER UNIT, such as step_time>+3%, idle>+2ms or kernel:"gemm">+5%'


@dataclass(frozen=True)
class Limit:
    """How far something may change from the first run."""

    text: str  # as it was typed
    of: str  # one of `MEASURES` or of `LINES`
    line: str  # which line, where `of` is one of `LINES`
    sign: int  # 1: it may not grow by more; -1: it may not shrink by more
    amount: float  # by how much, not negative; in %, ns or bytes
    unit: str  # "%", "ns" or "bytes"

    def beyond(self, before: float, change: float) -> bool:
        """Whether a change is greater than the limit; any growth from zero is more than any percentage.

        NaN is beyond every limit: a gate that cannot decide must not pass.
        """
        allowed = self.amount * before / 100 if self.unit == "%" else self.amount
        return not change * self.sign <= allowed


def limit(text: str) -> Limit:
    """`step_time>+3%` as `Limit`."""
    match = _LIMIT.fullmatch(text)
    if not match:
        raise UsageError(f"{text!r} is not a limit: {_SHAPE}; {_metrics()}")
    of, line, side, sign = match["of"], match["line"], match["side"], match["sign"]
    if of not in (*MEASURES, *LINES):
        raise UsageError(f"there is no metric {of!r}; {_metrics()}")
    if (of in LINES) != bool(line):
        raise UsageError(f'{of} takes {"a" if of in LINES else "no"} line in quotes, as kernel:"gemm" does')
    if sign != {">": "+", "<": "-"}[side]:
        raise UsageError(
            f"{text!r} is not a limit: it says how far a metric may change from the first run, and so is "
            f"above +0 or below -0, as in {of}>+3%"
        )
    amount, unit = _amount(of, match["number"], match["unit"])
    name = re.sub(r"\\(.)", r"\1", line or "")
    return Limit(text.strip(), of, name, 1 if side == ">" else -1, amount, unit)


def _amount(of: str, number: str, unit: str) -> tuple[float, str]:
    sizes, name = (_MEMORY, "bytes") if of == "peak_memory" else (_TIME, "ns")
    if unit != "%" and unit not in sizes:
        raise UsageError(f"{of} is measured in %, {', '.join(sizes)}, not in {unit!r}")
    amount = float(Decimal(number) * sizes.get(unit, 1))
    if math.isinf(amount):
        raise UsageError(f"the limit of {of} is so large that nothing is beyond it")
    return amount, "%" if unit == "%" else name


def _metrics() -> str:
    lines = ", ".join(f'{entry}:"..."' for entry in LINES)
    return f"the metrics are {', '.join(MEASURES)}, and the lines of a comparison: {lines}"
