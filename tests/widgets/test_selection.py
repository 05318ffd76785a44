"""The selection: what it accepts, what it turns into, and that it links."""

from threading import Thread

import numpy as np
import pytest
import traitlets as t

from hta_widgets import BreakdownPanel, RankSelector, Scope, Selection, Trace
from hta_widgets.engine import UI_LOCK
from hta_widgets.trace.classify import EventClass
from hta_widgets.widgets.freezing import settle


def test_values_are_normalised() -> None:
    selection = Selection(ranks=[3, 1, 1], window=(9, 2), focus=[0, np.int64(7)], names=["b", "a", "b"])
    assert selection.names == ("a", "b")
    selection.names = "one name"
    assert selection.names == ("one name",)
    assert selection.ranks == (1, 3)
    assert selection.window == (2, 9)
    assert selection.focus == (0, 7)
    selection.ranks = np.arange(2)
    selection.window = [1.4, 2.6]  # as a browser sends it
    assert (selection.ranks, selection.window) == ((0, 1), (1, 3))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ranks", "0"),
        ("ranks", [1.5]),
        ("window", (1, 1)),
        ("window", (1,)),
        ("window", (0, float("nan"))),
        ("focus", 3),
        ("names", 3),
        ("names", ["gemm", 3]),
        ("flags", 3),
        ("flags", [5]),
        ("flags", [(5, 6)]),
        ("flags", [("5", "note")]),
        ("flags", [(1 << 54, "note")]),
        ("flags", [(5, "n" * 1001)]),
        ("flags", [(time, "") for time in range(1001)]),
    ],
)
def test_nonsense_is_refused(name: str, value: object) -> None:
    selection = Selection()
    with pytest.raises(t.TraitError):
        setattr(selection, name, value)
    assert selection == selection and repr(selection) == "Selection()"


def test_flags_are_notes_that_select_nothing() -> None:
    selection = Selection(flags=[[9.0, "end"], (2, "begin"), (9, "the end")], ranks=1)
    assert selection.flags == ((2, "begin"), (9, "the end"))
    assert selection.scope == Scope(ranks=(1,))
    assert repr(Selection(**selection.to_dict())) == repr(selection)
    selection.clear()
    assert selection.to_dict() == {"flags": ((2, "begin"), (9, "the end"))}
    selection.flags = None
    selection.undo()
    assert len(selection.flags) == 2


def test_scope_and_back() -> None:
    selection = Selection(ranks=(1,), iterations=(5,), window=(0, 10), streams=(7,), query="gemm", names="x")
    assert selection.scope == Scope(ranks=(1,), iterations=(5,), window_ns=(0, 10), streams=(7,))
    assert selection.scope_without(["ranks"]).ranks is None
    assert repr(Selection(**selection.to_dict())) == repr(selection)
    selection.clear()
    assert selection.scope == Scope()


def test_parts_with_one_selection_follow_each_other(ddp: object) -> None:
    selection = Selection(ranks=(2,))
    item, two = RankSelector(ddp, selection=selection), RankSelector(ddp, selection=selection)
    assert item.ranks == (2,)
    two.ranks = [0, 1]
    assert item.ranks == selection.ranks == (0, 1)
    two.close()
    selection.ranks = (3,)
    assert item.ranks == (3,)
    assert two.ranks == (0, 1)


def test_each_action_can_be_undone_and_redone() -> None:
    selection = Selection(ranks=(1,))
    assert not selection.can_undo
    selection.ranks = (2,)
    with selection.hold_trait_notifications():
        selection.window = (0, 10)
        selection.names = ["gemm"]
    selection.query = "nccl"
    selection.query = "nccl"  # no change, no action
    selection.undo()
    assert selection.to_dict() == {"ranks": (2,), "window": (0, 10), "names": ("gemm",)}
    selection.undo()
    selection.undo()
    assert (selection.to_dict(), selection.can_undo) == ({"ranks": (1,)}, False)
    selection.undo()
    selection.redo()
    selection.redo()
    assert selection.to_dict() == {"ranks": (2,), "window": (0, 10), "names": ("gemm",)}
    selection.undo()
    assert selection.to_dict() == {"ranks": (2,)}
    selection.redo()
    selection.ranks = ()
    assert (selection.can_undo, selection.can_redo) == (True, False)
    selection.redo()
    assert selection.ranks == ()


def test_what_was_redone_can_be_undone_again() -> None:
    selection = Selection()
    selection.ranks = (1,)
    selection.ranks = (2,)
    selection.undo()
    selection.redo()
    selection.undo()
    assert (selection.ranks, selection.can_undo, selection.can_redo) == ((1,), True, True)


def test_clear_is_one_action_and_focus_is_none() -> None:
    selection = Selection(ranks=(1,), query="gemm")
    selection.focus = (0, 5)
    assert not selection.can_undo
    selection.clear()
    selection.focus = (0, 7)
    selection.undo()
    assert selection.to_dict() == {"ranks": (1,), "query": "gemm", "focus": (0, 7)}


def test_history_is_bounded() -> None:
    selection = Selection()
    for rank in range(1, 300):
        selection.ranks = (rank,)
    for _ in range(300):
        selection.undo()
    assert selection.ranks == (199,)


def test_undo_survives_threads() -> None:
    """Whatever the interleaving: as many undos as there were actions lead back to the start."""
    selection = Selection()

    def act(names: list[str]) -> None:
        for name in names:
            selection.query = name

    threads = [Thread(target=act, args=([f"{n}-{i}" for i in range(20)],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(80):
        assert selection.can_undo
        selection.undo()
    assert (selection.to_dict(), selection.can_undo) == ({}, False)


def test_a_change_from_another_thread_waits_while_the_parts_are_updated() -> None:
    selection = Selection()
    thread = Thread(target=setattr, args=(selection, "ranks", (1,)))
    with UI_LOCK:
        thread.start()
        thread.join(0.2)
        meanwhile = selection.ranks
    thread.join()
    assert (meanwhile, selection.ranks) == ((), (1,))


def test_undo_reaches_the_parts(ddp: object) -> None:
    selection = Selection()
    part = RankSelector(ddp, selection=selection)
    part.ranks = (2,)
    selection.undo()
    assert (part.ranks, selection.can_undo, selection.can_redo) == ((), False, True)
    selection.redo()
    assert part.ranks == (2,)


def test_what_a_selector_chooses_itself_is_left_out_of_its_scope() -> None:
    selection = Selection(ranks=(1,), window=(5, 9), streams=(7,))
    assert selection.scope == Scope(ranks=(1,), window_ns=(5, 9), streams=(7,))
    assert selection.scope_without(("ranks",)) == Scope(window_ns=(5, 9), streams=(7,))
    assert selection.scope_without(("window", "iterations")) == Scope(ranks=(1,), streams=(7,))


def test_the_answer_of_a_panel_follows_the_streams(ddp: Trace) -> None:
    selection = Selection()
    panel = BreakdownPanel(ddp, "kernel_breakdown", selection=selection)
    settle([panel])
    whole = panel.sentence
    stream = int(ddp.rank(0).stream[ddp.rank(0).event_class == EventClass.COMMUNICATION][0])
    selection.streams = (stream,)
    settle([panel])
    assert panel.sentence and panel.sentence != whole
    panel.close()
