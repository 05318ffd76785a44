"""The explorer through a restart of its kernel, in JupyterLab's sidebar, and in Notebook 7."""

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import NOTEBOOK_7, READY, TIMELINE, Lab

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import TraceExplorer, examples
explorer = TraceExplorer(examples.path("ddp_4ranks"))
explorer
"""

RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"


def rank(lab: Lab, number: int) -> Locator:
    return lab.page.locator(".hta-rank-grid button").nth(number)


@pytest.fixture
def shown(lab: Lab) -> Lab:
    """The explorer in JupyterLab, with nothing selected."""
    lab.show(CELL, name="hosts.ipynb")
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    lab.kernel("explorer.selection.clear()")
    lab.errors.clear()  # those of a kernel that a test has ended
    return lab


def test_restart_leaves_a_clear_end(shown: Lab) -> None:
    lab = shown
    lab.page.evaluate(RESTART)
    lab.page.wait_for_function(READY, timeout=60_000)
    expect(lab.page.locator(".hta-kernel-gone")).to_have_count(1)
    rank(lab, 1).click()  # nobody answers, and nothing breaks
    lab.page.wait_for_timeout(300)
    lab.shot("restart")
    lab.expect_no_errors()
    lab.run_all()
    expect(lab.page.locator(".hta-kernel-gone")).to_have_count(0)
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    rank(lab, 1).click()
    lab.expect_kernel("explorer.selection.ranks", (1,))


# A second view of the output, moved to the right sidebar, which is made 420 px wide.
TO_SIDEBAR = """async () => {
  const { commands, shell } = window.jupyterapp;
  const notebook = shell.currentWidget;
  notebook.content.activeCellIndex = 0;
  await commands.execute('notebook:create-output-view');
  const view = [...shell.widgets('down')].find((widget) => widget.title.label === 'Output View');
  shell.add(view, 'right');
  shell.activateById(view.id);
  shell.expandRight();
  shell.activateById(notebook.id);
  await new Promise((go) => setTimeout(go, 500));
  const split = shell._hsplitPanel;  // JupyterLab has a handle for it, and no command
  split.setRelativeSizes(split.widgets.map((_, at) => [0, split.node.clientWidth - 420, 420][at]));
}"""


def test_in_jupyterlabs_sidebar(shown: Lab) -> None:
    """The same explorer in 420 px: the story on top, nothing wider than the bar, and all of it works."""
    lab = shown
    lab.page.evaluate(TO_SIDEBAR)
    sidebar = lab.page.locator("#jp-right-stack .hta-explorer")
    expect(sidebar.locator(".hta-story h2")).to_be_visible()
    expect(sidebar.locator(".hta-timeline")).to_have_count(1)
    lab.page.wait_for_function(
        "(el) => 360 < el.clientWidth && el.clientWidth <= 420 && el.scrollWidth <= el.clientWidth",
        arg=sidebar.element_handle(),
    )
    lab.shot("sidebar")
    sidebar.locator(".hta-rank-grid button").nth(1).click()
    lab.expect_kernel("explorer.selection.ranks", (1,))
    sidebar.locator("button.hta-seg").first.click()
    expect(sidebar.locator(".hta-advice").get_by_role("button", name="Back")).to_be_attached()
    expect(sidebar.locator(".hta-timeline")).to_be_in_viewport(ratio=0.5)
    lab.shot("sidebar-shown")
    lab.expect_no_errors()


def test_notebook_7(lab: Lab) -> None:
    """In a page of its own: JupyterLab, which takes seconds to start, stays in the other."""
    page = lab.page.context.new_page()
    seven = Lab(lab.server, page)
    seven.open_code(CELL, name="notebook_7.ipynb", app=NOTEBOOK_7)
    expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    rank(seven, 1).click()
    seven.expect_kernel("explorer.selection.ranks", (1,))
    seven.expect_kernel("set(explorer.events['rank'])", {1})
    seven.kernel("setattr(explorer.selection, 'ranks', (2,))")
    expect(rank(seven, 2)).to_have_attribute("aria-pressed", "true")
    seven.expect_no_errors()
    seven.shot("notebook-7")
    page.close()
