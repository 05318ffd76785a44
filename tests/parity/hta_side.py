"""HTA's answers: asked in HTA's own environment, in the background, and kept from run to run."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.support import ROOT

SCRIPT = Path(__file__).with_name("observe.py")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
VARIABLE = "HTA_WIDGETS_PARITY_PYTHON"
# Python's own work aside, one process is one core and up to 1 GB.
PROCESSES = 2


def interpreter() -> Path | None:
    """The Python that can import HTA: what the variable says, else the one `make parity` made."""
    job = os.environ.get(VARIABLE)
    python = Path(job) if job else ROOT / ".hta" / "bin" / "python"
    return python if python.exists() else None


class Observations:
    """Asks HTA about requests ahead of the tests that need the answers."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._command, self._folder = [str(python), str(SCRIPT), "hta"], folder
        self._pool = ThreadPoolExecutor(PROCESSES)
        self._asked: dict[str, Future[dict[str, Any]]] = {}
        self._idle: SimpleQueue[subprocess.Popen[str] | None] = SimpleQueue()
        for _ in range(PROCESSES):
            self._idle.put(None)  # started for the first request that it answers

    def ask(self, name: str, request: dict[str, Any]) -> None:
        if name not in self._asked:
            self._asked[name] = self._pool.submit(self._observe, name, request)

    def answers(self, name: str) -> dict[str, Any]:
        return self._asked[name].result()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        for _ in range(PROCESSES):
            if (process := self._idle.get()) is not None:
                process.communicate()

    def _observe(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        kept = self._folder / f"{name}-{_digest(request)}.json"
        if not kept.exists():
            question, answer = kept.with_suffix(".request"), kept.with_suffix(".partial")
            question.write_text(json.dumps(request))
            process = self._idle.get() or self._start()
            try:
                said = _said(process, f"{question}\t{answer}\n")
            finally:
                self._idle.put(process)
            if said != "answered\n":
                why = answer.read_text() if answer.exists() else "its process ended"
                raise RuntimeError(f"HTA did not answer about {name}:\n{why[-2000:]}")
            answer.replace(kept)
        job = json.loads(kept.read_text())
        assert isinstance(job, dict)
        return job

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def _said(process: subprocess.Popen[str], request: str) -> str:
    """What a process answers to a line; nothing once it has ended."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(request)
        process.stdin.flush()
    return process.stdout.readline()


def _digest(request: dict[str, Any]) -> str:
    """Names what the answers depend on: the questions, HTA's version, and the bytes of the traces."""
    digest = hashlib.sha256(SCRIPT.read_bytes() + REQUIREMENTS.read_bytes())
    files = request.get("files", {}).values() or request.get("pair") or [request.get("memory")]
    for path in files:
        digest.update(Path(path).read_bytes())
    options = {"scale": request.get("scale", 1), "skip": request.get("skip", [])}
    digest.update(json.dumps(options).encode())
    return digest.hexdigest()[:16]
