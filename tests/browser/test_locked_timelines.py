"""Timelines of several runs that move as one."""

import json

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.comparison import EXAMPLES, VIEWS, moved, open_viewer, views
from tests.browser.lab import TIMELINE, Lab, eventually

pytestmark = pytest.mark.browser

# How many pixels of a canvas have a colour: slices do, what lies behind them does not.
INK = """canvas => {
  const { data } = canvas.getContext('2d').getImageData(0, 84, canvas.width, canvas.height - 84);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    const rgb = data.subarray(at, at + 3);
    count += Math.max(...rgb) - Math.min(...rgb) > 60;
  }
  return count;
}"""

# Count the questions for what corresponds.
COUNT = """exec('''
viewer.asked, real = [], viewer._axes.anchors
def anchors(*given, **named):
    viewer.asked.append(given[1])
    return real(*given, **named)
viewer._axes.anchors = anchors
''', {'viewer': viewer})"""


@pytest.mark.parametrize("align", ["step", "op"])
def test_locked_timelines_move_as_one(lab: Lab, align: str) -> None:
    viewer = open_viewer(lab)
    page = lab.page
    lock = viewer.get_by_role("button", name="Lock timelines")
    expect(lock).to_have_attribute("aria-pressed", "true")
    viewer.get_by_label("align by").select_option(align)
    lab.expect_kernel("viewer.align", align)
    first, second = viewer.locator(TIMELINE).all()
    before = views(lab)
    first.focus()
    for _ in range(6):
        page.keyboard.press("Shift+W")
    zoomed = moved(lab, page, before)
    widths = [end - start for start, end in zoomed]
    assert abs(widths[0] - widths[1]) <= 2, "both have as many ns per pixel"
    page.keyboard.press("Shift+D")
    panned = moved(lab, page, zoomed)
    assert panned[0][0] > zoomed[0][0] and panned[1][0] > zoomed[1][0]
    second.focus()
    page.keyboard.press("Shift+A")
    back = moved(lab, page, panned)
    assert back[0][0] < panned[0][0], "either leads"

    # the cursor stands in both, at the same time
    def cursor(timeline: Locator) -> Locator:
        return timeline.locator(".hta-timeline-cursor")

    page.mouse.move(0, 0)
    expect(cursor(second)).to_be_hidden()
    first.scroll_into_view_if_needed()
    box = first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 120)
    for timeline in (first, second):
        expect(cursor(timeline)).to_be_visible()
    at = [cursor(timeline).evaluate("el => el.style.transform") for timeline in (first, second)]
    assert at[0] == at[1], "both have the same time there"
    lab.shot(f"diff-viewer-{align}")
    page.mouse.move(0, 0)
    expect(cursor(second)).to_be_hidden()

    lock.click()
    lab.expect_kernel("viewer.locked", value=False)
    rest = views(lab)
    first.focus()
    page.keyboard.press("Shift+D")
    lab.expect_kernel(f"{VIEWS}[0] != {rest[0]}", value=True)
    page.wait_for_timeout(500)  # in which the other would move
    assert views(lab)[1] == rest[1]
    lab.expect_no_errors()


def test_a_pan_asks_the_kernel_no_more_than_it_must(lab: Lab) -> None:
    """Not once per movement of the mouse: a view inside what is known is not asked about."""
    viewer = open_viewer(lab)
    page = lab.page
    first = viewer.locator(TIMELINE).first
    lab.kernel(COUNT)
    first.focus()
    for _ in range(3):
        page.keyboard.press("Shift+W")
    box = first.bounding_box()
    assert box
    middle = box["x"] + box["width"] / 2, box["y"] + 140
    page.keyboard.down("Shift")
    page.mouse.move(*middle)
    page.mouse.down()
    for step in range(60):
        page.mouse.move(middle[0] - 2 * step, middle[1])
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_timeout(500)
    assert int(lab.kernel("len(viewer.asked)")) <= 2
    lab.expect_no_errors()


# As for a job of millions of slices: they stay in the kernel, which answers windows of them.
KERNEL_MODE = """
from functools import partial
from hta_widgets.widgets import diff_viewer
diff_viewer.TimelineScrubber = partial(diff_viewer.TimelineScrubber, client_slices=10)
"""


@pytest.mark.parametrize("align", ["step", "op"])
def test_very_large_timelines_are_locked_too(lab: Lab, align: str) -> None:
    code = f"{KERNEL_MODE}\nfrom hta_widgets import DiffViewer, examples\nviewer = DiffViewer({EXAMPLES})"
    lab.open_code(code, f"viewer.align = {align!r}\nviewer", name="diff.ipynb")
    page, viewer = lab.page, lab.page.locator(".hta-diff")
    expect(viewer.locator("[data-mode=kernel][data-ready=true]")).to_have_count(2, timeout=60_000)
    lab.expect_kernel("all(part.status == 'idle' for _, part, _ in viewer.parts)", value=True, seconds=60)
    before = views(lab)
    first, second = viewer.locator(TIMELINE).all()
    first.focus()
    for _ in range(8):
        page.keyboard.press("Shift+W")
    zoomed = moved(lab, page, before)
    widths = [end - start for start, end in zoomed]
    assert abs(widths[0] - widths[1]) <= 2
    second.focus()
    page.keyboard.press("Shift+D")
    panned = moved(lab, page, zoomed)
    assert panned[0][0] > zoomed[0][0] and panned[1][0] > zoomed[1][0]
    # both got the slices of where they went, and light up a line
    for timeline in (first, second):
        page.wait_for_function(
            f"(canvas) => ({INK})(canvas) > 1000", arg=timeline.locator("canvas").first.element_handle()
        )
    viewer.locator(".hta-panel[data-kind=diff] tbody tr", has_text="gemm").first.click()
    expect(viewer.locator(".hta-timeline-matches [role=status]")).to_contain_text(["matches", "matches"])
    lab.shot(f"diff-viewer-kernel-{align}")
    lab.expect_no_errors()


def all_in_sight(lab: Lab, runs: tuple[str, ...]) -> list[list[int]]:
    """The views, which show all of each run."""
    shown = views(lab)
    for (start, end), run in zip(shown, runs, strict=True):
        first, last = json.loads(lab.kernel(f"list(map(int, viewer.traces[{run!r}].extent_ns))"))
        spare = (last - first) / 50  # a scrollbar that comes late
        assert start <= first + spare, run
        assert last - spare <= end, run
    return shown


def test_all_of_both_runs_is_in_sight_until_one_is_moved(lab: Lab) -> None:
    """However unlike their lengths: here three steps stand beside one."""
    lab.open_code(
        f"from hta_widgets import DiffViewer, examples\nviewer = DiffViewer({EXAMPLES})\n"
        "viewer.wait()\none = viewer.selections['gpt2_ddp']",
        "viewer",
        name="diff.ipynb",
    )
    viewer = lab.page.locator(".hta-diff")
    expect(viewer.locator(TIMELINE)).to_have_count(2, timeout=60_000)
    eventually(lambda: all_in_sight(lab, ("gpt2_ddp", "gpt2_fsdp_full_shard")))
    # another selection of one run pairs other steps, and says so to the browser at once
    before = views(lab)
    lab.kernel("setattr(one, 'iterations', (12,))")
    after = moved(lab, lab.page, before)
    # B's first step stands below A's last
    a, b = (sum(view) / 2 for view in after)
    starts = [
        json.loads(lab.kernel(f"int(viewer.traces[{run!r}].iterations.start_ns.{which}())"))
        for run, which in (("gpt2_ddp", "max"), ("gpt2_fsdp_full_shard", "min"))
    ]
    assert abs((a - starts[0]) - (b - starts[1])) < 1_000_000


def test_all_of_runs_with_longer_and_shorter_steps_is_in_sight(lab: Lab) -> None:
    """Step stands below step, at one scale: the longer runs reach beyond the shorter one on both sides."""
    names = ("gpt2_baseline", "gpt2_ddp", "gpt2_fsdp_full_shard")
    open_viewer(lab, ", ".join(f"examples.path({name!r})" for name in names), timelines=3)

    def at_one_scale() -> None:
        widths = [end - start for start, end in all_in_sight(lab, names)]
        assert max(widths) - min(widths) < max(widths) / 50

    eventually(at_one_scale)


# Every view that Python hears of; what corresponds is told late, as on a busy machine.
SLOWLY = """
import time
viewer.snapshot()
heard, real = [], viewer._axes.anchors
def anchors(*given, **named):
    time.sleep(0.6)
    return real(*given, **named)
viewer._axes.anchors = anchors
for at, part in enumerate(part for area, part, _ in viewer.parts if area == 'timeline'):
    part.observe(lambda change, at=at: heard.append([at, *change.new]), 'view')
"""


def test_two_displays_of_a_viewer_come_to_rest(lab: Lab) -> None:
    """Each locks its timelines and hears of the other's: what is rounded to ns must not go back and forth."""
    code = (
        f"from hta_widgets import DiffViewer, examples\nviewer = DiffViewer({EXAMPLES})\nviewer.align = 'op'"
    )
    lab.open_code(code + SLOWLY, "viewer", "viewer", name="diff.ipynb")
    timelines = lab.page.locator(".hta-diff").locator(TIMELINE)
    expect(timelines).to_have_count(4, timeout=60_000)
    before = views(lab)
    lab.kernel("heard.clear()")
    timelines.first.focus()
    for key in "wwwdda":
        lab.page.keyboard.press(key)
    rest = moved(lab, lab.page, before)
    lab.page.wait_for_timeout(1500)
    assert views(lab) == rest
    heard = json.loads(lab.kernel("heard"))
    leading = [view for run, *view in heard if run == 0 and view != before[0]]
    assert leading[-1] == rest[0]
    assert len(leading) <= len("wwwdda"), "what the hand moved is moved by nothing else"
    following = [view[0] for run, *view in heard if run == 1]
    back_and_forth = [now for now in following[:-1] if abs(now - rest[1][0]) <= 2]
    assert len(back_and_forth) <= 2, "each display may round once"
    lab.expect_no_errors()
