"""The sliders and switches of `WhatIf`: each is one edit, by how much of the time it leaves.

What a slider means to the browser (which groups of edges it scales or removes, which edges it cuts) is read
off the edit itself: Python's edits are the only place that says what they do.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.graph import Graph
from hta_widgets.analysis.replay.passes import PINNED
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.arrays import Int64
from hta_widgets.formatting import byte_size, decapitalised
from hta_widgets.trace.rank_trace import RankTrace

_CLASSES = {
    **dict.fromkeys(("host", "launches", "allocator", "without", "pauses", "graphs", "unprofiled"), "host"),
    "syncs": "sync",
    **dict.fromkeys(
        (
            "kernels",
            "at_roof",
            "kernel_time",
            "batched_products",
            "filled_device",
            "full_waves",
            "fused_attention",
            "fused_pointwise",
            "fused_optimizer",
            "no_recomputation",
            "own_stream",
            "padded_products",
        ),
        "compute",
    ),
    **dict.fromkeys(("copies", "copy_bandwidth"), "memory"),
    **dict.fromkeys(
        ("communication", "bus_bandwidth", "overlap", "prefetch", "prompt_communication"), "communication"
    ),
    **dict.fromkeys(
        ("faster_links", "larger_buckets", "no_stragglers", "median_rank", "even_operations", "microbatches"),
        "communication",
    ),
}
"""By the function that makes an edit: the class of time (`palette`) that it is about."""
_DIGITS = 12
"""Of a speed, whose reciprocal is a time: enough to give back what was typed."""


@dataclass(frozen=True)
class Control:
    """A slider, or a switch."""

    # for programs, and for readers
    name: str
    label: str
    hint: str  # what it changes, in words
    edit: Callable[[float], Edit]  # the edit that leaves this share of the time, 1 being as recorded
    off: str = ""  # what a switch does when it is on; empty for a slider
    speed: bool = False  # its edit takes how many times as fast it gets, not the time that is left


def time_class(edit: Edit) -> str:
    """The class of the time that an edit is about, for its colour."""
    function = edit.expression.removeprefix("edits.").partition("(")[0]
    return _CLASSES.get(function, "idle")


def _faster(time: float) -> float:
    return math.inf if time == 0 else float(f"{1 / time:.{_DIGITS}g}")


CONTROLS = (
    Control("host", "Host", "The host's own time, in calls and between them", edits.host),
    Control("launches", "Launches", "The calls that launch device work and do not wait", edits.launches),
    Control(
        "kernels",
        "Compute kernels",
        "How long compute kernels run",
        lambda time: edits.kernels(_faster(time)),
        speed=True,
    ),
    Control(
        "copies",
        "Copies and fills",
        "How long copies and fills run",
        lambda time: edits.copies(_faster(time)),
        speed=True,
    ),
    Control(
        "communication",
        "Communication",
        "How long collectives, sends and receives run, including their waiting for other ranks",
        edits.communication,
    ),
    Control(
        "syncs",
        "Synchronisation",
        "Synchronising calls and blocking copies no longer wait for the device",
        lambda _time: edits.syncs(),
        "does not wait",
    ),
    Control(
        "loader",
        "Data loader",
        "What the host spends in *DataLoader*",
        lambda _time: edits.without("*DataLoader*"),
        "takes no time",
    ),
)


@dataclass(frozen=True)
class Effect:
    """What a control does to a graph."""

    # groups of edges
    scaled: list[int]
    removed: list[int]
    cut: tuple[Int64, Int64]  # the edges that it shortens, and their weights then, ns

    @property
    def nothing(self) -> bool:
        return not (self.scaled or self.removed or len(self.cut[0]))


def effect_of(control: Control, graph: Graph, rank_trace: RankTrace) -> Effect:
    """What a control does to the graph of a rank."""
    plan = Plan(graph, rank_trace)
    control.edit(0.0 if control.off else 0.5).apply(plan)
    assert len(plan.factor) == len(graph.groups)  # the edits of controls are of whole groups
    by_group = (plan.factor != 1) | plan.removed
    weight = plan.weights(PINNED) - graph.residual
    cut = np.flatnonzero((weight != graph.weight) & ~by_group[graph.group])
    return Effect(
        np.flatnonzero(plan.factor != 1).tolist(), np.flatnonzero(plan.removed).tolist(), (cut, weight[cut])
    )


def edits_of(settings: Mapping[str, float]) -> list[Edit]:
    """The edits that controls stand for, in the order of the controls.

    Args:
        settings: the share of the time that is left, by name of the control.
    """
    return [control.edit(settings[control.name]) for control in CONTROLS if control.name in settings]


def settings_of(given: Iterable[Edit]) -> tuple[dict[str, float], list[Edit]]:
    """The settings of the controls that make these edits, and the edits that no control makes."""
    settings: dict[str, float] = {}
    further = []
    for edit in given:
        found = next(((c.name, time) for c in CONTROLS if (time := _time(c, edit)) is not None), None)
        if found is None or found[0] in settings:
            further.append(edit)
        else:
            settings[found[0]] = found[1]
    return settings, further


def words_of(settings: Mapping[str, float]) -> list[str]:
    """The changes of the controls in words, as js/src/what_if/story.tsx has them: `host 2× as fast`."""
    said = []
    for control in CONTROLS:
        time, noun = settings.get(control.name), decapitalised(control.label)
        if time is None:
            continue
        if control.off:
            said.append(f"no {noun}")
        elif time == 0:
            said.append(f"{noun} taking no time")
        else:
            said.append(f"{noun} {math.floor(100 / time + 0.5) / 100:,.12g}× as fast")
    return said


def change_in_words(expression: str) -> str:
    """A change of several ranks in words: `rank 2 as fast as the median`; others as Python has them."""
    call = ast.parse(expression, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return expression
    given = [each.value for each in call.args if isinstance(each, ast.Constant)]
    first: Any = given[0] if given else math.inf  # the only value that is no constant
    of = "".join(f" of {ast.literal_eval(each.value)}" for each in call.keywords if each.arg == "name")
    match call.func.attr:
        case "no_stragglers":
            return "no stragglers"
        case "median_rank":
            return f"rank {first} as fast as the median"
        case "even_operations":
            return f"{first} as long on all ranks"
        case "faster_links":
            return f"transfers{of} {'taking no time' if first == math.inf else f'{first:g}× as fast'}"
        case "microbatches":
            return f"{first} microbatches{' of the same size' if call.keywords else ''}"
        case "larger_buckets":
            return f"buckets{of} of {byte_size(first)}"
    return expression


def _time(control: Control, edit: Edit) -> float | None:
    """The share of the time that is left where `edit` is one of the control's."""
    if control.off:
        return 0.0 if edit == control.edit(0.0) else None
    found = re.fullmatch(rf"edits\.{control.name}\(([\d.e+-]+|math\.inf)\)", edit.expression)
    if found is None:
        return None
    value = math.inf if found[1] == "math.inf" else float(found[1])
    return 1 / value if control.speed else value


def described(control: Control, effect: Effect) -> dict[str, Any]:
    """A control as its view reads it."""
    return {
        "name": control.name,
        "label": control.label,
        "hint": control.hint,
        "off": control.off,
        "speed": control.speed,
        "bound": control.edit(0.0).bound,
        "scaled": effect.scaled,
        "removed": effect.removed,
        "nothing": effect.nothing,
        "time_class": time_class(control.edit(0.0)),
    }
