"""Faults put into the code on purpose, one at a time: do the tests notice? By hand, with ``make faults``.

Each fault is a plausible slip, described in the TOML file of its area: the text to replace, its replacement,
and the tests that should fail then. They are put into a copy of the tree, never into the tree itself.
"""
