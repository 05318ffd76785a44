"""Answers questions that a view asks over the widget's comm, off the kernel's thread and cancellable by name.

The protocol (the browser's half is ``js/src/rpc.ts``)::

    browser -> kernel   {rpc: 1, call, method, params}    and   {rpc: 1, call, cancel: true}
    kernel -> browser   {rpc: 1, call, result} + buffers  or    {rpc: 1, call, error: {type, message}}

JupyterLab may deliver a message in another thread while a cell runs, and answers are computed in the
engine's pool: methods must only read. A message should stay below 1 MB; a method with a longer answer takes a
`chunk` parameter and is called again.

A call is not named by an `id`: ipykernel 7.4 keeps the `id` of everything a kernel sends until a reply to it
comes, and nobody replies to a reply.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hta_widgets.engine import UI_LOCK, Superseded, Ticket, checkpoint, submit

Buffer = bytes | bytearray | memoryview
Method = TypeVar("Method", bound=Callable[..., Any])

_log = logging.getLogger(__name__)
_NAME = "_hta_answers"


def rpc_method(name: str) -> Callable[[Method], Method]:
    """Make a method `(self, params) -> result | (result, [buffer, ...])` answer the view's calls of it."""

    def mark(method: Method) -> Method:
        setattr(method, _NAME, name)
        return method

    return mark


def answer_while_cells_run(comm: Any) -> None:
    """Take the browser's messages from the shell that it sends them to.

    ipykernel 7.4 hands them to the shell that sent something last, so that a cell can await an answer of the
    browser: once a cell that computes has set a trait, nothing is answered until it ends. No cell awaits an
    answer of these widgets. Other versions have no such routing.
    """
    if callable(getattr(comm, "_reply_subshell_for", None)):
        comm._reply_subshell_for = None


class RpcHandler:
    """Mixin for a widget whose view asks questions. Methods marked with `@rpc_method("name")` reply."""

    _rpc_methods: dict[str, str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._rpc_methods = {
            getattr(member, _NAME): attribute
            for base in reversed(cls.__mro__)
            for attribute, member in vars(base).items()
            if hasattr(member, _NAME)
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._rpc_tickets: dict[str, Ticket] = {}
        super().__init__(*args, **kwargs)
        self.on_msg(self._handle_rpc)  # type: ignore[attr-defined]

    def _handle_rpc(self, _widget: object, content: Any, _buffers: Sequence[Buffer]) -> None:
        if not isinstance(content, dict) or content.get("rpc") != 1:
            return
        call = str(content.get("call"))
        if content.get("cancel"):
            ticket = self._rpc_tickets.pop(call, None)
            if ticket is not None:
                ticket.revoke()
            return
        ticket = self._rpc_tickets[call] = Ticket()
        name, params = content.get("method"), content.get("params") or {}
        submit(lambda: self._answer(call, name, params, ticket), ticket)

    def cancel_calls(self) -> None:
        """Nobody waits for answers any more."""
        for ticket in [*self.__dict__.get("_rpc_tickets", {}).values()]:
            ticket.revoke()

    def ask(self, name: Any, params: dict[str, Any]) -> tuple[Any, Sequence[Buffer]]:
        """The answer to a call by the view: the result and its binary part.

        Raises:
            LookupError: there is no such method, or no answer.
        """
        result = self._rpc_method(name)(params)
        return result if isinstance(result, tuple) else (result, ())

    def _answer(self, call: str, name: Any, params: dict[str, Any], ticket: Ticket) -> None:
        reply: dict[str, Any] = {"rpc": 1, "call": call}
        buffers: Sequence[Buffer] = ()
        try:
            checkpoint()  # it may have been cancelled while it waited for a thread
            reply["result"], buffers = self.ask(name, params)
        except Superseded:
            return
        except Exception as error:
            _log.debug("%s failed", name, exc_info=True)
            reply["error"] = {"type": type(error).__name__, "message": str(error)}
        with UI_LOCK:
            self._rpc_tickets.pop(call, None)
            if ticket.live:
                self.send(reply, buffers)  # type: ignore[attr-defined]

    def _rpc_method(self, name: Any) -> Callable[[dict[str, Any]], Any]:
        attribute = self._rpc_methods.get(name)
        if attribute is None:
            raise LookupError(f"{type(self).__name__} has no method {name!r}")
        return getattr(self, attribute)
