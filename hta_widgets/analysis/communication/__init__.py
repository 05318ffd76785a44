"""Communication between ranks, and the ranks that others wait for.

collectives     every communication kernel;  `matching` finds those of one collective
stragglers      which ranks arrive late, and what that costs
"""
