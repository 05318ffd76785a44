"""Converts our answers to those of Holistic Trace Analysis: its columns, order, units, plots and conventions.

One module per group of `TraceAnalysis` methods. They leave the computation to `hta_widgets.analysis`, and
rename, round and draw. Each is imported on first use, like the analyses themselves.
"""

from hta_widgets.stubs import from_stub

__getattr__, __dir__, __all__ = from_stub(__name__)
