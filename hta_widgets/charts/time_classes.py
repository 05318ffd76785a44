"""Which class of time, and therefore which colour, a mark belongs to."""

from __future__ import annotations

import pandas as pd

from hta_widgets.trace.classify import classify

# Values of columns that tell what a bar stands for -> the class of time whose colour it takes.
_CLASS_OF = {
    "memory_copy": "memory",
    "memory_set": "memory",
    "data_stall": "host",
    "host_busy": "host",
    "launch_latency": "host",
    "host_sync": "sync",
    "kernel_wait": "idle",
    "device_wait": "idle",
    "unknown": "idle",
    "edge": "idle",
    "overhead": "idle",
}
_CLASSES = ("compute", "communication", "memory", "sync", "idle", "host")


def time_classes(frame: pd.DataFrame, time_class: str) -> list[str]:
    """The class of each row: `time_class` itself, or what the column of that name tells."""
    if time_class not in frame:
        return [time_class] * len(frame)
    if time_class == "category":  # the trace's own: a category of kernels holds several classes
        pairs = zip(frame["category"], frame["name"], strict=True)
        return [_class_of(classify(category, name)[0].label) for category, name in pairs]
    return [_class_of(str(value)) for value in frame[time_class]]


def _class_of(value: str) -> str:
    known = _CLASS_OF.get(value, value)
    return known if known in _CLASSES else "host"
