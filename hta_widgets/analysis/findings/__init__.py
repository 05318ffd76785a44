"""Findings: what costs a job most time, in a sentence each, and what to try."""

from hta_widgets.analysis.findings.headline import sentence
from hta_widgets.analysis.findings.judged_time import judged_scope
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.sections import CHECKED, HEADINGS, MEMORY, OPEN, VERDICT
from hta_widgets.analysis.findings.together import savings

__all__ = [
    "CHECKED",
    "HEADINGS",
    "MEMORY",
    "OPEN",
    "VERDICT",
    "judged_scope",
    "overview",
    "savings",
    "sentence",
]
