"""Which kernels take the time.

breakdown       by name and class
durations       distribution of each kernel's durations, rank by rank
occupancy       how much of a device they fill
by_class        what their names say: units, libraries, tiles (`classes`)
peaks           what a device could do at most (`datasheets`, `units`)
moments         count, sum and spread of groups, which both use
"""
