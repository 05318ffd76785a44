"""Findings: what costs a job most time, in a sentence each, and what to try."""

from hta_widgets.analysis.findings.inputs import judged_scope
from hta_widgets.analysis.findings.overview import OPEN, VERDICT, overview, sentence

__all__ = ["OPEN", "VERDICT", "judged_scope", "overview", "sentence"]
