"""Hosts that cannot be had here, as far as they can: with their own widget managers on a page of their own.

VS Code draws widgets with a bundle that its Jupyter extension publishes. Colab's manager extends that of
Jupyter for web pages and asks for the state of each model that it meets. Widgets live in this process, behind
a comm that carries their messages to the page and back.
"""

from __future__ import annotations

import base64
import json
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anywidget
import comm
import pytest
from comm.base_comm import BaseComm
from ipywidgets import Widget
from ipywidgets.widgets.widget import _remove_buffers
from playwright.sync_api import Browser, Page, Route, expect

from hta_widgets import TraceExplorer, examples
from hta_widgets.widgets import runtime
from tests.browser import managers
from tests.browser.lab import TIMELINE, eventually, page_of

pytestmark = pytest.mark.browser

ADDRESS = "https://host.test/"
HERE = Path(__file__).parent
ANYWIDGET = Path(anywidget.__file__).parent / "nbextension" / "index.js"
MODULES = {
    "vs_code": managers.VS_CODE,
    "@jupyter-widgets/html-manager": managers.HTML_MANAGER,
    "anywidget": ANYWIDGET,
}
PAGE = '<!DOCTYPE html><meta charset="utf-8"><div id="output"></div><script src="/host.js"></script>'


def packed(buffers: Any) -> list[str]:
    return [base64.b64encode(buffer).decode() for buffer in buffers or ()]


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> queue.SimpleQueue[dict[str, Any]]:
    """What the widgets made from now on send."""
    sent: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    class Carried(BaseComm):
        def publish_msg(
            self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
        ) -> None:
            text = json.dumps(data or {})  # now: what it refers to may change
            message = {"type": msg_type, "id": self.comm_id, "target": keys.get("target_name"), "data": text}
            sent.put({**message, "metadata": metadata or {}, "buffers": packed(buffers)})

    monkeypatch.setattr("comm.create_comm", Carried)
    monkeypatch.setattr(runtime, "_shared", {})
    return sent


@pytest.fixture
def page(browser: Browser, messages: queue.SimpleQueue[dict[str, Any]]) -> Iterator[Page]:
    """A page that gets the widgets' messages by the functions that other_host.js calls."""

    def to_kernel(identity: str, data: Any, buffers: list[str]) -> None:
        known = comm.get_comm_manager().get_comm(identity)
        assert known is not None
        raw = [memoryview(base64.b64decode(buffer)) for buffer in buffers]
        known.handle_msg({"content": {"comm_id": identity, "data": data}, "buffers": raw, "header": {}})

    def from_kernel() -> list[dict[str, Any]]:
        got = []
        while not messages.empty():
            message = messages.get()
            got.append({**message, "data": json.loads(message["data"])})
        return got

    def state_of(identity: str) -> dict[str, Any]:
        widget = comm.get_comm_manager().get_comm(identity)._msg_callback.__self__
        assert isinstance(widget, Widget)
        state, paths, buffers = _remove_buffers(widget.get_state())
        return {"state": json.loads(json.dumps(state)), "paths": paths, "buffers": packed(buffers)}

    def serve(route: Route) -> None:
        path = route.request.url.removeprefix(ADDRESS)
        module = MODULES.get(path.removeprefix("modules/").removesuffix(".js"))
        if path == "":
            route.fulfill(body=PAGE, content_type="text/html")
        elif path == "host.js":
            route.fulfill(path=HERE / "other_host.js")
        elif module is not None:
            route.fulfill(path=module, content_type="text/javascript")
        else:
            route.abort()

    with page_of(browser) as page:
        page.route("**", serve)
        page.expose_function("toKernel", to_kernel)
        page.expose_function("fromKernel", from_kernel)
        page.expose_function("stateOf", state_of)
        yield page


@pytest.mark.parametrize("host", ["vsCode", "asColab"])
def test_the_explorer_in_another_host(page: Page, host: str) -> None:
    """It is drawn, answers are fetched, and selections are shared both ways."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    explorer = TraceExplorer(examples.path("ddp_4ranks"), panels=["temporal_breakdown", "events"]).wait()
    page.goto(ADDRESS)
    page.evaluate("([host, id]) => window.show(host, id)", [host, explorer.model_id])
    expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
    expect(page.locator(".hta-story h2")).to_be_visible()
    rank = page.locator(".hta-rank-grid button")
    rank.nth(1).click()
    breakdown = page.locator(".hta-panel[data-kind=temporal_breakdown]")
    expect(breakdown).to_contain_text("Rank 1 computes")
    assert explorer.selection.ranks == (1,)
    assert set(explorer.events["rank"]) == {1}
    first = page.locator(".hta-events [role=row][aria-rowindex='2']")
    expect(first).to_contain_text(explorer.events.sort_values("start_ns")["name"].iloc[0])
    explorer.selection.ranks = (2,)
    expect(rank.nth(2)).to_have_attribute("aria-pressed", "true")
    expect(breakdown).to_contain_text("Rank 2 computes")
    page.locator(TIMELINE).click(position={"x": 400, "y": 115})
    expect(page.locator(".hta-inspector")).not_to_contain_text("Nothing is selected")

    def heard() -> None:
        page.wait_for_timeout(20)  # the page's messages come while Playwright runs
        assert explorer.selection.focus or explorer.selection.gap

    eventually(heard)
    page.evaluate("() => { document.body.className = 'vscode-dark'; }")
    expect(page.locator(".hta[data-theme=dark]").first).to_be_visible()
    expect(page.locator(".hta[data-theme=light]")).to_have_count(0)
    explorer.close()
    assert not errors
