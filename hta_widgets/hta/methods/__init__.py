"""Converts our answers to those of Holistic Trace Analysis: its columns, order, units, plots and conventions.

One module per group of `TraceAnalysis` methods. They leave the computation to `hta_widgets.analysis`, and
rename, round and draw.
"""
