"""Converts our answers to those of Holistic Trace Analysis: its columns, order, units, plots and conventions.

One module per group of `TraceAnalysis` methods. They leave the computation to `hta_widgets.analysis`, and
rename, round and draw. Each is imported on first use, like the analyses themselves.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hta_widgets.hta.methods import (
        annotations,
        breakdowns,
        counter_events,
        counters,
        idle,
        kernels,
        launches,
        sequences,
    )

__all__ = [
    "annotations",
    "breakdowns",
    "counter_events",
    "counters",
    "idle",
    "kernels",
    "launches",
    "sequences",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
