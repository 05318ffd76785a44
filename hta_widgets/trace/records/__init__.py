"""Records that cannot be true: found by physics, marked with the reason, estimated or left out.

Profilers drop, overflow and zero records without a word. What is certain is how a device works: a queue runs
its work in order, nothing starts before it was launched, and every launch runs. `pass_over` applies that to
the records of a file when they become slices; `losses`, `clock` and `vetoes` look at a rank as a whole.
"""
