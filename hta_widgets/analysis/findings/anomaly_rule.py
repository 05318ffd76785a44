"""The rule about gradients checked for NaN, node after node, as torch.autograd.detect_anomaly does."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from hta_widgets.analysis.core.autograd import is_node
from hta_widgets.analysis.findings.host_loss import calls_rule
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


RULE = calls_rule(
    "checking",
    lambda rank_trace, _: checks_of(rank_trace),
    "{who} checks gradients for NaN {lost}, longest with {name}, in nodes of autograd.",
    ADVICE,
    topic="gradient_checks",
    title="Checking gradients for NaN",
    label="NaN checks",
    cause="gradients that are checked for NaN",
    risk="A NaN is noticed later, and not where it arises.",
    needs="Access to where the check is switched on.",
    wrong_if="The program looks for a NaN now.",
)
