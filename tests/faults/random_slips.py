"""Faults drawn at random, for what nobody thought of: one changed operator, bound or call each."""

from __future__ import annotations

import ast
import copy
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from tests.faults.catalogue import Fault, faults
from tests.faults.lines import Lines

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
_ABOUT = 4  # of them about its file
_FEW = 4  # where no more run its line, what it answers may be remembered, and others only get that


def random_slips(root: Path, count: int, seed: int, lines_run: Lines) -> list[Fault]:
    """So many slips, from each package as its lines are many, each with the tests that run its line.

    Those of the files about its file come first. Then those nearest to it, if it is not known what lines they
    run, as of kernels and the front end.
    """
    drawn = random.Random(seed)
    nearest = Nearest(root)
    about = cache(nearest.about)
    read = cache(lambda name: (root / name).read_text(encoding="utf-8"))
    places = cache(lambda name: _places(name, read(name)))
    found: dict[str, Fault] = {}
    for files, share in _shares(root, count):
        lines = [read(name).count("\n") for name in files]
        there = len(found)
        for _ in range(1000 * share):
            if len(found) - there == share:
                break
            (name,) = drawn.choices(files, lines)
            slip = drawn.choice(places(name))() if places(name) else None
            old, new = _unique(read(name), *slip) if slip else ("", "")
            if slip and old:
                line = read(name).count("\n", 0, slip[0]) + 1
                tests = lines_run.tests(name, decided_by(name, read(name), line), about(name))
                unknown = [
                    file for file in nearest.to(name) if len(tests) < _FEW or not lines_run.knows(file)
                ]
                tests = [*tests, *unknown[: 2 if tests else _MOST_TESTS]]
                found.setdefault(
                    f"{name}:{line}", Fault("random", f"{name}:{line}", name, old, new, tuple(tests))
                )
    slips = list(found.values())
    drawn.shuffle(slips)  # what is judged so far is drawn from everywhere
    return slips


def _shares(root: Path, count: int) -> Iterator[tuple[list[str], int]]:
    """The files of each folder, and how many slips are theirs; they add up to `count`."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path in sorted(root.glob("hta_widgets/**/*.py")) + sorted(root.glob("js/src/**/*.ts*")):
        folders[str(path.parent.relative_to(root))].append(str(path.relative_to(root)))
    lines = {
        folder: sum((root / name).read_text(encoding="utf-8").count("\n") for name in files)
        for folder, files in folders.items()
    }
    so_far, given = 0, 0
    for folder, files in folders.items():
        so_far += lines[folder]
        share = round(count * so_far / sum(lines.values())) - given
        given += share
        yield files, share


def decided_by(name: str, text: str, line: int) -> list[int]:
    """The lines that a line matters to: one that an import runs to those of functions that use what it names.

    Whatever test comes first imports a module; it need not have to do with it.
    """
    if not name.endswith(".py"):
        return [line]
    tree = ast.parse(text)
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.Lambda)]
    inner = [each for function in functions for each in _body(function)]
    if any(each.lineno <= line <= (each.end_lineno or 0) for each in inner):
        return [line]
    named = {
        each.id
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and statement.lineno <= line <= (statement.end_lineno or 0)
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    within = [each for part in inner for each in ast.walk(part) if isinstance(each, ast.expr)]
    users = [each.lineno for each in within if getattr(each, "id", getattr(each, "attr", "")) in named]
    return sorted({*(users or (each.lineno for each in within))})


def _body(function: ast.FunctionDef | ast.Lambda) -> list[ast.stmt] | list[ast.expr]:
    return [function.body] if isinstance(function, ast.Lambda) else function.body


_Slip = tuple[int, int, str]
"""From where to where a text is replaced, and by what."""


def _places(name: str, text: str) -> list[Callable[[], _Slip | None]]:
    """Where a slip may be made, each with the slip, if it offers one."""
    if name.endswith(".py"):
        return [partial(_in_python, text, node) for node in _code_of(ast.parse(text))]
    return [partial(tuple, slip) for slip in _in_front_end(text)]


def _in_python(text: str, node: ast.expr) -> _Slip | None:
    new = _slip_of(node)
    if new is None:
        return None
    lines = text.splitlines(keepends=True)

    def place(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    begin = place(node.lineno, node.col_offset)
    end = place(node.end_lineno or node.lineno, node.end_col_offset or 0)
    return begin, end, f"({ast.unparse(new)})" if "\n" in text[begin:end] else ast.unparse(new)


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
        if isinstance(child, ast.keyword) and child.arg == "strict":
            continue  # of zip: an assertion
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.expr):
            yield child
        yield from _code_of(child)


def _slip_of(node: ast.expr) -> ast.expr | None:
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and len(new.ops) == 1:
        new.ops = [_COMPARISONS[type(new.ops[0])]()]
        return new
    if isinstance(new, ast.BinOp) and type(new.op) in _SUMS and not _is_text(new):
        new.op = _SUMS[type(new.op)]()
        return new
    if isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        return new
    if isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        return new.operand
    if isinstance(new, ast.Constant) and type(new.value) is int:
        return ast.Constant(new.value + 1 if new.value < 10 else 2 * new.value)
    if isinstance(new, ast.Constant) and type(new.value) is bool:
        return ast.Constant(not new.value)
    if isinstance(new, ast.Call) and isinstance(new.func, ast.Name) and new.func.id in _CALLS:
        new.func.id = _CALLS[new.func.id]
        return new
    if isinstance(new, ast.Call) and isinstance(new.func, ast.Attribute) and new.func.attr in _CALLS:
        new.func.attr = _CALLS[new.func.attr]
        return new
    return None


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


class Nearest:
    """Tests nearest to a file: of its known faults, named after it, that import it, of its folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, dict[str, None]] = defaultdict(dict)
        for fault in faults():
            for test in fault.files_of_tests:
                self._known[fault.file][test] = None
                self._known[str(Path(fault.file).parent)][test] = None
        self._users: dict[str, set[str]] = defaultdict(set)
        self._imports: dict[str, int] = {}
        self._words: dict[str, set[str]] = {}
        patterns = "hta_widgets/**/*.py", "tests/**/test_*.py", "js/src/**/*.ts*", "js/test/**/*.ts*"
        for path in (path for pattern in patterns for path in sorted(root.glob(pattern))):
            if "browser" not in path.parts:
                used = {one for one in _imported(path, root) if one.is_file()}
                name = str(path.relative_to(root))
                self._imports[name] = len(used)
                if _is_test(name):
                    self._words[name] = _words_of(path)
                for one in used:
                    self._users[str(one.relative_to(root))].add(name)
        self._files_with = Counter(word for words in self._words.values() for word in words)

    def to(self, file: str) -> tuple[str, ...]:
        stem = Path(file).stem.strip("_")
        direct = self._users[file]
        there = self._known.get(str(Path(file).parent), ())
        tests = [
            *self._known.get(file, ()),
            *self._named_after({stem}),
            *self.about(file)[:2],
            *self._focused(direct),
            *self._named_after({Path(user).stem.strip("_") for user in direct}),
            *self._focused({test for test in self._imports if test.split("/")[-2] == Path(file).parent.name}),
            *self._focused(self._users_of(direct) & set(there)),
            *there,
            *(test for users in self._further(direct) for test in self._focused(users)),
        ]
        tests = [test for test in dict.fromkeys(tests) if _is_test(test, beside=file)]
        return tuple(tests[:_MOST_TESTS])

    def about(self, file: str) -> list[str]:
        """Files of tests that share most words with a file: rare words, and a large part of theirs."""
        words = _words_of(self._root / file)
        shared = {
            test: sum(1 / self._files_with[word] for word in words & used) / max(len(used), 1) ** 0.5
            for test, used in self._words.items()
            if _is_test(test, beside=file)
        }
        return sorted(shared, key=lambda test: (-shared[test], test))[:_ABOUT]

    def _named_after(self, stems: set[str]) -> list[str]:
        names = {f"test_{stem}.py" for stem in stems} | {f"{stem}.test.ts" for stem in stems}
        return [test for test in self._imports if test.rpartition("/")[2].removesuffix("x") in names]

    def _further(self, files: set[str]) -> Iterator[set[str]]:
        """Users of users, and theirs."""
        seen: set[str] = set()
        while files := self._users_of(files) - seen:
            seen |= files
            yield files

    def _users_of(self, files: set[str]) -> set[str]:
        return {user for one in files for user in self._users[one]}

    def _focused(self, tests: set[str]) -> list[str]:
        """Those that import least besides come first."""
        return sorted(tests, key=lambda test: (self._imports[test], test))


def _words_of(path: Path) -> set[str]:
    return set(re.findall(r"[A-Za-z]\w{3,}", path.read_text(encoding="utf-8")))


def _is_test(file: str, beside: str = "") -> bool:
    """Whether a file holds tests, in the language of another."""
    name = file.rpartition("/")[2]
    if not name.startswith("test_") and not name.endswith((".test.ts", ".test.tsx")):
        return False
    return not beside or file.startswith("js/") == beside.startswith("js/")


def _imported(path: Path, root: Path) -> Iterator[Path]:
    """The files of modules that a file imports."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        for found in re.finditer(r"from \"(\.[^\"]*)\"", text):
            there = path.parent / found[1]
            yield from (Path(os.path.normpath(f"{there}{suffix}")) for suffix in ("", ".ts", ".tsx"))
        return
    for found in re.finditer(r"^\s*(?:from ([\w.]+) )?import (\([^)]*\)|.*)", text, re.M):
        names = [words[0] for part in found[2].strip("()").split(",") if (words := part.split())]
        if found[1]:
            yield _file_of(root, found[1])
        yield from (_file_of(root, f"{found[1]}.{name}" if found[1] else name) for name in names)


def _file_of(root: Path, module: str) -> Path:
    path = root / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
