"""The kinds of packets in a Perfetto trace that are not read."""

from __future__ import annotations

from typing import Final

from hta_widgets.arrays import Int64

_PAYLOADS: Final = {
    1: "ftrace_events", 2: "process_tree", 5: "chrome_events", 7: "sys_stats", 9: "process_stats",
    33: "trace_config", 37: "profile_packet", 38: "battery", 39: "android_log",
    54: "streaming_profile_packet",    66: "perf_sample", 95: "etw_events",
}  # fmt: skip


def held_packets(seen: Int64) -> str:
    """What kinds of packets there are that are not read, the most frequent first."""
    known = sorted(
        ((int(seen[field]), name) for field, name in _PAYLOADS.items() if seen[field]), reverse=True
    )
    return ", ".join(f"{count:,} {name}" for count, name in known[:3])
