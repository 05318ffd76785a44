"""The panel of a server's steps: a click on a step selects its time, until the next step begins."""

from ast import literal_eval

import pytest
from playwright.sync_api import expect

from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE, Lab

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import TraceExplorer, analysis, examples
explorer = TraceExplorer(examples.path("continuous_batching"), panels=["serving_steps"]).wait()
explorer
"""
STEP = "analysis.serving_steps(explorer.trace)[['start_ns', 'until_ns']].astype('int64').iloc[4].tolist()"
WINDOW = "explorer.selection.window"


def test_a_click_on_a_step_selects_its_time(lab: Lab) -> None:
    lab.open_code(CELL, name="serving.ipynb")
    expect(lab.page.locator(TIMELINE).first).to_be_visible(timeout=60_000)
    panel = lab.page.locator(".hta-panel[data-kind=serving_steps]")
    steps = panel.locator(".hta-bar-row")
    expect(steps.first).to_be_visible()
    expect(panel).to_contain_text("A decode step takes")
    lab.shot("serving-light", panel)
    lab.shot("serving-dark", panel, dark=True)
    assert not serious_violations(panel)
    start, until = literal_eval(lab.kernel(STEP))
    chosen = panel.locator(".hta-bar-row[aria-label^='iteration 4:']")
    chosen.click()
    lab.expect_kernel(WINDOW, (start, until))
    expect(steps).to_have_count(1)
    expect(steps).to_have_attribute("aria-pressed", "true")
    steps.press("Enter")
    lab.expect_kernel(WINDOW, None)
    lab.expect_no_errors()
