"""On which units, with which tiles and from which libraries do kernels compute?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.kernels.breakdown import kernel_moments
from hta_widgets.analysis.kernels.classes import MATRIX, KernelClass, kernel_class
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import duration, percent
from hta_widgets.frames import TEXT
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_UNITS = {
    "simt_fp64": "SIMT fp64",
    "simt_fp32": "SIMT fp32",
    "simt_fp16": "SIMT fp16",
    "tensor_fp64": "fp64 tensor cores",
    "tensor_fp32": "fp32 tensor cores",
    "tensor_tf32": "TF32 tensor cores",
    "tensor_16bit": "16-bit tensor cores",
    "tensor_8bit": "8-bit tensor cores",
    "tensor_4bit": "4-bit tensor cores",
}
_COLUMNS: dict[str, Any] = {
    "rank": np.int64,
    "name": "str",
    "kind": "str",
    "count": np.int64,
    "time_ns": np.int64,
    "pct": np.float64,
    "library": TEXT,
    "operation": TEXT,
    "unit": TEXT,
    "tile": TEXT,
    "layout": TEXT,
    "split_k": TEXT,
    "alignment": "Int64",
    "stages": "Int64",
    "epilogue": TEXT,
}


def kernel_classes(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """On which units do kernels multiply, with which tiles, from which libraries, as their names say?

    Names of kernels follow conventions of the libraries that they come from (cuBLAS, cuBLASLt, CUTLASS,
    cuDNN, Tensile, Composable Kernel, MIOpen, aiter, flash-attention, Triton, PyTorch and others). Only what
    a name says is given: other parts are null. The unit is what multiplies: the same fp32 tensors may be
    multiplied on SIMT units or, several times as fast, on tensor cores as TF32.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything. Launches count
            with their whole duration, as in `kernel_breakdown`.

    Returns:
        One row per rank and compute kernel, those with most time first. Columns: rank (int64), name (str),
        kind (str: ``"gemm: SIMT fp32"``, ``"attention: 16-bit tensor cores"``, ``"elementwise"``, ...,
        ``"unknown"``), count (int64, launches), time_ns (int64, ns), pct (float64, % of the rank's compute
        kernels), library, operation, unit, tile, layout (str or null), split_k (str, "yes", "no" or null),
        alignment (Int64, elements loaded at once), stages (Int64), epilogue (str or null); `KernelClass`
        describes them.

    Raises:
        MissingDataError: no selected rank has device events.
    """
    moments = kernel_moments(trace, scope)
    moments = moments[moments["event_class"] == EventClass.COMPUTE.label]
    classes = [kernel_class(name) for name in moments["name"]]
    whole = moments.groupby("rank")["sum_ns"].transform("sum")
    frame = pd.DataFrame(
        {
            "rank": moments["rank"],
            "name": moments["name"],
            "kind": [kind_of(found) for found in classes],
            "count": moments["count"],
            "time_ns": moments["sum_ns"],
            "pct": 100.0 * moments["sum_ns"] / whole.where(whole > 0),
        }
    )
    for part in KernelClass.__dataclass_fields__:
        frame[part] = [getattr(found, part) for found in classes]
    frame["split_k"] = [None if split is None else "yes" if split else "no" for split in frame["split_k"]]
    by = ["time_ns", "name", "rank"]
    frame = frame.astype(_COLUMNS)[list(_COLUMNS)]
    return frame.sort_values(by, ascending=[False, True, True], ignore_index=True)


def kind_of(found: KernelClass) -> str:
    """What a kernel does and on which unit, in words."""
    if found.operation in MATRIX:
        return f"{found.operation}: {_UNITS[found.unit] if found.unit else 'unknown unit'}"
    return found.operation or "unknown"


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a `kernel_classes` frame in words: where matrix products are computed."""
    if not frame["time_ns"].sum():
        return "No compute kernel belongs to the selection."
    products = frame[frame["operation"].isin(MATRIX)]
    whole, total = int(products["time_ns"].sum()), int(frame["time_ns"].sum())
    if not whole:
        return f"No kernel's name shows a matrix product in {duration(total)} of compute kernels."
    by_unit = products.groupby(products["unit"].fillna(""))["time_ns"].sum().sort_values(ascending=False)
    times = by_unit[by_unit > 0]
    units = [_UNITS.get(str(unit), "units that their names do not show") for unit in times.index]
    text = (
        f"Matrix products, convolutions and attention take {percent(100.0 * whole / total)} of the time of "
        "compute kernels."
    )
    if len(units) == 1:
        return f"{text} All of it runs on {units[0]}."
    shares = [
        f"{percent(100.0 * time / whole)} runs on {unit}." for unit, time in zip(units, times, strict=True)
    ]
    return " ".join([text, f"Of that, {shares[0]}", *(f"Another {share}" for share in shares[1:])])


ANALYSIS = Analysis(
    label="Kernel classes",
    group="Kernels",
    title="What computes: units, libraries and tiles, by the names of kernels",
    function=kernel_classes,
    sentence=sentence,
    chart=Bars("time_ns", ("kind",), EventClass.COMPUTE.label, names="name", measure="Kernel time"),
    requires=("device events",),
)
