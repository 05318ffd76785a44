"""The answers that the parts of a notebook share are computed once and freed with their trace."""

import gc
import weakref
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from examples.simulator import SimulatedJob, simulate
from hta_widgets import Scope, Trace
from hta_widgets.analysis import ANALYSES
from hta_widgets.widgets import answer_cache
from hta_widgets.widgets.answer_cache import cached_analysis, cached_comparison


def opened(folder: Path) -> Trace:
    return Trace.open(folder, cache=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    simulate(SimulatedJob("small", "single", steps=2, layers=1)).write(tmp_path)
    return tmp_path


def test_equal_questions_share_one_frame(folder: Path) -> None:
    trace = opened(folder)
    first = cached_analysis(trace, "idle_breakdown", Scope(ranks=(0,)))
    assert cached_analysis(trace, "idle_breakdown", Scope(ranks=(0,)), {}) is first
    assert cached_analysis(trace, "idle_breakdown", Scope()) is not first


def test_lists_among_the_options_are_compared_by_value(folder: Path, monkeypatch: Any) -> None:
    trace = opened(folder)
    asked: list[list[str]] = []

    class Entry:
        label = "Listed"

        @staticmethod
        def answer(trace: Trace, scope: Scope, names: list[str]) -> pd.DataFrame:
            asked.append(names)
            return pd.DataFrame({"name": names})

    monkeypatch.setattr(answer_cache, "ANALYSES", {**ANALYSES, "listed": Entry})
    for names in (["a"], ["a"], ["b"]):
        assert cached_analysis(trace, "listed", Scope(), {"names": names})["name"].tolist() == names
    assert asked == [["a"], ["b"]]


def test_an_answer_keeps_no_run_alive(folder: Path) -> None:
    runs = {"a": opened(folder), "b": opened(folder)}
    scopes = dict.fromkeys(runs, Scope())
    frame = cached_comparison(runs, "run_table", scopes)
    assert cached_comparison(runs, "run_table", scopes) is frame
    alive = {name: weakref.ref(trace) for name, trace in runs.items()}
    del runs["b"]
    gc.collect()
    assert alive["b"]() is None and alive["a"]() is not None
    runs.clear()
    gc.collect()
    assert alive["a"]() is None
