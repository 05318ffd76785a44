"""Every answer is the one that was kept: what changes it, on purpose or not, is seen."""

from pathlib import Path

import pandas as pd
import pytest

from tests.answers.columns import columns_of
from tests.answers.questions import answers
from tests.answers.recordings import ASKED, path_of
from tests.answers.stored import KEPT, changed, read, write


@pytest.mark.parametrize(("recording", "area"), ASKED)
def test_answers_are_those_that_were_kept(recording: str, area: str) -> None:
    path = path_of(recording)
    if not path.exists():
        pytest.skip(f"{path} not found: set HTA_WIDGETS_TRACES")
    lines = changed(recording, area, answers(area, path))
    told = "\n".join(lines[:20])
    assert not lines, f"{told}\n(python -m tests.answers --update prints old beside new, and keeps the new)"


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    for kept in KEPT.values():
        write(tmp_path / "again.txt", read(kept))
        assert (tmp_path / "again.txt").read_text() == kept.read_text()


def test_a_change_is_told_by_analysis_recording_and_column() -> None:
    answer = {"temporal_breakdown": columns_of(pd.DataFrame({"idle_pct": [1.0, 2.0], "more": [1, 2]}))}
    lines = changed("ddp_4ranks", "analyses", answer)
    name = "analyses/temporal_breakdown of ddp_4ranks"
    assert f"{name}: idle_pct is another: 2 values (float64), 1, 2" in lines
    assert f"{name}: more is new" in lines
    assert f"{name}: idle_ns is gone" in lines
    assert "analyses/idle_gaps of ddp_4ranks: no longer asked" in lines


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0000000001, 1.0, True), (1.00000001, 1.0, False), (1, 1.0, True), (True, 1, False),
        (None, float("nan"), True), ("", None, False), ("1", 1, False), (b"x", b"y", False),
    ],
)  # fmt: skip
def test_values_are_told_apart(one: object, other: object, same: bool) -> None:
    digests = [columns_of([{"a": value, "b": None}])["[].a"].digest for value in (one, other)]
    assert (digests[0] == digests[1]) == same
