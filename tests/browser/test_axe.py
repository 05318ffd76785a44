"""What axe-core finds in every kind of view, in both themes and where the system forces its colours.

Reports have the views of a notebook without its kernel, so that each is opened in a second.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from hta_widgets import DiffViewer, MemoryView, TraceExplorer, WhatIf, edits, examples
from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE
from tests.memory_snapshot.allocator import MB, Allocator, write

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]
LOOKS: tuple[tuple[Scheme, bool], ...] = (("light", False), ("dark", False), ("dark", True))
CHANGES = [edits.host(0.5), edits.kernels(2.0), edits.communication(0)]


def _explorer(path: Path, *panels: str) -> None:
    explorer = TraceExplorer(examples.path("ddp_4ranks"), panels=list(panels)).wait()
    explorer.to_html(path)
    explorer.close()


def _inspector(path: Path) -> None:
    explorer = TraceExplorer(examples.path("ddp_4ranks"), panels=[]).wait()
    events = explorer.trace.events()
    longest = events.loc[(events["rank"] == 2) & (events["stream"] == 7)].nlargest(1, "dur_ns")
    explorer.selection.focus = (2, int(longest["event_id"].iloc[0]))
    explorer.to_html(path)
    explorer.close()


def _what_if(path: Path) -> None:
    WhatIf(examples.load("ddp_4ranks"), edits=CHANGES).to_html(path)


def _what_if_of_a_job(path: Path) -> None:
    WhatIf(examples.load("ddp_4ranks"), edits=[edits.faster_links(2), edits.no_stragglers()]).to_html(path)


def _runs(path: Path) -> None:
    viewer = DiffViewer({name: examples.path(name) for name in ("gpt2_ddp", "gpt2_fsdp_full_shard")})
    viewer.wait().to_html(path)
    viewer.close()


def _memory(path: Path) -> None:
    allocator = Allocator(100 * MB)
    for at in range(9):
        allocator.alloc((at + 1) * MB, f"/app/model.py:{at}:forward")
    shown = MemoryView(write(path.with_suffix(".pickle"), allocator))
    shown.to_html(path)
    shown.close()


VIEWS: dict[str, Callable[[Path], None]] = {
    "explorer": lambda path: _explorer(path, "overview", "temporal_breakdown", "kernel_breakdown", "events"),
    "steps": lambda path: _explorer(path, "step_parts", "step_times"),
    "job": lambda path: _explorer(path, "job", "what_if"),
    "inspector": _inspector,
    "launcher": _explorer,
    "what_if": _what_if,
    "what_if_job": _what_if_of_a_job,
    "runs": _runs,
    "memory": _memory,
}


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(page: Page, tmp_path: Path, view: str) -> None:
    report = tmp_path / f"{view}.html"
    VIEWS[view](report)
    page.set_viewport_size({"width": 1340, "height": 1000})
    page.goto(report.as_uri())
    expect(page.locator("main[data-ready=true]")).to_be_visible(timeout=30_000)
    if view not in ("what_if", "what_if_job", "memory"):
        expect(page.locator(TIMELINE).first).to_be_visible(timeout=30_000)
    if view == "inspector":
        expect(page.locator(".hta-inspector[data-kind=event]")).to_be_visible()
    if view == "launcher":
        page.locator(".hta-launch").click()
        page.get_by_role("combobox").fill("kernel")
        expect(page.get_by_role("option").first).to_be_visible()
    found = []
    for scheme, forced in LOOKS:
        page.emulate_media(color_scheme=scheme, forced_colors="active" if forced else "none")
        violations = serious_violations(_whole(page), colours=(scheme, forced) != LOOKS[0])
        found += [f"{scheme}{' forced' * forced}: {each}" for each in violations]
    page.emulate_media(color_scheme="light", forced_colors="none")
    assert not found, "\n".join(found)


def _whole(page: Page) -> Locator:
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    return page.locator("html")
