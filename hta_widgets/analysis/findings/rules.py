"""The rules, in the order in which they are asked. A new one is its module, and its place here."""

from __future__ import annotations

from typing import Final

import pandas as pd

from hta_widgets.analysis.findings import (
    anomaly_rule,
    attention_rules,
    bimodal_steps,
    communication_rules,
    compiling_rule,
    compute_rules,
    compute_verdict,
    contention_rule,
    copy_rules,
    ddp_rules,
    dense_rules,
    device_rules,
    drift_rules,
    exposed_communication,
    fsdp_rules,
    fusion_rules,
    growing_rule,
    growing_steps,
    host_communication_rules,
    host_rules,
    idle_rules,
    imbalance,
    known_calls,
    late_host_rules,
    launch_rules,
    lost_device_rules,
    memory_rules,
    message_rules,
    mode_rules,
    offload_rule,
    passes_rule,
    pause_rules,
    pipeline_rules,
    precision_rules,
    python_rules,
    queue_rules,
    recomputation_rule,
    region_rules,
    serving_drafts,
    serving_host,
    serving_pipeline,
    serving_rules,
    serving_tail,
    serving_work,
    shape_rules,
    shared_device,
    sharing_rules,
    slow_steps,
    straggler,
    threads_rule,
    turn_rules,
    type_rules,
    verdict_rules,
)
from hta_widgets.analysis.findings.no_device import NO_DEVICE
from hta_widgets.analysis.findings.recording_rules import START_UP
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.shared_time import DIFFERENT_RECORDINGS

RULES: Final[tuple[Rule, ...]] = (
    *idle_rules.RULES,
    *pause_rules.RULES,
    offload_rule.RULE,
    *serving_host.RULES,
    serving_pipeline.RULE,
    *late_host_rules.RULES,
    *known_calls.RULES,
    *serving_rules.RULES,
    serving_tail.RULE,
    *serving_work.RULES,
    serving_drafts.RULE,
    passes_rule.RULE,
    shared_device.RULE,
    *region_rules.RULES,
    python_rules.RULE,
    turn_rules.RULE,
    queue_rules.RULE,
    *host_rules.RULES,
    contention_rule.RULE,
    growing_rule.RULE,
    compiling_rule.RULE,
    *type_rules.RULES,
    *dense_rules.RULES,
    anomaly_rule.RULE,
    threads_rule.RULE,
    *host_communication_rules.RULES,
    *lost_device_rules.RULES,
    *compute_rules.RULES,
    straggler.RULE,
    pipeline_rules.RULE,
    exposed_communication.RULE,
    communication_rules.RULE,
    fsdp_rules.RULE,
    message_rules.RULE,
    ddp_rules.RULE,
    sharing_rules.RULE,
    *device_rules.RULES,
    *copy_rules.RULES,
    *imbalance.RULES,
    *precision_rules.RULES,
    attention_rules.RULE,
    shape_rules.RULE,
    *launch_rules.RULES,
    fusion_rules.RULE,
    *recomputation_rule.RULES,
    slow_steps.RULE,
    bimodal_steps.RULE,
    drift_rules.RULE,
    growing_steps.RULE,
    *mode_rules.RULES,
    compute_verdict.RULE,
    *verdict_rules.RULES,
    *memory_rules.RULES,
)

BY_TOPIC: Final = {rule.topic: rule for rule in (*RULES, START_UP, NO_DEVICE, DIFFERENT_RECORDINGS)}


def leading(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows of `overview` with which the answer in one sentence begins."""
    return frame["topic"].isin([rule.topic for rule in RULES if rule.leads])


def is_beside(topic: str) -> bool:
    """Whether a row of `overview` stands before the headline, or beside it."""
    return topic in BY_TOPIC and (BY_TOPIC[topic].leads or BY_TOPIC[topic].beside)


def beside(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows of `overview` that stand beside the headline."""
    return frame["topic"].isin([rule.topic for rule in BY_TOPIC.values() if rule.beside])


def mistakes(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows of `overview` about mistakes of the program, which stand beneath the headline."""
    return frame["topic"].isin([rule.topic for rule in RULES if rule.mistake])


def passes(topic: str) -> bool:
    """Whether a row of `overview` is about what is no part of the steady state."""
    return topic in BY_TOPIC and BY_TOPIC[topic].once


def is_unjudged(topic: str) -> bool:
    """Whether a row of `overview` is about what of the recording is not judged."""
    return topic in BY_TOPIC and BY_TOPIC[topic].unjudged
