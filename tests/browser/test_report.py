"""A report as its reader meets it: opened from the disk, without a network and without Python."""

import json
import os
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from hta_widgets import DiffViewer, TimelineScrubber, TraceExplorer, WhatIf, analysis, edits, examples
from hta_widgets.formatting import duration
from hta_widgets.widgets import what_if_answer
from tests.browser.lab import TIMELINE
from tests.support import shared_trace

pytestmark = pytest.mark.browser


class Reader:
    """A browser page that may read one file, and nothing else."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.troubles: list[str] = []
        # what breaks the page's policy is an error on the console too
        page.on("console", lambda m: self.troubles.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))

    def open(self, path: Path) -> None:
        address = path.as_uri()

        def guard(route: Route) -> None:
            if route.request.url == address:
                route.continue_()
            else:
                self.troubles.append(f"asked for {route.request.url}")
                route.abort()

        self.troubles.clear()
        self.page.unroute_all()
        self.page.route("**/*", guard)
        self.page.context.set_offline(True)
        self.page.goto(address)
        expect(self.page.locator("main[data-ready=true]")).to_be_visible(timeout=30_000)

    def expect_quiet(self) -> None:
        assert not self.troubles, "\n".join(self.troubles)

    def expect_colours(self, fewer: int) -> None:
        """Wait until the timeline's first canvas shows more colours than that."""
        self.page.wait_for_function(
            """([canvas, fewer]) => {
              const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              return new Set(new Uint32Array(data.buffer)).size > fewer;
            }""",
            arg=[self.page.locator(f"{TIMELINE} canvas").first.element_handle(), fewer],
        )


@pytest.fixture(scope="module")
def reader(page: Page) -> Reader:
    return Reader(page)


def shots(page: Page, name: str) -> None:
    if folder := os.environ.get("HTA_WIDGETS_SHOTS"):
        page.evaluate("() => scrollTo(0, 0)")
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            page.wait_for_timeout(300)
            page.screenshot(path=Path(folder) / f"{name}-{theme}.png", full_page=True)
        page.emulate_media(color_scheme="light")


PANELS = ["temporal_breakdown", "comm_comp_overlap", "events"]


@pytest.mark.parametrize("job", ["ddp_4ranks", "hta/trace_filter"])
def test_report_shows_the_explorers_figures(reader: Reader, tmp_path: Path, job: str) -> None:
    path = examples.path(job) if job in examples.names() else shared_trace(job)
    explorer = TraceExplorer(path, panels=PANELS)
    reader.open(explorer.to_html(tmp_path / "report.html"))
    page = reader.page
    expect(page.locator(TIMELINE)).to_be_visible(timeout=30_000)
    reader.expect_colours(8)
    for kind in PANELS[:2]:
        panel = page.locator(f".hta-panel[data-kind={kind}]")
        panel.locator("summary").first.click()
        frame = explorer.frame(kind)
        titles = panel.locator("tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(cell => cell.title))"
        )
        shown = [
            [re.sub(r" \D+$", "", title).replace(",", "").replace("−", "-") for title in row]
            for row in titles
        ]
        assert len(shown) == len(frame)
        for row, values in zip(shown, frame.itertuples(index=False), strict=True):
            for text, value in zip(row, values, strict=True):
                if isinstance(value, str):
                    assert text == value
                elif value == value:  # not missing
                    assert float(text) == pytest.approx(float(value), rel=1e-12)
    events = page.locator(".hta-panel[data-kind=events]")
    expect(events).to_contain_text(f"{len(explorer.events):,}")
    reader.expect_quiet()
    shots(page, f"report-{job.replace('/', '-')}")


def test_what_works_without_python(reader: Reader, tmp_path: Path) -> None:
    explorer = TraceExplorer(examples.path("ddp_4ranks"), panels=PANELS)
    reader.open(explorer.to_html(tmp_path / "report.html"))
    page = reader.page
    expect(page.locator(TIMELINE)).to_be_visible(timeout=30_000)

    # hover: the slice under the pointer tells what it is
    box = page.locator(f"{TIMELINE} canvas").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 190)
    expect(page.locator(".hta-timeline-tip")).to_be_visible()
    # a click selects a rank everywhere, and the reader is told what that does not change
    before = page.locator(".hta-panel[data-kind=temporal_breakdown] p").first.inner_text()
    page.get_by_role("button", name=re.compile(r"^Rank 1\b")).first.click()
    expect(page.locator(".hta-clauses")).to_contain_text("rank 1")
    expect(page.locator(".hta-report [role=status]")).to_contain_text("saved selection")
    assert page.locator(".hta-panel[data-kind=temporal_breakdown] p").first.inner_text() == before
    page.get_by_role("button", name="Back to it").click()
    expect(page.locator(".hta-clauses")).to_contain_text("the whole job")
    # panels hide and come back
    page.locator(".hta-panel-bar [data-kind=comm_comp_overlap]").click()
    expect(page.locator(".hta-panel[data-kind=comm_comp_overlap]")).to_have_count(0)
    page.locator(".hta-panel-bar [data-kind=comm_comp_overlap]").click()
    expect(page.locator(".hta-panel[data-kind=comm_comp_overlap]")).to_be_visible()
    # the saved events can be searched
    search = page.locator(".hta-breadcrumb input[type=search]")
    search.fill("nccl")
    search.press("Enter")
    found = explorer.events["name"].str.contains("nccl", case=False, regex=False).sum()
    expect(page.locator(".hta-panel[data-kind=events]")).to_contain_text(f"{found:,} of")
    reader.expect_quiet()


def test_timeline_too_large_to_save_whole_is_an_overview(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # its default is what an explorer's timeline has
    monkeypatch.setitem(TimelineScrubber.__init__.__kwdefaults__, "client_slices", 1_000)
    explorer = TraceExplorer(examples.path("ddp_4ranks"), selection={"query": "nccl"})
    reader.open(explorer.to_html(tmp_path / "report.html"))
    page = reader.page
    timeline = page.locator(TIMELINE)
    expect(timeline).to_be_visible(timeout=30_000)
    expect(page.locator(".hta-report")).to_contain_text("too many for a report")
    reader.expect_colours(8)
    # zoom, and ask for what is not there: nothing breaks
    timeline.hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -600)
    page.keyboard.up("Control")
    timeline.click()
    page.keyboard.press("n")
    page.wait_for_timeout(500)
    reader.expect_colours(2)
    reader.expect_quiet()


def test_runs_side_by_side(reader: Reader, tmp_path: Path) -> None:
    """Nothing that takes Python is offered, and what is lit up is told."""
    hostile = "<img src=x onerror=alert(1)>"
    viewer = DiffViewer({hostile: examples.load("gpt2_ddp"), "b": examples.load("gpt2_fsdp_full_shard")})
    frame = viewer.frame("diff").query("run == 'b' and change == 'added'")
    viewer.line = (frame["kind"].iloc[0], frame["line"].iloc[0])
    while not viewer.selections["b"].names:
        time.sleep(0.02)
    reader.open(viewer.to_html(tmp_path / "runs.html"))
    page = reader.page
    expect(page.locator(TIMELINE)).to_have_count(2, timeout=30_000)
    expect(page.locator(".hta-report")).to_contain_text("Hover and zoom; figures recompute")
    expect(page.locator(".hta-runs li").first).to_contain_text(hostile)
    assert page.locator("img").count() == 0
    lines = page.locator(".hta-panel[data-kind=diff]")
    expect(lines.locator("tbody tr").first).to_be_visible()
    assert lines.locator("tbody tr").count() == len(viewer.frame("diff").query("run == 'b'"))
    assert lines.locator(":is(input, select, th button, [aria-selected]):visible").count() == 0
    expect(page.locator(".hta-highlighted")).to_contain_text(frame["line"].iloc[0])
    assert page.locator(".hta-highlighted button").count() == 0
    expect(page.locator(".hta-timeline-matches [role=status]")).to_contain_text(["no matches", "matches"])
    # the timelines still move as one, by steps
    page.locator(TIMELINE).first.focus()
    before = page.locator(TIMELINE).nth(1).get_attribute("data-view") or ""
    for key in "wwd":
        page.keyboard.press(key)
    expect(page.locator(TIMELINE).nth(1)).not_to_have_attribute("data-view", before)
    page.keyboard.press("?")
    expect(page.locator("dialog h4")).to_have_text(["Everywhere", "Timeline"])
    page.keyboard.press("Escape")
    shots(page, "report-runs")
    size = page.viewport_size
    assert size
    page.set_viewport_size({"width": 500, "height": 900})
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size(size)
    reader.expect_quiet()
    viewer.close()


def from_to(before: float, after: float) -> str:
    """Two times with one unit, as the front end writes them."""
    (number, unit), said = duration(before).split(" "), duration(after)
    return f"{number if said.endswith(f' {unit}') else duration(before)} → {said}"


HOSTILE = edits.kernels(1.5, name="<img src=x onerror=document.body.dataset.ran=1>*")


def test_sliders_of_what_if_work_offline(reader: Reader, tmp_path: Path) -> None:
    """The page replays the graph that it holds, to the nanosecond as Python does."""
    explorer = TraceExplorer(
        examples.path("ddp_4ranks"), panels=["what_if"], edits=[edits.kernels(2.0), HOSTILE]
    )
    reader.open(explorer.to_html(tmp_path / "report.html"))
    page, widget = reader.page, reader.page.locator(".hta-what-if")
    shown, beside = widget.locator("h2"), widget.locator(".hta-story p").first
    saved = explorer.what_if().iloc[0]
    whole = f"The whole recording: {from_to(saved['before_ns'], saved['after_ns'])}."
    expect(beside).to_contain_text(whole)
    # what no slider makes has its saved answer only; without it, the browser answers
    expect(widget.locator("input:not(:disabled)")).to_have_count(0)
    expect(widget.locator("code")).to_have_text(HOSTILE.expression)
    widget.get_by_role("button", name="Drop").click()
    expect(widget).to_have_attribute("data-live", "true")
    for value, left in (("150", 0.5), ("160", 0.4)):
        slider = widget.locator("[data-control=host] input")
        slider.fill(value)
        (after,) = explorer.what_if([edits.kernels(2.0), edits.host(left)])["after_ns"].head(1)
        expect(shown).to_contain_text(f"{from_to(saved['before_ns'], after)} for the recording with host ")
        expect(widget.locator(".hta-wi-changes li")).to_have_count(2)
    expect(widget.get_by_role("button", name="Copy Python")).to_have_count(0)
    shots(page, "report-what-if")
    widget.get_by_role("button", name="Reset").click()
    expect(shown).to_have_text(f"{duration(saved['before_ns'])} for the recording, as recorded")
    assert page.evaluate("document.body.dataset.ran ?? null") is None
    assert page.locator("img").count() == 0
    reader.expect_quiet()


def test_what_if_alone_and_too_large_to_save(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled = examples.load("single_gpu_dataloader_stall")
    reader.open(WhatIf(stalled).to_html(tmp_path / "one.html"))
    widget = reader.page.locator(".hta-what-if")
    expect(widget).to_have_attribute("data-live", "true")
    widget.locator("[data-control=loader] input").check()
    expected = analysis.what_if(stalled, edits.without("*DataLoader*")).iloc[0]
    times = from_to(expected["before_ns"], expected["after_ns"])
    expect(widget.locator("h2")).to_have_text(f"{times} for the recording with no data loader")
    reader.expect_quiet()
    monkeypatch.setattr(what_if_answer, "MOST_NODES", 10)
    reader.open(WhatIf(stalled, edits=edits.host(0.5)).to_html(tmp_path / "two.html"))
    expect(reader.page.locator(".hta-report")).to_contain_text("too many for a report")
    expected = analysis.what_if(stalled, edits.host(0.5)).iloc[0]
    times = from_to(expected["before_ns"], expected["after_ns"])
    expect(widget.locator(".hta-story p").first).to_contain_text(f"The whole recording: {times}.")
    expect(widget.locator("input:not(:disabled)")).to_have_count(0)
    reader.expect_quiet()


def test_name_from_a_trace_is_never_markup(reader: Reader, tmp_path: Path) -> None:
    names = [
        "</script><script>document.body.dataset.ran=1</script>",
        "<img src=x onerror=document.body.dataset.ran=1>",
        "<!--<script>",
    ]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": name, "tid": name, "ts": 1 + 3 * at, "dur": 2}
        for at, name in enumerate(names)
    ]
    folder = tmp_path / "<img src=x onerror=document.body.dataset.ran=1>"
    folder.mkdir()
    (folder / "rank0.json").write_text(json.dumps({"traceEvents": events}))
    reader.open(TraceExplorer(folder, panels=["events"]).to_html(tmp_path / "report.html", title=names[0]))
    page = reader.page
    expect(page.locator(TIMELINE)).to_be_visible(timeout=30_000)
    assert page.title() == names[0]
    expect(page.locator(".hta-panel[data-kind=events]")).to_contain_text(names[1])
    assert page.evaluate("document.body.dataset.ran ?? null") is None
    assert page.locator("img").count() == 0
    reader.expect_quiet()
