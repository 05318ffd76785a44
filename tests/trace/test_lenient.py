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
