"""How far a recording can be trusted, in one line: full, with notes, limited."""

from pathlib import Path

import pytest

from hta_widgets.trace import Trace
from tests.support import shared_input
from tests.trace.test_impossible_records import kernels_of, opened, program


def test_a_recording_without_faults_is_trusted_fully(tmp_path: Path) -> None:
    trust = opened(tmp_path, program(fraction=0.3)).trust
    assert (trust.level, trust.notes) == ("full", ())


def test_an_estimated_record_is_a_note_with_its_remedy(tmp_path: Path) -> None:
    events = program(fraction=0.3)
    kernels_of(events)[5]["dur"] = 2_300_000
    trust = opened(tmp_path, events).trust
    assert (trust.level, trust.text) == ("notes", "Full, with 1 note.")
    assert "gemm" in trust.notes[0] and "CUPTI" in trust.notes[0]


def test_one_lost_step_of_several_limits_nothing(tmp_path: Path) -> None:
    events = program(fraction=0.3)
    lost = [id(event) for event in kernels_of(events)[4:8]]
    trust = opened(tmp_path, [event for event in events if id(event) not in lost]).trust
    assert trust.level == "notes"
    assert any("left out" in note and "1: the work of 4 launches" in note for note in trust.notes)


def test_a_clock_ahead_withholds_causes_and_says_why(tmp_path: Path) -> None:
    events = program(fraction=0.3)
    for event in kernels_of(events):
        event["ts"] -= 300
    trust = opened(tmp_path, events).trust
    assert trust.level == "limited"
    assert trust.text.startswith(
        "Limited: causes of idle time are withheld: the device's clock runs at least"
    )
    assert trust.as_dict() == {"level": "limited", "text": trust.text, "notes": list(trust.notes)}


def test_all_work_lost_withholds_all_about_work(tmp_path: Path) -> None:
    events = [event for event in program() if event["cat"] != "kernel"]
    trust = opened(tmp_path, events).trust
    assert trust.level == "limited"
    assert "savings" in trust.text and "20 launches recorded, but no device events" in trust.text


@pytest.mark.parametrize(
    ("name", "level", "text"),
    [
        ("cases/a03_overlap_27ns", "full", "Full: no record is missing or wrong."),
        ("cases/a09_first_steps_kernels_dropped", "notes", "Full, with 2 notes."),
        ("cases/b02_xpu_kernels_missing_copies_only", "limited", "conclusions about time are withheld"),
        ("cases/d01_interleaved", "limited", "processes 100 and 101 wrote this file"),
        ("recordings/transformer_gh200", "full", "Full: no record is missing or wrong."),
        ("recordings/trace0_2080ti", "limited", "3 launches recorded, but no device events"),
    ],
)
def test_real_and_written_recordings(name: str, level: str, text: str) -> None:
    trust = Trace.open(shared_input(name)).trust
    assert trust.level == level and text in trust.text


@pytest.mark.parametrize("name", ["traces/hta/trace_filter", "cases/d01_interleaved"])
def test_a_count_stands_before_what_is_counted(name: str) -> None:
    notes = Trace.open(shared_input(name)).trust.notes
    assert any(note.startswith(("Nothing was opened of ", "Events of processes ")) for note in notes)


def test_many_numbers_are_cut_and_counted() -> None:
    notes = " ".join(Trace.open(shared_input("traces/hta/mtia_inference_trace")).trust.notes)
    assert "9 iterations most of whose device work runs outside their time: 2, 5, " in notes
    assert " and 1 more." in notes
