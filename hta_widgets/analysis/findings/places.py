"""Where in time what a finding loses is lost: its longest stretches, to be looked at one after the other."""

from __future__ import annotations

import json
from typing import Final

import numpy as np

from hta_widgets.analysis.findings.finding import Finding

_MOST: Final = 12


def places(finding: Finding) -> str:
    """A JSON list of [rank, start_ns, end_ns], the longest first; "" where that is not known.

    They are on the rank in which it shows, or else on the one that loses most, for a reader compares places
    of one rank.
    """
    lost, shown = finding.lost, finding.evidence.event_rank
    if not any(time.length for time in lost.values()):
        return ""
    rank = max(lost, key=lambda one: lost[one].length)
    if shown is not None and shown in lost and lost[shown].length:
        rank = shown
    time = lost[rank]
    lengths = time.end - time.start
    least = np.partition(lengths, -_MOST)[-_MOST] if len(lengths) > _MOST else 0
    among = np.flatnonzero(lengths >= least)
    longest = among[np.argsort(-lengths[among], kind="stable")[:_MOST]]
    return json.dumps([[rank, int(time.start[at]), int(time.end[at])] for at in longest.tolist()])
