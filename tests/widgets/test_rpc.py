"""Questions from the browser: answered, refused and cancelled by id."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hta_widgets import engine
from hta_widgets.widgets.rpc import RpcHandler, rpc_method


class Recorder:
    """Stands in for ipywidgets.Widget: keeps what would be sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[dict[str, Any], list[bytes]]] = []
        self.handlers: list[Callable[..., None]] = []

    def on_msg(self, handler: Callable[..., None]) -> None:
        self.handlers.append(handler)

    def send(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        self.sent.append((content, buffers))


class Calculator(RpcHandler, Recorder):
    def __init__(self) -> None:
        super().__init__()
        self.begun, self.gate = threading.Event(), threading.Event()

    @rpc_method("double")
    def _double(self, params: dict[str, Any]) -> Any:
        return {"n": 2 * params["n"]}, [b"bytes"]

    @rpc_method("slow")
    def _slow(self, _params: dict[str, Any]) -> str:
        self.begun.set()
        self.gate.wait(10)
        return "late"

    def receive(self, **content: Any) -> None:
        self.handlers[0](self, {"rpc": 1, **content}, [])


@pytest.fixture
def calculator() -> Calculator:
    return Calculator()


def test_answer_with_buffers(calculator: Calculator, until: Any) -> None:
    calculator.receive(call="a.1", method="double", params={"n": 21})
    until(lambda: calculator.sent)
    assert calculator.sent == [({"rpc": 1, "call": "a.1", "result": {"n": 42}}, [b"bytes"])]


@pytest.mark.parametrize(
    ("method", "kind"), [("double", "KeyError"), ("__init__", "LookupError"), (None, "LookupError")]
)
def test_errors_are_replies(calculator: Calculator, until: Any, method: str | None, kind: str) -> None:
    calculator.receive(call="a.1", method=method, params={})
    until(lambda: calculator.sent)
    assert calculator.sent[0][0]["error"]["type"] == kind


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls are answered one after the other, so that the answer to the last one comes last."""
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(engine, "_POOL", pool)
        yield


@pytest.mark.usefixtures("one_thread")
def test_cancelled_call_is_not_answered(calculator: Calculator, until: Any) -> None:
    calculator.receive(call="a.1", method="slow", params={})
    assert calculator.begun.wait(10)
    calculator.receive(call="a.1", cancel=True)
    calculator.gate.set()
    calculator.receive(call="a.2", method="double", params={"n": 1})
    until(lambda: calculator.sent)
    assert [content["call"] for content, _ in calculator.sent] == ["a.2"]


def test_other_messages_are_left_alone(calculator: Calculator, until: Any) -> None:
    for content in ({"event": "click"}, "text", {"rpc": 2, "call": "a.0", "method": "double"}):
        calculator.handlers[0](calculator, content, [])
    calculator.receive(call="a.1", method="double", params={"n": 1})
    until(lambda: calculator.sent)
    assert [content["call"] for content, _ in calculator.sent] == ["a.1"]


def test_what_is_answered_or_cancelled_leaves_nothing(calculator: Calculator, until: Any) -> None:
    calculator.receive(call="a.1", method="slow", params={})
    calculator.receive(call="a.1", cancel=True)
    calculator.gate.set()
    for number in range(2, 5):
        calculator.receive(call=f"a.{number}", method="double", params={"n": 1})
    until(lambda: len(calculator.sent) == 3)
    assert not calculator._rpc_tickets
