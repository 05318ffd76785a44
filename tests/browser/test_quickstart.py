"""The quickstart notebook as a user meets it: run it, click, drag, and read the result in the next cell."""

import gzip
import json
import re
from ast import literal_eval
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from hta_widgets import examples
from tests.browser.lab import TIMELINE, Lab

pytestmark = pytest.mark.browser

JOB = "ddp_4ranks"
# The notebook opens a recording of one rank first.
CELL = f'explorer = TraceExplorer(examples.path("{JOB}"))'


@pytest.fixture(scope="module")
def quickstart(lab: Lab) -> Iterator[Lab]:
    lab.open("quickstart.ipynb")
    lab.run_all()
    yield lab


@pytest.fixture
def timeline(quickstart: Lab) -> Locator:
    """The explorer's timeline, drawn; nothing is selected."""
    quickstart.kernel(
        "[setattr(explorer.selection, name, value) for name, value in (('ranks', ()), ('window', None))]"
    )
    timeline = cell(quickstart).locator(TIMELINE)
    expect(timeline).to_be_visible(timeout=60_000)
    timeline.scroll_into_view_if_needed()
    return timeline


def cell(lab: Lab) -> Locator:
    """The cell of the four ranks, scrolled to: JupyterLab shows a cell only once it is near."""
    found = lab.page.locator(".jp-CodeCell", has_text=CELL)
    found.scroll_into_view_if_needed()
    return found


def rank_button(lab: Lab, rank: int) -> Locator:
    return cell(lab).get_by_role("button", name=re.compile(rf"^rank {rank}\b", re.IGNORECASE)).first


def rows(lab: Lab, frame: str, *columns: str) -> list[list[Any]]:
    """Rows of a DataFrame in the kernel."""
    text = literal_eval(lab.kernel(f"{frame}[{list(columns)}].to_json(orient='values')"))
    result: list[list[Any]] = json.loads(text)
    return result


def drag(lab: Lab, timeline: Locator, start: float, end: float) -> None:
    """Drag with the mouse over the lanes, from one share of the canvas' width to another."""
    box = timeline.locator("canvas").first.bounding_box()
    assert box is not None
    y = box["y"] + 0.5 * box["height"]
    lab.page.mouse.move(box["x"] + start * box["width"], y)
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + end * box["width"], y, steps=8)
    lab.page.mouse.up()


def test_click_on_a_rank_selects_it_in_python(quickstart: Lab, timeline: Locator) -> None:
    rank_button(quickstart, 0).click()
    quickstart.expect_kernel("explorer.selection.ranks", (0,))
    expect(rank_button(quickstart, 0)).to_have_attribute("aria-pressed", "true")
    quickstart.expect_kernel("sorted(set(explorer.events['rank']))", [0])
    quickstart.shot("quickstart-rank-0", timeline)


def test_brush_becomes_a_data_frame(quickstart: Lab, timeline: Locator) -> None:
    rank_button(quickstart, 1).click()
    quickstart.expect_kernel("explorer.selection.ranks", (1,))
    drag(quickstart, timeline, 0.5, 0.6)
    quickstart.expect_kernel("explorer.selection.window is not None", True)
    # The window and its events in one answer: a drag goes on as long as its moves arrive.
    columns = ["event_id", "name", "dur_ns"]
    both = f"(explorer.selection.window, explorer.events[{columns}].to_json(orient='values'))"
    (start, end), text = literal_eval(quickstart.kernel(both))
    assert end > start

    # exactly the rank's events that lie in the window ...
    selected = json.loads(text)
    everything = rows(quickstart, "explorer.trace.events()", "rank", "event_id", "start_ns", "end_ns")
    inside = {i for rank, i, t0, t1 in everything if rank == 1 and t0 < end and max(t1, t0 + 1) > start}
    assert inside
    assert {event_id for event_id, _, _ in selected} == inside
    # ... as they stand in the rank's file
    (file,) = examples.path(JOB).glob("rank-1.*")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    for event_id, name, duration in selected:
        assert (events[event_id]["name"], round(events[event_id]["dur"] * 1000)) == (name, duration)
    quickstart.shot("quickstart-brush", timeline)


def test_window_set_in_python_moves_the_view(quickstart: Lab, timeline: Locator) -> None:
    """The view shows the last tenth of the job; a window in the first tenth brings it there."""
    first, last = literal_eval(quickstart.kernel("explorer.trace.extent_ns"))
    tenth = (last - first) // 10
    scrubber = "dict(explorer.parts)['timeline']"
    quickstart.kernel(f"setattr({scrubber}, 'view', {(last - tenth, last)})")
    start, end = first + tenth // 4, first + tenth // 2
    quickstart.kernel(f"setattr(explorer.selection, 'window', {(start, end)})")
    quickstart.expect_kernel(f"{scrubber}.view[0] <= {start} and {end} <= {scrubber}.view[1]", True)
    quickstart.shot("quickstart-window", timeline)


def test_panel_follows_the_selection(quickstart: Lab, timeline: Locator) -> None:
    rank_button(quickstart, 2).click()
    quickstart.expect_kernel("explorer.frame('temporal_breakdown')['rank'].tolist()", [2])
    parts = "['compute_ns', 'exposed_communication_ns', 'exposed_memory_ns', 'idle_ns']"
    frame = "explorer.frame('temporal_breakdown')"
    quickstart.expect_kernel(f"{frame}[{parts}].sum(axis=1).tolist() == {frame}['window_ns'].tolist()", True)


def test_no_errors_in_the_browser(quickstart: Lab) -> None:
    quickstart.expect_no_errors()
