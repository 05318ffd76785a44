"""Which kernels take the time.

breakdown       by name and class
durations       distribution of each kernel's durations, rank by rank
moments         count, sum and spread of groups, which both use
"""
