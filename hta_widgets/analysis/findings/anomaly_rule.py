"""The rule about gradients checked for NaN, node after node, as torch.autograd.detect_anomaly does."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from hta_widgets.analysis.core.autograd import is_node
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.host_loss import host_rule, lost_in_calls
from hta_widgets.analysis.findings.host_time import hosts_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import MAIN_QUESTION
from hta_widgets.analysis.idle.causes import named
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

ADVICE: Final = (
    "torch.autograd.detect_anomaly, or set_detect_anomaly(True), checks so: switch it off outside of "
    "debugging. It also takes a Python stack for each operation of the forward pass."
)
_IS_ANY: Final = "aten::_is_any_true"
_CHECKS: Final = re.compile(rf"^(?:aten::isnan|{_IS_ANY}|aten::item)$")


def checks_of(rank_trace: RankTrace) -> Int64:
    """The calls that check what a node of autograd returns: right inside it, and none of its own function."""
    parent = np.where(rank_trace.parent >= 0, rank_trace.parent, 0)
    in_node = (rank_trace.parent >= 0) & named(rank_trace, is_node)[parent]
    checked = np.zeros(rank_trace.n, np.bool_)
    checked[parent[in_node & named(rank_trace, _IS_ANY.__eq__)]] = True
    return np.flatnonzero(in_node & checked[parent] & named(rank_trace, _CHECKS.match))


def checking_gradients(inputs: Inputs) -> Finding | None:
    """Threads that look for NaN in each gradient."""
    return lost_in_calls(
        inputs,
        "checking",
        {
            rank: inputs.judged_time(rank)
            & open_time(inputs.trace.rank(rank), checks_of(inputs.trace.rank(rank)))
            & host.spent["operators"]
            for rank, host in hosts_of(inputs).items()
        },
        "{who} checks gradients for NaN {lost}, with {name} in nodes of autograd.",
        ("checks_with", _IS_ANY),
        ADVICE,
    )


RULE = host_rule(
    topic="gradient_checks",
    question=MAIN_QUESTION,
    title="Checking gradients for NaN",
    label="NaN checks",
    cause="gradients that are checked for NaN",
    judge=checking_gradients,
    risk="A NaN is noticed later, and not where it arises.",
    needs="Access to where the check is switched on.",
    wrong_if="The program looks for a NaN now.",
)
