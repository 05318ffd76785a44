"""What a prediction and a measurement say of each other: every outcome, and pairs of simulated recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.evidence.check import CONFIRMED, _outcome
from hta_widgets.cli.opening import kept_open
from tests.evidence.command import Answer, ask
from tests.evidence.jobs import JOBS, gpt2, loop
from tests.support import EVERY_CASE
from tests.verdicts.planted.host_program import MS

STALLED = "a loader that is far too slow"
MENDED = [name for name, job in JOBS.items() if job.mended]
# One of each kind of cause; the others are like one of these, and of more ranks or events.
UNLIKE = [
    "a loader that is a little late",
    "the host computes between steps",
    "batches come from pageable memory",
    "the server schedules between steps",
    "the host of one rank is late",
    "all-reduces over a slow link",
]


@pytest.mark.parametrize(
    ("predicted", "measured", "outcome"),
    [
        ((10, 12), (9, 10.5), "as predicted"),
        ((10, 12), (11.9, 14), "as predicted"),
        ((10, 12), (12.1, 14), "more than predicted"),
        ((10, 12), (5, 9.9), "less than predicted"),
        ((10, 12), (-1, 1), "no change"),
        ((10, 12), (-5, -1), "slower"),
        ((10, 12), None, "noise unknown"),
        ("bound", (2, 3), "within the bound"),
        ("bound", (25, 30), "more than predicted"),
        ("bound", (-1, 2), "no change"),
        ("none", (2, 3), "faster, nothing was predicted"),
        ("none", (-3, -2), "slower"),
    ],
)
def test_an_outcome(predicted: Any, measured: Any, outcome: str) -> None:
    known: dict[str, Any] = {"method": "none"}
    if predicted == "bound":
        known = {"method": "bound", "low": 0.0, "mid": 20.0, "high": 20.0}
    elif predicted != "none":
        known = {"method": "replay", "low": predicted[0], "mid": 11, "high": predicted[1]}
    low, high = measured or (None, None)
    assert _outcome(known, {"low": low, "high": high}) == outcome
    assert (outcome in CONFIRMED) == outcome.startswith(("as", "more", "within", "faster"))


def checked(folder: Path, before: Any, after: Any, finding: str = "") -> Answer:
    """The command about two recordings, on the first finding unless another is named."""
    paths = [folder / "before", folder / "after"]
    for path, write in zip(paths, (before, after), strict=True):
        path.mkdir()
        write(path)
    with kept_open(2):
        finding = finding or ask("diagnose", paths[0], "--json", "-q").json["findings"][0]["id"]
        return ask("check", *paths, "--finding", finding, "--json", "-q")


@pytest.mark.parametrize("name", MENDED if EVERY_CASE else UNLIKE)
def test_a_cause_that_is_taken_away(name: str, tmp_path: Path) -> None:
    """The step is then no longer than predicted, and the finding gone or smaller."""
    job = JOBS[name]
    done = checked(tmp_path, job.write, job.mended)
    found = done.json
    assert done.code == 0 and found["outcome"] in CONFIRMED, found["sentence"]
    after = found["cost_pct"]["after"]
    assert after is None or after < found["cost_pct"]["before"] / 2
    assert found["sentence"].startswith("The step takes ") and "less time" in found["sentence"]


@pytest.mark.parametrize("name", ["a loader that is a little late", "the last of two ranks is late"])
def test_a_change_that_changes_nothing(name: str, tmp_path: Path) -> None:
    done = checked(tmp_path, JOBS[name].write, JOBS[name].write)
    assert (done.code, done.json["outcome"]) == (1, "no change")
    assert done.json["sentence"].startswith("The step takes as long as before")
    assert '"mid": 0.0' in done.out


def test_half_of_a_cause_is_less_than_predicted(tmp_path: Path) -> None:
    half = gpt2(strategy="single", steps=4, layers=4, dataloader_stall_ns=7 * MS, seed=7)
    done = checked(tmp_path, JOBS[STALLED].write, half)
    assert (done.code, done.json["outcome"]) == (1, "less than predicted")
    assert 0 < done.json["cost_pct"]["after"] < done.json["cost_pct"]["before"]


def test_a_cause_that_comes_back_is_no_finding_of_the_first_recording(tmp_path: Path) -> None:
    done = checked(tmp_path, JOBS[STALLED].mended, JOBS[STALLED].write, "data_stall")
    assert (done.code, done.out) == (2, "") and "no finding 'data_stall'" in done.err


def test_one_step_tells_no_noise(tmp_path: Path) -> None:
    one = gpt2(strategy="single", steps=1, layers=4)
    done = checked(tmp_path, JOBS[STALLED].write, one)
    assert (done.code, done.json["outcome"]) == (1, "noise unknown")


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("the server schedules between steps", "serving"),
        ("operators were filtered out of the file", "after: Events were removed"),
        ("most device work was lost", "after: "),
    ],
)
def test_recordings_that_cannot_be_compared(after: str, why: str, tmp_path: Path) -> None:
    done = checked(tmp_path, JOBS["a loader that is a little late"].write, JOBS[after].write)
    assert done.code == 2 and done.out == "" and why in done.err


def test_a_loop_saves_what_was_predicted(tmp_path: Path) -> None:
    """Of loops whose period is known without any analysis."""
    found = checked(tmp_path, loop(between="loader"), loop()).json
    assert found["measured"]["before_ns"] == 1_135_000 and found["measured"]["after_ns"] == 835_000
    assert found["predicted"]["mid"] == pytest.approx(100 * (1 - 835 / 1135), abs=0.1)
