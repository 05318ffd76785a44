"""Make a large trace out of a real one, by playing it again and again, one after the other.

Each tile is the whole trace shifted in time, with ids of its own (correlation, external ids, flow ids) and
the step numbers counted on, so that links, iterations and distinct timestamps grow with the size as they do
in a longer recording. Names repeat, as they do in a longer recording.

    python benchmarks/tile_trace.py trace.json.gz big.json --megabytes 200
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, cast

STEP = re.compile(r"^(ProfilerStep\s*#\s*)(\d+)$")
# In `args`: ids that tie the events of one tile together and must not tie tiles to each other.
ID_KEYS = (
    "correlation",
    "External id",
    "external id",
    "Ev Idx",
    "Record function id",
    "Sequence number",
)
HOLE = re.compile(r'("?)\x00(\w+)\x00(-?[\d.]+)\x00("?)')

Piece = tuple[str, str, Decimal]  # text before a number, what kind of number, its value in the first tile


def tile(source: Path, target: Path, megabytes: float) -> int:
    """Write `target` (gzip if named so) of about `megabytes` of JSON text; returns the tiles used."""
    with _open(source, "rt") as file:
        # Decimal: timestamps of 16 digits before the point and 3 behind it do not survive a float.
        trace = json.load(file, parse_float=Decimal)
    events: list[dict[str, Any]] = trace.pop("traceEvents")
    fixed = [json.dumps(event, default=float) for event in events if event.get("ph") == "M"]
    templates = [_template(event) for event in events if event.get("ph") != "M" and "ts" in event]
    offsets = _offsets(events)

    left = int(megabytes * 1e6)
    tiles = 0
    with _open(target, "wt") as file:
        head = json.dumps(trace, default=float)
        file.write(head[:-1] + (", " if trace else "") + '"traceEvents": [\n' + ",\n".join(fixed))
        separator = ",\n" if fixed else ""
        while left > 0:
            for text in _play(templates, offsets, tiles):
                file.write(separator)
                file.write(text)
                separator = ",\n"
                left -= len(text) + len(separator)
                if left <= 0:
                    break
            tiles += 1
        file.write("\n]}\n")
    return tiles


def _open(path: Path, mode: str) -> IO[Any]:
    if path.suffix == ".gz":
        return cast(IO[Any], gzip.open(path, mode))
    return path.open(mode)


def _template(event: dict[str, Any]) -> tuple[list[Piece], str]:
    """An event as text with holes where a number differs from tile to tile."""
    event = dict(event)
    event["ts"] = _hole("time", event["ts"])
    if event.get("ph") in ("s", "t", "f") and isinstance(event.get("id"), int):
        event["id"] = _hole("id", event["id"])
    step = STEP.match(str(event.get("name", "")))
    if step:
        event["name"] = f"{step[1]}{_hole('step', step[2])}"
    if isinstance(event.get("args"), dict):
        numbered = {
            key for key in ID_KEYS if isinstance(event["args"].get(key), int) and event["args"][key] > 0
        }
        event["args"] = {
            key: _hole("id", value) if key in numbered else value for key, value in event["args"].items()
        }
    text = json.dumps(event, default=float).replace("\\u0000", "\x00")
    pieces: list[Piece] = []
    begin = 0
    for hole in HOLE.finditer(text):
        # A hole that is a whole value takes its quotes along; a step ends a name and leaves them.
        whole = bool(hole[1] and hole[4])
        first, last = hole.span() if whole else (hole.start(2) - 1, hole.end(3) + 1)
        pieces.append((text[begin:first], hole[2], Decimal(hole[3])))
        begin = last
    return pieces, text[begin:]


def _hole(kind: str, value: object) -> str:
    return f"\x00{kind}\x00{value}\x00"


def _offsets(events: list[dict[str, Any]]) -> dict[str, Decimal]:
    """How far apart two tiles are, in time (whole us), in ids and in steps."""
    timed = [event for event in events if event.get("ph") == "X" and "ts" in event]
    start = min(Decimal(event["ts"]) for event in timed)
    end = max(Decimal(event["ts"]) + Decimal(event.get("dur") or 0) for event in timed)
    ids = [
        event["args"][key]
        for event in timed
        for key in ID_KEYS
        if isinstance(event.get("args"), dict) and isinstance(event["args"].get(key), int)
    ]
    steps = [int(step[2]) for event in timed if (step := STEP.match(str(event.get("name", ""))))]
    return {
        "time": Decimal(int(end - start) + 1000),
        "id": Decimal(max(ids, default=0) + 1),
        "step": Decimal(max(steps) - min(steps) + 1 if steps else 0),
    }


def _play(
    templates: list[tuple[list[Piece], str]], offsets: dict[str, Decimal], number: int
) -> Iterator[str]:
    shift = {kind: offset * number for kind, offset in offsets.items()}
    for pieces, tail in templates:
        yield "".join(f"{text}{value + shift[kind]}" for text, kind, value in pieces) + tail


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a large trace by repeating a real one.")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path, help="ends in .json or .json.gz")
    parser.add_argument("--megabytes", type=float, default=200.0, help="size of the JSON text")
    arguments = parser.parse_args()
    tiles = tile(arguments.source, arguments.target, arguments.megabytes)
    print(f"{arguments.target}: {tiles} tiles, {arguments.target.stat().st_size / 1e6:.1f} MB on disk")


if __name__ == "__main__":
    main()
