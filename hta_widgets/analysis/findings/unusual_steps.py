"""What unusually long steps do beyond the others of their rank, and whether they come regularly."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.finding import LostAs
from hta_widgets.analysis.findings.host_loss import lost_in_part
from hta_widgets.analysis.findings.host_time import HostTime, host_time, hosts_of, marks_steps
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.operators.recorded import recorded_inputs
from hta_widgets.arrays import Bool, Float64, Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised, counted, significant
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

_VERBS: Final = {
    "compute": "it computes",
    "exposed_communication": "it communicates without computing",
    "exposed_memory": "it copies memory",
    "idle": "the device is idle",
    "loading": "it is in the data loader",
    "compiling": "it compiles",
    "operators": "it is in operators",
    "collectives": "it communicates",
    "elsewhere": "it waits for operators of other threads",
    "outside": "it is in no operator",
}
_ONLY_THEN: Final = "Look at what only happens in these steps: "
_ADVICE: Final = {
    "exposed_communication": f"{_ONLY_THEN}what is sent, between whom, and which rank is late.",
    "exposed_memory": f"{_ONLY_THEN}checkpoints, offloading, what is read back.",
    "idle": f"{_ONLY_THEN}logging, checkpoints, evaluation, garbage collection, compiling, new shapes.",
    "loading": f"{_ONLY_THEN}evaluation with a data loader of its own, batches that are slow to make.",
}
_ADVICE["compiling"] = (
    "Code is compiled in these steps, for the first time or anew: TORCH_LOGS=recompiles says for what."
)
_ADVICE["collectives"] = _ADVICE["exposed_communication"]
_MORE_WORK: Final = f"{_ONLY_THEN}evaluation, the optimizer of several passes, a larger batch."
_SAME_WORK: Final = {
    "compute": "Compare the kernels of these steps: new shapes, autotuning, other work on the device.",
    "operators": "Compare the operators of these steps: new shapes, first uses, other work on these cores.",
}
_LARGER_INPUTS: Final = (
    "These steps get larger batches or longer sequences: if they vary, batches of equal size, bucketed by "
    "length, make steps equally long and leave no memory unused."
)
_LARGER: Final = 1.2
_PRODUCTS: Final = re.compile(r"^aten::(?:addmm|mm|bmm|baddbmm|convolution|_?scaled_dot_product)")
_TOLD: Final = ("loading", "outside")
"""Of a host that does all the work: what a finding of its own tells of all steps."""
WORK: Final = {"compute": "kernel", "operators": "operator"}
"""What is work, and what it is made of."""
_FEW: Final = 0.01
_MOST: Final = 0.5


_CLASS: Final[dict[str, LostAs]] = {
    "compute": "compute",
    "exposed_communication": "communication",
    "exposed_memory": "memory",
}


class Beyond(NamedTuple):
    """What a step does longer than the usual ones, in a sentence, what to look at, and its class."""

    text: Text
    advice: str
    lost_as: LostAs = "idle"

    @property
    def same_kernels(self) -> bool:
        """Whether its kernels take longer, and are no more."""
        return self.advice == _SAME_WORK["compute"]


def without_waits(inputs: Inputs, late: pd.DataFrame) -> pd.DataFrame:
    """Unusual steps without those of which waiting for other ranks is most of the excess: these are victims.

    Usual is the wait of steps of their kind on their rank. Of the others it is no part of the excess. All
    stay where it is not known who waits for whom.
    """
    if late.empty or not inputs.communicates:
        return late
    try:
        waits = inputs.waits
    except MissingDataError:
        return late
    if waits.empty:
        return late
    steps = inputs.steps.set_index(["rank", "iteration"])
    waited = waits.groupby(["rank", "iteration"])["wait_ns"].sum().reindex(steps.index, fill_value=0)
    usual = waited.groupby([steps.index.get_level_values("rank"), steps["kind"]]).transform("median")
    longer = (waited - usual).clip(lower=0)
    beyond = longer[pd.MultiIndex.from_frame(late[["rank", "iteration"]])].to_numpy(np.int64)
    excess = late["excess_ns"].to_numpy(np.int64)
    own = excess - np.minimum(beyond, excess)
    victims = own <= _MOST * excess
    return late.assign(excess_ns=own)[~victims]


def without_told(inputs: Inputs, late: pd.DataFrame) -> pd.DataFrame:
    """Unusual steps without those of which most of the excess is what is told of all steps.

    Of the others it is no part of the excess: one loss is one finding.
    """
    if late.empty or len(hosts_of(inputs)) != 1:
        return late
    steps, windows, spent = spent_in_steps(inputs, int(late["rank"].iloc[0]))
    here = steps["iteration"].isin(late["iteration"]).to_numpy()
    usual = _usual(steps, here)
    if not usual.any():  # of a server: those that do the same may not be asked about
        return late
    time = _told(inputs, spent, windows, here).within_each(windows)
    told = (time[here] - round(float(np.median(time[usual])))).clip(0)
    excess = late["excess_ns"].to_numpy(np.int64)
    return late.assign(excess_ns=excess - told)[told < _MOST * excess]


def _told(inputs: Inputs, spent: dict[str, Intervals], windows: Int64, here: Bool) -> Intervals:
    """When the host of the only rank loses what is told of all steps: most of it lies in others than these.

    Of what lies mostly in these steps, `slow_steps` tells.
    """
    hosts, found = hosts_of(inputs), Intervals.union([], [])
    for part in _TOLD if len(hosts) == 1 else ():
        time = spent[part].within_each(windows)
        if time[here].sum() < (1 - _MOST) * time.sum() and lost_in_part(hosts, part):
            found |= spent[part]
    return found


def beyond_usual(inputs: Inputs, rank: int, iteration: int, others: Collection[int] = ()) -> Beyond:
    """What a step of a rank does longer than `others` do, or its steps that are not unusual.

    Its text is "" where that is not known: no device works, and the host does not do all the work.
    """
    steps, windows, spent = spent_in_steps(inputs, rank)
    parts = {name: part.within_each(windows) for name, part in spent.items()}
    here = steps["iteration"].eq(iteration).to_numpy()
    usual = _usual(steps, here, others)
    if not parts or not usual.any():  # every step of a rank may be unusual among those of others
        return Beyond(NOTHING_SAID, _ADVICE["idle"])
    longer = {name: int(part[here].sum() - np.median(part[usual])) for name, part in parts.items()}
    most = max(longer, key=lambda name: longer[name])
    compared = {"others": sorted(steps.loc[usual, "iteration"])}
    about = {"part": most, "iteration": iteration, **compared}
    text = say(
        f" {capitalised(_VERBS[most])} {{time}} longer",
        time=Claim("longer_than_usual", longer[most], "ns", ranks=(rank,), about=about),
    )
    if most not in WORK:
        return Beyond(text + ".", _ADVICE.get(most, _ADVICE["idle"]), _CLASS.get(most, "idle"))
    begins = begin_of_work(inputs, rank)
    counts = begins.searchsorted(windows[:, 1]) - begins.searchsorted(windows[:, 0])
    common = float(np.median(counts[usual]))
    more = round(int(counts[here].sum()) - common)
    many = more > _FEW * common
    number = Claim(
        f"more_{WORK[most]}s_than_usual",
        more,
        "count",
        ranks=(rank,),
        about={"iteration": iteration, **compared},
        shown=counted(more, WORK[most]) if many else "no",
    )
    sizes = _inputs_of(inputs.trace.rank(rank), steps["iteration"].to_numpy(np.int64))
    times = float(sizes[here].sum() / (np.median(sizes[usual]) or math.nan))
    larger = not many and times >= _LARGER
    about = {"iteration": iteration, **compared}
    on_larger = say(
        ", on inputs {times} times as large",
        times=Claim("inputs_beyond_usual", times, "x", ranks=(rank,), about=about, shown=significant(times)),
    )
    what = "" if many else f" {WORK[most]}s"
    text += say(f", with {{number}} more{what}{{larger}}.", number=number, larger=on_larger if larger else "")
    same = _LARGER_INPUTS if larger else _SAME_WORK[most]
    return Beyond(text, _MORE_WORK if many else same, "compute")


@memoize_per_rank(last=2)
def _inputs_of_rows(rank_trace: RankTrace) -> tuple[Int64, Float64]:
    """The products of a rank whose inputs are recorded, and how many numbers each takes."""
    recorded = recorded_inputs(rank_trace)
    rows = np.flatnonzero(named(rank_trace, _PRODUCTS.search) & (recorded.of_row >= 0))
    _, first, of = np.unique(recorded.of_row[rows], return_index=True, return_inverse=True)
    size = [
        sum(math.prod(shape) for shape in recorded.of(row).shapes if isinstance(shape, tuple))
        for row in rows[first].tolist()
    ]
    return rows, np.array(size, np.float64)[of]


def _inputs_of(rank_trace: RankTrace, iterations: Int64) -> Float64:
    """How many numbers matrix products take in each of these steps; 0 where that is not recorded."""
    rows, size = _inputs_of_rows(rank_trace)
    places = np.searchsorted(iterations, rank_trace.iteration[rows])
    inside = np.append(iterations, -1)[places] == rank_trace.iteration[rows]
    return np.bincount(places[inside], size[inside], len(iterations)).astype(np.float64)


def region_beyond(inputs: Inputs, rank: int, iteration: int) -> str:
    """The annotation that is open for most of what a step takes longer than usual ones; "" if none is.

    One that is open in most of the usual ones, too, is the loop itself.
    """
    steps, windows, _ = spent_in_steps(inputs, rank)
    here = steps["iteration"].eq(iteration).to_numpy()
    usual = _usual(steps, here)
    if not usual.any():
        return ""
    times = windows[:, 1] - windows[:, 0]
    excess = float(times[here].sum() - np.median(times[usual]))
    rank_trace = inputs.trace.rank(rank)
    begin, end = windows[here][0].tolist()
    inside = (rank_trace.start < end) & (rank_trace.end > begin)
    regions = (rank_trace.event_class == EventClass.ANNOTATION) & ~rank_trace.is_device
    regions &= (rank_trace.stream == NULL) & ~marks_steps(rank_trace)
    found: dict[str, int] = {}
    for code in np.unique(rank_trace.name[regions & inside]).tolist():
        open_ = open_time(rank_trace, regions & (rank_trace.name == code)).within_each(windows)
        longer = int(open_[here].sum() - np.median(open_[usual]))
        always = np.median(open_[usual]) > _MOST * np.median(times[usual])
        if longer > _MOST * excess and not always:
            found[rank_trace.names[code]] = longer
    return max(sorted(found), key=lambda name: found[name], default="")


def begin_of_work(inputs: Inputs, rank: int) -> Int64:
    """When the kernels of a rank begin, whichever step launches them, or its host's operators; sorted."""
    rank_trace = inputs.trace.rank(rank)
    chosen = rank_trace.event_class == EventClass.COMPUTE
    if (host := _host(inputs, rank)) is not None:
        chosen = (rank_trace.event_class == EventClass.HOST_OP) & (rank_trace.thread == host.thread)
    return np.sort(rank_trace.start[chosen])


def _host(inputs: Inputs, rank: int) -> HostTime | None:
    """What the host does, where it does all the work."""
    return None if inputs.trace.rank(rank).device_span else inputs.of(rank, host_time)


def longer_in(
    inputs: Inputs, rank: int, iterations: Collection[int], others: Collection[int] = ()
) -> Intervals:
    """When a rank does, in these steps, what it does there for more than twice as long as is usual.

    That is as in `others`, or in its steps that are not unusual. Of a host that does all the work, all the
    time of these steps but what is told of all steps.
    """
    steps, windows, spent = spent_in_steps(inputs, rank)
    here = steps["iteration"].isin(iterations).to_numpy()
    usual = _usual(steps, here, others)
    found = Intervals.union([], [])
    if not usual.any():
        return found
    if "outside" in spent:
        return Intervals.union(windows[here, 0], windows[here, 1]) - _told(inputs, spent, windows, here)
    for part in spent.values():
        time = part.within_each(windows)
        if time[here].sum() * (1 - _MOST) > here.sum() * np.median(time[usual]):
            found |= part
    return found & Intervals.union(windows[here, 0], windows[here, 1])


def _usual(steps: pd.DataFrame, here: Bool, others: Collection[int] = ()) -> Bool:
    """Which of these steps some are compared with: others of their kinds."""
    if others:
        return steps["iteration"].isin(others).to_numpy(np.bool_)
    alike = steps["kind"].isin(steps.loc[here, "kind"])
    return (alike & ~steps["outlier"]).to_numpy(np.bool_)


def spent_in_steps(inputs: Inputs, rank: int) -> tuple[pd.DataFrame, Int64, dict[str, Intervals]]:
    """The complete steps of a rank, start-up aside; their windows; and when it does what, by `_VERBS`.

    The last is empty where that is not known.
    """
    steps = inputs.judged_rows
    steps = steps[steps["rank"] == rank]
    steps = steps[~steps["partial"] & ~steps["start_up"]].reset_index(drop=True)
    windows = steps[["start_ns", "end_ns"]].to_numpy(np.int64)
    if not inputs.trace.rank(rank).device_span:
        host = _host(inputs, rank)
        return steps, windows, host.spent if host else {}
    work = busy(inputs.trace.rank(rank), inputs.asked)
    spent = {name: getattr(work, name) for name in ("compute", "exposed_communication", "exposed_memory")}
    spent["idle"] = Intervals.union(windows[:, 0], windows[:, 1]) - work.any
    return steps, windows, spent


def comes_every(iterations: list[int], late: list[int]) -> int:
    """How many steps lie between unusual ones, if they come regularly among all these; else 0.

    Any two are some steps apart, which is no rhythm yet.
    """
    gaps = np.diff(sorted(late))
    if len(gaps) < 2 or (gaps != gaps[0]).any() or gaps[0] < 2:
        return 0
    every = int(gaps[0])
    expected = [number for number in iterations if (number - late[0]) % every == 0]
    return every if expected == sorted(late) else 0
