"""An explorer of four ranks, which tests of several files share where one worker runs them in a row."""

from playwright.sync_api import Locator, expect

from tests.browser.lab import TIMELINE, Lab, show_all

NAME = "four_ranks.ipynb"
SHOW = """
from hta_widgets import Scope, TraceExplorer, analysis, examples
explorer = TraceExplorer(examples.path("ddp_4ranks"), panels=[]).wait()
explorer
"""
# what tests ask for by name
PARTS = """
import time
from hta_widgets.analysis.findings.story import story
while not explorer.parts: time.sleep(0.01)
parts = dict(explorer.parts)
timeline, inspector, told = parts["timeline"], parts["inspector"], parts["story"]
trace, selection = explorer.trace, explorer.selection
work = trace.events().query("rank == 0 and stream == 7").sort_values("start_ns")
"""
CELLS = (SHOW, PARTS)
REST = (
    "(told.set_trait('shown', -1), selection.clear(), setattr(explorer, 'panels', []), "
    "setattr(explorer, 'edits', []), setattr(timeline, 'view', trace.extent_ns))"
)


def show(lab: Lab) -> None:
    lab.show(*CELLS, name=NAME)
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    expect(lab.page.locator("button.hta-seg")).to_have_count(2, timeout=60_000)


def at_rest(lab: Lab) -> Locator:
    """The explorer, at the top of the page: nothing is selected or told, and all time is visible."""
    lab.kernel(REST)
    root = lab.page.locator(".hta:has(> .hta-explorer)")
    show_all(root.locator(TIMELINE))
    root.locator(TIMELINE).blur()
    expect(root.locator(".hta-panel")).to_have_count(0)
    expect(root.locator(".hta-clause")).to_have_count(0)
    lab.expect_kernel("told.status == 'idle' and not told.content['narrowed']", True)
    lab.page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollTo(0, 0)")
    return root
