"""The step as one bar: what each change saves on top of those before, and where the time goes that is left.

All parts have one denominator, the mean of the judged steps of the judged ranks, and add up to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

import numpy as np
import pandas as pd

from hta_widgets.analysis.findings.finding import LostAs
from hta_widgets.analysis.findings.host_time import hosts_of
from hta_widgets.analysis.findings.in_turn import AMONG_RANKS, in_turn
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.lost_device_rules import host_windows
from hta_widgets.analysis.findings.rules import BY_TOPIC
from hta_widgets.analysis.findings.sections import LATER, SAVES, UNKNOWN
from hta_widgets.analysis.replay.what_if import LEAST_PCT
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

Form = Literal["simulated", "bound", "unknown", "hidden", "rest"]
SAVINGS: Final[tuple[Form, ...]] = ("simulated", "bound")
"""The forms of parts that can be saved."""
_COSTS: Final[tuple[tuple[Form, str], ...]] = (("unknown", UNKNOWN), ("hidden", LATER))

CLASSES: Final[tuple[LostAs, ...]] = get_args(LostAs)
_EXPOSED: Final = ", exposed=True"
_OF_DEVICES: Final = CLASSES[:4]
_COLUMNS: Final = ("compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns")


@dataclass(frozen=True)
class Part:
    """A part of the bar."""

    ns: int  # how much of the step it is; of a cost, what the parts before it leave of that
    # a saving that was "simulated", or of which that is the "bound"; time that a finding costs whose saving
    # is "unknown", or that is "hidden": taking it away saves nothing yet; or the "rest"
    form: Form
    lost_as: LostAs  # the class of that time
    finding: int = -1  # the number of its finding, from 0; -1 for the rest


@dataclass(frozen=True)
class Whole:
    """What the bar stands for."""

    ns: int  # the mean step of the judged ranks; without marked steps, their judged time
    per_step: bool  # steps are marked
    split: Mapping[LostAs, int]  # class -> its part, ns; adds up
    device: str  # what to call the device: "GPU", "NPU"
    # class -> what of its part ranks spend beyond the median one, ns: what late ones do longer
    uneven: Mapping[LostAs, int] = field(default_factory=dict)


def whole_of_step(inputs: Inputs) -> Whole | None:
    """The time that is judged and where it goes; None where nothing is in it.

    Where no device work is recorded, it is that of the threads of the steps.
    """
    try:
        frame = inputs.temporal
    except MissingDataError:
        return _of_hosts(inputs)
    if frame.empty:
        return None
    counts = inputs.judged_steps
    per_step = bool(counts) and not inputs.open_ended
    steps = frame["rank"].map(counts).fillna(1).to_numpy(np.int64) if per_step else np.ones(len(frame))
    columns = ("window_ns", *_COLUMNS)
    of_ranks = [frame[column].to_numpy() / np.maximum(steps, 1) for column in columns]
    ns, *parts = (float(times.mean()) for times in of_ranks)
    split = whole_parts(dict(zip(_OF_DEVICES, parts, strict=True)), round(ns))
    beyond = (times - np.minimum(times, np.quantile(times, 0.5, method="lower")) for times in of_ranks[1:])
    uneven = {name: round(float(times.mean())) for name, times in zip(_OF_DEVICES, beyond, strict=True)}
    return Whole(round(ns), per_step, split, inputs.accelerator.word, uneven)


def _of_hosts(inputs: Inputs) -> Whole | None:
    windows = {rank: host.window_ns for rank, host in hosts_of(inputs).items()} or host_windows(inputs)
    counts = inputs.judged_steps
    spent = [ns / counts.get(rank, 1) for rank, ns in windows.items()]
    ns = round(sum(spent) / len(spent)) if spent else 0
    return Whole(ns, bool(counts), {"host": ns}, inputs.accelerator.word) if ns else None


def whole_parts(parts: Mapping[LostAs, float], total: int) -> dict[LostAs, int]:
    """Parts as whole nanoseconds that add up to a total; the largest remainders are rounded up."""
    names = list(parts)
    values = np.maximum([parts[name] for name in names], 0.0)
    share = values * (total / values.sum()) if values.sum() > 0 else np.full(len(names), total / len(names))
    down = np.floor(share).astype(np.int64)
    first = np.argsort(-(share - down), kind="stable")[: total - int(down.sum())]
    down[first] += 1
    return dict(zip(names, down.tolist(), strict=True))


def bar(
    trace: Trace, scope: Scope, whole: Whole, rows: Sequence[pd.Series], inner: pd.DataFrame
) -> list[Part]:
    """The parts of a step, savings first.

    Args:
        trace: the job.
        scope: what the findings are asked about.
        whole: the step.
        rows: the findings, rows of `overview` that are no parts of others, in its order.
        inner: those that are.
    """
    ranks = len(trace.ranks_of(scope))
    saves = [at for at, row in enumerate(rows) if row["section"] == SAVES]
    together = sorted((at for at in saves if change_of(rows[at])), key=lambda at: _of_host(rows[at]))
    found = in_turn(trace, scope, _rank(rows, together), [change_of(rows[at]) for at in together])
    apart = [at for at in saves if found is None or at not in together]
    late = [at for at in apart if _waits_for_late(rows[at])]
    left = _Left(whole.split)
    # first: the replay of one rank may save what makes that rank late
    parts = [_alone(whole, left, rows[at], at, _longer(whole, rows[at], inner, ranks)) for at in late]
    if found is not None:
        until = [round(whole.ns * min(pct, 100.0) / 100) for pct in found.saved_pct]
        for at, before, after in zip(together, [0, *until], until, strict=False):
            row = rows[at]
            part = _saving(row, at, after - before)
            if late:
                part = replace(part, ns=min(part.ns, _saved_alone(whole, row), left.get(part.lost_as, 0)))
            longer = _longer(whole, row, inner, ranks) if change_of(row) == AMONG_RANKS else {}
            left.take(part.lost_as, part.ns, longer)
            parts.append(part)
        if found.left and not late:
            remain = whole.ns - (until[-1] if until else 0)
            left = _Left(whole_parts({name: found.left[name] for name in _OF_DEVICES}, remain))
            # the replay ends with the last work: in few steps, the idle time after it is a part to be seen
            more = max(left["compute"] - whole.split["compute"], 0)
            left["compute"] -= more
            left["idle"] += more
    parts += [_alone(whole, left, rows[at], at) for at in apart if at not in late]
    parts.sort(key=lambda part: part.finding)
    for form, section in _COSTS:
        for at, row in enumerate(rows):
            if row["section"] == section and row["share_pct"]:
                lost_as = class_in(whole, row)
                parts.append(Part(left.taken(lost_as, cost_in(whole, row)), form, lost_as, at))
    return [*parts, *(Part(ns, "rest", name) for name, ns in left.items() if ns)]


class _Left(dict[LostAs, int]):
    """What is left of the time, by its class."""

    def taken(self, name: LostAs, most: int) -> int:
        """How much of a class there is to take, up to some time."""
        taken = min(most, self.get(name, 0))
        if taken:
            self[name] -= taken
        return taken

    def take(self, lost_as: LostAs, ns: int, longer: Mapping[LostAs, int]) -> None:
        """Take what is saved from its class, and what that does not hold from what else there is most of.

        Of the repair of late ranks, what these do longer goes before.
        """
        ns -= self.taken(lost_as, ns)
        for name, most in longer.items():
            ns -= self.taken(name, min(ns, most))
        for name in sorted(self, key=lambda name: -self[name]):
            ns -= self.taken(name, ns)


def saved_in(parts: Sequence[Part]) -> int:
    """How much of the step can be saved, ns."""
    return sum(part.ns for part in parts if part.form in SAVINGS)


def is_large(part: Part, whole: Whole | None) -> bool:
    """Whether a part is so much of the time that it is worth a word."""
    return whole is None or 100.0 * part.ns >= LEAST_PCT * whole.ns


def change_of(row: pd.Series) -> str:
    """What is replayed for a row of `overview`; "" where nothing is, or only what it costs is known."""
    if row["method"] not in ("replay", "bound"):
        return ""
    return str(row["edits"]).replace(_EXPOSED, "") or AMONG_RANKS


def _of_host(row: pd.Series) -> bool:
    """Whether its change is of the host while it is late.

    Without that time alone less is saved than by a host that is faster throughout and gets ahead. So the
    bound is a host that takes no time at all, on top of all other changes, as many of those are its own.
    """
    return _EXPOSED in row["edits"]


def class_of(row: pd.Series) -> LostAs:
    """The class of the time that a finding costs."""
    return row["lost_as"]


def class_in(whole: Whole | None, row: pd.Series) -> LostAs:
    """The same where the whole has it; without device work all of it is time of the host."""
    return "host" if whole and "host" in whole.split else class_of(row)


def cost_in(whole: Whole, row: pd.Series) -> int:
    """What a finding costs of the whole, before any change, ns."""
    steps = int(row["steps"]) if whole.per_step and pd.notna(row["steps"]) else 1
    return round(int(row["cost_ns"]) / steps)


def _waits_for_late(row: pd.Series) -> bool:
    """Whether it is about ranks that wait for a late one, which meanwhile works, or is idle, longer."""
    rule = BY_TOPIC.get(row["topic"])
    return rule is not None and rule.waits_for_late


def _longer(whole: Whole, late: pd.Series, inner: pd.DataFrame, ranks: int) -> dict[LostAs, int]:
    """Class -> what late ranks do longer: in all, or, where they are late in turn, for the reasons found."""
    longer = dict(whole.uneven)
    for _, row in inner[inner["part_of"] == late["topic"]].iterrows():
        cost = cost_in(whole, row) // (ranks if pd.notna(row["rank"]) else 1)
        longer[class_in(whole, row)] = max(longer.get(class_in(whole, row), 0), cost)
    return longer


def _rank(rows: Sequence[pd.Series], together: Sequence[int]) -> int | None:
    """The rank that is replayed: that of the first; None where ranks are repaired, which concerns all."""
    if any(change_of(rows[at]) == AMONG_RANKS for at in together):
        return None
    return int(rows[together[0]]["saving_rank"]) if together else None


def _saving(row: pd.Series, at: int, ns: int) -> Part:
    form: Form = "simulated" if row["method"] == "replay" and not _of_host(row) else "bound"
    return Part(ns, form, class_of(row), at)


def _saved_alone(whole: Whole, row: pd.Series) -> int:
    return round(whole.ns * float(row["saving_pct"]) / 100)


def _alone(
    whole: Whole, left: _Left, row: pd.Series, at: int, longer: Mapping[LostAs, int] | None = None
) -> Part:
    """What is not replayed with the others saves no more than what is left of its class.

    Where ranks wait for a late one, what that does longer goes before.
    """
    lost_as = class_of(row)
    ns = most = _saved_alone(whole, row)
    for name, of_name in (longer or {}).items():
        ns -= left.taken(name, min(ns, of_name)) if name != lost_as else 0
    ns -= left.taken(lost_as, ns)
    return Part(most - ns, "bound", lost_as, at)
