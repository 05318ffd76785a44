"""Categories of slices for which a Perfetto trace states none, as PyTorch's first versions and Kineto do.

What an event is follows from its arguments and its name: only calls of the runtime have a `cbid`, only
kernels a grid.  The table says how many were inferred.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.reader.perfetto.unread import held_packets
from hta_widgets.trace.reader.table import EventTable, Problem

_KINETO: Final = frozenset({
    "cpu_op", "user_annotation", "gpu_user_annotation", "python_function", "cuda_runtime", "cuda_driver",
    "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "overhead", "Trace", "ac2g", "fwdbwd",
})  # fmt: skip
_DRIVER: Final = re.compile(r"^cu[A-Z]")
_OF_OPERATORS: Final = ("ev_idx", "record_function_id", "external_id", "sequence_number", "input_dims")


def with_categories(table: EventTable, has_stages: bool, seen: Int64) -> EventTable:
    """The table with a category for each slice of PyTorch's, and what is missing said."""
    table = _inferred(table)
    if not has_stages and not _KINETO & set(table.dictionary("category")):
        held = held_packets(seen)
        text = (
            "a Perfetto trace of another program than PyTorch: it has slices and counters, but no operators, "
            f"kernels or shapes{f'; {held} were not read' if held else ''}"
        )
        table.problems.append(Problem("not_pytorch", "warning", 1, None, text))
    elif "distributedInfo" not in table.metadata:
        text = "a Perfetto trace states neither ranks nor the devices' properties; JSON of the same run does"
        table.problems.append(Problem("metadata_not_recorded", "info", 1, None, text))
    return table


def _inferred(table: EventTable) -> EventTable:
    codes = table.codes("category")
    phases = table.dictionary("phase")
    slices = [phases.index(letter) for letter in "XB" if letter in phases]
    silent = np.isin(table.codes("phase"), slices) & (codes < 0)
    if not silent.any():
        return table

    def has(*names: str) -> Bool:
        found = np.zeros(table.n, np.bool_)
        for name in names:
            found[table.sparse(name)[0]] = True
        return found

    def named(pattern: str) -> Bool:
        compiled = re.compile(pattern)
        chosen = np.array([*(bool(compiled.search(text)) for text in table.dictionary("name")), False])
        return chosen[table.codes("name")]

    on_device = has("stream") & has("device")
    pids, pid = table.dictionary("pid"), table.codes("pid")
    devices = np.isin(pid, np.unique(pid[on_device & ~has("cbid")]))
    overhead = np.array([*(text == "-1" for text in pids), False])[pid]
    operators = has(*_OF_OPERATORS)
    rules = (
        ("cuda_sync", has("cuda_sync_kind")),
        ("cuda_driver", has("cbid") & named(_DRIVER.pattern)),
        ("cuda_runtime", has("cbid")),
        ("gpu_memcpy", on_device & named(r"^(Memcpy|MEMCPY|CopyDevice|CopyHost)")),
        ("gpu_memset", on_device & named(r"^(Memset|MEMSET)")),
        ("kernel", on_device | has("grid")),
        ("overhead", overhead),
        ("python_function", has("python_id")),
        ("gpu_user_annotation", operators & devices),
        ("user_annotation", named(r"^ProfilerStep#|#") & (operators | named(r"^ProfilerStep#"))),
        ("cpu_op", operators | named(r"^aten::")),
    )
    texts = list(table.dictionary("category"))
    codes = codes.copy()
    for category, fits in rules:
        rows = silent & fits & (codes < 0)
        if rows.any():
            if category not in texts:
                texts.append(category)
            codes[rows] = texts.index(category)
    inferred = int((silent & (codes >= 0)).sum())
    if not inferred:
        return table
    table = table.changed({"category": codes}, {"category": texts})
    text = "events whose category the trace does not state; inferred from their names and arguments"
    table.problems.append(Problem("category_inferred", "warning", inferred, None, text))
    return table
