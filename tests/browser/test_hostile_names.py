"""Names that would run or turn the sentence around them, in every panel of a report and in a live viewer."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from hta_widgets import DiffViewer, TraceExplorer, WhatIf, edits
from hta_widgets.widgets.panels import available_panels
from tests.browser.hostile import HOSTILE, MARKUP, TURNED, TURNING, UNSEEN, expect_harmless, hostile_copy
from tests.browser.lab import TIMELINE, Lab
from tests.browser.test_report import Reader

pytestmark = pytest.mark.browser

KINDS = [entry["kind"] for entry in available_panels()]


@pytest.fixture(scope="module")
def reader(page: Page) -> Reader:
    return Reader(page)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_copy("gpt2_ddp", tmp_path_factory.mktemp("names") / f"job{TURNING.replace(chr(7), '')}")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_copy("gpt2_fsdp_full_shard", tmp_path_factory.mktemp("other") / "job")


def test_the_order_of_a_line_is_what_the_check_sees(reader: Reader) -> None:
    page = reader.page
    page.set_content(f"<p>kernel {TURNING} takes 5 ms</p>")
    assert page.evaluate(TURNED)
    page.set_content("<p>kernel é takes 5 ms</p>")
    assert not page.evaluate(TURNED)


def test_every_panel_of_a_report(reader: Reader, trace: Path, tmp_path: Path) -> None:
    explorer = TraceExplorer(trace, panels=KINDS, edits=[edits.kernels(2.0, name=f"*{HOSTILE}")])
    events = explorer.wait().events
    first = events[events["name"].str.endswith(HOSTILE)].iloc[0]
    explorer.selection.focus = (int(first["rank"]), int(first["event_id"]))
    reader.open(explorer.to_html(tmp_path / "report.html", title=f"Job {HOSTILE}"))
    page = reader.page
    expect(page.locator(TIMELINE)).to_be_visible(timeout=30_000)
    expect(page.locator(".hta-panel")).to_have_count(len(KINDS))
    # the tables; by a click of the page's own, for one of a mouse has to find its place in 55,000 elements
    page.locator(".hta-panel summary").evaluate_all("all => all.forEach(summary => summary.click())")
    assert TURNING[:5] not in page.title() and "\\u202e" in page.title()
    expect(page.locator(".hta-inspector")).to_contain_text("\\u202eevil\\x07")
    for kind in ("operators", "kernel_breakdown", "events", "what_if"):
        expect(page.locator(f".hta-panel[data-kind={kind}]")).to_contain_text("\\u202eevil\\x07")
    expect_harmless(page)
    reader.expect_quiet()
    explorer.close()


def test_what_if_alone(reader: Reader, trace: Path, tmp_path: Path) -> None:
    widget = WhatIf(trace, edits=[edits.kernels(2.0, name=f"*{HOSTILE}")])
    reader.open(widget.to_html(tmp_path / "what_if.html"))
    expect(reader.page.locator(".hta-what-if code")).to_contain_text("img src")
    expect_harmless(reader.page)
    reader.page.get_by_role("button", name="Drop").click()
    expect(reader.page.locator(".hta-what-if")).to_have_attribute("data-live", "true")
    for slider in reader.page.locator(".hta-what-if input[type=range]").all():
        slider.press("ArrowRight")
    expect_harmless(reader.page)
    reader.expect_quiet()
    widget.close()


def test_a_comparison_with_its_controls(reader: Reader, trace: Path, other: Path, tmp_path: Path) -> None:
    viewer = DiffViewer({f"a {HOSTILE}": trace, f"b {HOSTILE}": other})
    frame = viewer.frame("diff")
    line = frame[(frame["change"] == "added") & frame["line"].str.contains("evil", regex=False)].iloc[0]
    viewer.line = (line["kind"], line["line"])
    reader.open(viewer.to_html(tmp_path / "runs.html"))
    page = reader.page
    expect(page.locator(TIMELINE)).to_have_count(2, timeout=30_000)
    expect(page.locator(".hta-runs li").first).to_contain_text("\\u202eevil\\x07")
    expect(page.locator(".hta-highlighted")).to_contain_text("\\u202eevil\\x07")
    expect_harmless(page)
    reader.expect_quiet()
    viewer.close()


LIVE = (
    """
from hta_widgets import DiffViewer, TraceExplorer, WhatIf, edits
from tests.browser.hostile import HOSTILE
explorer = TraceExplorer({job!r}, panels=["what_if", "events", "operators"])
explorer.wait()
events = explorer.events
first = events[events["name"].str.endswith(HOSTILE)].iloc[0]
explorer.selection.focus = (int(first["rank"]), int(first["event_id"]))
explorer
""",
    """
what_if = WhatIf({job!r}, edits=[edits.kernels(2.0, name="*" + HOSTILE)])
what_if
""",
    """
viewer = DiffViewer({{"a " + HOSTILE: {job!r}, "b " + HOSTILE: {other!r}}})
viewer
""",
)


def test_a_live_notebook(lab: Lab, trace: Path, other: Path) -> None:
    """The inspector, What if with its sliders and edits, and a comparison with its controls."""
    lab.open_code(*(cell.format(job=str(trace), other=str(other)) for cell in LIVE), name="hostile.ipynb")
    page = lab.page
    cells = page.locator(".jp-CodeCell")
    explorer, alone, runs = cells.nth(0), cells.nth(1), cells.nth(2)
    expect(explorer.locator(TIMELINE)).to_be_visible(timeout=60_000)
    name = explorer.locator(".hta-inspector-name")
    expect(name).to_contain_text("\\u202eevil\\x07", timeout=30_000)
    expect(name).to_contain_text(MARKUP)
    expect(explorer.locator(".hta-panel[data-kind=operators]")).to_contain_text("\\u202eevil\\x07")
    expect_harmless_outputs(lab)
    expect(alone.locator(".hta-what-if")).to_contain_text("\\u202eevil\\x07")
    for slider in alone.locator("input[type=range]").all():
        slider.press("ArrowRight")
    expect_harmless_outputs(lab)
    expect(runs.locator(".hta-runs li").first).to_contain_text("\\u202eevil\\x07", timeout=60_000)
    lab.kernel("""(lambda line: setattr(viewer, "line", (line["kind"], line["line"])))(
        viewer.frame("diff").query("change == 'added' and line.str.contains('evil')", engine="python").iloc[0]
    )""")
    expect(runs.locator(".hta-highlighted")).to_contain_text("\\u202eevil\\x07", timeout=30_000)
    for control in runs.locator("select:visible").all():
        control.press("ArrowDown")
    expect_harmless_outputs(lab)
    lab.expect_no_errors()


def expect_harmless_outputs(lab: Lab) -> None:
    """As `expect_harmless`, of what the cells show: the rest of the page is JupyterLab's."""
    page = lab.page
    assert page.evaluate("document.body.dataset.ran ?? null") is None
    assert page.locator(".jp-OutputArea img:not([src^=data])").count() == 0
    assert page.locator(".jp-OutputArea a[href^=javascript]").count() == 0
    for look in (UNSEEN, TURNED):
        of_outputs = look.replace("document.body", "root")
        found = page.evaluate(
            "() => [...document.querySelectorAll('.jp-OutputArea-output')].flatMap("
            f"(root) => ({of_outputs.replace('() =>', '(root) =>', 1)})(root))"
        )
        assert found == []
