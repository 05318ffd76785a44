"""The tables of docs/measured_savings.md: savings that came true or not, and constants of a device."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hta_widgets.analysis.findings.copy_rules import _GENERATIONS
from hta_widgets.analysis.kernels.datasheets import DATASHEETS
from hta_widgets.analysis.replay.delays import CALL, GAP, LATENCY
from hta_widgets.analysis.replay.fusion import GAP_IN_GRAPH
from recorder.comparison import H100, RUNS, Compared, Foreseen, Measured, off, verdict

DEVICE = "H100 SXM"


def savings(compared: Iterable[Compared]) -> str:
    """One row for each change, as Markdown."""
    head = (
        "| change | foreseen by | foreseen | under the profiler | off by | "
        "| foreseen without it | without it | off by | |\n|---|---|--:|--:|--:|---|--:|--:|--:|---|\n"
    )
    return head + "".join(_row(each) for each in compared)


def _row(each: Compared) -> str:
    change = each.change
    cells = [f"{change.words}: `{change.first}`, `{change.second}`", each.foreseen.by]
    for foreseen, found in ((each.foreseen, each.profiled), (each.foreseen_unprofiled, each.unprofiled)):
        cells += [_foreseen(foreseen), _measured(found), _off(foreseen, found), verdict(foreseen, found)]
    return f"| {' | '.join(cells)} |\n"


def _measured(found: Measured) -> str:
    ends = f"{found.least:.1f} to {found.most:.1f}"
    known = "" if found.least == found.most else f" ({ends})"
    return f"{found.before_ms:.2f} → {found.after_ms:.2f} ms, {found.pct:.1f} %{known}"


def _off(foreseen: Foreseen, found: Measured) -> str:
    points = off(foreseen, found)
    return "within" if foreseen.kind == "at most" and not points else f"{points:+.1f}"


def _foreseen(foreseen: Foreseen) -> str:
    if foreseen.kind == "nothing":
        return "no finding"
    if foreseen.kind == "unknown":
        return "unknown"
    ends = f"{foreseen.low:.1f} to {foreseen.high:.1f}"
    known = foreseen.kind == "at most" or ends == f"{foreseen.pct:.1f} to {foreseen.pct:.1f}"
    text = f"{foreseen.pct:.1f} %" + ("" if known else f" ({ends})")
    return f"at most {text}" if foreseen.kind == "at most" else text


def constants() -> str:
    """What was measured of the device, beside its datasheet and what hta_widgets assumes, as Markdown."""
    found = json.loads((H100 / RUNS[0] / "constants.json").read_text())
    lines = ["| quantity | measured | datasheet | hta_widgets assumes |", "|---|--:|--:|---|"]
    lines += _delays(found["ns"]) + _rates(found["gigabytes_per_second"]) + _peaks(found["teraflops"])
    return "\n".join(lines) + "\n"


def _delays(ns: dict[str, float]) -> list[str]:
    unknown = "if the recording shows none"
    rows = (
        ("small kernels in a row, each", "small_kernel_in_a_row_ns", f"a call takes {_us(CALL)} {unknown}"),
        ("the host's part of that", "small_kernel_host_ns", ""),
        (
            "small kernels in a graph, each",
            "small_kernel_in_graph_ns",
            f"a gap of {_us(GAP)} {unknown}; {100 * GAP_IN_GRAPH:.0f} % of the usual gap in a graph",
        ),
        ("launch of a graph of one kernel, host", "graph_launch_of_1_host_ns", ""),
        ("launch of a graph of 1,000 kernels, host", "graph_launch_of_1000_host_ns", ""),
        ("graphs of one kernel in a row, each", "graph_of_1_in_a_row_ns", ""),
        ("`synchronize()` of an idle device", "synchronize_idle_ns", ""),
        ("launch, and wait for the kernel", "launch_and_synchronize_ns", f"latency {_us(LATENCY)} {unknown}"),
        ("`.item()` on an idle device", "item_idle_ns", ""),
    )  # fmt: skip
    return [f"| {what} | {_us(ns[key])} | | {assumed} |" for what, key, assumed in rows]


def _rates(measured: dict[str, float]) -> list[str]:
    memory = DATASHEETS[DEVICE][1]
    pinned = f"{_GENERATIONS['PCIe 5']:.0f} GB/s are usual"
    rows: tuple[tuple[str, str, float | None, str], ...] = (
        ("host to device, pinned", "host_to_device_pinned", None, pinned),
        ("host to device, pageable", "host_to_device_pageable", None, ""),
        ("device to host, pinned", "device_to_host_pinned", None, pinned),
        ("device to host, pageable", "device_to_host_pageable", None, ""),
        ("copy within the device", "device_to_device", memory, "the datasheet"),
        ("sum of two tensors", "add_of_two", memory, "the datasheet"),
        ("fill", "fill", memory, "the datasheet"),
    )
    return [
        f"| {what} | {measured[key]:,.1f} GB/s | {_beside(measured[key], peak)} | {assumed} |"
        for what, key, peak, assumed in rows
    ]


def _peaks(measured: dict[str, Any]) -> list[str]:
    units = {
        "bf16": "tensor_16bit",
        "fp16": "tensor_16bit",
        "fp8": "tensor_8bit",
        "tf32": "tensor_tf32",
        "fp32": "simt_fp32",
        "fp64": "tensor_fp64",
    }
    peaks = DATASHEETS[DEVICE][0]
    return [
        f"| product of 8,192³ in {name} | {measured[name]:,.1f} TFLOP/s"
        f" | {_beside(measured[name], peaks[unit])} | the datasheet |"  # type: ignore[index]
        for name, unit in units.items()
    ]


def _beside(measured: float, peak: float | None) -> str:
    return "" if peak is None else f"{peak:,.1f} ({100 * measured / peak:.0f} %)"


def _us(ns: float) -> str:
    return f"{ns / 1000:.2f} µs"
