"""Runs pytest again and again in forks of one process that has imported all but the package under test.

    python -m tests.faults.warm

One JSON object per line in: {"arguments", "environment", "log", "limit"}; one number per line out: the exit
code of pytest, or -1 where it did not end within the limit.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from importlib import import_module
from typing import Any

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
    "pytest",
)


def main() -> None:
    for name in HEAVY:
        import_module(name)
    # that a property fails is enough: the same examples each time, and no smaller one
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("faults", phases=phases, derandomize=True, database=None)
    settings.load_profile("faults")
    for line in sys.stdin:
        print(_in_fork(json.loads(line)), flush=True)


def _in_fork(job: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        _run(job)
    deadline = time.monotonic() + job["limit"]
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) or 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


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
    # a file with a fault must leave nothing behind
    sys.dont_write_bytecode = True
    code = 3
    try:
        code = int(pytest.main(job["arguments"]))
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
