"""Clocks of hosts that are apart: measured by collectives, applied to the axis, and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets import analysis
from hta_widgets.trace import Trace
from hta_widgets.trace.clock_offsets import measured
from tests.support import shared_input
from tests.trace.helpers import kernel, write

BASE = 1_780_000_000_000_000_000


def lay(
    folder: Path, ahead_us: list[float], numbered: bool = True, drift: float = 0.0, seconds: float = 0.01
) -> Trace:
    """Ranks that leave 20 all-reduces together, by clocks that are so far ahead."""
    ranks = list(range(len(ahead_us)))
    for rank, ahead in enumerate(ahead_us):
        found = []
        for number in range(20):
            at = 1e6 + number * seconds * 1e6 / 20
            start = at + ahead + (drift * (at - 1e6) if rank else 0) - 50 * rank
            event = kernel("ncclDevKernel_AllReduce", start, 100 + 50 * rank, number + 1)
            args = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": len(ranks)}
            args |= {"Process Group Ranks": str(ranks)} | ({"Seq": number} if numbered else {})
            found.append({**event, "args": {**event["args"], **args}})
        info = {"rank": rank, "world_size": len(ranks)}
        write(folder / f"rank{rank}.json", found, distributedInfo=info, baseTimeNanoseconds=BASE)
    return Trace.open(folder, cache=False)


def test_the_input_of_hosts_5_s_apart() -> None:
    trace = Trace.open(shared_input("cases/j01_host_clock_5s_off"), cache=False)
    assert trace.summary["duration_ns"] == 4_000_000
    detail = trace.health.set_index("check").loc["clock", "detail"]
    assert "rank 1 is 5.00 s ahead of rank 0's" in detail


@pytest.mark.parametrize("ahead", [5e6, -3e5, 700.0, 86_400e6 * 3])
def test_offsets_are_applied_and_said(tmp_path: Path, ahead: float) -> None:
    right, wrong = lay(tmp_path / "right", [0.0, 0.0]), lay(tmp_path / "wrong", [0.0, ahead])
    assert (right.clock.method, wrong.clock.method) == ("base", "measured")
    assert wrong.extent_ns == right.extent_ns
    for rank in (0, 1):
        assert (wrong.rank(rank).start == right.rank(rank).start).all()
    waits = [analysis.stragglers(trace)["blamed_ns"].sum() for trace in (right, wrong)]
    assert waits[0] == waits[1]
    assert ("behind" if ahead < 0 else "ahead of") in wrong.clock.detail


def test_ranks_that_meet_only_through_others_are_set_as_well(tmp_path: Path) -> None:
    meetings = {rank: {} for rank in range(3)}
    for number in range(5):
        meetings[0][f"a{number}"] = number * 1000
        meetings[1][f"a{number}"] = number * 1000 + 10**9
        meetings[1][f"b{number}"] = number * 1000 + 10**9
        meetings[2][f"b{number}"] = number * 1000 - 10**9
    found = measured(meetings)
    assert found is not None and dict(found.ahead_ns) == {0: 0, 1: 10**9, 2: -(10**9)}


@pytest.mark.parametrize("ahead", [0.0, 60.0])
def test_clocks_within_what_networks_allow_stay_as_stated(tmp_path: Path, ahead: float) -> None:
    assert lay(tmp_path, [0.0, ahead]).clock.method == "base"


def test_without_numbers_nothing_is_measured(tmp_path: Path) -> None:
    trace = lay(tmp_path, [0.0, 5e6], numbered=False)
    assert trace.clock.method == "base" and trace.extent_ns[1] > 5_000_000_000


def test_scattered_meetings_prove_nothing() -> None:
    one = {number: number * 1000 for number in range(6)}
    other = {number: number * 1000 + (1 if number % 2 else -1) * 10**6 for number in range(6)}
    assert measured({0: one, 1: other}) is None
    assert measured({0: dict(list(one.items())[:2]), 1: {0: 10**9, 1: 10**9}}) is None


def test_a_drift_is_said_per_minute(tmp_path: Path) -> None:
    trace = lay(tmp_path, [0.0, 5e6], drift=1e-4, seconds=30)
    assert "drifting by 6.00 ms per minute" in trace.clock.detail
    assert "drifting" not in lay(tmp_path / "still", [0.0, 5e6], seconds=30).clock.detail
