"""`MemoryView`: a snapshot's answers as panels, a report and a static picture."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import MemorySnapshot, MemoryView
from hta_widgets.cli.run import main
from hta_widgets.errors import MissingDataError, TraceNotFoundError
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.memory_panel import MemoryPanel
from tests.memory_snapshot.allocator import MB, Allocator, OutOfMemoryError, write
from tests.memory_snapshot.test_beside import EPOCH_US, recording, snapshot
from tests.report.reading import content
from tests.widgets.decoded import numbers

pytestmark = pytest.mark.slow

MODEL, LOSS = "/home/anna/app/model.py:20:forward", "/home/anna/app/loss.py:3:loss"


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """A snapshot of a process that ran out of memory because of fragmentation."""
    allocator = Allocator(100 * MB)
    pieces = [allocator.alloc(9 * MB, MODEL) for _ in range(10)]
    for piece in pieces[::2]:
        allocator.free(piece)
    with pytest.raises(OutOfMemoryError):
        allocator.alloc(30 * MB, LOSS)
    return write(tmp_path / "failed.pickle", allocator)


@pytest.fixture
def view(failed: Path) -> Iterator[MemoryView]:
    shown = MemoryView(failed)
    settle([part for _, part, _ in shown.parts])
    yield shown
    shown.close()


def texts(table: Any, name: str) -> list[str]:
    found: list[str] = next(column["values"] for column in table["columns"] if column["name"] == name)
    return found


def panels(shown: MemoryView) -> dict[str, MemoryPanel]:
    return {kind: part for _, part, kind in shown.parts}


def test_panels_show_what_the_snapshot_answers(view: MemoryView, failed: Path) -> None:
    truth = MemorySnapshot.open(failed)
    assert view.headline == truth.sentence() and "fragmentation" in view.headline
    found = panels(view)
    assert list(found) == ["timeline", "peak", "out_of_memory", "fragmentation", "blockers"]
    assert {panel.status for panel in found.values()} == {"idle"}
    for kind in ("timeline", "peak", "fragmentation", "blockers", "out_of_memory"):
        assert view.frame(kind).equals(getattr(truth, kind)())
    assert view.frame("peak", by="module")["owner"].tolist() == ["/home/anna/app/model.py"]
    with pytest.raises(KeyError, match="no panel 'recording'; there are: timeline"):
        view.frame("recording")


def test_the_chart_has_the_peak_and_what_was_reserved(view: MemoryView) -> None:
    marks = panels(view)["timeline"].marks
    assert max(numbers(marks, "value")) == 90 * MB and max(numbers(marks, "beside")) == 100 * MB
    assert "90.0 MiB allocated of 100 MiB reserved" in panels(view)["timeline"].sentence
    parts = panels(view)["fragmentation"].marks
    shown = dict(zip(texts(parts, "label"), numbers(parts, "value"), strict=True))
    assert shown["free, cannot be given back"] == view.frame("fragmentation")["stuck_bytes"].iloc[0]


def test_an_option_of_a_panel_is_answered(view: MemoryView) -> None:
    panel = panels(view)["peak"]
    panel.options = {"by": "module"}
    settle([panel])
    assert texts(panel.marks, "label") == ["/home/anna/app/model.py"]
    assert panel.expression.endswith("frame(\"peak\", by='module')")


def test_a_panel_writes_its_table(view: MemoryView) -> None:
    panel = panels(view)["peak"]
    sent: list[tuple[Any, Any]] = []
    panel.send = lambda content, buffers=None: sent.append((content, buffers))
    panel._handle_custom_msg(
        {"rpc": 1, "call": "a", "method": "file", "params": {"key": "k", "chunk": 0, "form": "csv"}}, []
    )
    for _ in range(500):
        if sent:
            break
        time.sleep(0.02)
    ((reply, (data,)),) = sent
    assert reply["result"] == {"chunks": 1}
    assert '"/home/anna/app/model.py:20: forward",94371840,10,100' in bytes(data).decode()


def test_a_recording_beside_it_says_what_ran(tmp_path: Path) -> None:
    trace = recording(tmp_path / "rank-0.json", EPOCH_US)
    held = snapshot(tmp_path, (EPOCH_US + 20, 30), (EPOCH_US + 130, 40))
    together = MemoryView(held, trace)
    apart = MemoryView(held, recording(tmp_path / "later.json", EPOCH_US + 10**6))
    settle([part for shown in (together, apart) for _, part, _ in shown.parts])
    sentence = panels(together)["recording"].sentence
    assert sentence == (
        "Most was allocated 130 µs into the recording, 70.0 MiB in iteration 4; aten::relu ran then."
    )
    panel = panels(apart)["recording"]
    assert panel.status == "empty" and "before the recording begins" in panel.message
    together.close()
    apart.close()


def test_without_history_the_panels_say_what_records_it(tmp_path: Path) -> None:
    allocator = Allocator(100 * MB)
    allocator.alloc(60 * MB, MODEL)
    allocator.events = []
    shown = MemoryView(write(tmp_path / "s.pickle", allocator))
    settle([part for _, part, _ in shown.parts])
    assert panels(shown)["timeline"].status == "empty"
    assert "_record_memory_history" in panels(shown)["timeline"].message
    assert panels(shown)["fragmentation"].status == "idle"
    with pytest.raises(MissingDataError):
        shown.frame("peak")
    shown.close()


def test_the_report_holds_the_answers_and_no_folders(failed: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert main(["memory", str(failed), "-o", str(target)]) == 0
    held = content(target.read_text(encoding="utf-8"))
    assert {part["state"]["_view"] for part in held["parts"].values()} == {"memory", "breakdown"}
    text = repr(held)
    assert "because of fragmentation" in text and "model.py:20: forward" in text
    assert "anna" not in text and str(tmp_path) not in text


def test_the_command_tells_what_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(tmp_path / "rank-0.json", EPOCH_US)
    snapshot(tmp_path, (EPOCH_US + 20, 30), (EPOCH_US + 130, 40))
    argv = ["memory", str(tmp_path / "s.pickle"), "--trace", str(tmp_path / "rank-0.json")]
    assert main(argv) == 0
    assert "aten::relu" in capsys.readouterr().out
    assert main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recording"]["rows"][0]["peak_ns"] == 130_000
    assert main([*argv[:3], str(tmp_path / "none")]) == 3


def test_the_static_picture_and_a_missing_file(view: MemoryView, tmp_path: Path) -> None:
    picture = view.snapshot()
    assert picture.selected == view.headline and len(picture.answers) == len(view.parts)
    with pytest.raises(TraceNotFoundError):
        MemoryView(tmp_path / "none.pickle")
