"""Text that is read though it is no JSON is counted, with its first place; JSON never is."""

import io
import json
from pathlib import Path

import pytest

from hta_widgets.trace import Trace
from hta_widgets.trace.reader import scanner
from hta_widgets.trace.reader.table import EventTable, Problem

EVENT = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":2,"ts":5,"dur":1,"args":{"stream":7}}'


def scan(text: str, block_bytes: int = 4096) -> EventTable:
    return scanner.scan(io.BytesIO(text.encode()), block_bytes=block_bytes)


def odd(table: EventTable) -> list[Problem]:
    return [problem for problem in table.problems if problem.check == "not_json"]


NUMBERS = {"01": 1000, "-01": -1000, "+5": 5000, ".5": 500, "5.": 5000, "1_0": 10_000, "0x10": 16_000,
           "007.25": 7250, "00": 0, "1e05": None}  # fmt: skip


@pytest.mark.parametrize("block_bytes", [64, 4096])
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_are_none_are_read_and_counted(number: str, block_bytes: int) -> None:
    event = EVENT.replace('"ts":5', f'"ts":{number}')
    text = f'{{"traceEvents":[{EVENT},{event},{EVENT},{event}]}}'
    table = scan(text, block_bytes)
    assert table.n == 4
    if number == "1e05":  # is one
        assert not odd(table)
        return
    assert table.ints("start_ns").tolist() == [5000, NUMBERS[number], 5000, NUMBERS[number]]
    (problem,) = odd(table)
    assert (problem.count, problem.offset) == (2, text.index(number + ",", len(EVENT)))


@pytest.mark.parametrize("place", ['"pid":1', '"stream":7', '"dur":1', '"tid":2'])
@pytest.mark.parametrize("value", ["01", "+5", ".5", "tru", "nul", "1 2", "[1,2}", "[1 2]", '{"a" 1}', "[,]"])
def test_wherever_they_stand(place: str, value: str) -> None:
    text = f"[{EVENT},{EVENT.replace(place, place.split(':')[0] + ':' + value)}]"
    table = scan(text)
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    assert odd(table) or any(problem.check == "malformed_event" for problem in table.problems)


SEPARATORS = {
    "none between events": f"[{EVENT}@{EVENT}]",
    "two between events": f"[{EVENT},,@{EVENT}]",
    "one behind the last": f"[{EVENT},@]",
    "one before the first": f"[,@{EVENT}]",
    "none between members": '[{"ph":"X" @"ts":1}]',
    "one behind the last member": '[{"ph":"X","ts":1,@}]',
    "one before the first member": '[{,@"ph":"X","ts":1}]',
    "one behind the last argument": '[{"ph":"X","args":{"a":1,@},"ts":1}]',
    "none behind the arguments": '[{"ph":"X","args":{"a":1}@"ts":1}]',
}


@pytest.mark.parametrize("block_bytes", [16, 4096])
@pytest.mark.parametrize("where", SEPARATORS)
def test_commas_missing_or_too_many(where: str, block_bytes: int) -> None:
    text = SEPARATORS[where]
    at, text = text.index("@"), text.replace("@", "")
    table = scan(text, block_bytes)
    assert table.n == text.count('"ph"')
    assert [(problem.count, problem.offset) for problem in odd(table)] == [(1, at)]


ODD_TEXTS = [b"a\xff", b"a\xc3", b"\xed\xa0\x80", b"a\x01", b"a\n", b"a\\x41", b"a\\u12g4", b"\\u12", b"a\\'"]


@pytest.mark.parametrize("text", ODD_TEXTS)
@pytest.mark.parametrize("place", ["name", "dtype", "Input Dims"])
def test_texts_that_json_does_not_allow_are_read_and_counted(place: str, text: bytes) -> None:
    event = b'{"ph":"X","name":"name","ts":5,"args":{"dtype":"dtype","Input Dims":["Input Dims"]}}'
    damaged = event.replace(b':"%b"' % place.encode(), b':"%b"' % text)
    damaged = damaged.replace(b'["Input Dims"]', b'["%b"]' % text) if place == "Input Dims" else damaged
    whole = b"[" + b",".join([event, damaged, event, damaged]) + b"]"
    with pytest.raises(ValueError):
        json.loads(whole.decode())
    table = scanner.scan(io.BytesIO(whole))
    assert table.n == 4
    if place == "Input Dims" and text == b"a\n":  # taken for white space
        return
    (problem,) = odd(table)
    assert (problem.count, problem.severity) == (1, "warning")


def test_texts_that_json_allows_are_not_counted() -> None:
    event = json.loads(EVENT)
    for text in ("é東🚀", "\x7f", "\\", '"', "a\n\t\x00", "\ud800", "C:\\new", ""):
        event["name"], event["args"]["Input Dims"] = text, [text, {text: 1}]
        for ascii_only in (True, False):
            if not ascii_only and text == "\ud800":
                continue
            for indent in (None, 2):
                body = json.dumps([event], ensure_ascii=ascii_only, indent=indent)
                assert not odd(scan(body)), text


@pytest.mark.parametrize("block_bytes", [64, 4096])
def test_keys_spelt_with_escapes_are_read(block_bytes: int) -> None:
    escaped = EVENT.replace('"name"', '"n\\u0061me"').replace('"stream"', '"\\u0073tream"')
    escaped = escaped.replace('"args"', '"\\u0061rgs"').replace('"ts"', '"t\\u0073"')
    assert json.loads(escaped) == json.loads(EVENT)
    table, plain = scan(f"[{EVENT},{escaped},{EVENT},{escaped}]", block_bytes), scan(f"[{EVENT}]")
    assert table.n == 4 and not table.problems
    assert table.sparse("stream")[1].tolist() == [7] * 4
    assert table.codes("name").tolist() == [0] * 4 and table.dictionary("name") == plain.dictionary("name")
    assert table.ints("start_ns").tolist() == [5000] * 4
    assert scan(f"[{EVENT.replace('stream', 'stream2')}]").sparse("stream")[1].tolist() == []


def test_a_damaged_event_is_counted_once_and_its_commas_are_not() -> None:
    table = scan(f'[{EVENT}, {{"ph" 1}}, {EVENT}, {EVENT}}}, {EVENT}]')
    assert table.n == 4 and {problem.check for problem in table.problems} == {"malformed_event"}


NESTED = ["[]", "{}", "[[],[[4,8],{}]]", '{"a":[1,-0.5e+7,true,false,null,NaN,-Infinity],"b\\"":{"c":"]"}}',
          '["a,b","}"]', "[ 1 , 2 ]", "[" * 70 + "]" * 70]  # fmt: skip


@pytest.mark.parametrize("value", [*NESTED, "0", "-0", "1.5", "1E5", "12345678", "123456789", "NaN", "null"])
def test_json_is_never_counted(value: str) -> None:
    for event in (
        EVENT.replace('"ts":5', f'"x":{value},"ts":5'),
        EVENT.replace('"stream":7', f'"x":{value}'),
    ):
        text = f"[\n{event} ,\n {event}\n]"
        json.loads(text)
        assert not scan(text).problems and not scan(text, 32).problems


@pytest.mark.parametrize("value", ["[1]", '{"a": 1}', '"text"', "[]"])
def test_a_value_that_is_no_number_is_json_all_the_same(value: str) -> None:
    text = f"[{EVENT.replace('7', value).replace('5', value)}]"
    json.loads(text)
    assert not odd(scan(text))


def test_a_second_list_of_events_is_told() -> None:
    text = f'{{"traceEvents":[{EVENT}],"a":{{"traceEvents":[1]}},"traceEvents":[{EVENT},{EVENT}]}}'
    (problem,) = scan(text).problems
    assert (problem.check, problem.offset) == ("second_events", text.rindex('"traceEvents"'))
    assert scan(f'{{"traceEvents":[{EVENT}],"a":{{"traceEvents":[1]}}}}').problems == []


def test_health_tells_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_text(f"[{EVENT} {EVENT}]")
    line = Trace.open(path, cache=False).health.set_index("check").loc["not_json"]
    assert line["severity"] == "warning" and line["count"] == 1
    assert line["detail"].endswith(f"(first at byte {len(EVENT) + 2})")
