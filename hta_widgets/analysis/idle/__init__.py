"""Why nothing runs.

breakdown       idle time by cause, of a rank or iteration;  `causes` gives every idle instant one
gaps            each gap of the device, and what it waited for
streams         the pauses of each stream between its kernels
"""
