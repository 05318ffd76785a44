"""The explorer without a mouse: where Tab and arrows lead, what is seen, what the notebook never hears."""

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.four_ranks import CELLS, at_rest
from tests.browser.lab import Lab

pytestmark = pytest.mark.browser

PANELS = ["temporal_breakdown", "kernel_type_breakdown", "stragglers", "events"]

# everything that Tab can reach in the explorer, in the order of the page
STOPS = """(root) => [...root.querySelectorAll('*')].filter(
  (e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({ visibilityProperty: true })
    && (e.hasAttribute('tabindex') || /^(button|input|select|summary|a)$/i.test(e.tagName)))"""

# the focused element: which stop it is, whether it is seen to have the focus, and in words
FOCUSED = f"""(root) => {{
  const focused = document.activeElement;
  const {{ outlineStyle, outlineWidth }} = getComputedStyle(focused);
  return {{
    stop: ({STOPS})(root).indexOf(focused),
    visible: outlineStyle !== 'none' && parseFloat(outlineWidth) > 0,
    writes: focused.matches('input, textarea'),
    words: focused.outerHTML.slice(0, 160),
  }};
}}"""

# Groups in which arrows move: [what, marks, stops for Tab, marks that the right arrow reaches from there]
GROUPS = """async (root) => {
  const groups = [...root.querySelectorAll('.hta-rank-grid, .hta-step-strip, .hta-panel-bar, svg')];
  const told = [];
  for (const group of groups) {
    const marks = [...group.querySelectorAll('button, .hta-bar-row')];
    if (!marks.length) continue;
    const stops = marks.filter((mark) => mark.tabIndex === 0);
    stops[0]?.focus();
    const reached = new Set([document.activeElement]);
    for (let i = 1; i < marks.length; i++) {
      const key = new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true });
      document.activeElement.dispatchEvent(key);
      await new Promise(requestAnimationFrame);
      reached.add(document.activeElement);
    }
    const name = group.getAttribute('aria-label') ?? group.className;
    told.push([name, marks.length, stops.length, marks.filter((mark) => reached.has(mark)).length]);
  }
  return told;
}"""


@pytest.fixture(scope="module")
def notebook(day: Lab) -> Lab:
    """With some panels, for all tests here."""
    root = at_rest(day)
    day.kernel(f"setattr(explorer, 'panels', {PANELS})")
    expect(root.locator(".hta-panel")).to_have_count(len(PANELS))
    expect(root.locator(".hta-busy")).to_have_count(0, timeout=60_000)
    return day


@pytest.fixture
def root(notebook: Lab) -> Locator:
    return notebook.page.locator(".hta:has(> .hta-explorer)")


def test_tab_reaches_everything_and_letters_stay_inside(notebook: Lab, root: Locator) -> None:
    """At every stop `d d`, `0 0` and `b` are typed: in the notebook they delete, restart and insert."""
    page = notebook.page
    cells, dialogs = page.locator(".jp-Cell"), page.locator(".jp-Dialog")
    stops = root.evaluate(f"(root) => ({STOPS})(root).length")
    assert stops > 20
    root.evaluate(f"(root) => ({STOPS})(root)[0].focus()")
    unseen, reached = [], set()
    for _ in range(stops + 10):
        focused = root.evaluate(FOCUSED)
        if focused["stop"] < 0:
            break
        reached.add(focused["stop"])
        if not focused["visible"]:
            unseen.append(focused["words"])
        if not focused["writes"]:
            for key in "dd00b":
                page.keyboard.press(key)
            assert (cells.count(), dialogs.count()) == (len(CELLS), 0), (
                f"the notebook heard {focused['words']}"
            )
        page.keyboard.press("Tab")
    assert reached == set(range(stops))
    assert not unseen, "\n".join(unseen)
    notebook.expect_kernel("explorer.selection.to_dict()", {})


def test_arrows_reach_every_mark(notebook: Lab, root: Locator) -> None:
    groups = root.evaluate(GROUPS)
    assert len(groups) >= 5
    for name, marks, stops, reached in groups:
        assert (stops, reached) == (1, marks), f"{name}: {stops} stops, {reached} of {marks} marks reached"


def test_no_motion_where_none_is_wanted(notebook: Lab, root: Locator) -> None:
    """A bar of unknown progress moves, but not for a reader who asked the system for less motion."""
    moving = """(root) => {
      const bar = document.createElement('div');
      bar.className = 'hta-progress';
      bar.dataset.unknown = '';
      bar.append(document.createElement('div'));
      root.append(bar);
      const count = root.getAnimations({ subtree: true }).length;
      const { transitionDuration } = getComputedStyle(bar.firstChild);
      bar.remove();
      return [count, transitionDuration];
    }"""
    assert root.evaluate(moving) == [1, "0.12s"]
    notebook.page.emulate_media(reduced_motion="reduce")
    try:
        assert root.evaluate(moving) == [0, "0s"]
    finally:
        notebook.page.emulate_media(reduced_motion="no-preference")
