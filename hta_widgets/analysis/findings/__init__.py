"""What costs a job most time, in plain words, and what to try."""

from hta_widgets.analysis.findings.overview import OPEN, VERDICT, overview, sentence

__all__ = ["OPEN", "VERDICT", "overview", "sentence"]
