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

from hta_widgets.analysis.compare.anchors import anchors
from hta_widgets.analysis.compare.comparability import comparability
from hta_widgets.analysis.compare.compare import diff
from hta_widgets.analysis.compare.events import event_names
from hta_widgets.analysis.compare.run_table import run_table
from hta_widgets.analysis.compare.waterfall import step_waterfall

__all__ = ["anchors", "comparability", "diff", "event_names", "run_table", "step_waterfall"]
