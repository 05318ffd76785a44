"""The roofline panel in JupyterLab: marks, list, brush, switch, and the peaks that a reader enters."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from hta_widgets import TraceExplorer
from tests.analysis.test_roofline import COPY, SIMT, SQUARE, TF32, US, opened, operator
from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE, Lab
from tests.browser.test_report import Reader

pytestmark = pytest.mark.browser

CELL = """
from hta_widgets import TraceExplorer
explorer = TraceExplorer({path!r}, panels=["roofline", "events"])
explorer
"""
FRAME = "explorer.frame('roofline')"
MM = f"{FRAME}.set_index('name').loc['aten::mm']"


def record(folder: Path, device: str = "NVIDIA A100-SXM4-40GB") -> Path:
    trace = opened(
        folder,
        operator("aten::mm", 1, TF32, 100 * US, *SQUARE),
        operator("aten::addmm", 2, TF32, 60 * US, [512], [512, 1024], [1024, 512]),
        operator("aten::bmm", 3, SIMT, 40 * US, [8, 64, 64], [8, 64, 64]),
        operator("aten::add", 4, COPY, 80 * US, *SQUARE),
        operator("aten::copy_", 5, COPY, 30 * US, *SQUARE),
        operator("aten::mine", 6, COPY, 90 * US),
        device=device,
    )
    return trace.rank(0).path


def show(lab: Lab, path: Path) -> Locator:
    lab.open_code(CELL.format(path=str(path)), name="roofline.ipynb")
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    panel = lab.page.locator(".hta-panel[data-kind=roofline]")
    expect(panel.locator(".hta-roofline")).to_be_visible(timeout=60_000)
    return panel


@pytest.fixture(scope="module")
def known(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Locator:
    return show(lab, record(tmp_path_factory.mktemp("known")))


@pytest.fixture
def panel(lab: Lab, known: Locator) -> Iterator[Locator]:
    known.scroll_into_view_if_needed()
    yield known
    lab.expect_no_errors()


def mark(panel: Locator, name: str) -> Locator:
    return panel.locator(f".hta-roofline .hta-bar-row[aria-label^='{name},']")


def field(panel: Locator, label: str) -> Locator:
    return panel.get_by_label(label, exact=True)


def enter(panel: Locator, label: str, text: str) -> None:
    field(panel, label).fill(text)
    field(panel, label).press("Tab")


def test_marks_and_list_select_as_every_panel_does(lab: Lab, panel: Locator) -> None:
    lab.kernel("setattr(explorer.selection, 'names', ())")
    expect(panel.locator(".hta-roofline .hta-bar-row")).to_have_count(4)
    product = mark(panel, "aten::mm")
    product.locator("path").hover()
    tip = panel.locator(".hta-roof-tip")
    expect(tip).to_contain_text("100 µs (25.0 % of device time)")
    expect(tip).to_contain_text("21.5 TFLOP/s on TF32 tensor")
    expect(tip).to_contain_text("13.8 % of the compute roof")
    expect(tip).to_contain_text("headroom 86.2 µs")
    lab.expect_kernel(f"round(float({MM}['headroom_ns']) / 1e3, 1)", 86.2)
    product.locator("path").click()
    lab.expect_kernel("explorer.selection.names", ("aten::mm",))
    expect(product).to_have_attribute("aria-pressed", "true")
    chosen = panel.locator(".hta-roof-list tr[aria-selected=true]")
    expect(chosen).to_contain_text("aten::mm")
    lab.expect_kernel("explorer.events['name'].tolist()", ["aten::mm"])
    # the list chooses, too, what has no place in the chart
    panel.locator(".hta-roof-list tr", has_text="aten::copy_").click()
    lab.expect_kernel("explorer.selection.names", ("aten::copy_", "aten::mm"))
    product.focus()
    expect(tip).to_contain_text("aten::mm")
    lab.page.keyboard.press("Enter")
    lab.expect_kernel("explorer.selection.names", ("aten::copy_",))
    lab.page.keyboard.press("Escape")
    lab.expect_kernel("explorer.selection.names", ())
    shown = panel.locator(".hta-roof-list tbody td[data-column=name]").all_inner_texts()
    lab.expect_kernel(f"{FRAME}['name'].tolist()", shown)
    assert not serious_violations(panel)


def test_a_brush_chooses_what_lies_inside(lab: Lab, panel: Locator) -> None:
    boxes = [mark(panel, name).locator("path").bounding_box() for name in ("aten::mm", "aten::addmm")]
    known = [box for box in boxes if box]
    assert len(known) == 2
    left, top = (min(box[side] for box in known) - 3 for side in ("x", "y"))
    right = max(box["x"] + box["width"] for box in known) + 3
    bottom = max(box["y"] + box["height"] for box in known) + 3
    lab.page.mouse.move(left, bottom)
    lab.page.mouse.down()
    lab.page.mouse.move((left + right) / 2, (top + bottom) / 2)
    expect(panel.locator(".hta-brushed")).to_be_visible()
    lab.page.mouse.move(right, top)
    lab.page.mouse.up()
    lab.expect_kernel("explorer.selection.names", ("aten::addmm", "aten::mm"))
    expect(panel.locator(".hta-brushed")).to_have_count(0)
    panel.locator(".hta-roofline .hta-brush").dblclick(position={"x": 4, "y": 4})
    lab.expect_kernel("explorer.selection.names", ())


def test_rows_can_be_kernels(lab: Lab, panel: Locator) -> None:
    panel.get_by_label("Rows").select_option("kernel")
    lab.expect_kernel(f"{FRAME}['name'].nunique()", 3)
    expect(panel.locator(".hta-roof-list tbody tr")).to_have_count(3)
    panel.locator(".hta-roofline .hta-bar-row path").first.click()
    lab.expect_kernel("explorer.selection.names", (TF32,))
    panel.get_by_label("Rows").select_option("name")
    lab.expect_kernel("[setattr(explorer.selection, 'names', ()), explorer.selection.names]", [None, ()])
    note = panel.locator(".hta-notes")
    expect(note).to_contain_text("22.5 % of device time has no formula")
    note.get_by_role("button", name="Show").click()
    lab.expect_kernel("explorer.panels", ("roofline", "events", "formula_coverage"))
    lab.kernel("setattr(explorer, 'panels', ('roofline', 'events'))")


def test_peaks_can_be_entered(lab: Lab, panel: Locator) -> None:
    expect(panel.locator(".hta-roof-list tbody tr")).to_have_count(5)
    summary = panel.locator(".hta-peaks summary")
    expect(summary).to_contain_text("A100 40GB NVIDIA A100 datasheet")
    summary.click()
    enter(panel, "Peak of TF32 tensor, TFLOP/s", "100")
    lab.expect_kernel("explorer.peaks", {"A100 40GB": {"tflops": {"tensor_tf32": 100.0}}})
    lab.expect_kernel(f"round(float({MM}['efficiency_pct']), 1)", 21.5)
    expect(panel.locator(".hta-roof-labels")).to_contain_text("TF32 tensor 100 TFLOP/s")
    enter(panel, "Achievable of TF32 tensor, TFLOP/s", "80")
    expect(panel.locator(".hta-roof-labels")).to_contain_text("achievable 80.0")
    # what cannot be is refused where it is typed, and Python keeps what it has
    before = lab.kernel("explorer.peaks")
    for text, reason in (("fast", "a number above 0"), ("-3", "a number above 0"), ("101", "above its peak")):
        enter(panel, "Achievable of TF32 tensor, TFLOP/s", text)
        expect(panel.get_by_role("alert")).to_contain_text(reason)
        expect(field(panel, "Achievable of TF32 tensor, TFLOP/s")).to_have_attribute("aria-invalid", "true")
    lab.shot("roofline-refused", panel)
    assert lab.kernel("explorer.peaks") == before
    panel.get_by_role("button", name="Back to the datasheet").click()
    lab.expect_kernel("explorer.peaks", {})
    expect(panel.get_by_role("alert")).to_have_count(0)
    # and Python's are shown in the page
    lab.kernel("setattr(explorer, 'peaks', {'A100 40GB': {'memory_gb_s': 3000}})")
    expect(field(panel, "Bandwidth of memory, GB/s")).to_have_value("3000")
    assert not serious_violations(panel)


def test_an_unknown_device_has_no_roofs_until_they_are_entered(dark_lab: Lab, tmp_path: Path) -> None:
    lab = dark_lab
    panel = show(lab, record(tmp_path, device="Future 1"))
    expect(panel.locator(".hta-roof-line")).to_have_count(0)
    expect(panel.locator(".hta-peaks")).to_contain_text("No datasheet of this device is known")
    lab.shot("roofline-unknown-dark", panel)
    enter(panel, "Peak of TF32 tensor, TFLOP/s", "200")
    expect(panel.get_by_role("alert")).to_contain_text("the bandwidth of memory is needed, too")
    lab.expect_kernel("explorer.peaks", {})
    enter(panel, "Bandwidth of memory, GB/s", "4000")
    lab.expect_kernel(
        "explorer.peaks", {"Future 1": {"memory_gb_s": 4000.0, "tflops": {"tensor_tf32": 200.0}}}
    )
    expect(panel.locator(".hta-roof-line")).to_have_count(2)
    lab.expect_kernel(f"round(float({MM}['efficiency_pct']), 1)", 10.7)
    assert not serious_violations(panel)
    lab.expect_no_errors()


def test_a_report_has_the_same_view(page: Page, tmp_path: Path) -> None:
    explorer = TraceExplorer(record(tmp_path), panels=["roofline"])
    path = explorer.to_html(tmp_path / "report.html")
    reader = Reader(page)
    reader.open(path)
    panel = page.locator(".hta-panel[data-kind=roofline]")
    expect(panel.locator(".hta-roofline .hta-bar-row")).to_have_count(4)
    expect(panel.locator(".hta-roof-line")).to_have_count(3)
    mark(panel, "aten::mm").locator("path").click()
    expect(page.locator(".hta-clauses")).to_contain_text("name mm")
    panel.locator(".hta-peaks summary").click()
    expect(field(panel, "Peak of TF32 tensor, TFLOP/s")).to_be_disabled()
    reader.expect_quiet()
