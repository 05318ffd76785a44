"""A notebook saved with its widgets or without, opened again with a kernel that knows nothing of them."""

import base64
import json
import re
from collections.abc import Iterator
from html import escape

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.comparison import EXAMPLES
from tests.browser.lab import TIMELINE, Lab, eventually

pytestmark = pytest.mark.browser

NAME = "saved.ipynb"
CELL = """
from hta_widgets import TraceExplorer, examples
explorer = TraceExplorer(examples.path("ddp_4ranks"), panels=["overview", "temporal_breakdown", "events"])
explorer
"""
AT_ONCE = "from hta_widgets.widgets import static_preview\nstatic_preview.REST_SECONDS = 0.2\n"
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"

PICTURE = ".hta-picture img"

RUN = """cell => {
  window.jupyterapp.shell.currentWidget.content.activeCellIndex = cell;
  return window.jupyterapp.commands.execute('notebook:run-cell');
}"""
CLEAR = "cell => window.jupyterapp.shell.currentWidget.content.widgets[cell].model.outputs.clear()"

# Settings | Save Widget State Automatically
TOGGLE = "() => window.jupyterapp.commands.execute('@jupyter-widgets/jupyterlab-manager:saveWidgetState')"

STATE = "application/vnd.jupyter.widget-state+json"


@pytest.fixture
def saving(lab: Lab) -> Iterator[Lab]:
    """JupyterLab that saves widgets with the notebook."""
    if not lab.is_open:
        lab.open_code("pass", name=NAME)
    lab.page.evaluate(TOGGLE)
    yield lab
    lab.page.evaluate(TOGGLE)


def test_the_last_state_is_shown_without_a_kernel(saving: Lab) -> None:
    lab, page = saving, saving.page
    lab.open_code(CELL, name=NAME)
    expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    page.locator(".hta-rank-grid button").nth(1).click()
    lab.expect_kernel("explorer.selection.ranks", (1,))
    answer = page.locator(".hta-panel[data-kind=temporal_breakdown] p").first
    lab.kernel("explorer.snapshot()")  # waits for what is being computed
    expect(page.locator(".hta-busy")).to_have_count(0)
    sentence = answer.inner_text()
    first = page.locator(".hta-events [role=row][aria-rowindex='2']")
    expect(first).not_to_contain_text("…")  # it is there
    event = first.inner_text()
    page.evaluate(SAVE)
    saved = json.loads((lab.server.root / NAME).read_text())["metadata"]["widgets"][STATE]["state"]
    timeline = next(item["state"] for item in saved.values() if item["state"].get("_view") == "timeline")
    assert timeline["_picture"]["saved"].startswith("data:image/webp")
    assert len(json.dumps(saved)) < 1_000_000

    lab.open(NAME, afresh=True)  # another day: in another page, with a fresh kernel
    expect(page.locator(".hta-kernel-gone")).to_have_count(1, timeout=20_000)
    expect(page.locator(".hta-kernel-gone")).to_contain_text("No kernel answers here")
    expect(page.locator(".hta-rank-grid button").nth(1)).to_have_attribute("aria-pressed", "true")
    expect(answer).to_have_text(sentence)
    expect(page.locator(".hta-panel[data-kind=temporal_breakdown] svg.hta-bars")).to_be_visible()
    expect(first).to_have_text(event, use_inner_text=True)
    picture = page.locator("img.hta-timeline-saved")
    expect(picture).to_be_visible()
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalHeight)") > 300
    picture.scroll_into_view_if_needed()
    lab.shot("saved-notebook")
    lab.shot("saved-explorer", page.locator(".hta").first)
    page.locator(".hta-rank-grid button").nth(2).click()  # nobody answers, and nothing breaks
    page.wait_for_timeout(300)
    lab.expect_no_errors()

    lab.run_all()
    expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    expect(page.locator(".hta-kernel-gone")).to_have_count(0)


def drawn(picture: Locator) -> str:
    """The SVG of a picture."""
    return base64.b64decode((picture.get_attribute("src") or "").partition("base64,")[2]).decode()


def expect_drawn(picture: Locator, words: str) -> None:
    """Wait until a picture has them: it follows the view some seconds later."""

    def has_them() -> None:
        assert words in drawn(picture)

    eventually(has_them, seconds=30)


def test_a_picture_stands_in_by_default_and_a_snapshot_stays(lab: Lab) -> None:
    """JupyterLab saves no widgets unless told to: the reader sees a picture of the last state instead."""
    page, picture = lab.page, lab.page.locator(PICTURE)
    lab.open_code(AT_ONCE + CELL, "explorer.snapshot()", name=NAME)
    expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    expect(picture).to_have_count(1, timeout=20_000)
    expect(picture).to_be_hidden()  # beside the live view nobody sees it
    assert "Selected: the whole job" in drawn(picture)
    headline = page.locator(".hta-story h2").inner_text()

    def has_the_story() -> None:
        assert " ".join(re.findall(r'font-size="18"[^>]*>([^<]*)', drawn(picture))) == escape(headline)
        assert drawn(picture).count("data-form=") == page.locator(".hta-segments > *").count() > 2

    eventually(has_the_story)
    page.locator(".hta-rank-grid button").nth(1).click()
    expect_drawn(picture, "Selected: ranks 1")
    page.evaluate(SAVE)
    saved = json.loads((lab.server.root / NAME).read_text())
    assert STATE not in saved["metadata"].get("widgets", {})
    live, still = saved["cells"][0]["outputs"]
    assert "application/vnd.jupyter.widget-view+json" in live["data"]
    assert len(json.dumps(still)) < 60_000

    lab.open(NAME)  # with a fresh kernel
    expect(picture).to_be_visible(timeout=20_000)
    missing = page.get_by_text("model not found")
    expect(missing).to_be_attached(timeout=20_000)
    expect(missing).to_be_hidden()  # the picture is there instead
    snapshot = page.locator("img[alt^='ddp_4ranks: 4 ranks']:not(.hta-picture *)")
    expect(snapshot).to_be_visible()
    assert snapshot.evaluate("image => image.naturalWidth") > 800
    lab.shot("saved-stand-in")
    (lab.server.root / NAME).write_text(json.dumps(saved | {"nbformat_minor": 4}))
    lab.open(NAME)  # as somebody else's, which is not trusted
    expect(picture).to_be_visible(timeout=20_000)
    lab.shot("saved-stand-in-untrusted")

    lab.run_all()
    expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    expect(picture).to_have_count(1, timeout=20_000)
    expect(picture).to_be_hidden()


def test_a_picture_stands_in_for_runs_side_by_side(lab: Lab) -> None:
    page, picture = lab.page, lab.page.locator(PICTURE)
    lab.open_code(
        f"{AT_ONCE}from hta_widgets import DiffViewer, examples\nviewer = DiffViewer({EXAMPLES})\nviewer",
        name=NAME,
    )
    expect(page.locator(TIMELINE)).to_have_count(2, timeout=60_000)
    expect(picture).to_have_count(1, timeout=30_000)
    expect(picture).to_be_hidden()
    expect_drawn(picture, page.locator(".hta-panel[data-kind=step_waterfall] p").first.inner_text())
    lab.kernel("setattr(viewer.selections['gpt2_fsdp_full_shard'], 'ranks', (1,))")
    expect_drawn(picture, "Selected: ranks 1 of gpt2_fsdp_full_shard")
    page.evaluate(SAVE)
    lab.open(NAME)  # with a fresh kernel
    expect(picture).to_be_visible(timeout=20_000)
    missing = page.get_by_text("model not found")
    expect(missing).to_be_attached(timeout=20_000)
    expect(missing).to_be_hidden()
    lab.shot("saved-diff-viewer")


def test_pictures_keep_to_their_cells(lab: Lab) -> None:
    """Each output that shows the explorer gets a picture of its own, and no other place gets any."""
    page = lab.page
    lab.open_code(
        f"{AT_ONCE}{CELL}\nfrom IPython.display import clear_output, display\n"
        "display(explorer)\nprint('later')",
        "explorer",
        "print('another')",
        "display(explorer)\nclear_output()",
        "import ipywidgets\nipywidgets.VBox([explorer])",
        name=NAME,
    )
    expect(page.locator(TIMELINE)).to_have_count(3, timeout=60_000)
    lab.kernel("setattr(explorer.selection, 'ranks', (2,))")
    expect_pictures(lab, [1, 1, 0, 0, 0])
    page.evaluate(CLEAR, 0)
    page.evaluate(RUN, 1)  # its earlier picture goes with its earlier output
    expect(page.locator(TIMELINE)).to_have_count(2, timeout=60_000)
    lab.kernel("setattr(explorer.selection, 'ranks', (3,))")
    expect_pictures(lab, [0, 1, 0, 0, 0])
    lab.expect_no_errors()


def expect_pictures(lab: Lab, counts: list[int]) -> None:
    """Wait until so many pictures of the newest selection are in the cells: no other comes, none is seen."""
    selected = f"Selected: ranks {lab.kernel('explorer.selection.ranks[0]')}"

    def pictures_are_there() -> None:
        pictures = lab.page.locator(".jp-Cell").evaluate_all(
            f"cells => cells.map(cell => cell.querySelectorAll('{PICTURE}').length)"
        )
        assert pictures == counts

    for picture in range(sum(counts)):
        expect_drawn(lab.page.locator(PICTURE).nth(picture), selected)
    eventually(pictures_are_there)
    lab.page.wait_for_timeout(1000)  # in which another would come: changes rest for 0.2 s
    pictures_are_there()
    for picture in lab.page.locator(PICTURE).all():
        expect(picture).to_be_hidden()
        expect_drawn(picture, selected)
