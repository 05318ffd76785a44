"""Findings: what costs a job most time, in a sentence each, and what to try.

They are imported on first use: which time is judged is asked by many who need no rule.
"""

from hta_widgets.stubs import from_stub

__getattr__, __dir__, __all__ = from_stub(__name__)
