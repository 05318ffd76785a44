"""PyTorch's memory snapshots: what the caching allocator held, who requested it, and why it ran out."""
