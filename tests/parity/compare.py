"""Two answers to one question, cell by cell: what differs, after rows are matched by what identifies them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

# What identifies a row of a question's frame; "#" is the frame's index. By default every row stands at its
# place.
KEYS: dict[str, tuple[str, ...]] = {
    "overlap": ("rank",),
    "temporal": ("rank",),
    "kernels.0": ("kernel_type",),
    "kernels.1": ("kernel_type", "name", "rank"),
    "annotations": ("rank", "name"),
    "launches": ("correlation",),
    "operator_kernels": ("aten_op_name", "kernel_sequence"),
    "queue_series": ("#",),
    "queue_summary": ("#",),
    "blocked": ("rank", "stream"),
    "bandwidth_series": ("name", "ts"),
    "bandwidth_summary": ("#",),
    "idle.0": ("rank", "stream", "idle_category"),
    "idle.1": ("rank", "stream", "#"),
    "kernels_with_annotations": ("index",),
    "sequences": ("pattern",),
    "call_graph": ("index",),
    "trace_frame": ("index",),
    "trace_arguments": ("index",),
    "counters": ("counter", "name", "id", "ts"),
    "critical_path.breakdown": ("index", "type", "duration"),
    "cupti": ("index",),
    "compare": ("#",),
    "ops_summary": ("cat", "name"),
}
# Frames whose order means something, and the columns that it follows; rows that tie in them may swap.
ORDERS: dict[str, tuple[str, ...]] = {
    "overlap": ("rank",),
    "temporal": ("rank",),
    "kernels.0": ("sum",),
    "kernels.1": ("kernel_type", "name", "rank"),
    "annotations": ("rank", "name"),
    "operator_kernels": ("occurrence_count",),
    "queue_series": ("stream", "ts"),
    "bandwidth_series": ("name", "ts"),
    "idle.0": ("stream", "idle_category"),
    "sequences": ("count", "pattern"),
    "compare": ("#",),
}
DIGITS = 1e-9  # relative: what float sums in another order may differ by


@dataclass(frozen=True)
class Difference:
    """One thing that the two answers do not agree on."""

    question: str
    kind: str  # error, shape, columns, missing row, extra row, cell, order
    column: str
    key: tuple[Any, ...]
    hta: Any
    ours: Any
    row: dict[str, Any] = field(default_factory=dict, compare=False)  # HTA's, of a cell

    @property
    def identity(self) -> tuple[Any, ...]:
        return self.question, self.kind, self.column, self.key

    def __str__(self) -> str:
        where = f" [{self.column}]" if self.column else ""
        what = f"{self.question}: {self.kind}{where} {self.key or ''}"
        return f"{what} HTA {_short(self.hta)} ours {_short(self.ours)}"


Tolerance = Callable[[str, str, dict[str, Any]], float]
"""(question, column, HTA's row) -> how far the cell may lie off."""


def exact(question: str, column: str, row: dict[str, Any]) -> float:
    """Nothing, but that the reader keeps nine digits after the point of a bandwidth."""
    return 1e-8 if question.startswith("bandwidth") or column in ("memory_bw_gbps", "value") else 0.0


def rule(table: dict[str, Any], question: str) -> Any:
    """The entry for a question: the longest name in the table that begins it."""
    names = [name for name in table if question == name or question.startswith((name + "_", name + "."))]
    part = question.rpartition(".")[2] if "." in question else ""
    names += [
        name for name in table if name.endswith("." + part) and question.startswith(name.split(".")[0] + "_")
    ]
    if "annotations" in table and question.startswith(("gpu_annotations", "cpu_annotations")):
        names.append("annotations")
    return table[max(names, key=len)] if names else None


def differences(question: str, hta: Any, ours: Any, tolerance: Tolerance = exact) -> Iterator[Difference]:
    """What differs between two answers as `observe.plain` writes them."""
    if _is_frame(hta) and _is_frame(ours):
        yield from _frames(question, hta, ours, tolerance)
    elif isinstance(hta, dict) and isinstance(ours, dict) and not _is_frame(hta) and not _is_frame(ours):
        for key in sorted(hta.keys() | ours.keys()):
            name = f"{question}.{key}" if not key.lstrip("-").isdecimal() else question
            if key not in hta or key not in ours:
                yield Difference(
                    name,
                    "extra row" if key in ours else "missing row",
                    "",
                    (key,),
                    hta.get(key),
                    ours.get(key),
                )
            else:
                yield from differences(name, hta[key], ours[key], tolerance)
    elif isinstance(hta, list) and isinstance(ours, list) and any(map(_is_frame, hta + ours)):
        if len(hta) != len(ours):
            yield Difference(question, "shape", "", (), len(hta), len(ours))
        for at, (item, other) in enumerate(zip(hta, ours, strict=False)):
            yield from differences(f"{question}.{at}", item, other, tolerance)
    elif isinstance(hta, list) and isinstance(ours, list):
        yield from _lists(question, hta, ours, tolerance)
    elif not same(hta, ours, tolerance(question, "", {})):
        yield Difference(question, "cell", "", (), hta, ours)


def _lists(question: str, hta: list[Any], ours: list[Any], tolerance: Tolerance) -> Iterator[Difference]:
    if len(hta) == len(ours) and all(a == b or same(a, b, 0.0) for a, b in zip(hta, ours, strict=True)):
        return
    item, other = Counter(map(_frozen, hta)), Counter(map(_frozen, ours))
    for value in (item - other).elements():
        yield Difference(question, "missing row", "", (value,), value, None)
    for value in (other - item).elements():
        yield Difference(question, "extra row", "", (value,), None, value)
    if item == other:
        yield Difference(question, "order", "", (), hta, ours)


def _frames(
    question: str, hta: dict[str, Any], ours: dict[str, Any], tolerance: Tolerance
) -> Iterator[Difference]:
    if hta["columns"] != ours["columns"] and (hta["index"] or hta["columns"]):
        yield Difference(question, "columns", "", (), hta["columns"], ours["columns"])
    if hta["index_names"] != ours["index_names"] and hta["index"]:
        yield Difference(question, "columns", "#", (), hta["index_names"], ours["index_names"])
    shared = [name for name in hta["columns"] if name in ours["columns"]]
    keys = rule(KEYS, question) or ()
    item, other = _Rows(hta, shared, keys), _Rows(ours, shared, keys)
    for key, at in item.places.items():
        if key not in other.places:
            yield Difference(question, "missing row", "", key, item.row(at), None)
    for key, at in other.places.items():
        if key not in item.places:
            yield Difference(question, "extra row", "", key, None, other.row(at))
    common = [(key, at, other.places[key]) for key, at in item.places.items() if key in other.places]
    for name in (name for name in shared if name not in keys):
        theirs, own = item.columns[name], other.columns[name]
        for key, at, there in common:
            # most are equal, and comparing is all that this does
            if theirs[at] == own[there]:
                continue
            row = item.row(at)
            if not same(theirs[at], own[there], tolerance(question, name, row)):
                yield Difference(question, "cell", name, key, theirs[at], own[there], row)
    order = rule(ORDERS, question)
    if order:
        swapped = [(key, at) for key, at in other.places.items() if key in item.places]
        for (mine, at), (key, _, there) in zip(swapped, common, strict=True):
            if mine != key and not all(
                same(other.row(at).get(name), other.row(there).get(name), 0.0) for name in order
            ):
                yield Difference(question, "order", "", mine, key, mine)
                break


class _Rows:
    """The rows of a frame by their keys; "#" is the column of labels."""

    def __init__(self, frame: dict[str, Any], shared: list[str], keys: tuple[str, ...]) -> None:
        columns = dict(zip(frame["columns"], frame["data"], strict=True))
        labels = [tuple(label) if isinstance(label, list) else label for label in frame["index"]]
        self.columns: dict[str, list[Any]] = {name: columns[name] for name in shared} | {"#": labels}
        absent = [None] * len(labels)
        named = zip(*(map(_frozen, self.columns.get(name, absent)) for name in keys), strict=True)
        found = named if keys else ((at,) for at in range(len(labels)))
        self.places: dict[tuple[Any, ...], int] = {}
        counts: Counter[tuple[Any, ...]] = Counter()
        for at, key in enumerate(found):
            counts[key] += 1
            self.places[key if counts[key] == 1 else (*key, f"again {counts[key] - 1}")] = at

    def row(self, at: int) -> dict[str, Any]:
        return {name: column[at] for name, column in self.columns.items()}


def same(any: Any, other: Any, tolerance: float) -> bool:
    if isinstance(any, list | tuple) and isinstance(other, list | tuple):
        return len(any) == len(other) and all(same(a, b, tolerance) for a, b in zip(any, other, strict=True))
    if _is_number(any) and _is_number(other):
        if math.isnan(any) or math.isnan(other):
            return math.isnan(any) and math.isnan(other)
        return abs(any - other) <= tolerance + DIGITS * max(abs(any), abs(other))
    # Ids that one side keeps as text.
    return bool(any == other) or str(any) == str(other) or (_absent(any) and _absent(other))


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_frame(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") == "frame"


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else int(value) if value.is_integer() else round(value, 6)
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 160 else text[:157] + "..."
