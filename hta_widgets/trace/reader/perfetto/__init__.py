"""Perfetto traces (`.pftrace`), as PyTorch and Kineto write them, into the same columns as JSON."""
