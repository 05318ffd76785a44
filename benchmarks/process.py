"""Runs a piece of Python in a process of its own and reads from outside what it used."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.installed import folder, interpreter

MARK = "RESULT "
# what Python compiled of a package is kept, as it is for its users
SAME = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}


@dataclass(frozen=True)
class Cost:
    """Of a whole process, its start and imports included, and what it reported."""

    cpu: float  # s, user and system, of the process and its children
    wall: float  # s
    peak: float  # MB, largest resident set
    result: Any  # what `report` was given


def run(python: str, script: str, *arguments: object, **environment: str) -> Cost:
    """What a script costs under an interpreter."""
    beside = folder()
    begun = time.perf_counter()
    process = subprocess.Popen(
        [python, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=beside,
        env={**os.environ, **SAME, "PYTHONPATH": str(beside), **environment},
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a measurement failed, see above: {script.strip()[:200]}")
    _, mark, result = output.rpartition(MARK)
    return Cost(
        usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, json.loads(result) if mark else None
    )


def call(function: Callable[..., Any], *arguments: object, **environment: str) -> Cost:
    """What a function of this package costs in a process of its own; it gets its arguments as text."""
    script = (
        f"import json, sys; from {function.__module__} import {function.__qualname__} as measured\n"
        f"print({MARK!r} + json.dumps(measured(*sys.argv[1:])))"
    )
    return run(interpreter(), script, *arguments, **environment)


def import_all() -> None:
    """Import the modules with the answers: each comes when it is first needed, HTA's come at once."""
    for name in ("hta_widgets.analysis", "hta_widgets.hta"):
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(module.name)


def cpu() -> float:
    """User and system time of this process and its children, finer than `os.times`."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def peak() -> float:
    """MB that this process has had in memory at most so far, without what its parent had when it began."""
    if (status := Path("/proc/self/status")).exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_a_fork(work: Callable[[], object], limit: float) -> float | str:
    """CPU seconds of the work in a fork of this process, which leaves nothing behind, or why none."""
    gc.collect()
    gc.freeze()  # a fork copies what its garbage collector touches
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        answer: float | str
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), 1)
            before = cpu()
            try:
                work()
                answer = cpu() - before
            except BaseException as error:
                answer = f"{type(error).__name__}: {error}"[:80]
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    end = time.monotonic() + limit
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
            return f"over {limit:.0f} s"
        time.sleep(0.002)
    message = os.read(reading, 65536)
    os.close(reading)
    return json.loads(message) if message else "killed"  # type: ignore[no-any-return]
