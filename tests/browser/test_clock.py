"""The clock of the iterations is switched in the header of an open explorer."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import TIMELINE, Lab
from tests.support import shared_trace

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import TraceExplorer
explorer = TraceExplorer({path!r}, panels=["temporal_breakdown"])
explorer
"""


def bars(root: Locator) -> list[str]:
    return [str(bar.get_attribute("aria-label")) for bar in root.locator(".hta-step-strip button").all()]


def test_step_times_follow_the_clock(lab: Lab) -> None:
    lab.open_code(CELL.format(path=str(shared_trace("hta/ns_resolution_trace"))))
    root = lab.page.locator(".hta").first
    expect(lab.page.locator(TIMELINE).first).to_be_visible(timeout=60_000)
    header, choice = root.locator(".hta-facts"), root.get_by_label("What times the iterations")
    expect(header).to_contain_text("5, timed on the device")
    first = root.locator(".hta-step-strip button").first
    expect(first).to_have_attribute("aria-label", re.compile(r"97\.7 ms"))
    by_device = bars(root)
    lab.shot("clock-device", root)
    number = lab.kernel("int(explorer.trace.iterations['iteration'].iloc[0])")
    lab.kernel(f"setattr(explorer.selection, 'iterations', [{number}])")
    lab.kernel("setattr(explorer.parts[3][1], 'view', (0, 50_000_000))")
    expect(root.locator(".hta-step-strip button[aria-pressed=true]")).to_have_count(1)
    # by keyboard alone
    choice.focus()
    lab.page.keyboard.press("ArrowDown")
    lab.expect_kernel("explorer.clock", "host")
    expect(header).to_contain_text("5, timed on the host")
    expect(first).to_have_attribute("aria-label", f"Iteration {number}: 35.2 ms")  # to the next step's begin
    lab.expect_kernel("explorer.parts[3][1].status", "idle", seconds=30)
    expect(choice).to_be_focused()
    expect(root.locator(".hta-step-strip button[aria-pressed=true]")).to_have_count(1)
    # what was visible stays visible
    lab.expect_kernel("explorer.parts[3][1].view", (0, 50_000_000))
    expect(lab.page.locator(TIMELINE)).to_have_count(1)
    lab.shot("clock-host", root)
    # and from Python
    lab.kernel("setattr(explorer, 'clock', 'device')")
    expect(choice).to_have_value("device")
    expect(header).to_contain_text("5, timed on the device")
    expect(first).to_have_attribute("aria-label", by_device[0])
    assert bars(root) == by_device
    lab.shot("clock-dark", root, dark=True)
    lab.expect_no_errors()
