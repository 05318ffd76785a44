"""The explorer on traces of other kinds."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.lab import TIMELINE, Lab
from tests.support import EVERY_CASE, shared_trace

pytestmark = pytest.mark.browser


TRACES = [("tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 1)]
if EVERY_CASE:
    TRACES.append(("hta/trace_filter", 2))  # test_every_panel shows all panels of it


def open_explorer(lab: Lab, path: Path) -> None:
    lab.open_code(
        f"from hta_widgets import TraceExplorer\nexplorer = TraceExplorer({str(path)!r})\nexplorer",
        name="explorer.ipynb",
    )
    expect(lab.page.locator(".hta").first).to_be_visible(timeout=60_000)


@pytest.mark.parametrize(("trace", "ranks"), TRACES)
def test_real_trace(lab: Lab, trace: str, ranks: int) -> None:
    open_explorer(lab, shared_trace(trace))
    expect(lab.page.locator(TIMELINE).first).to_be_visible(timeout=60_000)
    lab.expect_kernel("len(explorer.trace.ranks)", ranks)
    lab.expect_kernel("len(explorer.frame('temporal_breakdown'))", ranks, seconds=30)
    lab.expect_no_errors()
    lab.shot(f"explorer-{trace.replace('/', '-')}")


def write_trace(path: Path, **fields: object) -> None:
    """A trace of one host event."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2} | fields
    path.write_text(json.dumps({"traceEvents": [event]}))


def test_damaged_file_is_explained(lab: Lab, tmp_path: Path) -> None:
    """A rank that cannot be read is named, and does not take the others away."""
    write_trace(tmp_path / "rank0.json")
    (tmp_path / "rank1.json").write_text("<html>not a trace</html>")
    open_explorer(lab, tmp_path)
    lab.expect_kernel("(len(explorer.trace.ranks), len(explorer.trace.failed))", (1, 1))
    # the host-only rank has no device events: the panel says what to record, and raises nothing
    expect(lab.page.locator(".hta").first).to_contain_text("ProfilerActivity.CUDA", timeout=30_000)
    lab.expect_no_errors()
    lab.shot("explorer-damaged")


def test_name_from_a_trace_is_never_markup(lab: Lab, tmp_path: Path) -> None:
    markup = "<img src=x onerror=document.body.dataset.ran=1>"
    write_trace(tmp_path / "rank0.json", name=markup, pid=markup, tid=markup)
    open_explorer(lab, tmp_path)
    expect(lab.page.locator(TIMELINE).first).to_be_visible(timeout=60_000)
    assert lab.page.evaluate("document.body.dataset.ran ?? null") is None
    assert lab.page.locator(".hta img[src=x]").count() == 0
