"""Steps of two lengths, of which most are long: none of them is unusual, and still they could be short."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule, never
from hta_widgets.analysis.findings.unusual_steps import beyond_usual, comes_every, longer_in, without_waits
from hta_widgets.arrays import Int64

_LEAST: Final = 3
"""So many steps of each length; one short step may be one that does less."""
_FEW: Final = 0.2
"""Of the steps are short at least."""
_LONGER, _APART = 1.1, 3
"""So many times as long are long ones, and so many times as far from the short ones as those differ."""


class _Kinds(NamedTuple):
    """The steps of a rank: from which time on they are long, and what is usual of either kind, ns."""

    limit_ns: int
    short_ns: int
    long_ns: int


class _Long(NamedTuple):
    """The long steps of a rank, with what waiting does not explain, and by how much they are longer, ns."""

    lost_ns: int
    kinds: _Kinds
    steps: pd.DataFrame
    late: pd.DataFrame


def bimodal_steps(inputs: Inputs) -> Finding | None:
    """Most steps take long, others far less; where few do, `slow_steps` tells them."""
    frame = inputs.steps
    if not len(frame) or frame["confidence"].eq("low").any():
        return None
    steps = frame[~frame["partial"] & ~frame["start_up"] & ~frame["open"]]
    by_rank: dict[int, _Long] = {}
    rank_of, kind, dur = (steps[name].to_numpy(np.int64) for name in ("rank", "kind", "dur_ns"))
    ranks, first = np.unique(rank_of, return_index=True)  # steps are in order of rank
    for rank, own in zip(ranks.tolist(), np.split(np.arange(len(steps)), first[1:]), strict=False):
        kinds = _kinds(dur[own])
        if kinds is None or len(set(kind[own].tolist())) > 1:  # a server: steps are long for what they do
            continue
        of_rank = steps.iloc[own]
        late = of_rank[of_rank["dur_ns"] >= kinds.limit_ns]
        late = without_waits(inputs, late.assign(excess_ns=late["dur_ns"] - kinds.short_ns))
        if len(late):
            lost = int(late["excess_ns"].clip(lower=0).sum())
            by_rank[rank] = _Long(lost, kinds, of_rank, late)
    if not by_rank:
        return None
    rank = max(by_rank, key=lambda each: by_rank[each].lost_ns)
    lost, kinds, of_rank, late = by_rank[rank]
    numbers = late["iteration"].tolist()
    alike = [each for each, other in by_rank.items() if other.late["iteration"].tolist() == numbers]
    one, about = (rank,), {"limit_ns": kinds.limit_ns}
    share = 100.0 * lost / int(of_rank["dur_ns"].sum())
    worst = late.iloc[int(late["dur_ns"].to_numpy(np.int64).argmax())]
    short = set(of_rank.loc[of_rank["dur_ns"] < kinds.limit_ns, "iteration"])
    beyond = beyond_usual(inputs, rank, int(worst["iteration"]), short)
    every = comes_every(sorted(of_rank["iteration"].tolist()), sorted(short))
    first_long = int(of_rank.loc[of_rank["dur_ns"] >= kinds.limit_ns, "iteration"].min())
    at_once = max(short) < first_long
    since = Claim("long_since", (first_long,), "steps", ranks=one, about=about)
    who = Claim("steps_of_two_lengths", tuple(alike), "ranks", ranks=one, about=about)
    text = say(
        "Steps take two lengths{who}: {count} of {all}{since} take some {long}, the others {short}. Beyond "
        "those, that costs {lost}. Iteration {step} is the longest.{beyond}",
        since=say(" (each from iteration {step} on)", step=since) if at_once else "",
        who=say(" on {ranks}", ranks=who) if len(inputs.trace.ranks) > 1 else "",
        count=Claim("long_steps", len(of_rank) - len(short), "count", ranks=one, about=about),
        all=Claim("complete_steps", len(of_rank), "count", ranks=one),
        long=Claim("long_step_time", kinds.long_ns, "ns", ranks=one, about=about),
        short=Claim("short_step_time", kinds.short_ns, "ns", ranks=one, about=about),
        lost=inputs.share_of_time("beyond_short_steps", share, one, **about),
        step=Claim("longest_step", (int(worst["iteration"]),), "steps", ranks=one),
        beyond=beyond.text,
    )  # fmt: skip
    alone = rank if len(alike) == 1 < len(inputs.trace.ranks) else None
    regular = f"A short one comes every {every} steps: they may be meant to do less. " * bool(every)
    return Finding(
        lost,
        share,
        text,
        _slower_clocks(inputs) if at_once and beyond.same_kernels else f"{regular}{beyond.advice}",
        "step_times",
        Evidence(
            alone,
            int(worst["iteration"]),
            event_rank=rank,
            span=(int(worst["start_ns"]), int(worst["end_ns"])),
        ),
        lost_as=beyond.lost_as,
        lost=inputs.when(alike, lambda each: longer_in(inputs, each, numbers, short)),
        explains=alone,
    )


def _slower_clocks(inputs: Inputs) -> str:
    """What to look at where the same kernels take longer from one step on."""
    watch = f" ({inputs.accelerator.monitor})" if inputs.accelerator.monitor else ""
    return f"Watch clocks, power, temperature and other work on the device{watch} as steps get longer."


def _kinds(times: Int64) -> _Kinds | None:
    """The two lengths of steps, split where they are farthest apart, if half of them and more are long."""
    times = np.sort(times)
    if len(times) < 2 * _LEAST:
        return None
    at = int(np.diff(times).argmax()) + 1
    short, long = times[:at], times[at:]
    enough = len(short) >= max(_LEAST, _FEW * len(times)) and len(short) <= len(long)
    if not enough or np.median(long) < _LONGER * np.median(short):
        return None
    spread = max(int(part[-1] - part[0]) if len(part) < 5 else _middle(part) for part in (short, long))
    if int(long[0] - short[-1]) < _APART * spread:
        return None
    return _Kinds(int(long[0]), int(np.median(short)), int(np.median(long)))


def _middle(part: Int64) -> int:
    """How far the middle half of sorted times lies apart."""
    return int(part[(3 * len(part)) // 4] - part[len(part) // 4])


RULE = Rule(
    topic="bimodal_steps",
    question="which steps are unusual",
    title="Time in steps that could be short",
    label="Uneven steps",
    cause="steps that take longer than others",
    lost_as="idle",
    judge=bimodal_steps,
    applies=never,
    no_change="whether the long steps must do more than the others is not known",
    wrong_if="The short steps are meant to do less, as between two updates of accumulated gradients.",
)
