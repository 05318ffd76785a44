"""What costs a job most time, in plain words, and what to try."""

from hta_widgets.analysis.findings.overview import OPEN, overview, sentence

__all__ = ["OPEN", "overview", "sentence"]
