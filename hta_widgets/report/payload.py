"""Nested values that contain bytes, as one compressed block (browser's half: ``js/src/report/payload.ts``).

The block is the gzip of: the length of a JSON text as a little-endian uint32, the text, the buffers. In the
text, each buffer is null; `paths` holds its place and `sizes` its length.
"""

from __future__ import annotations

import gzip
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

Path = list[str | int]


def pack(value: Any) -> bytes:
    """`value`, made of mappings, sequences, text, numbers, None and bytes, as one block. NaN becomes null."""
    buffers: list[bytes] = []
    paths: list[Path] = []
    plain = _detached(value, [], paths, buffers)
    document = {"value": plain, "paths": paths, "sizes": [len(buffer) for buffer in buffers]}
    # ASCII: names in traces may contain lone surrogates, which UTF-8 cannot encode
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()
    # the same content gives the same file
    return gzip.compress(b"".join([struct.pack("<I", len(text)), text, *buffers]), 6, mtime=0)


def _detached(value: Any, path: Path, paths: list[Path], buffers: list[bytes]) -> Any:
    """`value` without its bytes, which go to `buffers`."""
    if isinstance(value, Mapping):
        return {str(key): _detached(item, [*path, str(key)], paths, buffers) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_detached(item, [*path, index], paths, buffers) for index, item in enumerate(value)]
    if isinstance(value, bytes | bytearray | memoryview):
        buffers.append(bytes(value))
        paths.append(path)
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
