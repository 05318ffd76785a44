"""A notebook saved with its widgets' state, opened again with a kernel that knows nothing of them."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.lab import TIMELINE, Lab

pytestmark = pytest.mark.browser

NAME = "saved.ipynb"
CELL = """
from hta_widgets import TraceExplorer, examples
explorer = TraceExplorer(examples.path("ddp_4ranks"), panels=["overview", "temporal_breakdown", "events"])
explorer
"""
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"

# Settings | Save Widget State Automatically
TOGGLE = "() => window.jupyterapp.commands.execute('@jupyter-widgets/jupyterlab-manager:saveWidgetState')"

STATE = "application/vnd.jupyter.widget-state+json"


@pytest.fixture
def saving(lab: Lab) -> Iterator[Lab]:
    """JupyterLab that saves widgets with the notebook."""
    lab.open_code("pass", name=NAME)
    lab.page.evaluate(TOGGLE)
    yield lab
    lab.page.evaluate(TOGGLE)


def test_the_last_state_is_shown_without_a_kernel(saving: Lab) -> None:
    lab, page = saving, saving.page
    lab.open_code(CELL, name=NAME)
    expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    page.locator(".hta-rank-grid button").nth(1).click()
    lab.expect_kernel("explorer.selection.ranks", (1,))
    answer = page.locator(".hta-panel[data-kind=temporal_breakdown] p").first
    lab.kernel("explorer.snapshot()")  # waits for what is being computed
    expect(page.locator(".hta-busy")).to_have_count(0)
    sentence = answer.inner_text()
    first = page.locator(".hta-events [role=row][aria-rowindex='2']")
    expect(first).not_to_contain_text("…")  # it is there
    event = first.inner_text()
    page.evaluate(SAVE)
    saved = json.loads((lab.server.root / NAME).read_text())["metadata"]["widgets"][STATE]["state"]
    timeline = next(one["state"] for one in saved.values() if one["state"].get("_view") == "timeline")
    assert timeline["_picture"]["saved"].startswith("data:image/webp")
    assert len(json.dumps(saved)) < 1_000_000

    lab.open(NAME)  # with a fresh kernel
    expect(page.locator(".hta-ended")).to_have_count(1, timeout=20_000)
    expect(page.locator(".hta-ended")).to_contain_text("No kernel answers here")
    expect(page.locator(".hta-rank-grid button").nth(1)).to_have_attribute("aria-pressed", "true")
    expect(answer).to_have_text(sentence)
    expect(page.locator(".hta-panel[data-kind=temporal_breakdown] svg.hta-bars")).to_be_visible()
    expect(first).to_have_text(event, use_inner_text=True)
    picture = page.locator("img.hta-timeline-saved")
    expect(picture).to_be_visible()
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalHeight)") > 300
    picture.scroll_into_view_if_needed()
    lab.shot("saved-notebook")
    lab.shot("saved-explorer", page.locator(".hta").first)
    page.locator(".hta-rank-grid button").nth(2).click()  # nobody answers, and nothing breaks
    page.wait_for_timeout(300)
    lab.expect_no_errors()

    lab.run_all()
    expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    expect(page.locator(".hta-ended")).to_have_count(0)


def test_a_snapshot_is_there_whatever_is_saved(lab: Lab) -> None:
    lab.open_code(CELL, "explorer.snapshot()", name=NAME)
    lab.page.evaluate(SAVE)
    lab.open(NAME)
    picture = lab.page.get_by_role("img", name="ddp_4ranks: 4 ranks")
    expect(picture).to_be_visible(timeout=20_000)
    picture.scroll_into_view_if_needed()
    lab.shot("saved-snapshot")
