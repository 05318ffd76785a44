"""Steps and the named stretches between them add up to the recording."""

from pathlib import Path

import pytest

from hta_widgets import Trace
from hta_widgets.analysis.device_time.stretches import stretches
from hta_widgets.trace.model import IterationClock
from tests.analysis.jobs import UNLIKE_JOBS, opened
from tests.support import crossed
from tests.trace.helpers import rank_of, slice_, write

# Beside those that are unlike: what happens between steps, and where they end.
CASES = [
    "cases/i18_sync_after_step",
    "cases/a07_device_clock_ahead",
    "cases/l01_graph_burst_corr_kept",
    "cases/serving/decode_every_15ms.json.gz",
    "cases/h12_restart_in_one_file",
]


@pytest.mark.parametrize(
    ("name", "clock"), crossed(dict.fromkeys([*UNLIKE_JOBS, *CASES]), ("auto", "host", "device"))
)
def test_recordings_add_up(name: str, clock: IterationClock) -> None:
    """On every rank, by either clock: no gap, no overlap, and the sum is the recording."""
    timed = opened(name).timed_by(clock)
    frame = stretches(timed)
    assert (frame["dur_ns"] > 0).all()
    for rank in timed.ranks:
        own = frame[frame["rank"] == rank]
        first, last = timed.rank(rank).extent
        assert own["dur_ns"].sum() == last - first
        assert own["start_ns"].tolist()[1:] == own["end_ns"].tolist()[:-1]
        counted = own["iteration"].dropna()
        assert counted.is_unique
        assert set(counted) <= set(timed.rank(rank).iterations["iteration"])


@pytest.mark.parametrize(
    ("exits", "last"),
    [
        (False, [("open", 91), ("tail", 209)]),
        (True, [("step", 300), ("after", 100)]),  # the profiler still recorded when it ended
    ],
)
def test_each_stretch_has_its_name(exits: bool, last: list[tuple[str, int]], tmp_path: Path) -> None:
    events = [slice_("import", "cpu_op", 0, 10)]
    for begin, number in ((20, 2), (120, 3), (1_000, 12), (1_100, 13)):
        dur = 300 if number == 13 else 100
        events.append(slice_(f"ProfilerStep#{number}", "user_annotation", begin, dur))
        events.append(slice_("aten::mm", "cpu_op", begin + 1, 90))
    events += [slice_("exit", "cpu_op", 1_450, 50)] * exits
    trace = Trace.open(write(tmp_path / "trace.json", events), cache=False)
    frame = stretches(trace)
    assert list(zip(frame["stretch"], frame["dur_ns"] // 1_000, strict=True)) == [
        ("before", 20),
        ("step", 100),
        ("step", 100),
        ("between", 780),
        ("step", 100),
        *last,
    ]


def test_without_marks_the_whole_is_guessed(tmp_path: Path) -> None:
    rank = rank_of(tmp_path, [slice_("aten::mm", "cpu_op", 5, 10), slice_("aten::mm", "cpu_op", 20, 10)])
    frame = stretches(Trace.open(tmp_path / "trace.json", cache=False))
    assert frame["stretch"].tolist() == ["guessed"] and frame["dur_ns"].sum() == 25_000
    assert rank.iterations["known"].tolist() == ["guessed"]
