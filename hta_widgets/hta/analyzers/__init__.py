"""The modules of HTA's `hta.analyzers` that notebooks import, under their own names."""
