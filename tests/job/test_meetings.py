"""Which sends and receives are one transfer, where the recording does not name partners."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hta_widgets.analysis.job.meetings import paired

SENT = np.array([[100, 250, 370], [1_000, 1_180, 1_270]])  # ends in two steps, ns
TRANSFER = 10
CLOCKS = np.array([[5_000], [7_000]])  # the receiver is ahead by, in each step


def sides(rank: int, kind: str, ends: np.ndarray) -> pd.DataFrame:
    steps = np.repeat(np.arange(len(ends)), ends.shape[1])
    return pd.DataFrame({
        "rank": rank, "kind": kind, "lane": 7, "process_group": "pp", "group_ranks": "[0, 1, 2]",
        "step": steps, "sender": -1, "receiver": -1, "end_ns": ends.ravel(), "dur_ns": TRANSFER,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("late", "met"),
    [
        ([0, 0, 0], True),
        ([0, TRANSFER, -TRANSFER], True),
        ([0, 2 * TRANSFER, -2 * TRANSFER], False),  # what a rank between them passes on
    ],
)
def test_both_sides_leave_a_transfer_within_its_time(late: list[int], met: bool) -> None:
    ops = pd.concat([sides(0, "send", SENT), sides(1, "recv", SENT + CLOCKS + late)], ignore_index=True)
    pairs, doubt = paired(ops)
    assert doubt == 0
    assert [(pair.sender, pair.receiver) for pair in pairs] == [(0, 1)] * met
    for pair in pairs:
        assert (pair.sends.tolist(), pair.receives.tolist()) == ([0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11])


@pytest.mark.parametrize(("slow", "met"), [(2 * TRANSFER, True), (2 * TRANSFER - 1, False)])
@pytest.mark.parametrize("way", [0, 1])
def test_what_a_rank_between_them_passes_on_both_ways_is_no_transfer(way: int, slow: int, met: bool) -> None:
    """Each way takes as long as a transfer on the way; one way's own transfers may be slower."""
    back = SENT + 5_000
    ways = [
        [sides(0, "send", SENT), sides(1, "recv", SENT + CLOCKS + TRANSFER)],
        [sides(1, "send", back + CLOCKS), sides(0, "recv", back + TRANSFER)],
    ]
    ways[way] = [side.assign(dur_ns=slow) for side in ways[way]]
    pairs, doubt = paired(pd.concat([*ways[0], *ways[1]], ignore_index=True))
    assert doubt == 0
    assert {(pair.sender, pair.receiver) for pair in pairs} == ({(0, 1), (1, 0)} if met else set())
