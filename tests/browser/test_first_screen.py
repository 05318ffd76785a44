"""The explorer's first screen: what comes first, the launcher, the wheel, the whole window."""

from ast import literal_eval
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import TIMELINE, Lab, eventually, open_panel

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import TraceExplorer, examples
explorer = TraceExplorer(examples.path("ddp_4ranks"))
explorer
"""
SCRUBBER = "dict(explorer.parts)['timeline']"
STORY = "dict(explorer.parts)['story']"
SCROLLED = "() => document.querySelector('.jp-WindowedPanel-outer').scrollTop"
TOPS = """(root) => ['.hta-header', '.hta-story', '.hta-controls', '.hta-timeline', '.hta-panels']
  .map((name) => root.querySelector(name).getBoundingClientRect().top)"""


@pytest.fixture(scope="module")
def first(lab: Lab) -> Iterator[Lab]:
    lab.page.set_viewport_size({"width": 1440, "height": 900})
    lab.open_code(CELL, name="first_screen.ipynb")
    expect(lab.page.locator(TIMELINE).first).to_be_visible(timeout=60_000)
    expect(lab.page.locator("button.hta-seg")).to_have_count(2, timeout=60_000)
    yield lab
    lab.expect_no_errors()
    lab.page.set_viewport_size({"width": 1280, "height": 900})


@pytest.fixture
def root(first: Lab) -> Locator:
    """An explorer at rest, at the top of the page: nothing is selected, all time is visible."""
    first.kernel(
        f"({STORY}.set_trait('shown', -1), explorer.selection.clear(), setattr(explorer, 'panels', []), "
        f"setattr({SCRUBBER}, 'view', explorer.trace.extent_ns))"
    )
    root = first.page.locator(".hta:has(> .hta-explorer)")
    expect(root.locator(".hta-panel")).to_have_count(0)
    first.page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollTo(0, 0)")
    return root


def in_order(root: Locator, lowest: int) -> None:
    """Part below part, and the timeline begins above this line."""
    tops = root.evaluate(TOPS)
    assert tops == sorted(tops)
    assert tops[3] < lowest


def test_the_story_comes_first(first: Lab, root: Locator) -> None:
    for width, height, lowest in ((1024, 700, 800), (1440, 900, 700)):
        first.page.set_viewport_size({"width": width, "height": height})
        expect(root.locator(".hta-checks")).to_be_in_viewport(ratio=1)
        eventually(partial(in_order, root, lowest))
    first.shot("first-screen")


def test_what_python_changes_needs_no_words(first: Lab, root: Locator) -> None:
    told = root.locator(".hta-toast")
    first.kernel("setattr(explorer, 'panels', ['temporal_breakdown', 'comm_comp_overlap'])")
    root.locator(".hta-panel").last.scroll_into_view_if_needed()
    root.locator(".hta-panel").last.hover()
    first.page.mouse.wheel(0, 2000)
    first.kernel("setattr(explorer.selection, 'ranks', (1,))")
    expect(root.locator(".hta-clause")).to_have_text(["rank 1×"])
    expect(told).to_be_empty()


def test_what_an_action_has_done_is_said_for_five_seconds(first: Lab, root: Locator) -> None:
    told = root.locator(".hta-toast")
    first.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    root.locator(".hta-launch").click()
    root.get_by_role("combobox", name="Panel, event name").fill("markdown")
    root.get_by_role("option").filter(has_text="Copy Markdown").first.click()
    expect(told).to_contain_text("Copy Markdown: copied.")
    first.page.mouse.move(5, 5)
    first.page.evaluate("() => document.activeElement.blur()")
    expect(told).to_be_empty(timeout=11_000)


# What people type, and what they mean.
FOUND_BY = {
    "html": "Save HTML report",
    "csv": "Events",
    "share": "Copy Markdown",
    "report": "Save HTML report",
    "compare": "Steps",
    "gpu util": "GPU utilization",
    "longest kernel": "Kernels",
    "slow": "Steps",
}


def test_the_launcher_goes_anywhere(first: Lab, root: Locator) -> None:
    open_panel(root, "memory bandwidth")
    first.expect_kernel("explorer.panels", ("memory_bandwidth",))
    expect(root.locator(".hta-panel h3")).to_be_focused()
    for text, label in FOUND_BY.items():
        root.locator(".hta-launch").click()
        root.get_by_role("combobox", name="Panel, event name").fill(text)
        expect(root.get_by_role("option").filter(has_text=label).first).to_be_visible()
        first.page.keyboard.press("Escape")
    root.locator(".hta-panel-bar button").first.focus()
    first.page.keyboard.press("Control+k")
    first.page.keyboard.type("rank 3")
    first.page.keyboard.press("Enter")
    first.expect_kernel("explorer.selection.ranks", (3,))
    root.locator(".hta-panel-bar button").first.focus()
    first.page.keyboard.press("/")
    first.page.keyboard.type("dataloader")
    choice = root.get_by_role(
        "option", name="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    ).last
    expect(choice).to_be_visible()
    choice.click()
    first.expect_kernel(
        "explorer.selection.names", ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",)
    )
    fold = root.locator(".hta-lacking")
    fold.locator("summary").click()
    expect(fold).to_contain_text("with_stack=True")
    assert "module_stacks" in literal_eval(first.kernel("list(explorer.lacking)"))


def test_the_page_scrolls_over_the_timeline_until_it_has_the_focus(first: Lab, root: Locator) -> None:
    lanes = root.locator(TIMELINE)
    first.kernel("setattr(explorer, 'panels', ['temporal_breakdown', 'comm_comp_overlap'])")
    expect(root.locator(".hta-panel")).to_have_count(2)
    root.locator("button.hta-seg").first.focus()
    lanes.hover(position={"x": 500, "y": 150})
    before = first.page.evaluate(SCROLLED)
    first.page.mouse.wheel(0, 100)
    first.page.wait_for_function(f"(before) => ({SCROLLED})() > before", arg=before)
    first.page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollTo(0, 0)")
    lanes.focus()
    lanes.hover(position={"x": 500, "y": 150})
    before = first.page.evaluate(SCROLLED)
    first.page.mouse.wheel(0, 100)
    view = f"{SCRUBBER}.view"
    first.page.keyboard.down("Control")
    first.page.mouse.wheel(0, -200)
    first.page.keyboard.up("Control")
    first.expect_kernel(f"{view}[1] - {view}[0] < 0.8 * (explorer.trace.extent_ns[1])", True)
    assert first.page.evaluate(SCROLLED) == before


def test_it_fills_the_window_and_escape_ends_that(first: Lab, root: Locator) -> None:
    root.get_by_role("button", name="Fill the window").click()
    expect(root).to_have_attribute("data-filled", "")
    first.page.wait_for_function(
        "(root) => root.getBoundingClientRect().top === 0", arg=root.element_handle()
    )
    first.shot("first-screen-filled")
    root.get_by_role("button", name="Fill the window").click()
    expect(root).not_to_have_attribute("data-filled", "")
