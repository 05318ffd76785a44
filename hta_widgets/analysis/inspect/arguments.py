"""What was recorded with an event, and what its name says."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from hta_widgets.analysis.inspect.record import Argument
from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, NULL, Column
from hta_widgets.trace.reader.table import EventTable


def arguments_of(rank_trace: RankTrace, row: int) -> tuple[Argument, ...]:
    """Every argument that the file has for an event, in the order of the schema."""
    table, event = rank_trace.table, int(rank_trace.event_id[row])
    found = []
    for column in ARGUMENT_COLUMNS:
        value = _value(table, column, event)
        if value is not None:
            found.append(Argument(column.key, value, column.unit or ""))
    return tuple(found)


def name_parts(rank_trace: RankTrace, row: int) -> dict[str, Any]:
    """What the name of device work says: the fields of `KernelClass` that it fills."""
    if not rank_trace.is_device[row]:
        return {}
    known = asdict(kernel_class(rank_trace.names[rank_trace.name[row]]))
    return {name: value for name, value in known.items() if value is not None}


def _value(table: EventTable, column: Column, event: int) -> Any:
    events, values = table.sparse(column.name)
    at = int(np.searchsorted(events, event))
    if at == len(events) or events[at] != event:
        return None
    value = values[at].item()
    if column.kind in ("int", "float"):
        return None if value == NULL or value != value else value
    if value < 0:
        return None
    text = table.dictionary(column.name)[value]
    if column.kind == "text":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
