"""What is saved if ranks wait less for each other: by the job's replay, else at most what they waited."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from hta_widgets.analysis.findings.replayed_job import ReplayedJob, replayed_job
from hta_widgets.analysis.replay.what_if import LEAST_PCT
from hta_widgets.formatting import percent, ranks_in_words

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.finding import Finding
    from hta_widgets.analysis.findings.inputs import Inputs

__all__ = ["between_ranks"]

_WAITING = ("straggler", "mutual_waiting")
"""The other topics say why a rank is late."""
_OF_ONE_RANK = "a replay of one rank cannot tell more"
_UNDECIDED = ("missing", "unknown")
"""Verdicts of a replay whose loss may be waiting for what was not recorded."""


def between_ranks(inputs: Inputs, finding: Finding, late: set[int | None]) -> Finding:
    """A finding about ranks that wait for each other, with its saving.

    What makes a rank late is known to matter to the others if they are seen to wait for it. It saves no more
    than the repair of all that makes that rank late.

    Args:
        late: the ranks that findings name as those that others wait for.
    """
    job = replayed_job(inputs)
    if job is not None and job.kind in _UNDECIDED:
        job = None
    if finding.topic == "mutual_waiting" and job is not None and job.saving_pct < LEAST_PCT:
        return replace(
            finding,
            saving="What can be saved is unknown: replayed (all ranks) with all as fast as the ranks are on "
            "average, all takes as long: no rank, but the order of what they exchange makes them wait.",
        )
    if finding.topic in _WAITING:
        return _replayed(inputs, finding, job) if job else _at_most(finding, _OF_ONE_RANK)
    if finding.evidence.rank not in (late.union(job.ranks) if job else late):
        reason = "a replay is of one rank, and no other is seen to wait for it alone"
        return replace(finding, saving=f"What can be saved is unknown: {reason}.")
    if job is None:
        return _at_most(finding, _OF_ONE_RANK)
    whole = f"all that makes {ranks_in_words(job.ranks) if job.ranks else 'ranks'} late, repaired together"
    if finding.share_pct <= job.saving_pct:
        return _at_most(finding, f"{whole}, saves {percent(job.saving_pct)}")
    return _saving(
        finding,
        f"At most {percent(job.saving_pct)} can be saved: {whole}, saves no more.",
        (0, job.saving_ns, job.saving_ns),
        job.saving_pct,
        "bound",
    )


def _at_most(finding: Finding, reason: str) -> Finding:
    """The saving is at most the cost."""
    cost = finding.cost_ns
    told = f"At most {percent(finding.share_pct)} can be saved: {reason}."
    return _saving(finding, told, (0, cost, cost), finding.share_pct, "analytic")


def _replayed(inputs: Inputs, finding: Finding, job: ReplayedJob) -> Finding:
    """What a step gains if the late ranks are as fast as the ranks are on average; at most, if all are."""
    takes = "the steps take" if inputs.judged > 1 else "the step takes" if inputs.judged else "all takes"
    repaired = (
        f"{ranks_in_words(job.ranks) if job.ranks else 'all ranks'} as fast as the ranks are on average"
    )
    if job.kind == "communication":
        repaired = "all transfers as fast as is usual"
    how = f"Replayed (all ranks) with {repaired}, {takes}"
    if job.saving_pct < LEAST_PCT:
        how += " as long: something else then decides the time."
    elif job.ranks:
        low, high = (job.saving_pct * ns / job.saving_ns for ns in (job.saving_low_ns, job.saving_high_ns))
        span = f" ({percent(low)} to {percent(high)})" if high - low >= LEAST_PCT else ""
        how += f" {percent(job.saving_pct)} less{span}."
    else:
        how += f" at most {percent(job.saving_pct)} less."
    spread = (job.saving_low_ns if job.ranks else 0, job.saving_ns, job.saving_high_ns)
    return _saving(finding, how, spread, job.saving_pct, "replay" if job.ranks else "bound")


def _saving(
    finding: Finding,
    told: str,
    low_estimate_high: tuple[int, int, int],
    share_pct: float,
    method: Literal["replay", "bound", "analytic"],
) -> Finding:
    low, estimate, high = low_estimate_high
    return replace(
        finding,
        section="saves" if method == "analytic" or share_pct >= LEAST_PCT else "not now",
        saving=told,
        saving_low_ns=low,
        saving_ns=estimate,
        saving_high_ns=high,
        saving_pct=share_pct,
        method=method,
    )
