"""What may not be said of a recording is said first, and then not said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import examples
from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.analysis.findings import judged_scope
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.findings.withheld import withheld
from hta_widgets.trace.model import Trace
from hta_widgets.trace.records.vetoes import Veto
from tests.support import shared_input
from tests.trace import test_impossible_records as records
from tests.verdicts.planted.test_one_rank import CASES

Change = Callable[[list[dict[str, Any]]], None]


def document(case: str, folder: Path) -> dict[str, Any]:
    return evidence(CASES[case].program().open(folder))


def forbidden(found: dict[str, Any]) -> set[str]:
    return {veto["forbids"] for veto in found["trust"]["vetoes"]}


@pytest.mark.parametrize("case", ["filtered", "capture"])
def test_a_recording_that_cannot_be_judged(case: str, tmp_path: Path) -> None:
    found = document(case, tmp_path)
    assert found["trust"]["level"] == "none" and "everything" in forbidden(found)
    assert found["findings"] == [] and found["verdict"]


@pytest.mark.parametrize("case", ["most device work lost", "replays lack kernels"])
def test_lost_work_forbids_savings_and_causes(case: str, tmp_path: Path) -> None:
    found = document(case, tmp_path)
    assert {"savings", "idle_causes"} <= forbidden(found) | (
        {"savings", "idle_causes"} if "everything" in forbidden(found) else set()
    )
    assert found["trust"]["level"] in ("none", "low")
    for finding in found["findings"]:
        assert finding["saving"]["method"] == "none" and finding["trust"] == "low" and finding["wrong_if"]
        assert "idle" not in finding["runs"][0]["argv"][2]


def test_a_sound_recording_forbids_nothing() -> None:
    found = evidence(examples.load("single_gpu_dataloader_stall"))
    assert found["trust"] == {"level": "high", "vetoes": [], "health": []}
    assert found["findings"][0]["saving"]["method"] != "none"


@pytest.mark.parametrize("change", [records.lost(0, 4), records.lost(10, 14)])
def test_a_step_that_is_left_out_is_named(change: Change, tmp_path: Path) -> None:
    trace = records.opened(tmp_path, records.changed(change))
    assert trace.vetoes()
    found = evidence(trace)
    assert forbidden(found) and found["trust"]["level"] != "high"
    assert any("step" in veto["because"] for veto in found["trust"]["vetoes"])


def test_a_veto_takes_the_savings_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that an analysis still tells."""
    trace = CASES["loader"].program().open(tmp_path)
    first, last = trace.extent_ns
    veto = Veto(("savings", "idle_causes"), 0, first, last, None, "orphans", "records are missing", "")

    before = evidence(trace)
    assert [each["id"] for each in before["findings"]] == ["data_stall"]
    monkeypatch.setitem(vars(trace.rank(0)), "vetoes", [veto])
    found = evidence(trace)
    assert {"savings", "idle_causes"} <= forbidden(found) and found["trust"]["level"] == "low"
    assert not any("mid" in each["saving"] for each in found["findings"]) and found["together"] is None
    assert "data_stall" not in {each["id"] for each in found["findings"]}  # a cause of idle time


@pytest.mark.parametrize("longest", [0, 1, 2])
def test_of_several_vetoes_the_one_of_most_time_is_told(longest: int, tmp_path: Path) -> None:
    """Before those of single steps, with how many more there are."""
    trace = CASES["loader"].program().open(tmp_path)
    end = trace.extent_ns[1]
    step = Veto(("steps",), 0, end, end + 900, 1, "step", "a step is in doubt", "")
    others = [
        Veto(
            ("steps",),
            0,
            end + 10 * at,
            end + 10 * at + (7 if at == longest else 3),
            None,
            "x",
            f"reason {at}",
            "",
        )
        for at in range(3)
    ]
    vars(trace.rank(0))["vetoes"] = [step, *others]
    because = [veto["because"] for veto in evidence(trace)["trust"]["vetoes"] if veto["forbids"] == "steps"]
    assert because == [f"reason {longest}; left out; 3 more"]


@pytest.mark.parametrize(
    "name",
    [
        "a01_zero_second_half", "a02_overflow_dur", "a05_unfinished_step_zero", "a07_device_clock_ahead",
        "a09_first_steps_kernels_dropped", "a11_some_kernels_ts0", "d01_interleaved", "h03_overflow_mild",
        "h07_first_120_of_1000_lost", "j08_one_step_of_10_lost", "b02_xpu_kernels_missing_copies_only",
    ],
)  # fmt: skip
def test_damaged_recordings_are_not_trusted_as_they_are(name: str) -> None:
    trace = Trace.open(shared_input(f"cases/{name}"))
    found = evidence(trace)
    assert found["trust"]["level"] != "high"
    assert bool(trace.vetoes()) == bool(forbidden(found) - {"everything", "ranks"})


@pytest.mark.parametrize(("touched", "matters"), [(0.1, True), (0.001, False), (0.0, False)])
def test_what_is_withheld_is_the_same_everywhere(touched: float, matters: bool, tmp_path: Path) -> None:
    """The findings, the document, the screen and the line of the job: a veto that hardly touches is none."""
    trace = CASES["loader"].program().open(tmp_path)
    first, last = trace.rank(0).windows(judged_scope(trace))[[0, -1], [0, 1]].tolist()
    end = first + round(touched * (last - first))
    veto = Veto(("savings",), 0, first, end, None, "orphans", "records are missing", "record again")
    vars(trace.rank(0))["vetoes"] = [veto]
    assert (withheld(trace, judged_scope(trace), "savings") is not None) is matters
    assert ("savings" in forbidden(evidence(trace))) is matters
    assert (story(trace).trust == "Limited: savings are withheld: records are missing.") is matters
    assert (trace.trust.level == "limited") is matters
