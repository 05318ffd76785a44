"""Loading in the background: once it is cancelled, nothing more is read, reported or handed over."""

import threading

import pytest

from hta_widgets.widgets.loading import Loading, LoadingCancelledError, Progress


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

    loading = Loading(
        read,
        progress=lambda done, total, text: reported.append(done),
        done=outcomes.append,
        failed=outcomes.append,
    )
    assert begun.wait(20)
    loading.cancel()
    go_on.set()
    assert over.wait(20)
    assert reported == [0] and outcomes == []
    with pytest.raises(LoadingCancelledError):
        loading.wait(0)
