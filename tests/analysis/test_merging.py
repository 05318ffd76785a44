"""Which findings are one loss: by the time that they lose, what they save, and how general they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hta_widgets.analysis.core.claim import NOTHING_SAID
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.merging import merged
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.saving import Judged, Saving


def loss(
    topic: str, begin: int, end: int, saves: int | None = None, general: bool = False, rank: int = 0
) -> Judged:
    """What is lost on a rank from begin to end; `saves`: None if that is unknown."""
    lost = {rank: Intervals(np.array([begin]), np.array([end]))} if end > begin else {}
    rule = Rule(topic, "?", topic, lambda _: None, general=general)
    finding = Finding(end - begin, 10.0, NOTHING_SAID, "", "", lost=lost)
    saving = Saving() if saves is None else Saving(section="saves", ns=saves)
    return Judged(rule, finding, saving=saving)


def parts(*losses: Judged) -> dict[str, str]:
    return {each.rule.topic: each.part_of for each in merged(losses) if each.part_of}


@pytest.mark.parametrize(
    ("begin", "end", "saves", "expected"),
    [
        (0, 99, 100, {"kind": "cause"}),
        (0, 90, 80, {"kind": "cause"}),
        (0, 89, 100, {"cause": "kind"}),  # the rest of the time has another cause
        (0, 99, 79, {"cause": "kind"}),  # something else must be done as well
        (60, 140, 100, {"cause": "kind"}),  # half of it lies within
        (61, 141, 100, {}),
        (100, 200, 100, {}),
    ],
)
def test_the_cause_of_nearly_all_of_a_kind_of_time_is_the_finding(
    begin: int, end: int, saves: int, expected: dict[str, str]
) -> None:
    kind = loss("kind", 0, 100, 100, general=True)
    assert parts(kind, loss("cause", begin, end, saves)) == expected


def test_of_two_causes_the_larger_is_the_whole() -> None:
    assert parts(loss("one", 0, 100, 100), loss("other", 0, 95, 95)) == {"other": "one"}
    general = loss("one", 0, 100, 100, general=True), loss("other", 0, 95, 95, general=True)
    assert parts(*general) == {"other": "one"}


def test_what_saves_something_is_no_part_of_what_may_save_nothing() -> None:
    whole, half, less = loss("whole", 0, 100), loss("half", 0, 50, 50), loss("less", 0, 49, 49)
    assert parts(whole, half) == {"whole": "half"}
    assert parts(whole, less) == {}
    assert parts(whole, loss("half", 0, 50)) == {"half": "whole"}
    largest = loss("second", 40, 80, 40)
    assert parts(whole, loss("first", 0, 30, 30), largest) == {"whole": "second"}


@pytest.mark.parametrize(
    ("end", "saves", "waiting_saves", "expected"),
    [
        (125, 25, 100, {"cause": "waiting"}),
        (126, 26, 100, {}),  # more than a fifth of it delays nobody
        (125, None, None, {"cause": "waiting"}),
        (125, 25, None, {}),  # it is known to save something, and the waiting is not
    ],
)
def test_what_makes_ranks_late_in_turn_is_a_part_of_the_waiting_for_them(
    end: int, saves: int | None, waiting_saves: int | None, expected: dict[str, str]
) -> None:
    """Another rank waits, later, for what a rank does up to here."""
    waiting = loss("waiting", 200, 300, waiting_saves, rank=1)
    late = replace(waiting.finding, delays={0: Intervals(np.array([0]), np.array([100]))})
    assert parts(loss("cause", 0, end, saves), replace(waiting, finding=late)) == expected
    assert parts(replace(waiting, finding=late), loss("cause", 0, end, saves)) == expected


def test_parts_have_no_parts() -> None:
    assert parts(loss("c", 0, 25, 1), loss("a", 0, 100, 1), loss("b", 0, 50, 1)) == {"b": "a", "c": "a"}


def test_a_loss_of_unknown_time_or_on_another_rank_is_no_part() -> None:
    assert parts(loss("whole", 0, 100, 1), loss("unknown", 0, 0, 1)) == {}
    assert parts(loss("whole", 0, 100, 1), loss("elsewhere", 0, 50, 1, rank=1)) == {}
