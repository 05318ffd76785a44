"""What is wrong with a job as a whole, or with the numbers of its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hta_widgets.formatting import byte_size, counted
from hta_widgets.trace.absent_ranks import Absent
from hta_widgets.trace.class_rules import ClassRules
from hta_widgets.trace.clocks import Clock
from hta_widgets.trace.health import Finding
from hta_widgets.trace.rank_events import RankEvents
from hta_widgets.trace.reader.ranks import Assigned


def job_findings(
    failed: Mapping[str, Exception], skipped: Mapping[str, str], notes: Iterable[str], clock: Clock
) -> list[Finding]:
    """The findings about the job: files left out, how the others were found, and the clock."""
    findings = [
        Finding(None, "error", "unreadable", 1, f"{name}: {error}", "") for name, error in failed.items()
    ]
    findings += [Finding(None, "info", "skipped", 1, f"{name}: {reason}") for name, reason in skipped.items()]
    findings += [Finding(None, "info", "discovery", 1, note) for note in notes]
    if len(clock.offset_ns) > 1:
        doubtful = clock.method == "start"
        remedy = "moments of different ranks are not comparable, durations are" if doubtful else ""
        findings.append(
            Finding(
                None, "warning" if doubtful else "info", "clock", len(clock.offset_ns), clock.detail, remedy
            )
        )
    return findings


def rule_findings(rules: ClassRules) -> list[Finding]:
    """Files with rules for classes of device work: that they were used, and what is wrong with them."""
    remedy = 'a rule is [[class]] with name = "a regular expression" and class = "communication"'
    return [
        *(Finding(None, "error", "class_rules", 1, problem, remedy) for problem in rules.problems),
        *(
            Finding(None, "info", "class_rules", count, f"rules for classes of device work from {file}")
            for file, count in rules.files.items()
            if count
        ),
    ]


def memory_findings(events: Iterable[RankEvents], limit: int) -> list[Finding]:
    """That ranks which cannot be read again hold more memory than they may."""
    fixed = [each for each in events if each.stays]
    if (held := sum(each.table.nbytes for each in fixed)) <= limit:
        return []
    detail = (
        f"{counted(len(fixed), 'rank')} cannot be read again from a cache and take "
        f"{byte_size(held)} of memory, more than the limit of {byte_size(limit)}"
    )
    remedy = "allow a cache: Trace.open(path, cache=True), HTA_WIDGETS_CACHE not off"
    return [Finding(None, "warning", "memory", len(fixed), detail, remedy)]


def unlike_findings(absent: Absent, several_jobs: str, ranks: int) -> list[Finding]:
    """Ranks of the job that were not opened, and ranks that are not of one job."""
    findings = []
    if absent.count:
        remedy = "record every rank, or put the missing files beside the others"
        detail = f"nothing was opened of {absent.text}: no answer holds what is missing"
        findings.append(Finding(None, "warning", "absent_ranks", absent.count, detail, remedy))
    if several_jobs:
        remedy = "open each recording by itself: Trace.open(file)"
        detail = f"these are not the ranks of one job: {several_jobs}"
        findings.append(Finding(None, "warning", "several_jobs", ranks, detail, remedy))
    return findings


def number_findings(assigned: Assigned, stated: int | None) -> list[Finding]:
    """Doubts about the number of a rank whose file states this one."""
    if assigned.duplicate:
        detail = f"{assigned.label}: another file has the same rank; this one is shown as {assigned.rank}"
        remedy = "open one recording at a time, or name the ranks: Trace.open({rank: file})"
        return [Finding(assigned.rank, "warning", "duplicate_rank", 1, detail, remedy)]
    if assigned.source in ("name", "order"):
        return [Finding(assigned.rank, "info", "rank_guessed", 1, assigned.reason)]
    if assigned.source == "caller" and stated not in (None, assigned.rank):
        detail = "the file names another rank than the caller"
        return [Finding(assigned.rank, "warning", "rank_contradicted", 1, detail)]
    return []
