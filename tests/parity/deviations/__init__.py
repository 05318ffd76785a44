"""Where our answer differs from HTA's on purpose: which cells, and which row of docs/differences.md says why.

The first entry that covers a difference explains it. Jobs are named one by one: an entry that explains
nothing in a job it names fails. Every entry proves itself: it redoes HTA's defect on the recorded trace
(`defects.py`) or in our code (`patches.py`), whereupon our answer is HTA's, or it looks the difference up in
the recorded events (`checks.py` and the modules beside it).
"""

from tests.parity.deviations import frames, graphs, launches, paths, tables
from tests.parity.deviations.entry import Deviation

DEVIATIONS = [*frames.ENTRIES, *tables.ENTRIES, *launches.ENTRIES, *graphs.ENTRIES, *paths.ENTRIES]

__all__ = ["DEVIATIONS", "Deviation"]
