"""Snapshots of a simulated allocator, whose peak, owners and fragmentation are known."""
