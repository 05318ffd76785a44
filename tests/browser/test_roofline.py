"""The roofline panel in JupyterLab: marks, list, brush, switch, and the peaks that a reader enters."""

import gzip
import json
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE, Lab
from tests.support import shared_trace

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import TraceExplorer
explorer = TraceExplorer({path!r}, panels=["roofline", "events"])
explorer
"""
QWEN = "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
NO_SHAPES = "hta/ns_resolution_trace"
FRAME = "explorer.frame('roofline')"


def show(lab: Lab, path: Path, name: str = "roofline.ipynb") -> Locator:
    lab.open_code(CELL.format(path=str(path)), name=name)
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    panel = lab.page.locator(".hta-panel[data-kind=roofline]")
    expect(panel.locator("section.hta-breakdown")).to_have_attribute("aria-busy", "false", timeout=60_000)
    return panel


def of_unknown_device(folder: Path) -> Path:
    """The same recording from a device that no datasheet is known of."""
    recording = json.loads(gzip.decompress(shared_trace(QWEN).read_bytes()))
    for device in recording["deviceProperties"]:
        device["name"] = "Future 1"
    path = folder / "future.json"
    path.write_text(json.dumps(recording))
    return path


def mark(panel: Locator, name: str) -> Locator:
    return panel.locator(f".hta-roofline .hta-bar-row[aria-label^='{name}:'], "
                         f".hta-roofline .hta-bar-row[aria-label^='{name},']").first  # fmt: skip


def field(panel: Locator, label: str) -> Locator:
    return panel.get_by_label(label, exact=True)


def test_marks_and_list_select_as_every_panel_does(lab: Lab) -> None:
    panel = show(lab, shared_trace(QWEN))
    marks = panel.locator(".hta-roofline .hta-bar-row")
    drawn = f"int(((f := {FRAME})['tflops_s'] > 0).mul(f['flops_per_byte'] > 0).sum())"
    expect(marks).to_have_count(int(lab.kernel(drawn)))
    # hover tells what the frame has
    product = mark(panel, "aten::mm")
    product.hover()
    tip = panel.locator(".hta-roof-tip")
    expect(tip).to_contain_text("624 TFLOP/s on 16-bit tensor")
    expect(tip).to_contain_text("63.1 % of the compute roof")
    expect(tip).to_contain_text("headroom 2.46 ms")
    lab.expect_kernel(f"int({FRAME}.set_index('name').loc['aten::mm', 'headroom_ns'])", 2_460_029)
    lab.shot("roofline-light", panel)
    # a click chooses the events, here and in the table of events
    product.locator("path").click()
    lab.expect_kernel("explorer.selection.names", ("aten::mm",))
    expect(product).to_have_attribute("aria-pressed", "true")
    chosen = panel.locator(".hta-roof-list tr[aria-selected=true]")
    expect(chosen).to_have_count(1)
    expect(chosen).to_contain_text("aten::mm")
    expect(lab.page.locator(".hta-panel[data-kind=events]")).to_contain_text(
        f"{int(lab.kernel('len(explorer.events)')):,}"
    )
    # the list chooses, too, what has no place in the chart
    panel.locator(".hta-roof-list tr", has_text="aten::copy_").click()
    lab.expect_kernel("explorer.selection.names", ("aten::copy_", "aten::mm"))
    product.focus()
    lab.page.keyboard.press("Enter")
    lab.expect_kernel("explorer.selection.names", ("aten::copy_",))
    lab.page.keyboard.press("Escape")
    lab.expect_kernel("explorer.selection.names", ())
    order = panel.locator(".hta-roof-list tbody td[data-column=name]").evaluate_all(
        "cells => cells.map(cell => cell.title)"
    )
    lab.expect_kernel(f"{FRAME}['name'].tolist() == {order!r}", True)
    assert not serious_violations(panel)
    lab.expect_no_errors()


def test_a_brush_chooses_what_lies_inside(lab: Lab) -> None:
    panel = show(lab, shared_trace(QWEN))
    area = panel.locator(".hta-roofline .hta-brush").bounding_box()
    mm, addmm = (mark(panel, name).locator("path").bounding_box() for name in ("aten::mm", "aten::addmm"))
    assert area
    assert mm
    assert addmm
    right = max(mm["x"] + mm["width"], addmm["x"] + addmm["width"]) + 4
    bottom = max(mm["y"] + mm["height"], addmm["y"] + addmm["height"]) + 4
    left, top = min(mm["x"], addmm["x"]) - 4, min(mm["y"], addmm["y"]) - 4
    lab.page.mouse.move(left, bottom)
    lab.page.mouse.down()
    lab.page.mouse.move((left + right) / 2, (top + bottom) / 2)
    expect(panel.locator(".hta-brushed")).to_be_visible()
    lab.page.mouse.move(right, top)
    lab.page.mouse.up()
    lab.expect_kernel("explorer.selection.names", ("aten::addmm", "aten::mm"))
    expect(panel.locator(".hta-brushed")).to_have_count(0)
    lab.shot("roofline-brushed", panel)
    # what is empty
    lab.page.mouse.dblclick(area["x"] + 3, area["y"] + 3)
    lab.expect_kernel("explorer.selection.names", ())
    lab.expect_no_errors()


def test_rows_can_be_kernels(lab: Lab) -> None:
    panel = show(lab, shared_trace(QWEN))
    panel.get_by_label("Rows").select_option("kernel")
    lab.expect_kernel("explorer._shown['roofline'].options", {"by": "kernel"})
    lab.expect_kernel(
        f"int({FRAME}['device_self_ns'].sum()) == int(explorer.frame('roofline', by='name')"
        "['device_self_ns'].sum())",
        True,
    )
    expect(panel.locator(".hta-roof-list tbody tr")).to_have_count(int(lab.kernel(f"len({FRAME})")))
    first = panel.locator(".hta-roofline .hta-bar-row").first
    first.locator("path").click()
    lab.expect_kernel("[name in explorer.trace.rank(0).names for name in explorer.selection.names]", [True])
    lab.shot("roofline-kernels", panel)
    note = panel.locator(".hta-notes")
    expect(note).to_contain_text("of device time has no formula")
    note.get_by_role("button", name="Show").click()
    lab.expect_kernel("explorer.panels", ("roofline", "events", "formula_coverage"))
    lab.expect_no_errors()


def test_peaks_can_be_entered(lab: Lab) -> None:
    panel = show(lab, shared_trace(QWEN))
    expect(panel.locator(".hta-peaks summary")).to_contain_text("H100 SXM NVIDIA H100 whitepaper")
    panel.locator(".hta-peaks summary").click()
    peak = field(panel, "Peak of 16-bit tensor, TFLOP/s")
    peak.fill("800")
    peak.press("Enter")
    entered = {"H100 SXM": {"tflops": {"tensor_16bit": 800.0}}}
    lab.expect_kernel("explorer.peaks", entered)
    lab.expect_kernel(f"round(float({FRAME}.set_index('name').loc['aten::mm', 'efficiency_pct']), 1)", 78.1)
    expect(panel.locator(".hta-roof-labels")).to_contain_text("16-bit tensor 800 TFLOP/s")
    achievable = field(panel, "Achievable of 16-bit tensor, TFLOP/s")
    achievable.fill("700")
    achievable.press("Enter")
    expect(panel.locator(".hta-roof-labels")).to_contain_text("achievable 700 TFLOP/s")
    lab.shot("roofline-peaks", panel)
    # what cannot be is refused where it is typed, and Python keeps what it has
    known = lab.kernel("explorer.peaks")
    for text, reason in (
        ("fast", "must be a number above 0"),
        ("-3", "must be a number"),
        ("900", "above its peak"),
    ):
        achievable.fill(text)
        achievable.press("Enter")
        expect(panel.get_by_role("alert")).to_contain_text(reason)
        expect(achievable).to_have_attribute("aria-invalid", "true")
    lab.shot("roofline-refused", panel)
    assert lab.kernel("explorer.peaks") == known
    panel.get_by_role("button", name="Back to the datasheet").click()
    lab.expect_kernel("explorer.peaks", {})
    expect(panel.get_by_role("alert")).to_have_count(0)
    # and Python's shows in the page
    lab.kernel("setattr(explorer, 'peaks', {'H100 SXM': {'memory_gb_s': 3000}})")
    expect(field(panel, "Bandwidth of memory, GB/s")).to_have_value("3000")
    lab.expect_no_errors()


def test_an_unknown_device_has_no_roofs_until_they_are_entered(lab: Lab, tmp_path: Path) -> None:
    panel = show(lab, of_unknown_device(tmp_path))
    expect(panel.locator(".hta-roofline .hta-bar-row").first).to_be_visible()
    expect(panel.locator(".hta-roof-line")).to_have_count(0)
    expect(panel.locator(".hta-peaks")).to_contain_text("No datasheet of this device is known")
    lab.shot("roofline-unknown", panel)
    peak = field(panel, "Peak of 16-bit tensor, TFLOP/s")
    peak.fill("1000")
    peak.press("Enter")
    expect(panel.get_by_role("alert")).to_contain_text("the bandwidth of memory is needed, too")
    lab.expect_kernel("explorer.peaks", {})
    memory = field(panel, "Bandwidth of memory, GB/s")
    memory.fill("4000")
    memory.press("Enter")
    lab.expect_kernel(
        "explorer.peaks", {"Future 1": {"memory_gb_s": 4000.0, "tflops": {"tensor_16bit": 1000.0}}}
    )
    expect(panel.locator(".hta-roof-line")).to_have_count(2)
    lab.expect_kernel(f"round(float({FRAME}.set_index('name').loc['aten::mm', 'efficiency_pct']), 1)", 62.4)
    lab.expect_no_errors()


def test_without_shapes_it_says_what_to_record(lab: Lab) -> None:
    panel = show(lab, shared_trace(NO_SHAPES))
    expect(panel.get_by_role("status").first).to_contain_text("record_shapes=True")
    expect(panel.locator(".hta-peaks")).to_have_count(0)
    lab.shot("roofline-no-shapes", panel)


def test_dark_and_narrow(dark_lab: Lab) -> None:
    panel = show(dark_lab, shared_trace(QWEN))
    mark(panel, "aten::mm").hover()
    dark_lab.shot("roofline-dark", panel)
    assert not serious_violations(panel)
    dark_lab.page.set_viewport_size({"width": 420, "height": 900})
    dark_lab.shot("roofline-narrow", panel)
    dark_lab.page.set_viewport_size({"width": 1280, "height": 900})
