"""The rule about a model that denoises in several passes one after the other, which could be one batch."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.findings.callers import MODULE, nearest, place_claim
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule, never
from hta_widgets.analysis.idle.causes import named
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

# The scheduler's part of a denoising step in diffusers, and in what is written after it.
_SCHEDULES: Final = re.compile(r"(?:^|/)scheduling_\w+\.py\(\d+\): step$")
_LEAST_STEPS: Final = 3
_ALIKE: Final = 0.95


def passes_in_turn(inputs: Inputs) -> Finding | None:
    """The same module, as often in each denoising step, with about as many kernels each time."""
    found = {rank: each for rank in inputs.judged_ns if (each := inputs.recorded(rank, _passes))}
    if not found:
        return None
    rank, most = next(iter(found.items()))
    return Finding(
        0,
        0.0,
        say(
            "{module} runs {passes} times in each denoising step, one pass after the other. As one batch "
            "they launch each kernel once.",
            module=place_claim("module_in_passes", most.module, rank),
            passes=Claim("passes_of_step", most.passes, "count", "", (rank,), {"module": most.module}),
        ),
        "Where the passes are those of guidance, join their inputs along the batch, and split the result.",
        "call_stacks",
        Evidence(event_rank=rank),
        severity="note",
    )


class _Passes(NamedTuple):
    module: str
    passes: int


def _passes(rank_trace: RankTrace) -> _Passes | None:
    """Of the outermost module that takes the host longest in the steps that are between two schedules."""
    python = rank_trace.event_class == EventClass.PYTHON
    steps = np.sort(rank_trace.start[np.flatnonzero(python & named(rank_trace, _SCHEDULES.search))])
    if len(steps) <= _LEAST_STEPS:
        return None
    rows = np.flatnonzero(python & named(rank_trace, MODULE.search))
    around = nearest(rank_trace, rank_trace.parent[rows].astype(np.int64), python, MODULE.search)
    step = np.searchsorted(steps, rank_trace.start[rows])
    rows = rows[(around < 0) & (step > 0) & (step < len(steps))]
    if not len(rows):
        return None
    time = np.bincount(rank_trace.name[rows], rank_trace.dur[rows])
    rows = rows[rank_trace.name[rows] == int(time.argmax())]
    kernels = stacks(rank_trace).kernels[rows]
    calls = Counter(np.searchsorted(steps, rank_trace.start[rows]).tolist())
    passes = set(calls.values())
    alike = kernels.min() >= _ALIKE * kernels.max() > 0
    if len(calls) < len(steps) - 1 or len(passes) > 1 or passes == {1} or not alike:
        return None
    return _Passes(rank_trace.names[int(rank_trace.name[rows[0]])], passes.pop())


RULE: Final = Rule(
    topic="passes_in_turn",
    question="whether a model denoises in several passes",
    title="Passes one after the other",
    judge=passes_in_turn,
    role="aside",
    applies=never,
    wrong_if="The passes depend on each other, or memory does not hold them at once.",
)
