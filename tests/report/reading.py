"""Reads a report back, as its own script does."""

import base64
import gzip
import json
import re
import struct
from functools import lru_cache
from typing import Any

from tests.widgets.decoded import numbers


def unpack(block: bytes) -> Any:
    """What `hta_widgets.report.payload.pack` packed."""
    plain = gzip.decompress(block)
    (length,) = struct.unpack_from("<I", plain)
    document = json.loads(plain[4 : 4 + length])
    value, at = document["value"], 4 + length
    for path, size in zip(document["paths"], document["sizes"], strict=True):
        place = value
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = plain[at : at + size]
        at += size
    return value


@lru_cache(1)  # one report is asked for several parts
def content(html: str) -> dict[str, Any]:
    """The content of a report: {root, about, parts}."""
    found = re.search(r'<script type="text/plain" id="hta-payload">([^<]*)</script>', html)
    assert found
    result: dict[str, Any] = unpack(base64.b64decode(found[1]))
    return result


def part(html: str, view: str, **traits: Any) -> dict[str, Any]:
    """The one part of a report with that view and those traits: {state, questions}."""
    (found,) = [
        item
        for item in content(html)["parts"].values()
        if {"_view": view, **traits}.items() <= item["state"].items()
    ]
    result: dict[str, Any] = found
    return result


def column(state: dict[str, Any], name: str) -> list[float]:
    """A column of numbers of a part's table."""
    return numbers(state["table"], name)
