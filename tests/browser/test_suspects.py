"""Work that may be communication is counted as such by one click in the health list."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.lab import TIMELINE, Lab
from tests.widgets.exchanging_job import MARKUP, RING, write_job

pytestmark = pytest.mark.browser


def test_one_click_and_back(lab: Lab, tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", RING, MARKUP)
    lab.open_code(
        "from hta_widgets import TraceExplorer\n"
        f"explorer = TraceExplorer({str(job)!r}, panels=['temporal_breakdown'])\nexplorer"
    )
    root = lab.page.locator(".hta").first
    expect(lab.page.locator(TIMELINE).first).to_be_visible(timeout=60_000)
    health, sentence = root.locator(".hta-health"), root.locator(".hta-breakdown p").first
    legend = root.locator("[data-area=timeline] .hta-legend")
    before = sentence.inner_text()
    expect(legend).not_to_contain_text("communication")
    health.locator("summary").click()
    choices = health.get_by_role("button", name="Count as communication")
    expect(choices).to_have_count(2)
    lab.shot("suspects", root)
    choices.first.click()
    lab.expect_kernel("len(explorer.communication)", 1)
    expect(health).to_contain_text("counted as communication")
    expect(choices).to_have_count(1)
    expect(sentence).not_to_have_text(before)
    expect(legend).to_contain_text("communication")  # the timeline's colours, too
    expect(health.locator("pre")).to_contain_text('class = "communication"')
    lab.shot("suspects-counted", root)
    health.get_by_role("button", name="Undo").click()
    lab.expect_kernel("explorer.communication", ())
    expect(choices).to_have_count(2)
    expect(sentence).to_have_text(before)
    expect(legend).not_to_contain_text("communication")
    assert lab.page.evaluate("document.body.dataset.ran ?? null") is None
    assert lab.page.locator(".hta img[src=x]").count() == 0
    lab.expect_no_errors()
