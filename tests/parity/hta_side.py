"""HTA's answers: asked in HTA's own environment, in the background, and kept from run to run."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
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
        self._python, self._folder = python, folder
        self._pool = ThreadPoolExecutor(PROCESSES)
        self._asked: dict[str, Future[dict[str, Any]]] = {}

    def ask(self, name: str, request: dict[str, Any]) -> None:
        if name not in self._asked:
            self._asked[name] = self._pool.submit(self._observe, name, request)

    def answers(self, name: str) -> dict[str, Any]:
        return self._asked[name].result()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _observe(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        kept = self._folder / f"{name}-{_digest(request)}.json"
        if not kept.exists():
            question, answer = kept.with_suffix(".request"), kept.with_suffix(".partial")
            question.write_text(json.dumps(request))
            command = [str(self._python), str(SCRIPT), "hta", str(question), str(answer)]
            environment: Mapping[str, str] = {**os.environ, "PYTHONHASHSEED": "0"}
            run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if run.returncode:
                raise RuntimeError(f"HTA did not answer about {name}:\n{run.stderr[-2000:]}")
            answer.replace(kept)
        job = json.loads(kept.read_text())
        assert isinstance(job, dict)
        return job


def _digest(request: dict[str, Any]) -> str:
    """Names what the answers depend on: the questions, HTA's version, and the bytes of the traces."""
    digest = hashlib.sha256(SCRIPT.read_bytes() + REQUIREMENTS.read_bytes())
    files = request.get("files", {}).values() or request.get("pair") or [request.get("memory")]
    for path in files:
        digest.update(Path(path).read_bytes())
    options = {"scale": request.get("scale", 1), "skip": request.get("skip", [])}
    digest.update(json.dumps(options).encode())
    return digest.hexdigest()[:16]
