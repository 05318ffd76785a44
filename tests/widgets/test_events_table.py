"""The events table shows, finds and writes the events that the selection chooses, in every order."""

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import traitlets as t
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hta_widgets import Scope, Selection, Trace
from hta_widgets.widgets.chosen_events import Chosen, chosen_frame, chosen_rows
from hta_widgets.widgets.event_columns import KNOWN_COLUMNS, NATURAL, is_text
from hta_widgets.widgets.event_order import EventList, stable_order
from hta_widgets.widgets.events_table import MOST_ROWS, EventsTable
from hta_widgets.widgets.files import as_bytes
from tests.support import shared_trace, tried
from tests.trace.helpers import kernel, slice_
from tests.trace.helpers import write as write_trace
from tests.widgets.decoded import numbers

pytestmark = pytest.mark.slow

Ask = Any


@pytest.fixture
def table(ddp: Trace, until: Any) -> EventsTable:
    table = EventsTable(ddp)
    until(lambda: table.status == "idle")
    return table


def page(table: EventsTable, first: int, count: int, *columns: str) -> dict[str, list[Any]]:
    """A page as the browser decodes it."""
    head, [data] = table._page({"first": first, "count": count, "columns": columns})
    return {
        column["name"]: column["values"]
        if column["kind"] == "text"
        else numbers({**head, "data": data}, column["name"])
        for column in head["columns"]
    }


def expected(frame: pd.DataFrame, sort: str) -> pd.DataFrame:
    name = sort.removeprefix("-")
    key = (lambda text: text.astype("string")) if is_text(name) else None
    return frame.sort_values(name, ascending=not sort.startswith("-"), kind="stable", key=key)


def plain_values(series: pd.Series) -> list[Any]:
    """A column of a frame as a page contains it."""
    if pd.api.types.is_numeric_dtype(series):
        return series.to_numpy(np.float64, na_value=np.nan).tolist()
    return ["" if pd.isna(value) else str(value) for value in series]


def assert_same(found: list[Any], wanted: list[Any]) -> None:
    np.testing.assert_array_equal(np.array(found), np.array(wanted))


@pytest.mark.parametrize(
    "path", ["hta/trace_filter", "hta/amd_trace", "tracelens/torch_compile_triton", "hta/cpu_only"]
)
def test_every_column_in_every_order(path: str) -> None:
    trace = Trace.open(shared_trace(path))
    events, frame = EventList(trace, Chosen()), trace.events()
    columns = [name for name in KNOWN_COLUMNS if name in frame]
    assert len(columns) > 15
    half = max(len(frame) // 2 - 40, 0)
    for name in columns:
        sorts = ["", name, f"-{name}"] if name not in NATURAL else [""]
        for sort in sorts:
            wanted = (expected(frame, sort) if sort else frame).iloc[half : half + 80]
            got = events.page(events.order(sort), half, 80, ["event_id", name])
            assert_same(got["event_id"].tolist(), wanted["event_id"].tolist())
            assert_same(plain_values(got[name]), plain_values(wanted[name]))


selections = st.builds(
    Selection,
    ranks=st.sets(st.integers(0, 3), max_size=2),
    iterations=st.sets(st.integers(0, 6), max_size=2),
    window=st.none() | st.tuples(st.integers(0, 10**7), st.integers(1, 10**7)).filter(lambda w: w[0] != w[1]),
    names=st.sets(st.sampled_from(["aten::mm", "cudaLaunchKernel", "nonsense"]), max_size=2),
    query=st.sampled_from(["", " ATEN", "kernel", "(", "nonsense"]),
)


@settings(max_examples=tried(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(selections, st.sampled_from(["", "dur_ns", "-dur_ns", "-name", "correlation"]), st.integers(0, 2000))
def test_pages_are_slices_of_the_chosen_events(
    ddp: Trace, selection: Selection, sort: str, first: int
) -> None:
    chosen = Chosen.by(selection)
    frame, events = chosen_frame(ddp, chosen), EventList(ddp, chosen)
    assert events.n == len(frame)
    whole = ddp.events(selection.scope)
    keep = whole["name"].astype("str").str.lower().str.contains(selection.query.strip().lower(), regex=False)
    if selection.names:
        keep &= whole["name"].isin(selection.names)
    assert frame["event_id"].tolist() == whole["event_id"][keep].tolist()
    wanted = (expected(frame, sort) if sort and len(frame) else frame).iloc[first : first + 60]
    order = events.order(sort)
    found = events.page(order, first, 60, ["rank", "event_id", "name", "dur_ns", "correlation"])
    for name in found:
        assert_same(plain_values(found[name]), plain_values(wanted[name]))
    for place, (rank, event) in enumerate(zip(found["rank"][:3], found["event_id"][:3], strict=True)):
        assert events.find(order, rank, event) == first + place


@given(st.lists(st.none() | st.integers(-(2**62), 2**62) | st.integers(0, 3), max_size=50), st.booleans())
def test_order_is_stable_whatever_the_range(values: list[int | None], descending: bool) -> None:
    keys = np.array([value or 0 for value in values], np.int64)
    missing = np.array([value is None for value in values], np.bool_)
    wanted = pd.Series(values, dtype="Int64").sort_values(ascending=not descending, kind="stable")
    assert stable_order(keys, missing, descending).tolist() == wanted.index.tolist()


def test_streams_and_threads_sort_by_their_number(tmp_path: Any) -> None:
    events = [kernel("k", 1, 1, stream=20), kernel("k", 2, 1, stream=7)]
    events += [slice_("op", "cpu_op", 3, 1, tid=tid) for tid in (100, 20, "Spans")]
    trace = Trace.open(write_trace(tmp_path / "t.json", events), cache=False)
    found = EventList(trace, Chosen())
    order = found.order("track")
    tracks = ["Spans", "stream 7", "stream 20", "thread 20", "thread 100"]
    assert found.page(order, 0, 9, ["track"])["track"].tolist() == tracks


@pytest.mark.parametrize("sort", ["memory_bandwidth_gbps", "-memory_bandwidth_gbps"])
def test_fractions_sort_by_size_below_zero_too(tmp_path: Any, sort: str) -> None:
    values = [0.5, -1.5, None, -2.5, 0.0, 3.25, -0.0]
    events = [kernel(str(value), at, 1) for at, value in enumerate(values)]
    for event, value in zip(events, values, strict=True):
        if value is not None:
            event["args"]["memory bandwidth (GB/s)"] = value
    found = EventList(Trace.open(write_trace(tmp_path / "t.json", events), cache=False), Chosen())
    names = found.page(found.order(sort), 0, 9, ["name"])["name"].tolist()
    downward = ["3.25", "0.5", "0.0", "-0.0", "-1.5", "-2.5", "None"]
    upward = ["-2.5", "-1.5", "0.0", "-0.0", "0.5", "3.25", "None"]
    assert names == (downward if sort.startswith("-") else upward)


def test_numbers_too_large_for_a_browser_come_as_text(tmp_path: Any) -> None:
    large = 2**53 + 1
    events = [slice_("a", "cpu_op", 1, 1, **{"External id": large}), slice_("b", "cpu_op", 2, 1)]
    trace = Trace.open(write_trace(tmp_path / "t.json", events), cache=False)
    page = EventList(trace, Chosen()).page(None, 0, 2, ["external_id"])
    assert page["external_id"].tolist()[0] == str(large)


def test_a_page_tells_of_which_answer_it_is(table: EventsTable, until: Any) -> None:
    """The browser drops the pages that it kept, and those still on their way, as soon as others apply."""
    versions = []
    for sort in ("-dur_ns", "name", "-dur_ns"):
        table.sort = sort
        until(lambda: table.status == "idle")
        versions.append(table._page({"first": 0, "count": 10, "columns": []})[0]["version"])
        assert versions[-1] == table.version
    assert len(set(versions)) == 3


def test_a_page_fits_in_a_message_however_long_it_is_asked_for(table: EventsTable) -> None:
    head, [data] = table._page({"first": 0, "count": table.rows, "columns": KNOWN_COLUMNS})
    assert 0 < head["rows"] < table.rows
    assert len(data) + len(json.dumps(head)) < 1_000_000


def test_it_follows_the_selection(ddp: Trace, until: Any) -> None:
    selection = Selection(ranks=(1,))
    table = EventsTable(ddp, selection=selection, sort="-dur_ns")
    until(lambda: table.status == "idle")
    assert table.rows == len(ddp.events(Scope(ranks=(1,))))
    assert table.total == len(ddp.events())
    selection.names = ("aten::mm",)
    until(lambda: table.status == "idle" and table.rows < 1000)
    scope = replace(selection.scope, names=("aten::mm",))
    wanted = expected(ddp.events(scope), "-dur_ns")
    assert page(table, 0, 1000)["event_id"] == wanted["event_id"].tolist()
    pd.testing.assert_frame_equal(table.frame(), ddp.events(scope))
    assert table.expression == 'table.frame().sort_values("dur_ns", ascending=False, kind="stable")'
    assert selection.to_dict() == {"ranks": (1,), "names": ("aten::mm",)}


def test_an_empty_choice_is_reported(ddp: Trace, until: Any) -> None:
    table = EventsTable(ddp, selection={"query": "no such name"})
    until(lambda: table.status == "empty")
    assert (table.message, table.rows) == ("No event lies in the selection.", 0)
    assert page(table, 0, 10)["name"] == []
    table.query = ""
    until(lambda: table.status == "idle")
    assert table.rows == table.total


def test_a_storm_ends_on_the_last(table: EventsTable, until: Any) -> None:
    for turn in range(100):
        table.sort = ("dur_ns", "-start_ns", "name")[turn % 3]
    table.sort = "-dur_ns"
    until(lambda: table.status == "idle")
    assert table.version < 90
    durations = page(table, 0, 100, "dur_ns")["dur_ns"]
    assert durations == sorted(durations, reverse=True)


def test_a_page_tells_which_answer_it_is_of(table: EventsTable, until: Any) -> None:
    """The view forgets the pages that it has when the version changes."""

    def version() -> int:
        return table._page({"first": 0, "count": 1, "columns": ()})[0]["version"]

    seen = [version()]
    for sort in ("-dur_ns", "name"):
        table.sort = sort
        until(lambda: table.status == "idle")
        seen.append(version())
    assert len(set(seen)) == 3
    assert table.version == seen[-1]


def test_a_page_is_small_enough_for_a_message(table: EventsTable) -> None:
    assert table.rows > MOST_ROWS
    assert len(page(table, 0, table.rows)["event_id"]) == MOST_ROWS


def test_the_expression_gives_the_order_shown(table: EventsTable, until: Any) -> None:
    for sort in ("-dur_ns", "name", "-correlation", "-event_class"):
        table.sort = sort
        until(lambda: table.status == "idle")
        frame = eval(table.expression, {"table": table})
        assert page(table, 0, 500)["event_id"] == frame["event_id"][:500].tolist()
    table.sort = "track"  # no column of the frame
    until(lambda: table.status == "idle")
    assert table.expression == "table.frame()"


def test_columns_and_sort_are_checked(table: EventsTable) -> None:
    with pytest.raises(t.TraitError, match="no column 'nonsense'; the columns are rank, name"):
        table.sort = "-nonsense"
    with pytest.raises(t.TraitError, match="no column 'nonsense'"):
        table.columns = ("name", "nonsense")
    with pytest.raises(t.TraitError, match="no column '__class__'"):
        page(table, 0, 10, "__class__")


def test_available_columns_are_those_the_events_have(table: EventsTable, ddp: Trace) -> None:
    listed = {info["name"] for info in table.available_columns}
    assert listed - {"track"} == set(ddp.events().columns)


def piece(table: EventsTable, chunk: int, form: str = "csv") -> tuple[int, bytes]:
    answer, [data] = table._on_file({"form": form, "key": "k", "chunk": chunk})
    return answer["chunks"], data


def fetch(table: EventsTable, form: str) -> bytes:
    chunks, first = piece(table, 0, form)
    pieces = [first, *(piece(table, chunk, form)[1] for chunk in range(1, chunks))]
    assert all(len(data) <= 1 << 20 for data in pieces)
    return b"".join(pieces)


def test_files_hold_everything_in_the_order_shown(table: EventsTable, until: Any) -> None:
    table.sort = "-dur_ns"
    until(lambda: table.status == "idle")
    wanted = expected(table.frame(), "-dur_ns").reset_index(drop=True)
    parquet = pd.read_parquet(io.BytesIO(fetch(table, "parquet")))
    pd.testing.assert_frame_equal(parquet, wanted, check_dtype=False, check_categorical=False)
    csv = pd.read_csv(io.BytesIO(fetch(table, "csv")), dtype={"name": "str"}, low_memory=False)
    assert csv.columns.tolist() == wanted.columns.tolist()
    assert csv["event_id"].tolist() == wanted["event_id"].tolist()
    with pytest.raises(LookupError, match="another download"):  # what was fetched is forgotten
        piece(table, 1)


def test_a_download_that_was_given_up_is_forgotten(table: EventsTable) -> None:
    assert piece(table, 0)[0] > 2
    table._forget_file({"key": "other"})
    piece(table, 1)
    table._forget_file({"key": "k"})
    with pytest.raises(LookupError, match="another download"):
        piece(table, 2)


def test_a_file_has_no_piece_of_another(table: EventsTable) -> None:
    """Where a second tab begins to save, the first is told so."""
    assert piece(table, 0)[0] > 2
    second = {"form": "csv", "key": "of the second tab"}
    assert table._on_file({**second, "chunk": 0})[0]["chunks"] > 1
    with pytest.raises(LookupError, match="another download"):
        piece(table, 1)
    table._on_file({**second, "chunk": 1})


def test_a_spreadsheet_runs_no_name() -> None:
    names = ['=HYPERLINK("x")', "+1", "-2.5e3", "@a", "-x", 'a"b,c\n', "plain", None]
    frame = pd.DataFrame({"name": pd.Categorical(names), "n": pd.array([1, None] * 4, "Int64")})
    read = pd.read_csv(io.BytesIO(as_bytes(frame, "csv")), dtype="str", keep_default_na=False)
    safe = ['\'=HYPERLINK("x")', "+1", "-2.5e3", "'@a", "'-x", 'a"b,c\n', "plain", ""]
    assert read["name"].tolist() == safe
    assert pd.read_parquet(io.BytesIO(as_bytes(frame, "parquet")))["name"].tolist()[:4] == names[:4]
    mixed = pd.concat([frame, pd.DataFrame({"n": [3]})])  # a rank without the column
    assert as_bytes(mixed.astype({"name": "object"}), "csv").count(b"'=HYPER") == 1
    assert as_bytes(mixed.astype({"name": "str"}), "csv").count(b"'=HYPER") == 1
    assert as_bytes(frame.head(0), "csv") == b'"name","n"\n'
    with pytest.raises(ValueError, match="no format 'xlsx'"):
        as_bytes(frame, "xlsx")


def test_rows_are_those_of_the_frame(ddp: Trace) -> None:
    chosen = Chosen(Scope(ranks=(2, 3)), " MM ")
    rows = chosen_rows(ddp, chosen)
    assert [rank.rank for rank, _ in rows] == [2, 3]
    ids = np.concatenate([rank.event_id[at] for rank, at in rows])
    assert ids.tolist() == chosen_frame(ddp, chosen)["event_id"].tolist()


FILTERS: list[dict[str, Any]] = [
    {"dur_ns": (1_000, 50_000)},
    {"dur_ns": (50_000, None), "name": "NCCL"},
    {"track": "stream 2"},
    {"track": "thread"},
    {"correlation": (None, 10**6)},
    {"event_class": "comm", "rank": (1, 2)},
    {"category": "KERNEL", "iteration": (11, 12)},
    {"bytes": (1, None)},
    {"name": "(no such name"},
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_keep_what_their_expression_keeps(
    table: EventsTable, ddp: Trace, until: Any, filters: dict[str, Any]
) -> None:
    table.set_state({"filters": {k: list(v) if isinstance(v, tuple) else v for k, v in filters.items()}})
    until(lambda: table._shown is not None and dict(table._shown.events.filters) == filters)
    table.sort = "-dur_ns"
    until(lambda: table._shown.sort == "-dur_ns")
    wanted = eval(table.expression.replace("table.frame()", "frame"), {"frame": table.frame()})
    assert table.rows == len(wanted) < len(table.frame())
    assert bool(table.rows) != ("(no such name" in str(filters))
    found = page(table, 0, MOST_ROWS, "event_id", "rank")
    assert_same(found["event_id"], wanted["event_id"].tolist()[:MOST_ROWS])
    assert_same(found["rank"], wanted["rank"].tolist()[:MOST_ROWS])
    assert len(pd.read_csv(io.BytesIO(table._written("csv")))) == len(wanted)
    message = "No event passes the filters." if not len(wanted) else ""
    assert table.message == message


def test_the_values_of_a_column_are_counted_whatever_the_filters(table: EventsTable, until: Any) -> None:
    frame = table.frame()
    table.filters = {"name": "nccl"}
    until(lambda: table.rows < len(frame))
    numbers = table._distribution({"column": "dur_ns"})
    assert numbers["edges"][0] == frame["dur_ns"].min() and numbers["edges"][-1] == frame["dur_ns"].max()
    by_hand = [
        int(frame["dur_ns"].between(a, b, inclusive="both" if last else "left").sum())
        for a, b, last in zip(numbers["edges"][:-1], numbers["edges"][1:], [False] * 23 + [True], strict=True)
    ]
    assert numbers["counts"] == by_hand and sum(by_hand) == len(frame)
    classes = table._distribution({"column": "event_class"})
    assert dict(classes["values"]) == frame["event_class"].astype("str").value_counts().to_dict()
    streams = table._distribution({"column": "stream"})
    assert streams["missing"] == int(frame["stream"].isna().sum()) > 0
    names = table._distribution({"column": "name"})
    assert names["distinct"] == frame["name"].nunique() and len(names["values"]) == 12
    assert names["values"][0][1] == frame["name"].value_counts().iloc[0]
    collectives = table._distribution({"column": "collective_name"})
    assert (names["missing"], collectives["missing"]) == (0, int(frame["collective_name"].isna().sum()))
    assert 0 < sum(count for _, count in collectives["values"]) == len(frame) - collectives["missing"]
    assert table._distribution({"column": "python_id"}) == {"edges": [], "counts": [], "missing": len(frame)}


@pytest.mark.parametrize(
    "filters",
    [
        {"no such": "x"},
        {"name": (1, 2)},
        {"dur_ns": "long"},
        {"dur_ns": (1,)},
        {"dur_ns": ("1", None)},
        {"dur_ns": (float("nan"), None)},
        {"dur_ns": True},
    ],
    ids=str,
)
def test_filters_that_mean_nothing_are_refused(table: EventsTable, filters: dict[str, Any]) -> None:
    with pytest.raises(t.TraitError):
        table.filters = filters
    assert table.filters == {}
