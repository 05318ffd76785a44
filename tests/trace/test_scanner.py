"""The scanner against a plain `json` + `Decimal` reading of the same file."""

import gzip
import io
import json
import tracemalloc
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import fsspec
import numpy as np
import pytest

from hta_widgets import examples
from hta_widgets.errors import TraceNotFoundError
from hta_widgets.trace.reader import blocks, columns, scanner
from hta_widgets.trace.reader.schema import NULL
from tests.support import SHARED_TRACES, is_asked

REAL_TRACES = sorted(
    path
    for path in SHARED_TRACES.rglob("*.json*")
    # not an execution trace, which is no Kineto trace
    if not path.stem.endswith("_et.json") and is_asked(path)
)


def reference(path: Path) -> tuple[list[dict], dict]:
    raw = path.read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.decompress(raw)
    document = json.loads(raw.decode("utf-8", "replace"), parse_float=Decimal, strict=False)
    if isinstance(document, list):
        return document, {}
    return document.pop("traceEvents"), document


def as_ns(value: object) -> int:
    if value is None:
        return NULL
    return int((Decimal(str(value)) * 1000).to_integral_value(ROUND_HALF_EVEN))


def as_int(value: object) -> int:
    if isinstance(value, str):
        value = int(value, 0)
    if value is None:
        return NULL
    assert isinstance(value, int)
    return value - (1 << 64) if value >= 1 << 63 else value


def texts(table, name: str) -> list[str | None]:
    dictionary = [*table.dictionary(name), None]
    return [dictionary[code] for code in table.codes(name)]


def trace(*events: object, **metadata: object) -> io.BytesIO:
    return io.BytesIO(json.dumps({**metadata, "traceEvents": list(events)}).encode())


@pytest.mark.parametrize("path", REAL_TRACES, ids=lambda path: str(path.relative_to(SHARED_TRACES)))
def test_real_trace_is_read_exactly(path: Path) -> None:
    events, metadata = reference(path)
    table = scanner.scan(path)
    assert table.n == len(events)
    assert table.problems == []
    assert set(table.metadata) == set(metadata)
    args = [event.get("args") or {} for event in events]
    assert np.array_equal(table.ints("start_ns"), [as_ns(event.get("ts")) for event in events])
    assert np.array_equal(table.ints("dur_ns"), [as_ns(event.get("dur")) for event in events])
    for column, key in (
        ("phase", "ph"),
        ("category", "cat"),
        ("name", "name"),
        ("pid", "pid"),
        ("tid", "tid"),
    ):
        expected = [None if event.get(key) is None else str(event[key]) for event in events]
        assert texts(table, column) == expected
    for column, key in (
        ("stream", "stream"),
        ("correlation", "correlation"),
        ("bytes", "bytes"),
        ("addr", "Addr"),
    ):
        assert table.ints(column).tolist() == [as_int(a.get(key)) for a in args]
    external = [as_int(a.get("External id", a.get("external id"))) for a in args]
    assert table.ints("external_id").tolist() == external
    bandwidth = [float(a.get("memory bandwidth (GB/s)", "nan")) for a in args]
    assert np.array_equal(table.floats("memory_bandwidth_gbps"), bandwidth, equal_nan=True)
    grids = [text and json.loads(text, parse_float=Decimal) for text in texts(table, "grid")]
    assert grids == [a.get("grid") for a in args]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1751410836123456.789", 1751410836123456789),
        ("1751410836123456", 1751410836123456000),
        ("0.001", 1),
        ("12.5", 12500),
        ("12.25", 12250),
        ("-1.5", -1500),
        ("1.0005", 1000),  # half to even
        ("1.0015", 1002),
        ("1.23456789", 1235),
        ("1.7e3", 1700000),
        ("1.751410836123456789E15", 1751410836123456789),
        ('"1751410836123456.789"', 1751410836123456789),
        ('" 12.5 "', 12500),
        ("9223372036854775.807", 9223372036854775807),
        ("9223372036854775.808", NULL),
        ("0.0005" + "0" * 30 + "1", 1),  # more digits than a Decimal's usual precision
        ("1e-400", 0),
        ("1e-99999999", 0),
        ("0e999", 0),
        ("1e400", NULL),
        ("NaN", NULL),
        ("null", NULL),
        ("-", NULL),
        ("1.2.3", NULL),
        ('"soon"', NULL),
        ("true", NULL),
        ("[1]", NULL),
    ],
)
def test_time_text_becomes_exact_nanoseconds(text: str, ns: int) -> None:
    table = scanner.scan(io.BytesIO(b'{"traceEvents": [{"ph": "X", "ts": %s, "dur": 1}]}' % text.encode()))
    assert table.ints("start_ns").tolist() == [ns]
    assert table.ints("dur_ns").tolist() == [1000]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-1", -1),
        ('"7"', 7),
        ('"0x1f"', 31),
        ("7.0", 7),
        ("1e3", 1000),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551615", -1),
        ("12297829382473034410", 12297829382473034410 - 2**64),
        ("18446744073709551621", NULL),
        ("36893488147419103232", NULL),
        ("7.5", NULL),
        ("null", NULL),
        ('""', NULL),
    ],
)
def test_integer_spellings(text: str, value: int) -> None:
    table = scanner.scan(io.BytesIO(b'[{"ph": "X", "ts": 0, "args": {"stream": %s}}]' % text.encode()))
    assert table.ints("stream").tolist() == [value]


def test_of_duplicate_keys_the_last_counts() -> None:
    args = b'{"stream":1,"stream":"2","device":"3","device":4}'
    text = b'[{"ph":"B","ph":"X","ts":"1","ts":2,"dur":3,"dur":"4","args":%s}]' % args
    table = scanner.scan(io.BytesIO(text))
    assert texts(table, "phase") == ["X"]
    assert (table.ints("start_ns")[0], table.ints("dur_ns")[0]) == (2000, 4000)
    assert (table.ints("stream")[0], table.ints("device")[0]) == (2, 4)


def test_pid_number_and_text_are_one_entry() -> None:
    table = scanner.scan(trace({"ph": "M", "pid": 7, "tid": "stream 7"}, {"ph": "M", "pid": "7", "tid": 7}))
    assert table.dictionary("pid") == ["7"]
    assert texts(table, "tid") == ["stream 7", "7"]


def test_counters_keep_all_their_arguments() -> None:
    counter = {"args": {"SM busy": 0.5, "DRAM": [1]}, "ph": "C", "name": "GPU 0", "ts": 1}
    table = scanner.scan(trace(counter, {"ph": "X", "args": {"a": 1}, "ts": 2}))
    rows, codes = table.sparse("counter_args")
    assert rows.tolist() == [0]
    assert json.loads(table.dictionary("counter_args")[codes[0]]) == counter["args"]


def test_metadata_events_flows_and_extra_arguments() -> None:
    table = scanner.scan(
        trace(
            {"ph": "M", "name": "thread_name", "args": {"name": "main", "sort_index": 3, "labels": "a,b"}},
            {"ph": "s", "id": 12, "bp": "e", "args": {"kernel": 'x"y'}},
        ),
        extra_args=["kernel"],
    )
    assert texts(table, "args_name") == ["main", None]
    assert texts(table, "args_labels") == ["a,b", None]
    assert table.ints("args_sort_index").tolist() == [3, NULL]
    assert table.ints("flow_id").tolist() == [NULL, 12]
    assert texts(table, "binding") == [None, "e"]
    assert texts(table, "kernel") == [None, '"x\\"y"']


def test_metadata_before_and_after_the_events() -> None:
    meta = b'"schemaVersion": 1, "meta": {"traceEvents": [1]}'
    text = b"{" + meta + b', "traceEvents": [], "distributedInfo": {"rank": 3}}'
    table = scanner.scan(io.BytesIO(text))
    assert table.n == 0
    assert table.metadata == {
        "schemaVersion": 1,
        "meta": {"traceEvents": [1]},
        "distributedInfo": {"rank": 3},
    }


def test_missing_column_reads_as_null() -> None:
    table = scanner.scan(trace({"ph": "X", "ts": 1}))
    assert not table.has("stream") and not table.has("dur_ns") and table.has("start_ns")
    assert table.ints("stream").tolist() == [NULL]
    assert np.isnan(table.floats("memory_bandwidth_gbps")).all()
    assert table.codes("dtype").tolist() == [-1]
    assert table.sparse("stream")[0].size == 0


@pytest.mark.parametrize(
    "column", ["start_ns", "correlation", "bytes", "stream", "name", "tid", "grid", "collective_name"]
)
def test_values_of_some_events_are_those_of_all(column: str) -> None:
    table = scanner.scan(Path(examples.path("ddp_4ranks")) / "rank-0.pt.trace.json.gz")
    is_text = column in table.text_columns
    some, of_all = (table.codes_of, table.codes(column)) if is_text else (table.ints_of, table.ints(column))
    everything, having = np.arange(table.n), table.sparse(column)[0]
    for rows in (everything, everything[:0], having, everything[::-7]):
        found = some(column, rows)
        np.testing.assert_array_equal(found, of_all[rows])
        assert found.dtype == of_all.dtype
        found[:] = 0  # a copy


@pytest.mark.parametrize("block_bytes", [64, 257, 4096])
def test_blocks_may_end_anywhere(block_bytes: int) -> None:
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f'n{i} "}}, {{"\\',
            "ts": i,
            "dur": 0.5,
            "args": {"Input Dims": [[i], [2, 3]]},
        }
        for i in range(300)
    ]
    table = scanner.scan(trace(*events, late={"x": 1}), block_bytes=block_bytes)
    assert table.problems == []
    assert texts(table, "name") == [event["name"] for event in events]
    assert table.ints("start_ns").tolist() == [i * 1000 for i in range(300)]
    assert [json.loads(text) for text in texts(table, "input_dims")] == [[[i], [2, 3]] for i in range(300)]


def test_sources(tmp_path: Path) -> None:
    plain = tmp_path / "a.json"
    plain.write_bytes(trace({"ph": "X", "ts": 1}).getvalue())
    zipped = tmp_path / "a.json.gz"
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    for source in (plain, str(zipped), plain.open("rb"), fsspec.open(str(zipped)), f"file://{plain}"):
        assert scanner.scan(source).n == 1
    with pytest.raises(TraceNotFoundError):
        scanner.scan(tmp_path / "none.json")


def test_progress_may_cancel(tmp_path: Path) -> None:
    calls = []

    def progress(done: int, total: int | None) -> None:
        calls.append((done, total))
        if len(calls) == 2:
            raise KeyboardInterrupt

    path = tmp_path / "a.json"
    path.write_bytes(trace(*[{"ph": "X", "ts": i} for i in range(1000)]).getvalue())
    with pytest.raises(KeyboardInterrupt):
        scanner.scan(path, progress=progress, block_bytes=1024)
    assert len(calls) == 2 and calls[1][1] == path.stat().st_size


def test_files_do_not_learn_keys_from_each_other() -> None:
    known = columns.ColumnScanner((), 4096)._plan.keys.used.tolist()
    strange = ",".join(f'"key {number}": 1' for number in range(2000))
    scanner.scan(io.BytesIO(b'[{"ph": "X", "ts": 1, %s}]' % strange.encode()))
    assert columns.ColumnScanner((), 4096)._plan.keys.used.tolist() == known


def test_columns_are_never_in_memory_twice(monkeypatch):
    """Four times the events take at their peak little more than the columns that come with them."""
    monkeypatch.setattr(blocks, "_MOST", blocks._LEAST)  # buffers of one size
    event = '{"ph":"X","cat":"kernel","name":"k%d","pid":0,"ts":%d,"dur":2,"args":{"stream":7,"device":0}}'
    used = []
    for n in (50_000, 200_000):
        text = f'{{"traceEvents":[{",".join(event % (i % 9, 3 * i) for i in range(n))}]}}'.encode()
        scanner.scan(io.BytesIO(text))
        tracemalloc.start()
        table = scanner.scan(io.BytesIO(text))
        used.append((tracemalloc.get_traced_memory()[1], table.nbytes))
        tracemalloc.stop()
    (peak, size), (larger_peak, larger_size) = used
    assert larger_peak - peak < 1.25 * (larger_size - size), (larger_peak - peak) / (larger_size - size)


def test_columns_of_an_even_file_stay_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add, places = columns._Growing.add, dict[columns._Growing, set[int]]()

    def watched(self: columns._Growing, *args: object) -> None:
        add(self, *args)
        places.setdefault(self, set()).add(self._values.ctypes.data)

    monkeypatch.setattr(columns._Growing, "add", watched)
    path = tmp_path / "a.json"
    events = [
        {"ph": "X", "ts": 1_000_000 + i, "dur": 5, "name": "k", "args": {"stream": 7}} for i in range(9999)
    ]
    path.write_bytes(trace(*events).getvalue())
    assert scanner.scan(path, block_bytes=1 << 16).n == 9999
    assert len(places) > 4 and {len(of_column) for of_column in places.values()} == {1}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("first", ["short", "long"])
def test_what_a_file_begins_with_may_mislead_about_its_length(
    tmp_path: Path, first: str, packed: bool
) -> None:
    short = [{"ph": "X", "ts": i, "args": {"stream": i}} for i in range(3000)]
    long = [{"ph": "X", "ts": i, "name": "n" * 900, "dur": i} for i in range(600)]
    text = trace(*(short + long if first == "short" else long + short)).getvalue()
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(text) if packed else text)
    expected, table = scanner.scan(io.BytesIO(text)), scanner.scan(path, block_bytes=4096)
    assert (table.n, table.columns, table.nbytes) == (3600, expected.columns, expected.nbytes)
    for name in table.columns:
        for values, others in zip(table.sparse(name), expected.sparse(name), strict=True):
            assert values.dtype == others.dtype and np.array_equal(values, others)
        assert table.dictionary(name) == expected.dictionary(name)
