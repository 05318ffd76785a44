"""From the peak of memory to the moment of it: one click."""

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab
from tests.browser.test_inspector import open_explorer

pytestmark = pytest.mark.browser


def test_show_leads_from_the_peak_to_its_events(lab: Lab) -> None:
    root = open_explorer(lab)
    lab.kernel("selection.clear()")
    lab.kernel("setattr(explorer, 'panels', ('memory_owners', 'memory_timeline', 'events'))")
    panel = root.locator("[data-area=panel]").first
    note = panel.get_by_text("Rank 1, cuda:1: 2.29 GiB at")
    expect(note).to_be_visible(timeout=60_000)
    lab.shot("memory-panel-light", panel)
    note.locator("xpath=..").get_by_role("button", name="Show").click()
    lab.expect_kernel("explorer.selection.ranks", (1,))
    lab.expect_kernel("explorer.selection.names", ("aten::linear",))
    # the call that allocates as the peak is reached
    focused = "explorer.trace.events().set_index(['rank', 'event_id']).loc[explorer.selection.focus, 'name']"
    lab.expect_kernel(focused, "aten::empty")
    expect(root.locator(".hta-busy")).to_have_count(0, timeout=60_000)
    lab.shot("memory-panel-dark", panel, dark=True)
    lab.expect_no_errors()
