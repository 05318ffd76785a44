"""What costs a job most time, in a sentence each, and what to try."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.findings.attention_rules import attention_not_fused
from hta_widgets.analysis.findings.caveats import caveat_of
from hta_widgets.analysis.findings.communication_rules import late_collective
from hta_widgets.analysis.findings.compute_rules import COMPUTE_RULES
from hta_widgets.analysis.findings.copy_rules import pageable_copies, slow_copies
from hta_widgets.analysis.findings.ddp_rules import buffers_broadcast
from hta_widgets.analysis.findings.device_rules import memory_copies, slow_kernels
from hta_widgets.analysis.findings.drift_rules import LEAST_STEPS, clock_drift
from hta_widgets.analysis.findings.finding import Finding, Open, severity_of
from hta_widgets.analysis.findings.fsdp_rules import fsdp_prefetch
from hta_widgets.analysis.findings.fusion_rules import pointwise_chains
from hta_widgets.analysis.findings.headline import IDLE_QUESTION, MAIN_QUESTION, WORDS, sentence
from hta_widgets.analysis.findings.host_rules import HOST_RULES, hosts_of
from hta_widgets.analysis.findings.idle_rules import IDLE_RULES
from hta_widgets.analysis.findings.imbalance import imbalance, mutual_waiting
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.job_rules import exposed_communication, slow_steps
from hta_widgets.analysis.findings.launch_rules import low_occupancy, tiny_products, wave_quantization
from hta_widgets.analysis.findings.memory_rules import memory_findings
from hta_widgets.analysis.findings.message_rules import tells_latency, tiny_collectives
from hta_widgets.analysis.findings.pause_rules import PAUSE_RULES
from hta_widgets.analysis.findings.pauses import TELLING_STEPS
from hta_widgets.analysis.findings.pipeline_rules import bubble, pipeline_bubble
from hta_widgets.analysis.findings.precision_rules import fp32_units, tf32_units
from hta_widgets.analysis.findings.python_rules import python_heavy
from hta_widgets.analysis.findings.queue_rules import queue_full
from hta_widgets.analysis.findings.recomputation_rule import recomputation
from hta_widgets.analysis.findings.recording_rules import (
    earlier_work,
    recording_verdict,
    start_up,
    unread_files,
    why_withheld,
)
from hta_widgets.analysis.findings.region_rules import REGION_RULES
from hta_widgets.analysis.findings.savings import with_savings
from hta_widgets.analysis.findings.sections import CHECKED, NOTHING, OPEN, ordered
from hta_widgets.analysis.findings.shape_rules import unaligned_shapes
from hta_widgets.analysis.findings.sharing_rules import slowed_by_communication
from hta_widgets.analysis.findings.straggler import straggler
from hta_widgets.analysis.findings.turn_rules import devices_in_turn
from hta_widgets.analysis.findings.verdict_rules import (
    compute_bound,
    maybe_communication,
    no_work_due,
    unrecorded_idle,
)
from hta_widgets.charts.spec import Bars
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import in_words
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["ANALYSIS", "found_with_savings", "overview"]

Rule = Callable[[Inputs], Finding | None]

_RULES: dict[str, tuple[str, Rule]] = {
    **{topic: (IDLE_QUESTION, rule) for topic, rule in IDLE_RULES.items()},
    **{topic: (IDLE_QUESTION, rule) for topic, rule in PAUSE_RULES.items()},
    **{topic: (IDLE_QUESTION, rule) for topic, rule in REGION_RULES.items()},
    "python_heavy": (IDLE_QUESTION, python_heavy),
    "devices_in_turn": (IDLE_QUESTION, devices_in_turn),
    "queue_full": ("how far the host is ahead", queue_full),
    **{topic: (MAIN_QUESTION, rule) for topic, rule in HOST_RULES.items()},
    "compute_bound": (MAIN_QUESTION, compute_bound),
    **{topic: (MAIN_QUESTION, rule) for topic, rule in COMPUTE_RULES.items()},
    "straggler": ("whom the ranks wait for", straggler),
    "pipeline_bubble": ("whom the ranks wait for", pipeline_bubble),
    "exposed_communication": ("what communication costs", exposed_communication),
    "late_collective": ("what communication costs", late_collective),
    "fsdp_prefetch": ("when FSDP gathers parameters", fsdp_prefetch),
    "tiny_collectives": ("what communication costs", tiny_collectives),
    "buffers_broadcast": ("what communication costs", buffers_broadcast),
    "slowed_by_communication": ("what communication costs", slowed_by_communication),
    "memory_copies": ("what copies cost", memory_copies),
    "pageable_copies": ("what copies cost", pageable_copies),
    "slow_copies": ("what copies cost", slow_copies),
    "slow_kernels": ("whether a rank is slow", slow_kernels),
    "imbalance": ("whom the ranks wait for", imbalance),
    "mutual_waiting": ("whom the ranks wait for", mutual_waiting),
    "fp32_units": ("on which units kernels multiply", fp32_units),
    "tf32_units": ("on which units kernels multiply", tf32_units),
    "attention_not_fused": ("whether attention is fused", attention_not_fused),
    "unaligned_shapes": ("whether sizes fit the units", unaligned_shapes),
    "wave_quantization": ("whether kernels fill the device", wave_quantization),
    "low_occupancy": ("whether kernels fill the device", low_occupancy),
    "tiny_products": ("whether matrix products are too small", tiny_products),
    "pointwise_chains": ("which kernels could be one", pointwise_chains),
    "recomputation": ("whether the forward pass runs twice", recomputation),
    "slow_steps": ("which steps are unusual", slow_steps),
    "clock_drift": ("whether devices slow down", clock_drift),
    "unrecorded_idle": (IDLE_QUESTION, unrecorded_idle),
    "no_work_due": (IDLE_QUESTION, no_work_due),
    "maybe_communication": ("what communication costs", maybe_communication),
}
_COLUMNS = {
    "rank": "Int64",
    "iteration": "Int64",
    "section": "str",
    "severity": "str",
    "topic": "str",
    "cost_ns": "int64",
    "share_pct": "float64",
    "text": "str",
    "saving": "str",
    "saving_low_ns": "Int64",
    "saving_ns": "Int64",
    "saving_high_ns": "Int64",
    "saving_pct": "float64",
    "saving_rank": "Int64",
    "method": "str",
    "confidence": "str",
    "steps": "Int64",
    "edits": "str",
    "suggestion": "str",
    "risk": "str",
    "needs": "str",
    "kind": "str",
    "name": "str",
    "event_rank": "Int64",
    "event_id": "Int64",
}

_NO_FINDING = {
    "cost_ns": 0,
    "share_pct": 0.0,
    "saving": "",
    "method": "",
    "confidence": "",
    "edits": "",
    "suggestion": "",
    "risk": "",
    "needs": "",
    "kind": "",
    "name": "",
}


@kept()
def overview(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What costs the job most time, and what can be done about it?

    Each rule reads one analysis: `idle_breakdown` (waiting for data, synchronising calls, a late host,
    launches on their way, many small kernels, work that waits for other work), `stragglers` (a rank that
    others wait for, what it does longer, ranks that wait for each other),
    `temporal_breakdown` (exposed communication, copies), `kernel_durations` (a rank with slow kernels),
    `step_times`. A cost below 3 % of the time is not reported, since the steps of a steady job differ by as
    much; from 10 % on it is a warning. Findings may overlap (other ranks wait for a rank with slow kernels or
    more work), so their costs do not add up, and a cost is not what a change would save. Of a job that
    computes on the host alone it is told what the thread of its steps does, and what that waits for.

    If the steps are marked (ProfilerStep, or a server's steps) and the scope names no iterations, only
    complete steps count, and of those the ones without start-up if there are any. Of a recording that cannot
    be judged (files of several jobs, events removed, a graph that is captured) only that is said.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.

    Returns:
        What there is to say of the recording; findings whose cost a change takes away, by what it saves;
        those for which that is unknown, by cost; those whose change saves nothing now, by cost; what is said
        of memory, which takes no time; a row that names what was looked for and not found; and a row per kind
        of data that is missing. That devices compute comes before the findings, or behind those of the first
        two kinds where one is a warning.
        A saving is one if it is 0.5 % of the time or more, and twice the median deviation of the steps over
        the root of their number.
        Columns: rank, iteration (Int64; what it is about, NA for all), section (str: "recording", "saves",
        "unknown", "verdict", "not now", "memory", "nothing found" or "open"),
        severity (str: "warning", "note",
        "verdict" for what the time is spent on or what the recording is, which costs nothing, "checked" for
        what was not found, or "open" for what could not be judged), topic (str), cost_ns (int64, ns lost in
        all of the selected time on each rank that it is about, on average), share_pct (float64, % of the
        time of these ranks; 0 if open, or about the recording or memory),
        text (str), saving (str: what taking the
        cost away would save, by a replay of one rank as in `what_if`, or, of what ranks lose to each other,
        of all as in `slowdown`; or why that is unknown),
        saving_low_ns, saving_ns, saving_high_ns (Int64, ns of that rank's selected time, or of the job's
        replayed steps: at least, estimate, at most; NA without one), saving_pct (float64, the estimate in %
        of that time), saving_rank (Int64, the rank that was replayed; NA if all were), method (str:
        "replay"; "bound", of a change that can be had only in part; "analytic", at most what ranks lose to
        each other, or nothing, without a replay; ""), confidence (str: "high", "medium" or "low", as the
        range of the replay and the error of its model are together up to a tenth of the saving, up to a half,
        or more, or only a bound is known; "" without a saving), steps (Int64, the steps that are judged:
        cost and savings divided by it are per step; NA where none are marked),
        edits (str, the Python expression of the change, as `hta-widgets what-if --edit` takes it),
        suggestion (what to try), risk (what may go wrong with it), needs (what it takes; "" where nothing
        is known to), kind (the analysis that shows it, "" if open or about the recording), name
        (of the events it is about, or "") (str), event_rank, event_id (Int64; an event to look at, or NA).
    """
    scope = scope or Scope()
    verdict = recording_verdict(trace, scope)
    inputs = Inputs(trace, scope)
    found, absent, missing = ([verdict], [], []) if verdict else _judged(inputs)
    if unread := unread_files(trace):
        found = [*found, unread]
    steps = None if verdict else inputs.judged or None
    rows = [_row(section, finding, steps) for section, finding in ordered(found)]
    rows += [_checked_row(absent)] if absent else []
    rows += [_open_row(gap) for gap in missing]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    return frame.astype(_COLUMNS)


def found_with_savings(inputs: Inputs) -> list[Finding]:
    """The findings of all rules; none about a recording that cannot be judged."""
    return [] if recording_verdict(inputs.trace, inputs.asked) else _judged(inputs)[0]


def _judged(inputs: Inputs) -> tuple[list[Finding], list[str], list[Open]]:
    """What the rules find; the topics of those that find nothing; and the missing data.

    Missing data is told once with all the questions that it leaves open.
    """
    starting = start_up(inputs)
    found = [finding for finding in (starting, earlier_work(inputs)) if finding and finding.severity]
    withheld = why_withheld(inputs, starting)
    if inputs.trace.exceeds_memory and not withheld:
        inputs.ask_ahead([*(rule for _, rule in _RULES.values()), memory_findings])
    absent: list[str] = []
    lacking: dict[tuple[str, str], list[str]] = {}
    for topic, (question, rule) in _RULES.items():
        checkpoint()
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
            found.append(finding)
        else:
            absent.append(topic)
    if not withheld and hosts_of(inputs):  # then there are no devices to ask about
        lacking = {key: [MAIN_QUESTION] if MAIN_QUESTION in each else each for key, each in lacking.items()}
    gaps = [Open(in_words(questions), field, remedy) for (field, remedy), questions in lacking.items()]
    told = with_savings(inputs, found) + memory_findings(inputs)
    kept = {finding.topic for finding in told}
    absent += [each.topic for each in found if each.topic not in kept and not severity_of(each.share_pct)]
    return told, _looked_for(inputs, absent, told), gaps


def _looked_for(inputs: Inputs, absent: list[str], found: list[Finding]) -> list[str]:
    """Of the topics that were not found those that could have been, and are no part of another finding."""
    try:
        ranks = len(inputs.temporal)
    except MissingDataError:  # no device work: then hardly anything was looked for
        return []
    if not ranks:
        return []
    not_asked = {"compute_bound", "devices_in_turn", "maybe_communication", "queue_full", *HOST_RULES}
    if ranks < 2:
        not_asked |= {"straggler", "slow_kernels", "imbalance", "mutual_waiting"}
    if bubble(inputs) is None:
        not_asked.add("pipeline_bubble")
    if not len(inputs.steps):
        not_asked.add("slow_steps")
    if not inputs.judged:
        not_asked |= REGION_RULES.keys()
    if inputs.judged < TELLING_STEPS:
        not_asked |= PAUSE_RULES.keys()
    if inputs.judged < LEAST_STEPS:
        not_asked.add("clock_drift")
    if not inputs.has_stacks:
        not_asked.add("python_heavy")
    if not inputs.temporal["communication_ns"].any():
        not_asked.add("late_collective")
    if not inputs.has_fsdp:
        not_asked.add("fsdp_prefetch")
    if not tells_latency(inputs):
        not_asked.add("tiny_collectives")
    if not inputs.has_operators:
        not_asked |= {"attention_not_fused", "pointwise_chains", "recomputation"}
    if any(finding.topic == "idle_host" for finding in found):  # it tells of launches on their way, too
        not_asked.add("launch_bound")
    return [topic for topic in absent if topic not in not_asked]


_NOT_SHOWN = ("evidence", "change", "share_of", "only_if_saved")


def _row(section: str, finding: Finding, steps: int | None) -> dict[str, object]:
    fields = {name: value for name, value in vars(finding).items() if name not in _NOT_SHOWN}
    caveat = caveat_of(finding.topic)._asdict()
    return {**fields, **vars(finding.evidence), **caveat, "section": section, "steps": steps}


def _checked_row(topics: list[str]) -> dict[str, object]:
    words = [WORDS[topic].rstrip(",") for topic in topics]
    said = in_words([f"{word[0].lower()}{word[1:]}" for word in words])
    return {
        **_NO_FINDING,
        "section": NOTHING,
        "severity": CHECKED,
        "topic": "nothing_found",
        "text": f"Checked, and not there or too small to tell: {said}.",
    }


def _open_row(gap: Open) -> dict[str, object]:
    return {
        **_NO_FINDING,
        "section": OPEN,
        "severity": OPEN,
        "topic": "not_judged",
        "text": f"The trace has no {gap.missing}: it is unknown {gap.question}.",
        "suggestion": gap.remedy,
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
)
