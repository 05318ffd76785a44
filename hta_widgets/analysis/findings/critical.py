"""How much of a loss lies off the critical path: the device then waits for the host anyway."""

from __future__ import annotations

from typing import Literal

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.findings.finding import Severity, severity_of
from hta_widgets.analysis.findings.inputs import Inputs

_LITTLE = 0.1


def off_critical_path(
    inputs: Inputs, ranks: list[int], part: Literal["exposed_communication", "exposed_memory"]
) -> float:
    """The share (0 to 1) of this part of the busy time, over these ranks, that the host hides."""
    hidden = whole = 0
    for rank in ranks:
        of_rank, all_of_it = inputs.of(rank, _hidden, part)
        hidden, whole = hidden + of_rank, whole + all_of_it
    return hidden / whole if whole else 0.0


def _hidden(inputs: Inputs, rank: int, part: str) -> tuple[int, int]:
    """How much of a part of the busy time the host of a rank hides, and how long all of it is, ns."""
    rank_trace = inputs.trace.rank(rank)
    windows = rank_trace.windows(inputs.scope)
    lost = getattr(busy(rank_trace, inputs.scope), part)
    return (lost & inputs.hidden(rank)).within(windows), lost.within(windows)


def severity_on_path(share_pct: float, off_path: float) -> Severity | None:
    """The severity of losing a share of the time of which a part costs nothing now; a note if all of it."""
    on_path = severity_of(share_pct * (1 - off_path))
    return on_path or ("note" if severity_of(share_pct) else None)


def on_critical_path(off_path: float, of: str, ranks: list[int]) -> Text:
    """A sentence about how much of a loss matters now; nothing if nearly all of it does.

    Args:
        of: the measure that the loss is.
    """
    if off_path < _LITTLE:
        return NOTHING_SAID
    much = Claim("on_critical_path", 100.0 * (1 - off_path), "%", of, tuple(ranks))
    return say(
        " Of this time, {much} is on the critical path: after the rest, the device waits for the host "
        "anyway.",
        much=much,
    )
