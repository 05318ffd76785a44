"""Which tests reach a fault, and with which of them its expression has another value than the right one.

A test that never sees another value cannot notice the fault, and need not be run. The right expression is
computed as ever; beside it, of the same operands, what the fault would make of them. ACTIVE names the fault
that is put in, if any. Subprocesses have probes as well: all three are in their environment.
"""

from __future__ import annotations

import ast
import builtins
import copy
import hashlib
import json
import marshal
import os
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

PROBES, LOG, ACTIVE = "HTA_WIDGETS_PROBES", "HTA_WIDGETS_PROBES_LOG", "HTA_WIDGETS_PROBES_ACTIVE"
_PROBE = "__hta_widgets_probe__"
_COMPILED = {"kernel", "inline", "outline", "intrinsic"}  # what numba compiles cannot tell

_told: set[tuple[str, str, bool]] = set()


def install() -> None:
    """Put probes into the modules that are imported from now on: {path: {name of a fault: its text}}."""
    wanted: dict[str, dict[str, str]] = json.loads(Path(os.environ[PROBES]).read_text(encoding="utf-8"))
    usual = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, module: str) -> CodeType | None:
        path = loader.get_filename(module)
        if path not in wanted:
            return usual(loader, module)
        return _compiled(path, loader.get_data(path).decode(), wanted[path])

    setattr(builtins, _PROBE, _probe)
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def _compiled(path: str, text: str, changed: dict[str, str]) -> CodeType:
    """The module's code with probes, which is kept: many processes import it."""
    digest = hashlib.sha256("\0".join((path, text, *changed, *changed.values())).encode()).hexdigest()
    kept = Path(f"{os.environ[PROBES]}.{digest[:32]}")
    if kept.exists():
        return marshal.loads(kept.read_bytes())  # type: ignore[no-any-return]
    code = compile(_with_probes(text, changed), path, "exec", dont_inherit=True)
    unfinished = kept.with_name(f"{kept.name}.{os.getpid()}")
    unfinished.write_bytes(marshal.dumps(code))
    unfinished.replace(kept)
    return code


def can_be_probed(text: str, changed: str) -> bool:
    """Whether a probe can stand where a text becomes another."""
    tree = ast.parse(text)
    found = difference(tree, ast.parse(changed))
    if found is None or isinstance(found[0], (ast.Starred, ast.Slice)):
        return False
    inside = {id(node) for function in _compiled_functions(tree) for node in ast.walk(function)}
    return id(found[0]) not in inside


def difference(one: ast.AST, other: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """The smallest expression that holds all that differs; a function's name goes with its call."""
    if type(one) is not type(other):
        return None
    differing = []
    for name in one._fields:
        mine, theirs = getattr(one, name, None), getattr(other, name, None)
        pairs = [(mine, theirs)] if not isinstance(mine, list) else list(zip(mine, theirs, strict=False))
        if isinstance(mine, list) and len(mine) != len(theirs):
            return None
        differing += [(name, *pair) for pair in pairs if _dumped(pair[0]) != _dumped(pair[1])]
    is_expression = isinstance(one, ast.expr) and not isinstance(one, ast.JoinedStr)
    whole = (one, other) if is_expression else None
    if len(differing) != 1:
        return whole  # type: ignore[return-value]
    name, mine, theirs = differing[0]
    is_method = isinstance(mine, ast.Attribute) and mine.attr == getattr(theirs, "attr", "")
    if (isinstance(one, ast.Call) and name == "func" and not is_method) or not isinstance(mine, ast.AST):
        return whole  # type: ignore[return-value]
    if isinstance(mine, ast.expr) and type(mine) is not type(theirs):
        return mine, theirs
    return difference(mine, theirs) or whole  # type: ignore[return-value]


def _dumped(value: Any) -> str:
    return ast.dump(value) if isinstance(value, ast.AST) else repr(value)


def _compiled_functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(one, ast.Name) and one.id in _COMPILED for one in node.decorator_list)
    ]


def _with_probes(text: str, changed: dict[str, str]) -> ast.Module:
    """The module with a probe for each fault around its expression."""
    tree = ast.parse(text)
    asked: dict[int, list[tuple[str, ast.expr]]] = {}
    for name, other in changed.items():
        found = difference(tree, ast.parse(other))
        if found is not None:
            asked.setdefault(id(found[0]), []).append((name, copy.deepcopy(found[1])))
    return ast.fix_missing_locations(_Around(asked).visit(tree))  # type: ignore[no-any-return]


class _Around(ast.NodeTransformer):
    def __init__(self, asked: dict[int, list[tuple[str, ast.expr]]]) -> None:
        self._asked = asked

    def visit(self, node: ast.AST) -> Any:
        asked = self._asked.get(id(node), ())
        right = copy.deepcopy(node) if asked else node
        self.generic_visit(node)
        for name, wrong in asked:
            assert isinstance(right, ast.expr) and isinstance(node, ast.expr)
            node = ast.copy_location(_around(name, node, right, wrong), right)
        return node


def _around(name: str, probed: ast.expr, right: ast.expr, wrong: ast.expr) -> ast.expr:
    operands = _operands(right)
    if operands is None or _operands(wrong) is None or isinstance(probed, ast.Tuple):
        is_active = ast.Call(ast.Name(_PROBE, ast.Load()), [ast.Constant(name)], [])
        return ast.IfExp(is_active, wrong, probed)
    values = _operands(probed) or []
    parameters = ast.arguments(
        [], [ast.arg(f"_{number}") for number in range(len(values))], None, [], [], None, []
    )
    both: list[ast.expr] = [ast.Lambda(parameters, _of_parameters(one)) for one in (right, wrong)]
    return ast.Call(ast.Name(_PROBE, ast.Load()), [ast.Constant(name), *both, *values], [])


def _operands(node: ast.expr) -> list[ast.expr] | None:
    """The parts of an expression that are computed once for both values; None where that cannot be."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return [node.left, node.comparators[0]]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Call) and not any(isinstance(one, ast.Starred) for one in node.args):
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        if all(one.arg for one in node.keywords):
            return [*receiver, *node.args, *(one.value for one in node.keywords)]
    return None


def _of_parameters(node: ast.expr) -> ast.expr:
    new = copy.deepcopy(node)
    names: list[ast.expr] = [
        ast.Name(f"_{number}", ast.Load()) for number in range(len(_operands(new) or []))
    ]
    if isinstance(new, ast.Compare):
        new.left, new.comparators = names[0], [names[1]]
    elif isinstance(new, ast.BinOp):
        new.left, new.right = names
    elif isinstance(new, ast.Call):
        if isinstance(new.func, ast.Attribute):
            new.func.value = names.pop(0)
        new.args = [names.pop(0) for _ in new.args]
        for keyword in new.keywords:
            keyword.value = names.pop(0)
    return new


def _probe(
    name: str,
    right: Callable[..., Any] | None = None,
    wrong: Callable[..., Any] | None = None,
    *operands: Any,
) -> Any:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    is_active = name == os.environ.get(ACTIVE)
    if right is None or wrong is None:
        _tell(name, test, True)
        return is_active
    if is_active:
        right, wrong = wrong, right
    if (name, test, True) in _told:
        return right(*operands)
    if any(hasattr(one, "__next__") for one in operands):  # computing it twice would use it up
        _tell(name, test, True)
        return right(*operands)
    try:
        other = wrong(*operands)
    except Exception:
        _tell(name, test, True)
        return right(*operands)
    value = right(*operands)
    _tell(name, test, not _same(value, other))
    return value


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    try:
        if hasattr(one, "equals"):
            return bool(one.equals(other))
        if hasattr(one, "dtype"):
            return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
        return bool(one == other)
    except Exception:
        return False


def _tell(name: str, test: str, differs: bool) -> None:
    if (name, test, differs) not in _told:
        _told.add((name, test, differs))
        with open(os.environ[LOG], "a", encoding="utf-8") as log:  # noqa: PTH123 - a line at once, of any process
            log.write(json.dumps([name, test, differs]) + "\n")
