"""The tables of a snapshot: segments, their blocks, and what the allocator did before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.arrays import Int64
from hta_widgets.jit import kernel
from hta_widgets.memory_snapshot.pickles import BOOL, CONTAINER, FLOAT, IN_LIST, NONE, TEXT, Graph

NULL: Final = -(1 << 63)
_MOST_FRAMES: Final = 256  # of a stack


@dataclass(frozen=True)
class Tables:
    """What a snapshot holds. `stack` columns number `stacks`, -1 where none was recorded."""

    segments: pd.DataFrame
    blocks: pd.DataFrame
    events: pd.DataFrame
    stacks: list[tuple[str, ...]]
    settings: dict[str, Any]


def tables_of(graph: Graph) -> Tables | None:
    """The tables of a snapshot; None if the pickle is none."""
    return _Reading(graph).tables()


@kernel
def group(container: Int64, starts: Int64, order: Int64) -> None:
    """Put the items of each container next to each other, in their order.

    `starts`: zeros, one more than there are containers.
    """
    for k in range(len(container)):
        starts[container[k]] += 1
    total = 0
    for number in range(len(starts)):
        count = starts[number]
        starts[number] = total
        total += count
    for k in range(len(container)):
        number = container[k]
        order[starts[number]] = k
        starts[number] += 1
    for number in range(len(starts) - 1, 0, -1):
        starts[number] = starts[number - 1]
    starts[0] = 0


class _Reading:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        order = np.empty(len(graph.container), np.int64)
        self.starts = np.zeros(graph.containers + 1, np.int64)
        group(graph.container, self.starts, order)
        self.key, self.kind, self.value = graph.key[order], graph.kind[order], graph.value[order]
        self.stacks: list[tuple[str, ...]] = []
        self._number_of_stack: dict[tuple[str, ...], int] = {}
        self._stack_of_list: dict[int, int] = {}
        self._frames: dict[int, str] = {}
        self._gathered: tuple[Int64, tuple[Int64, Int64, npt.NDArray[np.int8], Int64]] | None = None

    def tables(self) -> Tables | None:
        segments_list, traces = (
            self.child(self.graph.root, "segments"),
            self.child(self.graph.root, "device_traces"),
        )
        if segments_list is None:
            return None
        segment_ids = self.items(segments_list)
        segments = self._segments(segment_ids)
        events = self._events([] if traces is None else self.items(traces).tolist())
        blocks = self._blocks(segment_ids, segments)
        self._annotate(events, blocks)
        return Tables(segments, blocks, events, self.stacks, self._settings())

    # ---- the graph

    def items(self, container: int) -> Int64:
        """The containers in a list, in their order."""
        first, last = self.starts[container], self.starts[container + 1]
        chosen = (self.kind[first:last] == CONTAINER) & (self.key[first:last] == IN_LIST)
        return self.value[first:last][chosen]

    def child(self, container: int, key: str) -> int | None:
        """The container under a key."""
        kind, value = self.one(container, key)
        return value if kind == CONTAINER else None

    def one(self, container: int, key: str) -> tuple[int, int]:
        """Kind and value under a key; the kind is 0 if there is none."""
        code = self.graph.code(key)
        first, last = self.starts[container], self.starts[container + 1]
        at = np.flatnonzero(self.key[first:last] == code)
        if not len(at):
            return 0, 0
        return int(self.kind[first + at[-1]]), int(self.value[first + at[-1]])

    def column(self, containers: Int64, *keys: str, kind: int | None = None) -> Int64:
        """The value under a key in each of many dicts (the first of `keys` that it has); NULL: none.

        Args:
            kind: what the value must be; default: a number or a bool.
        """
        found = np.full(len(containers), NULL, np.int64)
        if not len(containers):
            return found
        row, item_key, item_kind, item_value = self._items_of(containers)
        allowed = (item_kind == kind) if kind is not None else (item_kind > NONE) & (item_kind < TEXT)
        for key in reversed(keys):
            chosen = (item_key == self.graph.code(key)) & allowed
            found[row[chosen]] = item_value[chosen]
        return found

    def _items_of(self, containers: Int64) -> tuple[Int64, Int64, npt.NDArray[np.int8], Int64]:
        """The items of many dicts: the place of the dict, key, kind and value of each. The last are cached,
        since all columns of a table ask for the same ones.
        """
        if self._gathered is None or self._gathered[0] is not containers:
            counts = self.starts[containers + 1] - self.starts[containers]
            row = np.repeat(np.arange(len(containers)), counts)
            before = np.cumsum(counts) - counts
            at = np.arange(len(row)) + (self.starts[containers] - before)[row]
            self._gathered = containers, (row, self.key[at], self.kind[at], self.value[at])
        return self._gathered[1]

    def texts(self, containers: Int64, key: str) -> npt.NDArray[np.object_]:
        """The text under a key in each of many dicts; "" where it has none."""
        codes = self.column(containers, key, kind=TEXT)
        known, inverse = np.unique(codes, return_inverse=True)
        words = np.array([self.graph.text(code) if code != NULL else "" for code in known.tolist()], object)
        return words[inverse]

    # ---- stacks

    def stacks_of(self, containers: Int64) -> Int64:
        """The stack of each of many dicts, by its number; -1 where none was recorded."""
        lists = self.column(containers, "frames", kind=CONTAINER)
        known, inverse = np.unique(lists, return_inverse=True)
        numbers = [self._stack(found) if found != NULL else -1 for found in known.tolist()]
        return np.array(numbers, np.int64)[inverse] if len(known) else np.empty(0, np.int64)

    def _stack(self, frames: int) -> int:
        if frames not in self._stack_of_list:
            texts = tuple(self._frame(frame) for frame in self.items(frames)[:_MOST_FRAMES].tolist())
            number = -1
            if texts:
                number = self._number_of_stack.setdefault(texts, len(self.stacks))
                if number == len(self.stacks):
                    self.stacks.append(texts)
            self._stack_of_list[frames] = number
        return self._stack_of_list[frames]

    def _frame(self, frame: int) -> str:
        if frame not in self._frames:
            only = np.array([frame], np.int64)
            file, name = self.texts(only, "filename")[0], self.texts(only, "name")[0]
            line = int(self.column(only, "line")[0])
            where = f"{file}:{line}" if line != NULL else file
            self._frames[frame] = f"{where}: {name}" if where else name
        return self._frames[frame]

    # ---- tables

    def _segments(self, ids: Int64) -> pd.DataFrame:
        total = self.column(ids, "total_size")
        return pd.DataFrame(
            {
                "device": _known(self.column(ids, "device"), 0),
                "address": self.column(ids, "address"),
                "total_bytes": _known(total, 0),
                "stream": _known(self.column(ids, "stream"), 0),
                "pool": self.texts(ids, "segment_type"),
                "is_expandable": _known(self.column(ids, "is_expandable"), 0) != 0,
                "stack": self.stacks_of(ids),
            }
        )

    def _blocks(self, segment_ids: Int64, segments: pd.DataFrame) -> pd.DataFrame:
        lists = self.column(segment_ids, "blocks", kind=CONTAINER)
        ids = [self.items(found) if found != NULL else np.empty(0, np.int64) for found in lists.tolist()]
        of_segment = np.repeat(np.arange(len(ids)), [len(found) for found in ids]).astype(np.int64)
        blocks = np.concatenate([*ids, np.empty(0, np.int64)]).astype(np.int64)
        size = _known(self.column(blocks, "size"), 0)
        requested = self.column(blocks, "requested_size", "real_size")
        # older snapshots do not state addresses: blocks follow each other
        before = np.cumsum(size) - size
        first = np.searchsorted(of_segment, np.arange(len(ids)))
        begin = before[first[of_segment]] if len(blocks) else before
        placed = segments["address"].to_numpy()[of_segment] + before - begin
        address = self.column(blocks, "address")
        state = self.texts(blocks, "state")
        return pd.DataFrame(
            {
                "segment": of_segment,
                "device": segments["device"].to_numpy()[of_segment],
                "address": np.where(address == NULL, placed, address),
                "bytes": size,
                "requested_bytes": np.where(requested == NULL, size, requested),
                "state": np.where(state == "active_pending_free", "active_awaiting_free", state),
                "stack": self.stacks_of(blocks),
                "annotation": self.texts(blocks, "user_metadata"),
            }
        )

    def _events(self, traces: list[int]) -> pd.DataFrame:
        ids = [self.items(trace) for trace in traces]
        device = np.repeat(np.arange(len(ids)), [len(found) for found in ids]).astype(np.int64)
        entries = np.concatenate([*ids, np.empty(0, np.int64)]).astype(np.int64)
        return pd.DataFrame(
            {
                "device": device,
                "action": self.texts(entries, "action"),
                "address": self.column(entries, "addr"),
                "bytes": _known(self.column(entries, "size"), 0),
                "stream": _known(self.column(entries, "stream"), 0),
                "time_us": self.column(entries, "time_us"),
                "device_free_bytes": self.column(entries, "device_free"),
                "stack": self.stacks_of(entries),
                "annotation": self.texts(entries, "user_metadata"),
            }
        )

    def _annotate(self, events: pd.DataFrame, blocks: pd.DataFrame) -> None:
        """Give allocations without an annotation of their own the range of torch.profiler.record_function
        that was entered last, of those open on the device.
        """
        listed = self.child(self.graph.root, "external_annotations")
        if listed is None:
            return
        entries = self.items(listed)
        time, of_device = self.column(entries, "time_us"), _known(self.column(entries, "device"), 0)
        begins, names = self.texts(entries, "stage") == "START", self.texts(entries, "name")
        annotation = events["annotation"].to_numpy(object, copy=True)
        silent = (events["action"].to_numpy() == "alloc") & (annotation == "") & (events["time_us"] != NULL)
        for device in np.unique(of_device[time != NULL]).tolist():
            chosen = np.flatnonzero((of_device == device) & (time != NULL))
            chosen = chosen[np.argsort(time[chosen], kind="stable")]
            innermost = np.array(["", *_innermost(begins[chosen].tolist(), names[chosen].tolist())], object)
            rows = np.flatnonzero(silent & (events["device"] == device))
            asked = events["time_us"].to_numpy()[rows]
            annotation[rows] = innermost[np.searchsorted(time[chosen], asked, side="right")]
        events["annotation"] = annotation
        allocs = events[events["action"] == "alloc"]
        last = dict(
            zip(zip(allocs["device"], allocs["address"], strict=True), allocs["annotation"], strict=True)
        )
        blocks["annotation"] = [
            last.get(place, "") if own == "" and state != "inactive" else own
            for own, state, place in zip(
                blocks["annotation"],
                blocks["state"],
                zip(blocks["device"], blocks["address"], strict=True),
                strict=True,
            )
        ]

    def _settings(self) -> dict[str, Any]:
        settings = self.child(self.graph.root, "allocator_settings")
        if settings is None:
            return {}
        found = {}
        first, last = self.starts[settings], self.starts[settings + 1]
        for key, kind, value in zip(
            self.key[first:last].tolist(),
            self.kind[first:last].tolist(),
            self.value[first:last].tolist(),
            strict=True,
        ):
            if key >= 0 and kind < CONTAINER:
                found[self.graph.text(key)] = self._plain(kind, value)
        return found

    def _plain(self, kind: int, value: int) -> Any:
        if kind == TEXT:
            return self.graph.text(value)
        if kind == NONE:
            return None
        if kind == BOOL:
            return bool(value)
        return float(np.int64(value).view(np.float64)) if kind == FLOAT else value


def _innermost(begins: list[bool], names: list[str]) -> list[str]:
    """The range that is open, and was entered last, after each begin or end of one."""
    opened: list[str] = []
    found = []
    for begin, name in zip(begins, names, strict=True):
        if begin:
            opened.append(name)
        elif name in opened:
            del opened[len(opened) - 1 - opened[::-1].index(name)]
        found.append(opened[-1] if opened else "")
    return found


def _known(values: Int64, default: int) -> Int64:
    return np.where(values == NULL, default, values)
