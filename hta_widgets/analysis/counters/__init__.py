"""What changes over time on a rank, as a viewer draws it under its lanes.

series     one counter: its times and values
derived    queue length, memory, copy bandwidth, SM efficiency, from events
recorded   what the file itself counts
table      all of them as one table
"""

from hta_widgets.analysis.counters.series import Counter
from hta_widgets.analysis.counters.table import counters, counters_of

__all__ = ["Counter", "counters", "counters_of"]
