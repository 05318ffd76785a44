"""The lanes with which the timeline of a large job opens, and how others are added."""

from pathlib import Path

import numpy as np
import pytest

from hta_widgets import TimelineScrubber, Trace, analysis
from hta_widgets.widgets.first_lanes import first_lanes
from hta_widgets.widgets.freezing import settle
from tests.job.many_ranks import write_job
from tests.trace.helpers import slice_, write

pytestmark = pytest.mark.slow

PARTS = ["compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return Trace.open(write_job(tmp_path_factory.mktemp("many") / "job", 40, slow=23))


def shown(timeline: TimelineScrubber) -> list[int]:
    lanes = timeline.lanes
    return sorted(set(lanes.loc[lanes["shown"], "rank"]))


def test_it_opens_on_the_slow_rank_and_two_usual_ones(many: Trace) -> None:
    timeline = TimelineScrubber(many)
    settle([timeline])
    why = {one["rank"]: one["why"] for one in timeline.first_ranks}
    assert len(why) == 3
    assert why.pop(23).startswith("compute 1.46 ms")
    # the two whose split is nearest to the median of the others, by plain loops
    frame = analysis.temporal_breakdown(many).query("rank != 23")
    middle = {part: float(np.median(frame[part])) for part in PARTS}
    off = {
        row["rank"]: sum(abs(row[part] - middle[part]) for part in PARTS) for row in frame.to_dict("records")
    }
    assert sorted(why) == sorted(sorted(off, key=lambda rank: (off[rank], rank))[:2])
    assert all(text.startswith("usual") for text in why.values())
    assert shown(timeline) == sorted([23, *why])
    lanes = timeline.lanes
    assert lanes["rank"].nunique() == 40  # all can be shown
    assert lanes.loc[lanes["shown"], "rank"].drop_duplicates().tolist() == [23, *why]  # it stands above


def test_others_are_added_or_all_shown(many: Trace) -> None:
    timeline = TimelineScrubber(many)
    settle([timeline])
    first = shown(timeline)
    timeline.added_ranks = (3, 7)
    assert shown(timeline) == sorted({*first, 3, 7})
    timeline.every_rank = True
    assert shown(timeline) == list(range(40))
    timeline.every_rank = False
    timeline.ranks = (1, 2)  # what is selected comes before both
    assert shown(timeline) == [1, 2]
    timeline.ranks = ()
    assert shown(timeline) == sorted({*first, 3, 7})


def test_few_ranks_are_all_shown(tmp_path: Path) -> None:
    trace = Trace.open(write_job(tmp_path / "job", 32, slow=5))
    timeline = TimelineScrubber(trace)
    settle([timeline])
    assert timeline.first_ranks == []
    assert shown(timeline) == list(range(32))


def test_without_device_work_the_first_ranks_are_shown(tmp_path: Path) -> None:
    for rank in range(33):
        write(
            tmp_path / f"rank{rank}.json",
            [slice_("aten::add", "cpu_op", 0, 5)],
            distributedInfo={"rank": rank, "world_size": 33},
        )
    first = first_lanes(Trace.open(tmp_path))
    assert [one["rank"] for one in first] == list(range(8))
    assert {one["why"] for one in first} == {"one of the first"}
