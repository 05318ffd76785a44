"""Which kernels take the time.

breakdown       by name and class
durations       how long one takes, rank by rank
moments         count, sum, spread of groups: what both are made of
"""
