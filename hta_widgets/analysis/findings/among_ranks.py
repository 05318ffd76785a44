"""What is saved if ranks wait less for each other: by the job's replay, else at most what they waited."""

from __future__ import annotations

from typing import Literal

from hta_widgets.analysis.core.claim import Said, say
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.replayed_job import ReplayedJob, replayed_job
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.saving import NOT_ESTIMATED, Saving
from hta_widgets.analysis.replay.what_if import LEAST_PCT

_OF_ONE_RANK = "a simulation of one rank cannot show more, and all ranks cannot be simulated here"
_UNDECIDED = ("missing", "unknown")
"""Verdicts of a replay whose loss may be waiting for what was not recorded."""


def among_ranks(inputs: Inputs, rule: Rule, finding: Finding, late: set[int]) -> Saving:
    """The saving of a finding about ranks that wait for each other.

    What makes a rank late is known to matter to the others if they are seen to wait for it. It saves no more
    than the repair of all that makes that rank late.

    Args:
        late: the ranks that findings name as those that others wait for.
    """
    job = replayed_job(inputs)
    if job is not None and job.kind in _UNDECIDED:
        job = None
    if rule.among_ranks == "in turn" and job is not None and job.saving_pct < LEAST_PCT:
        return Saving(
            f"{NOT_ESTIMATED}: simulated (all ranks) with all as fast as the ranks are on "
            "average, the run takes as long: no rank, but the order of what they exchange makes them wait."
        )
    if rule.among_ranks != "reason":
        return _replayed(inputs, job) if job else at_most(inputs, finding, _OF_ONE_RANK)
    if finding.evidence.rank not in (late.union(job.ranks) if job else late):
        return Saving.unknown("a replay is of one rank, and no other is seen to wait for it alone")
    if job is None:
        return at_most(inputs, finding, _OF_ONE_RANK)
    whole = say("all that makes {who} late, repaired together", who=job.who or "ranks")
    share = job.share(inputs)
    if finding.share_pct <= job.saving_pct:
        return at_most(inputs, finding, say("{whole}, saves {share}", whole=whole, share=share))
    return _saving(
        say("At most {share} can be saved: {whole}, saves no more.", share=share, whole=whole),
        (0, job.saving_ns, job.saving_ns),
        job.saving_pct,
        "bound",
    )


def at_most(inputs: Inputs, finding: Finding, reason: Said) -> Saving:
    """The saving is at most the cost."""
    cost = finding.cost_ns
    share = inputs.of_time("cost", finding.share_pct)
    text = say("At most {share} can be saved: {reason}.", share=share, reason=reason)
    return _saving(text, (0, cost, cost), finding.share_pct, "analytic")


def _replayed(inputs: Inputs, job: ReplayedJob) -> Saving:
    """What a step gains if the late ranks are as fast as the ranks are on average; at most, if all are.

    They are part of that average: ranks that become as fast as the others alone save more.
    """
    part = {0: "", 1: ", itself included"}.get(len(job.ranks), ", themselves included")
    repaired: Said = say(f"{{who}} as fast as the ranks are on average{part}", who=job.who or "all ranks")
    if job.kind == "communication":
        repaired = "all transfers as fast as is usual"
    text = say("Simulated (all ranks) with {repaired}, {takes}", repaired=repaired, takes=inputs.takes)
    if job.saving_pct < LEAST_PCT:
        text += " as long: something else then decides the time."
    elif job.ranks:
        low, high = (job.saving_pct * ns / job.saving_ns for ns in (job.saving_low_ns, job.saving_high_ns))
        ends = {name: inputs.of_time("job_saving", end) for name, end in (("low", low), ("high", high))}
        span = say(" The range is {low} to {high}.", **ends) if high - low >= LEAST_PCT else ""
        text += say(" {share} less.{span}", share=job.share(inputs), span=span)
    else:
        text += say(" at most {share} less.", share=job.share(inputs))
    spread = (job.saving_low_ns if job.ranks else 0, job.saving_ns, job.saving_high_ns)
    return _saving(text, spread, job.saving_pct, "replay" if job.ranks else "bound")


def _saving(
    text: Said,
    low_estimate_high: tuple[int, int, int],
    share_pct: float,
    method: Literal["replay", "bound", "analytic"],
) -> Saving:
    section: Literal["saves", "not now"] = (
        "saves" if method == "analytic" or share_pct >= LEAST_PCT else "not now"
    )
    return Saving(text, section, *low_estimate_high, share_pct, method=method)
