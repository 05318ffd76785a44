"""Edits as text: reads what `Edit.expression` says. Nothing is run but the function of a known name."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.formatting import did_you_mean

_MAKERS: dict[str, Callable[..., Edit]] = {
    name: function
    for name in edits.__all__
    if inspect.isfunction(function := getattr(edits, name))
    and inspect.signature(function).return_annotation == "Edit"
}
_SHOWN = 200
_EXAMPLE = "an edit is a call such as kernels(2.0, name='*gemm*')"
_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "str": (str,),
    "str | None": (str, type(None)),
}
_WORDS = {
    "bool": "True or False",
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "str | None": "a text",
}


def parse(text: str) -> Edit:
    """The edit that an expression such as ``kernels(2.0, name="*gemm*")`` makes, with or without ``edits.``.

    Raises:
        ValueError: it is no such expression; the message says what is wrong with it.
    """
    parsed = _parsed(text)
    return _made(text, parsed)


@lru_cache(maxsize=256)
def parse_all(text: str) -> tuple[Edit, ...]:
    """The edits of one expression or of several in square brackets, as findings print them.

    Raises:
        ValueError: one of them is no such expression; the message says what is wrong with it.
    """
    parsed = _parsed(text)
    if isinstance(parsed, ast.List):
        return tuple(_made(ast.unparse(each), each) for each in parsed.elts)
    return (_made(text, parsed),)


def written(edits: Iterable[Edit]) -> str:
    """The expression of several edits, which `parse_all` reads."""
    return f"[{', '.join(edit.expression for edit in edits)}]"


def _made(text: str, call: ast.expr) -> Edit:
    if not isinstance(call, ast.Call):
        raise ValueError(f"{_brief(text)} is not an edit: {_EXAMPLE}")
    name = _name(call.func)
    if name not in _MAKERS:
        raise ValueError(
            f"{_brief(text)} is not an edit{did_you_mean(name, _MAKERS)}: the edits are {', '.join(_MAKERS)}"
        )
    if any(isinstance(value, ast.Starred) for value in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    ):
        raise ValueError(f"{_brief(text)} is not an edit: arguments must be written out")
    values = [_value(text, value) for value in call.args]
    named = {str(keyword.arg): _value(text, keyword.value) for keyword in call.keywords}
    signature = inspect.signature(_MAKERS[name])
    try:
        bound = signature.bind(*values, **named)
    except TypeError as error:
        raise ValueError(f"{_brief(text)}: {error}; it is {name}{_signature(signature)}") from None
    for argument, value in bound.arguments.items():
        kind = str(signature.parameters[argument].annotation)
        if isinstance(value, bool) != (kind == "bool") or not isinstance(value, _TYPES[kind]):
            raise ValueError(f"{_brief(text)}: {argument} must be {_WORDS[kind]}, not {value!r}")
    try:
        return _MAKERS[name](*bound.args, **bound.kwargs)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{_brief(text)}: {error}") from None


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{_brief(text)} is not an edit: {_EXAMPLE}") from None


def _name(function: ast.expr) -> str:
    """`kernels` of ``kernels`` and of ``edits.kernels``; else empty."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr if function.value.id == "edits" else ""
    return function.id if isinstance(function, ast.Name) else ""


def _value(text: str, value: ast.expr) -> Any:
    """A literal, or infinity: ``inf`` or ``math.inf``."""
    if ast.unparse(value) in ("inf", "math.inf"):
        return math.inf
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise ValueError(
            f"{_brief(text)} is not an edit: its arguments must be numbers, texts in quotes, or inf"
        ) from None


def _brief(text: str) -> str:
    """What was written, as far as an error needs it."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"


def _signature(signature: inspect.Signature) -> str:
    """The arguments as one would write them."""
    parts = [
        name if parameter.default is parameter.empty else f"{name}={parameter.default!r}"
        for name, parameter in signature.parameters.items()
    ]
    return f"({', '.join(parts)})"
