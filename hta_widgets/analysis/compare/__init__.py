"""Comparing runs: what changed between two or more recordings, and how much of it is more than noise.

comparability   whether runs can be compared, by all `checks`;  `sampling` chooses the steps that count
compare         what changed, line by line;  `lines`, `call_lines` and `paths` define the lines
moves           the line of the first run that each line is compared with
events          the events of a line
anchors         corresponding instants, and corresponding events, of two runs
waterfall       why a step is longer, in parts that add up;  `parts` computes them
run_table       one row per run
noise           confidence intervals and significance of a difference
"""
