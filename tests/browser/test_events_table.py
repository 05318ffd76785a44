"""The events table in JupyterLab, on real traces: scroll, sort, focus, names, and the file that it saves."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from hta_widgets import Trace
from hta_widgets.kernel_names import short_kernel_name
from tests.browser.lab import Lab
from tests.support import shared_trace

pytestmark = pytest.mark.browser

QWEN = "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"


@pytest.fixture(scope="module")
def opened(lab: Lab) -> Callable[[Path], Locator]:
    """Opens a table, or selects nothing in it if it is open: tests of the same one stand together."""
    known: list[Path] = []

    def open_or_clear(path: Path) -> Locator:
        if known[-1:] != [path]:
            known.append(path)
            return open_table(lab, path)
        lab.kernel("selection.clear()")
        return lab.page.get_by_role("grid", name="Events")

    return open_or_clear


def open_table(lab: Lab, path: Path) -> Locator:
    lab.open_code(
        "from hta_widgets import Trace\n"
        "from hta_widgets import Selection\n"
        "from hta_widgets.widgets.events_table import EventsTable\n"
        f"trace = Trace.open({str(path)!r})\n"
        "selection = Selection()\n"
        "table = EventsTable(trace, selection=selection)\n"
        "table",
        name="events.ipynb",
    )
    grid = lab.page.get_by_role("grid", name="Events")
    expect(grid.locator(".hta-events-row").first).to_be_visible(timeout=60_000)
    return grid


def row(grid: Locator, index: int) -> Locator:
    """A data row by its number from 0: the heading is row 1."""
    return grid.locator(f'[aria-rowindex="{index + 2}"]')


def test_scroll_sort_focus_and_save(lab: Lab, opened: Callable[[Path], Locator], tmp_path: Path) -> None:
    path = shared_trace(QWEN)
    events = Trace.open(path).events()
    grid = opened(path)
    assert grid.get_attribute("aria-rowcount") == str(len(events) + 1)
    expect(row(grid, 0)).to_contain_text(str(events["name"][0]))
    lab.shot("events-table")

    grid.evaluate("grid => { grid.scrollTop = grid.scrollHeight }")
    last = str(events["name"].iloc[-1])  # too long for its cell, whose tooltip has all of it
    expect(row(grid, len(events) - 1).get_by_title(last, exact=True)).to_have_text(
        f"{short_kernel_name(last)}only"
    )
    assert grid.locator(".hta-events-row").count() < 40

    grid.get_by_role("columnheader", name="duration").get_by_role("button").click()
    ordered = events.sort_values("dur_ns", ascending=False, kind="stable")
    expect(grid.get_by_role("columnheader", name="duration")).to_have_attribute("aria-sort", "descending")
    expect(row(grid, 0).locator(f'[title="{ordered["dur_ns"].iloc[0]:,} ns"]')).to_be_visible()

    row(grid, 3).click()
    lab.expect_kernel("selection.focus", (0, int(ordered["event_id"].iloc[3])))
    lab.page.keyboard.press("PageDown")
    lab.page.keyboard.press("ArrowUp")
    lab.page.keyboard.press("Enter")
    found = "table._find(dict(zip(('rank', 'event_id'), selection.focus)))['row']"
    lab.expect_kernel(f"{found} > 8", True)  # once the key has reached the kernel
    place = int(lab.kernel(found))
    expect(row(grid, place)).to_have_attribute("aria-selected", "true")
    lab.shot("events-table-sorted")

    with lab.page.expect_download() as download:
        lab.page.get_by_role("button", name="Export").click()
        lab.page.get_by_role("menuitem", name="CSV").click()
    download.value.save_as(tmp_path / "events.csv")
    with (tmp_path / "events.csv").open(newline="") as file:
        ids = [int(line["event_id"]) for line in csv.DictReader(file)]
    assert ids == ordered["event_id"].tolist()
    lab.expect_no_errors()


def test_columns_are_filtered_beside_what_their_values_are_like(
    lab: Lab, opened: Callable[[Path], Locator]
) -> None:
    path = shared_trace(QWEN)
    events = Trace.open(path).events()
    grid = opened(path)
    lab.page.get_by_role("button", name="Filter columns").click()
    duration = grid.get_by_role("textbox", name="Filter duration")
    expect(grid.locator(".hta-column-filter svg")).to_have_count(8)  # one for each column
    duration.fill("> 50")
    duration.press("Enter")
    longer = events[events["dur_ns"] > 50_000]
    lab.expect_kernel("table.filters", {"dur_ns": (50_001, None)})
    lab.expect_kernel("table.rows", len(longer))
    grid.get_by_role("textbox", name="Filter name").fill("GEMM")
    gemm = longer[longer["name"].astype("string").str.contains("gemm", case=False)]
    lab.expect_kernel("table.rows", len(gemm))
    assert 0 < len(gemm) < len(longer) < len(events)
    status = lab.page.locator(".hta-events-bar [role=status]")
    expect(status).to_have_text(f"{len(gemm):,} of {len(events):,} events")
    lab.shot("events-filtered")
    duration.fill("long")
    expect(duration).to_have_attribute("aria-invalid", "true")
    lab.expect_kernel("table.rows", len(gemm))  # what cannot be read changes nothing
    lab.page.get_by_role("button", name="2 filters").click()
    lab.expect_kernel("(table.filters, table.rows)", ({}, len(events)))
    grid.get_by_role("textbox", name="Filter name").fill("no such name")
    lab.expect_kernel("table.rows", 0)
    expect(lab.page.get_by_text("No event passes the filters.")).to_be_visible()
    grid.get_by_role("textbox", name="Filter name").press("Escape")
    lab.expect_kernel("table.rows", len(events))
    lab.expect_no_errors()


def test_names_and_focus_from_elsewhere(lab: Lab, opened: Callable[[Path], Locator]) -> None:
    path = shared_trace("hta/trace_filter")
    events = Trace.open(path).events()
    grid = opened(path)
    place = len(events) - 500
    focus = (int(events["rank"][place]), int(events["event_id"][place]))
    lab.kernel(f"setattr(selection, 'focus', {focus})")
    expect(row(grid, place)).to_have_attribute("aria-selected", "true")
    expect(row(grid, place)).to_be_in_viewport()

    name = str(events["name"][place])
    row(grid, place).hover()
    row(grid, place).get_by_role("button").click()
    lab.expect_kernel("selection.names", (name,))
    chosen = int((events["name"] == name).sum())
    expect(grid).to_have_attribute("aria-rowcount", str(chosen + 1))
    expect(lab.page.get_by_role("status").first).to_have_text(f"{chosen:,} of {len(events):,} events")
    lab.shot("events-table-names")

    lab.page.get_by_role("searchbox").fill("no such name")
    expect(lab.page.locator(".hta-events")).to_contain_text("No event lies in the selection.")
    lab.expect_no_errors()


def test_columns_are_chosen(lab: Lab, opened: Callable[[Path], Locator]) -> None:
    opened(shared_trace("hta/trace_filter"))
    lab.page.locator("summary", has_text="Columns").click()
    expect(lab.page.get_by_role("checkbox", name="category")).to_be_visible()
    lab.shot("events-table-dark", dark=True)
    lab.page.keyboard.press("Escape")
    expect(lab.page.get_by_role("checkbox", name="category")).to_be_hidden()
    lab.expect_no_errors()
