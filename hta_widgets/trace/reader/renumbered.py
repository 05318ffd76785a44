"""A file of a replica that numbers its ranks from 0, with the ranks of the job.

What a file states of ranks (its own, those of process groups, the sender of a message) counts within its
replica; the same numbers mean other ranks in the next one.
"""

from __future__ import annotations

import json
from typing import Any

from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable

_RANKS = ("process_rank", "source_rank", "destination_rank")


def renumbered_metadata(metadata: dict[str, Any], shift: int, world: int) -> dict[str, Any]:
    """The top-level keys of a file, of a job of `world` ranks of which its replica begins with `shift`."""
    info = dict(metadata.get("distributedInfo", {}))
    if isinstance(rank := info.get("rank"), int):
        info["rank"] = rank + shift
    info["world_size"] = world
    if isinstance(groups := info.get("pg_config"), list):
        info["pg_config"] = [_group(group, shift) for group in groups]
    return {**metadata, "distributedInfo": info}


def _group(group: Any, shift: int) -> Any:
    if not isinstance(group, dict) or not isinstance(ranks := group.get("ranks"), list):
        return group
    return {**group, "ranks": [rank + shift if type(rank) is int else rank for rank in ranks]}


def renumbered(table: EventTable, shift: int, world: int) -> EventTable:
    """The events of such a file; shares the columns that hold no ranks."""
    columns = {}
    for name in _RANKS:
        rows, ranks = table.sparse(name)
        if len(rows):
            columns[name] = rows, ranks + shift * ((ranks >= 0) & (ranks != NULL))
    lists = [_shifted(text, shift) for text in table.dictionary("process_group_ranks")]
    texts = {"process_group_ranks": lists} if lists else {}
    return table.changed(columns, texts, renumbered_metadata(table.metadata, shift, world))


def _shifted(text: str, shift: int) -> str:
    try:
        value = json.loads(text)
        ranks = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return text
    if not isinstance(ranks, list) or not all(type(rank) is int for rank in ranks):
        return text
    shifted = json.dumps([rank + shift for rank in ranks])
    return json.dumps(shifted) if isinstance(value, str) else shifted
