"""Why devices are idle.

breakdown       idle time by cause, per rank or iteration;  `causes` assigns a cause to every idle instant
gaps            each gap of the device, and what it waited for
start_up        idle time around driver calls that come once
streams         the pauses of each stream between its kernels
"""
