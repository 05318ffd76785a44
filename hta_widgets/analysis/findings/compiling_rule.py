"""The rule about torch.compile, where the host that computes compiles meanwhile."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, say
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.host_loss import host_rule, lost_in_part
from hta_widgets.analysis.findings.host_time import hosts_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.late_host_rules import RECOMPILES

_MOST = 0.5
"""Of the steps: what is compiled in so many is compiled anew."""


def compiling(inputs: Inputs) -> Finding | None:
    """Threads that compile code: once, before it runs, or again and again."""
    hosts = hosts_of(inputs)
    found = lost_in_part(hosts, "compiling")
    if found is None:
        return None
    in_steps, anew = NOTHING_SAID, False
    if inputs.judged > 1:
        steps = inputs.judged_rows
        steps = steps[(steps["rank"] == found.worst) & ~steps["partial"]]
        windows = steps[["start_ns", "end_ns"]].to_numpy(np.int64)
        count = int((hosts[found.worst].spent["compiling"].within_each(windows) > 0).sum())
        anew = count > max(_MOST * len(steps), 1)
        worst = (found.worst,)
        in_steps = say(
            " It does so in {count} of {all} steps.",
            count=Claim("steps_that_compile", count, "count", ranks=worst),
            all=Claim("steps", len(steps), "count", ranks=worst),
        )
    advice = (
        RECOMPILES
        if anew
        else "Run the program before it is recorded, as often as it compiles, to see what its steps take."
    )
    return found.finding(
        found.text(inputs, "{who} is in torch.compile {lost}.{in_steps}", in_steps=in_steps),
        advice,
        "operators",
        found.evidence(""),
        lost=inputs.when(found.ranks, lambda rank: hosts[rank].spent["compiling"]),
        explains=found.alone,
    )


RULE = host_rule(
    topic="host_compiling",
    title="Compiling code",
    label="torch.compile",
    cause="torch.compile",
    judge=compiling,
    risk="Code for any size may be slower than code for one.",
    wrong_if="Only the start of the program is recorded: later steps find what they need compiled.",
)
