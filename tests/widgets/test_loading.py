"""Loading in the background: once it is cancelled, nothing more is read, reported or handed over.

While it goes on, the time left is told.
"""

import threading
from itertools import count
from typing import Any

import pytest

from hta_widgets import Trace, examples
from hta_widgets.pace import Pace
from hta_widgets.widgets import loading
from hta_widgets.widgets.loading import Loading, LoadingCancelledError, Progress, open_all


def test_a_cancelled_loading_stops_at_its_next_report() -> None:
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()
    reported: list[int] = []
    outcomes: list[object] = []

    def read(report: Progress) -> str:
        try:
            for file in range(3):
                report(file, 3, "reading")
                begun.set()
                assert go_on.wait(20)
            return "read"
        finally:
            over.set()

    attempt = Loading(
        read,
        progress=lambda done, total, text: reported.append(done),
        done=outcomes.append,
        failed=outcomes.append,
    )
    attempt.start()
    assert begun.wait(20)
    attempt.cancel()
    go_on.set()
    assert over.wait(20)
    assert reported == [0] and outcomes == []
    with pytest.raises(LoadingCancelledError):
        attempt.wait(0)


def test_the_time_left_of_reading_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, opened = count(0, 10), Trace.open

    def slow(path: Any, progress: Progress, **others: Any) -> Trace:
        for done in (0.25, 0.5, 0.75):
            progress(done, 1, "reading a.json")
        return opened(path, **others)

    monkeypatch.setattr(Trace, "open", slow)
    monkeypatch.setattr(loading, "Pace", lambda: Pace(lambda: next(seconds)))
    reported: list[tuple[float, str]] = []
    open_all({"": examples.path("ddp_4ranks")}, lambda done, total, text: reported.append((done, text)))
    assert reported[:3] == [
        (0.25, "reading a.json"),
        (0.5, "reading a.json, about 20 s left"),
        (0.75, "reading a.json, about 10 s left"),
    ]
    linking = [text for _, text in reported[3:]]
    assert linking[0] == "linking events (rank 1 of 4)"
    assert linking[3] == "linking events (rank 4 of 4), about 10 s left"
