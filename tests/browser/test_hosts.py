"""The explorer in Notebook 7, and through what happens to it: reload, restart, a job of many ranks."""

import json
import time
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import LAB, NOTEBOOK_7, READY, TIMELINE, Lab
from tests.support import EVERY_CASE

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import TraceExplorer, examples
explorer = TraceExplorer(examples.path("ddp_4ranks"))
explorer
"""

RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"


def rank(lab: Lab, number: int) -> Locator:
    return lab.page.locator(".hta-rank-grid button").nth(number)


def show(lab: Lab, app: str = LAB) -> None:
    lab.open_code(CELL, name="hosts.ipynb", app=app)
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)


def test_notebook_7(lab: Lab) -> None:
    show(lab, NOTEBOOK_7)
    rank(lab, 1).click()
    lab.expect_kernel("explorer.selection.ranks", (1,))
    lab.expect_kernel("set(explorer.events['rank'])", {1})
    lab.kernel("setattr(explorer.selection, 'ranks', (2,))")
    expect(rank(lab, 2)).to_have_attribute("aria-pressed", "true")
    lab.expect_no_errors()
    lab.shot("notebook-7")


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


def test_in_jupyterlabs_sidebar(lab: Lab) -> None:
    """The same explorer in 420 px: the story on top, nothing wider than the bar, and all of it works."""
    show(lab)
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
    expect(sidebar.locator(".hta-timeline")).to_be_in_viewport()
    lab.shot("sidebar-shown")
    lab.expect_no_errors()


def test_reload_brings_the_explorer_back(lab: Lab) -> None:
    show(lab)
    rank(lab, 1).click()
    lab.expect_kernel("explorer.selection.ranks", (1,))
    lab.page.evaluate(SAVE)
    lab.page.reload()
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    lab.page.wait_for_function(READY, timeout=60_000)
    expect(rank(lab, 1)).to_have_attribute("aria-pressed", "true")
    rank(lab, 3).click()
    lab.expect_kernel("explorer.selection.ranks", (3,))
    lab.expect_no_errors()


def test_restart_leaves_a_clear_end(lab: Lab) -> None:
    show(lab)
    lab.page.evaluate(RESTART)
    lab.page.wait_for_function(READY, timeout=60_000)
    expect(lab.page.locator(".hta-kernel-gone")).to_have_count(1)
    rank(lab, 1).click()  # nobody answers, and nothing breaks
    lab.page.wait_for_timeout(500)
    lab.shot("restart")
    lab.expect_no_errors()
    lab.run_all()
    expect(lab.page.locator(".hta-kernel-gone")).to_have_count(0)
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    rank(lab, 1).click()
    lab.expect_kernel("explorer.selection.ranks", (1,))


RANKS = 1024 if EVERY_CASE else 256


def write_job(folder: Path, ranks: int) -> None:
    for number in range(ranks):
        late = number % 7
        events = [
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": "ProfilerStep#1",
                "pid": 1,
                "tid": 1,
                "ts": 0,
                "dur": 99,
            },
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10, "dur": 40 + late}
            | {"args": {"stream": 7, "device": 0}},
            {
                "ph": "X",
                "cat": "kernel",
                "name": "ncclDevKernel_AllReduce",
                "pid": 0,
                "tid": 7,
                "ts": 60 + late,
            }
            | {"dur": 30 - late, "args": {"stream": 7, "device": 0}},
        ]
        trace = {"distributedInfo": {"rank": number}, "traceEvents": events}
        (folder / f"rank{number}.json").write_text(json.dumps(trace))


def test_many_ranks(lab: Lab, tmp_path: Path) -> None:
    """The selector takes any rank by mouse and keyboard as soon as the job is read."""
    write_job(tmp_path, RANKS)
    lab.open_code(
        "from hta_widgets import TraceExplorer\n"
        f"explorer = TraceExplorer({str(tmp_path)!r}, panels=[])\nexplorer",
        name="ranks.ipynb",
    )
    expect(lab.page.locator(".hta-rank-grid button")).to_have_count(RANKS, timeout=120_000)
    rank(lab, 0).click()
    lab.expect_kernel("explorer.selection.ranks", (0,))
    started = time.monotonic()
    lab.page.keyboard.press("End")
    lab.page.keyboard.press("Enter")
    expect(rank(lab, RANKS - 1)).to_be_focused()
    expect(rank(lab, RANKS - 1)).to_be_in_viewport()
    lab.expect_kernel("explorer.selection.ranks", (RANKS - 1,))
    assert time.monotonic() - started < 5  # 0.5 s on an idle machine
    lab.page.keyboard.press("Shift+ArrowLeft")
    lab.expect_kernel("explorer.selection.ranks", (RANKS - 2, RANKS - 1))
    lab.expect_kernel(
        "explorer.frame('temporal_breakdown')['rank'].tolist()", [RANKS - 2, RANKS - 1], seconds=60
    )
    lab.expect_no_errors()
    lab.shot(f"ranks-{RANKS}")
