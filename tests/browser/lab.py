"""A throw-away JupyterLab server, a headless Chromium page on it, and what a test does with the two.

The kernel is asked through the page itself (`Lab.kernel`): a test sees what the user's next cell would see.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import nbformat
import psutil
from playwright.sync_api import Browser, Error, Locator, Page, Playwright

from tests.browser import chromium, forked_kernels

START_SECONDS = 60
# Longer than any cell of a test: by then the kernel stands still.
ANSWER_SECONDS = 180
# Servers and kernels of a run that was killed end by themselves.
ABANDONED_SECONDS = 900

Answer = TypeVar("Answer")

# Of JupyterLab, what asks yarn, or pip and the network, at each start of a page.
SWITCHED_OFF = {
    "buildCheck": False,
    "disabledExtensions": {"@jupyterlab/extensionmanager-extension": True},
}

# Where the server shows a notebook in JupyterLab, and where in Notebook 7.
LAB, NOTEBOOK_7 = "doc/tree", "notebooks"

# A timeline that has drawn its slices.
TIMELINE = "[data-ready=true] .hta-timeline"

# CI machines have no user namespaces, no GPU and no way out; only our own server on localhost is visited.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# The kernel's own state: the status shown in the toolbar is "idle" even before it is connected.
READY = """() => {
  const context = window.jupyterapp?.shell?.currentWidget?.sessionContext;
  return context?.isReady && context.session?.kernel?.status === 'idle';
}"""

# Close what is open, unsaved as it is, and open another notebook in its place.
REPLACE = """async (path) => {
  const { commands, shell, serviceManager } = window.jupyterapp;
  const before = [...shell.widgets('main')];
  for (const widget of before) {
    if (widget.context?.model) widget.context.model.dirty = false;
    widget.close();
  }
  // the same path would bring back a document that is not gone yet
  while (before.some((widget) => !widget.isDisposed)) await new Promise((done) => setTimeout(done, 10));
  await serviceManager.sessions.shutdownAll();
  await commands.execute('docmanager:open', { path, factory: 'Notebook' });
}"""

EVALUATE = """async (expression) => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const future = kernel.requestExecute(
    { code: '', silent: false, store_history: false, user_expressions: { out: expression } }, true);
  const reply = await future.done;
  const out = reply.content.user_expressions?.out;
  if (out?.status !== 'ok') throw new Error(expression + ': ' + (out?.evalue ?? reply.content.evalue));
  return out.data['text/plain'];
}"""


# Of JupyterLab's widget manager (ipywidgets 8.1), with plain ipywidgets, too: once the view of a widget's
# layout is there, it posts the widget a message to resize. If the output was cleared meanwhile, the widget is
# disposed of, and fails on the message. Nobody sees anything of it.
MANAGERS_OWN = re.compile(
    r"TypeError: Cannot read properties of null \(reading 'processLuminoMessage'\)\n"
    r"\s+at \S*\.processMessage \(\S+/@jupyter-widgets/jupyterlab-manager/"
)


# Playwright itself waits for ever for what a page evaluates.
WITHIN = """(given) => Promise.race([
  (%s)(given),
  new Promise((_, fail) => setTimeout(() => fail(new Error('no answer within %d s')), %d)),
])"""


@dataclass(frozen=True)
class Server:
    """A running JupyterLab whose files lie in `root`."""

    url: str
    token: str
    root: Path
    processes: tuple[int, int]  # Jupyter's and the one that forks kernels
    log: Path

    def end_kernels(self) -> str:
        """End the kernels, which print the stacks of all their threads; returns the end of the log."""
        server, forking = map(psutil.Process, self.processes)
        started = [process for process in server.children() if "ipykernel_launcher" in process.cmdline()]
        kernels = [*started, *forking.children()]
        for process in kernels:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGABRT)
        psutil.wait_procs(kernels, timeout=2)
        return self.log.read_text(errors="replace")[-20_000:]


@contextlib.contextmanager
def jupyter_lab(root: Path, *, dark: bool = False) -> Iterator[Server]:
    """Start JupyterLab with its own settings, kernels and IPython profile: nothing of the user's is read."""
    port = free_port()
    token = secrets.token_hex(16)
    home = Path(tempfile.mkdtemp(prefix="hta_widgets-lab-"))
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false, "doNotDisturbMode": true}'
    )
    switched_off = home / "config" / "labconfig" / "page_config.json"
    switched_off.parent.mkdir(parents=True)
    switched_off.write_text(json.dumps(SWITCHED_OFF))
    theme = "Dark" if dark else "Light"
    (settings / "themes.jupyterlab-settings").write_text(f'{{"theme": "JupyterLab {theme}"}}')
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"),
        *(f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"),
        *(f"--ServerApp.root_dir={root}", "--LabApp.expose_app_in_browser=True"),
        "--JupyterNotebookApp.expose_app_in_browser=True",  # the same server has Notebook 7
        f"--ServerApp.shutdown_no_activity_timeout={ABANDONED_SECONDS}",
        f"--MappingKernelManager.cull_idle_timeout={ABANDONED_SECONDS}",
    ]
    kernel = home / "data" / "kernels" / forked_kernels.NAME / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(forked_kernels.spec())
    log = home / "lab.log"
    environment = (
        os.environ
        | {name: str(home / folder) for name, folder in folders.items()}
        | {"PYTHONFAULTHANDLER": "1", forked_kernels.ADDRESS: str(home / "kernels")}
    )
    with log.open("w") as out:
        forking, process = (
            subprocess.Popen(
                command,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=root,
                start_new_session=True,  # its own process group: kernels end with it
            )
            for command in ([sys.executable, forked_kernels.__file__], command)
        )
    server = Server(f"http://127.0.0.1:{port}", token, root, (process.pid, forking.pid), log)
    try:
        _wait_until_up(server, process, log)
        yield server
    finally:
        forking.kill()
        forking.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(home, ignore_errors=True)


def open_panel(explorer: Page | Locator, label: str) -> None:
    """Open a panel by the launcher, as its user does: type a part of its name, then Enter."""
    explorer.locator(".hta-launch").first.click()
    box = explorer.get_by_role("combobox", name="Panel, event name")
    box.fill(label)
    box.press("Enter")


def eventually(check: Callable[[], Answer], seconds: float = 20) -> Answer:
    """What a check returns once it no longer fails: a page comes to rest some time after what changed it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def show_all(timeline: Locator) -> None:
    """Show all time, in the page: the kernel may not have heard yet that it shows less."""
    timeline.press("0")


def expect_view(timeline: Locator, start: int, end: int) -> None:
    """Wait until the timeline has drawn this view, to a hundredth of its width."""

    def drawn() -> None:
        shown = [float(edge) for edge in (timeline.get_attribute("data-view") or "").split()]
        assert len(shown) == 2 and max(abs(shown[0] - start), abs(shown[1] - end)) <= (end - start) / 100

    eventually(drawn)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _wait_until_up(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{server.url}/api?token={server.token}", timeout=2).close()
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
        time.sleep(0.2)


@contextlib.contextmanager
def chromium_browser(playwright: Playwright) -> Iterator[Browser]:
    """A headless browser, which takes a second to start."""
    executable = chromium.executable(playwright)
    if executable is None:
        raise RuntimeError(chromium.HELP)
    browser = playwright.chromium.launch(executable_path=executable, headless=True, args=FLAGS)
    try:
        yield browser
    finally:
        browser.close()


@contextlib.contextmanager
def page_of(browser: Browser) -> Iterator[Page]:
    """A page with an empty profile: it shares nothing with the browser's other pages."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        yield context.new_page()
    finally:
        context.close()


@contextlib.contextmanager
def chromium_page(playwright: Playwright) -> Iterator[Page]:
    """The only page of a browser of its own."""
    with chromium_browser(playwright) as browser, page_of(browser) as page:
        yield page


@dataclass
class Lab:
    """One browser page on one JupyterLab server, with one notebook open at a time."""

    server: Server
    page: Page
    errors: list[str] = field(default_factory=list)  # console errors and uncaught exceptions since `open`
    stood_still: bool = False  # and JupyterLab asks what to do about the kernel
    shown: tuple[str, ...] = ()  # name and cells of the notebook that is open, once they have run

    def __post_init__(self) -> None:
        self.page.on("console", lambda m: self._heard(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _heard(self, error: str) -> None:
        if not MANAGERS_OWN.match(error):
            self.errors.append(error)

    def open(self, name: str, app: str = LAB, *, afresh: bool = False) -> None:
        """Open a notebook of the server's folder alone in the page, with a fresh kernel; earlier ones end.

        JupyterLab itself, which takes seconds to start, stays from one notebook to the next, unless it is to
        start `afresh`.
        """
        afresh, self.stood_still, self.shown = afresh or self.stood_still, False, ()
        if app == LAB and not afresh and self.is_open:
            self.evaluate(REPLACE, name)
        else:
            self.evaluate("() => window.jupyterapp?.serviceManager.sessions.shutdownAll()")
            self.page.goto(f"{self.server.url}/{app}/{name}?token={self.server.token}&reset")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        self.page.wait_for_function(READY, timeout=60_000)
        self.errors.clear()

    @property
    def is_open(self) -> bool:
        """Does the page show JupyterLab?"""
        return self.page.url.startswith(f"{self.server.url}/{LAB}/")

    def open_code(self, *cells: str, name: str = "test.ipynb", app: str = LAB, afresh: bool = False) -> None:
        """Write a notebook of these code cells, open it and run it."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": forked_kernels.METADATA},
        )
        nbformat.write(notebook, self.server.root / name)
        self.open(name, app, afresh=afresh)
        self.run_all()
        self.shown = (name, *cells)

    def show(self, *cells: str, name: str) -> None:
        """Open these cells as a notebook, unless it is open: tests that put it to rest can share one."""
        if self.shown != (name, *cells):
            self.open_code(*cells, name=name)

    def run_all(self) -> None:
        """Run every cell and wait for the last; a cell that raises fails the test."""
        self.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.page.wait_for_function(READY, timeout=120_000)
        failed = self.page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']")
        tracebacks = [text for text in failed.all_inner_texts() if "Traceback" in text]
        assert not tracebacks, "\n".join(tracebacks)

    def kernel(self, expression: str) -> str:
        """repr() of a Python expression, evaluated in the notebook's kernel: no cell, no output."""
        result: str = self.evaluate(EVALUATE, expression)
        return result

    def evaluate(self, script: str, given: Any = None) -> Any:
        """What a function of the page returns. A kernel that stands still is ended, with its stacks."""
        try:
            return self.page.evaluate(WITHIN % (script, ANSWER_SECONDS, 1000 * ANSWER_SECONDS), given)
        except Error as error:
            if "no answer within" not in error.message:
                raise
            self.stood_still = True
            raise AssertionError(f"{error.message}\n{self.server.end_kernels()}") from error

    def expect_kernel(self, expression: str, value: Any, seconds: float = 30) -> None:
        """Wait until the expression has the value: the browser's changes reach the kernel a little later.

        Until then it may raise: what it asks for is not there yet.
        """
        deadline = time.monotonic() + seconds
        pause = 0.05
        while (got := self._kernel_or_error(expression)) != repr(value):
            assert time.monotonic() < deadline, f"{expression} is {got}, expected {value!r}"
            time.sleep(pause)
            pause = min(1.5 * pause, 0.25)  # each question takes all of page, server and kernel

    def _kernel_or_error(self, expression: str) -> str:
        try:
            return self.kernel(expression)
        except Error as error:
            return error.message

    def expect_no_errors(self) -> None:
        assert not self.errors, "\n".join(self.errors)

    def use_theme(self, *, dark: bool) -> None:
        """Change the page's theme, as the reader does in the Settings menu; it stays through reloads."""
        body = f"body[data-jp-theme-light={str(not dark).lower()}]"
        if self.page.locator(body).count():
            return
        self.page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
            f"JupyterLab {'Dark' if dark else 'Light'}",
        )
        self.page.wait_for_selector(body, state="attached")
        # JupyterLab's splash fades after that; a second change meanwhile would have it removed twice
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def shot(self, name: str, what: Locator | None = None, *, dark: bool = False) -> None:
        """Save a picture where HTA_WIDGETS_SHOTS says, to be looked at; without it do nothing.

        `dark`: in the dark theme, which ends with it.
        """
        if folder := os.environ.get("HTA_WIDGETS_SHOTS"):
            path = Path(folder) / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            if dark:
                self.use_theme(dark=True)
            (what or self.page).screenshot(path=path)
            if dark:
                self.use_theme(dark=False)
