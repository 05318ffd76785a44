"""What decides how long a window takes: the chain of work and waiting from its start to its end."""

from hta_widgets.analysis.critical_path.path import critical_path
from hta_widgets.analysis.critical_path.summary import critical_path_summary, sentence

__all__ = ["critical_path", "critical_path_summary", "sentence"]
