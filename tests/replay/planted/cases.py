"""The changes that are asked: each as what it makes of a program, and as the edit that must foresee it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from hta_widgets import edits
from hta_widgets.analysis.replay.edits import Edit
from tests.replay.planted import changes
from tests.replay.planted.author import MS
from tests.replay.planted.changes import Change, together

__all__ = ["CASES", "Case"]


class Case(NamedTuple):
    """A change of a program, and the edits that stand for it."""

    change: Change
    edits: list[Edit]


def _both(*names: tuple[str, tuple[object, ...]]) -> Case:
    made = [(getattr(changes, name)(*values), getattr(edits, name)(*values)) for name, values in names]
    return Case(together(*(change for change, _ in made)), [edit for _, edit in made])


def _one(name: str, *values: object) -> Case:
    return _both((name, values))


_DATA = "enumerate(DataLoader)*"

CASES: Mapping[str, Case] = {
    "host twice as fast": _one("host", 0.5),
    "host free": _one("host", 0),
    "host slower": _one("host", 1.5),
    "launches free": _one("launches", 0),
    "kernels twice as fast": _one("kernels", 2.0),
    "kernels twice as slow": _one("kernels", 0.5),
    "kernels free": _one("kernels", math.inf),
    "matrices twice as fast": _one("kernels", 2.0, "gemm*"),
    "attention free": _one("kernels", math.inf, "flash*"),
    "copies twice as fast": _one("copies", 2.0),
    "copies slower": _one("copies", 0.2),
    "communication free": _one("communication", 0),
    "communication halved": _one("communication", 0.5),
    "communication slower": _one("communication", 4.0),
    "copies at 50 GB/s": _one("copy_bandwidth", 50.0),
    "collectives at 10 GB/s": _one("bus_bandwidth", 10.0),
    "attention of 20 us": _one("kernel_time", 20_000, "flash*"),
    "attention on its own stream": _one("own_stream", "flash*"),
    "batches on their own stream": _one("own_stream", "Memcpy HtoD*Pinned*"),
    "optimizer fused": _one("fused_optimizer"),
    "no data loader": _one("without", _DATA),
    "data loader of 1 ms": _one("without", _DATA, MS),
    "no optimizer on the host": _one("without", "Optimizer.step*"),
    "no dropout on the host": _one("without", "aten::native_dropout*"),
    "no log": _one("without", "## log ##"),
    "no item on the host": _one("without", "aten::item"),
    "no waits": _one("syncs"),
    "no waits at all": _one("syncs", "*"),
    "no waits for streams": _one("syncs", "cudaStreamSynchronize"),
    "no waits for events": _one("syncs", "cudaEventSynchronize"),
    "no blocking copies": _one("syncs", "cudaMemcpy*"),
    "no allocator": _one("allocator"),
    "host and kernels faster": _both(("host", (0.5,)), ("kernels", (2.0,))),
    "no waits, kernels faster": _both(("syncs", ()), ("kernels", (2.0,))),
    "no data loader, communication free": _both(("without", (_DATA,)), ("communication", (0,))),
    "no allocator, no waits, host faster": _both(("allocator", ()), ("syncs", ()), ("host", (0.5,))),
    "launches free, kernels much faster": _both(("launches", (0,)), ("kernels", (4.0,))),
    "no optimizer, no waits": _both(("without", ("Optimizer.step*",)), ("syncs", ())),
}
