"""The inspector beside the timeline: clicks, links, the clipboard, statistics of a window."""

import json
from ast import literal_eval

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import TIMELINE, Lab, eventually, expect_view
from tests.browser.test_timeline import GUTTER

pytestmark = pytest.mark.browser

FIRST_STREAM = 116  # in the row of the first stream of the first rank, CSS pixels from the timeline's top


CELLS = (
    """
from hta_widgets import TraceExplorer, analysis, examples
explorer = TraceExplorer(examples.path("gpt2_ddp"), panels=[]).wait()
explorer
""",
    """
import time
while not explorer.parts: time.sleep(0.01)
parts = dict(explorer.parts)
timeline, inspector, trace = parts["timeline"], parts["inspector"], explorer.trace
selection = explorer.selection
work = trace.events().query("rank == 0 and stream == 7").sort_values("start_ns")
work = work[work["event_class"].isin(["compute", "memory_copy", "memory_set", "communication"])]
""",
)


def open_explorer(lab: Lab) -> Locator:
    """An explorer without panels; the kernel knows its timeline and inspector, too."""
    lab.show(*CELLS, name="inspector.ipynb")
    root = lab.page.locator(".hta:has(> .hta-explorer)")
    expect(root.locator(TIMELINE)).to_be_visible(timeout=60_000)
    lab.expect_kernel("timeline.view is not None", True, seconds=30)
    return root


def click(lab: Lab, start: int, end: int) -> None:
    """Look at a time on the first stream, with as much on either side, and click into its middle."""
    width = end - start
    lab.page.locator("[data-ready=true]").first.wait_for(timeout=30_000)
    lab.kernel(f"setattr(timeline, 'view', ({start - width}, {end + width}))")
    lanes = lab.page.locator(TIMELINE).first
    expect_view(lanes, start - width, end + width)
    lanes.hover()  # which waits until it stands where it stays
    box = lanes.bounding_box()
    assert box is not None
    at = box["x"] + GUTTER + (box["width"] - GUTTER) / 2, box["y"] + FIRST_STREAM
    tip = lab.page.locator(".hta-timeline-tip")
    lab.page.mouse.move(*at)
    expect(tip).to_be_visible()
    lab.page.mouse.click(*at)


def row(inspector: Locator, label: str) -> Locator:
    return inspector.locator("dl > div").filter(has=inspector.page.locator("dt", has_text=label)).first


@pytest.fixture(scope="module")
def opened(lab: Lab) -> Locator:
    return open_explorer(lab).locator(".hta-inspector")


@pytest.fixture
def inspector(lab: Lab, opened: Locator) -> Locator:
    """At rest: nothing is selected, and the first stream is where `click` expects it."""
    lab.kernel("(selection.clear(), setattr(timeline, 'view', trace.extent_ns))")
    lanes = lab.page.locator(TIMELINE).first
    lanes.focus()
    for _ in range(8):  # a link may have scrolled the lanes
        lanes.press("PageUp")
    return opened


def test_a_kernel_tells_who_launched_it_and_its_links_lead_on(lab: Lab, inspector: Locator) -> None:
    expect(inspector).to_contain_text("Click a slice or a gap")
    lab.kernel("globals().update(it=work[work['name'].str.contains('xmma_gemm')].iloc[40])")
    number, start, end = literal_eval(lab.kernel("(int(it.event_id), int(it.start_ns), int(it.end_ns))"))
    click(lab, start, end)
    lab.expect_kernel("selection.focus", (0, number))
    lab.expect_kernel("inspector.facts is not None and inspector.facts.gone is not None", True, seconds=30)
    facts = json.loads(literal_eval(lab.kernel("inspector.ask('json', {})[0]")))
    expect(row(inspector, "By")).to_contain_text(facts["launch"]["call"]["name"])
    expect(row(inspector, "Operator")).to_contain_text(facts["operator"]["name"])
    expect(inspector).to_contain_text(facts["python"][0]["function"])
    expect(inspector).to_contain_text(facts["module"]["name"])
    expect(inspector).to_contain_text("Without it")
    lab.shot("inspector-event")

    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    inspector.get_by_role("button", name="Copy as Python").click()
    expect(inspector).to_contain_text("Copied as Python")
    code = lab.page.evaluate("navigator.clipboard.readText()")
    assert code == f"analysis.inspect_event(explorer.trace, 0, {number})"
    lab.expect_kernel(f"{code} == inspector.facts", True)
    inspector.get_by_role("button", name="Copy as JSON").click()
    expect(inspector).to_contain_text("Copied as JSON")
    assert json.loads(lab.page.evaluate("navigator.clipboard.readText()")) == facts

    row(inspector, "Operator").get_by_role("button").click()
    operator = (0, facts["operator"]["event_id"])
    lab.expect_kernel("selection.focus", operator)
    expect(inspector.locator("h3")).to_have_text(facts["operator"]["name"])
    lab.expect_kernel("timeline.focus", operator)
    lab.expect_kernel("selection.window is None and not selection.can_undo", True)
    lab.expect_no_errors()


def test_empty_ground_selects_the_gap_and_not_the_window(lab: Lab, inspector: Locator) -> None:
    lab.kernel("globals().update(first=work.head(100))")  # with room on either side
    lab.kernel("globals().update(idle=first['start_ns'].values[1:] - first['end_ns'].values[:-1])")
    edges = "int(first['end_ns'].values[idle.argmax()]), int(first['start_ns'].values[idle.argmax() + 1])"
    start, end = literal_eval(lab.kernel(f"({edges})"))
    click(lab, start, end)
    lab.expect_kernel("selection.gap", (0, 7, start))
    lab.expect_kernel("(selection.window, selection.focus)", (None, None))
    lab.expect_kernel("inspector.facts == analysis.inspect_gap(trace, 0, 7, selection.gap[2])", True)
    expect(inspector.locator("h3")).to_contain_text("without work")
    lab.shot("inspector-gap")
    inspector.get_by_role("button", name="Use as window").click()
    lab.expect_kernel("selection.window", (start, end))
    lab.expect_kernel("selection.gap", (0, 7, start))

    # with neither an event nor a gap, the window's own statistics are shown, and sort
    lab.page.locator(TIMELINE).first.focus()
    lab.kernel("(setattr(selection, 'gap', None), setattr(selection, 'window', (15_000_000, 18_000_000)))")
    inspector.get_by_label("Statistics by").select_option("class")
    lab.expect_kernel(
        "(inspector.by, inspector.status, inspector.content['kind'])", ("class", "idle", "area")
    )
    inspector.get_by_role("button", name="count").click()

    def sorts() -> None:
        cells = inspector.locator("td[data-column=count]").all_inner_texts()
        counts = [int(cell.replace(",", "")) for cell in cells]
        assert counts == sorted(counts, reverse=True) and len(counts) > 2

    eventually(sorts)
    lab.shot("inspector-area")
    lab.expect_no_errors()
