"""What ranks exchange, and whom they wait for.

collectives     every communication kernel;  `matching` says which met
stragglers      who arrives late, and what that costs
"""
