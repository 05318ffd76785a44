"""Allocated memory.

usage           over time, and at the peak by holder;  `events` reads the changes,  `peaks` finds peaks
owners          at the peak by operator, module, phase, lifetime;  `lifetimes` tells what a block was for
advice          what is reserved in vain, leaks, or is left for larger batches;  `growth` tells leaks
categories      by kind of tensor, from a file of `export_memory_timeline`
"""
