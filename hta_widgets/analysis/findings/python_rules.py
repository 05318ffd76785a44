"""A rule about modules in which Python takes the host long for each launch."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.callers import (
    MODULE,
    line_claim,
    module_class,
    nearest,
    open_in,
    place_claim,
)
from hta_widgets.analysis.findings.compiled import compiles
from hta_widgets.analysis.findings.finding import WARNING_PCT, Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, idle_rule
from hta_widgets.analysis.idle.causes import is_synchronising, named
from hta_widgets.analysis.idle.pauses import LEAST_NS
from hta_widgets.analysis.replay import edits
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

PER_LAUNCH_NS: Final = 20_000
"""An operator that only launches takes the host less."""

LEFT: Final = 0.3
"""Of the host's time in a module once it is compiled."""


class _Class(NamedTuple):
    """Modules of one class; the host's own time in them is outside inner modules and waits.

    The device is `idle` for some of it, `long_ns` of that in gaps as long as a pause.
    """

    name: str
    own_ns: int
    idle: Intervals
    long_ns: int
    launches: Int64

    @property
    def idle_ns(self) -> int:
        return self.idle.length

    @property
    def per_launch(self) -> bool:
        """Whether the time is what Python takes for launches: most of it lies in gaps of less than 1 ms."""
        return self.own_ns > PER_LAUNCH_NS * max(1, len(self.launches)) and 2 * self.long_ns <= self.idle_ns


def python_heavy(inputs: Inputs) -> Finding | None:
    """The class of modules that keeps devices waiting most, where the host takes long for each launch."""
    frame = inputs.idle
    if frame.empty or not inputs.has_stacks:
        return None
    late = frame[100.0 * frame["host_busy_ns"] >= WARNING_PCT * frame["window_ns"]]
    if late.empty:
        return None
    rank = int(late["rank"].iloc[int(late["host_busy_ns"].to_numpy(np.int64).argmax())])
    heavy = [each for each in _classes(inputs, rank) if each.per_launch]
    if not heavy:
        return None
    most = max(heavy, key=lambda each: (each.idle_ns, each.name))
    share = 100.0 * most.idle_ns / inputs.judged_ns[rank]
    rank_trace = inputs.trace.rank(rank)
    if not severity_of(share) or not len(most.launches):
        return None
    line, about = line_claim(rank_trace, most.launches, module=most.name), {"module": most.name}
    pattern = f"{edits.exactly(most.name)}_*"
    gap = most.idle.longest
    shown_by = open_in(rank_trace, gap, lambda name: module_class(name) == most.name)
    text = say(
        "In {module}{line} the host takes {each} for each launch, inner modules aside. For {lost} the device "
        "is idle meanwhile. The profiler's own time for each Python call is part of it.",
        module=place_claim("idle_in_module_class", most.name, rank),
        line=say(" at {line}", line=line) if line.value else "",
        each=Claim("own_time_per_launch", most.own_ns / len(most.launches), "ns", "", (rank,), about),
        lost=inputs.time_lost("idle_in_modules", share, most.idle_ns, (rank,), **about),
    )
    return Finding(
        most.idle_ns,
        share,
        text,
        "Some code is compiled, but not this: look for graph breaks around these modules (TORCH_LOGS="
        "graph_breaks). Leave out Python between their operators: loops, checks, hooks, tensors made on the "
        "host."
        if inputs.of(rank, compiles)
        else "torch.compile the model, or the part that these modules are in. New shapes are compiled again. "
        "Else leave out Python between their operators: loops, checks, hooks, tensors made on the host.",
        "idle_breakdown",
        Evidence(
            rank=rank if len(frame) > 1 else None,
            event_rank=rank,
            event_id=int(rank_trace.event_id[shown_by if shown_by >= 0 else most.launches[0]]),
            span=gap,
        ),
        change=Change(
            say(
                "with {left} of the host's time in {module}, as if it were compiled",
                left=Claim("assumed_to_be_left", 100 * LEFT, "%", "host time"),
                module=place_claim("idle_in_module_class", most.name, rank),
            ),
            lambda _: [edits.host(LEFT, within=pattern)],
        ),
        lost={rank: most.idle},
    )


def _classes(inputs: Inputs, rank: int) -> list[_Class]:
    """The classes of modules of a rank in the judged time."""
    rank_trace = inputs.trace.rank(rank)
    python = rank_trace.event_class == EventClass.PYTHON
    modules = np.flatnonzero(python & named(rank_trace, MODULE.search))
    modules = modules[rank_trace.belong(modules, inputs.scope)]
    launches = np.unique(rank_trace.issuer[rank_trace.issuer >= 0]).astype(np.int64)
    launches = launches[rank_trace.belong(launches, inputs.scope)]
    launched_in = nearest(rank_trace, launches, python, MODULE.search)
    around = nearest(rank_trace, rank_trace.parent[modules].astype(np.int64), python, MODULE.search)
    waits = _waits(rank_trace) | inputs.paused(rank).both
    gaps = inputs.idle_causes(rank).gaps
    long = gaps.end - gaps.start >= LEAST_NS
    pauses = Intervals(gaps.start[long], gaps.end[long])
    windows = rank_trace.windows(inputs.scope)
    found = []
    names = np.array([module_class(rank_trace.names[code]) for code in rank_trace.name[modules]])
    for name in sorted({*names.tolist()}):
        mine = modules[names == name]
        inner = modules[np.isin(around, mine) & (names != name)]
        own = Intervals.union(rank_trace.start[mine], rank_trace.end[mine])
        own = own - Intervals.union(rank_trace.start[inner], rank_trace.end[inner]) - waits
        found.append(
            _Class(
                name,
                own.within(windows),
                own & gaps & inputs.judged_time(rank),
                (own & pauses).within(windows),
                launches[np.isin(launched_in, mine)],
            )
        )
    return found


def _waits(rank_trace: RankTrace) -> Intervals:
    """When a synchronising call is open."""
    runtime = rank_trace.event_class == EventClass.RUNTIME
    return open_time(rank_trace, runtime & named(rank_trace, is_synchronising))


RULE = idle_rule(
    topic="python_heavy",
    title="Running Python in one kind of module",
    label="Slow Python module",
    cause="slow Python in one module",
    judge=python_heavy,
    applies=lambda inputs: inputs.has_stacks,
    risk="Compiling takes time at first and again for every new shape; results may differ in the last bits.",
    needs="torch.compile, or a fused kernel for these operators.",
    wrong_if="The time is that of the profiler, which takes some for each Python call.",
)
