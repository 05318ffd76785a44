"""What hta_widgets costs, beside HTA and Perfetto's UI on the same machine: `make bench`.

Absolute times are the machine's; what counts are ratios within one run, how times grow with the size of a
recording, and floors under the ratios, below which a run fails. Each module measures one group of figures;
the tables of docs/performance.md are written by the run.
"""
