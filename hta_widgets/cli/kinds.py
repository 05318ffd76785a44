"""The kinds of analysis and their options: listing them, and parsing those given."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from inspect import signature
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.registry import ANALYSES, TABLES
from hta_widgets.cli.exits import UsageError
from hta_widgets.cli.terminal import aligned
from hta_widgets.formatting import did_you_mean

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def known_kind(kind: str) -> Analysis:
    """The analysis of that name.

    Raises:
        UsageError: there is none.
    """
    known = [*ANALYSES, *TABLES]
    if kind not in known:
        hint = did_you_mean(kind, known)
        raise UsageError(f"there is no analysis {kind!r}{hint}; the kinds are {', '.join(known)}")
    return TABLES[kind] if kind in TABLES else ANALYSES[kind]


def options_of(analysis: Analysis) -> dict[str, tuple[Any, Any]]:
    """The arguments of an analysis beside trace and scope: name -> (type, default)."""
    # modules import the first two for type checkers only
    hints = get_type_hints(analysis.function, localns={"Trace": object, "Scope": object})
    rest = list(signature(analysis.function).parameters.values())[2:]
    return {word.name: (hints[word.name], word.default) for word in rest}


def values_of(analysis: Analysis, given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The given `--option` values as arguments of the analysis.

    Raises:
        UsageError: the analysis has no such argument, or it does not take such a value.
    """
    known = options_of(analysis)
    values = {}
    for name, text in given:
        if name not in known:
            there = f"its options are {', '.join(known)}" if known else "it has none"
            raise UsageError(f"{analysis.kind} has no option {name!r}{did_you_mean(name, known)}; {there}")
        kind = known[name][0]
        try:
            values[name] = _value(kind, text)
        except ValueError:
            raise UsageError(f"{name} of {analysis.kind} is {_type_text(kind)}, not {text!r}") from None
    return values


def print_kinds() -> None:
    """Print each kind with its title, under its group, and its options below it."""
    lines: list[str] = []
    known = [*ANALYSES.values(), *TABLES.values()]
    cells = [[analysis.kind, analysis.title] for analysis in known]
    group = ""
    for analysis, line in zip(known, aligned(cells, [False, False]), strict=True):
        if analysis.group != group:
            group = analysis.group
            lines += [*([""] if lines else []), group]
        lines.append(f"  {line}")
        lines += [
            f"      {name}={_type_text(kind)}{_default(default)}"
            for name, (kind, default) in options_of(analysis).items()
        ]
    sys.stdout.write("\n".join(lines) + "\n")


def _value(kind: Any, text: str) -> Any:
    if get_origin(kind) in (Union, UnionType):
        return _first_that_takes([choice for choice in get_args(kind) if choice is not NoneType], text)
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise ValueError(text)
        return text
    if kind is bool:
        if text.lower() not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text.lower()]
    if kind in (int, float):
        return kind(text)
    if kind is str:
        return text
    return tuple(part for part in text.split(",") if part)


def _first_that_takes(kinds: Sequence[Any], text: str) -> Any:
    for kind in kinds:
        try:
            return _value(kind, text)
        except ValueError:
            continue
    raise ValueError(text)


def _type_text(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return "|".join(_type_text(choice) for choice in get_args(kind) if choice is not NoneType)
    if get_origin(kind) is Literal:
        return "|".join(str(choice) for choice in get_args(kind) if choice != "")
    words = {bool: "true|false", int: "INTEGER", float: "NUMBER", str: "TEXT"}
    return words.get(kind, "TEXT,...")


def _default(default: Any) -> str:
    if default is None or default == "":
        return ""
    if isinstance(default, bool):
        return f" (default: {str(default).lower()})"
    return f" (default: {','.join(default) if isinstance(default, tuple) else default})"
