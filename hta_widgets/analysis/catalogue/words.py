"""Sentences for frames whose analyses have none of their own: summaries, and values over time."""

from __future__ import annotations

import pandas as pd

from hta_widgets.analysis.memory.usage import byte_size
from hta_widgets.analysis.words import duration, gigabytes, percent

__all__ = ["bandwidth", "collectives", "full_queues", "launch_calls", "memory_timeline", "queue_length"]


def launch_calls(frame: pd.DataFrame) -> str:
    """The answer of `launch_summary` in one sentence."""
    calls = frame.groupby("api", sort=True)[["calls", "cpu_ns"]].sum()
    if not calls["calls"].sum():
        return "No launch call lies in the selection."
    most = calls.sort_values("cpu_ns", ascending=False, kind="stable").iloc[0]
    return (
        f"{calls['calls'].sum():,} launch calls took {duration(calls['cpu_ns'].sum())} of host time, most "
        f"of it {most.name}: {duration(most['cpu_ns'])} in {most['calls']:,} calls."
    )


def queue_length(frame: pd.DataFrame) -> str:
    """The answer of `queue_length` in one sentence."""
    if frame.empty:
        return "No launch lies in the selection."
    longest = frame.iloc[int(frame["queue_length"].to_numpy().argmax())]
    return (
        f"At most {longest['queue_length']:,} launches wait at once, on stream {longest['stream']} of rank "
        f"{longest['rank']}, {duration(longest['time_ns'])} after the start."
    )


def full_queues(frame: pd.DataFrame) -> str:
    """The answer of `blocked_on_full_queue` in one sentence."""
    if frame.empty:
        return "No stream's queue lies in the selection."
    full = frame[frame["blocked_ns"] > 0]
    if full.empty:
        return f"No queue was full: the longest held {frame['max'].max():,} launches."
    most = full.iloc[int(full["blocked_ns"].to_numpy().argmax())]
    return (
        f"The queue of stream {most['stream']} on rank {most['rank']} stood at its limit of "
        f"{most['limit']:,} for {duration(most['blocked_ns'])} ({percent(most['blocked_pct'])} of the time)."
    )


def collectives(frame: pd.DataFrame) -> str:
    """The answer of `collectives` in one sentence."""
    if frame.empty:
        return "No collective lies in the selection."
    by_name = frame.groupby("collective", sort=True)["dur_ns"].agg(["size", "sum"])
    most = by_name.sort_values("sum", ascending=False, kind="stable").iloc[0]
    return (
        f"{len(frame):,} communication kernels took {duration(frame['dur_ns'].sum())}, most of it "
        f"{most.name or 'unnamed'}: {duration(most['sum'])} in {most['size']:,} kernels."
    )


def memory_timeline(frame: pd.DataFrame) -> str:
    """The answer of `memory_timeline` in one sentence."""
    frame = frame[frame["device"] != "cpu"] if (frame["device"] != "cpu").any() else frame
    if frame.empty:
        return "No memory was allocated in the selection."
    fullest = frame.iloc[int(frame["allocated_bytes"].to_numpy().argmax())]
    return (
        f"Rank {fullest['rank']} allocates most memory, {byte_size(fullest['allocated_bytes'])} on "
        f"{fullest['device']}, {duration(fullest['time_ns'])} after the start."
    )


def bandwidth(frame: pd.DataFrame) -> str:
    """The answer of `memory_bandwidth` in one sentence."""
    if frame.empty or not frame["gbps"].max() > 0:
        return "No memory is moved in the selection."
    fastest = frame.iloc[int(frame["gbps"].to_numpy().argmax())]
    return (
        f"{fastest['kind']} on rank {fastest['rank']} is fastest, {gigabytes(fastest['gbps'])} GB/s, "
        f"{duration(fastest['time_ns'])} after the start."
    )
