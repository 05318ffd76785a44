"""A rule about FSDP: all-gathers that are issued too late, or behind what is needed later, unit by unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.critical import on_critical_path, severity_on_path
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.waiting import exposed_runs
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.strategy.fsdp_passes import BACKWARD, FULLY_SHARD
from hta_widgets.analysis.strategy.fsdp_units import GATHER, fsdp_units
from hta_widgets.formatting import brief
from hta_widgets.trace.rank_trace import RankTrace

_LIMITER: Final = "FullyShardedDataParallel.rate_limiter"
_ORDER: Final = "out of order"
_FAULTS: Final = ("issued late", _ORDER)
_NAMED = 3
# By (phase, whether `fully_shard`).
_SETTINGS: Final = {
    ("forward", True): "module.set_modules_to_forward_prefetch([next])",
    ("forward", False): "FullyShardedDataParallel(forward_prefetch=True)",
    ("backward", True): "module.set_modules_to_backward_prefetch([next])",
    ("backward", False): "FullyShardedDataParallel(backward_prefetch=BackwardPrefetch.BACKWARD_PRE)",
}


def fsdp_prefetch(inputs: Inputs) -> Finding | None:
    """All-gathers of FSDP units that nothing hides since they are issued late or in another order than used.

    What they cost is not what an earlier issue saves: the time of the device may then go elsewhere.
    """
    if not inputs.has_fsdp or inputs.temporal.empty:
        return None
    frame = fsdp_units(inputs.trace, inputs.scope)
    late = frame[(frame["part"] == GATHER) & frame["cause"].isin(_FAULTS) & (frame["exposed_ns"] > 0)]
    if late.empty:
        return None
    fault = late["cause"] + np.where(late["prefetched"], "!", "")
    late = late[fault == str(late.groupby(fault)["exposed_ns"].sum().idxmax())]
    cause, prefetched = str(late["cause"].iloc[0]), bool(late["prefetched"].iloc[0])
    window = inputs.temporal.set_index("rank")["window_ns"]
    window = window[window.index.isin(frame["rank"])]
    lost = int(late["exposed_ns"].sum())
    cost, share = lost // len(window), 100.0 * lost / int(window.sum())
    exposed = exposed_runs(inputs, late)
    off_path = _off_path(inputs, exposed)
    phases = sorted(late["phase"].unique(), reverse=True)  # forward comes first
    worst = late.iloc[int(late["exposed_ns"].to_numpy(np.int64).argmax())]
    number, several = int(worst["rank"]), len(window) > 1
    about = {"phases": phases, "units": sorted(late["name"].unique().tolist())}
    ranks = tuple(window.index.tolist())
    return Finding(
        cost,
        share,
        say(
            "FSDP's all-gathers of {units} for {phases} {fault}. Nothing hides {lost} of them, {each} "
            "each.{on_path}",
            units=_listed(late),
            phases=Claim("late_gathers_in", tuple(phases), "name"),
            fault=_fault(cause, prefetched),
            lost=inputs.time_lost("exposed_gathers", share, cost, ranks, **about),
            each=Claim("exposed_of_each_gather", lost / len(late), "ns", ranks=ranks, about=about),
            on_path=on_critical_path(off_path, "exposed_gathers", list(ranks)),
        ),
        _advice(inputs, late, phases, cause, prefetched),
        "fsdp_units",
        Evidence(
            rank=number if several and set(late["rank"]) == {number} else None,
            name=str(worst["kernel"]),
            event_rank=number,
            event_id=int(worst["event_id"]),
            span=(int(worst["start_ns"]), int(worst["end_ns"])),
        ),
        change=_change(phases, cause, prefetched) if not _waits_for_limiter(inputs, late) else None,
        lost=exposed,
        severity=severity_on_path(share, off_path),
    )


def _change(phases: list[str], cause: str, prefetched: bool) -> Change | None:
    """The edit that issues these one unit earlier; None where it is their order that is wrong."""
    if cause == _ORDER and prefetched:
        return None
    units, phase = 1 + prefetched, phases[0] if len(phases) == 1 else None
    ahead = "two units" if prefetched else "one unit"
    words = f"with all-gathers{f' of {phase}' if phase else ''} issued {ahead} ahead"
    return Change(words, lambda _: [edits.prefetch(units, phase)])


def _listed(late: pd.DataFrame) -> Text:
    """The units that lose most, by name, and how many more there are."""
    lost = late.groupby("name", sort=True)["exposed_ns"].sum().sort_values(ascending=False, kind="stable")
    names = tuple(str(name) for name in lost.index[:_NAMED])
    more = len(lost) - len(names)
    units = Claim("units_gathered_late", names, "name")
    if not more:
        return say("{units}", units=units)
    others = say("{more} more unit{s}", more=Claim("more_units", more, "count"), s="s" * (more > 1))
    return say(
        "{units} and {others}", units=replace(units, shown=", ".join(map(brief, names))), others=others
    )


def _fault(cause: str, prefetched: bool) -> str:
    if cause == _ORDER:
        return "are issued behind what is needed later, in a stream that runs in order"
    if prefetched:
        return "are issued late, though in the turn of another unit"
    return "are issued only in the unit's own turn, when nothing is left to hide them"


def _advice(inputs: Inputs, late: pd.DataFrame, phases: list[str], cause: str, prefetched: bool) -> str:
    fully_shard = _is_fully_shard(inputs, late)
    if cause == _ORDER and prefetched:
        listed = " and ".join(_SETTINGS[phase, True].partition("(")[0].rpartition(".")[2] for phase in phases)
        return f"Pass the modules to {listed} in the order in which they run."
    if _waits_for_limiter(inputs, late):
        return (
            "FullyShardedDataParallel(limit_all_gathers=False), if the memory of further units is there: the "
            "host waits in the rate limiter before it issues them."
        )
    if prefetched:
        return "Send for units earlier: two of them ahead, if their memory is there."
    settings = " and ".join(_SETTINGS[phase, fully_shard] for phase in phases)
    more = (
        ""
        if BACKWARD in phases and len(phases) == 1
        else ", or let the host wait for the device in fewer places"
    )
    return (
        f"{settings}: the next unit's all-gather is then issued earlier, and takes its memory earlier{more}."
    )


def _is_fully_shard(inputs: Inputs, late: pd.DataFrame) -> bool:
    ranks = [inputs.trace.rank(int(rank)) for rank in late["rank"].unique()]
    return any(name.startswith(FULLY_SHARD) for rank in ranks for name in rank.names)


def _waits_for_limiter(inputs: Inputs, late: pd.DataFrame) -> bool:
    """Whether the host waits in the wrapper's rate limiter for more than half of what they lose."""
    ranks = [inputs.trace.rank(int(rank)) for rank in late["rank"].unique()]
    limited = sum(_limited(rank, late) for rank in ranks)
    return not _is_fully_shard(inputs, late) and 2 * limited > int(late["exposed_ns"].sum())


def _limited(rank_trace: RankTrace, late: pd.DataFrame) -> int:
    """How long the host waited in FSDP's rate limiter before these, at most what each lost, ns."""
    limits = named(rank_trace, _LIMITER.__eq__) & rank_trace.on_host
    waiting = open_time(rank_trace, limits)
    mine = late[late["rank"] == rank_trace.rank]
    issued = mine["issued_ns"].to_numpy(np.int64)
    before = np.stack([issued - mine["exposed_ns"].to_numpy(np.int64), issued], axis=1)
    return int(waiting.within_each(before).sum())


def _off_path(inputs: Inputs, exposed: dict[int, Intervals]) -> float:
    """The share (0 to 1) of what is exposed that the host hides: the device waits for it anyway."""
    hidden = sum((time & inputs.hidden(rank)).length for rank, time in exposed.items())
    return hidden / max(sum(time.length for time in exposed.values()), 1)


RULE = Rule(
    topic="fsdp_prefetch",
    question="when FSDP gathers parameters",
    title="Gathering FSDP's parameters too late",
    label="Late all-gathers",
    cause="FSDP's late all-gathers",
    lost_as="communication",
    judge=fsdp_prefetch,
    applies=lambda inputs: inputs.has_fsdp,
    no_change="no edit changes the order of all-gathers, or takes their limit away",
    risk="Parameters of one more unit are whole at a time.",
    needs="Free device memory, and units in a fixed order.",
    wrong_if="the parameters are not ready any earlier.",
)
