"""The readers of the first screen's lines: each notices another number, and a line that it does not know."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest

from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.story import Story, story
from hta_widgets.trace import Trace
from tests.claims.first_screen import faults_of_screen
from tests.claims.job import Job
from tests.claims.recordings import EXAMPLES, path_of
from tests.support import shared_input

# Of each form a recording that has it: the field, and what stands there, the number in brackets.
LINES = {
    "a step": ("ddp_4ranks", "headline", r"(.+) ms per step; .+"),
    "reachable": ("ddp_4ranks", "headline", r".*; it could be (.+) ms without rank 2's .+"),
    "a rank": ("ddp_4ranks", "headline", r".*; it could be .+ without rank (\d)'s .+"),
    "left": ("ddp_4ranks", "limits", r"Of the time that remains, the GPU computes (.+) %\."),
    "steps": ("ddp_4ranks", "scope", r"all 4 ranks, (\d) steps, .+ per step"),
    "some steps": ("h100_gpt2", "scope", r"1 rank, 2 of (\d) steps, .+ per step"),
    "saved": ("ddp_4ranks", "saved", r".+ can be saved \((.+) %\)"),
    "remains": ("ddp_4ranks", "remains", r"(.+) ms remain"),
    "nothing": (
        "h100_gpt2_small_batch_cuda_graphs",
        "headline",
        r".+ out: the GPU computes (.+) % of it, .+",
    ),
    "work": ("gpt2_baseline", "headline", r".+; the GPU computes (.+) % of it; .+"),
    "apart": ("recordings/llama_4layers_4090", "headline", r"Start-up .+; of the rest, (.+) ms is due to .+"),
    "late": ("recordings/moe_compile_after_B", "headline", r"Rank 1 .+; of the (.+) µs that all record, .+"),
    "hardly": (
        "recordings/mlu370",
        "headline",
        r".+, the MLU idles (.+) %, mostly in aten::normal_",
    ),
    "start-up": ("traces/hta/amd_trace", "headline", r".+; (.+) ms of it is start-up, mostly .+"),
    "unused device": ("recordings/cuda_guide_4080", "headline", r".+ the CPU take (.+) % of it, mostly .+"),
    "host": (
        "recordings/mobilenet_cpu",
        "headline",
        r".+; operators on the CPU take (.+) % of it, mostly .+",
    ),
    "idle": ("cases/a07_device_clock_ahead", "headline", r".+ is idle for (.+) % of it is unknown"),
    "idle beneath": ("recordings/loader_t4_fp32", "limits", r"The GPU is idle for (.+) % of the time\. .+"),
    "lost": ("cases/h12_restart_in_one_file", "headline", r".+; (.+) µs of it is due to .+"),
    "launches": ("cases/b02_xpu_kernels_missing_copies_only", "headline", r".+ work of (.+) % of the .+"),
    "no device": ("traces/hta/cupti_profiler", "headline", r".+ unknown: (.+) launches recorded, .+"),
}


@cache
def read(name: str) -> tuple[Job, pd.DataFrame, Story]:
    trace = Trace.open(path_of(name) if name in EXAMPLES else shared_input(name))
    frame = overview(trace)
    return Job(trace), frame, story(trace, None, frame)


@pytest.mark.parametrize("line", LINES)
def test_another_number_is_noticed(line: str) -> None:
    name, field, pattern = LINES[line]
    job, frame, shown = read(name)
    text = getattr(shown, field)
    said = re.fullmatch(pattern, text)
    assert said, text
    assert not list(faults_of_screen(job, frame, shown))
    begin, end = said.span(1)
    for by in (0.9, 1.1) if "." in said[1] or len(said[1]) > 1 else (0, 2, 3):
        changed = f"{text[:begin]}{float(said[1]) * by:.4g}{text[end:]}"
        if line == "left" and by < 1:  # that it is no more than was recorded is known
            continue
        if line in ("lost", "apart", "start-up") and by < 1:
            continue
        assert list(faults_of_screen(job, frame, replace(shown, **{field: changed}))), changed


def test_a_line_of_another_form_is_noticed() -> None:
    job, frame, shown = read("ddp_4ranks")
    other = replace(shown, headline=f"{shown.headline.partition(';')[0]}; all is well")
    assert list(faults_of_screen(job, frame, other)) == ["nothing recomputes it: 'all is well'"]
