"""Perfetto traces: a writer of PyTorch's layouts, twins of recordings, and what the reader makes of them."""
