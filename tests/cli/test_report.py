"""`hta-widgets report`: the explorer that it writes is the one that the arguments ask for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import TraceExplorer, examples
from tests.cli.conftest import Run
from tests.report.reading import column, content, part
from tests.support import shared_trace

DDP = examples.path("ddp_4ranks")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the explorers were when they were to be written."""
    seen: list[dict[str, Any]] = []

    def to_html(explorer: TraceExplorer, path: str, **_: Any) -> None:
        seen.append(
            {"selection": explorer.selection.to_dict(), "panels": explorer.panels, "path": path}
            | {"job": explorer.header[0]["value"]}
        )

    monkeypatch.setattr(TraceExplorer, "to_html", to_html)
    return seen


def test_selection_and_panels(run: Run, written: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    part = ["--ranks", "0,2-3", "--window", "5ms:20ms", "--panels", "idle_breakdown,kernel_breakdown"]
    done = run("report", DDP, "-o", file, *part)
    assert (done.code, done.out, done.err) == (0, f"{file}\n", "")
    assert written == [
        {
            "selection": {"ranks": (0, 2, 3), "window": (5_000_000, 20_000_000)},
            "panels": ("idle_breakdown", "kernel_breakdown"),
            "path": str(file),
            "job": "ddp_4ranks",
        }
    ]


def test_first_look_has_an_answer(run: Run, written: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert run("report", DDP, "-o", file).code == 0
    item = sorted(DDP.iterdir())[0]
    assert run("report", item, "-o", file).code == 0
    assert run("report", shared_trace("hta/cpu_only"), "-o", file).code == 0
    all_ranks, one_rank, host_only = (explorer["panels"] for explorer in written)
    assert set(all_ranks) - set(one_rank) == {"slowdown", "stragglers"}
    assert host_only == ("overview", "op_counts")
    assert run("report", examples.path("single_gpu_dataloader_stall"), "-o", file).code == 0
    assert "comm_comp_overlap" in one_rank and "comm_comp_overlap" not in written[-1]["panels"]


def test_errors(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(_explorer: TraceExplorer, _path: str, **___: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TraceExplorer, "to_html", full)
    file = tmp_path / "report.html"
    done = run("report", DDP, "-o", file)
    assert (done.code, done.out) == (5, "")
    assert done.err == f"hta-widgets: cannot write {file}: No space left on device\n"
    assert run("report", tmp_path / "nowhere", "-o", file).code == 3
    assert run("report", DDP, "-o", file, "--ranks", "9").code == 2
    shutil.copy(sorted(DDP.iterdir())[0], tmp_path)
    (tmp_path / "rank-9.json").write_text("broken")
    assert "rank-9.json is left out" in run("report", tmp_path, "-o", file).err


def test_written_file_shows_the_numbers_of_the_selection(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    chosen = ["--ranks", "1,2", "--panels", "temporal_breakdown,kernel_breakdown"]
    assert run("report", DDP, "-o", file, *chosen).code == 0
    html = file.read_text(encoding="utf-8")
    explorer = TraceExplorer(DDP, selection={"ranks": (1, 2)})
    explorer.wait()
    for kind, total in (("temporal_breakdown", "idle_ns"), ("kernel_breakdown", "sum_ns")):
        state = part(html, "breakdown", kind=kind)["state"]
        assert column(state, total) == explorer.frame(kind)[total].tolist()


def test_folders_are_shown_when_asked(run: Run, tmp_path: Path) -> None:
    short, full = tmp_path / "short.html", tmp_path / "full.html"
    assert run("report", DDP, "-o", short, "--panels", "op_counts").code == 0
    assert run("report", DDP, "-o", full, "--panels", "op_counts", "--paths", "full").code == 0
    folder = str(Path(DDP).parent)
    assert folder not in json.dumps(content(short.read_text()), default=str)
    assert folder in json.dumps(content(full.read_text()), default=str)


def test_the_findings_as_markdown(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "run.md"
    done = run("report", DDP, "-o", target, "--ranks", "2")
    assert (done.code, done.out, done.err) == (0, f"{target}\n", "")
    text = target.read_text(encoding="utf-8")
    assert text == run("diagnose", DDP, "--ranks", "2").out
    assert str(DDP.parent) not in text
