"""Programs with operators whose inputs are known, opened as recordings of a known device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import write
from tests.verdicts.planted.host_program import US, Program

A100, H100 = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"
TYPES = {"bf16": "c10::BFloat16", "fp32": "float", "fp64": "double", "fp16": "c10::Half"}


def opened(folder: Path, program: Program, device: str | None, **properties: Any) -> Trace:
    """The recording of a program on a device; None: its name is not recorded."""
    path = write(folder / "trace.json", program.events)
    if device:
        known = json.dumps([{"id": 0, "name": device, **properties}])
        text = path.read_text().replace(
            '"schemaVersion": 1', f'"schemaVersion": 1, "deviceProperties": {known}'
        )
        path.write_text(text)
    return Trace.open(path, cache=False)


@contextmanager
def operator(
    program: Program, name: str, *shapes: tuple[int, ...], dtype: str | None = "bf16", **args: Any
) -> Iterator[None]:
    """An operator of these inputs; without a type, none of them is recorded. It takes the host 2 us."""
    if dtype:
        args |= {"Input Dims": list(map(list, shapes)), "Input type": [TYPES[dtype]] * len(shapes)}
    with program.inside("cpu_op", name, **args):
        program.silence(2 * US)
        yield
