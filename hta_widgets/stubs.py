"""Names that a package imports on first use; its stub (`__init__.pyi`) says where each comes from.

Type checkers and editors read the same stub, so that each name is listed once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import ([A-Za-z]\w*) as \2$", re.MULTILINE)


def from_stub(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package that is being imported.

    `dir()` shows the public names, without what importing one of them left in the package.
    """
    spec: Any = sys.modules[package].__spec__
    stub = spec.loader.get_data(f"{spec.origin}i").decode()  # which its loader finds in a zip archive too
    homes = {name: home for home, name in _IMPORT.findall(stub)}

    class Package(ModuleType):
        """Python puts each imported submodule into its package, also one that is called as what it holds."""

        def __setattr__(self, name: str, value: Any) -> None:
            if not (homes.get(name, package) != package and isinstance(value, ModuleType)):
                super().__setattr__(name, value)

    sys.modules[package].__class__ = Package

    def value_of(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = None if home == package else getattr(import_module(home), name, None)
        if value is None:
            value = import_module(f"{home}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    def shown() -> list[str]:
        own = vars(sys.modules[package])
        return [*(name for name in own if name.startswith("__") and name.endswith("__")), *homes]

    return value_of, shown, sorted(homes)
