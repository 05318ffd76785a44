"""What a finding about idle time shows, and whether the slow reader of claims contradicts a false one.

That what is said of each planted program holds: `test_one_rank.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hta_widgets.analysis import overview
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.idle_time import Where
from hta_widgets.analysis.findings.merging import merged
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.saving import Judged
from tests.claims.checking import faults_of
from tests.claims.job import Job, overlap
from tests.claims.measures.idle import LOADING, idle_of, windows_of
from tests.verdicts.planted.test_one_rank import CASES

DATA_STALL = next(case for case in CASES.values() if case.first == "data_stall")


def test_a_finding_shows_the_gap_that_it_is_about(tmp_path: Path) -> None:
    """The span is the longest that is idle for its reason, and the loader is open in it."""
    trace = DATA_STALL.program().open(tmp_path)
    row = overview(trace).iloc[0]
    assert row["topic"] == "data_stall"
    rank, span = Job(trace).ranks[0], (int(row["start_ns"]), int(row["end_ns"]))
    idle = windows_of(idle_of(rank, "data_stall"))
    assert overlap(idle, span) == [span]
    assert span[1] - span[0] == max(end - start for start, end in idle)
    event = rank.by_number[int(row["event_id"])]
    assert LOADING.search(event.name) and overlap([span], event.window)


def test_zeroing_gradients_is_a_part_of_a_late_host(tmp_path: Path) -> None:
    frame = overview(CASES["zero_grad"].program().open(tmp_path)).set_index("topic")
    assert {frame.loc["zero_grad_fills", "part_of"], frame.loc["idle_host", "part_of"]} != {""}


@pytest.mark.parametrize(
    ("measure", "false"),
    [("idle_by_cause", lambda value: 1.2 * value), ("longest_idle", lambda value: value // 2)],
)
def test_a_false_claim_is_found(measure: str, false: Callable[[float], float], tmp_path: Path) -> None:
    trace = DATA_STALL.program().open(tmp_path)
    frame = overview(trace).head(1)
    claims = json.loads(frame["claims"].iloc[0])
    for claim in claims:
        if claim["measure"] == measure:
            claim["value"] = false(claim["value"])
    wrong = faults_of(trace, frame.assign(claims=json.dumps(claims)))
    assert measure in {fault.measure for fault in wrong}


def test_of_two_findings_about_the_same_time_one_is_the_part() -> None:
    time = Intervals.union([0], [10])
    found = [
        Judged(Rule(topic, "", "", lambda inputs: None), Finding(10, 5.0, "", "", "", lost={0: time}))
        for topic in ("idle_host", "allocator_calls")
    ]
    assert {each.rule.topic: each.part_of for each in merged(found)} == {
        "allocator_calls": "",
        "idle_host": "allocator_calls",
    }


@pytest.mark.parametrize(
    ("gaps_us", "long", "once"),
    [
        ([1000, 500, 500], True, True),  # no less than half
        ([1000, 500, 501], False, False),
        ([999, 1], False, True),  # a long gap has a millisecond
        ([1000, 1000, 1000], True, False),
    ],
)
def test_half_of_a_time_is_most_of_it(gaps_us: list[int], long: bool, once: bool) -> None:
    ends = np.cumsum([2000 + gap for gap in gaps_us]) * 1000
    idle = Intervals(ends - np.array(gaps_us) * 1000, ends)
    where = Where("host_busy", 0, idle, [], 0, (0, 1000 * max(gaps_us)), None)
    assert (where.long, where.once) == (long, once)
    half = -(-sum(gaps_us) * 1000 // 2)
    assert [replace(where, recorded_ns=ns).recorded for ns in (half, half - 1)] == [True, False]
