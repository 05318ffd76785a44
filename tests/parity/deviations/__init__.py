"""Where our answer differs from HTA's on purpose: which cells, and which row of docs/differences.md says why.

The first entry that covers a difference explains it. Jobs are named one by one: an entry that explains
nothing in a job it names fails. Most entries prove themselves: they redo HTA's fault on the recorded trace,
whereupon our answer is HTA's (`faults.py`), or look the difference up in the recorded events (`checks.py`).
"""

from tests.parity.deviations import frames, graphs, launches, paths, tables
from tests.parity.deviations.entry import Deviation

DEVIATIONS = [*frames.ENTRIES, *tables.ENTRIES, *launches.ENTRIES, *graphs.ENTRIES, *paths.ENTRIES]

__all__ = ["DEVIATIONS", "Deviation"]
