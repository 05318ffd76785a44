"""A host that fills the launch queue: its long calls are told as time to spare, which saves nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hta_widgets.analysis import what_if
from hta_widgets.analysis.findings import OPEN, overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.launches.stream_queues import SHORTEST_LIMIT
from hta_widgets.analysis.replay import edits
from hta_widgets.trace import Trace
from tests.support import shared_trace
from tests.verdicts.plain_reader import Rank, length, overlap, union
from tests.verdicts.planted.host_program import US, Program
from tests.verdicts.recordings import recording


def ahead(queue: int, recorded: tuple[str, ...] = ("call", "work")) -> Program:
    """The host launches three times as fast as the device works; at most so many launches wait."""
    program = Program(queue=queue)
    for number in range(1, 7):
        with program.step(number):
            for _ in range(100):
                program.operator("aten::mm", 20 * US)
                program.launch(100 * US, recorded=recorded)
    program.synchronise()
    return program


def waits_for_a_place(rank: Rank, limit: int) -> list[tuple[int, int]]:
    """When so many launches wait: from the begin of a call to the start of its first work, one by one."""
    first: dict[int, tuple[int, int]] = {}
    for work in rank.work:  # in order of time
        call = rank.launch(work)
        if call is not None and call.correlation is not None:
            first.setdefault(call.correlation, (call.start, max(work.start, call.start)))
    changes = sorted(change for start, end in first.values() for change in ((start, 1), (end, -1)))
    waiting, since, full = 0, 0, []
    for time, change in changes:
        if waiting >= limit:
            full.append((since, time))
        waiting, since = waiting + change, time
    return union(full)


def test_a_full_queue_is_time_to_spare(tmp_path: Path):
    trace = ahead(150).open(tmp_path)
    frame = overview(trace)
    row = frame.set_index("topic").loc["queue_full"]
    assert (row["section"], row["severity"], row["saving_ns"]) == ("not now", "note", 0)
    assert "launches ahead of the device" in row["text"] and "the device decides the time" in row["saving"]
    saved = what_if(trace, edits.launches(0)).query("iteration.isna()").iloc[0]
    assert saved["before_ns"] - saved["after_ns"] < 0.005 * saved["before_ns"]
    assert "queue" not in story(trace, frame=frame).headline


def test_the_shortest_queue_that_can_be_full_is_told(tmp_path: Path):
    assert "queue_full" in set(overview(ahead(SHORTEST_LIMIT).open(tmp_path))["topic"])


def test_a_queue_that_is_only_long_is_not_full(tmp_path: Path):
    assert "queue_full" not in set(overview(ahead(0).open(tmp_path))["topic"])


def test_without_launches_it_is_not_known(tmp_path: Path):
    frame = overview(ahead(150, recorded=("work",)).open(tmp_path))
    assert "queue_full" not in set(frame["topic"])
    assert frame.loc[frame["severity"] == OPEN, "text"].str.contains("how far the host is ahead").any()


@pytest.mark.parametrize(("name", "share"), [("hta/ns_resolution_trace", 60.4), ("hta/trace_diff/test", 0)])
def test_the_wait_of_a_recording_is_counted_from_its_plain_events(name: str, share: float):
    (rank,) = recording(name)
    frame = overview(Trace.open(shared_trace(name))).set_index("topic")
    full = waits_for_a_place(rank, 1022)
    windows = rank.device_windows()[:-1] or rank.device_windows()  # when the last step ends is not recorded
    waited = sum(length(overlap(full, window)) for window in windows)
    assert 100 * waited / length(windows) == pytest.approx(share, abs=0.1)
    assert ("queue_full" in frame.index) == (share > 3)
    if share:
        assert np.isclose(frame.loc["queue_full", "cost_ns"], waited, rtol=1e-3)
        assert frame.loc["queue_full", "share_pct"] == pytest.approx(share, abs=0.1)
