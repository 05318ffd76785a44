"""PyTorch execution traces (`ExecutionTraceObserver`), and which profiler events their nodes are.

Read by a reader of our own, so HTA's optional package `et_replay` is not needed. Both layouts are known:
fields of a node by name (schema 1.0.1 and before), and Chakra's, with `attrs` and grouped inputs and outputs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.errors import MissingDataError, TraceFormatError, TraceNotFoundError
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.methods.conventions import or_else
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

EXECUTION_TRACE_SUPPORTED_EVENTS = ["cpu_op", "user_annotation"]
# Nodes of the recording itself: they stand for no event.
_BOOKKEEPING = ("execution_trace|thread", "execution_trace|process")


@dataclass(frozen=True)
class Node:
    """One node: an operator call or an annotation.

    Attributes:
        rf_id: record function id, shared with the profiler's trace; None where absent.
        parent_id: id of the calling node, None for none.
        Others: as recorded.
    """

    id: int
    name: str
    parent_id: int | None
    rf_id: int | None
    op_schema: str
    inputs: list[Any]
    input_shapes: list[Any]
    input_types: list[Any]
    outputs: list[Any]
    output_shapes: list[Any]
    output_types: list[Any]

    @property
    def is_bookkeeping(self) -> bool:
        """Whether the observer wrote it about itself."""
        return any(part in self.name for part in _BOOKKEEPING)


_COLUMNS: dict[str, Callable[[Node], Any]] = {
    "op_schema": lambda node: node.op_schema,
    "input_shapes": lambda node: node.input_shapes,
    "input_types": lambda node: node.input_types,
    "output_shapes": lambda node: node.output_shapes,
    "output_types": lambda node: node.output_types,
    "et_node_name": lambda node: node.name,
}


class ExecutionTrace:
    """An execution trace.

    Attributes:
        schema: version of its layout; ``pid``: of the recorded process.
        nodes: id -> node, in the file's order.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self.schema: str = str(content.get("schema", ""))
        self.pid: Any = content.get("pid")
        nodes = [_node(raw) for raw in content["nodes"]]
        self.nodes: dict[int, Node] = {node.id: node for node in nodes}

    def __repr__(self) -> str:
        return f"ExecutionTrace({len(self.nodes)} nodes)"


def load_execution_trace(et_file: str | Path) -> ExecutionTrace:
    """Read an execution trace, gzip or not.

    Raises:
        TraceNotFoundError: there is no such file.
        TraceFormatError: it is not an execution trace.
    """
    path = Path(et_file).expanduser()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TraceNotFoundError(f"{path}: {error.strerror or error}") from error
    try:
        return ExecutionTrace(json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content))
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError) as error:
        raise TraceFormatError(path, f"no execution trace: {error!r}") from error


@or_else(lambda: None)
def correlate_execution_trace(trace: Trace, rank: int, et: ExecutionTrace) -> None:
    """Add the column `et_node` to the frame of a rank: id of the node that each operator or annotation is.

    They share the record function id: where the trace has it ("Record function id"), by it, else by "External
    id", as HTA does. Rows without a node have NaN. Ids count from 1 in every process, so that of a
    foreign recording fits by chance: unless most pairs have the same name, nothing is correlated.

    Args:
        trace: the job.
        rank: whose frame (`trace.get_trace(rank)`) gets the column.
        et: recorded on the same rank, in the same run.

    Raises:
        MissingDataError: the two do not overlap; as HTA's method it then warns and changes nothing.
    """
    frame = trace.get_trace(rank)
    table = trace.job.rank(rank)
    ids, rows = _ids(table)
    known = {
        node.rf_id: node.id
        for node in et.nodes.values()
        if node.rf_id is not None and not node.is_bookkeeping
    }
    order = np.array(sorted(known), np.int64)
    at = np.minimum(np.searchsorted(order, ids), max(len(order) - 1, 0))
    found = order[at] == ids if len(order) else np.zeros(len(ids), np.bool_)
    node = np.array([known[number] for number in order.tolist()], np.int64)[at[found]]
    recorded = [table.names[code] for code in table.name[rows[found]].tolist()]
    same = sum(et.nodes[number].name == name for number, name in zip(node.tolist(), recorded, strict=True))
    if not same or 2 * same < len(recorded):
        raise MissingDataError(
            "events in common with the execution trace",
            "Record both in one run: register torch.profiler.ExecutionTraceObserver while profiling.",
            f"{len(recorded)} ids occur in both, {same} of them under the same name",
        )
    by_event = pd.Series(node.astype(np.float64), table.event_id[rows[found]].astype(np.int64))
    frame["et_node"] = frame["index"].map(by_event).astype("float64")


@or_else(lambda: None)
def add_et_column(trace_df: pd.DataFrame, et: ExecutionTrace, column: str) -> None:
    """Add what the execution trace knows about each row of a frame from `correlate_execution_trace`.

    Args:
        trace_df: gets the column; NaN where a row has no node.
        et: the trace it was correlated with.
        column: op_schema, input_shapes, input_types, output_shapes, output_types or et_node_name.

    Raises:
        ValueError: another column.
        MissingDataError: the frame has no `et_node`; as HTA's function it then warns and changes nothing.
    """
    if column not in _COLUMNS:
        raise ValueError(f"no column {column!r}: an execution trace has {', '.join(_COLUMNS)}")
    if "et_node" not in trace_df:
        raise MissingDataError("column et_node", "Call correlate_execution_trace(trace, rank, et) first.")
    value = _COLUMNS[column]
    used = trace_df["et_node"].dropna().unique()
    trace_df[column] = trace_df["et_node"].map({number: value(et.nodes[int(number)]) for number in used})


def _ids(table: RankTrace) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.intp]]:
    """(ids, rows): the operators and annotations of a rank that an execution trace may have, by its ids."""
    known = [category in EXECUTION_TRACE_SUPPORTED_EVENTS for category in table.categories]
    rows = np.flatnonzero(np.array(known, np.bool_)[table.category])
    for column in ("record_function_id", "external_id"):
        ids = table.argument(column)[rows]
        usable = (ids != NULL) & (ids != 0)
        if usable.any():
            break
    return ids[usable], rows[usable]


def _node(raw: dict[str, Any]) -> Node:
    attributes = {attribute["name"]: attribute.get("value") for attribute in raw.get("attrs", ())}
    chakra = "attrs" in raw
    return Node(
        id=int(raw["id"]),
        name=str(raw["name"]),
        parent_id=_integer(raw.get("ctrl_deps") if chakra else raw.get("parent")),
        rf_id=_integer(attributes.get("rf_id") if chakra else raw.get("rf_id")),
        op_schema=str((attributes if chakra else raw).get("op_schema") or ""),
        inputs=_part(raw, "inputs", "values", chakra),
        input_shapes=_part(raw, "inputs", "shapes", chakra),
        input_types=_part(raw, "inputs", "types", chakra),
        outputs=_part(raw, "outputs", "values", chakra),
        output_shapes=_part(raw, "outputs", "shapes", chakra),
        output_types=_part(raw, "outputs", "types", chakra),
    )


def _part(raw: dict[str, Any], side: str, what: str, chakra: bool) -> list[Any]:
    if chakra:
        return list(raw.get(side, {}).get(what, ()))
    return list(raw.get(side if what == "values" else f"{side[:-1]}_{what}", ()))


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)
