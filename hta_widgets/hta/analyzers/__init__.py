"""The modules of HTA's `hta.analyzers` that notebooks import, under their own names.

Those that answer for `TraceAnalysis` are imported on first use.
"""

from hta_widgets.stubs import from_stub

__getattr__, __dir__, __all__ = from_stub(__name__)
