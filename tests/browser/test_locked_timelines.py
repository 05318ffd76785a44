"""Timelines of several runs that move as one."""

import json
from ast import literal_eval

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.comparison import EXAMPLES, REST, VIEWS, moved, open_viewer, resting, views
from tests.browser.lab import TIMELINE, Lab, expect_view
from tests.browser.test_timeline import GUTTER
from tests.support import EVERY_CASE

pytestmark = pytest.mark.browser

FIRST_STREAM = 116  # of the first rank, CSS pixels from the timeline's top

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


@pytest.fixture(scope="module")
def opened(lab: Lab) -> Locator:
    """One viewer for the tests that take it, which stand together."""
    return open_viewer(lab)


@pytest.fixture
def viewer(lab: Lab, opened: Locator) -> Locator:
    to_rest(lab, opened)
    return opened


def to_rest(lab: Lab, viewer: Locator) -> None:
    """Nothing is selected, and the timelines, locked, show all of the first run."""
    lab.kernel(REST)
    lab.expect_kernel("any(part.status == 'busy' for _, part, _ in viewer.parts)", value=False)
    timelines = viewer.locator(TIMELINE)
    timelines.first.scroll_into_view_if_needed()
    timelines.first.press("0")
    resting(lab)


@pytest.mark.parametrize("align", ["step", "op"])
def test_locked_timelines_move_as_one(lab: Lab, viewer: Locator, align: str) -> None:
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


def test_the_same_kernel_in_the_other_run(lab: Lab, viewer: Locator) -> None:
    """A task of every day, done by one action."""
    lab.kernel(
        "globals().update(first=viewer.selections['gpt2_ddp'], "
        "other=viewer.selections['gpt2_fsdp_full_shard'], "
        "traces=viewer.traces, scrubber=next(part for area, part, _ in viewer.parts if area == 'timeline'))"
    )
    lab.kernel("globals().update(work=traces['gpt2_ddp'].events().query('rank == 0 and stream == 7'))")
    chosen = "work[work['name'].str.contains('gemm')].sort_values('start_ns').iloc[60]"
    number, name, start, end = literal_eval(
        lab.kernel(f"(lambda it: (int(it.event_id), it['name'], int(it.start_ns), int(it.end_ns)))({chosen})")
    )
    lanes = viewer.locator(TIMELINE).first
    lanes.scroll_into_view_if_needed()
    lab.kernel(f"setattr(scrubber, 'view', ({2 * start - end}, {2 * end - start}))")
    expect_view(lanes, 2 * start - end, 2 * end - start)
    lanes.hover()  # which waits until it stands where it stays
    box = lanes.bounding_box()
    assert box is not None
    lab.page.mouse.click(
        box["x"] + GUTTER + (box["width"] - GUTTER) / 2, box["y"] + FIRST_STREAM
    )  # one action
    lab.expect_kernel("first.focus", (0, number))
    lab.expect_kernel("other.focus is not None", True)
    events = "traces['gpt2_fsdp_full_shard'].events()"
    lab.expect_kernel(
        f"{events}.query('rank == 0 and event_id == ' + str(other.focus[1]))['name'].item()", name
    )
    lab.kernel(
        "globals().update(other_view=[part for area, part, _ in viewer.parts if area == 'timeline'][1], "
        f"twin={events}.query('rank == 0 and event_id == ' + str(other.focus[1])).iloc[0])"
    )
    inside = "bool({0}.view[0] < {1} and {2} < {0}.view[1])"
    lab.expect_kernel(inside.format("other_view", "twin.start_ns", "twin.end_ns"), True)
    lab.expect_kernel(inside.format("scrubber", start, end), True)
    expect(viewer.locator(".hta-timeline-focus").last).to_contain_text("duration")
    lab.shot("task-other-run")
    lab.expect_no_errors()


def test_a_pan_asks_the_kernel_no_more_than_it_must(lab: Lab, viewer: Locator) -> None:
    """Not once per movement of the mouse: a view inside what is known is not asked about."""
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


@pytest.fixture(scope="module")
def large(lab: Lab) -> Locator:
    code = f"{KERNEL_MODE}\nfrom hta_widgets import DiffViewer, examples\nviewer = DiffViewer({EXAMPLES})"
    lab.open_code(code, "viewer", name="diff.ipynb")
    viewer = lab.page.locator(".hta-diff")
    expect(viewer.locator("[data-mode=kernel][data-ready=true]")).to_have_count(2, timeout=60_000)
    lab.expect_kernel("all(part.status == 'idle' for _, part, _ in viewer.parts)", value=True, seconds=60)
    return viewer


@pytest.mark.parametrize("align", ["op", "step"] if EVERY_CASE else ["op"])
def test_very_large_timelines_are_locked_too(lab: Lab, large: Locator, align: str) -> None:
    page, viewer = lab.page, large
    to_rest(lab, viewer)
    lab.kernel(f"setattr(viewer, 'align', {align!r})")
    resting(lab)
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
