"""Sphinx's settings for the documentation site; `docs/build.py` runs it."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from hta_widgets import __version__

project = "hta_widgets"
author = "The hta_widgets authors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 3
default_role = "code"  # docstrings write `name`
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "no-value": True}
autodoc_typehints_format = "short"
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = [str(Path(__file__).parent / "_static")]
html_extra_path = ["llms.txt"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_sidebars = {"getting_started": []}  # it is one page
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "footer_start": [],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _not_a_type, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", _made_elsewhere)


def _not_a_type(_app: Sphinx, what: str, _name: str, _value: Any, _options: Any, lines: list[str]) -> None:
    """Keep napoleon from taking what stands before a colon in a property's first line for its type."""
    if what in ("attribute", "property"):
        lines.insert(0, "\u200b")


def _made_elsewhere(
    _app: Sphinx, _what: str, name: str, _value: Any, _options: Any, _signature: Any, _result: Any
) -> tuple[str, str] | None:
    """`Trace` has a constructor that nobody calls: `Trace.open` does."""
    return ("", "") if name == "hta_widgets.Trace" else None
