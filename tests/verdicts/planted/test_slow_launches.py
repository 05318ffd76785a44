"""A rank whose host takes longer for each launch: that is said; of one that is late otherwise it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.findings.story import story
from tests.analysis.kineto_file import job
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US
from tests.verdicts.planted.test_tiny_collectives import STEPS, Rank

KERNELS, TRANSFER = 100, 400 * US


def ranks(calls: tuple[int, int], pause: int, recorded: tuple[str, ...] = ("call", "work")) -> list[Rank]:
    """Two that meet after short kernels; calls: how long launches take. The second may pause, too."""
    both = [Rank(), Rank()]
    for number in range(1, STEPS + 1):
        begins = max(each.now for each in both)
        for each, call in zip(both, calls, strict=True):
            each.now = begins
            with each.step(number):
                each.silence(pause if each is both[1] else 0)
                for _ in range(KERNELS):
                    each.launch(3 * US, "add", call=call, recorded=recorded)
        meet = max(max(each.free.values()) for each in both) + 10 * US
        for each in both:
            each.sent += 1
            begin = max(each.free.values()) + 10 * US
            each.launch(
                meet + TRANSFER - begin, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 20, at=begin,
                **{
                    "Collective name": "allreduce", "Process Group Name": "0", "Group size": 2,
                    "Seq": each.sent, "dtype": "BFloat16", "In msg nelems": 4096, "Out msg nelems": 4096,
                },
            )  # fmt: skip
            each.synchronise()
    return both


def told(folder: Path, both: list[Rank]) -> dict[str, Any]:
    trace = job(folder, *(each.events for each in both))
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    row = frame.set_index("topic").loc["straggler"].to_dict()
    return {**row, "headline": story(trace, frame=frame).headline}


def test_each_launch_takes_longer(tmp_path: Path) -> None:
    row = told(tmp_path, ranks((4 * US, 30 * US), 0))
    assert row["text"].startswith("Rank 0 waits for rank 1")
    assert "a launch takes the host 30.0 µs or more in the median, on the others 4.00 µs" in row["text"]
    assert "The same calls take the host of rank 1 longer" in row["suggestion"]
    assert "the late rank 1 (its slow host)" in row["headline"]


@pytest.mark.parametrize(
    ("calls", "recorded"), [((4 * US, 5 * US), ("call", "work")), ((4 * US, 30 * US), ("work",))]
)
def test_nothing_of_launches(calls: tuple[int, int], recorded: tuple[str, ...], tmp_path: Path) -> None:
    """The host is late for something else, or its calls are not recorded."""
    row = told(tmp_path, ranks(calls, 2_000 * US, recorded))
    assert "a launch takes" not in row["text"] and "The same calls" not in row["suggestion"]
    assert "host" not in row["headline"]
