"""An explorer that is closed while it loads is freed, with its trace and all its parts."""

import gc
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from ipywidgets.widgets import widget as widget_module

from hta_widgets import Trace, TraceExplorer, examples
from hta_widgets.widgets import trace_explorer
from hta_widgets.widgets.part import Part
from tests.support import ROOT, crossed

pytestmark = pytest.mark.slow

Until = Callable[[Callable[[], bool]], None]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Trace]]:
    """The traces that are opened in the test."""
    opened: list[weakref.ref[Trace]] = []
    real = Trace.open

    def open_and_note(*given: Any, **named: Any) -> Trace:
        trace = real(*given, **named)
        opened.append(weakref.ref(trace))
        return trace

    monkeypatch.setattr(Trace, "open", open_and_note)
    return opened


def parts_alive() -> list[Part]:
    return [widget for widget in list(widget_module._instances.values()) if isinstance(widget, Part)]


def loading() -> bool:
    return any(thread.name == "hta_widgets_loading" for thread in threading.enumerate())


def freed(opened: list[weakref.ref[Trace]]) -> bool:
    gc.collect()
    return not loading() and not any(trace() for trace in opened)


def in_a_process(*words: str) -> tuple[dict[str, int], str]:
    """What is left, and what was said, of a process of its own, where no other test has left work to do."""
    command = [sys.executable, "-m", "tests.widgets.closed_early", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize(("kind", "shown"), crossed(["explorer", "viewer"], ["displayed", "alone"]))
def test_at_any_moment(kind: str, shown: str) -> None:
    found, said = in_a_process(kind, shown)
    assert (found["traces"], found["parts"]) == (0, 0), said
    assert found["opened"] > 3


def test_while_it_finds_out_what_to_show(
    monkeypatch: pytest.MonkeyPatch, opened: list[weakref.ref[Trace]], until: Until
) -> None:
    """The trace is read, and its timeline is being made."""
    begun, go_on = threading.Event(), threading.Event()
    real = trace_explorer.about

    def about(*given: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return real(*given)

    monkeypatch.setattr(trace_explorer, "about", about)
    before = len(parts_alive())
    explorer = TraceExplorer(examples.path("gpt2_baseline"))
    assert begun.wait(60)
    explorer.close()
    go_on.set()
    until(lambda: not loading())
    assert explorer.parts == [] and len(parts_alive()) == before
    del explorer
    until(lambda: freed(opened))


def test_cancelled_at_that_moment_it_shows_nothing_and_loads_again(
    monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    real = trace_explorer.about

    def about(*given: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return real(*given)

    monkeypatch.setattr(trace_explorer, "about", about)
    explorer = TraceExplorer(examples.path("gpt2_baseline"), panels=[])
    assert begun.wait(60)
    explorer.cancel()
    go_on.set()
    until(lambda: not loading())
    assert (explorer.status, explorer.parts) == ("empty", [])
    explorer.load()
    until(lambda: explorer.status == "idle")
    assert explorer.parts
    explorer.close()


def test_a_part_that_raises_while_it_is_made_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_explorer: TraceExplorer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TraceExplorer, "load", load)
    before = len(parts_alive())
    with pytest.raises(KeyboardInterrupt):
        TraceExplorer(examples.path("gpt2_baseline"))
    assert len(parts_alive()) == before


def test_a_cell_that_is_interrupted_leaves_nothing() -> None:
    found, said = in_a_process("interrupted")
    assert found["opened"] > 3
    assert (found["traces"], found["parts"]) == (0, 0), said
