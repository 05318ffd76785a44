"""What analyses are built of: sets of time, step functions, memoisation, and the entry that describes one."""
