"""Whatever the browser sends to a trait or method of a part: Python's own stays, and the part answers."""

import json
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import traitlets

from hta_widgets import (
    BreakdownPanel,
    DiffViewer,
    EventsTable,
    RankSelector,
    TimelineScrubber,
    Trace,
    TraceExplorer,
    WhatIf,
    edits,
)
from hta_widgets.widgets.breadcrumb import Breadcrumb
from hta_widgets.widgets.comparison_panel import ComparisonPanel
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.iteration_selector import IterationSelector
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.runtime import runtime
from hta_widgets.widgets.steps_panel import StepsPanel

pytestmark = pytest.mark.slow

NAN, INF = math.nan, math.inf
DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]
JUNK: list[Any] = [
    None, True, -1, 3, 1 << 70, 1e19, -1e300, NAN, INF, 0.5, "", "x" * 100_000, "\ud800\u202e\0", "host",
    [], [NAN], [0, 1e19], [0, INF], [None, 5], ["x", 1], [["x", True]], [[1]], list(range(5000)), DEEP,
    {}, {"a": NAN}, {"host": NAN}, {"host": -1}, {"host": "x"}, {"host": None}, {"": {}}, {"by": [1]},
    {"by": NAN}, {"operator": 5}, {"window": 1}, [["rank", "x"]], [{"column": 1}],
]  # fmt: skip

Make = Callable[[Trace, Trace], Part]
PARTS: dict[str, Make] = {
    "ranks": lambda one, _: RankSelector(one),
    "iterations": lambda one, _: IterationSelector(one),
    "breadcrumb": lambda one, _: Breadcrumb(one, python_expression=lambda: "explorer"),
    "timeline": lambda one, _: TimelineScrubber(one),
    "events": lambda one, _: EventsTable(one),
    "panel": lambda one, _: BreakdownPanel(one, "kernel_breakdown"),
    "panel with options": lambda one, _: BreakdownPanel(one, "operators"),
    "steps": lambda one, _: StepsPanel(one),
    "comparison": lambda one, two: ComparisonPanel({"one": one, "two": two}, "diff"),
    "viewer": lambda one, two: DiffViewer({"one": one, "two": two}),
    "explorer": lambda one, _: TraceExplorer(one),
    "what if": lambda one, _: WhatIf(one, edits=[edits.host(0.5)]),
}


@pytest.fixture(scope="module", params=PARTS)
def part(request: pytest.FixtureRequest, jobs: dict[str, Trace]) -> Iterator[Part]:
    made = PARTS[request.param](jobs["gpt2_baseline"], jobs["gpt2_ddp"])
    if isinstance(made, DiffViewer | TraceExplorer):
        made.wait()
        settle([place[1] for place in made.parts], timeout=60)  # what they answer changes the viewer
    settle([made], timeout=60)
    if isinstance(made, TraceExplorer):
        made._at_rest()  # which panels cannot answer is found out in the background
    yield made
    made.close()


def editable(part: Part) -> set[str]:
    named = {name for base in type(part).__mro__ for name in vars(base).get("_from_browser", ())}
    return {*named, *part.selection.traits()} & set(part.keys)


def send(part: Part, name: str, value: Any) -> bool:
    """Whether a message of the browser is taken; a refusal is a TraitError and nothing else."""
    try:
        part.set_state({name: value})
    except traitlets.TraitError:
        return False
    return True


def test_what_python_owns_stays(part: Part) -> None:
    owned = [name for name in part.keys if name not in editable(part)]
    assert {"status", "message", "_runtime", "_view", "_esm", "layout"} <= set(owned)
    before = {name: json.dumps(value, default=repr) for name, value in part.get_state(owned).items()}
    for name in owned:
        for value in JUNK:
            assert send(part, name, value)
    settle([part], timeout=60)
    after = {name: json.dumps(value, default=repr) for name, value in part.get_state(owned).items()}
    assert {name: (before[name], text) for name, text in after.items() if text != before[name]} == {}


def test_junk_in_what_the_browser_sets_does_no_harm(part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def tell(key: Any = None) -> None:
        told.extend([key] if isinstance(key, str) else key or part.keys)

    monkeypatch.setattr(part, "send_state", tell)
    usual = {name: getattr(part, name) for name in sorted(editable(part))}
    for name in sorted(editable(part)):
        for value in JUNK:
            before = part.get_state([name])
            told.clear()
            if not send(part, name, value):
                assert part.get_state([name]) == before, (name, str(value)[:50])
                assert name in told, f"the browser is not told that {name} is not {str(value)[:50]}"
            json.dumps(part.get_state([name]), allow_nan=False)
        settle([part], timeout=60)
        assert part.status in ("idle", "empty", "error")
        if part.status == "error":
            assert part.message, name
        setattr(part, name, usual[name])
    settle([part], timeout=60)
    assert part.status in ("idle", "empty"), part.message


def test_junk_in_calls_is_answered(part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    replies: dict[str, dict[str, Any]] = {}
    replied = threading.Condition()

    def reply(content: Any, _buffers: Any = None) -> None:
        with replied:
            replies[content["call"]] = content
            replied.notify_all()

    monkeypatch.setattr(part, "send", reply)
    calls = [
        {"rpc": 1, "call": f"{method} {at}", "method": method, "params": params}
        for method in [*part._rpc_methods, "nothing", "__class__", None, 5]
        if method not in ("file", "load")  # these write a whole file, and read the trace again
        for at, params in enumerate([*JUNK, {"rank": NAN}, {"t0": NAN, "t1": INF}, {"chunk": 1e19}])
    ]
    for call in calls:
        part._handle_rpc(part, call, [])
    for content in JUNK:
        part._handle_rpc(part, content, [])
    with replied:
        assert replied.wait_for(lambda: len(replies) == len(calls), 60), "a call has no reply"
    for answer in replies.values():
        json.dumps({name: value for name, value in answer.items() if name != "buffers"}, default=repr)


def test_the_code_of_the_front_end_is_pythons() -> None:
    shared = runtime()
    before = shared._esm
    shared.set_state({"_esm": "export default {}", "_anywidget_id": "x"})
    assert shared._esm == before
