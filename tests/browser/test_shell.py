"""The explorer's shell in a notebook: panels, clauses, search, undo and redo, help; by mouse and keyboard."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import TIMELINE, Lab

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import TraceExplorer, examples
{name} = TraceExplorer(examples.path("ddp_4ranks"), panels=["temporal_breakdown"])
{name}
"""


@pytest.fixture(scope="module")
def shell(lab: Lab) -> Iterator[Lab]:
    lab.open_code(CELL.format(name="explorer"), name="shell.ipynb")
    expect(lab.page.locator(TIMELINE).first).to_be_visible(timeout=60_000)
    yield lab
    lab.expect_no_errors()


@pytest.fixture
def crumb(shell: Lab) -> Locator:
    """The breadcrumb of an explorer in which nothing is selected."""
    shell.kernel("(explorer.selection.clear(), setattr(explorer, 'panels', ['temporal_breakdown']))")
    crumb = shell.page.locator(".hta-breadcrumb").first
    expect(crumb.locator(".hta-clauses")).to_have_text("the whole job")
    crumb.scroll_into_view_if_needed()
    return crumb


def panel_button(lab: Lab, kind: str) -> Locator:
    return lab.page.locator(f".hta-panel-bar [data-kind={kind}]").first


def test_a_panel_opens_and_closes(shell: Lab, crumb: Locator) -> None:
    button, panel = panel_button(shell, "kernel_breakdown"), shell.page.locator(".hta-panel")
    expect(panel).to_have_count(1)
    button.click()
    shell.expect_kernel("explorer.panels", ("temporal_breakdown", "kernel_breakdown"))
    expect(panel).to_have_count(2)
    expect(panel.last.locator("h3")).to_be_focused()
    expect(button).to_have_attribute("aria-pressed", "true")
    panel.last.get_by_role("button", name="Close panel").click()
    shell.expect_kernel("explorer.panels", ("temporal_breakdown",))
    expect(panel).to_have_count(1)
    expect(button).to_be_focused()
    shell.kernel("setattr(explorer, 'panels', [])")
    expect(panel).to_have_count(0)


def test_panels_by_keyboard(shell: Lab, crumb: Locator) -> None:
    first = panel_button(shell, "temporal_breakdown")
    first.focus()
    shell.page.keyboard.press("Enter")
    shell.expect_kernel("explorer.panels", ())
    shell.page.keyboard.press("ArrowRight")
    expect(first).not_to_be_focused()
    shell.page.keyboard.press("ArrowLeft")
    expect(first).to_be_focused()
    shell.page.keyboard.press("Space")
    shell.expect_kernel("explorer.panels", ("temporal_breakdown",))
    expect(shell.page.locator(".hta-panel h3")).to_be_focused()
    first.focus()
    shell.page.keyboard.press("Home")
    expect(panel_button(shell, "overview")).to_be_focused()


def test_clauses_are_dropped_undone_and_redone(shell: Lab, crumb: Locator) -> None:
    shell.kernel("setattr(explorer.selection, 'ranks', (0, 1))")
    shell.kernel("setattr(explorer.selection, 'window', (4_560_000, 16_860_000))")
    clauses = crumb.locator(".hta-clause")
    expect(clauses).to_have_text([re.compile("ranks 0–1"), re.compile("12.3 ms from 4.56 ms")])
    clauses.first.get_by_role("button").click()
    shell.expect_kernel("explorer.selection.ranks", ())
    # the focus has moved to the next clause, and keys work on
    shell.page.keyboard.press("Delete")
    shell.expect_kernel("explorer.selection.window", None)
    shell.page.keyboard.press("Control+z")
    shell.expect_kernel("explorer.selection.window", (4_560_000, 16_860_000))
    crumb.get_by_role("button", name="Undo").click()
    shell.expect_kernel("explorer.selection.ranks", (0, 1))
    expect(clauses).to_have_count(2)
    shell.shot("shell-clauses")
    shell.page.keyboard.press("Shift+Control+z")
    shell.expect_kernel("explorer.selection.ranks", ())
    # the notebook's own undo heard nothing
    assert shell.page.locator(".jp-Cell").count() == 1
    crumb.get_by_role("button", name="Undo").click()
    crumb.get_by_role("button", name="Clear").click()
    shell.expect_kernel("explorer.selection.to_dict()", {})
    shell.kernel("explorer.selection.undo()")
    shell.expect_kernel("len(explorer.selection.to_dict())", 2)


def test_search_chooses_events(shell: Lab, crumb: Locator) -> None:
    box = crumb.get_by_role("searchbox")
    box.click()
    shell.page.keyboard.type("nccl? dd")  # keys that elsewhere open the help, or delete a cell
    shell.expect_kernel("explorer.selection.query", "nccl? dd")
    box.fill("nccl")
    shell.page.keyboard.press("Enter")
    shell.expect_kernel("explorer.selection.query", "nccl")
    shell.expect_kernel("{'nccl' in name.lower() for name in explorer.events['name']}", {True})
    shell.page.keyboard.press("Escape")
    shell.expect_kernel("explorer.selection.query", "")
    expect(box).to_have_value("")


def test_help_is_a_dialog(shell: Lab, crumb: Locator) -> None:
    panel_button(shell, "temporal_breakdown").focus()
    shell.page.keyboard.press("?")
    dialog = shell.page.get_by_role("dialog", name="Keys and gestures")
    expect(dialog).to_be_visible()
    shell.shot("shell-help")
    close = dialog.get_by_role("button", name="Close")
    expect(close).to_be_focused()
    shell.page.keyboard.press("Tab")
    assert not shell.page.evaluate("document.activeElement.closest('.hta-panel-bar, .jp-Toolbar')")
    shell.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(panel_button(shell, "temporal_breakdown")).to_be_focused()
    crumb.get_by_role("button", name="Keys and gestures").click()
    close.click()
    expect(dialog).to_have_count(0)


def test_the_tour_has_five_steps_and_is_offered_once(shell: Lab, crumb: Locator) -> None:
    page = shell.page
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


def test_copied_code_brings_the_explorer_back(shell: Lab, crumb: Locator) -> None:
    shell.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shell.kernel("setattr(explorer.selection, 'ranks', (2,))")
    expect(crumb.locator(".hta-clause")).to_have_count(1)
    crumb.get_by_role("button", name="Copy code").click()
    expect(crumb.get_by_role("button", name="Copied")).to_be_visible()
    code = shell.page.evaluate("navigator.clipboard.readText()")
    shell.kernel(f"exec({code.replace('explorer', 'again')!r})")
    shell.expect_kernel("again.selection.ranks", (2,))
    shell.expect_kernel("again.panels", ("temporal_breakdown",))


def test_explorers_on_one_page_are_apart(lab: Lab) -> None:
    lab.open_code(CELL.format(name="one"), CELL.format(name="two"), name="two.ipynb")
    crumbs = lab.page.locator(".hta-breadcrumb")
    expect(crumbs).to_have_count(2, timeout=60_000)
    lab.kernel("setattr(one.selection, 'ranks', (1,))")
    expect(crumbs.first.locator(".hta-clause")).to_have_count(1)
    crumbs.last.scroll_into_view_if_needed()
    crumbs.last.get_by_role("button", name="Undo").focus()
    lab.page.keyboard.press("Control+z")
    crumbs.first.scroll_into_view_if_needed()
    crumbs.first.get_by_role("button", name="Undo").focus()
    lab.expect_kernel("one.selection.ranks", (1,))
    lab.page.keyboard.press("Control+z")
    lab.expect_kernel("one.selection.ranks", ())
    lab.expect_no_errors()
