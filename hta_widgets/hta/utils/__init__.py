"""The modules of HTA's `hta.utils`, under their own names: small helpers, and a check of trace files."""
