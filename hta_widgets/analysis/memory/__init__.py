"""What the allocator held.

usage           over time, and at the peak by owner;  `events` reads the recorded changes
categories      what a category of `export_memory_timeline` is
"""
