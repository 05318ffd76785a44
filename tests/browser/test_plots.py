"""The line of utilization and the treemap of modules: their numbers, by mouse and by keyboard."""

import ast
import re

import pytest
from playwright.sync_api import Locator, expect

from hta_widgets.formatting import percent
from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE, Lab

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import TraceExplorer, examples
explorer = TraceExplorer(
    examples.path("single_gpu_dataloader_stall"), panels=["gpu_utilization", "module_stacks"]
)
explorer"""
IN_HEAD = {"x": 8, "y": 6}
IDLE = "float(explorer.frame('temporal_breakdown')['idle_pct'].iloc[0])"


@pytest.fixture(scope="module")
def shown(lab: Lab) -> tuple[Locator, Locator]:
    lab.open_code(CELL, name="plots.ipynb")
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    line, modules = (
        lab.page.locator(f".hta-panel[data-kind={kind}]") for kind in ("gpu_utilization", "module_stacks")
    )
    expect(line.locator(".hta-line").first).to_be_visible(timeout=60_000)
    expect(modules.locator(".hta-box").first).to_be_visible(timeout=60_000)
    return line, modules


def busy(lab: Lab) -> str:
    return percent(100.0 - float(lab.kernel(IDLE)))


def test_the_line_has_the_number_of_the_breakdown_also_in_what_a_drag_selects(
    lab: Lab, shown: tuple[Locator, Locator]
) -> None:
    line, modules = shown
    name = line.locator("svg.hta-lines text").filter(has_text="dashed: mean")
    expect(name).to_contain_text(busy(lab))
    expect(line).to_contain_text(f"Rank 0 is busy {busy(lab)} of")
    brush = line.locator(".hta-brush")
    brush.scroll_into_view_if_needed()
    box = brush.bounding_box()
    assert box is not None
    whole, middle = busy(lab), box["y"] + box["height"] / 2
    lab.page.mouse.move(box["x"] + 0.2 * box["width"], middle)
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + 0.35 * box["width"], middle, steps=4)
    lab.page.mouse.up()
    lab.expect_kernel("explorer.selection.window is not None", True)
    expect(name).not_to_contain_text(whole)
    expect(name).to_contain_text(busy(lab))
    start, end = ast.literal_eval(lab.kernel("tuple(explorer.selection.window)"))
    covered = (
        "explorer.frame('gpu_utilization')[['start_ns', 'end_ns']].agg({'start_ns': 'min', 'end_ns': 'max'})"
    )
    lab.expect_kernel(f"tuple(map(int, {covered}))", (start, end))
    assert not serious_violations(line) + serious_violations(modules)
    brush.press("Escape")
    lab.expect_kernel("explorer.selection.window", None)
    lab.expect_no_errors()


def test_areas_add_up_and_a_module_is_gone_into_by_keyboard_and_by_mouse(
    dark_lab: Lab, shown: tuple[Locator, Locator]
) -> None:
    lab = dark_lab
    _, modules = shown
    marks = modules.locator(".hta-bar-row")
    texts = marks.evaluate_all("(all) => all.map((mark) => mark.getAttribute('aria-label'))")
    tops = "explorer.frame('module_stacks').query('depth == 0').set_index('name')['device_ns']"
    whole, *of_tops = ast.literal_eval(lab.kernel(f"[int({tops}.sum()), *map(int, {tops})]"))
    shares = [percent(100.0 * ns / whole) for ns in of_tops]
    for share, module in zip(shares, ("GPT2LMHeadModel_0", "(outside modules)"), strict=True):
        assert any(text.startswith(f"{module}: ") and f", {share}" in text for text in texts), (share, texts)
    model = modules.get_by_role("button", name=re.compile("^GPT2LMHeadModel_0: "))
    model.focus()
    lab.page.keyboard.press("z")
    up = modules.get_by_role("button", name="Up")
    expect(up).to_be_visible()
    picture = modules.locator("svg.hta-bars")
    expect(picture).not_to_contain_text("(outside modules)")
    marks.first.focus()
    lab.page.keyboard.press("Escape")
    expect(up).to_have_count(0)
    # people pause between the two clicks: what the first one selects must not move what the second one is for
    model.scroll_into_view_if_needed()
    before = picture.bounding_box()
    model.click(position=IN_HEAD)
    expect(lab.page.locator(".hta-timeline-matches")).to_contain_text("matches")
    assert picture.bounding_box() == before
    lab.page.mouse.down(click_count=2)
    lab.page.mouse.up(click_count=2)
    expect(up).to_be_visible()
    lab.expect_kernel("explorer.selection.names", ())
    marks.first.press("Enter")
    lab.expect_kernel("explorer.selection.names", ("nn.Module: GPT2LMHeadModel_0",))
    assert not serious_violations(modules)
    lab.page.emulate_media(forced_colors="active")
    assert not serious_violations(modules)
    lab.shot("treemap-forced-colors", modules)
    lab.page.emulate_media(forced_colors="none")
    lab.expect_no_errors()
