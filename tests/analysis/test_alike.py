"""What is alike, or the only one, is not told apart: nothing is the longest of equals."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from hta_widgets import Trace
from hta_widgets.analysis.memory.usage import sentence as of_peak
from hta_widgets.analysis.registry import ANALYSES, TABLES
from tests.support import shared_input, shared_trace


def said(name: str, trace: Trace) -> str:
    entry = {**ANALYSES, **TABLES}[name]
    return entry.sentence(entry.answer(trace))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("kernel_durations", "A launch of gemm_tile_64 takes 300 µs on each of 4 ranks."),
        (
            "comm_comp_overlap",
            "0 % of all communication hides behind compute. Every rank leaves 900 µs exposed.",
        ),
        (
            "idle_breakdown",
            "All ranks are idle equally, 33.1 % of the time. In .* the host launches too late.",
        ),
        ("step_parts", "All steps take about 1.00 ms."),
        ("critical_path", r"The path leads through the host for 100 % of 4.00 ms. The longest item .*"),
        ("op_kernels", "12 operator calls launched one kernel each. .*"),
        ("launch_stats", "24 device events were launched, all by cudaLaunchKernel. .*"),
    ],
)
def test_ranks_that_are_alike(name: str, sentence: str) -> None:
    trace = Trace.open(shared_input("cases/i05_vllm_dp2_tp2_noasync"))
    assert re.fullmatch(sentence, said(name, trace))


def test_what_is_the_only_one_or_nothing() -> None:
    trace = Trace.open(shared_trace("hta/trace_compare"))
    assert said("operators", trace) == "Device work takes 1.69 ms. No operator launched any of it."
    assert said("launch_stats", trace) == (
        "1 device event was launched, by cudaLaunchKernel. It starts 57.2 ms after its call began."
    )


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (
            100,
            "All ranks need the same amount of memory, 100 B. Rank 0 needs it on cuda:0; "
            "60.0 % of it is held by aten::mm.",
        ),
        (90, "Rank 0 needs most memory, 100 B on cuda:0; 60.0 % of it is held by aten::mm."),
    ],
)
def test_ranks_that_need_as_much_memory(second: int, words: str) -> None:
    rows = [(0, "cuda:0", "aten::mm", 60, 100), (0, "cuda:0", "aten::add", 40, 100)]
    rows += [(1, "cuda:1", "aten::mm", second, second)]
    columns = ["rank", "device", "top_operator", "bytes", "peak_bytes"]
    assert of_peak(pd.DataFrame(rows, columns=columns)) == words
