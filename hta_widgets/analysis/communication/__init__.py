"""Communication between ranks, and the ranks that others wait for.

collectives     every communication kernel;  `matching` finds those of one collective
alpha_beta      latency and bandwidth of a group's collectives, from their sizes
arrivals        who arrives last at an exchange;  `culprits` follows what that rank itself waits for
waits           every wait by culprit;  `standing_out` says whether a few ranks cause most of it
rank_waits      which rank waits for which
stragglers      whom the ranks wait for, by iteration
"""
