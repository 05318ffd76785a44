"""The rows of the table of strategies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from hta_widgets.analysis.strategy.group_evidence import GroupEvidence
from hta_widgets.analysis.strategy.reading import NOT_RECOGNISED, sent_bytes
from hta_widgets.formatting import runs_of
from hta_widgets.frames import typed_frame

_COLUMNS = {
    "strategy": "str", "evidence": "str", "role": "str", "ranks": "str", "process_group": "str",
    "group_size": "Int64", "steps": "int64", "reducing_steps": "int64", "passes": "Int64",
    "parameters": "Int64", "parameter_bytes": "Int64", "gradient_elements": "Int64", "gathered_dtype": "str",
    "reduced_dtype": "str", "units": "int64", "unit_elements": "str", "collectives": "str",
    "sent_bytes": "int64", "expected_bytes": "Int64", "other_bytes": "int64",
}  # fmt: skip


def row_of(evidence: GroupEvidence) -> dict[str, Any]:
    """The row of one rank in one group, without the columns that name them."""
    reading = evidence.reading
    used = reading.used if reading.used else evidence.messages
    rest = [message for message in evidence.messages if all(message is not other for other in reading.used)]
    listed = Counter(message.operation for message in evidence.messages)
    return plain_row(reading.strategy, reading.words, ()) | {
        "role": evidence.role,
        "group_size": evidence.size,
        "steps": evidence.steps,
        "reducing_steps": evidence.reducing,
        "passes": reading.passes if reading.strategy != NOT_RECOGNISED else pd.NA,
        "parameters": reading.parameters,
        "parameter_bytes": reading.parameter_bytes,
        "gradient_elements": reading.reduced,
        "gathered_dtype": reading.gathered_dtype,
        "reduced_dtype": reading.reduced_dtype,
        "units": len(reading.units),
        "unit_elements": _in_turn(reading.units),
        "collectives": ", ".join(f"{count} {name}" for name, count in sorted(listed.items())),
        "sent_bytes": sent_bytes(used, evidence.size),
        "expected_bytes": reading.expected_bytes,
        "other_bytes": sent_bytes(rest, evidence.size) if reading.used else 0,
    }


def plain_row(strategy: str, evidence: str, ranks: Sequence[int], steps: int = 0) -> dict[str, Any]:
    """A row with strategy, evidence, ranks and steps, but without sizes."""
    empty = {name: "" if kind == "str" else 0 if kind == "int64" else None for name, kind in _COLUMNS.items()}
    return empty | {"strategy": strategy, "evidence": evidence, "ranks": numbers(ranks), "steps": steps}


def frame_of(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows with their columns' types."""
    return typed_frame(rows, _COLUMNS)


def numbers(ranks: Sequence[int]) -> str:
    """`0, 1, 4-7`."""
    return ", ".join(
        f"{first}-{last}" if last - first > 1 else ", ".join(map(str, range(first, last + 1)))
        for first, last in runs_of(ranks)
    )


def _in_turn(units: Sequence[int]) -> str:
    """`38,635,008 + 2 x 7,087,872`."""
    runs = [(size, len(list(same))) for size, same in groupby(units)]
    return " + ".join(f"{count} x {size:,}" if count > 1 else f"{size:,}" for size, count in runs)
