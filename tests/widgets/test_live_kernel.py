"""What Jupyter does to a kernel: interrupts, and the messages of a browser while a cell runs.

With version 6 of ipykernel messages wait for the cell, with version 7 they need not. Both keep to the same
contract, and each test has a kernel of each: `make test` puts version 6 beside the environment.
"""

from __future__ import annotations

import ast
import os
import queue
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from tests.support import ROOT
from tests.widgets.forked import JOB

pytestmark = pytest.mark.slow

SECONDS = 60
# Python drops an exception in a finalizer, an interrupt too: as a user would, the test interrupts once more.
PATIENCE_S, INTERRUPTS = 10, 3

OLDER = ROOT / ".venv" / "ipykernel6"
VERSIONS = ("installed", "6")

Message = dict[str, Any]


class Kernel:
    """A live kernel, and what a notebook does with it."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager, self._client = manager, client

    def send(self, kind: str, subshell: str | None = None, **content: Any) -> str:
        """The id of a message that is on its way."""
        message = self._client.session.msg(kind, content)
        message["header"]["subshell_id"] = subshell
        self._client.shell_channel.send(message)
        identity: str = message["header"]["msg_id"]
        return identity

    def new_subshell(self) -> str:
        """The id of a shell that works while the main one runs a cell; JupyterLab has one for its widgets."""
        self._client.control_channel.send(self._client.session.msg("create_subshell_request", {}))
        identity: str = self._client.get_control_msg(timeout=SECONDS)["content"]["subshell_id"]
        return identity

    def heard(self, timeout: float = SECONDS) -> Message:
        """The next message that the kernel publishes."""
        message: Message = self._client.get_iopub_msg(timeout=timeout)
        return message

    def run(self, code: str, interrupted_after: float | None = None) -> str:
        """The name of the exception that ended a cell, or its output.

        Args:
            code: the cell.
            interrupted_after: so many seconds after the cell printed something.
        """
        asked = self._client.execute(code)
        printed, interrupts, since = "", 0, 0.0
        while True:
            # Python drops an interrupt that comes in a finalizer. A cell that publishes goes on being heard.
            if interrupts and time.monotonic() - since > PATIENCE_S:
                assert interrupts < INTERRUPTS, f"{interrupts} interrupts, and the cell has not ended"
                self._manager.interrupt_kernel()
                interrupts, since = interrupts + 1, time.monotonic()
            try:
                message = self.heard(PATIENCE_S if interrupts else SECONDS)
            except queue.Empty:
                assert interrupts, "the kernel is silent"
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                printed += content["text"]
                if interrupted_after is not None and not interrupts:
                    time.sleep(interrupted_after)
                    self._manager.interrupt_kernel()
                    interrupts, since = 1, time.monotonic()
            elif content.get("execution_state") == "idle":
                return self._error_of(asked) or printed

    def _error_of(self, asked: str) -> str:
        """The name of the exception that ended a cell, as the reply has it.

        An interrupt may come while IPython has begun to show another one: it then falls back to text.
        """
        while True:
            reply = self._client.get_shell_msg(timeout=SECONDS)
            if reply["parent_header"].get("msg_id") == asked:
                return str(reply["content"].get("ename", ""))


SETUP = """
from pathlib import Path
import time
import pandas as pd
from hta_widgets import Trace, TraceExplorer, analysis
from hta_widgets.widgets.freezing import settle
JOB, TARGET = {job!r}, Path({target!r})
expected = analysis.kernel_breakdown(Trace.open(JOB))
explorer = TraceExplorer(JOB).wait()
settle([explorer])
parts = dict(explorer.parts[:4])
settle([*parts.values()])
"""

# Each goes on until it is interrupted.
WORK = {
    "load": "Trace.open(JOB, cache=False)",
    "load of an explorer": "TraceExplorer(JOB).wait().close()",
    "analysis": "analysis.kernel_breakdown(Trace.open(JOB))",
    "report": "explorer.to_html(TARGET)",
    "selection": "explorer.selection.ranks = () if explorer.selection.ranks else (0,)",
}
USABLE = """
explorer.selection.clear()
explorer.selection.ranks = (0,)
explorer.panels = ["kernel_breakdown"]
shown = [part for _, part in explorer.parts]
settle(shown, timeout=30)
assert {part.status for part in shown} == {"idle"}
assert {part.ranks for part in shown if part.has_trait("ranks")} == {(0,)}
pd.testing.assert_frame_equal(explorer.frame("kernel_breakdown"), expected)
pd.testing.assert_frame_equal(analysis.kernel_breakdown(Trace.open(JOB, cache=False)), expected)
assert explorer.to_html(TARGET, timeout=30).stat().st_size > 10_000
assert list(TARGET.parent.iterdir()) == [TARGET]
print("usable")
"""


@contextmanager
def bare(version: str) -> Iterator[Kernel]:
    """A kernel of a version of ipykernel, shut down at the end."""
    environment = dict(os.environ)
    if version == "6":
        if not OLDER.is_dir():
            assert not os.environ.get("CI"), "make test installs ipykernel 6"
            pytest.skip(f"no ipykernel 6: `make {OLDER.relative_to(ROOT)}` installs it")
        environment["PYTHONPATH"] = os.pathsep.join([str(OLDER), environment.get("PYTHONPATH", "")])
    manager, client = start_new_kernel(startup_timeout=SECONDS, env=environment)
    try:
        kernel = Kernel(manager, client)
        major = kernel.run("import ipykernel; print(ipykernel.version_info[0])").strip()
        assert major == "6" if version == "6" else major >= "7"
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module", params=VERSIONS)
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One of each version, with an explorer of a job."""
    target = tmp_path_factory.mktemp("reports") / "report.html"
    with bare(request.param) as kernel:
        assert kernel.run(SETUP.format(job=str(JOB), target=str(target))) == ""
        yield kernel


PAIRS = 100
BUSY = """
end = time.monotonic() + 1.5
while time.monotonic() < end:
    sum(range(1000))
"""


def test_each_message_of_a_browser_counts_once(kernel: Kernel) -> None:
    """A hundred selections and questions in a second, while a cell computes and after it."""
    crumb, timeline = kernel.run("print(parts['breadcrumb'].model_id, parts['timeline'].model_id)").split()
    sent = [kernel.send("execute_request", code=BUSY, silent=False)]
    for at in range(PAIRS):
        state = {"ranks": [0] if at % 2 else [], "query": f"query {at}"}
        sent.append(kernel.send("comm_msg", comm_id=crumb, data={"method": "update", "state": state}))
        question = {"rpc": 1, "call": f"question {at}", "method": "meta", "params": {"chunk": 0}}
        sent.append(kernel.send("comm_msg", comm_id=timeline, data={"method": "custom", "content": question}))
        time.sleep(0.01)
    taken, answered, echoed = Counter[str](), Counter[str](), []
    while len(taken) < len(sent) or answered.total() < PAIRS:
        message = kernel.heard()
        content = message["content"]
        data = content.get("data", {})
        if content.get("execution_state") == "idle":
            taken[message["parent_header"]["msg_id"]] += 1
        elif data.get("method") == "custom":
            assert "result" in data["content"]
            answered[data["content"]["call"]] += 1
        elif data.get("method") == "echo_update" and content["comm_id"] == crumb:
            echoed.append(data["state"]["query"])
    assert taken == dict.fromkeys(sent, 1)
    assert answered == {f"question {at}": 1 for at in range(PAIRS)}
    assert echoed == [f"query {at}" for at in range(PAIRS)]  # in their order
    selected = kernel.run("settle([*parts.values()], 30); print(explorer.selection.to_dict())")
    assert ast.literal_eval(selected) == {"ranks": (0,), "query": f"query {PAIRS - 1}"}
    assert kernel.run("explorer.selection.clear()") == ""


def test_a_cell_that_changed_something_holds_up_no_answer(kernel: Kernel) -> None:
    """It computes on: a browser with a shell of its own is answered meanwhile, where kernels have such."""
    subshells = kernel.run("import ipykernel; print(ipykernel.version_info >= (7,))") == "True\n"
    shell = kernel.new_subshell() if subshells else None
    timeline = kernel.run("print(parts['timeline'].model_id)").strip()
    cell = kernel.send("execute_request", code=f"explorer.selection.ranks = (0,){BUSY}", silent=False)
    for at in range(20):
        time.sleep(0.02)
        question = {"rpc": 1, "call": f"question {at}", "method": "meta", "params": {"chunk": 0}}
        data = {"method": "custom", "content": question}
        kernel.send("comm_msg", shell, comm_id=timeline, data=data)
    answered, meanwhile = 0, -1
    while answered < 20 or meanwhile < 0:
        message = kernel.heard()
        content = message["content"]
        if content.get("execution_state") == "idle" and message["parent_header"]["msg_id"] == cell:
            meanwhile = answered
        elif content.get("data", {}).get("method") == "custom":
            answered += 1
    assert meanwhile == (20 if subshells else 0)
    kept = "print({len(getattr(part.comm, '_reply_subshell_ids', ())) for part in parts.values()})"
    assert kernel.run(kept) == "{0}\n"


@pytest.mark.parametrize("work", WORK)
def test_a_kernel_is_usable_after_an_interrupt(kernel: Kernel, work: str) -> None:
    """The last of a kernel: an interrupt of what the kernel itself prints may mix its messages."""
    for delay in (0.0, 0.05):
        ended = kernel.run(f"print('working')\nwhile True:\n    {WORK[work]}", interrupted_after=delay)
        assert ended == "KeyboardInterrupt"
    assert kernel.run(USABLE) == "usable\n"
