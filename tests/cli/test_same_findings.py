"""What stands out in a job: the explorer, its report, and the command line say literally the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets import BreakdownPanel, examples
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace import Trace
from hta_widgets.widgets.freezing import settle
from tests.analysis.kineto_file import event, kernel, launch, write
from tests.cli.conftest import Run
from tests.report.reading import part

pytestmark = pytest.mark.usefixtures("opened_once")

UNKNOWN = "?"


def marked_up(folder: Path) -> Path:
    """A job that loses time between the kernels of a step, whose names are markup."""
    events = []
    for number in range(6):
        at = number * 1_000_000
        events += [event("user_annotation", f"ProfilerStep#{number}", at, 990_000)]
        for place in range(3):
            begin, correlation = at + place * 300_000, 1 + 10 * number + place
            events += [
                event("cpu_op", "<b>op</b>", begin + 100, 500),
                launch(begin + 200, correlation, dur=50),
                kernel("<img src=x onerror=alert(1)>", begin + 1_000, 150_000, correlation=correlation),
            ]
    return write(folder / "trace.json", events)


def found_in_text(out: str) -> tuple[str, list[tuple[str, str]]]:
    """The headline, and lines of headings ("", heading) and of findings (share, text), of `summary`.

    It wraps no lines unless on a terminal.
    """
    paragraph = out.split("\n\n")[1].splitlines()
    lines = [line.strip().rpartition("  ")[::2] for line in paragraph[1:]]
    return paragraph[0], [(share.strip(), text) for share, text in lines]


@pytest.mark.parametrize(
    "name", ["ddp_4ranks", "single_gpu_dataloader_stall", "inference_cuda_graphs", "gpt2_ddp", "<markup>"]
)
def test_everything_says_the_same(run: Run, tmp_path: Path, name: str) -> None:
    path = marked_up(tmp_path) if name == "<markup>" else examples.path(name)
    trace = Trace.open(path)
    frame = overview(trace)
    headline = f"{story(trace, frame=frame).headline}."
    findings = frame[["section", "severity", "text", "suggestion"]].to_dict("records")
    hints = [
        f"{saving} {hint}".strip() for saving, hint in zip(frame["saving"], frame["suggestion"], strict=True)
    ]
    assert findings

    panel = BreakdownPanel(trace, "overview")
    settle([panel])
    html = tmp_path / "report.html"
    assert run("report", path, "-o", html).code == 0
    state = part(html.read_text(encoding="utf-8"), "breakdown", kind="overview")["state"]
    answer = run("summary", path, "--json").json["answers"]["overview"]
    text = found_in_text(run("summary", path).out)

    assert {headline} == {panel.sentence, state["sentence"], answer["sentence"], text[0]}
    for notes in (panel.notes, state["notes"]):
        said = [{"severity": note["severity"], "text": note["text"]} for note in notes]
        assert said == frame[["severity", "text"]].to_dict("records")
        assert [note["hint"] for note in notes] == hints
        lines: list[tuple[str, str]] = []
        for note, part_of in zip(notes, frame["part_of"], strict=True):
            prefix = "part: " if part_of else ""
            lines += [("", f"{note['heading']}:")] if "heading" in note else []
            lines.append((note.get("share", UNKNOWN), f"{prefix}{note['text']} {note['hint']}".strip()))
        assert lines == text[1]
    columns = ("section", "severity", "text", "suggestion")
    assert [{name: row[name] for name in columns} for row in answer["rows"]] == findings
    panel.close()


def test_a_report_has_the_findings_unless_other_panels_are_asked_for(run: Run, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    assert run("report", examples.path("ddp_4ranks"), "-o", html).code == 0
    panels: list[Any] = part(html.read_text(encoding="utf-8"), "explorer")["state"]["panels"]
    assert panels[0] == "overview"


def test_markup_in_names_is_no_markup_in_a_report(run: Run, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    assert run("report", marked_up(tmp_path), "-o", html).code == 0
    assert "<img src=x" not in html.read_text(encoding="utf-8")
