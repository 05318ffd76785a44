"""From the peak of memory to the moment of it: one click."""

import pytest
from playwright.sync_api import expect

from tests.browser.lab import TIMELINE, Lab

pytestmark = pytest.mark.browser


def test_show_leads_from_the_peak_to_its_events(lab: Lab) -> None:
    lab.open_code(
        "from hta_widgets import TraceExplorer, examples\n"
        "panels = ('memory_owners', 'memory_timeline', 'events')\n"
        "explorer = TraceExplorer(examples.path('gpt2_ddp'), panels=panels)\nexplorer",
        name="memory_panel.ipynb",
    )
    root = lab.page.locator(".hta:has(> .hta-explorer)")
    expect(root.locator(TIMELINE)).to_be_visible(timeout=60_000)
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
    lab.use_theme(dark=True)
    lab.shot("memory-panel-dark", panel)
    lab.use_theme(dark=False)
    lab.expect_no_errors()
