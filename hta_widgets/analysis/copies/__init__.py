"""Copies and fills of memory.

flows           when each kind of copy runs, and how fast
bandwidth       the rate over time, and its statistics
"""
