"""How our answers become those of Holistic Trace Analysis: its columns, order, units, plots and conventions.

One module per group of `TraceAnalysis` methods. They compute nothing that `hta_widgets.analysis` computes;
they rename, round and draw.
"""
