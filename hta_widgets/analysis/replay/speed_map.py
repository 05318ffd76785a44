"""Does the host or the device decide how long a recording takes, and for how much faster a device still?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.marginal import saved, time_of
from hta_widgets.analysis.replay.what_if import answered
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

SPEEDS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
"""How many times as fast: about a factor of the root of 2 between neighbours."""
_COLUMNS = {
    "rank": "int64",
    "host_factor": "float64",
    "device_factor": "float64",
    "before_ns": "int64",
    "after_ns": "int64",
}


def speed_map(
    trace: Trace,
    scope: Scope | None = None,
    beside: Edit | Sequence[Edit] = (),
    speeds: Sequence[float] = SPEEDS,
) -> pd.DataFrame:
    """How long would a job take on a faster host, on a faster device, and on both? Where is it bound?

    Where only the device's speed changes the time, the device decides it; where only the host's, the host.

    Args:
        trace: the job.
        scope: ranks and iterations, as in `what_if`.
        beside: further changes, made in all points of the map, from the module `edits`.
        speeds: of the host and of the device, in times of the recorded one.

    Returns:
        For each rank whose replay can be trusted one row per pair of speeds. Columns: rank int64; host_factor
        float64, how many times as fast the host is, in calls and between them; device_factor float64, how
        many times as fast compute kernels run, while copies and communication take as long as they did;
        before_ns int64, the recorded time of the whole recording, or of the iterations of the scope together;
        after_ns int64, what it would be (ns, the estimate of `what_if`).

    Raises:
        MissingDataError: no selected rank has device work, or the replay of none can be trusted.
        ValueError: a speed is not above 0.
    """
    scope = scope or Scope()
    made = [beside] if isinstance(beside, Edit) else list(beside)
    if not all(0 < speed < math.inf for speed in speeds):
        raise ValueError(f"speeds must be numbers above 0, not {list(speeds)}")
    rows = []
    for rank, recorded in answered(trace, (), scope).groupby("rank", sort=False):
        own, before = replace(scope, ranks=(int(str(rank)),)), time_of(recorded, "before_ns")
        for host in speeds:
            for device in speeds:
                change = [*made, edits.host(1 / host), edits.kernels(device)]
                rows.append((rank, host, device, before, before - saved(trace, change, own)))
    return pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)
