"""The selector of ranks in JupyterLab, of few ranks and many: searched, sorted, and by keys alone."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE, Lab
from tests.job.many_ranks import SLOW
from tests.support import EVERY_CASE

pytestmark = pytest.mark.browser

EXPLORER = """
from hta_widgets import TraceExplorer, analysis
explorer = TraceExplorer({path!r})
explorer
"""
PATIENCE = 400_000  # ms: a thousand ranks that were never read, on a busy machine
# a thousand once a week, and for pictures of the many
SIZES = (8, 1024, 64) if EVERY_CASE or os.environ.get("HTA_WIDGETS_SHOTS") else (8, 64)


def open_explorer(lab: Lab, job: Path) -> Locator:
    lab.show(EXPLORER.format(path=str(job)), name="picker.ipynb")
    explorer = lab.page.locator(".hta-explorer")
    expect(explorer.locator(TIMELINE)).to_be_visible(timeout=PATIENCE)
    picker = explorer.locator(".hta-ranks")
    expect(picker.locator("[data-outlier]")).to_have_count(1, timeout=PATIENCE)
    return picker


@pytest.fixture(scope="module")
def opened(lab: Lab, jobs: Callable[[int], Path]) -> Callable[[int], Locator]:
    """Opens a job of so many ranks, or unselects what is selected in it: tests of the same stand together."""
    known: list[int] = []

    def open_or_clear(ranks: int) -> Locator:
        if known[-1:] != [ranks]:
            known.append(ranks)
            return open_explorer(lab, jobs(ranks))
        lab.kernel("explorer.selection.clear()")
        return lab.page.locator(".hta-explorer .hta-ranks")

    return open_or_clear


@pytest.mark.parametrize("ranks", SIZES)
def test_the_slow_rank_is_marked_and_found(lab: Lab, opened: Callable[[int], Locator], ranks: int) -> None:
    picker, slow = opened(ranks), SLOW[ranks]
    buttons = picker.locator(".hta-rank-grid button")
    expect(buttons).to_have_count(ranks)
    place = 0 if ranks > 12 else slow
    expect(buttons.nth(place)).to_have_attribute("data-outlier", "true")
    expect(buttons.nth(place)).to_have_accessible_name(re.compile(f"^Rank {slow}: Compute.*stands out"))
    lab.page.set_viewport_size({"width": 1440, "height": 1000})
    try:
        explorer = lab.page.locator(".hta-explorer")
        expect(explorer.locator(".hta-story")).to_have_attribute("aria-busy", "false", timeout=PATIENCE)
        for dark in (False, True) if ranks > 12 else (False,):
            lab.use_theme(dark=dark)
            lab.shot(f"picker-{ranks}-{'dark' if dark else 'light'}")
            if ranks > 12:
                picker.get_by_role("button", name="Order").click()
                expect(picker.get_by_role("radiogroup", name="Sort by")).to_be_visible()
                expect(picker.get_by_text("Looking for groups")).to_have_count(0, timeout=60_000)
                lab.shot(f"picker-{ranks}-order-{'dark' if dark else 'light'}")
                assert not serious_violations(picker, colours=dark)
                lab.page.keyboard.press("Escape")
            if ranks > 48:
                strips = explorer.locator('.hta-panel[data-kind="temporal_breakdown"]')
                expect(strips.get_by_text(f"Each strip: {ranks:,} ranks")).to_be_visible(timeout=PATIENCE)
                bar = strips.get_by_role("button", name=re.compile(f"^Rank {slow}: Compute"))
                expect(bar).to_have_count(1)
                strips.scroll_into_view_if_needed()
                lab.shot(f"picker-{ranks}-strips-{'dark' if dark else 'light'}")
                explorer.locator(".hta-story").scroll_into_view_if_needed()
        lab.use_theme(dark=False)
        if ranks > 12:
            takes_the_last_as_quickly_as_the_first(lab, buttons, ranks)
        lab.expect_no_errors()
    finally:
        lab.page.set_viewport_size({"width": 1280, "height": 900})


def takes_the_last_as_quickly_as_the_first(lab: Lab, buttons: Locator, ranks: int) -> None:
    buttons.first.click()
    lab.expect_kernel("explorer.selection.ranks", (SLOW[ranks],))
    started = time.monotonic()
    lab.page.keyboard.press("End")
    lab.page.keyboard.press("Enter")
    expect(buttons.last).to_be_focused()
    expect(buttons.last).to_be_in_viewport()
    lab.expect_kernel("explorer.selection.ranks", (ranks - 1,))
    assert time.monotonic() - started < 5  # 0.5 s on an idle machine
    lab.page.keyboard.press("Shift+ArrowLeft")
    lab.expect_kernel("explorer.selection.ranks", (ranks - 2, ranks - 1))
    lab.expect_kernel(
        "explorer.frame('temporal_breakdown')['rank'].tolist()", [ranks - 2, ranks - 1], seconds=60
    )


def test_the_timeline_opens_on_some_ranks_and_others_are_added(
    lab: Lab, opened: Callable[[int], Locator]
) -> None:
    opened(64)
    bar = lab.page.locator(".hta-timeline-bar")
    menu = bar.get_by_role("button", name=re.compile("of 64 ranks$"))
    expect(menu).to_have_text("3 of 64 ranks")
    menu.click()
    listed = bar.locator(".hta-timeline-ranks li")
    expect(listed).to_have_count(3)
    expect(listed.filter(has_text="Rank 41")).to_contain_text("compute 1.46 ms, median")
    box = bar.get_by_role("textbox", name="Add ranks")
    box.fill("3, 50-51")
    box.press("Enter")
    expect(menu).to_have_text("6 of 64 ranks")
    shown = "sorted(set(explorer._fixed[3][1].lanes.query('shown')['rank']))"
    lab.expect_kernel(f"{{3, 41, 50, 51}} <= set({shown}) and len({shown})", 6)
    lab.shot("timeline-ranks-light")
    bar.get_by_role("button", name="Remove rank 50").click()
    expect(menu).to_have_text("5 of 64 ranks")
    # an event that is looked at has its lane
    lab.kernel("setattr(explorer.selection, 'focus', (60, 5))")
    expect(menu).to_have_text("6 of 64 ranks")
    bar.get_by_role("checkbox", name="All ranks").check()
    expect(menu).to_have_text("64 of 64 ranks")
    lab.kernel("setattr(explorer.selection, 'ranks', (1, 2))")
    expect(menu).to_have_text("2 of 64 ranks")
    lab.expect_no_errors()


def test_many_ranks_are_chosen_by_keys_alone(lab: Lab, opened: Callable[[int], Locator]) -> None:
    picker = opened(64)
    buttons = picker.locator(".hta-rank-grid button")
    order = picker.get_by_role("button", name="Order")
    order.focus()
    lab.page.keyboard.press("Enter")
    picker.get_by_role("radio", name="Waits caused").press("Space")
    # what it takes is asked of the kernel
    expect(buttons.first).to_have_accessible_name(re.compile("Waits caused"), timeout=20_000)
    expect(buttons.first).to_have_attribute("data-outlier", "true")
    lab.page.keyboard.press("Escape")
    expect(order).to_be_focused()
    box = picker.get_by_role("searchbox", name="Find ranks")
    box.fill("5, 30-32, 900")
    box.press("Enter")
    expect(buttons).to_have_count(4)
    picker.get_by_role("button", name="Select 4").press("Enter")
    lab.expect_kernel("explorer.selection.ranks", (5, 30, 31, 32))
    box.press("Escape")
    expect(buttons).to_have_count(64)
    buttons.first.press("Space")
    lab.expect_kernel("explorer.selection.ranks", (41,))
    lab.page.keyboard.press("Shift+ArrowRight")
    lab.expect_kernel("explorer.selection.ranks", (0, 41))
    lab.kernel("setattr(explorer.selection, 'ranks', (3,))")
    expect(picker.locator('[aria-pressed=true][aria-label^="Rank 3:"]')).to_have_count(1)
    box.fill("nobody")
    box.press("Enter")
    expect(picker.get_by_text("No rank is called that.")).to_be_visible()
    lab.expect_no_errors()
