"""What costs a job most time, in plain words, and what to try."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.findings.device_rules import memory_copies, queue_full, slow_kernels
from hta_widgets.analysis.findings.finding import NOTE_PCT, Finding, Open, severity_of
from hta_widgets.analysis.findings.idle_rules import IDLE_RULES
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.job_rules import exposed_communication, slow_steps, straggler
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["ANALYSIS", "OPEN", "overview", "sentence"]

OPEN = "open"
"""The severity of a question that the trace cannot answer."""

Rule = Callable[[Inputs], Finding | None]

_RULES: dict[str, tuple[str, Rule]] = {
    **{topic: ("why devices are idle", rule) for topic, rule in IDLE_RULES.items()},
    "straggler": ("whom the ranks wait for", straggler),
    "exposed_communication": ("what communication costs", exposed_communication),
    "memory_copies": ("what copies cost", memory_copies),
    "slow_kernels": ("whether a rank is slow", slow_kernels),
    "queue_full": ("whether queues are full", queue_full),
    "slow_steps": ("which steps are unusual", slow_steps),
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
    "queue_full": "Launching into full queues",
    "slow_steps": "Unusually long steps",
}
_COLUMNS = {
    "rank": "Int64",
    "iteration": "Int64",
    "severity": "str",
    "topic": "str",
    "cost_ns": "int64",
    "share_pct": "float64",
    "text": "str",
    "suggestion": "str",
    "kind": "str",
    "name": "str",
    "event_rank": "Int64",
    "event_id": "Int64",
}


def overview(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What costs most time, each in a sentence with numbers, costliest first.

    Each rule reads one analysis: `idle_breakdown` (waiting for data, synchronising calls, a late host,
    launches on their way, many small kernels, work that waits for other work), `stragglers`,
    `temporal_breakdown` (exposed communication, copies), `kernel_durations` (a rank with slow kernels),
    `blocked_on_full_queue`, `step_times`. What costs less than 3 % of the time is no finding: the steps of a
    steady job differ by as much; from 10 % on it is a warning. Findings may overlap (a rank with slow kernels
    is one that others wait for), so their costs do not add up.

    Where the steps are announced (ProfilerStep, or a server's steps) and the scope names no iterations, the
    complete ones count.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.

    Returns:
        One row per finding, then one per piece of data that is missing to judge more. Columns: rank,
        iteration (Int64; what it is about, NA for all), severity ("warning", "note", or "open" for what could
        not be judged), topic (str), cost_ns (int64, ns lost in all of the selected time on each rank that it
        is about, on average), share_pct (float64, % of the time of these ranks; 0 if open), text, suggestion,
        kind (the analysis that shows it, "" if open), name (of the events it is about, or "") (str),
        event_rank, event_id (Int64; an event to look at, or NA).
    """
    inputs = Inputs(trace, scope or Scope())
    found, missing = _judged(inputs)
    found.sort(key=lambda finding: (-finding.cost_ns, finding.topic))
    rows = [_row(finding) for finding in found] + [_open_row(gap) for gap in missing]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return frame.astype(_COLUMNS)


def sentence(frame: pd.DataFrame) -> str:
    """What costs most, in one sentence."""
    found = frame[frame["severity"] != OPEN]
    if len(found):
        first, others = found.iloc[0], len(found) - 1
        more = f"; {others} more {'cause' if others == 1 else 'causes'} stand{'s' * (others == 1)} out"
        most = "costs most, " if others else "costs "
        return (
            f"{_WORDS[first['topic']]} {most}{percent(first['share_pct'])} of the time{more * (others > 0)}."
        )
    limit = f"no known cause takes {NOTE_PCT:g} % of the time or more"
    if len(frame):
        return f"Nothing stands out in what can be judged: {limit}."
    return f"Nothing stands out: {limit}."


def _judged(inputs: Inputs) -> tuple[list[Finding], list[Open]]:
    """What the rules found, and what they lacked, each lack once with all the questions that it leaves."""
    found: list[Finding] = []
    lacking: dict[tuple[str, str], list[str]] = {}
    for question, rule in _RULES.values():
        try:
            finding = rule(inputs)
        except MissingDataError as missing:
            questions = lacking.setdefault((missing.field, missing.remedy), [])
            if question not in questions:
                questions.append(question)
            continue
        if finding is not None and severity_of(finding.share_pct):
            found.append(finding)
    return found, [Open(_listed(questions), field, remedy) for (field, remedy), questions in lacking.items()]


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _row(finding: Finding) -> dict[str, object]:
    evidence = vars(finding.evidence)
    told = {name: value for name, value in vars(finding).items() if name != "evidence"}
    return {**told, **evidence, "severity": severity_of(finding.share_pct)}


def _open_row(gap: Open) -> dict[str, object]:
    return {
        "severity": OPEN,
        "topic": "not_judged",
        "cost_ns": 0,
        "share_pct": 0.0,
        "text": f"It cannot be told {gap.question}: the trace has no {gap.missing}.",
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
    ignores=("ranks", "iterations"),
)
