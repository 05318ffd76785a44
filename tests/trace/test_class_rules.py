"""Rules for classes that belong to one trace: from the caller, and from a file beside the traces."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets.trace import EventClass, Trace
from hta_widgets.trace.class_rules import (
    FILE_NAME,
    LARGEST_BYTES,
    append_rules,
    as_text,
    function_pattern,
    parse,
)
from hta_widgets.trace.classify import register, unregister
from tests.trace.helpers import kernel, write

EVENTS = [kernel("my_ring<4>()", 0, 5), kernel("ncclDevKernel_SendRecv", 10, 5), kernel("gemm", 20, 5)]
GOOD = '[[class]]\nname = "my_ring"\nclass = "communication"\n'


def labels(trace):
    rank = trace.rank(trace.ranks[0])
    return [EventClass(kind).label for kind in rank.event_class.tolist()]


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "job" / "rank0.json", EVENTS, distributedInfo={"rank": 0})
    return tmp_path / "job"


def told(trace):
    health = trace.health
    rows = health[health["check"] == "class_rules"]
    return list(zip(rows["severity"], rows["detail"], strict=True))


def test_without_rules(folder):
    trace = Trace.open(folder, cache=False)
    assert labels(trace) == ["compute", "communication", "compute"]
    assert told(trace) == []


OPEN_AS = {
    "folder": lambda folder: folder,
    "text": str,
    "file": lambda folder: folder / "rank0.json",
    "list": lambda folder: [folder / "rank0.json"],
    "mapping": lambda folder: {3: folder / "rank0.json"},
    "url": lambda folder: f"file://{folder}",
}


@pytest.mark.parametrize("open_as", OPEN_AS.values(), ids=OPEN_AS)
def test_a_file_beside_the_traces(folder, open_as):
    (folder / FILE_NAME).write_text(GOOD)
    trace = Trace.open(open_as(folder), cache=False)
    assert labels(trace) == ["communication", "communication", "compute"]
    ((severity, detail),) = told(trace)
    assert severity == "info"
    assert detail.startswith("rules for classes of device work from ") and detail.endswith(FILE_NAME)


def test_the_file_in_the_folder_above_its_subfolders(tmp_path):
    write(tmp_path / "host0" / "rank0.json", EVENTS)
    (tmp_path / FILE_NAME).write_text(GOOD)
    assert labels(Trace.open(tmp_path, cache=False))[0] == "communication"


def test_rules_of_the_caller_come_first(folder, tmp_path):
    (folder / FILE_NAME).write_text(GOOD)
    assert labels(Trace.open(folder, cache=False, classes={"my_": "memory_copy"}))[0] == "memory_copy"
    assert labels(Trace.open(folder, cache=False, classes={"nccl": EventClass.COMPUTE}))[1] == "compute"
    other = tmp_path / "team.toml"
    other.write_text(GOOD.replace("communication", "sync"))
    assert labels(Trace.open(folder, cache=False, classes=other))[0] == "sync"


def test_rules_belong_to_one_trace(folder, tmp_path):
    ruled = Trace.open(folder, cache=tmp_path / "cache", classes={"my_ring": "communication"})
    plain = Trace.open(folder, cache=tmp_path / "cache")  # from the cache that the first one wrote
    again = Trace.open(folder, cache=tmp_path / "cache", classes={"my_ring": "sync"})
    assert [labels(trace)[0] for trace in (plain, ruled, again)] == ["compute", "communication", "sync"]
    kept = ruled.keep(lambda rank: rank.is_device)
    assert labels(kept)[0] == labels(ruled.timed_by("host"))[0] == "communication"


def test_registered_rules_are_those_of_the_moment_a_trace_is_opened(folder):
    rule = register("my_ring", "communication")
    try:
        trace = Trace.open(folder, cache=False)
    finally:
        unregister(rule)
    assert labels(trace)[0] == "communication"  # its ranks are built only now
    assert labels(Trace.open(folder, cache=False))[0] == "compute"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[class]]\nname = "x\n', "line 2: Illegal character '\\n'"),
        ("[[class]]\nname\n", "line 2: Expected '=' after a key"),
        (f'{GOOD}\n[[class]]\nname = "y"\nclass = "comunication"\n', "line 7: 'comunication' is no class"),
        (f'{GOOD}[[class]]\nclass = "sync"\nname = "("\n', "line 6: '(' is not a regular expression"),
        (f'{GOOD}[[class]]\nname = "y"\n', "line 4: 'class' is missing"),
        (f'{GOOD}[[class]]\nname = 5\nclass = "sync"\n', "line 5: 'name' is not a text"),
        (f'{GOOD}[[class]]\nname = "y"\nclas = "sync"\n', "line 6: unknown key 'clas'"),
        (f'{GOOD}[[clas]]\nname = "y"\n', "line 4: unknown key 'clas'"),
        ('[class]\nname = "y"\nclass = "sync"\n', "line 1: not a list of tables"),
        ("\nclass = [5]\n", "line 2: not a table"),
        (f'{GOOD}[[class]]\nname = "y"\nclass = "python"\n', "line 6: 'python' is no class of device work"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(folder, text, problem):
    (folder / FILE_NAME).write_text(text)
    trace = Trace.open(folder, cache=False)
    errors = [detail for severity, detail in told(trace) if severity == "error"]
    assert len(errors) == 1
    assert f"{FILE_NAME}, {problem}" in errors[0]
    assert labels(trace)[0] == ("communication" if text.startswith(GOOD) else "compute")


@pytest.mark.parametrize("text", ["", "# rules will come\n", "class = []\n"])
def test_a_file_without_rules_changes_nothing(folder, text):
    (folder / FILE_NAME).write_text(text)
    trace = Trace.open(folder, cache=False)
    assert labels(trace) == ["compute", "communication", "compute"]
    assert told(trace) == []


def test_files_that_cannot_be_read_are_told(folder, tmp_path):
    (folder / FILE_NAME).write_bytes(b'[[class]]\nname = "\xff"\n')
    assert "utf-8" in told(Trace.open(folder, cache=False))[0][1]
    (folder / FILE_NAME).write_text("#" * (LARGEST_BYTES + 1))
    assert "larger than" in told(Trace.open(folder, cache=False))[0][1]
    (folder / FILE_NAME).unlink()
    (folder / FILE_NAME).mkdir()
    assert told(Trace.open(folder, cache=False))[0][0] == "error"
    (severity, detail), *_ = told(Trace.open(folder, cache=False, classes=tmp_path / "none.toml"))
    assert (severity, detail) == ("error", f"{tmp_path / 'none.toml'}: no such file")


def test_a_wrong_mapping_is_the_callers_error(folder):
    with pytest.raises(ValueError, match="host_op"):
        Trace.open(folder, classes={"x": "host_op"})
    with pytest.raises(ValueError, match="regular expression"):
        Trace.open(folder, classes={"(": "sync"})


def test_inline_tables_are_rules_too():
    rules, wrong = parse('class = [{name = "a", class = "sync"}, {name = "b", class = "compute"}]')
    assert [rule.pattern.pattern for rule in rules] == ["a", "b"]
    assert wrong == []


NAMES = [
    "my_ring",
    "void x::my_ring<4>(int)",
    "void x::(anonymous namespace)::ring<(int)4, a>(float*)",
    "void ns::(anonymous namespace)::f(int)::{lambda(int)#1}",
    "<lambda>",
    'it\'s [a] "name" \\ of 100 % (ring)',
    "two\nlines\x7f\t",
    "é.b+c",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_found_by_its_pattern(name):
    pattern = re.compile(function_pattern(name))
    assert pattern.search(name)
    assert not pattern.search(f"other_{name}")


def test_a_pattern_is_of_the_function_alone():
    pattern = re.compile(function_pattern("void x::my_ring<4>(int)"))
    assert pattern.search("void x::my_ring<8, float>(long)") and pattern.search("void x::my_ring")
    assert not pattern.search("void x::my_ring2<4>(int)")
    assert not pattern.search("void x::my_ring::local<4>(int)")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_rules_are_read_as_they_were_written(name):
    text = as_text({function_pattern(name): "communication", "y": "sync"})
    rules, wrong = parse(text)
    assert wrong == []
    assert [(rule.pattern.pattern, rule.event_class.label) for rule in rules] == [
        (function_pattern(name), "communication"),
        ("y", "sync"),
    ]
    assert rules[0].pattern.search(name)


def test_rules_are_appended_once(folder):
    (folder / FILE_NAME).write_text(GOOD)
    assert append_rules(folder, {"token_": "communication"}) == folder / FILE_NAME
    append_rules(folder, {"token_": "communication", "other": "sync"})
    text = (folder / FILE_NAME).read_text()
    assert text.startswith(GOOD)
    rules, wrong = parse(text)
    assert ([rule.pattern.pattern for rule in rules][1:], wrong) == (["token_", "other"], [])
    before = (folder / FILE_NAME).read_text()
    append_rules(folder, {"other": "sync"})
    assert (folder / FILE_NAME).read_text() == before


def test_a_trace_takes_further_rules(folder):
    first = Trace.open(folder, cache=False, classes={"my_": "memory_copy"})
    ruled = first.with_classes({"my_ring": "communication"})
    assert [labels(trace)[0] for trace in (first, ruled)] == ["memory_copy", "communication"]
    assert labels(ruled.timed_by("device"))[0] == "communication"
    with pytest.raises(ValueError, match="regular expression"):
        first.with_classes({"(": "sync"})
