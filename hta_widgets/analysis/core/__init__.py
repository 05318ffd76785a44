"""Building blocks of analyses: intervals, step functions, memoization, and the entry that describes one."""
