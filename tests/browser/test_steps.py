"""The panel of steps: two clicks say which step is slow, on which rank, and why. How panels open; sharing."""

from ast import literal_eval

import pytest
from playwright.sync_api import Locator, expect

from hta_widgets.formatting import duration
from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE, Lab, eventually, open_panel

pytestmark = pytest.mark.browser

PANEL = "next(part for _, part in explorer.parts if getattr(part, 'kind', '') == 'step_parts')"
# How far the scope line lies below the top of what scrolls, and a heading below that line.
BELOW = """(kind) => {
  const heading = document.querySelector(`.hta-panel[data-kind="${kind}"] h3`).getBoundingClientRect();
  const scope = document.querySelector(".hta-scope");
  const scrolls = (el) =>
    el.scrollHeight > el.clientHeight && /auto|scroll/.test(getComputedStyle(el).overflowY);
  let frame = scope.parentElement;
  while (!scrolls(frame)) frame = frame.parentElement;
  const line = scope.getBoundingClientRect();
  return [line.top - frame.getBoundingClientRect().top, heading.top - line.bottom];
}"""
WIDE = """() => [...document.querySelectorAll('.hta-steps-beside *')]
  .filter((el) => {
    const { overflow, display } = getComputedStyle(el);
    return overflow === 'visible' && display !== 'inline' && el.scrollWidth > el.clientWidth + 1;
  })
  .map((el) => el.outerHTML.slice(0, 80))"""


def test_two_clicks_say_which_step_which_rank_and_why(day: Lab, root: Locator) -> None:
    open_panel(root, "steps")
    panel = root.locator(".hta-panel[data-kind=step_parts]")
    rows = panel.get_by_role("option")
    expect(rows).to_have_count(16)
    rows.filter(has_text="step 10 · rank 0").click()
    rows.filter(has_text="step 10 · rank 2").click()
    title = panel.locator(".hta-steps-title")
    expect(title).to_contain_text("Step 10, rank 2 is")
    asked = "analysis.step_difference(explorer.trace, (0, 10), (2, 10))['change_ns'].tolist()"
    *parts, whole = literal_eval(day.kernel(asked))
    assert sum(parts) == whole
    expect(title).to_contain_text(duration(whole))
    expect(panel.locator(".hta-difference > p").first).to_have_text(
        "The GPU computes 1.78 ms more and spends 1.81 ms less in exposed communication."
    )
    expect(panel.locator("[aria-selected=true]")).to_have_count(2)
    day.page.wait_for_function(f"() => ({WIDE})().length === 0")
    for dark in (False, True):
        day.use_theme(dark=dark)
        day.shot(f"steps-{'dark' if dark else 'light'}", panel)
        assert not serious_violations(panel, colours=dark)
    day.use_theme(dark=False)
    panel.get_by_role("button", name="Select them").click()
    day.expect_kernel("(explorer.selection.ranks, explorer.selection.iterations)", ((0, 2), (10,)))
    expect(rows).to_have_count(16)  # they are not filtered by what they select


def test_steps_by_keyboard_and_by_duration(day: Lab, root: Locator) -> None:
    open_panel(root, "steps")
    panel = root.locator(".hta-panel[data-kind=step_parts]")
    rows = panel.get_by_role("option")
    panel.get_by_role("button", name="By duration").click()
    longest = "analysis.step_parts(explorer.trace).sort_values('dur_ns', ascending=False, kind='stable')"
    rank, iteration = literal_eval(day.kernel(f"tuple({longest}[['rank', 'iteration']].iloc[0].tolist())"))
    expect(rows.first).to_contain_text(f"step {iteration} · rank {rank}")
    rows.first.focus()
    day.page.keyboard.press("Space")
    day.page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    day.page.keyboard.press("Enter")
    day.expect_kernel(f"len({PANEL}.pair)", 2)
    day.page.keyboard.press("Escape")
    day.expect_kernel(f"{PANEL}.pair", ())


def comes_to_the_top(day: Lab, root: Locator, kind: str) -> None:
    """The heading of the panel has the focus, right below the scope line, which is at the top itself."""
    expect(root.locator(f".hta-panel[data-kind={kind}] h3").first).to_be_focused()

    def stands() -> None:
        line, heading = day.page.evaluate(BELOW, kind)
        assert abs(line) <= 1, kind
        assert 0 <= heading <= 16, kind

    eventually(stands)


@pytest.mark.parametrize("way", ["launcher", "finding", "bar", "checks"])
def test_a_panel_opens_with_its_heading_at_the_top(day: Lab, root: Locator, way: str) -> None:
    if way == "launcher":
        for label, kind in (("Overview", "overview"), ("Events", "events"), ("Kernels", "kernel_breakdown")):
            open_panel(root, label)
            comes_to_the_top(day, root, kind)
    elif way == "finding":
        root.locator(".hta-advice").get_by_role("button", name="Open panel").click()
        comes_to_the_top(day, root, "stragglers")
    elif way == "bar":
        root.locator(".hta-panel-bar [data-kind=events]").click()
        comes_to_the_top(day, root, "events")
    else:
        root.get_by_role("button", name="All findings").click()
        comes_to_the_top(day, root, "overview")


def test_panels_side_by_side_have_headers_of_a_line_and_begin_at_the_same_height(
    day: Lab, root: Locator
) -> None:
    day.kernel("setattr(explorer, 'panels', ['temporal_breakdown', 'kernel_breakdown'])")
    headers = root.locator(".hta-panel .hta-head")
    bodies = root.locator(".hta-panel .hta-head + *")
    expect(headers).to_have_count(2)
    expect(root.locator(".hta-panel svg.hta-bars")).to_have_count(2)

    def side_by_side() -> None:
        boxes = [header.bounding_box() for header in headers.all()]
        assert [box["height"] for box in boxes if box] == [40, 40]
        assert len({box["y"] for box in boxes if box}) == 1
        assert len({body.bounding_box()["y"] for body in bodies.all()}) == 1  # type: ignore[index]

    eventually(side_by_side)
    cut = "(bars) => bars.filter((bar) => bar.querySelector('h3').scrollWidth > bar.clientWidth).length"
    assert headers.evaluate_all(cut) == 0


def test_it_is_shared_from_one_menu(day: Lab, root: Locator) -> None:
    day.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    menu = root.locator(".hta-header").get_by_role("button", name="Share")
    menu.click()
    day.page.get_by_role("menuitem", name="Copy Markdown").click()
    expect(root.get_by_role("button", name="Copied")).to_be_visible(timeout=30_000)
    copied = day.page.evaluate("() => navigator.clipboard.readText()")
    assert copied == literal_eval(day.kernel("explorer.to_markdown()"))
    for item, name in (("Save HTML report", "ddp_4ranks.html"), ("Save Excel workbook", "ddp_4ranks.xlsx")):
        with day.page.expect_download() as saved:
            root.locator(".hta-header .hta-menu > button").click()
            day.page.get_by_role("menuitem", name=item).click()
        assert saved.value.suggested_filename == name
        expect(root.get_by_role("button", name="Saved")).to_be_visible()
        expect(menu).to_be_visible()
    menu.click()
    day.page.get_by_role("menuitem", name="Copy image").click()
    expect(root.get_by_role("button", name="Copied")).to_be_visible()
    assert day.page.evaluate("() => navigator.clipboard.read().then(([item]) => item.types)") == ["image/png"]


def test_a_held_key_zooms_as_fast_as_in_other_viewers(day: Lab, root: Locator) -> None:
    day.kernel("setattr(timeline, 'view', explorer.trace.extent_ns)")
    day.page.wait_for_timeout(300)
    root.locator(TIMELINE).first.focus()
    day.page.keyboard.down("w")
    day.page.wait_for_timeout(1000)
    day.page.keyboard.up("w")
    width = "timeline.view[1] - timeline.view[0]"
    day.expect_kernel(f"{width} < 15_000_000", True)  # of 76 ms; about 5 ms where the machine is idle
    before = literal_eval(day.kernel(width))
    day.page.wait_for_timeout(500)
    day.expect_kernel(width, before)  # it ends with the key
