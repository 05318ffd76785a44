"""What costs a job most time, in a sentence each, and what to try."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.findings.device_rules import memory_copies, slow_kernels
from hta_widgets.analysis.findings.finding import NOTE_PCT, WARNING_PCT, Finding, Open
from hta_widgets.analysis.findings.idle_rules import IDLE_RULES
from hta_widgets.analysis.findings.imbalance import imbalance, mutual_waiting
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.job_rules import exposed_communication, slow_steps
from hta_widgets.analysis.findings.recording_rules import (
    earlier_work,
    recording_verdict,
    start_up,
    why_withheld,
)
from hta_widgets.analysis.findings.savings import with_saving
from hta_widgets.analysis.findings.straggler import straggler
from hta_widgets.analysis.findings.verdict_rules import (
    compute_bound,
    maybe_communication,
    no_work_due,
    unrecorded_idle,
)
from hta_widgets.charts.spec import Bars
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted, percent
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["ANALYSIS", "OPEN", "overview", "sentence"]

OPEN = "open"
"""The severity of a question that the trace cannot answer."""

VERDICT = "verdict"
"""The severity of a sentence about what the time is spent on, which costs nothing."""

Rule = Callable[[Inputs], Finding | None]

_MAIN_QUESTION = "what devices do"
_RULES: dict[str, tuple[str, Rule]] = {
    **{topic: ("why devices are idle", rule) for topic, rule in IDLE_RULES.items()},
    "compute_bound": (_MAIN_QUESTION, compute_bound),
    "straggler": ("whom the ranks wait for", straggler),
    "exposed_communication": ("what communication costs", exposed_communication),
    "memory_copies": ("what copies cost", memory_copies),
    "slow_kernels": ("whether a rank is slow", slow_kernels),
    "imbalance": ("whom the ranks wait for", imbalance),
    "mutual_waiting": ("whom the ranks wait for", mutual_waiting),
    "slow_steps": ("which steps are unusual", slow_steps),
    "unrecorded_idle": ("why devices are idle", unrecorded_idle),
    "no_work_due": ("why devices are idle", no_work_due),
    "maybe_communication": ("what communication costs", maybe_communication),
}
_WORDS = {
    "data_stall": "Waiting for the data loader",
    "sync_calls": "Waiting for the host, blocked in synchronising calls,",
    "idle_host": "Waiting for the host to launch work",
    "launch_bound": "Waiting for launches to arrive",
    "tiny_kernels": "Going from one kernel to the next",
    "device_wait": "Launched work that does not start",
    "straggler": "Waiting for a late rank",
    "exposed_communication": "Communication without compute",
    "memory_copies": "Copying memory without compute",
    "slow_kernels": "A rank with slow kernels",
    "imbalance": "A rank with more work",
    "mutual_waiting": "Waiting of the ranks for each other in turn",
    "start_up": "Starting up",
    "slow_steps": "Extra time in unusually long steps",
    "unrecorded_idle": "Idle time without a recorded cause",
    "no_work_due": "Time without any device work, at an end of the recording,",
}
_ABOUT_THE_RECORDING = {
    "several_jobs": "These recordings are not the ranks of one job: nothing is compared.",
    "filtered": "Events were removed from this recording: where time goes cannot be told from it.",
    "fragment": "The recording holds one piece of device work: too little to tell where time goes.",
    "graph_capture": "A graph is being captured: what is launched does not run.",
}
_COLUMNS = {
    "rank": "Int64",
    "iteration": "Int64",
    "severity": "str",
    "topic": "str",
    "cost_ns": "int64",
    "share_pct": "float64",
    "text": "str",
    "saving": "str",
    "saving_low_ns": "Int64",
    "saving_ns": "Int64",
    "saving_high_ns": "Int64",
    "method": "str",
    "edits": "str",
    "suggestion": "str",
    "kind": "str",
    "name": "str",
    "event_rank": "Int64",
    "event_id": "Int64",
}


def overview(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What costs the job most time, and what can be done about it?

    Each rule reads one analysis: `idle_breakdown` (waiting for data, synchronising calls, a late host,
    launches on their way, many small kernels, work that waits for other work), `stragglers` (a rank that
    others wait for, what it does longer, ranks that wait for each other),
    `temporal_breakdown` (exposed communication, copies), `kernel_durations` (a rank with slow kernels),
    `step_times`. A cost below 3 % of the time is not reported, since the steps of a steady job differ by as
    much; from 10 % on it is a warning. Findings may overlap (other ranks wait for a rank with slow kernels or
    more work), so their costs do not add up, and a cost is not what a change would save.

    If the steps are marked (ProfilerStep, or a server's steps) and the scope names no iterations, only
    complete steps count, and of those the ones without start-up if there are any. Of a recording that cannot
    be judged (files of several jobs, events removed, a graph that is captured) only that is said.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.

    Returns:
        Warnings, the verdict, notes, then a row per kind of data that is missing. Columns: rank,
        iteration (Int64; what it is about, NA for all), severity ("warning", "note", "verdict" for what
        the time is spent on or what the recording is, which costs nothing, or "open" for what could not
        be judged), topic (str), cost_ns (int64, ns lost in all of the selected time on each rank that it
        is about, on average), share_pct (float64, % of the time of these ranks; 0 if open or about the
        recording), text (str), saving (str: what taking the cost away would save, by a replay of one rank
        as in `what_if`; "" where no edit does that), saving_low_ns, saving_ns, saving_high_ns (Int64, ns
        of that rank's selected time: at least, estimate, at most; NA without one), method (str: "replay";
        "bound", of a change that can be had only in part; ""), edits (str, the Python expression of the
        change), suggestion (what to try), kind (the analysis that shows it, "" if open or about the
        recording), name (of the events it is about, or "") (str), event_rank, event_id (Int64; an event
        to look at, or NA).
    """
    scope = scope or Scope()
    verdict = recording_verdict(trace, scope)
    found, missing = ([verdict], []) if verdict else _judged(trace, scope)
    order = {"warning": 0, VERDICT: 1, "note": 2}
    found.sort(key=lambda finding: (order[finding.severity or "note"], -finding.cost_ns, finding.topic))
    rows = [_row(finding) for finding in found] + [_open_row(gap) for gap in missing]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return frame.astype(_COLUMNS)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `overview` in one sentence."""
    doubtful = frame["topic"] == "maybe_communication"
    told = _sentence(frame[~doubtful & (frame["topic"] != "earlier_work")])
    if not doubtful.any() or frame.loc[doubtful, "share_pct"].iloc[0] < WARNING_PCT:
        return told
    share = percent(frame.loc[doubtful, "share_pct"].iloc[0])
    return f"{told.removesuffix('.')}; {share} may be communication that does not count as such."


def _sentence(frame: pd.DataFrame) -> str:
    if len(about := frame[frame["topic"].isin(_ABOUT_THE_RECORDING)]):
        return _ABOUT_THE_RECORDING[about["topic"].iloc[0]]
    found = frame[~frame["severity"].isin((OPEN, VERDICT))]
    verdict = frame[frame["severity"] == VERDICT]
    if len(verdict) and not found["severity"].eq("warning").any():
        computing = f"Computing takes {percent(verdict['share_pct'].iloc[0])} of the time"
        if found.empty:
            return f"{computing}: what takes longest are the kernels themselves."
        most = _WORDS[found["topic"].iloc[0]].rstrip(",")
        return f"{computing}; {most[0].lower()}{most[1:]} costs {percent(found['share_pct'].iloc[0])}."
    if len(found):
        first, others = found.iloc[0], len(found) - 1 - _same_rank(found)
        more = f"; {counted(others, 'more cause')} {'stands' if others == 1 else 'stand'} out"
        most = "costs most, " if others else "costs "
        return (
            f"{_WORDS[first['topic']]} {most}{percent(first['share_pct'])} of the time{more * (others > 0)}."
        )
    if len(frame) and frame["text"].str.contains(_MAIN_QUESTION, regex=False).any():
        lacking = frame.loc[frame["text"].str.contains(_MAIN_QUESTION, regex=False), "text"].iloc[0]
        return f"Where time goes cannot be told: {lacking.rpartition(': ')[2]}"
    limit = f"no known cause takes {NOTE_PCT:g} % of the time or more"
    if len(frame):
        return f"Nothing stands out in what can be judged: {limit}."
    return f"Nothing stands out: {limit}."


def _same_rank(found: pd.DataFrame) -> bool:
    """Whether a rank that the others wait for is told twice: that they wait, and why it is late."""
    reasons = found.loc[found["topic"].isin(("slow_kernels", "imbalance")), "rank"]
    return bool(reasons.isin(found.loc[found["topic"] == "straggler", "rank"]).any())


def _judged(trace: Trace, scope: Scope) -> tuple[list[Finding], list[Open]]:
    """The findings of the rules, and the missing data, each once with all the questions it leaves open."""
    inputs = Inputs(trace, scope)
    starting = start_up(inputs)
    found = [finding for finding in (starting, earlier_work(inputs)) if finding and finding.severity]
    withheld = why_withheld(inputs, starting)
    lacking: dict[tuple[str, str], list[str]] = {}
    for question, rule in _RULES.values():
        try:
            if withheld:
                raise withheld
            finding = rule(inputs)
        except MissingDataError as missing:
            questions = lacking.setdefault((missing.field, missing.remedy), [])
            if question not in questions:
                questions.append(question)
            continue
        if finding is not None and finding.severity:
            found.append(with_saving(inputs, finding))
    return found, [Open(_listed(questions), field, remedy) for (field, remedy), questions in lacking.items()]


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _row(finding: Finding) -> dict[str, object]:
    evidence = vars(finding.evidence)
    fields = {name: value for name, value in vars(finding).items() if name != "evidence"}
    return {**fields, **evidence}


def _open_row(gap: Open) -> dict[str, object]:
    return {
        "severity": OPEN,
        "topic": "not_judged",
        "cost_ns": 0,
        "share_pct": 0.0,
        "text": f"It is unknown {gap.question}: the trace has no {gap.missing}.",
        "saving": "",
        "method": "",
        "edits": "",
        "suggestion": gap.remedy,
        "kind": "",
        "name": "",
    }


ANALYSIS = Analysis(
    kind="overview",
    label="Overview",
    group="Time",
    title="What stands out",
    function=overview,
    sentence=sentence,
    chart=None,
    requires=(),
    chart_from="step_times",
    pictured=Bars("share_pct", ("topic",), "host", combine="max", measure="Share of the time"),
    ignores=("ranks", "iterations"),
)
