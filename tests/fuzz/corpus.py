"""What is mutated: events of every shape and the heads of the shared recordings, cut down to a few bytes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hta_widgets import examples
from tests.support import SHARED_TRACES

READ = 1 << 19  # of each recording
SHAPES = 12  # of each recording
LONGEST = 200  # bytes of a value that is kept
BUNDLED = Path(examples.__file__).parent / "data"

Members = list[tuple[str, str]]
"""The members of an object: keys and values as JSON text."""


class _Literal(str):
    """A number as it stands in the text."""


class _Object(list[Any]):
    """The members of an object in their order."""


@dataclass(frozen=True)
class Event:
    """An event; the member `args` holds `arguments`, if it has an empty text."""

    members: Members
    arguments: Members


@dataclass(frozen=True)
class Corpus:
    """Seeds; the heads are members of whole files."""

    events: list[Event]
    heads: list[Members]


@cache
def corpus() -> Corpus:
    """Of the shared recordings where there are any, and of the bundled examples."""
    events, heads = [], []
    for folder in (BUNDLED, SHARED_TRACES):
        for path in sorted(folder.rglob("*.json*")) if folder.is_dir() else ():
            head, found = _read(path)
            heads += [head] if head else []
            events += found
    return Corpus(events, heads)


def _read(path: Path) -> tuple[Members, list[Event]]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        text = file.read(READ).decode("utf-8", "replace")
    before, key, after = text.partition('"traceEvents":')
    if not key:
        return [], []
    shapes: dict[Any, Event] = {}
    for item in _events(after):
        members = dict(item)
        arguments = members.get("args")
        keys = tuple(key for key, _ in arguments) if isinstance(arguments, _Object) else None
        shape = (members.get("ph"), members.get("cat"), tuple(members), keys)
        if shape not in shapes:
            shapes[shape] = _cut_down(item)
        if len(shapes) == SHAPES:
            break
    try:
        head = _decoder().decode(before.rstrip().rstrip(",") + "}")
    except ValueError:
        head = []
    return [(_text(key), text) for key, value in head if len(text := _text(value)) < LONGEST], [
        *shapes.values()
    ]


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_float=_Literal, parse_int=_Literal, object_pairs_hook=_Object)


def _events(text: str) -> Iterator[_Object]:
    decoder, at = _decoder(), text.find("{")
    while at >= 0:
        try:
            item, end = decoder.raw_decode(text, at)
        except ValueError:
            return  # cut at READ
        if isinstance(item, _Object):
            yield item
        at = text.find("{", end)


def _cut_down(item: _Object) -> Event:
    arguments = next(
        (value for key, value in item if key == "args" and isinstance(value, _Object)), _Object()
    )
    return Event(
        [(_text(key), "" if value is arguments else _short(_text(value))) for key, value in item],
        [(_text(key), text) for key, value in arguments if len(text := _text(value)) < LONGEST],
    )


def _text(value: Any) -> str:
    """JSON, the numbers as they were."""
    if isinstance(value, _Literal):
        return value
    if isinstance(value, _Object):
        return "{" + ",".join(f"{_text(key)}:{_text(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) < LONGEST else '"cut"'
