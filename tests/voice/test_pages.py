"""Pages, notebooks, help, errors and docstrings: no word that only this project uses so."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import hta_widgets
from hta_widgets import analysis, edits, errors
from tests.support import ROOT
from tests.voice.plain import house_words

PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "hta_widgets/cli/SKILL.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MODULES = sorted((ROOT / "hta_widgets").rglob("*.py"))
SCRIPTS = sorted(path for path in (ROOT / "js/src").rglob("*.ts*"))
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
# Comments and strings of TypeScript, whichever begins first, and what stands between tags.
TYPESCRIPT = re.compile(
    r"//[^\n]*|/\*.*?\*/|(\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`)|>([^<>{}=;()]+)<", re.DOTALL
)


def slips(texts: dict[str, str]) -> list[str]:
    """Where words of the house stand."""
    return [f"{place}: {', '.join(found)}" for place, text in texts.items() if (found := house_words(text))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page(page: Path) -> None:
    text = FENCED.sub(lambda found: "\n" * found[0].count("\n"), page.read_text(encoding="utf-8"))
    assert not slips({f"line {at}": line for at, line in enumerate(text.splitlines(), 1)})


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_the_text_of_a_notebook(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    texts = {
        f"cell {at}": FENCED.sub("", "".join(cell["source"]))
        for at, cell in enumerate(cells, 1)
        if cell["cell_type"] == "markdown"
    }
    assert texts and not slips(texts)


def literals(path: Path) -> dict[str, str]:
    """The texts in the code of a module: strings with a blank, also a part of one, that are no docstrings."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    alone = {node.value for node in nodes if isinstance(node, ast.Expr)}
    return {
        f"line {node.lineno}": node.value
        for node in nodes
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node not in alone
        and " " in node.value
    }


def test_texts_of_the_package() -> None:
    """Titles, sentences, errors, and the help of commands and traits."""
    texts = {
        f"{path.relative_to(ROOT)}, {place}": text
        for path in MODULES
        for place, text in literals(path).items()
    }
    assert len(texts) > 2000
    assert not slips(texts)


def typescript(text: str) -> Iterator[str]:
    """The texts in a script: strings of more than a word, and what stands between tags."""
    for found in TYPESCRIPT.finditer(text):
        written = re.sub(r"\$\{[^{}]*\}", "", found[1] or found[2] or "")
        if " " in written.strip('"` \n'):
            yield written


def test_texts_of_the_front_end() -> None:
    texts = {
        f"{path.relative_to(ROOT)}: {text!r}": text
        for path in SCRIPTS
        for text in typescript(path.read_text(encoding="utf-8"))
    }
    assert len(texts) > 300
    assert not slips(texts)


@cache
def public() -> dict[str, Any]:
    """Name -> what has a docstring that `help()` and the site show."""
    found: dict[str, Any] = {}
    groups = {"analysis": analysis.__all__, "edits": edits.__all__, "examples": ("names", "path", "load")}
    for module, names in groups.items():
        found |= {f"{module}.{name}": getattr(getattr(hta_widgets, module), name) for name in names}
    found |= {name: getattr(hta_widgets, name) for name in hta_widgets.__all__}
    found |= {name: item for name, item in vars(errors).items() if inspect.isclass(item)}
    for name, item in list(found.items()):
        for base in item.__mro__ if inspect.isclass(item) else ():
            if base.__module__.startswith("hta_widgets") and not base.__module__.startswith(
                "hta_widgets.hta"
            ):
                found |= {
                    f"{name}.{member}": value
                    for member, value in vars(base).items()
                    if not member.startswith("_")
                }
    return found


def test_docstrings_of_public_names() -> None:
    texts = {
        name: item.__doc__
        for name, item in public().items()
        if (inspect.isclass(item) or inspect.isroutine(item) or isinstance(item, property)) and item.__doc__
    }
    assert len(texts) > 200
    assert not slips(texts)
