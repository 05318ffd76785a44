"""WhatIf in JupyterLab: the answer follows the hand in the page, and Python confirms it."""

import ast

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE, Lab
from tests.support import shared_trace

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import Trace, WhatIf, analysis, edits
trace = Trace.open({path!r})
widget = WhatIf(trace)
widget
"""
# as of a job of millions of events, which stay in the kernel
LARGE = """
from hta_widgets import TimelineScrubber
timeline = TimelineScrubber(trace, client_slices=1000)
timeline
"""
EXPLORER = """
from hta_widgets import TraceExplorer, analysis, edits
explorer = TraceExplorer({path!r}, panels=[])
explorer
"""
CONTROL, ABSTAINS = "hta/trace_diff/control", "hta/mtia_inference_trace"
MOST_MS = 50

# How long a move of a slider takes until another answer is on the page, ms.
MOVE = """(slider, value) => new Promise((resolve, reject) => {
  const answer = slider.closest('.hta-what-if').querySelector('h2');
  const given = setTimeout(() => reject(new Error('the answer stays ' + answer.textContent)), 5000);
  const changed = new MutationObserver(() => {
    changed.disconnect();
    clearTimeout(given);
    resolve(performance.now() - begun);
  });
  changed.observe(answer, { childList: true, characterData: true, subtree: true });
  const begun = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
})"""


def headline(widget: Locator) -> Locator:
    return widget.locator("h2")


def slider(widget: Locator, name: str) -> Locator:
    return widget.locator(f"[data-control={name}] input")


@pytest.fixture(scope="module")
def opened(lab: Lab) -> Locator:
    lab.open_code(CELL.format(path=str(shared_trace(CONTROL))), LARGE, name="what_if.ipynb")
    widget = lab.page.locator(".hta-what-if")
    expect(widget).to_be_visible(timeout=60_000)
    expect(widget).to_have_attribute("aria-busy", "false", timeout=60_000)
    return widget


@pytest.fixture
def control(lab: Lab, opened: Locator) -> Locator:
    """One for the tests that take it, which stand together; no change is chosen."""
    lab.kernel("setattr(widget, 'edits', [])")
    expect(headline(opened)).to_contain_text("as recorded")
    expect(opened.locator("[data-stale]")).to_have_count(0)
    return opened


def test_the_page_answers_at_once_and_python_agrees(lab: Lab, control: Locator) -> None:
    expect(headline(control)).to_contain_text("per step, as recorded")
    expect(control.locator(".hta-story p")).to_contain_text("The whole recording: 465 ms.")
    expect(control).to_have_attribute("data-live", "true", timeout=10_000)
    moves = [
        ("host", "150"),
        *(("kernels", value) for value in ("110", "120", "130", "140", "150", "160", "170")),
    ]
    spent = [slider(control, name).evaluate(MOVE, value) for name, value in moves]
    assert min(spent) < MOST_MS, spent  # the others wait for what else the machine does
    expect(control.get_by_role("button", name="Copy Python")).to_be_enabled(timeout=10_000)
    lab.expect_kernel("widget.expression", "analysis.what_if(trace, [edits.host(0.5), edits.kernels(3.33)])")
    # the view says so if the two differ
    expect(control.get_by_role("alert")).to_have_count(0)
    lab.expect_kernel("int(widget.frame()['after_ns'].iloc[0]) == widget.answer['after']", True)
    # the same words in the page, and in the picture that a saved notebook shows
    said = "__import__('hta_widgets.widgets.what_if_answer').widgets.what_if_answer.headline(widget.answer)"
    expect(headline(control)).to_have_text(ast.literal_eval(lab.kernel(said)))
    expect(headline(control)).to_contain_text(
        " per step with host 2× as fast and compute kernels 3.33× as fast"
    )
    expect(control.locator("[data-stale]")).to_have_count(0)
    lab.shot("what-if-light", control)
    assert not serious_violations(control)
    lab.expect_no_errors()


def test_a_click_on_the_map_sets_both_sliders(lab: Lab, control: Locator) -> None:
    place = control.locator('[aria-label^="Host 2×, compute kernels 1.4×"]')
    place.click()
    expect(place).to_have_attribute("aria-pressed", "true")
    lab.expect_kernel("[edit.expression for edit in widget.edits]", ["edits.host(0.5)", "edits.kernels(1.4)"])
    # the map says what the replay says then
    expect(control.locator("[data-stale]")).to_have_count(0, timeout=10_000)
    said = place.get_attribute("aria-label") or ""
    after = said.partition(": ")[2].partition(",")[0]
    expect(control.locator(".hta-story p")).to_contain_text(f"The whole recording: 465 → {after}.")
    place.press("ArrowRight")
    lab.page.keyboard.press("Enter")
    lab.expect_kernel("widget.edits[1].expression", "edits.kernels(2.0)")
    control.get_by_text("Table", exact=True).click()
    rows = ast.literal_eval(lab.kernel("len(widget.speed_map())"))
    expect(control.locator(".hta-wi-map tbody tr")).to_have_count(rows)
    control.get_by_text("Table", exact=True).click()
    lab.expect_no_errors()


def test_python_moves_the_sliders(lab: Lab, control: Locator) -> None:
    lab.kernel(
        "setattr(widget, 'edits', [edits.communication(0), edits.syncs(), edits.without('*DataLoader*')])"
    )
    expect(slider(control, "communication")).to_have_js_property("value", "200")
    expect(slider(control, "syncs")).to_be_checked()
    expect(control.locator(".hta-wi-changes li")).to_have_count(3)
    slider(control, "syncs").uncheck()
    lab.expect_kernel("[edit.expression for edit in widget.edits]",
                      ["edits.communication(0.0)", "edits.without('*DataLoader*')"])  # fmt: skip
    # what no slider makes is answered by Python, and can be dropped
    lab.kernel("setattr(widget, 'edits', [*widget.edits, edits.graphs()])")
    drop = control.get_by_role("button", name="Drop")
    expect(drop).to_be_visible()
    expect(control.locator("[data-stale]")).to_have_count(0, timeout=10_000)
    lab.shot("what-if-further", control)
    drop.click()
    lab.expect_kernel("len(widget.edits)", 2)
    control.get_by_role("button", name="Reset").click()
    lab.expect_kernel("widget.edits", [])


def shown_times(lab: Lab, times: str) -> Locator:
    """The timeline, once it is drawn at such times."""
    timeline = lab.page.locator(f"[data-ready=true][data-times={times}]")
    expect(timeline).to_be_visible(timeout=30_000)
    return timeline


def test_the_kernel_keeps_a_large_replay(lab: Lab, control: Locator) -> None:
    """The timeline below What if."""
    lab.kernel("setattr(timeline, 'edits', [edits.kernels(2.0)])")
    shown_times(lab, "recorded")
    lab.page.get_by_role("group", name="Times").get_by_role("button", name="With changes").click()
    view = shown_times(lab, "what_if")
    expect(view).to_have_attribute("data-mode", "kernel")
    event = ast.literal_eval(
        lab.kernel(
            "next((int(r.event_id), int(r.replayed_start_ns), int(r.start_ns)) for r in "
            "analysis.replayed_events(timeline.trace, timeline.edits).itertuples() "
            "if r.start_ns > r.replayed_start_ns)"
        )
    )
    lab.kernel(f"setattr(timeline, 'focus', (timeline.trace.ranks[0], {event[0]}))")
    line = view.locator(".hta-timeline-focus")
    expect(line).to_contain_text(f"start {event[1]:,} ns")
    expect(line).to_contain_text(f"start {event[2]:,} ns")
    lab.expect_no_errors()


def test_dark_and_narrow(dark_lab: Lab, control: Locator) -> None:
    widget = control
    dark_lab.kernel("setattr(widget, 'edits', [edits.host(0.5), edits.kernels(2), edits.communication(1.5)])")
    expect(widget.locator(".hta-wi-changes li")).to_have_count(3)
    expect(widget.locator("[data-stale]")).to_have_count(0)
    dark_lab.shot("what-if-dark", widget)
    assert not serious_violations(widget)
    dark_lab.page.set_viewport_size({"width": 700, "height": 900})
    dark_lab.shot("what-if-narrow", widget)
    dark_lab.page.set_viewport_size({"width": 1280, "height": 900})


def test_a_replay_that_cannot_be_trusted_says_why_and_has_no_sliders(lab: Lab) -> None:
    """Alone, and as an explorer's panel."""
    panel = "from hta_widgets import TraceExplorer\nTraceExplorer(trace, panels=['what_if'])"
    lab.open_code(CELL.format(path=str(shared_trace(ABSTAINS))), panel, name="what_if.ipynb")
    widgets = lab.page.locator(".hta-what-if")
    expect(widgets).to_have_count(2, timeout=60_000)
    for widget in widgets.all():
        expect(widget.get_by_role("status")).to_contain_text("simulated without changes", timeout=60_000)
        expect(widget.locator("input")).to_have_count(0)
    lab.shot("what-if-abstains", widgets.first)


@pytest.fixture(scope="module")
def explorer(lab: Lab) -> Locator:
    """One for the two tests below."""
    lab.open_code(EXPLORER.format(path=str(shared_trace(CONTROL))), name="what_if_panel.ipynb")
    explorer = lab.page.locator(".hta-explorer")
    expect(explorer.locator(TIMELINE)).to_be_visible(timeout=60_000)
    return explorer


@pytest.fixture
def panel(lab: Lab, explorer: Locator) -> Locator:
    """The panel in it, after its button was clicked; nothing is selected or changed."""
    lab.kernel(
        "(explorer.selection.clear(), setattr(explorer, 'edits', []), setattr(explorer, 'panels', []))"
    )
    expect(explorer.locator(".hta-what-if")).to_have_count(0)
    explorer.locator(".hta-panel-bar [data-kind=what_if]").click()
    panel = explorer.locator(".hta-panel[data-kind=what_if]")
    expect(panel.locator(".hta-what-if")).to_have_attribute("aria-busy", "false", timeout=60_000)
    return panel


def test_in_an_explorer_it_follows_the_selection(lab: Lab, panel: Locator) -> None:
    expect(panel.locator(".hta-what-if")).to_have_attribute("data-live", "true", timeout=10_000)
    slider(panel, "kernels").evaluate(MOVE, "150")
    lab.expect_kernel("[edit.expression for edit in explorer.edits]", ["edits.kernels(2.0)"])
    expect(panel.get_by_role("button", name="Copy Python")).to_be_enabled(timeout=10_000)
    lab.expect_kernel("explorer.what_if().equals(analysis.what_if(explorer.trace, edits.kernels(2.0)))", True)
    lab.shot("what-if-explorer-light")
    numbers = ast.literal_eval(lab.kernel("explorer.trace.iterations['iteration'].tolist()"))
    lab.kernel(f"setattr(explorer.selection, 'iterations', [{numbers[0]}])")
    expect(panel.locator(".hta-story p")).not_to_contain_text("The mean of")
    lab.shot("what-if-explorer-dark", dark=True)
    assert not serious_violations(panel)
    panel.get_by_role("button", name="Close panel").click()
    expect(lab.page.locator(".hta-what-if")).to_have_count(0)
    lab.expect_kernel("[edit.expression for edit in explorer.edits]", ["edits.kernels(2.0)"])
    lab.expect_no_errors()


def test_the_timeline_has_a_view_of_the_replay(lab: Lab, panel: Locator) -> None:
    bar = lab.page.locator(".hta-timeline-bar")
    switch, note = bar.get_by_role("group", name="Times"), bar.locator(".hta-timeline-note")
    recorded, replayed = (switch.get_by_role("button", name=name) for name in ("Recorded", "With changes"))
    expect(recorded).to_have_attribute("aria-pressed", "true")
    expect(note).to_have_count(0)
    timeline = "next(part for area, part in explorer.parts if area == 'timeline')"
    # without a change it says so, and shows what was recorded
    replayed.click()
    expect(note).to_have_text("As recorded: No change is chosen")
    lab.expect_kernel(f"{timeline}.times", "what_if")
    shown_times(lab, "recorded")
    # a slider moves the slices
    expect(panel.locator(".hta-what-if")).to_have_attribute("data-live", "true", timeout=10_000)
    slider(panel, "host").evaluate(MOVE, "150")
    view = shown_times(lab, "what_if")
    expect(note).to_have_text("Replayed times")
    # an event has both times
    event = ast.literal_eval(
        lab.kernel(
            "next((int(r.event_id), int(r.replayed_start_ns), int(r.start_ns)) for r in "
            "analysis.replayed_events(explorer.trace, explorer.edits).itertuples() "
            "if r.event_class == 'compute' and r.start_ns > r.replayed_start_ns)"
        )
    )
    lab.kernel(f"setattr(explorer.selection, 'focus', (explorer.trace.ranks[0], {event[0]}))")
    line = view.locator(".hta-timeline-focus")
    expect(line).to_contain_text(f"start {event[1]:,} ns")
    expect(line).to_contain_text(f"start {event[2]:,} ns")
    said = line.inner_text()
    assert said.index("what if: ") < said.index(f"{event[1]:,}") < said.index("recorded: ")
    # time is selected as it was recorded: not here
    canvas = view.locator(".hta-timeline")
    canvas.hover(position={"x": 400, "y": 200})  # which waits until it stands where it stays
    box = canvas.bounding_box()
    assert box is not None
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + 600, box["y"] + 200, steps=4)
    lab.page.mouse.up()
    expect(line).to_contain_text("select time in the recorded view")
    lab.expect_kernel("explorer.selection.window is None", True)
    # the path is the replay's
    bar.get_by_role("button", name="Critical path").click()
    expect(bar.locator(".hta-timeline-path")).to_contain_text("Of the whole replay:", timeout=10_000)
    lab.shot("timeline-what-if-light")
    lab.shot("timeline-what-if-dark", dark=True)
    # back by keyboard; Python switches, too
    recorded.focus()
    lab.page.keyboard.press("Enter")
    shown_times(lab, "recorded")
    expect(note).to_have_count(0)
    lab.expect_kernel(f"{timeline}.times", "recorded")
    expect(bar.locator(".hta-timeline-path")).not_to_contain_text("Of the whole replay")
    lab.shot("timeline-recorded-dark", dark=True)
    assert not serious_violations(lab.page.locator(".hta-explorer"))
    lab.kernel(f"setattr({timeline}, 'times', 'what_if')")
    shown_times(lab, "what_if")
    expect(replayed).to_have_attribute("aria-pressed", "true")
    lab.expect_no_errors()
