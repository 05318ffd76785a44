"""How much memory each kind of tensor held over time, from a file of PyTorch's `export_memory_timeline`."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pandas as pd

from hta_widgets.errors import TraceFormatError, TraceNotFoundError

CATEGORIES = (
    "Parameter", "Optimizer state", "Input", "Temporary", "Activation", "Gradient", "Autograd", "Unknown",
)  # fmt: skip
"""The names of the file's category numbers, 0 to 7."""


def memory_categories(path: str | Path) -> pd.DataFrame:
    """What was memory used for, over time?

    The file (`...raw.json.gz`, or the same unzipped) lists [time in ns, action, bytes, category]; bytes are
    signed and add up. Records with equal times in a row are one change. Times below zero mean "before the
    profiler started" and take the earliest time of the others.

    Args:
        path: a file of `torch.profiler.profile(profile_memory=True, ...).export_memory_timeline(path)`.

    Returns:
        One row per change, in file order: time_ns int64 (as in the file), then one int64 column of bytes per
        category: Parameter, Optimizer state, Input, Temporary, Activation, Gradient, Autograd, Unknown.

    Raises:
        TraceNotFoundError: there is no such file.
        TraceFormatError: it is not such a list.
    """
    records = _records(Path(path))
    time, change, category = records[:, 0], records[:, 2], records[:, 3]
    opens = np.append(True, time[1:] != time[:-1])[: len(time)]
    row = np.cumsum(opens) - 1
    sizes = np.zeros((int(opens.sum()), len(CATEGORIES)), np.int64)
    np.add.at(sizes, (row, category), change)
    sizes = np.cumsum(sizes, axis=0)
    times = time[opens]
    recorded = times[times > 0]
    times = np.where(times < 0, recorded.min() if len(recorded) else -1, times)
    return pd.DataFrame({"time_ns": times, **{name: sizes[:, at] for at, name in enumerate(CATEGORIES)}})


def _records(path: Path) -> npt.NDArray[np.int64]:
    """int64[n, 4] of the file's list."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TraceNotFoundError(f"{path}: {error.strerror or error}") from error
    try:
        listed: Any = orjson.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    except (ValueError, OSError, EOFError) as error:
        raise TraceFormatError(path, f"not JSON: {error}") from error
    try:
        records = np.array(listed)
        sound = isinstance(listed, list) and (
            not listed or (records.ndim == 2 and records.shape[1] == 4 and records.dtype == np.int64)
        )
    except ValueError:
        sound = False
    if not sound:
        raise TraceFormatError(path, "not a list of [time, action, bytes, category]")
    records = records.reshape(-1, 4).astype(np.int64)
    if len(records) and not ((records[:, 3] >= 0) & (records[:, 3] < len(CATEGORIES))).all():
        raise TraceFormatError(path, f"a category is not one of 0 to {len(CATEGORIES) - 1}")
    return records
