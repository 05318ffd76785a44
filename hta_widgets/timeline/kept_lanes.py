"""Lanes and levels of a job's slices, kept beside its cached columns.

They follow from the ranks' slices and this code alone, and making them takes some thirty times as long as
reading them. As with `trace.kept_links`, a file is named after all that it follows from, so none is ever
stale.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hta_widgets import trace as _trace
from hta_widgets.engine import submit
from hta_widgets.timeline.kinds import Kinds
from hta_widgets.timeline.lanes import Lanes, build_lanes
from hta_widgets.timeline.pyramid import Items, Level, Pyramid
from hta_widgets.timeline.tracks import Track
from hta_widgets.trace.kept_links import code_of
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.cache_budget import fits, trim
from hta_widgets.trace.reader.sealed import DamagedFileError, read_sealed, sealed

_FOLDER: Final = "lanes"
_PART_OF_BUDGET: Final = 0.2
_SLICES: Final = ("start", "dur", "kind", "event_id")
_COLUMNS: Final = (*_SLICES, "offsets", "flow_source", "flow_target")
_ITEMS: Final = ("start", "end", "busy", "count", "longest", "event_class", "offsets")

Columns = dict[str, Any]  # arrays


def lanes_of(
    trace: Trace, checkpoint: Callable[[], None] = lambda: None, python_apart: bool = False
) -> Lanes:
    """`build_lanes` of all ranks of a job as recorded, as an earlier process has left them where one has.

    What is arranged is kept in another thread, once it is there.
    """
    file = _file(trace, python_apart, "slices")
    if file is not None and (known := _read_lanes(file, sum(trace.rank(rank).n for rank in trace.ranks))):
        return known
    ranks = []
    for number in trace.ranks:
        checkpoint()
        ranks.append(trace.rank(number))
    lanes = build_lanes(ranks, checkpoint, python_apart=python_apart)
    if file is not None:
        submit(partial(_write_lanes, file, lanes))
    return lanes


def pyramid_of(
    trace: Trace, lanes: Lanes, checkpoint: Callable[[], None] = lambda: None, python_apart: bool = False
) -> Pyramid:
    """The pyramid of `lanes_of` with the same arguments, its levels kept likewise."""
    file = _file(trace, python_apart, "levels")
    if file is not None and (known := _read_levels(file, lanes)) is not None:
        return Pyramid(lanes, checkpoint, known)
    pyramid = Pyramid(lanes, checkpoint)
    if file is not None:
        submit(partial(_write_levels, file, pyramid.merged))
    return pyramid


def _file(trace: Trace, python_apart: bool, what: str) -> Path | None:
    """Where a part of an arrangement is kept; None where that, or this code, cannot be named."""
    code = code_of(Path(__file__).parent, Path(_trace.__file__).parent)
    if trace.answers is None or not trace.slice_keys or not code:
        return None
    key = hashlib.blake2b(repr([code, trace.slice_keys, python_apart]).encode(), digest_size=16)
    return trace.answers.with_name(_FOLDER) / f"{key.hexdigest()}.{what}.arrow"


def _read_lanes(file: Path, n: int) -> Lanes | None:
    found = _read(file)
    if found is None:
        return None
    columns, about = found
    lanes = Lanes(
        **{name: columns[name] for name in _COLUMNS},
        tracks=tuple(Track(**track) for track in about["tracks"]),
        kinds=Kinds(about["names"], about["categories"], columns["classes"]),
    )
    return lanes if all(len(columns[name]) == n for name in _SLICES) else None


def _write_lanes(file: Path, lanes: Lanes) -> None:
    columns = {name: getattr(lanes, name) for name in _COLUMNS}
    about = {
        "tracks": [asdict(track) for track in lanes.tracks],
        "names": lanes.kinds.names,
        "categories": lanes.kinds.categories,
    }
    _write(file, {**columns, "classes": lanes.kinds.classes}, about)


def _read_levels(file: Path, lanes: Lanes) -> list[Level] | None:
    found = _read(file)
    if found is None:
        return None
    columns, widths = found
    levels = [Level(width, Items(*(columns[f"{width}/{name}"] for name in _ITEMS))) for width in widths]
    return levels if all(int(level.items.count.sum()) == lanes.n for level in levels) else None


def _write_levels(file: Path, levels: tuple[Level, ...]) -> None:
    columns = {f"{level.width_ns}/{name}": getattr(level.items, name) for level in levels for name in _ITEMS}
    _write(file, columns, [level.width_ns for level in levels])


def _read(file: Path) -> tuple[Columns, Any] | None:
    """What `_write` wrote; None where there is nothing, or the file is damaged."""
    try:
        batch = pa.ipc.open_stream(read_sealed(file)).read_next_batch()
        columns = {
            name: column.values.to_numpy() for name, column in zip(batch.schema.names, batch, strict=True)
        }
        about = json.loads(batch.schema.metadata[b"about"])
    except (OSError, DamagedFileError, ValueError, KeyError, StopIteration, pa.ArrowException):
        return None
    with contextlib.suppress(OSError):
        file.touch()  # marks it as recently used
    return columns, about


def _write(file: Path, columns: Mapping[str, NDArray[Any]], about: Any) -> None:
    """Keep columns. That they cannot be written is no error."""
    if not fits(sum(column.nbytes for column in columns.values()), _PART_OF_BUDGET):
        return
    with contextlib.suppress(OSError, pa.ArrowException):
        # one record of list values: Arrow wants columns of one length
        lists = [
            pa.LargeListArray.from_arrays(np.array([0, len(column)]), pa.array(column))
            for column in columns.values()
        ]
        fields = [pa.field(name, each.type) for name, each in zip(columns, lists, strict=True)]
        schema = pa.schema(fields, metadata={"about": json.dumps(about)})
        batch = pa.record_batch(lists, schema=schema)
        with sealed(file) as sealing, pa.ipc.new_stream(pa.PythonFile(sealing, "w"), schema) as writer:
            writer.write_batch(batch)
        trim(file.parent, _PART_OF_BUDGET)
