"""The names in api.md and hta.md: everything public, grouped by the package that it comes from."""

from types import ModuleType

import hta_widgets
from docs import comparison_pages
from hta_widgets import analysis, edits, errors, examples

# What `hta_widgets.__all__` offers from a package other than these answers under HTA's names.
PACKAGES = {"trace": "traces", "memory_snapshot": "traces", "widgets": "widgets"}


def fill_in(markdown: str) -> str:
    """Replace each mark `<!-- names: GROUP -->`."""
    if "<!-- names:" in markdown:
        for group, (directive, names) in _groups().items():
            lines = "\n".join(f".. {directive}:: {name}" for name in names)
            markdown = markdown.replace(f"<!-- names: {group} -->", f"```{{eval-rst}}\n{lines}\n```")
    return markdown


def _groups() -> dict[str, tuple[str, list[str]]]:
    """Group -> directive of Sphinx, names."""
    groups: dict[str, tuple[str, list[str]]] = {}
    for name in hta_widgets.__all__:
        value = getattr(hta_widgets, name)
        if not isinstance(value, ModuleType):
            group = PACKAGES.get(value.__module__.split(".")[1], "hta")
            groups.setdefault(group, ("autoclass", []))[1].append(f"hta_widgets.{name}")
    described = {*analysis.ANALYSES, *map(comparison_pages.function_of, analysis.COMPARISONS)}
    functions = [name for name in analysis.__all__ if name.islower() and name not in described]
    groups["functions"] = "autofunction", [f"hta_widgets.analysis.{name}" for name in functions]
    groups["examples"] = "autofunction", [f"{examples.__name__}.{name}" for name in ("names", "path", "load")]
    of_edits = ("autofunction", [f"{edits.__name__}.{name}" for name in edits.__all__ if name.islower()])
    groups["edits"] = of_edits
    found = [
        item
        for item in vars(errors).values()
        if isinstance(item, type) and item.__module__ == errors.__name__
    ]
    groups["errors"] = "autoexception", [f"{errors.__name__}.{message.__name__}" for message in found]
    return groups
