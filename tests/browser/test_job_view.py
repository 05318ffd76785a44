"""The Job view in JupyterLab, of few ranks and many: brushed, and from the culprit to the timeline."""

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from hta_widgets import JobView, examples
from tests.browser.axe import serious_violations
from tests.browser.lab import Lab, open_panel
from tests.browser.test_rank_picker import open_explorer
from tests.job.many_ranks import SLOW
from tests.support import EVERY_CASE

pytestmark = pytest.mark.browser

VIEW = """
from hta_widgets import JobView, analysis
view = JobView({path!r})
view
"""
# a thousand once a week, and for pictures of the many
SIZES = (1024, 64, 8) if EVERY_CASE or os.environ.get("HTA_WIDGETS_SHOTS") else (64, 8)


def show(lab: Lab, job: Path) -> Locator:
    lab.open_code(VIEW.format(path=str(job)), name="job.ipynb")
    view = lab.page.locator(".hta-job")
    expect(view).to_be_visible(timeout=60_000)
    expect(view).to_have_attribute("aria-busy", "false", timeout=120_000)
    expect(view.locator(".hta-job-matrix")).to_have_count(2)
    return view


@pytest.fixture(scope="module")
def opened(lab: Lab, jobs: Callable[[int], Path]) -> Callable[[int], Locator]:
    """Opens a job of so many ranks, unless it is open: tests of the same stand together."""
    known: list[int] = []

    def view(ranks: int) -> Locator:
        if known[-1:] != [ranks]:
            known.append(ranks)
            return show(lab, jobs(ranks))
        return lab.page.locator(".hta-job")

    return view


@pytest.mark.parametrize("ranks", SIZES)
def test_it_names_the_slow_rank(lab: Lab, opened: Callable[[int], Locator], ranks: int) -> None:
    view, slow = opened(ranks), SLOW[ranks]
    lab.page.set_viewport_size({"width": 1440, "height": 1500})
    try:
        expect(view.locator(".hta-job-sentence")).to_contain_text(f"Same kernels slower: rank {slow}.")
        cells = view.locator(".hta-job-grid button")
        expect(cells).to_have_count(ranks)
        culprit = view.locator(".hta-job-grid [data-culprit]")
        expect(culprit).to_have_attribute("data-rank", str(slow))
        # a row of its own, however many others share one
        compute = view.get_by_role("group", name="Compute by rank and iteration")
        own = f"view.frame('iterations').query('rank == {slow} and iteration == 0')['compute_ns'].item()"
        told = f"rank {slow}, iteration 0: {int(lab.kernel(own)) // 1000} µs compute"
        expect(compute.locator(f'[aria-label="{told}"]')).to_have_count(1)
        for dark in (False, True) if ranks > 8 else (False,):
            lab.use_theme(dark=dark)
            lab.shot(f"job-{ranks}-{'dark' if dark else 'light'}", view)
            assert not serious_violations(view, colours=dark)
        lab.use_theme(dark=False)
        lab.expect_no_errors()
    finally:
        lab.page.set_viewport_size({"width": 1280, "height": 900})


def test_brushes_select_ranks_and_iterations(lab: Lab, opened: Callable[[int], Locator]) -> None:
    view = opened(8)
    time = view.get_by_role("region", name="Rank by iteration")
    time.locator('[data-at="2 1"]').click()
    lab.expect_kernel("(view.ranks, view.iterations)", ((2,), (1,)))
    expect(view).to_have_attribute("aria-busy", "false", timeout=60_000)
    # all ranks stay, of the selected iteration
    expect(view.locator(".hta-job-grid button")).to_have_count(8)
    lab.expect_kernel("view.frame().equals(analysis.job_ranks(view.trace, view._question()))", True)
    time.locator('[data-at="2 1"]').click()
    lab.expect_kernel("(view.ranks, view.iterations)", ((), ()))
    time.locator('[data-at="1 0"]').drag_to(time.locator('[data-at="3 2"]'))
    lab.expect_kernel("(view.ranks, view.iterations)", ((1, 2, 3), (0, 1, 2)))
    time.locator('[data-at="3 2"]').press("ArrowUp")
    lab.page.keyboard.press("Enter")
    lab.expect_kernel("(view.ranks, view.iterations)", ((2,), (2,)))
    view.get_by_role("region", name="Who waits for whom").locator('[data-at="3 0"]').click()
    lab.expect_kernel("view.ranks", (3, 5))
    # the grid: one stop for Tab, arrows inside
    view.locator(".hta-job-grid button").nth(4).click()
    lab.page.keyboard.press("Shift+ArrowRight")
    lab.expect_kernel("view.ranks", (4, 5))
    lab.expect_no_errors()


def test_alone_it_has_the_headline_the_bar_and_advice(lab: Lab) -> None:
    lab.open_code(VIEW.format(path=str(examples.path("ddp_4ranks"))), name="job.ipynb")
    view = lab.page.locator(".hta-job")
    expect(view).to_have_attribute("aria-busy", "false", timeout=120_000)
    expect(view.locator(".hta-story h2")).to_have_text(ast.literal_eval(lab.kernel("view.story['headline']")))
    segment = view.get_by_role("button", name="Finding 1: Rank 2 is late")
    segment.click()
    expect(segment).to_have_attribute("aria-pressed", "true")
    advice = view.locator(".hta-advice")
    expect(advice).to_contain_text("Rank 2 computes longer")
    assert not serious_violations(view)
    segment.click()
    expect(advice).to_have_count(0)
    lab.expect_no_errors()


def test_its_report_begins_with_the_same_headline(page: Page, tmp_path: Path) -> None:
    view = JobView(examples.path("ddp_4ranks"))
    file = view.to_html(tmp_path / "job.html")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(file.as_uri())
    expect(page.locator("main[data-ready=true]")).to_be_visible()
    expect(page.locator("h2").first).to_have_text(view.story["headline"])
    page.get_by_role("button", name="Finding 1: Rank 2 is late").click()
    expect(page.locator(".hta-advice")).to_contain_text("Rank 2 computes longer")
    expect(page.locator(".hta-job-matrix")).to_have_count(2)
    if folder := os.environ.get("HTA_WIDGETS_SHOTS"):
        page.screenshot(path=Path(folder) / "job-report.png")
    view.close()


def test_from_the_culprit_to_the_timeline_and_back(lab: Lab, jobs: Callable[[int], Path]) -> None:
    open_explorer(lab, jobs(8))
    explorer = lab.page.locator(".hta-explorer")
    lab.kernel("(explorer.selection.clear(), setattr(explorer, 'panels', []))")
    expect(lab.page.locator(".hta-job")).to_have_count(0)  # computed once it is opened
    open_panel(lab.page, "job")
    view = lab.page.locator(".hta-job")
    expect(view).to_have_attribute("aria-busy", "false", timeout=60_000)
    lab.expect_kernel("explorer.frame('job').equals(analysis.job_ranks(explorer.trace))", True)
    view.get_by_role("button", name="Show rank 5 in the timeline").click()
    lab.expect_kernel("len(explorer.selection.ranks)", 2)
    ranks = ast.literal_eval(lab.kernel("explorer.selection.ranks"))
    assert SLOW[8] in ranks
    lab.expect_kernel("explorer.selection.focus[0]", SLOW[8])
    # the focused collective says who waits for it: the arrows are drawn from the same answer
    expect(explorer.locator(".hta-timeline-focus")).to_contain_text("wait for this one", timeout=20_000)
    lab.shot("job-culprit-light")
    view.get_by_role("button", name="Back from rank 5").click()
    lab.expect_kernel("(explorer.selection.ranks, explorer.selection.focus)", ((), None))
    lab.expect_no_errors()
