"""An interrupt leaves everything usable, at whatever place CPython takes it."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from comm.base_comm import BaseComm

import hta_widgets
from hta_widgets import Breadcrumb, BreakdownPanel, Trace, TraceExplorer, analysis
from hta_widgets.engine import Latest, submit
from hta_widgets.widgets.freezing import settle
from tests.support import EVERY_CASE
from tests.widgets.forked import JOB

pytestmark = pytest.mark.slow

PACKAGE = str(Path(hta_widgets.__file__).parent)

Until = Callable[[Callable[[], bool]], None]
Among = Callable[[FrameType, str], bool]


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """They arrive also in a process that was started to ignore them, as by a shell in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def anywhere(frame: FrameType, event: str) -> bool:
    """Calls, and the ends of our calls of C."""
    return event == "call" or (event == "c_return" and frame.f_code.co_filename.startswith(PACKAGE))


def in_threading(frame: FrameType, event: str) -> bool:
    return event in ("call", "c_return") and frame.f_code.co_filename == threading.__file__


def places(work: Callable[[], object], wanted: int = 0, among: Among = anywhere) -> int:
    """How many places `work` has where CPython looks for signals.

    At the `wanted` one, if there is, the work is interrupted. Only a library may lose that: C code that asks
    whether an object has an attribute drops whatever the answer raises.
    """
    seen, ours = 0, True
    gc.disable()  # Python passes over what a finalizer raises

    def look(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal seen, ours
        if among(frame, event):
            seen += 1
            if seen == wanted:
                ours = frame.f_code.co_filename.startswith(PACKAGE)
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(look)
    try:
        work()
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    finally:
        sys.setprofile(None)
        gc.enable()
    assert interrupted == (seen >= wanted > 0) or not (interrupted or ours)
    return seen


def some(count: int, tried: int) -> range:
    """About `tried` places from the first to the last; half as many unless EVERY_CASE."""
    return range(1, count + 1, max(1, count // (tried if EVERY_CASE else tried // 2)))


def test_a_question_interrupted_anywhere_leaves_room_for_the_next(until: Until) -> None:
    """Each place from the first to the last."""
    answers: list[int] = []
    latest = Latest[int](answers.append, lambda error: None)
    count = places(lambda: latest.submit(lambda: 0))
    for place in range(1, count + 1):
        places(lambda: latest.submit(lambda: -1), place)
        latest.submit(lambda place=place: place)  # type: ignore[misc]
        until(lambda place=place: answers[-1:] == [place])  # type: ignore[misc]
    assert count > 10


def test_a_task_interrupted_anywhere_leaves_room_for_the_next() -> None:
    for place in range(1, places(lambda: submit(int)) + 1):
        places(lambda: submit(int), place)
        assert submit(lambda place=place: place).result(20) == place  # type: ignore[misc]


def test_a_part_interrupted_anywhere_comes_to_rest(ddp: Trace) -> None:
    panel = BreakdownPanel(ddp, "temporal_breakdown")
    settle([panel])
    for place in some(places(panel._refresh), 60):
        places(panel._refresh, place)
        settle([panel], timeout=5)
    panel.selection.ranks = (2,)
    settle([panel], timeout=5)
    assert panel.status == "idle"


def test_a_selection_interrupted_anywhere_is_followed_by_the_next(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=["temporal_breakdown", "events"])
    parts = [part for _, part in explorer.parts]
    settle(parts)

    def select() -> None:
        explorer.selection.ranks = (1,)

    for place in some(places(select), 40):
        explorer.selection.ranks = (3,)
        places(select, place)
        settle(parts, timeout=20)  # none stays busy
        explorer.selection.ranks = (2,)
        settle(parts, timeout=20)
        assert {part.status for part in parts} == {"idle"}, place
        assert {part.ranks for part in parts if part.has_trait("ranks")} == {(2,)}, place
    assert explorer.frame("temporal_breakdown")["rank"].tolist() == [2]
    explorer.close()


def test_a_message_interrupted_anywhere_leaves_the_kernel_its_sending_thread(
    ddp: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comm that asks, as that of a kernel does, whether the thread that sends is alive."""
    done = threading.Event()
    sender = threading.Thread(target=done.wait)
    sender.start()

    class Asking(BaseComm):
        def publish_msg(self, *_args: Any, **_named: Any) -> None:
            sender.is_alive()

    monkeypatch.setattr("comm.create_comm", Asking)
    part = Breadcrumb(ddp)
    works: list[Callable[[], object]] = [lambda: part.send({}), lambda: Breadcrumb(ddp).close()]
    try:
        for work in works:
            count = places(work, among=in_threading)
            for place in range(1, count + 1):
                places(work, place, in_threading)
                assert sender.is_alive(), place
            assert count > 3
    finally:
        done.set()
        part.close()


def test_a_load_interrupted_anywhere_can_be_repeated(tmp_path: Path) -> None:
    expected = Trace.open(JOB).summary

    def load() -> None:
        trace = Trace.open(JOB, cache=tmp_path / "cache")
        _ = trace.health, trace.iterations, trace.summary

    for place in some(places(load), 30):
        places(load, place)
        trace = Trace.open(JOB, cache=tmp_path / "cache")
        assert trace.summary == expected and not trace.failed, place


def test_an_analysis_interrupted_anywhere_can_be_repeated() -> None:
    expected = analysis.kernel_breakdown(Trace.open(JOB))
    for place in some(places(lambda: analysis.kernel_breakdown(Trace.open(JOB))), 30):
        trace = Trace.open(JOB)
        places(lambda trace=trace: analysis.kernel_breakdown(trace), place)  # type: ignore[misc]
        assert analysis.kernel_breakdown(trace).equals(expected), place
