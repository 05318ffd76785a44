"""The breadcrumb: follows the selection, drops clauses as one action, and spells code that brings it back."""

from typing import Any

import pytest

from hta_widgets import Selection, Trace, TraceExplorer, examples
from hta_widgets.widgets.breadcrumb import Breadcrumb
from hta_widgets.widgets.code import explorer_code, source_expression

DDP = examples.path("ddp_4ranks")


def test_follows_the_selection_both_ways(ddp: Trace) -> None:
    selection = Selection(ranks=(1,))
    crumb = Breadcrumb(ddp, selection=selection)
    assert (crumb.ranks, crumb.code) == ((1,), "selection = Selection(ranks=(1,))")
    crumb.query = "nccl"
    assert (selection.query, crumb.can_undo) == ("nccl", True)
    assert crumb.code == "selection = Selection(query='nccl', ranks=(1,))"
    crumb.close()
    selection.undo()
    assert (crumb.query, crumb.can_undo) == ("nccl", True)


def test_clauses_dropped_in_one_message_are_one_action(ddp: Trace) -> None:
    selection = Selection(ranks=(1,), window=(0, 10), names=["gemm"])
    before = selection.to_dict()
    crumb = Breadcrumb(ddp, selection=selection)
    crumb.set_state({"ranks": [], "window": None, "names": []})
    assert selection.to_dict() == {}
    selection.undo()
    assert (selection.to_dict(), crumb.names, crumb.can_undo) == (before, ("gemm",), False)


def test_the_view_asks_for_undo_and_redo(ddp: Trace, until: Any) -> None:
    crumb = Breadcrumb(ddp)
    crumb.ranks = (2,)
    crumb._handle_rpc(crumb, {"rpc": 1, "call": "a.1", "method": "undo"}, [])
    until(lambda: crumb.can_redo)
    assert crumb.ranks == ()
    crumb._handle_rpc(crumb, {"rpc": 1, "call": "a.2", "method": "redo"}, [])
    until(lambda: crumb.ranks == (2,))


def test_the_explorers_code_brings_it_back(until: Any) -> None:
    explorer = TraceExplorer(DDP, selection={"ranks": [1], "names": ["it's"], "window": (5, 9)}).wait()
    until(lambda: bool(explorer.parts))
    explorer.panels = ["comm_comp_overlap"]
    code = explorer.parts[0][1].code
    assert code.splitlines()[-1] == "explorer"
    space: dict[str, Any] = {}
    exec(code, space)
    again = space["explorer"].wait()
    assert again.selection.to_dict() == explorer.selection.to_dict()
    assert again.panels == ("comm_comp_overlap",)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("traces", "'traces'"),
        (DDP, repr(str(DDP))),
        ([DDP, "b.json"], f"['{DDP}', 'b.json']"),
        ({0: "a.json"}, "{0: 'a.json'}"),
        (object(), "trace"),
    ],
    ids=["text", "path", "list", "ranks", "object"],
)
def test_sources_are_spelt_as_they_were_given(source: Any, text: str) -> None:
    assert source_expression(source) == text


def test_short_code_is_one_line() -> None:
    assert explorer_code("e", "a", {}, ["kernels"]).splitlines()[2:] == [
        "e = TraceExplorer('a', panels=['kernels'])",
        "e",
    ]
