"""Allocated memory.

usage           over time, and at the peak by holder;  `events` reads the recorded changes
categories      by kind of tensor, from a file of `export_memory_timeline`
"""
