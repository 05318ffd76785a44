"""A command run in this process: its exit code and what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hta_widgets.cli import main
from hta_widgets.cli.opening import kept_open


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was written, read strictly: NaN is no JSON."""

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is no JSON")

        return json.loads(self.out, parse_constant=refuse)


Run = Callable[..., Done]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*argv: object) -> Done:
        code = main([str(word) for word in argv])
        return Done(code, *capfd.readouterr())

    return call


@pytest.fixture(scope="module")
def opened_once() -> Iterator[None]:
    """All commands about a recording look at the same trace, for modules whose subject is not its opening."""
    with kept_open(8):
        yield


@pytest.fixture
def trace_file(tmp_path: Any) -> Callable[..., Any]:
    """Write a small trace of one rank with kernels of these names; returns its path."""

    def write(*names: str, file: str = "rank0.json") -> Any:
        events: list[dict[str, Any]] = []
        for number, name in enumerate(names):
            link = {"correlation": number + 1}
            call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
            work = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7}
            start = 1000 + 100 * number
            events.append({**call, "ts": start, "dur": 3, "args": link})
            events.append({**work, "ts": start + 10, "dur": 20, "args": {**link, "stream": 7, "device": 0}})
        path = tmp_path / file
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
        return path

    return write
