"""Explore PyTorch profiler (Kineto) traces of many ranks in a notebook.

    from hta_widgets import TraceExplorer, examples

    TraceExplorer(examples.path("ddp_4ranks"))

The names below are the public API. They are imported on first use: reading a trace in a script should not
have to load the widgets.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hta_widgets.stubs import from_stub
from hta_widgets.version import __version__ as __version__

__getattr__, __dir__, __all__ = from_stub(__name__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext hta_widgets`: the magics `%trace` and `%%profile_trace`."""
    import_module("hta_widgets.widgets.magics").register(shell)
