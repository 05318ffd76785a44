"""Files into which a tool has merged the traces of several ranks: each rank is taken out again.

Such a tool writes the rank into the names of the processes (`Rank 3`, `rank3: python`), or into their ids
(`[TP03] 71`, as SGLang does). An event belongs to the rank of its process; nothing else tells ranks apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int64
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.stated import MOST_RANKS
from hta_widgets.trace.reader.table import EventTable, Problem

_RANK = re.compile(r"\brank[-_ :=#]*(\d{1,9})(?!\d)", re.IGNORECASE)
_PLACE = re.compile(r"^\[((?:[A-Z]{2}\d{1,4}-?)+)\]")
_NAMES = (("process_name", "args_name"), ("process_labels", "args_labels"))


def by_rank(table: EventTable) -> list[EventTable]:
    """The table of each rank in a file, by rank; the file's own where its processes tell of one rank."""
    pids = table.dictionary("pid")
    rank_of_pid = _ranks_of(table, pids)
    if len(set(rank_of_pid[rank_of_pid >= 0].tolist())) > 1:
        codes = table.codes("pid")
        # What is no work of a process need not tell its rank: Kineto's own span and its instant events
        # ("Iteration Start", "Record Window End") are on processes of their own.
        work = _has(table, "phase", "XBE") & ~_has(table, "category", ["Trace"])
        ranks = np.unique(rank_of_pid[codes[work & (codes >= 0) & (table.ints("start_ns") != NULL)]])
        if len(ranks) > 1 and ranks[0] >= 0:
            of_event = np.append(rank_of_pid, -1)[codes]
            return [_part(table, of_event == rank, rank) for rank in ranks.tolist()]
    return [table]


def note_several(table: EventTable, stated: Sequence[int]) -> None:
    """Say of a table of one rank, once, that its collectives state several, if they do."""
    if len(stated) > 1 and all(problem.check != "merged_ranks" for problem in table.problems):
        some = ", ".join(map(str, stated))
        detail = (
            f"its collectives are of ranks {some}, and its processes do not say which rank each is of: the "
            "events count as one rank's; open the files from which it was merged"
        )
        table.problems.append(Problem("merged_ranks", "warning", len(stated), None, detail))


def _has(table: EventTable, column: str, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which events have one of these texts."""
    chosen = np.array([*(text in texts for text in table.dictionary(column)), False])
    return chosen[table.codes(column)]


def _ranks_of(table: EventTable, pids: list[str]) -> Int64:
    """The rank of each process, -1 where neither its id nor its name tells."""
    found = np.array([_number(_RANK, text) for text in pids], np.int64)
    phase, name = table.dictionary("phase"), table.dictionary("name")
    for event, column in _NAMES:
        if event not in name or "M" not in phase:
            continue
        rows, texts = table.sparse(column)
        of_name = (table.codes("name")[rows] == name.index(event)) & (
            table.codes("phase")[rows] == phase.index("M")
        )
        rank_of_text = np.array([_number(_RANK, text) for text in table.dictionary(column)], np.int64)
        for pid, rank in zip(table.codes("pid")[rows[of_name]], rank_of_text[texts[of_name]], strict=True):
            if pid >= 0 and rank >= 0 and found[pid] < 0:
                found[pid] = rank
    if (found < 0).all():
        places = [match[1] if (match := _PLACE.match(text)) else "" for text in pids]
        order = {place: rank for rank, place in enumerate(sorted(set(places) - {""}, key=_numbers))}
        found = np.array([order.get(place, -1) for place in places], np.int64)
    return found


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match and int(match[1]) < MOST_RANKS else -1


def _numbers(place: str) -> tuple[list[str], list[int]]:
    """`DP00-TP03` by the kinds of parallelism, then by their numbers."""
    return re.findall(r"[A-Z]+", place), [int(number) for number in re.findall(r"\d+", place)]


def _part(table: EventTable, chosen: npt.NDArray[np.bool_], rank: int) -> EventTable:
    """The events of one rank, in the order of the file."""
    place = np.cumsum(chosen, dtype=np.int32) - 1
    dense: dict[str, Any] = {}
    for name in table.dense_columns:
        values = table.codes(name) if name in table.text_columns else table.ints(name)
        dense[name] = values[chosen]
    sparse: dict[str, Any] = {}
    for name in table.sparse_columns:
        rows, values = table.sparse(name)
        kept = chosen[rows]
        if kept.any():
            sparse[name] = place[rows[kept]], values[kept]
    info = table.metadata.get("distributedInfo")
    stated = {**(info if isinstance(info, dict) else {}), "rank": int(rank)}
    metadata = {**table.metadata, "distributedInfo": stated}
    texts = {name: table.dictionary(name) for name in table.text_columns}
    for name in texts:  # only those that the rank has: others would seem to occur
        if name in dense:
            dense[name], texts[name] = _used(dense[name], texts[name])
        elif name in sparse:
            codes, texts[name] = _used(sparse[name][1], texts[name])
            sparse[name] = sparse[name][0], codes
        else:
            texts[name] = []
    problems = list(table.problems)
    return EventTable(table.path, int(chosen.sum()), dense, sparse, texts, metadata, problems)


def _used(codes: npt.NDArray[Any], texts: list[str]) -> tuple[npt.NDArray[np.int32], list[str]]:
    """The codes into the texts that occur, and these."""
    kept = np.unique(codes[codes >= 0])
    number = np.full(len(texts) + 1, -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    return number[codes], [texts[code] for code in kept.tolist()]
