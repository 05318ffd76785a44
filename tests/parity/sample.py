"""What is left out by default: each question is asked about a part of the jobs, and all about two.

Both packages take minutes to answer everything. `make parity` (HTA_WIDGETS_EVERY_CASE=1) asks everything of
every job.
"""

from __future__ import annotations

from tests.parity.cases import SEQUENCES
from tests.parity.deviations import DEVIATIONS
from tests.parity.observe import QUESTIONS
from tests.support import EVERY_CASE

# Asked everything, with their copies: a recording of HTA's own, and one by PyTorch of today.
FULL = ("alexnet", "h100_bert")
PART = 4
# Of these HTA takes minutes, and as long as of all others together.
LARGE = (
    "mi300_resnet",
    "mtia_inference",
    "nccl_parser_config",
    "ns_resolution_trace",
    "resnet50",
    "trace_diff_control",
    "trace_diff_test",
)
PART_OF_LARGE = 12
# They prove no deviation, and the smaller ones are asked the same.
COPIES_OF_LARGE = ("mi300_resnet-plain", "resnet50-plain", "trace_diff_test-plain", "pair-diff")
# What the checks of deviations read of HTA's answers, whatever they are asked about.
READ_BY_CHECKS = {
    "trace_facts",
    "trace_frame",
    "filter_first_iteration",
    "queue_series",
    "bandwidth_series",
    "idle",
}
# HTA's later answers of these change with the earlier ones, which leave columns in its frame: all or none.
TOGETHER = {*SEQUENCES, "call_graph"}


def is_left_out(job: str) -> bool:
    """Is this job asked nothing?"""
    return not EVERY_CASE and job in COPIES_OF_LARGE


def is_large(job: str) -> bool:
    return job.split("-")[0] in LARGE


def left_out(job: str, number: int) -> list[str]:
    """The questions that the job of this number is not asked; each deviation is proven by a job."""
    if EVERY_CASE or job.split("-")[0] in FULL:
        return []
    part = PART_OF_LARGE if is_large(job) else PART
    proven = [entry for entry in DEVIATIONS if min(entry.jobs.split(), key=is_large) == job]
    places = {question: at for at, question in enumerate(QUESTIONS)} | dict.fromkeys(TOGETHER, 0)
    asked = {
        question
        for question, at in places.items()
        if (at + number) % part == 0
        or question in READ_BY_CHECKS
        or any(entry.is_about(question) for entry in proven)
    }
    if asked & TOGETHER:
        asked |= TOGETHER
    if is_large(job):  # a step shows what the path of the whole recording does
        asked.discard("critical_path_all")
    return [question for question in QUESTIONS if question not in asked]
