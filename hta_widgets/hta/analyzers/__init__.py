"""The modules of HTA's `hta.analyzers` that notebooks import, under their own names.

Those that answer for `TraceAnalysis` are imported on first use.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hta_widgets.hta.analyzers import cupti_counter_analysis, straggler_analysis

__all__ = ["cupti_counter_analysis", "straggler_analysis"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
