"""The comparison of runs in JupyterLab: its numbers, its table, its looks."""

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.axe import serious_violations
from tests.browser.comparison import OTHER, REST, all_in_sight, moved, open_viewer, panel, tall_shot, views
from tests.browser.lab import TIMELINE, Lab, eventually
from tests.support import shared_trace

pytestmark = pytest.mark.browser

CHANGES = f"viewer.frame('step_waterfall').query('run == \\'{OTHER}\\'').change_ns.tolist()"

# From where to where a part's bar goes, in px.
BOXES = """marks => marks.map((mark) => {
  const { x, width } = mark.querySelector('rect:not(.hta-bar-hit)').getBBox();
  return [x, x + width];
})"""


def column(viewer: Locator, name: str) -> list[str]:
    """The exact values of a column of the table of lines, from the cells' tooltips."""
    cells = panel(viewer, "diff").locator(f"tbody td[data-column={name}]")
    texts: list[str] = cells.evaluate_all("cells => cells.map((cell) => cell.title)")
    return texts


def number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-").removesuffix(" ns"))


def test_three_runs_whose_names_are_long_and_markup(lab: Lab) -> None:
    """Each run after the first has parts that add up, rows in the table, and a timeline that follows."""
    names = ("<img src=x onerror=alert(1)>", "a run with a name that goes on and on " * 9, "c")
    paths = ("gpt2_baseline", "gpt2_ddp", OTHER)
    runs = ", ".join(f"{name!r}: examples.path({path!r})" for name, path in zip(names, paths, strict=True))
    viewer = open_viewer(lab, f"{{{runs}}}", timelines=3)

    # step stands below step: the longer runs reach beyond the shorter one on both sides
    def at_one_scale() -> None:
        widths = [end - start for start, end in all_in_sight(lab, names)]
        assert max(widths) - min(widths) < max(widths) / 50

    eventually(at_one_scale)
    expect(panel(viewer, "step_waterfall").locator("text.hta-bar-head")).to_have_count(2)
    rows = panel(viewer, "diff").locator("td[data-column=run]")
    assert set(rows.evaluate_all("cells => cells.map((cell) => cell.title)")) == set(names[1:])
    before = views(lab)
    viewer.locator(TIMELINE).nth(2).focus()
    for _ in range(4):
        lab.page.keyboard.press("Shift+W")
    moved(lab, lab.page, before)
    assert viewer.locator("img").count() == 0
    heights = viewer.locator(".hta-run").evaluate_all("all => all.map((run) => run.offsetHeight)")
    assert max(heights) < 32, "a name takes one line"
    lines = panel(viewer, "diff").locator("tbody tr")
    assert max(lines.evaluate_all("all => all.map((row) => row.offsetHeight)")) < 32
    size = lab.page.viewport_size
    assert size
    lab.page.set_viewport_size({"width": 600, "height": 900})
    lab.page.wait_for_function(
        "(viewer) => viewer.scrollWidth <= viewer.clientWidth", arg=viewer.element_handle()
    )
    tall_shot(lab, "diff-viewer-names")
    lab.page.set_viewport_size(size)
    lab.expect_no_errors()


def test_real_traces(lab: Lab) -> None:
    runs = [
        shared_trace(f"tracelens/{card}/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
        for card in ("h100", "mi300")
    ]
    viewer = open_viewer(lab, ", ".join(repr(str(run)) for run in runs) + ", names=('H100', 'MI300')")
    expect(viewer.locator(".hta-notice").first).to_be_visible()
    before = views(lab)
    viewer.locator(TIMELINE).first.focus()
    for _ in range(5):
        lab.page.keyboard.press("Shift+W")
    moved(lab, lab.page, before)
    lab.expect_no_errors()
    tall_shot(lab, "diff-viewer-real")


@pytest.fixture(scope="module")
def opened(lab: Lab) -> Iterator[Locator]:
    """One viewer for the tests of it, which stand together, and first that of how it opens."""
    yield open_viewer(lab)
    lab.use_theme(dark=False)


@pytest.fixture
def viewer(lab: Lab, opened: Locator) -> Locator:
    lab.kernel(REST)
    lab.kernel("viewer._panels['diff'].set_state({'sort': [], 'search': '', 'only_significant': False})")
    lab.expect_kernel("viewer.parts[0][1].shown, viewer._panels['diff'].status", (-1, "idle"))
    expect(opened.locator(".hta-highlighted")).to_have_count(0)
    return opened


def test_all_of_both_runs_is_in_sight_until_one_is_moved(lab: Lab, opened: Locator) -> None:
    """However unlike their lengths: here three steps stand beside one."""
    eventually(lambda: all_in_sight(lab, ("gpt2_ddp", "gpt2_fsdp_full_shard")))
    # another selection of one run pairs other steps, and says so to the browser at once
    before = views(lab)
    lab.kernel("setattr(viewer.selections['gpt2_ddp'], 'iterations', (12,))")
    after = moved(lab, lab.page, before)
    # B's first step stands below A's last
    a, b = (sum(view) / 2 for view in after)
    starts = [
        json.loads(lab.kernel(f"int(viewer.traces[{run!r}].iterations.start_ns.{which}())"))
        for run, which in (("gpt2_ddp", "max"), ("gpt2_fsdp_full_shard", "min"))
    ]
    assert abs((a - starts[0]) - (b - starts[1])) < 1_000_000


def test_the_parts_of_a_step_add_up_to_its_change(lab: Lab, viewer: Locator) -> None:
    expect(viewer.locator(".hta-runs > li")).to_contain_text(["gpt2_ddp", OTHER])
    chart = panel(viewer, "step_waterfall").locator("svg.hta-bars")
    expect(chart).to_be_visible(timeout=30_000)
    titles: list[str] = chart.locator(".hta-bar-row > title").evaluate_all(
        "all => all.map(e => e.textContent)"
    )
    drawn = [number(title.splitlines()[-1]) for title in titles]
    *parts, whole = json.loads(lab.kernel(CHANGES))
    assert drawn[-1] == whole == sum(parts)
    # what is too small to draw is told in words
    left = list(parts)
    for value in drawn[:-1]:
        left.remove(value)
    assert all(abs(value) < max(map(abs, parts)) / 1000 for value in left)
    boxes: list[list[float]] = chart.locator(".hta-bar-row").evaluate_all(BOXES)
    for upper, lower in pairwise(boxes[:-1]):
        assert min(abs(a - b) for a in upper for b in lower) < 1.1, "it begins where the one above ends"
    _has_a_bar_for_each_step_and_shows_where_they_differ(lab, viewer)
    lab.expect_no_errors()
    lab.shot("diff-viewer")


def _has_a_bar_for_each_step_and_shows_where_they_differ(lab: Lab, viewer: Locator) -> None:
    story = "viewer.parts[0][1]"
    bars = viewer.locator(".hta-run-bars .hta-segments")
    ends = bars.evaluate_all(
        "bars => bars.map((bar) => [bar.lastElementChild.getBoundingClientRect().right"
        " - bar.getBoundingClientRect().left, bar.clientWidth])"
    )
    lengths = json.loads(lab.kernel(f"[run['ns'] for run in {story}.content['runs']]"))
    for (end, width), ns in zip(ends, lengths, strict=True):
        assert abs(end - width * ns / max(lengths)) <= 4
    lanes = viewer.locator(TIMELINE).first
    change = viewer.get_by_role("button", name="Change 1: Exposed communication")
    change.click()
    place = json.loads(
        lab.kernel(f"[{story}.content['changes'][0]['places'][0][at] for at in ('start_ns', 'end_ns')]")
    )
    expect(lanes).to_have_attribute("data-place", f"{place[0]} {place[1]}")
    expect(lanes).to_be_in_viewport()
    begin, last = map(float, (lanes.get_attribute("data-view") or "").split())
    assert 0.3 <= (place[1] - place[0]) / (last - begin) <= 0.7
    lab.page.keyboard.press("Escape")
    expect(lanes).not_to_have_attribute("data-place", f"{place[0]} {place[1]}")
    expect(change).to_be_focused()


def test_lines_are_sorted_searched_and_chosen(lab: Lab, viewer: Locator) -> None:
    lines = panel(viewer, "diff")
    most_first = column(viewer, "line")
    heading = lines.locator("th[title=change_ns]")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    lab.expect_kernel(
        "dict((kind, part) for _, part, kind in viewer.parts)['diff'].sort", ["change_ns", True]
    )
    lab.page.wait_for_function(
        "(before) => document.querySelector('.hta-table td[data-column=line]').title !== before",
        arg=most_first[0],
    )
    changes = [number(text) for text in column(viewer, "change_ns")]
    assert changes == sorted(changes, reverse=True)

    every = lines.locator("tbody tr").count()
    lines.get_by_role("button", name="Only significant").click()
    expect(lines.locator("tbody tr")).not_to_have_count(every)
    assert set(column(viewer, "verdict")) == {"significant"}

    lines.get_by_role("searchbox").fill("allreduce")
    expect(lines.locator("tbody tr")).to_have_count(1)
    lines.get_by_role("searchbox").fill("no such line")
    expect(lines.locator("tbody tr")).to_have_count(0)
    lines.get_by_role("searchbox").fill("")
    expect(lines.locator("tbody tr").nth(1)).to_be_visible()

    # a click chooses the line in every run that has it, a second one lets it go
    row = lines.locator("tbody tr", has_text="AllGather")
    row.click()
    expect(row).to_have_attribute("aria-selected", "true")
    lab.expect_kernel(f"'AllGather' in str(viewer.selections[{OTHER!r}].names)", value=True)
    matches = viewer.locator(".hta-timeline-matches [role=status]")
    expect(matches.nth(1)).to_contain_text("matches")
    lab.expect_kernel(f"set(viewer.events.run) == {{{OTHER!r}}}", value=True)
    lab.shot("diff-viewer-line")
    row.click()
    lab.expect_kernel(f"viewer.line, viewer.selections[{OTHER!r}].names", (None, ()))
    # by keyboard: Tab reaches one row, arrows the others, Enter chooses
    row.focus()
    lab.page.keyboard.press("Home")
    lab.page.keyboard.press("ArrowDown")
    lab.page.keyboard.press("Enter")
    expect(lines.locator("tbody tr").nth(1)).to_have_attribute("aria-selected", "true")
    lab.expect_kernel("viewer.line[1]", column(viewer, "line")[1])
    lab.expect_no_errors()


def test_help_and_what_is_lit_up(lab: Lab, viewer: Locator) -> None:
    row = panel(viewer, "diff").locator("tbody tr", has_text="AllGather")
    row.click()
    lit = viewer.locator(".hta-highlighted")
    expect(lit).to_contain_text("AllGather")
    lab.shot("diff-viewer-lit", viewer.locator("section[aria-label=Timelines]"))
    lab.page.keyboard.press("?")
    dialog = viewer.page.locator("dialog.hta-help")
    expect(dialog.locator("h4")).to_have_text(["Everywhere", "Table of changes", "Timeline"])
    lab.shot("diff-viewer-help")
    lab.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(row).to_be_focused()
    lit.get_by_role("button").click()
    expect(lit).to_have_count(0)
    lab.expect_kernel(f"viewer.line, viewer.selections[{OTHER!r}].names", (None, ()))
    lab.expect_no_errors()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_accessible_in_both_themes(lab: Lab, viewer: Locator, dark: bool) -> None:
    lab.use_theme(dark=dark)
    panel(viewer, "diff").locator("tbody tr").first.click()
    assert not serious_violations(viewer, colours=dark)
    tall_shot(lab, f"diff-viewer-{'dark' if dark else 'light'}")
