"""Trace files as JSON documents: reading, writing, and which file is whose."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from hta_widgets.errors import TraceFormatError, TraceNotFoundError
from hta_widgets.trace.evidence import evidence_of
from hta_widgets.trace.reader.discovery import discover
from hta_widgets.trace.reader.parallel import read_all
from hta_widgets.trace.reader.ranks import Stated, assign_ranks
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.whole_files import replacing

_ENDINGS = (".gz", ".json")


def read_trace(file_path: str | Path) -> dict[str, Any]:
    """The JSON document in a file, compressed or not.

    Raises:
        ValueError: the name ends neither in ``.gz`` nor in ``.json``.
        TraceFormatError: the file holds no JSON object.
    """
    text = _bytes(file_path)
    try:
        document = json.loads(text, strict=False)
    except ValueError as error:
        raise TraceFormatError(file_path, f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise TraceFormatError(file_path, "not a JSON object")
    return document


def _bytes(path: str | Path) -> bytes:
    path = Path(path)
    if not path.name.endswith(_ENDINGS):
        raise ValueError(f"{path}: the name of a trace ends in .gz or .json")
    raw = path.read_bytes()
    return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw


def write_trace(trace_data: Mapping[str, Any], file_path: str | Path) -> None:
    """Write a JSON document, compressed if the name ends in ``.gz``; its folder is made where needed.

    The file appears whole or not at all.
    """
    path = Path(file_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    compressed = path.name.endswith(".gz")
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    text = orjson.dumps(trace_data, option=options if compressed else options | orjson.OPT_INDENT_2)
    with replacing(path) as file:
        file.write(gzip.compress(text, 6) if compressed else text)


def update_trace_rank(file_path: str | Path, rank: int) -> None:
    """Set ``distributedInfo.rank`` in a file, in place."""
    document = read_trace(file_path)
    info = document.get("distributedInfo")
    document["distributedInfo"] = {**(info if isinstance(info, dict) else {}), "rank": int(rank)}
    write_trace(document, file_path)


def create_rank_to_trace_dict(file_list: list[str]) -> tuple[bool, dict[int, str]]:
    """Whether all files could be read, and rank -> file. No file is lost: see `trace.reader.discovery`."""
    found = discover(list(file_list))
    tables, failed = read_all(found.files, cache=True)
    usable = [(file, table) for file, table in zip(found.files, tables, strict=True) if table is not None]
    assigned = assign_ranks([file for file, _ in usable], [_stated(table) for _, table in usable])
    by_rank = {assignment.rank: table.path for assignment, (_, table) in zip(assigned, usable, strict=True)}
    return not failed, dict(sorted(by_rank.items()))


def _stated(table: EventTable) -> Stated:
    evidence = evidence_of(table)
    return Stated(table.metadata, evidence.ranks, evidence.group)


def create_rank_to_trace_dict_from_dir(trace_dir: str) -> tuple[bool, dict[int, str]]:
    """`create_rank_to_trace_dict` for the traces of a folder."""
    try:
        files = [str(file.source) for file in discover(trace_dir).files]
    except TraceNotFoundError:
        return False, {}
    return create_rank_to_trace_dict(files)


def get_trace_files(trace_path: str) -> dict[int, str]:
    """rank -> file for the traces of a folder; empty where there is none."""
    return create_rank_to_trace_dict_from_dir(trace_path)[1]
