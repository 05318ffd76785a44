"""Comparing runs: what changed between two or more recordings, and what of it is more than noise.

comparability   may they be compared, by all `checks`;  `sampling` which of their steps count
compare         what changed, line by line;  `lines`, `call_lines` and `paths` what a line is
moves           which line of the first run a line is compared with
events          which events a line stands for
anchors         which instants of two runs correspond
waterfall       why a step is longer, in parts that add up;  `parts` those parts
run_table       every run in one row
noise           how sure a difference is
"""

from hta_widgets.analysis.diff.anchors import anchors
from hta_widgets.analysis.diff.comparability import comparability
from hta_widgets.analysis.diff.compare import diff
from hta_widgets.analysis.diff.events import event_names
from hta_widgets.analysis.diff.run_table import run_table
from hta_widgets.analysis.diff.waterfall import step_waterfall

__all__ = ["anchors", "comparability", "diff", "event_names", "run_table", "step_waterfall"]
