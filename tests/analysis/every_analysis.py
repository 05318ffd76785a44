"""Every analysis there is, called with what it needs, for tests that hold for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pandas as pd

from hta_widgets import analysis, examples
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.support import EVERY_CASE

# Those that need to be told something, and further ways to ask.
_OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("user_annotations", {"side": "gpu"}),
    ("user_annotations", {"side": "cpu"}),
    ("blocked_on_full_queue", {"limit": 2}),
    ("kernel_sequences", {"operator": "aten::", "min_length": 1}),
    ("temporal_breakdown", {"by": "iteration"}),
    ("idle_breakdown", {"by": "iteration"}),
    ("kernel_breakdown", {"top": 2}),
]
_REQUIRED = {"user_annotations", "blocked_on_full_queue", "kernel_sequences"}
_WITHOUT_PANEL = ("annotated_kernels", "stream_idle_intervals")

# function, options
_CALLS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in (*analysis.ANALYSES, *_WITHOUT_PANEL) if name not in _REQUIRED),
    *_OPTIONS,
]
Question = Callable[[Trace, Scope], pd.DataFrame]


def _asker(function: str, options: dict[str, Any]) -> Question:
    def ask(trace: Trace, scope: Scope) -> pd.DataFrame:
        frame: pd.DataFrame = getattr(analysis, function)(trace, scope, **options)
        return frame

    return ask


EVERY_ANALYSIS: dict[str, Question] = {
    function + "".join(f"-{value}" for value in options.values() if isinstance(value, str | int)): _asker(
        function, options
    )
    for function, options in _CALLS
}


def all_answers(trace: Trace, scope: Scope) -> dict[str, pd.DataFrame | str]:
    """Each analysis's frame, or what is missing for it. Any other error is passed on."""
    answers: dict[str, pd.DataFrame | str] = {}
    for name, ask in EVERY_ANALYSIS.items():
        try:
            answers[name] = ask(trace, scope)
        except HtaWidgetsError as missing:
            answers[name] = f"{type(missing).__name__}: {missing}"
    return answers


def digests() -> list[str]:
    """Of bundled jobs, each answer as a line; none that another process has kept."""
    found = []
    for job in ("gpt2_fsdp_full_shard", "ddp_4ranks", "single_gpu_dataloader_stall")[
        : 3 if EVERY_CASE else 1
    ]:
        trace = Trace.open(examples.path(job), cache=False)
        for name, frame in all_answers(trace, Scope()).items():
            text = frame if isinstance(frame, str) else frame.to_csv()
            found.append(f"{job} {name} {hashlib.sha256(text.encode()).hexdigest()}")
    return found
