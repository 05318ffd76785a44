"""`hta-widgets warm-up`: compiles on this machine what the first user would otherwise wait for.

It asks every question about bundled examples, and leaves what that compiles where numba keeps it.
"""

from __future__ import annotations

import io
import sys
import time
import warnings
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from hta_widgets import examples
from hta_widgets.analysis import ANALYSES, COMPARISONS, diff, inspect_window, operators, roofline, what_if
from hta_widgets.analysis.compare.anchors import anchors
from hta_widgets.analysis.job.meetings import misfit_ns
from hta_widgets.analysis.operators.unfused_attention import pass_on
from hta_widgets.analysis.replay import edits
from hta_widgets.cli.exits import Exit
from hta_widgets.cli.limits import LINES
from hta_widgets.errors import MissingDataError
from hta_widgets.memory_snapshot.pickles import plain_values
from hta_widgets.memory_snapshot.tables import tables_of
from hta_widgets.timeline import Pyramid, build_lanes, outline
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.raw import RawTrace
from hta_widgets.trace.reader.scanner import scan
from hta_widgets.trace.scope import Scope


def run(arguments: Namespace) -> Exit:
    """Run the command."""
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the examples
        for what, step in STEPS.items():
            if not arguments.quiet:
                sys.stderr.write(f"compiling: {what}\n")
            step()
    sys.stdout.write(f"Compiled in {time.monotonic() - began:.0f} s; a second run takes what is on disk.\n")
    return Exit.FINE


def _open(name: str) -> Trace:
    return Trace.open(examples.path(name), cache=False)


def _read() -> None:
    trace = _open("single_gpu_dataloader_stall")
    trace.events()
    RawTrace.read(trace.rank(trace.ranks[0]).path)


def _read_others() -> None:
    """Other formats: begins and ends of slices in order and not, arguments in them, what is no packet, and a
    pickle.
    """
    nested = "0a1840015a1448012210520a496e7075742044696d7362022001"  # {"Input Dims": [1]}
    scan(io.BytesIO(bytes.fromhex(nested)))
    slices = ("0a0640015a024801", "0a0640025a024802", "0a0640045a024801", "0a0640035a024802", "ff")
    scan(io.BytesIO(bytes.fromhex("".join(slices))))
    scan(io.BytesIO(bytes.fromhex("".join(slices[:2]))))
    pickled = bytes.fromhex(
        "8004951b000000000000007d948c087365676d656e7473945d94473ff800000000000061732e"
    )  # {"segments": [1.5]}
    tables_of(plain_values(np.frombuffer(pickled, np.uint8)))


def _draw() -> None:
    trace = _open("single_gpu_dataloader_stall")
    lanes = build_lanes([trace.rank(rank) for rank in trace.ranks])
    Pyramid(lanes).window(*lanes.extent, 1000, range(len(lanes.offsets) - 1))
    outline(lanes, {}, trace.iterations)


def _analyse() -> None:
    for name in ("ddp_4ranks", "inference_cuda_graphs"):
        trace = _open(name)
        functions: list[Callable[[Trace], object]] = [entry.function for entry in ANALYSES.values()]
        functions.append(partial(roofline, by="kernel"))
        for ask in functions:
            try:
                ask(trace)
            except MissingDataError:
                continue
    baseline = _open("gpt2_baseline")
    operators(baseline, by="module")
    inspect_window(baseline)
    # of sends without recorded partners, and of attention that is not fused, which no example has
    ends = np.arange(4)
    misfit_ns(ends, ends, np.array([2, 2]))
    pass_on(np.array([-1, 0]), np.array([0, -1]), np.zeros(2, np.bool_))


def _replay() -> None:
    trace = _open("single_gpu_dataloader_stall")
    what_if(trace, [edits.kernels(2.0), edits.launches(0.5)])


def _compare() -> None:
    runs = {name: _open(name) for name in ("gpt2_baseline", "gpt2_ddp")}
    for entry in COMPARISONS.values():
        entry.function(runs)
    for by in LINES:
        COMPARISONS["diff"].function(runs, by=by)
    first, second = (trace.rank(0) for trace in runs.values())
    diff(runs, "op", Scope(streams=tuple(first.stream[first.is_device].tolist())))
    anchors(first, first.extent, second, second.extent)


STEPS: Final[dict[str, Callable[[], None]]] = {
    "reading": _read,
    "reading other formats": _read_others,
    "the timeline": _draw,
    "analyses": _analyse,
    "replays": _replay,
    "comparisons": _compare,
}
"""Together they call every kernel that an ordinary recording needs."""
