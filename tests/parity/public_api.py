"""What a package offers under its public names.

`python public_api.py PACKAGE` prints it, also in HTA's environment, so this imports nothing of ours.
A module's names are those it defines, not those it imports. Names of members are ``Class.member``.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

# Name, kind, and default as text (None: there is none) of each parameter.
Parameters = list[tuple[str, str, "str | None"]]


def main(package: str) -> None:
    print("RESULT", json.dumps({name: names_of(module) for name, module in modules(package)}))  # noqa: T201


def modules(package: str) -> Iterator[tuple[str, ModuleType]]:
    """Each module of a package, by its name below the package."""
    root = importlib.import_module(package)
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        yield found.name.removeprefix(f"{package}."), importlib.import_module(found.name)


def names_of(module: ModuleType) -> dict[str, Parameters | None]:
    """The parameters of each function, method and class; None for what is not called."""
    assert module.__file__ is not None
    assigned = set(_assigned(ast.parse(Path(module.__file__).read_text())))
    found: dict[str, Parameters | None] = {}
    for name, value in vars(module).items():
        is_class = inspect.isclass(value)
        defined = (is_class or inspect.isfunction(value)) and value.__module__ == module.__name__
        if name.startswith("_") or not (defined or name in assigned):
            continue
        found[name] = parameters(value)
        if is_class and defined:
            found |= {f"{name}.{member}": parameters(getattr(value, member)) for member in _members(value)}
    return found


def parameters(value: Any) -> Parameters | None:
    if inspect.isclass(value):
        called = not issubclass(value, Enum) and value.__module__ != "builtins"
    else:
        called = inspect.isroutine(value) or isinstance(value, functools.partial)
    if not called:
        return None
    return [
        (parameter.name, parameter.kind.name, _text(parameter.default))
        for parameter in inspect.signature(value).parameters.values()
    ]


def _text(default: Any) -> str | None:
    if default is inspect.Parameter.empty:
        return None
    return getattr(default, "__name__", None) or repr(default)


def _assigned(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _members(cls: type[Any]) -> Iterator[str]:
    """Public members that the class, or a base of it in the same package, defines."""
    package = cls.__module__.split(".")[0]
    own = [vars(base) for base in inspect.getmro(cls) if base.__module__.split(".")[0] == package]
    yield from dict.fromkeys(name for members in own for name in members if not name.startswith("_"))


if __name__ == "__main__":
    main(sys.argv[1])
