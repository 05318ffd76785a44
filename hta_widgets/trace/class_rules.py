"""A trace's own rules for the classes of device work: from the caller, or from a file beside the traces.

A team that has kernels of its own puts a file `hta_widgets.toml` into the folder of its traces:

    [[class]]
    name = "my_ring"  # a regular expression, searched in the full name
    class = "communication"

`Trace.health` lists what is wrong with such a file; the rules that can be read still apply.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hta_widgets.errors import AccessDeniedError
from hta_widgets.trace.classify import EventClass, Rule, make_rule, registered
from hta_widgets.trace.reader.file_names import TraceFile
from hta_widgets.trace.reader.remote import RemoteFile, connected

FILE_NAME = "hta_widgets.toml"
LARGEST_BYTES = 1_000_000

_HEADER = re.compile(r"\s*\[\[\s*class\s*\]\]")
_FUNCTION = re.compile(r"(?:\(anonymous namespace\)|[^<(])*")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")

Classes = str | Path | Mapping[str, EventClass | str]


@dataclass(frozen=True)
class ClassRules:
    """The rules of one trace; the first that matches decides."""

    # those of the caller, then those of the files beside the traces, then those registered
    rules: tuple[Rule, ...] = ()
    # each file that was read and the number of rules it holds
    files: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()  # what is wrong with the files, each with file and line


def find_class_rules(path: Any, files: Sequence[TraceFile], classes: Classes | None = None) -> ClassRules:
    """The rules that hold for a trace.

    Args:
        path: what `Trace.open` was given; a folder may hold a file of rules.
        files: the files of the trace; each one's folder may hold a file of rules.
        classes: rules of the caller: the path of another such file, or {pattern: class}.

    Raises:
        ValueError: a class in the mapping is not one of device work, or a pattern is not a regular
            expression.
    """
    rules = list[Rule]()
    read = dict[str, int]()
    problems = list[str]()
    asked = list[str]()
    if isinstance(classes, Mapping):
        rules += [make_rule(pattern, event_class) for pattern, event_class in classes.items()]
    elif classes is not None:
        asked = [str(classes)]
    places: dict[str, Any] = {location: location for location in asked}
    for place in _beside(path, files):
        places.setdefault(place if isinstance(place, str) else place.path, place)
    for location, place in places.items():
        try:
            text = _text(place)
        except (FileNotFoundError, AccessDeniedError) as error:  # a store may refuse what it does not have
            if location in asked:
                problems.append(
                    str(error) if isinstance(error, AccessDeniedError) else f"{location}: no such file"
                )
            continue
        except (OSError, ValueError) as error:  # a folder, no permission, no UTF-8, a store out of reach
            problems.append(f"{location}: {error}")
            continue
        found, wrong = parse(text)
        rules += found
        read[location] = len(found)
        problems += [f"{location}, {place}" for place in wrong]
    return ClassRules((*rules, *registered()), read, tuple(problems))


def parse(text: str) -> tuple[list[Rule], list[str]]:
    """The rules of a file, and what is wrong with it: sentences that begin with the line."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        line = int(found[1]) if found else len(text.splitlines())
        return [], [f"line {line}: {_AT_LINE.sub('', str(error))}"]
    rules = list[Rule]()
    wrong = [f"line {_line_of(text, key)}: unknown key {key!r}" for key in content if key != "class"]
    entries = content.get("class", [])
    if not isinstance(entries, list):
        return [], [*wrong, f"line {_line_of(text, 'class')}: not a list of tables, write [[class]]"]
    for entry, (first, last) in zip(entries, _blocks(text, len(entries)), strict=True):
        try:
            rules.append(_rule(entry))
        except _EntryError as error:
            line = _line_of(text, error.key, first, last)
            wrong.append(f"line {line}: {error}")
    return rules, wrong


def function_pattern(name: str) -> str:
    """A pattern that finds a function by its full name, whatever its template arguments and parameters."""
    found = _FUNCTION.match(name)
    function = found[0] if found else ""
    escaped = re.escape(function or name).replace(
        "\\ ", " "
    )  # spaces need no escape, and read better without
    return rf"^{escaped}(?![\w:])" if function else f"^{escaped}$"


def as_text(rules: Mapping[str, str]) -> str:
    """Rules {pattern: class} as a file holds them."""
    return "\n".join(
        f'[[class]]\nname = {_quoted(pattern)}\nclass = "{label}"\n' for pattern, label in rules.items()
    )


def append_rules(folder: str | Path, rules: Mapping[str, str]) -> Path:
    """Add rules to the file of a folder, those whose pattern it does not have yet.

    Raises:
        OSError: the file cannot be read or written.
    """
    path = Path(folder).expanduser() / FILE_NAME
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    known = {rule.pattern.pattern for rule in parse(text)[0]}
    added = as_text({pattern: label for pattern, label in rules.items() if pattern not in known})
    path.write_text("\n".join(filter(None, (text, added))), encoding="utf-8")
    return path


def _quoted(pattern: str) -> str:
    """As a string of TOML, where possible one without escapes, which would double those of the pattern."""
    if pattern.isprintable() and "'" not in pattern:
        return f"'{pattern}'"
    return json.dumps(pattern, ensure_ascii=False).replace("\x7f", "\\u007f")


class _EntryError(ValueError):
    """A [[class]] that is no rule; `key` is the one to blame."""

    def __init__(self, key: str, message: str) -> None:
        self.key = key
        super().__init__(message)


def _rule(entry: Any) -> Rule:
    if not isinstance(entry, dict):
        raise _EntryError("class", "not a table with name and class")
    for key in entry:
        if key not in ("name", "class"):
            raise _EntryError(key, f"unknown key {key!r}")
    for key in ("name", "class"):
        if not isinstance(entry.get(key), str):
            raise _EntryError(key, f"{key!r} is not a text" if key in entry else f"{key!r} is missing")
    for key, pattern, event_class in (
        ("name", entry["name"], EventClass.COMPUTE),
        ("class", "", entry["class"]),
    ):
        try:
            make_rule(pattern, event_class)
        except ValueError as error:
            raise _EntryError(key, str(error)) from error
    return make_rule(entry["name"], entry["class"])


def _beside(path: Any, files: Sequence[TraceFile]) -> Iterator[str | RemoteFile]:
    """Where a file of rules may lie: the folder of each trace file, and the folder that was opened."""
    for file in files:
        if isinstance(file.source, Path):
            yield str(file.source.parent / FILE_NAME)
        elif isinstance(file.source, RemoteFile):
            yield file.source.beside(FILE_NAME)
    if (
        isinstance(path, str | Path)
        and "://" not in str(path)
        and (folder := Path(path).expanduser()).is_dir()
    ):
        yield str(folder / FILE_NAME)


def _text(place: str | RemoteFile) -> str:
    if isinstance(place, str):
        place = RemoteFile(*connected(place)) if "://" in place else place
    with Path(place).open("rb") if isinstance(place, str) else place.open() as file:
        data = b""
        while len(data) <= LARGEST_BYTES and (more := file.read(LARGEST_BYTES + 1 - len(data))):
            data += more
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"larger than {LARGEST_BYTES:,} bytes")
    return data.decode()


def _blocks(text: str, count: int) -> list[tuple[int, int]]:
    """First and last line (from 1) of each [[class]]; the whole file where they are written otherwise."""
    lines = text.splitlines()
    heads = [number for number, line in enumerate(lines, 1) if _HEADER.match(line)]
    if not count or len(heads) != count:
        return [(1, len(lines))] * count
    return list(zip(heads, [*(head - 1 for head in heads[1:]), len(lines)], strict=True))


def _line_of(text: str, key: str, first: int = 0, last: int | None = None) -> int:
    """The line (from 1) that names a key, in the whole file or within the block that a line opens.

    In a block without it, that is the line that opens the block.
    """
    names = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
    lines = enumerate(text.splitlines()[first:last], first + 1)
    return next((number for number, line in lines if names.match(line)), max(first, 1))
