"""What a report of `WhatIf` holds: the graph, the answer, and a bundle that has its view."""

import zlib
from pathlib import Path

import pytest

from hta_widgets import Trace, TraceExplorer, WhatIf, edits
from hta_widgets.widgets import what_if_answer
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.runtime import REPORT_BUNDLES, bundle
from hta_widgets.widgets.what_if_answer import packed_graph
from tests.report.reading import content, part
from tests.support import shared_trace

CHANGES = [edits.kernels(2.0), edits.communication(0)]


def carried(html: str) -> list[str]:
    """The names of the bundles in a page."""
    return [name for name, path in REPORT_BUNDLES.items() if bundle(path) in html]


def test_a_report_of_an_explorer_holds_the_graph_of_its_panel(ddp: Trace, tmp_path: Path) -> None:
    explorer = TraceExplorer(ddp, panels=["what_if"], selection={"ranks": [2, 3]}, edits=CHANGES)
    html = explorer.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    saved = part(html, "what_if")
    (question,) = saved["questions"]
    assert (question["method"], question["result"]) == ("graph", {"chunks": 1})
    assert question["buffers"] == [packed_graph(ddp.rank(2)).data]
    assert zlib.crc32(question["buffers"][0]) == saved["state"]["about"]["graph"]
    whole = explorer.what_if().query("rank == 2 and iteration.isna()").iloc[0]
    answer = saved["state"]["answer"]
    assert [answer[name] for name in ("before", "low", "after", "high")] == [
        whole[f"{name}_ns"] for name in ("before", "low", "after", "high")
    ]
    assert saved["state"]["settings"] == {"kernels": 0.5, "communication": 0.0}
    assert carried(html) == ["what_if"]


def test_a_report_without_the_panel_does_not_carry_it(ddp: Trace, tmp_path: Path) -> None:
    explorer = TraceExplorer(ddp, panels=["what_if"])
    html = explorer.to_html(tmp_path / "a.html", panels=["overview"]).read_text(encoding="utf-8")
    assert carried(html) == ["explorer"]


def test_the_widget_alone_as_a_file(ddp: Trace, tmp_path: Path) -> None:
    widget = WhatIf(ddp, rank=1, edits=CHANGES)
    html = widget.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    settle([widget])
    assert "<title>What if: 4 ranks" in html
    assert content(html)["root"] in content(html)["parts"]
    assert part(html, "what_if")["state"]["answer"] == widget.answer
    assert carried(html) == ["what_if"]


def test_a_large_graph_is_not_saved_and_the_report_says_so(
    ddp: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what_if_answer, "MOST_NODES", 10)
    html = WhatIf(ddp, rank=3, edits=CHANGES).to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    assert part(html, "what_if")["questions"] == []
    (note,) = content(html)["about"]["notes"]
    assert "too many for a report" in note


def test_a_recording_that_cannot_be_replayed_has_its_reason_in_the_report(tmp_path: Path) -> None:
    widget = WhatIf(shared_trace("hta/mtia_inference_trace"))
    html = widget.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    saved = part(html, "what_if")
    assert saved["questions"] == []
    assert "simulated without changes" in saved["state"]["message"]
