"""The explorer under load: a flood of selections, two browsers, and a page that goes while an answer comes.

HTA_WIDGETS_LOAD_SECONDS and HTA_WIDGETS_LOAD_CYCLES make it longer; `--junitxml` says what was counted.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, WebSocketRoute, expect

from tests.browser.lab import READY, TIMELINE, Lab, page_of
from tests.support import EVERY_CASE

pytestmark = pytest.mark.browser

NAME = "load.ipynb"
CELL = """
from hta_widgets import TraceExplorer, examples
panels = ["temporal_breakdown", "kernel_breakdown", "events"]
explorer = TraceExplorer(examples.path("ddp_4ranks"), panels=panels)
def part(kind):
    return next(part for _, part in explorer.parts if getattr(part, "kind", "") == kind)
explorer
"""

SECONDS = int(os.environ.get("HTA_WIDGETS_LOAD_SECONDS", "3" if EVERY_CASE else "1"))
# of fewer, what JupyterLab leaves at a time outweighs one listener a cycle
CYCLES = int(os.environ.get("HTA_WIDGETS_LOAD_CYCLES", "10"))

# What is selected, how all parts are, and for which ranks.
STATE = """(
    explorer.selection.ranks,
    {p.status: p.message for _, p in explorer.parts},
    {p.ranks for _, p in explorer.parts if p.has_trait('ranks')},
)"""

SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"

# Clicks on ranks, 50 a second however long the page takes to draw; returns how many there were.
FLOOD = """async (seconds) => {
  const buttons = [...document.querySelectorAll('.hta-rank-grid button')];
  const start = performance.now();
  let clicks = 0;
  for (; clicks < 50 * seconds; clicks++) {
    const wait = 20 * clicks - (performance.now() - start);
    await (wait > 0 ? new Promise((go) => setTimeout(go, wait)) : null);
    const button = buttons[(7 * clicks) % buttons.length];
    button.dispatchEvent(new MouseEvent('click', { bubbles: true, ctrlKey: clicks % 3 === 0 }));
  }
  return { clicks, seconds: (performance.now() - start) / 1000 };
}"""

# A computation that the test lets go on; it is not held up at first.
HELD = """
import threading
from hta_widgets.widgets import breakdown_panel
held, answer = threading.Event(), breakdown_panel.cached_analysis
held.set()
def _held(*args, **options):
    held.wait(60)
    return answer(*args, **options)
breakdown_panel.cached_analysis = _held
"""


def rank(page: Page, number: int) -> Locator:
    return page.locator(".hta-rank-grid button").nth(number)


def panel(page: Page, kind: str) -> Locator:
    return page.locator(f".hta-panel[data-kind={kind}]")


@pytest.fixture(scope="module")
def opened(lab: Lab) -> Lab:
    """One explorer for all tests but the last."""
    lab.open_code(CELL, HELD, name=NAME)
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    return lab


@pytest.fixture
def live(opened: Lab) -> Lab:
    """With nothing selected."""
    opened.kernel("explorer.selection.clear()")
    expect_all_to_agree(opened, ())
    return opened


def expect_all_to_agree(lab: Lab, ranks: tuple[int, ...]) -> None:
    """The kernel, each part and the page show the same ranks, and the answer is theirs."""
    lab.expect_kernel(STATE, (ranks, {"idle": ""}, {ranks}), seconds=60)
    pressed = lab.page.locator(".hta-rank-grid button[aria-pressed=true]")
    expect(pressed).to_have_count(len(ranks))
    expect(lab.page.locator(".hta-busy")).to_have_count(0)
    answer = lab.kernel("part('temporal_breakdown').sentence").strip("'\"")
    expect(panel(lab.page, "temporal_breakdown")).to_contain_text(answer)
    lab.expect_no_errors()


def test_fifty_selections_a_second(live: Lab, record_property: Callable[[str, object], None]) -> None:
    """The last of them is what every part ends with, though the kernel computes all the while."""
    lab = live
    lab.page.evaluate(
        """() => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute(
             { code: 'import time\\nfor _ in range(20): sum(range(1_000_000)); time.sleep(0.05)' }) }"""
    )
    done = lab.page.evaluate(FLOOD, SECONDS)
    rank(lab.page, 2).click()
    record_property("selections", done)
    assert done["seconds"] < 1.5 * SECONDS
    expect_all_to_agree(lab, (2,))
    lab.expect_kernel("set(explorer.events['rank'])", {2})


def test_answers_while_a_cell_computes_that_changed_something(live: Lab, tmp_path: Path) -> None:
    lab, enough = live, tmp_path / "enough"
    lab.page.evaluate(
        """code => {
          const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
          window.computing = true;
          kernel.requestExecute({ code }).done.then(() => { window.computing = false; });
        }""",
        "import time\nfrom pathlib import Path\nexplorer.selection.ranks = (1,)\nend = time.monotonic() + 9\n"
        f"while time.monotonic() < end and not Path({str(enough)!r}).exists(): sum(range(1000))",
    )
    expect(rank(lab.page, 1)).to_have_attribute("aria-pressed", "true")
    sentence = panel(lab.page, "temporal_breakdown").locator("p").first
    expect(sentence).to_contain_text("Rank 1 ")
    rank(lab.page, 2).click()
    expect(sentence).not_to_contain_text("Rank 1 ", timeout=6000)
    assert lab.page.evaluate("window.computing")
    enough.touch()
    lab.page.wait_for_function("!window.computing")
    expect_all_to_agree(lab, (2,))


def test_reload_while_an_answer_is_computed(live: Lab) -> None:
    lab = live
    lab.page.evaluate(SAVE)
    lab.kernel("held.clear()")
    rank(lab.page, 1).click()
    lab.expect_kernel("part('temporal_breakdown').status", "busy")
    lab.page.reload()
    expect(lab.page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    lab.page.wait_for_function(READY, timeout=60_000)
    expect(panel(lab.page, "temporal_breakdown").locator(".hta-busy")).to_be_visible()
    lab.kernel("held.set()")
    expect_all_to_agree(lab, (1,))
    rank(lab.page, 0).click()
    expect_all_to_agree(lab, (0,))


class Wire:
    """The page's connection to its kernel, which can be cut and repeats what it carries."""

    def __init__(self, page: Page) -> None:
        self._open: list[WebSocketRoute] = []
        self.copies = 1
        self.repeated = 0
        page.route_web_socket("**/channels*", self._carry)

    def _carry(self, browser: WebSocketRoute) -> None:
        kernel = browser.connect_to_server()
        self._open.append(browser)
        browser.on_message(lambda message: self._pass(kernel, message))
        kernel.on_message(lambda message: self._pass(browser, message))

    def _pass(self, to: WebSocketRoute, message: str | bytes) -> None:
        raw = message if isinstance(message, bytes) else message.encode()
        copies = self.copies if b'"comm_msg"' in raw else 1
        self.repeated += copies - 1
        for _ in range(copies):
            to.send(message)

    def cut(self) -> None:
        while self._open:
            self._open.pop().close(code=1011)


@pytest.fixture(scope="module")
def wired(opened: Lab, browser: Browser) -> Iterator[tuple[Lab, Wire]]:
    """Another browser's page with the same explorer, whose connection the test holds."""
    opened.page.evaluate(SAVE)
    with page_of(browser) as page:
        other, wire = Lab(opened.server, page), Wire(page)
        page.goto(f"{opened.page.url.partition('?')[0]}?token={opened.server.token}")
        expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
        page.wait_for_function(READY, timeout=60_000)
        yield other, wire


def test_two_browsers_on_one_kernel(live: Lab, wired: tuple[Lab, Wire]) -> None:
    """What one selects the other shows, and neither loses what it did not change."""
    lab, other = live, wired[0].page
    rank(other, 1).click()
    expect(rank(lab.page, 1)).to_have_attribute("aria-pressed", "true")
    rank(lab.page, 3).click(modifiers=["ControlOrMeta"])
    expect(rank(other, 3)).to_have_attribute("aria-pressed", "true")
    expect_all_to_agree(lab, (1, 3))
    # both at once: some order, the same for all
    for number in range(6):
        rank(lab.page, number % 4).dispatch_event("click")
        rank(other, (number + 1) % 4).dispatch_event("click")
    lab.expect_kernel("{p.status for _, p in explorer.parts}", {"idle"}, seconds=60)
    lab.page.wait_for_timeout(1000)
    chosen = tuple(map(int, lab.kernel("explorer.selection.ranks").strip("(),").split(",")))
    expect_all_to_agree(lab, chosen)
    for number in range(4):
        expect(rank(other, number)).to_have_attribute("aria-pressed", str(number in chosen).lower())
    sentence = panel(lab.page, "temporal_breakdown").locator("p").first.inner_text()
    expect(panel(other, "temporal_breakdown").locator("p").first).to_have_text(sentence)
    expect_all_to_agree(wired[0], chosen)


def test_messages_that_come_twice(live: Lab, wired: tuple[Lab, Wire]) -> None:
    lab, wire = wired
    wire.copies = 2
    for number in (1, 2, 3):
        rank(lab.page, number).click()
        expect_all_to_agree(lab, (number,))
    first = lab.page.locator(".hta-events [role=row][aria-rowindex='2']")
    expect(first).not_to_contain_text("…")
    assert wire.repeated > 20


def test_a_connection_lost_while_an_answer_is_computed(live: Lab, wired: tuple[Lab, Wire]) -> None:
    """JupyterLab connects again by itself; what came meanwhile is shown, and the next selection arrives."""
    lab, wire = wired
    wire.copies = 1
    lab.kernel("held.clear()")
    rank(lab.page, 1).click()
    lab.expect_kernel("part('temporal_breakdown').status", "busy")
    wire.cut()
    lab.page.wait_for_function(READY, timeout=60_000)
    lab.kernel("held.set()")
    expect_all_to_agree(lab, (1,))
    rank(lab.page, 2).click()
    expect_all_to_agree(lab, (2,))


BOX = """
import json, anywidget, ipywidgets, traitlets
from hta_widgets import TraceExplorer, examples
path, box = examples.path("ddp_4ranks"), ipywidgets.VBox()
class Empty(anywidget.AnyWidget):
    _esm = "export default { render({ el }) { el.className = 'empty'; } }"
    state = traitlets.Any().tag(sync=True)
def open_explorer():
    return TraceExplorer(path, panels=["temporal_breakdown", "events"])
def states_of(explorer):
    explorer.snapshot()  # waits until all parts have answered
    parts = [explorer, *(part for _, part in explorer.parts)]
    found = [json.loads(json.dumps(part.get_state(), default=repr)) for part in parts]
    explorer.close()
    return found
states = states_of(open_explorer())
def open_empty():
    return ipywidgets.HBox([Empty(state=state) for state in states])  # the models of an explorer, no views
def show(widget):
    global shown
    shown = widget
    box.children = (shown,)
def close():
    box.children = ()
    for child in getattr(shown, "children", ()):
        child.layout.close()
        child.close()
    shown.layout.close()
    shown.close()
box
"""


def living(page: Page) -> dict[str, int]:
    """What the page keeps after collecting its garbage: bytes of its heap, nodes and listeners."""
    session = page.context.new_cdp_session(page)
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    counts = session.send("Memory.getDOMCounters")
    session.detach()
    return {"bytes": int(heap), "nodes": counts["nodes"], "listeners": counts["jsEventListeners"]}


def left(lab: Lab, opened: str, seen: str, cycles: int) -> dict[str, float]:
    """What each opening and closing of `opened`, shown once `seen` is there, leaves in the page."""

    def cycle() -> None:
        lab.kernel(f"show({opened})")
        expect(lab.page.locator(seen).last).to_be_attached(timeout=60_000)
        lab.kernel("close()")
        expect(lab.page.locator(seen)).to_have_count(0)

    for _ in range(3):
        cycle()
    before = living(lab.page)
    for _ in range(cycles):
        cycle()
    return {name: (count - before[name]) / cycles for name, count in living(lab.page).items()}


def test_opening_and_closing_leaves_nothing_of_ours(
    lab: Lab, record_property: Callable[[str, object], None]
) -> None:
    """JupyterLab keeps the models of closed widgets, with their state; no view of ours stays with them."""
    lab.open_code(BOX, name=NAME)
    empty = left(lab, "open_empty()", ".empty", CYCLES)
    explorer = left(lab, "open_explorer()", TIMELINE, CYCLES)
    record_property("left", {"explorer": explorer, "empty": empty})
    assert explorer["bytes"] < 1.5 * empty["bytes"]
    assert explorer["nodes"] < empty["nodes"] + 1
    assert explorer["listeners"] < empty["listeners"] + 1
    lab.expect_no_errors()
