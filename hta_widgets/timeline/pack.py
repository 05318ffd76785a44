"""Timeline columns in few bytes, as sent from the kernel to the browser.

Starts are sent as the gap to the previous slice's end in the lane, both gap and duration as uint32 ns. A
value that does not fit (4.29 s and more) is sent as `ESCAPE`, and its exact value follows in a float64 list,
in order of appearance. Columns are byte-shuffled (all lowest bytes first) because that makes deflate
effective on them. `js/src/timeline/decode.ts` is the browser's half.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hta_widgets.timeline.lanes import Lanes
from hta_widgets.timeline.pyramid import Items

ESCAPE = 0xFFFFFFFF
CHUNK_BYTES = 1_000_000  # messages stay below the 1 MB that every Jupyter front end carries


@dataclass(frozen=True)
class Packed:
    """A deflated block with the layout that is needed to read it."""

    layout: dict[str, Any]
    data: bytes

    @property
    def chunks(self) -> int:
        return max(1, -(-len(self.data) // CHUNK_BYTES))

    def chunk(self, number: int) -> bytes:
        """Raises ValueError for a chunk that does not exist."""
        if not 0 <= number < self.chunks:
            raise ValueError(f"chunk {number} of {self.chunks}")
        return self.data[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]


def pack_json(value: Any) -> Packed:
    """A JSON document, which may be larger than one message: names alone can be megabytes."""
    return Packed({}, zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1))


def pack_slices(lanes: Lanes) -> Packed:
    """All slices and launch flows of `lanes`: about 3 to 4 bytes per slice."""
    times, layout = _times(lanes.start, lanes.start + lanes.dur, lanes.offsets, lanes.extent[0])
    kind = _narrow(lanes.kind, len(lanes.kinds.names))
    source = np.diff(lanes.flow_source, prepend=np.int32(0))
    target = np.diff(lanes.flow_target, prepend=np.int32(0))
    layout |= {"kind_bytes": kind.itemsize, "flows": len(source)}
    moved = _moved(lanes, np.arange(lanes.n))
    layout |= {"moved": True} if moved else {}
    data = b"".join([*times, shuffled(kind), shuffled(source), shuffled(target), *moved])
    return Packed(layout, zlib.compress(data, 1))


def pack_window(lanes: Lanes, items: Items, origin_ns: int) -> Packed:
    """The answer to one window request; times count from `origin_ns`."""
    times, layout = _times(items.start, items.end, items.offsets, origin_ns)
    kind = _narrow(lanes.kind[items.longest], len(lanes.kinds.names))
    moved = _moved(lanes, items.longest)
    layout |= {"kind_bytes": kind.itemsize, **({"moved": True} if moved else {})}
    cover = np.ceil(255 * items.busy / np.maximum(items.end - items.start, 1)).clip(0, 255).astype(np.uint8)
    data = b"".join(
        [*times, shuffled(kind), shuffled(items.longest), shuffled(items.count),
         items.event_class.tobytes(), cover.tobytes(), *moved]
    )  # fmt: skip
    return Packed(layout, zlib.compress(data, 1))


def _moved(lanes: Lanes, positions: NDArray[Any]) -> list[bytes]:
    """The recorded start and duration of slices that lie at other times, as differences in float64."""
    if lanes.recorded is None:
        return []
    pairs = zip(lanes.recorded, (lanes.start, lanes.dur), strict=True)
    return [(was[positions] - now[positions]).astype("<f8").tobytes() for was, now in pairs]


def shuffled(values: NDArray[Any]) -> bytes:
    """Little-endian bytes of a column, all first bytes, then all second bytes, and so on."""
    little = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False))
    return little.view(np.uint8).reshape(-1, little.itemsize).T.tobytes()


def _times(
    start: NDArray[np.int64], end: NDArray[np.int64], offsets: NDArray[np.int64], origin: int
) -> tuple[list[bytes], dict[str, Any]]:
    previous = np.empty_like(start)
    previous[1:] = end[:-1]
    firsts = offsets[:-1][offsets[:-1] < offsets[1:]]
    previous[firsts] = origin
    gap, gap_escapes = _escaped(start - previous)
    dur, dur_escapes = _escaped(end - start)
    layout = {
        "n": len(start),
        "origin": origin,
        "gap_escapes": len(gap_escapes),
        "dur_escapes": len(dur_escapes),
    }
    return [shuffled(gap), shuffled(dur), gap_escapes.tobytes(), dur_escapes.tobytes()], layout


def _escaped(values: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """uint32 column and the list of exact values for its escapes. Negative values (before the origin) escape
    too."""
    too_big = (values >= ESCAPE) | (values < 0)
    return np.where(too_big, ESCAPE, values).astype(np.uint32), values[too_big].astype("<f8")


def _narrow(codes: NDArray[Any], size: int) -> NDArray[Any]:
    return codes.astype(np.uint16 if size <= 1 << 16 else np.uint32)
