"""Asks every rule about a job: what is found, what is not there, and what the recording cannot tell."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Final

from hta_widgets.analysis.findings.finding import severity_of
from hta_widgets.analysis.findings.host_time import hosts_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.merging import merged
from hta_widgets.analysis.findings.no_device import no_device
from hta_widgets.analysis.findings.outside import outside
from hta_widgets.analysis.findings.recording_rules import (
    earlier_work,
    recording_verdict,
    start_up,
    why_withheld,
)
from hta_widgets.analysis.findings.rule import (
    FAULTS,
    HOST_QUESTION,
    IDLE_QUESTION,
    MAIN_QUESTION,
    SAVING_QUESTION,
    Found,
    Rule,
)
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.analysis.findings.saving import Judged
from hta_widgets.analysis.findings.savings import may_save, with_savings
from hta_widgets.analysis.findings.shared_time import different_recordings
from hta_widgets.analysis.findings.withheld import WithheldError
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised, in_words

_log = logging.getLogger(__name__)

NOT_KNOWN: Final = "Not known"
NOT_TOLD: Final = "Where time goes is unknown"


@dataclass(frozen=True)
class Open:
    """What could not be judged, and what to do about that."""

    title: str
    text: str
    remedy: str
    role: str = ""  # "main" if all that devices do is unknown, "idle" if why they are idle is; else ""
    # the records support neither causes nor savings, so that it comes before all that is found
    leads: bool = False


def found_with_savings(inputs: Inputs) -> list[Judged]:
    """The findings of all rules; none about a recording that cannot be judged."""
    return [] if recording_verdict(inputs.trace, inputs.asked) else judged(inputs)[0]


def judged(inputs: Inputs) -> tuple[list[Judged], list[Rule], list[Open]]:
    """What the rules find; those that find nothing although they could have; and what is not known.

    Missing data is named once with all the questions that it leaves open. A rule that fails costs its own
    answer, never the others.
    """
    starting = start_up(inputs)
    if starting and starting.finding.share_pct and inputs.withheld("idle_causes"):
        starting = None  # it is a cause of idle time
    earlier = earlier_work(inputs)
    first = (different_recordings(inputs), outside(inputs, earlier), starting, earlier)
    found = [each for each in first if each and each.finding.severity]
    withheld = why_withheld(inputs, starting.finding if starting else None)
    if inputs.trace.exceeds_memory and not withheld:
        inputs.ask_ahead(ask for rule in RULES for ask in (rule.judge, rule.applies))
    absent: list[Rule] = []
    lacking: dict[tuple[str, str], list[str]] = {}
    failed: list[Open] = []
    for rule in RULES:
        checkpoint()
        try:
            if withheld and rule.role != "memory":
                raise withheld
            if (why := rule.claim and inputs.withheld(rule.claim)) is not None:
                raise why
            finding = rule.judge(inputs)
        except MissingDataError as missing:
            questions = lacking.setdefault((_lack(missing), missing.remedy), [])
            if rule.question not in questions:
                questions.append(rule.question)
            continue
        except FAULTS as error:  # say so, and let the other rules speak
            failed.append(_failed(rule, error))
            continue
        if finding is not None and finding.severity:
            found.append(Found(rule, finding))
        elif rule.role != "memory":
            absent.append(rule)
    if not withheld and (hosts := hosts_of(inputs)):  # then there are hardly any devices to ask about
        unused = any(inputs.trace.rank(rank).device_name for rank in hosts)
        lacking = {
            key: [MAIN_QUESTION] if MAIN_QUESTION in questions else questions
            for key, questions in lacking.items()
            if unused or MAIN_QUESTION not in questions
        }
    no_cause, no_saving = inputs.withheld("idle_causes"), inputs.withheld("savings")
    if no_saving and any(may_save(each) for each in found):
        lacking.setdefault((_lack(no_saving), no_saving.remedy), []).append(SAVING_QUESTION)
    of_host = any(each.rule.question == HOST_QUESTION for each in found)
    if no_cause:  # the device was recorded, and its events were lost
        for key in [key for key in lacking if key[0] == "The trace has no device events"]:
            lacking.setdefault((_lack(no_cause), no_cause.remedy), []).extend(lacking.pop(key))
    leading = _lack(no_cause) if no_cause and no_saving and not of_host else ""
    gaps = [
        _open(questions, lack, inputs.accelerator.remedy(remedy), leads=lack == leading)
        for (lack, remedy), questions in lacking.items()
    ]
    asides = not withheld and not leading and all(each.rule.role == "aside" for each in found)
    if asides and (alone := no_device(inputs)):
        found.append(alone)
        gaps = [replace(gap, remedy=alone.finding.suggestion) if gap.role else gap for gap in gaps]
    reported = merged(with_savings(inputs, found))
    topics = {each.rule.topic for each in reported}
    absent += [
        each.rule
        for each in found
        if each.rule.topic not in topics and not severity_of(each.finding.share_pct)
    ]
    return reported, _checked(inputs, absent), gaps + failed


def _checked(inputs: Inputs, absent: list[Rule]) -> list[Rule]:
    """Of the rules that found nothing those that could have found something."""
    try:
        if inputs.temporal.empty:
            return []
    except MissingDataError:  # no device work: then hardly anything was looked for
        return []
    return [rule for rule in absent if rule.applies(inputs)]


def _lack(missing: MissingDataError) -> str:
    """What is missing, or what is wrong with the records."""
    if isinstance(missing, WithheldError):
        return capitalised(missing.detail)
    return f"The trace has no {missing.field}"


def _open(questions: list[str], lack: str, remedy: str, leads: bool) -> Open:
    role = "main" if MAIN_QUESTION in questions else "idle" if IDLE_QUESTION in questions else ""
    return Open(
        NOT_TOLD if role == "main" else NOT_KNOWN,
        f"{lack}: it is unknown {in_words(questions)}.",
        remedy,
        role,
        leads,
    )


def _failed(rule: Rule, error: Exception) -> Open:
    _log.error("The rule %r failed", rule.topic, exc_info=error)
    return Open(
        NOT_KNOWN,
        f"The rule {rule.topic} failed ({type(error).__name__}): it is unknown {rule.question}.",
        "Please report it, with the recording if you can share it: this is a fault of hta_widgets.",
    )
