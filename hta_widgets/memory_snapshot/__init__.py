"""PyTorch's memory snapshots: what the caching allocator held, who asked for it, and why it ran out."""
