"""The picture that stands in for an explorer: when it is published, and where."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from hta_widgets import DiffViewer, Trace, TraceExplorer, examples
from hta_widgets.charts.svg import Picture
from hta_widgets.errors import MissingDataError
from hta_widgets.widgets import static_preview

pytestmark = pytest.mark.slow


class Shell:
    """What is used of the IPython shell in a Jupyter kernel; records what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []
        session = SimpleNamespace(msg=self._message, send=lambda *_, **__: None)
        self.display_pub = SimpleNamespace(session=session, pub_socket=None, topic=b"")
        self.history_manager = SimpleNamespace(input_hist_parsed=[""])

    def get_parent(self) -> dict[str, Any]:
        return {"header": {"msg_id": f"execution {len(self.history_manager.input_hist_parsed) - 1}"}}

    def show(self, explorer: TraceExplorer | DiffViewer) -> None:
        """Run a cell that ends in the explorer."""
        self.history_manager.input_hist_parsed.append("explorer")
        assert "application/vnd.jupyter.widget-view+json" in explorer._repr_mimebundle_()[0]

    def _message(self, kind: str, content: dict[str, Any], parent: dict[str, Any]) -> None:
        assert content["data"].keys() == {"text/html", "text/plain"}
        self.sent.append((parent["header"]["msg_id"], kind, content["transient"]["display_id"]))


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell()
    monkeypatch.setattr(static_preview, "_shell", lambda: shell)
    return shell


class Changes(SimpleQueue):
    """Knows whether the thread that draws has nothing to do."""

    def __init__(self) -> None:
        self.put_so_far = self.taken = 0
        self.waits = False

    def put(self, item: bool) -> None:
        self.put_so_far += 1
        super().put(item)

    def get(self, timeout: float | None = None) -> bool:
        self.waits = timeout is None
        item: bool = super().get(timeout=timeout)
        self.waits = False
        self.taken += 1
        return item

    def rest(self) -> None:
        deadline = time.monotonic() + 60
        while not (self.waits and self.taken == self.put_so_far):
            assert time.monotonic() < deadline, "the picture does not come to rest"
            time.sleep(0.001)


@pytest.fixture
def rest(monkeypatch: pytest.MonkeyPatch) -> Callable[[TraceExplorer | DiffViewer], None]:
    """Let what has changed come to rest."""
    monkeypatch.setattr(static_preview, "REST_SECONDS", 0.01)
    monkeypatch.setattr(static_preview, "SimpleQueue", Changes)

    def wait(explorer: TraceExplorer | DiffViewer) -> None:
        explorer.snapshot()
        preview = explorer._static_preview
        assert preview is not None
        if preview._thread is not None:
            preview._changes.rest()

    return wait


def test_only_a_view_on_display_gets_a_picture(ddp: Trace, shell: Shell, rest: Any) -> None:
    explorer = TraceExplorer(ddp, panels=["temporal_breakdown"])
    shell.show(explorer)
    explorer.selection.ranks = (1,)
    rest(explorer)
    assert shell.sent == []  # no browser: nbconvert and nbval see what they always saw
    explorer.ask("view_opened", {"view": "a", "count": 1})
    rest(explorer)
    explorer.selection.ranks = (2,)
    rest(explorer)
    assert [sent[:2] for sent in shell.sent[:1]] == [("execution 1", "display_data")]
    assert {sent[:2] for sent in shell.sent[1:]} == {("execution 1", "update_display_data")}
    assert len({display_id for *_, display_id in shell.sent}) == 1


def test_a_picture_goes_where_its_view_is(ddp: Trace, shell: Shell, rest: Any) -> None:
    explorer = TraceExplorer(ddp, panels=[])
    shell.show(explorer)  # and what it shows is cleared
    shell.show(explorer)
    explorer.ask("view_opened", {"view": "a", "count": 2})
    explorer.ask("view_opened", {"view": "b", "count": 7})  # in a box, say, which another cell shows
    rest(explorer)
    assert {sent[0] for sent in shell.sent} == {"execution 2"}


def test_of_many_cells_the_newest_have_pictures(ddp: Trace, shell: Shell, rest: Any) -> None:
    explorer = TraceExplorer(ddp, panels=[])
    for _ in range(static_preview.MOST_CELLS + 2):
        shell.show(explorer)
    newest = static_preview.MOST_CELLS + 2
    for count in (2, 3, newest):
        explorer.ask("view_opened", {"view": str(count), "count": count})
    rest(explorer)
    assert {sent[0] for sent in shell.sent} == {"execution 3", f"execution {newest}"}


def test_after_its_view_or_the_explorer_is_gone_nothing_is_sent(ddp: Trace, shell: Shell, rest: Any) -> None:
    explorer = TraceExplorer(ddp, panels=[])
    shell.show(explorer)
    explorer.ask("view_opened", {"view": "a", "count": 1})
    explorer.ask("view_closed", {"view": "a"})
    rest(explorer)
    assert shell.sent == []
    explorer.ask("view_opened", {"view": "a", "count": 1})
    rest(explorer)
    sent = len(shell.sent)
    assert sent
    explorer.close()
    explorer.selection.ranks = (1,)
    assert explorer._static_preview is not None and not explorer._static_preview._views
    assert len(shell.sent) == sent


def test_a_selection_that_cannot_be_drawn_any_more_is_left_out(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changed between the panel's answer and the drawing: no traceback of a thread stands in the cell."""
    monkeypatch.setattr(static_preview, "REST_SECONDS", 0.01)
    died: list[Any] = []
    monkeypatch.setattr("threading.excepthook", died.append)

    drawn = threading.Event()

    def draw() -> Picture:
        drawn.set()
        raise MissingDataError("steps", "Record them.")

    preview = static_preview.StaticPreview(draw)
    preview.view_opened("a", 1)
    assert drawn.wait(60)
    preview.stop()
    assert preview._thread is not None
    preview._thread.join(60)
    assert not preview._thread.is_alive()
    assert died == [] and shell.sent == []


def test_after_a_picture_that_failed_the_next_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_preview, "REST_SECONDS", 0.01)
    drawn: SimpleQueue[int] = SimpleQueue()

    def draw() -> None:
        drawn.put(1)
        raise ValueError("no such picture")

    preview = static_preview.StaticPreview(draw)
    preview.view_opened("a", 1)
    assert drawn.get(timeout=60)
    preview.renew()
    assert drawn.get(timeout=60)
    preview.stop()


def test_a_comparison_has_a_picture_of_all_its_runs(shell: Shell, rest: Any) -> None:
    viewer = DiffViewer(examples.load("gpt2_baseline"), examples.load("gpt2_ddp"), names=["one", "two"])
    shell.show(viewer)
    viewer.ask("view_opened", {"view": "a", "count": 1})
    rest(viewer)
    drawn = len(shell.sent)
    assert shell.sent[0][:2] == ("execution 1", "display_data")
    viewer.selections["two"].names = ("gemm",)  # no panel computes anything
    rest(viewer)
    assert len(shell.sent) == drawn + 1
    viewer.close()
    viewer.selections["two"].names = ()
    assert len(shell.sent) == drawn + 1


def test_a_picture_is_small(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=["overview", "temporal_breakdown", "comm_comp_overlap", "events"])
    assert len(explorer.snapshot()._repr_mimebundle_()["text/html"]) < 60_000
