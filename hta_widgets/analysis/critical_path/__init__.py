"""The critical path: the chain of work and waiting that decides how long a window takes."""

from hta_widgets.analysis.critical_path.path import critical_path
from hta_widgets.analysis.critical_path.replayed import replayed_path
from hta_widgets.analysis.critical_path.summary import critical_path_summary, sentence
from hta_widgets.analysis.critical_path.what_if import what_if

__all__ = ["critical_path", "critical_path_summary", "replayed_path", "sentence", "what_if"]
