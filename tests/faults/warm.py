"""Runs pytest again and again in forks of one process that has imported all but the package under test.

    python -m tests.faults.warm

One JSON object per line in: {"arguments", "environment", "log", "limit"}, "report", a file for the seconds of
each test and the names of those that fail, and "lines", one for coverage.py, which notes the tests that run a
line. One line out: [exit code of pytest, seconds of CPU], the code -1 where it did not end within the limit.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import coverage
from hypothesis import Phase, settings

HEAVY = (
    "numpy",
    "pandas",
    "pyarrow",
    "numba",
    "plotly.graph_objects",
    "networkx",
    "anywidget",
    "fsspec",
    "nbformat",
    "pytest",
)


def main() -> None:
    for name in HEAVY:
        import_module(name)
    # that a property fails is enough: the same examples each time, and no smaller one
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("faults", phases=phases, derandomize=True, database=None, deadline=None)
    settings.load_profile("faults")
    for line in sys.stdin:
        print(json.dumps(_in_fork(json.loads(line))), flush=True)


def _in_fork(job: dict[str, Any]) -> tuple[int, float]:
    child = os.fork()
    if child == 0:
        _run(job)
    deadline = time.monotonic() + job["limit"]
    while time.monotonic() < deadline:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) or 0, usage.ru_utime + usage.ru_stime
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    *_, usage = os.wait4(child, 0)
    return -1, usage.ru_utime + usage.ru_stime


def _run(job: dict[str, Any]) -> None:
    import numba
    import pytest

    os.setsid()
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(job["environment"])
    numba.core.config.reload_config()
    # a file with a fault must leave nothing behind; without one, nothing need be compiled again
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in os.environ
    report = _Report()
    code = 3
    try:
        if "lines" in job:
            report.lines = coverage.Coverage(job["lines"], source=["hta_widgets"])
            report.lines.set_option("run:relative_files", True)
            report.lines.start()
        code = int(pytest.main(job["arguments"], plugins=[report]))
        if report.lines:
            report.lines.stop()
            report.lines.save()
        if "report" in job:
            Path(job["report"]).write_text(json.dumps({"seconds": report.seconds, "red": report.red}))
    finally:
        sys.stdout.flush()
        os._exit(code)


class _Report:
    """How long each test took, with what was set up for it, and which failed."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.red: list[str] = []
        self.lines: coverage.Coverage | None = None

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.lines:
            self.lines.switch_context(nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.red.append(report.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + round(report.duration, 3)
        if report.failed and report.nodeid not in self.red:
            self.red.append(report.nodeid)


if __name__ == "__main__":
    main()
