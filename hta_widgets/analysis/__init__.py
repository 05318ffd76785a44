"""Questions about a trace: each a function `(trace, scope) -> DataFrame`, with times in exact nanoseconds.

They are imported on first use: a script that asks one question should not have to load all of them.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from hta_widgets.stubs import from_stub

__getattr__, __dir__, __all__ = from_stub(__name__)


class _Package(ModuleType):
    """Python puts each imported submodule into its package, where `critical_path` is the analysis."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
