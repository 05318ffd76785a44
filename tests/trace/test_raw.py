"""Copies of trace files: what is not edited stays as it was, byte for byte."""

import gzip
import io
import json
import random

import numpy as np
import orjson
import pytest

from hta_widgets.errors import TraceFormatError, TraceNotFoundError
from hta_widgets.trace.reader.raw import RawTrace
from hta_widgets.trace.reader.scanner import scan
from tests.support import shared_trace
from tests.trace.test_scanner_fuzz import SEED_TEXT, mutate

pytestmark = pytest.mark.slow

SAMPLES = [
    "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "hta/trace_filter/sampled_rank-0.json.gz",
    "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz",
    "kineto/resnet50_num_workers_0/worker0.pt.trace.json.gz",
    "tracelens/mi300/resnet_act_checkpoint.json.gz",
    "hta/call_stack/backward_thread.json",
]


def contents(path):
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def raw_of(tmp_path, text, name="in.json"):
    path = tmp_path / name
    path.write_bytes(text)
    return RawTrace.read(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_events_are_the_rows_of_the_event_table_and_a_copy_is_the_same_text(name, tmp_path):
    path = shared_trace(name)
    raw, table = RawTrace.read(path), scan(path)
    assert raw.n == table.n
    names, codes = table.dictionary("name"), table.codes("name")
    for i in range(0, raw.n, max(1, raw.n // 100)):
        assert raw.event(i).get("name", "") == (names[codes[i]] if codes[i] >= 0 else "")
    target = tmp_path / ("copy.json.gz" if path.suffix == ".gz" else "copy.json")
    raw.write(target)
    assert contents(target) == contents(path)
    assert sorted(tmp_path.iterdir()) == [target]


TEXT = b"""{"schemaVersion": 1, "note": {"traceEvents": [{"name": "no event"}]}, "traceEvents": [
  {"ph": "X", "name": "a \\"}{\\" b", "ts": 1751410836123456.789, "dur": 0.10,
   "args": {"x": [1.50, {"y": 1e3}]}},
  {"ph": "X", "name": "second", "ts": 5, "id": 18446744073709551616, "args": {}},
  {"ph": "X", "name": "third", "ts": 7.000}
], "traceName": "x", "distributedInfo": {"rank": 3}}"""


def test_an_edit_keeps_every_digit_of_the_other_values(tmp_path):
    raw = raw_of(tmp_path, TEXT)
    assert raw.n == 3
    event, second = raw.event(0), raw.event(1)
    event["args"]["added"] = 1
    second["name"] = "renamed"
    raw.write(tmp_path / "out.json", edits={0: event, 1: second})
    text = (tmp_path / "out.json").read_bytes()
    for digits in (
        b"1751410836123456.789",
        b":0.10",
        b"1.50",
        b"1e3",
        b"18446744073709551616",
        b'"ts": 7.000',
    ):
        assert digits in text
    parsed = json.loads(text)
    assert parsed["traceEvents"][0]["args"] == {"x": [1.5, {"y": 1000.0}], "added": 1}
    assert [item["name"] for item in parsed["traceEvents"]] == ['a "}{" b', "renamed", "third"]
    assert parsed["distributedInfo"] == {"rank": 3} and parsed["schemaVersion"] == 1


def test_many_values_are_replaced_at_once(tmp_path):
    first = '{"name": "a\\"b", "ts": 1.000000000000000001, "args": {"x": [1, {"name": 2}]}}'
    second = '{"args": {"name": "no"}, "name": "c"}'
    third = '{"ph": "M", "ts": 3.50}'
    raw = raw_of(tmp_path, f'{{"traceEvents": [{first}, {second}, {third}], "end": 1}}'.encode())
    name, name_end = raw.values("name")
    args, args_end = raw.values("args")
    assert (name[2], name_end[2], args[2]) == (-1, -1, -1)
    assert raw.begins_with("{", args[:2]).all()
    two = np.array([0, 1])
    replaced = raw.replaced(
        [(args[:2], args_end[:2], [b"{}"], two * 0), (name[:2], name_end[:2], [b'"0"', b'"longer"'], two)]
    )
    replaced.write(tmp_path / "out.json", edits={1: replaced.event(1) | {"ts": 2}})
    assert (tmp_path / "out.json").read_text() == (
        '{"traceEvents": [{"name": "0", "ts": 1.000000000000000001, "args": {}}, '
        '{"args":{},"name":"longer","ts":2}, {"ph": "M", "ts": 3.50}], "end": 1}'
    )
    assert raw.event(0)["args"] == {"x": [1, {"name": 2}]}


def test_events_are_left_out_and_added(tmp_path):
    raw = raw_of(tmp_path, TEXT)
    more = [{"ph": "C", "name": "counter", "ts": orjson.Fragment("3.250"), "args": {"n": np.int64(4)}}]
    for keep, left in (([0, 1, 0], ["second"]), ([1, 0, 1], ['a "}{" b', "third"]), ([0, 0, 0], [])):
        raw.write(tmp_path / "out.json.gz", keep=np.array(keep, bool), append=more)
        written = contents(tmp_path / "out.json.gz")
        assert [item["name"] for item in json.loads(written)["traceEvents"]] == [*left, "counter"]
        assert b"3.250" in written


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b' [\n{"ph": "X", "name": "a", "ts": 1, "dur": 1},\n{"ph": "X", "name": "b", "ts": 1, "dur": 1}\n]\n',
        b'{"traceEvents": []}',
        b'{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":2}],"z":1}',
    ],
)
def test_bare_arrays_and_empty_traces(text, tmp_path):
    raw = raw_of(tmp_path, text)
    raw.write(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == text
    raw.write(tmp_path / "more.json", append=[{"ph": "C", "name": "c"}])
    read = json.loads((tmp_path / "more.json").read_bytes())
    events = read if isinstance(read, list) else read["traceEvents"]
    assert len(events) == raw.n + 1


def test_of_a_cut_file_the_complete_events_are_written_as_a_whole_trace(tmp_path):
    for cut in range(120, len(TEXT), 7):
        raw = raw_of(tmp_path, TEXT[:cut])
        raw.write(tmp_path / "out.json")
        read = json.loads((tmp_path / "out.json").read_bytes())
        assert len(read["traceEvents"]) == raw.n
        assert ("traceName" in read) == (cut > TEXT.index(b', "distributedInfo"'))
    whole = gzip.compress(TEXT * 1)
    raw = raw_of(tmp_path, whole[:-8], "cut.json.gz")
    assert raw.n == 3


def test_damaged_files_have_the_events_that_the_scanner_reads(tmp_path):
    compared = 0
    for seed in range(160):
        text = mutate(SEED_TEXT, random.Random(seed))
        try:
            table = scan(io.BytesIO(text))
        except TraceFormatError:
            continue
        raw = raw_of(tmp_path, text)
        assert raw.n == table.n, seed
        raw.write(tmp_path / "out.json", append=[{"ph": "X", "name": "last", "ts": 1, "dur": 1}])
        assert scan(tmp_path / "out.json").n == table.n + 1, seed
        compared += 1
    assert compared > 80


def test_the_trace_itself_is_never_overwritten(tmp_path):
    raw = raw_of(tmp_path, TEXT)
    (tmp_path / "link.json").symlink_to(tmp_path / "in.json")
    for target in (tmp_path / "in.json", tmp_path / "link.json", tmp_path / "x" / ".." / "in.json"):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(ValueError, match="never overwritten"):
            raw.write(target)
    with pytest.raises(IndexError, match="no event 3"):
        raw.write(tmp_path / "out.json", edits={3: {}})
    assert (tmp_path / "in.json").read_bytes() == TEXT


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    raw = raw_of(tmp_path, TEXT)
    with pytest.raises(TypeError):
        raw.write(tmp_path / "out.json", append=[{"name": object()}])
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


def test_broken_names_can_be_written(tmp_path):
    raw = raw_of(tmp_path, b'{"traceEvents": [{"ph": "X", "name": "half \\ud83d pair", "ts": 1, "dur": 1}]}')
    raw.write(tmp_path / "out.json", edits={0: raw.event(0) | {"ts": 2}})
    assert json.loads((tmp_path / "out.json").read_bytes())["traceEvents"][0]["ts"] == 2


def test_no_trace_no_copy(tmp_path):
    with pytest.raises(TraceNotFoundError):
        RawTrace.read(tmp_path / "none.json")
    for text in (b"", b"{}", b'{"traceEvents": 5}'):
        with pytest.raises(TraceFormatError):
            raw_of(tmp_path, text)
