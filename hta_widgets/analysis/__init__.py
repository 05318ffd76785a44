"""Questions about a trace: each a function `(trace, scope) -> DataFrame`, with times in exact nanoseconds.

They are imported on first use: a script that asks one question should not have to load all of them.
"""

from hta_widgets.stubs import from_stub

__getattr__, __dir__, __all__ = from_stub(__name__)
