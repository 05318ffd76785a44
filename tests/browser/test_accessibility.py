"""What axe-core, the keyboard and a reader who wants no motion find in the explorer, in both themes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE, Lab
from tests.support import SHARED_TRACES

pytestmark = pytest.mark.browser

HOST_ONLY = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
EXPLORERS = ("loaded", "missing", "error")
# one of each way to draw: findings, bars, parts, a heat map, lines, a long table, events
PANELS = (
    "overview",
    "temporal_breakdown",
    "comm_comp_overlap",
    "kernel_type_breakdown",
    "stragglers",
    "memory_bandwidth",
    "memory_peak",
    "events",
)


# Of events with one name the buttons do the same, and are called the same.
REPEATED = """(root) => {
  const names = [...root.querySelectorAll('button')]
    .filter((button) => button.checkVisibility() && !button.matches('.hta-events-only'))
    .map((button) => (button.getAttribute('aria-label') ?? button.textContent).trim());
  return names.filter((name, at) => !name || names.indexOf(name) !== at);
}"""


@pytest.fixture(scope="module")
def page(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One notebook with an explorer in each state."""
    folder = tmp_path_factory.mktemp("traces")
    host_only, damaged = folder / "host_only", folder / "damaged"
    for job in (host_only, damaged):
        job.mkdir()
    (host_only / "rank0.json").write_text(json.dumps({"traceEvents": [HOST_ONLY]}))
    (damaged / "rank0.json").write_text("<html>not a trace</html>")
    lab.open_code(
        "from hta_widgets import TraceExplorer, examples\n"
        f"explorer = TraceExplorer(examples.path('ddp_4ranks'), panels={PANELS})\nexplorer",
        f"TraceExplorer({str(_real_or(host_only))!r})",
        f"TraceExplorer({str(damaged)!r})",
        name="accessibility.ipynb",
    )
    loaded, missing, error = (explorer(lab, state) for state in EXPLORERS)
    expect(loaded.locator(TIMELINE)).to_be_visible(timeout=60_000)
    expect(loaded.locator(".hta-busy")).to_have_count(0, timeout=60_000)
    expect(missing).to_contain_text("ProfilerActivity.CUDA", timeout=60_000)
    expect(error.get_by_role("alert")).to_contain_text("TraceFormatError", timeout=60_000)
    yield lab
    lab.use_theme(dark=False)


def _real_or(made: Path) -> Path:
    real = SHARED_TRACES / "hta" / "cpu_only"
    return real if real.exists() else made


def explorer(lab: Lab, state: str) -> Locator:
    return lab.page.locator(".hta:has(> .hta-explorer)").nth(EXPLORERS.index(state))


@pytest.mark.parametrize("state", [*EXPLORERS, "help"])
@pytest.mark.parametrize(
    "dark", [False, True], ids=["light", "dark"]
)  # all in one theme, then all in the other
def test_axe_finds_nothing_serious(page: Lab, state: str, dark: bool) -> None:
    page.use_theme(dark=dark)
    root = explorer(page, "loaded" if state == "help" else state)
    root.scroll_into_view_if_needed()
    # tables and the list of what was found in the trace are behind disclosures
    root.evaluate("e => e.querySelectorAll('details').forEach(d => { d.open = true; })")
    if state == "help":
        root.get_by_role("button", name="Keys and gestures").click()
        root = page.page.get_by_role("dialog", name="Keys and gestures")
    found = serious_violations(root, colours=dark)
    page.shot(f"accessibility-{state}-{'dark' if dark else 'light'}", root)
    if state == "help":
        page.page.keyboard.press("Escape")
    assert not found, "\n".join(found)


def test_every_button_has_a_name_of_its_own(page: Lab) -> None:
    root = explorer(page, "loaded")
    root.evaluate("e => e.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert root.evaluate(REPEATED) == []


def test_the_text_is_light_in_the_dark_theme(page: Lab) -> None:
    """By one of JupyterLab's own variables."""
    page.use_theme(dark=True)
    root = explorer(page, "loaded")
    lightness = root.evaluate(
        "e => getComputedStyle(e).color.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
    )
    assert lightness > 3 * 128
    page.expect_no_errors()
    page.shot("explorer-dark", root)
