"""What is left out by default: each question is asked about a part of the jobs, and all about two.

Both packages take minutes to answer everything. `make parity` (HTA_WIDGETS_EVERY_CASE=1) asks everything of
every job.
"""

from __future__ import annotations

import fnmatch

from tests.parity.cases import SEQUENCES
from tests.parity.deviations import DEVIATIONS, Deviation
from tests.parity.observe import QUESTIONS
from tests.support import EVERY_CASE

# Asked everything, with their copies: a recording of HTA's own, and one by PyTorch of today.
FULL = ("alexnet", "h100_bert")
PART = 4
# HTA takes minutes of these and of their copies, of the last ones most: they are asked what no other job
# shows.
LARGE = (
    "mtia_inference",
    "h100_qwen",
    "nccl_parser_config",
    "ns_resolution_trace",
    "resnet50",
    "mi300_resnet",
    "trace_diff_test",
    "trace_diff_control",
    "pair-diff",
)
# What the checks of deviations read of HTA's answers beside the one that they are about.
READ_BY_CHECKS = {
    "trace_facts": "*",
    "trace_frame": "blocked_*",
    "filter_first_iteration": "trace_frame",
    "queue_series": "*_series",
    "bandwidth_series": "*_series",
    "idle": "idle_streams",
}
# HTA's later answers of these change with the earlier ones, which leave columns in its frame: all or none.
TOGETHER = {*SEQUENCES, "call_graph"}


def size(job: str) -> int:
    """0, or the place among the large ones."""
    return next((place for place, name in enumerate(LARGE, 1) if job.startswith(name)), 0)


def _proofs() -> dict[str, list[Deviation]]:
    """Job -> the deviations that it proves: each is proven by the smallest job.

    Large jobs prove one deviation for each row of docs/differences.md that no smaller one proves.
    """
    proofs: dict[str, list[Deviation]] = {}
    rows: set[str] = set()
    by_job = [(min(entry.jobs.split(), key=size), entry) for entry in DEVIATIONS]
    for job, entry in sorted(by_job, key=lambda item: (size(item[0]), item[0])):
        if not size(job) or entry.row not in rows:
            proofs.setdefault(job, []).append(entry)
            rows.add(entry.row)
    return proofs


PROOFS = _proofs()


def is_left_out(job: str) -> bool:
    """Is this job asked nothing?"""
    return not EVERY_CASE and size(job) and job not in PROOFS


def left_out(job: str, number: int) -> list[str]:
    """The questions that the job of this number is not asked."""
    if EVERY_CASE or job.split("-")[0] in FULL:
        return []
    proven = PROOFS.get(job, [])
    places = {question: at for at, question in enumerate(QUESTIONS)} | dict.fromkeys(TOGETHER, 0)
    asked = {
        question
        for question, at in places.items()
        if any(entry.is_about(question) for entry in proven)
        or (not size(job) and (question in READ_BY_CHECKS or (at + number) % PART == 0))
    }
    asked |= {read for read, about in READ_BY_CHECKS.items() if fnmatch.filter(asked, about)}
    if asked & TOGETHER:
        asked |= TOGETHER
    if size(job):  # a step shows what the path of the whole recording does
        asked.discard("critical_path_all")
    return [question for question in QUESTIONS if question not in asked]
