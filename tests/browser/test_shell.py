"""The explorer's shell in a notebook: panels, clauses, search, undo and redo, help; by mouse and keyboard."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.four_ranks import CELLS
from tests.browser.lab import Lab

pytestmark = pytest.mark.browser


@pytest.fixture
def crumb(day: Lab, root: Locator) -> Locator:
    """The breadcrumb of an explorer with one panel."""
    day.kernel("setattr(explorer, 'panels', ['temporal_breakdown'])")
    expect(root.locator(".hta-panel")).to_have_count(1)
    crumb = root.locator(".hta-breadcrumb")
    expect(crumb.locator(".hta-clauses")).to_have_text("the whole job")
    crumb.scroll_into_view_if_needed()
    return crumb


def panel_button(lab: Lab, kind: str) -> Locator:
    return lab.page.locator(f".hta-panel-bar [data-kind={kind}]").first


def test_a_panel_opens_and_closes(day: Lab, crumb: Locator) -> None:
    button, panel = panel_button(day, "kernel_breakdown"), day.page.locator(".hta-panel")
    expect(panel).to_have_count(1)
    button.click()
    day.expect_kernel("explorer.panels", ("temporal_breakdown", "kernel_breakdown"))
    expect(panel).to_have_count(2)
    expect(panel.last.locator("h3")).to_be_focused()
    expect(button).to_have_attribute("aria-pressed", "true")
    panel.last.get_by_role("button", name="Close panel").click()
    day.expect_kernel("explorer.panels", ("temporal_breakdown",))
    expect(panel).to_have_count(1)
    expect(button).to_be_focused()
    day.kernel("setattr(explorer, 'panels', [])")
    expect(panel).to_have_count(0)


def test_panels_by_keyboard(day: Lab, crumb: Locator) -> None:
    first = panel_button(day, "temporal_breakdown")
    first.focus()
    day.page.keyboard.press("Enter")
    day.expect_kernel("explorer.panels", ())
    day.page.keyboard.press("ArrowRight")
    expect(first).not_to_be_focused()
    day.page.keyboard.press("ArrowLeft")
    expect(first).to_be_focused()
    day.page.keyboard.press("Space")
    day.expect_kernel("explorer.panels", ("temporal_breakdown",))
    expect(day.page.locator(".hta-panel h3")).to_be_focused()
    first.focus()
    day.page.keyboard.press("Home")
    expect(panel_button(day, "overview")).to_be_focused()


def test_clauses_are_dropped_undone_and_redone(day: Lab, crumb: Locator) -> None:
    day.kernel("setattr(explorer.selection, 'ranks', (0, 1))")
    day.kernel("setattr(explorer.selection, 'window', (4_560_000, 16_860_000))")
    clauses = crumb.locator(".hta-clause")
    expect(clauses).to_have_text([re.compile("ranks 0–1"), re.compile("12.3 ms from 4.56 ms")])
    clauses.first.get_by_role("button").click()
    day.expect_kernel("explorer.selection.ranks", ())
    # the focus has moved to the next clause, and keys work on
    day.page.keyboard.press("Delete")
    day.expect_kernel("explorer.selection.window", None)
    day.page.keyboard.press("Control+z")
    day.expect_kernel("explorer.selection.window", (4_560_000, 16_860_000))
    crumb.get_by_role("button", name="Undo").click()
    day.expect_kernel("explorer.selection.ranks", (0, 1))
    expect(clauses).to_have_count(2)
    day.shot("shell-clauses")
    day.page.keyboard.press("Shift+Control+z")
    day.expect_kernel("explorer.selection.ranks", ())
    # the notebook's own undo heard nothing
    assert day.page.locator(".jp-Cell").count() == len(CELLS)
    crumb.get_by_role("button", name="Undo").click()
    crumb.get_by_role("button", name="Clear").click()
    day.expect_kernel("explorer.selection.to_dict()", {})
    day.kernel("explorer.selection.undo()")
    day.expect_kernel("len(explorer.selection.to_dict())", 2)


def test_search_chooses_events(day: Lab, crumb: Locator) -> None:
    box = crumb.get_by_role("searchbox")
    box.click()
    day.page.keyboard.type("nccl? dd")  # keys that elsewhere open the help, or delete a cell
    day.expect_kernel("explorer.selection.query", "nccl? dd")
    box.fill("nccl")
    day.page.keyboard.press("Enter")
    day.expect_kernel("explorer.selection.query", "nccl")
    day.expect_kernel("{'nccl' in name.lower() for name in explorer.events['name']}", {True})
    day.page.keyboard.press("Escape")
    day.expect_kernel("explorer.selection.query", "")
    expect(box).to_have_value("")


def test_help_is_a_dialog(day: Lab, crumb: Locator) -> None:
    panel_button(day, "temporal_breakdown").focus()
    day.page.keyboard.press("?")
    dialog = day.page.get_by_role("dialog", name="Keys and gestures")
    expect(dialog).to_be_visible()
    day.shot("shell-help")
    close = dialog.get_by_role("button", name="Close")
    expect(close).to_be_focused()
    day.page.keyboard.press("Tab")
    assert not day.page.evaluate("document.activeElement.closest('.hta-panel-bar, .jp-Toolbar')")
    day.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(panel_button(day, "temporal_breakdown")).to_be_focused()
    crumb.get_by_role("button", name="Keys and gestures").click()
    close.click()
    expect(dialog).to_have_count(0)


def test_the_tour_has_five_steps_and_is_offered_once(day: Lab, crumb: Locator) -> None:
    page = day.page
    offer = page.get_by_role("button", name="Tour", exact=True)
    toast = page.locator(".hta-toast").first
    offer.click()
    for step, lit in enumerate(("story", "controls", "timeline", "aside", "panel-bar"), 1):
        expect(toast).to_contain_text(f"{step} of 5: ")
        expect(toast.locator("> div")).to_be_in_viewport(ratio=1)
        place = page.locator("[data-lit]")
        expect(place).to_have_count(1)
        expect(place).to_be_in_viewport()
        marks = (place.get_attribute("data-area") or "") + (place.get_attribute("class") or "")
        assert lit in marks
        if step == 3:
            toast.get_by_role("button", name="Back").click()
            expect(toast).to_contain_text("2 of 5: ")
            toast.get_by_role("button", name="Next").click()
        toast.get_by_role("button", name="Done" if step == 5 else "Next").click()
    expect(toast).to_have_text("")
    expect(page.locator("[data-lit]")).to_have_count(0)
    expect(offer).to_have_count(0)
    assert page.evaluate("localStorage.getItem('hta_widgets:tour:')") == "begun"
    # it can be taken again, and what happens out of sight ends it
    page.get_by_role("button", name="Go to", exact=True).first.click()
    page.keyboard.type("tour")
    page.keyboard.press("Enter")
    expect(toast).to_contain_text("1 of 5: ")
    toast.get_by_role("button", name="Dismiss").click()
    expect(page.locator("[data-lit]")).to_have_count(0)


def test_copied_code_brings_the_explorer_back(day: Lab, crumb: Locator) -> None:
    day.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    day.kernel("setattr(explorer.selection, 'ranks', (2,))")
    expect(crumb.locator(".hta-clause")).to_have_count(1)
    crumb.get_by_role("button", name="Copy code").click()
    expect(crumb.get_by_role("button", name="Copied")).to_be_visible()
    code = day.page.evaluate("navigator.clipboard.readText()")
    day.kernel(f"exec({code.replace('explorer', 'again')!r})")
    day.expect_kernel("again.selection.ranks", (2,))
    day.expect_kernel("again.panels", ("temporal_breakdown",))
    day.kernel("again.close()")
