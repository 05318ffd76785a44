"""What the events of a file say about which file it is: its rank, its groups, its program, its copies."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hta_widgets.arrays import Bool, Int32
from hta_widgets.trace.classify import EventClass, category_of, classify
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.stated import MOST_RANKS
from hta_widgets.trace.reader.table import EventTable

Graphs = Literal["", "capture", "replay"]

# Of these every rank writes its own number as `Rank`; of others it is the root, or the peer.
_OF_ALL_ALIKE = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier", re.IGNORECASE)
_CAPTURE = re.compile(r"Stream(Begin|End)Capture|StreamGetCaptureInfo")
_LAUNCH = re.compile(r"LaunchKernel|LaunchCooperativeKernel")
# Of the launches recorded while a graph is captured, none runs; others do.
_RUN_SHARE = 0.5
_BACKEND_CALL = ("c10d::", "nccl:", "gloo:", "mpi:", "ucc:", "xccl:", "hccl:")
PROGRAM = 64
"""Of how many names of kernels a program is known."""
_MEETINGS = 64
_MIXER = 0x5851F42D4C957F2D
_POSITIVE = (1 << 62) - 1
_DIGESTED = 4096  # events; a copy has the same first ones


@dataclass(frozen=True)
class Evidence:
    """What the events of a file say."""

    ranks: tuple[int, ...] = ()  # the ranks in the job that its collectives state, at most two
    group: tuple[int, ...] = ()  # the ranks of its largest process group; empty if none is listed
    device_events: int = 0  # how many are work of a device
    # "capture" if most launches were recorded into a graph, "replay" if graphs were launched
    graphs: Graphs = ""
    digest: str = ""  # the same for two files with the same events, else different
    # (key, end in ns as in the file) of some collectives that all ranks of a group leave together. Those with
    # the lowest keys: ranks that share collectives share most of these.
    meetings: tuple[tuple[int, int], ...] = ()
    communicates: bool = False  # it exchanges data with other ranks
    # the names of its compute and communication as numbers, of many the lowest `PROGRAM`: the programs of two
    # files share names in the proportion in which they share the lowest of both
    program: tuple[int, ...] = ()


def evidence_of(table: EventTable) -> Evidence:
    """The evidence in a table."""
    groups = [_group(text) for text in table.dictionary("process_group_ranks")]
    group = max(groups, key=len, default=())
    device = np.array([category_of(text).device for text in table.dictionary("category")], np.bool_)
    rows = np.append(device, False)[table.codes("category")]
    work = _work(table, rows)
    on_device = int(rows.sum())
    communicates = (
        len(group) > 1
        or EventClass.COMMUNICATION in work.values()
        or any(name.startswith(_BACKEND_CALL) for name in table.dictionary("name"))
    )
    return Evidence(
        _ranks(table, groups), group, on_device, _graphs(table, on_device), _digest(table),
        _meetings(table, device), communicates, tuple(sorted(map(_number_of, work))[:PROGRAM]),
    )  # fmt: skip


def _work(table: EventTable, rows: Bool) -> dict[str, EventClass]:
    """The names of these events that compute or communicate, as the rules of this library see them."""
    names, categories = table.dictionary("name"), table.dictionary("category")
    codes = table.codes("name")[rows].astype(np.int64) * (len(categories) + 1) + table.codes("category")[rows]
    found = {}
    for code in np.unique(codes).tolist():
        name, category = divmod(code, len(categories) + 1)
        if name >= 0:
            found[names[name]], _ = classify(categories[category], names[name], ())
    return {
        name: kind for name, kind in found.items() if kind in (EventClass.COMPUTE, EventClass.COMMUNICATION)
    }


def _ranks(table: EventTable, groups: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    rows, numbers = table.sparse("process_rank")
    usable = (numbers >= 0) & (numbers < MOST_RANKS)
    rows, numbers = rows[usable], numbers[usable]
    if not len(rows):
        return ()
    names, lists = table.dictionary("collective_name"), table.dictionary("process_group_ranks")
    alike = np.array([*map(bool, map(_OF_ALL_ALIKE.search, names)), True])
    rows, numbers = (values[alike[_codes(table, "collective_name", rows)]] for values in (rows, numbers))
    found: set[int] = set()
    for code, number in set(
        zip(_codes(table, "process_group_ranks", rows).tolist(), numbers.tolist(), strict=True)
    ):
        members = groups[code] if code >= 0 else ()
        if number < len(members):
            found.add(members[number])
        elif number in members or (not members and (code < 0 or len(lists[code]) < 3)):
            found.add(number)
    return tuple(sorted(found)[:2])


def _meetings(table: EventTable, device: Bool) -> tuple[tuple[int, int], ...]:
    """When numbered collectives end on the device, the same on all ranks but for their clocks."""
    rows, seq = table.sparse("seq")
    on_device = np.append(device, False)[table.codes("category")[rows]]
    rows, seq = rows[on_device & (seq >= 0)], seq[on_device & (seq >= 0)]
    alike = np.array([*map(bool, map(_OF_ALL_ALIKE.search, table.dictionary("collective_name"))), False])
    chosen = alike[_codes(table, "collective_name", rows)]
    rows, seq = rows[chosen], seq[chosen]
    end = table.ints("start_ns")[rows] + table.ints("dur_ns")[rows]
    if not len(rows):
        return ()
    columns = ("collective_name", "process_group_name", "process_group_ranks")
    number = np.zeros(len(rows), np.int64)
    for column in columns:  # which of the combinations of texts, by a number that all files give it
        known = np.array([*map(_number_of, table.dictionary(column)), 0], np.int64)
        number = number * 1_000_003 + known[_codes(table, column, rows)]
    mixed = (number * 1_000_003 + seq) * _MIXER
    keys = (mixed ^ (mixed >> 29)) & _POSITIVE
    keys, first, count = np.unique(keys, return_index=True, return_counts=True)
    keys, first = keys[count == 1][:_MEETINGS], first[count == 1][:_MEETINGS]
    return tuple(zip(keys.tolist(), end[first].tolist(), strict=True))


def _number_of(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6)
    return int.from_bytes(digest.digest(), "big")


def _codes(table: EventTable, column: str, rows: Int32) -> Int32:
    """Of some events the codes of a sparse column, -1 where they have none."""
    event, codes = table.sparse(column)
    if not len(event) or not len(rows):
        return np.full(len(rows), -1, np.int32)
    at = np.minimum(np.searchsorted(event, rows), len(event) - 1)
    return np.where(event[at] == rows, codes[at], -1).astype(np.int32)


def _group(text: str) -> tuple[int, ...]:
    """The ranks of a process group, written as a list or as the text of one; () if they are cut short."""
    try:
        value = json.loads(text)
        value = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return ()
    if not isinstance(value, list) or not all(type(rank) is int and 0 <= rank < MOST_RANKS for rank in value):
        return ()
    return tuple(value)


def _graphs(table: EventTable, on_device: int) -> Graphs:
    names = table.dictionary("name")
    if any("GraphLaunch" in name for name in names):
        return "replay" if on_device else ""
    if not any(_CAPTURE.search(name) for name in names):
        return ""
    launch = np.array([*(bool(_LAUNCH.search(name)) for name in names), False])
    launches = int(launch[table.codes("name")].sum())
    return "capture" if on_device < _RUN_SHARE * launches else ""


def _digest(table: EventTable) -> str:
    start = table.ints("start_ns")
    first = np.flatnonzero(start != NULL)[:_DIGESTED]
    columns = [start[first], table.ints("dur_ns")[first]]
    texts = [table.dictionary(column)[:256] for column in ("pid", "tid", "name")]
    written = hashlib.blake2b(repr((table.n, texts)).encode("utf-8", "replace"), digest_size=16)
    for column in columns:
        written.update(np.ascontiguousarray(column).tobytes())
    return written.hexdigest()
