"""The selection: what it accepts, what it turns into, and that it links."""

import numpy as np
import pytest
import traitlets as t

from hta_widgets import RankSelector, Scope, Selection


def test_values_are_normalised() -> None:
    selection = Selection(ranks=[3, 1, 1], window=(9, 2), focus=[0, np.int64(7)])
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
    ],
)
def test_nonsense_is_refused(name: str, value: object) -> None:
    selection = Selection()
    with pytest.raises(t.TraitError):
        setattr(selection, name, value)
    assert selection == selection and repr(selection) == "Selection()"


def test_scope_and_back() -> None:
    selection = Selection(ranks=(1,), iterations=(5,), window=(0, 10), streams=(7,), query="gemm")
    assert selection.scope == Scope(ranks=(1,), iterations=(5,), window_ns=(0, 10), streams=(7,))
    assert selection.scope_without(["ranks"]).ranks is None
    assert repr(Selection(**selection.to_dict())) == repr(selection)
    selection.clear()
    assert selection.scope == Scope()


def test_parts_with_one_selection_follow_each_other(ddp: object) -> None:
    selection = Selection(ranks=(2,))
    one, two = RankSelector(ddp, selection=selection), RankSelector(ddp, selection=selection)
    assert one.ranks == (2,)
    two.ranks = [0, 1]
    assert one.ranks == selection.ranks == (0, 1)
    two.close()
    selection.ranks = (3,)
    assert one.ranks == (3,)
    assert two.ranks == (0, 1)
