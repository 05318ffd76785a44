"""`--recording` opens one of several recordings, and a wrong name is told with those there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets import TraceExplorer
from hta_widgets.cli import main
from tests.trace.helpers import kernel, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for step in (1, 2):
        for rank in (0, 1):
            path = tmp_path / f"iteration_{step}" / f"rank{rank}_trace.json"
            write(path, [kernel(f"kernel_{step}", 2, 1)], distributedInfo={"rank": rank, "world_size": 2})
    return tmp_path


@pytest.mark.parametrize(
    ("options", "name"), [([], "kernel_2"), (["--recording", "iteration_1"], "kernel_1")]
)
def test_a_recording_by_name(
    folder: Path, options: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "kernel_breakdown", str(folder), "--format", "csv", *options]) == 0
    told = capsys.readouterr().out
    assert name in told
    assert ("kernel_1" in told) != ("kernel_2" in told)


def test_a_wrong_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", str(folder), "--recording", "iteration_3"]) == 3
    assert "there are iteration_1, iteration_2" in capsys.readouterr().err


def test_the_explorer_shows_the_recording(folder: Path) -> None:
    explorer = TraceExplorer(folder, recording=0, panels=[])
    assert explorer.trace.recording == "iteration_1"
    explorer.close()
