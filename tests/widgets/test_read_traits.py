"""What the views read of a part reaches the browser."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import anywidget

from hta_widgets import Selection, widgets
from tests.support import ROOT

READ = re.compile(r"""(?:\btrait(?:<.+?>)?\(\s*\w+(?:\.\w+)*,|\.(?:get|set)\()\s*"(\w+)\"""")


def classes() -> set[type[anywidget.AnyWidget]]:
    for module in pkgutil.walk_packages(widgets.__path__, f"{widgets.__name__}."):
        import_module(module.name)
    found: set[type[anywidget.AnyWidget]] = set()
    new = {anywidget.AnyWidget}
    while new := {sub for each in new for sub in each.__subclasses__()} - found:
        found |= new
    return {each for each in found if each.__module__.startswith("hta_widgets.")}


def test_traits_that_views_read_or_set_are_synchronised() -> None:
    read = {
        name for path in (ROOT / "js/src").rglob("*.ts*") for name in READ.findall(path.read_text("utf-8"))
    }
    read -= set(Selection.class_trait_names())  # each part shares those of its own
    named = {each: read.intersection(each.class_trait_names()) for each in classes()}
    assert len(named) > 15 and len(set().union(*named.values())) > 80
    lacking = {
        f"{each.__name__}.{name}"
        for each, names in named.items()
        for name in names - set(each.class_trait_names(sync=True))
    }
    assert lacking == {"TraceExplorer.peaks"}, "which RooflinePanel tells its view"
