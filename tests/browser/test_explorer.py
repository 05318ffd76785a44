"""The explorer on traces of other kinds, and two of them on one page."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import TIMELINE, Lab

pytestmark = pytest.mark.browser

CELLS = (
    """
from hta_widgets import TraceExplorer, examples
damaged = TraceExplorer({path!r})
damaged
""",
    """
other = TraceExplorer(examples.path("gpt2_ddp"), panels=[])
other
""",
)
MARKUP = "<img src=x onerror=document.body.dataset.ran=1>"
# of host work alone, whose names are markup
EVENT = {"ph": "X", "cat": "cpu_op", "name": MARKUP, "pid": MARKUP, "tid": MARKUP, "ts": 1, "dur": 2}


@pytest.fixture(scope="module")
def explorers(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Locator, Locator]]:
    """One of a job of which one rank cannot be read, and another."""
    job = tmp_path_factory.mktemp("job")
    (job / "rank0.json").write_text(json.dumps({"traceEvents": [EVENT]}))
    (job / "rank1.json").write_text("<html>not a trace</html>")
    lab.open_code(*(cell.format(path=str(job)) for cell in CELLS), name="explorers.ipynb")
    roots = lab.page.locator(".hta:has(> .hta-explorer)")
    expect(roots.locator(TIMELINE)).to_have_count(2, timeout=60_000)
    yield roots.first, roots.last
    lab.expect_no_errors()


def test_damaged_file_is_explained(lab: Lab, explorers: tuple[Locator, Locator]) -> None:
    """A rank that cannot be read is named, and does not take the others away."""
    damaged, _ = explorers
    lab.expect_kernel("(len(damaged.trace.ranks), len(damaged.trace.failed))", (1, 1))
    expect(damaged.locator(".hta-health")).to_contain_text("rank1.json")
    # the host-only rank has no device events: what needs them says what to record, and raises nothing
    expect(damaged).to_contain_text("ProfilerActivity.CUDA", timeout=30_000)
    damaged.get_by_role("button", name="Critical path").click()
    expect(damaged.locator(".hta-timeline-bar")).to_contain_text("ProfilerActivity.CUDA", timeout=30_000)
    lab.shot("explorer-damaged")


def test_name_from_a_trace_is_never_markup(lab: Lab, explorers: tuple[Locator, Locator]) -> None:
    assert lab.page.evaluate("document.body.dataset.ran ?? null") is None
    assert lab.page.locator(".hta img[src=x]").count() == 0


def test_explorers_on_one_page_are_apart(lab: Lab, explorers: tuple[Locator, Locator]) -> None:
    one, two = explorers
    lab.kernel("setattr(damaged.selection, 'ranks', (0,))")
    expect(one.locator(".hta-clause")).to_have_count(1)
    two.locator(".hta-breadcrumb").scroll_into_view_if_needed()
    two.get_by_role("button", name="Undo").focus()
    lab.page.keyboard.press("Control+z")
    one.locator(".hta-breadcrumb").scroll_into_view_if_needed()
    one.get_by_role("button", name="Undo").focus()
    lab.expect_kernel("(damaged.selection.ranks, other.selection.ranks)", ((0,), ()))
    lab.page.keyboard.press("Control+z")
    lab.expect_kernel("damaged.selection.ranks", ())
