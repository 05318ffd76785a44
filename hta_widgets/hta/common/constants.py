"""Numbers that HTA fixes."""

CUDA_MAX_LAUNCH_QUEUE_PER_STREAM: int = 1024
"""Launches that HTA takes to fill a stream's queue; recordings saturate at 1022 to 1024."""

MAX_EVENT_DURATION_US: int = 7 * 24 * 3600 * 1_000_000
"""Longer events are corrupt records."""
