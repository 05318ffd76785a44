"""Faults drawn at random, for what nobody thought of: one changed operator, bound or call each."""

from __future__ import annotations

import ast
import copy
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.faults.catalogue import Fault, faults

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_SUMS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin", "argmin": "argmax"}
_TOKENS = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " === ": " !== ", " !== ": " === ",
    " && ": " || ", " || ": " && ", " + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ",
    "Math.min": "Math.max", "Math.max": "Math.min", ".some(": ".every(", ".every(": ".some(",
}  # fmt: skip
_MOST_TESTS = 5  # files of tests for a slip


def random_slips(root: Path, count: int, seed: int) -> list[Fault]:
    """So many slips, the longer a file the more, each with the tests that are nearest to its file."""
    drawn = random.Random(seed)
    files = sorted(root.glob("hta_widgets/**/*.py")) + sorted(root.glob("js/src/**/*.ts*"))
    nearest = _Nearest(root)
    found: list[Fault] = []
    # a line of code is as likely as any other, wherever it stands
    weights = [path.stat().st_size for path in files]
    for _ in range(50 * count):
        if len(found) == count:
            break
        path = drawn.choices(files, weights)[0]
        name = str(path.relative_to(root))
        tests = nearest.to(name)
        text = path.read_text(encoding="utf-8")
        slips = list(_in_python(text) if name.endswith(".py") else _in_front_end(text))
        if not slips or not tests:
            continue
        begin, end, new = drawn.choice(slips)
        old, changed = _unique(text, begin, end, new)
        slug = f"{name}:{text.count(chr(10), 0, begin) + 1}"
        if old and all(slug != one.slug for one in found):
            found.append(Fault("random", slug, name, old, changed, tests))
    return found


def _in_python(text: str) -> Iterator[tuple[int, int, str]]:
    """Where a slip may be made, and what would stand there."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data = text.encode()

    def place(line: int, column: int) -> int:
        return len(data[: starts[line - 1] + column].decode())

    for node in _code_of(ast.parse(text)):
        for new in _slips_of(node):
            begin = place(node.lineno, node.col_offset)
            end = place(node.end_lineno or node.lineno, node.end_col_offset or 0)
            yield begin, end, f"({ast.unparse(new)})" if "\n" in text[begin:end] else ast.unparse(new)


def _code_of(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions that decide something: no types, texts of errors, decorators, defaults of memos."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.arguments)):
            continue
        if isinstance(child, ast.AnnAssign):
            yield from _code_of(ast.Expression(child.value)) if child.value else ()
            continue
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            for inner in child.body:
                yield from _code_of(ast.Module([inner], []))
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.expr):
            yield child
        yield from _code_of(child)


def _slips_of(node: ast.expr) -> Iterator[ast.expr]:
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and len(new.ops) == 1:
        new.ops = [_COMPARISONS[type(new.ops[0])]()]
        yield new
    elif isinstance(new, ast.BinOp) and type(new.op) in _SUMS and not _is_text(new):
        new.op = _SUMS[type(new.op)]()
        yield new
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        yield new
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        yield new.operand
    elif isinstance(new, ast.Constant) and type(new.value) is int:
        yield ast.Constant(new.value + 1)
    elif isinstance(new, ast.Constant) and type(new.value) is bool:
        yield ast.Constant(not new.value)
    elif isinstance(new, ast.Call) and isinstance(new.func, ast.Name) and new.func.id in _CALLS:
        new.func.id = _CALLS[new.func.id]
        yield new
    elif isinstance(new, ast.Call) and isinstance(new.func, ast.Attribute) and new.func.attr in _CALLS:
        new.func.attr = _CALLS[new.func.attr]
        yield new


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _in_front_end(text: str) -> Iterator[tuple[int, int, str]]:
    code = re.sub(
        r"/\*.*?\*/|//[^\n]*|`[^`]*`|\"[^\"\n]*\"", lambda found: "_" * len(found[0]), text, flags=re.S
    )
    for old, new in _TOKENS.items():
        for found in re.finditer(re.escape(old), code):
            yield found.start(), found.end(), new


def _unique(text: str, begin: int, end: int, new: str) -> tuple[str, str]:
    """What stands there with as much around it as makes it the only one; empty if nothing does."""
    for around in (0, 10, 20, 40, 80, 160, 320):
        first, last = max(0, begin - around), end + around
        if text.count(text[first:last]) == 1:
            return text[first:last], text[first:begin] + new + text[end:last]
    return "", ""


class _Nearest:
    """Which tests are nearest to a file: those of its known faults, then those that import it."""

    def __init__(self, root: Path) -> None:
        self._known: dict[str, dict[str, None]] = defaultdict(dict)
        self._of_folder: dict[str, dict[str, None]] = defaultdict(dict)
        for fault in faults():
            for test in fault.files_of_tests:
                self._known[fault.file][test] = None
                self._of_folder[str(Path(fault.file).parent)][test] = None
        self._texts = {
            str(path.relative_to(root)): path.read_text(encoding="utf-8")
            for pattern in ("tests/**/test_*.py", "js/test/*.test.ts*")
            for path in sorted(root.glob(pattern))
            if "browser" not in path.parts
        }

    def to(self, file: str) -> tuple[str, ...]:
        path = Path(file)
        if file.startswith("js/"):
            named = rf"/{re.escape(path.stem)}(\.tsx?)?\""
        else:
            module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            folder, _, last = module.rpartition(".")
            named = rf"{re.escape(module)}\b|from {re.escape(folder)} import .*\b{re.escape(last)}\b"
        language = "js/" if file.startswith("js/") else "tests/"
        tests = [*self._known.get(file, ())]
        tests += [
            name
            for name, text in self._texts.items()
            if name.startswith(language) and re.search(named, text) and name not in tests
        ]
        tests += [test for test in self._of_folder.get(str(path.parent), ()) if test not in tests]
        return tuple(test for test in tests if test.startswith(language))[:_MOST_TESTS]
