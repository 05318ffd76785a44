"""The rule about ranks that the others wait for: who they are, through whom, and what they do longer."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.replayed_job import named_late, replayed_job
from hta_widgets.analysis.findings.rule import Rule, several_ranks
from hta_widgets.analysis.job.causes import COPIES, LATE_HOST, MORE_WORK, SLOW_LINK, SLOWER_KERNELS
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent, ranks_in_words

__all__ = ["RULE", "LateRanks", "compute_longer", "late_ranks", "recorded_of", "straggler"]

# Ranks that wait for a tenth of what another waits are not worth naming.
_FAR_LESS = 10
# What a culprit does longer than others explains a wait if it makes up a third of it.
_LITTLE = 3
# This much of the waiting in this part of the steps or fewer is no matter of all of them.
_NEARLY_ALL = 0.9
_FEW_STEPS = 0.25
# Above it, nobody is named: the unknown part may change who causes most.
_MOSTLY_UNKNOWN_PCT = 50.0
_ACTIVITIES = {
    "computing": ("computes", "compute"),
    "copying": ("copies memory", "copy memory"),
    "idle": ("is idle", "are idle"),
}
_BY_CAUSE = {
    SLOWER_KERNELS: "computing",
    MORE_WORK: "computing",
    SLOW_LINK: "transferring",
    COPIES: "copying",
    LATE_HOST: "idle",
}
_SUGGESTIONS = {
    "computing": "Compare the kernels of {ranks} with those of the others: how many, how large, how fast.",
    "transferring": "Look at what {ranks} transfer beside the others, and over which links.",
    "copying": "Look at what {ranks} copy beside the others, and whether it must be then.",
    "idle": "Look at what the host of {ranks} does then: the data loader, synchronising calls, Python.",
}


@dataclass(frozen=True)
class LateRanks:
    """The ranks that cause most of what the others wait.

    Attributes:
        ranks: they, ascending.
        parts: what is waited for them, as in `waits`.
        waits: rank -> ns that it waits for them with nothing else running, of the ranks that wait noticeably.
        share_pct: those in % of the time of these ranks.
        longer: activity -> ns that the late ranks spend on it beyond the others, the longest first; or on
            transfers while a rank waits. Empty where only the replay of the job tells why they are late, as
            where a host is late with the first work of a step, before which the step's time does not begin.
    """

    ranks: list[int]
    parts: pd.DataFrame
    waits: pd.Series[int]
    share_pct: float
    longer: pd.Series[float]

    @property
    def cost_ns(self) -> int:
        return int(self.waits.sum()) // len(self.waits)


def straggler(inputs: Inputs) -> Finding | None:
    """The ranks that cause most of what the others wait, as `late_ranks` finds them."""
    late = late_ranks(inputs)
    if late is None:
        return None
    named = ranks_in_words(late.ranks)
    others = len(inputs.temporal) - len(late.ranks)
    replayed, few = replayed_job(inputs), _few_steps(inputs, late)
    among = f" among {of}" if (of := recorded_of(inputs)) else ""
    caused = 100.0 * int(late.parts["wait_ns"].sum()) / int(inputs.late["waited_ns"].sum())
    return Finding(
        late.cost_ns,
        late.share_pct,
        f"{_waiting(late.waits.index.tolist(), others)} for {named} {inputs.share(late.share_pct)}"
        f"{inputs.per_step(late.cost_ns)}, {percent(caused)} of all waiting{among}."
        f"{_when(few)}{_through(late)}{_told(inputs, late)}{replayed.sentence(inputs) if replayed else ''}",
        inputs.is_it_always() + _suggestion(inputs, late).format(ranks=named),
        "stragglers",
        Evidence(
            rank=late.ranks[0] if len(late.ranks) == 1 else None,
            iteration=few[0] if len(few) == 1 else None,
        ),
        late=tuple(late.ranks),
        title=f"{RULE.title} in iteration {few[0]}" if len(few) == 1 else "",
    )


@memoize_per_rank()
def late_ranks(inputs: Inputs) -> LateRanks | None:
    """The ranks that `named_late` names, if they have more to do than the others; else None.

    What a rank waits counts as far as no compute hides it: at most its exposed communication. That is no
    promise: without the wait, the rank may wait for something else.

    Raises:
        MissingDataError: most of the waiting has no known cause, or nothing says that the recordings are of
            one run.
    """
    if not inputs.late["waited_ns"].any() and not inputs.unclear.any():
        return None
    _require_known(inputs)
    ranks = named_late(inputs)
    if not ranks:
        return None
    parts = inputs.waits[inputs.waits["culprit"].isin(ranks)]
    frame = inputs.temporal[~inputs.temporal["rank"].isin(ranks)].set_index("rank")
    exposed = frame["exposed_communication_ns"]
    waits = parts.groupby("rank")["wait_ns"].sum().reindex(frame.index, fill_value=0).clip(upper=exposed)
    waits = waits[waits * _FAR_LESS > waits.max()]
    if waits.empty:
        return None
    share = 100.0 * int(waits.sum()) / int(frame["window_ns"][waits.index].sum())
    longer = _longer(inputs, ranks, int(waits.mean()))
    if longer.empty:
        longer = _transferring(parts, len(waits))
    if longer.empty and not _by_replay(inputs):
        return None
    return LateRanks(ranks, parts, waits, share, longer)


def compute_longer(inputs: Inputs) -> list[int]:
    """The ranks that `straggler` names as late because they compute longer than the others."""
    try:
        late = late_ranks(inputs)
    except MissingDataError:
        return []
    if late is None or not severity_of(late.share_pct):
        return []
    return late.ranks if "computing" in late.longer.index[:1] else []


def _require_known(inputs: Inputs) -> None:
    frame, unclear = inputs.temporal, int(inputs.unclear.sum())
    waited, unfollowed = (int(inputs.late[column].sum()) for column in ("waited_ns", "unfollowed_ns"))
    if not severity_of(100.0 * frame["exposed_communication_ns"].sum() / max(frame["window_ns"].sum(), 1)):
        return
    if inputs.trace.clock.method == "start":
        raise MissingDataError(
            "common clock of the ranks",
            "Open the files of one run together, from a PyTorch that states the zero of their times "
            "(baseTimeNanoseconds).",
            "so the recordings may be of different runs",
        )
    unknown = 100.0 * (unfollowed + unclear) / max(waited + unclear, 1)
    if unknown > _MOSTLY_UNKNOWN_PCT:
        raise MissingDataError(
            f"record of the partners in {percent(unknown)} of the communication that may be waiting",
            "Record every rank, in the same run, with a PyTorch that writes the ranks of sends and receives "
            "(Src Rank, Dst Rank).",
            "the ranks wait for others whose own waits are not recorded",
        )


def _waiting(ranks: list[int], others: int) -> str:
    if len(ranks) == others > 1:
        return "The other ranks wait"
    text = ranks_in_words(sorted(ranks))
    return f"{text[0].upper()}{text[1:]} wait{'s' * (len(ranks) == 1)}"


def recorded_of(inputs: Inputs) -> str:
    """`the 3 of 4 ranks that were recorded`; "" where all were."""
    world, found = inputs.trace.summary["world_size"], len(inputs.trace.ranks)
    if isinstance(world, int) and world > found:
        return f"the {found} of {world} ranks that were recorded"
    return ""


def _through(late: LateRanks) -> str:
    """Who arrives last instead of the culprits, since it waits for them itself; "" if hardly anybody."""
    passed = late.parts[~late.parts["last"].isin(late.ranks)]
    if int(passed["wait_ns"].sum()) * _FAR_LESS < int(late.parts["wait_ns"].sum()):
        return ""
    sums = [passed.groupby(column)["wait_ns"].sum() for column in ("rank", "last")]
    waiting, through = (sorted(of[of * _FAR_LESS > of.max()].index.tolist()) for of in sums)
    themselves = "itself waits" if len(through) == 1 else "themselves wait"
    one, many = ranks_in_words(waiting), ranks_in_words(through)
    return (
        f" {one[0].upper()}{one[1:]} wait{'s' * (len(waiting) == 1)} through {many}, which {themselves} for "
        f"{ranks_in_words(late.ranks)}."
    )


def _longer(inputs: Inputs, ranks: list[int], cost: int) -> pd.Series[float]:
    """What the late ranks do longer than the others: ns by activity, longest first, if it explains a lot."""
    frame = inputs.temporal.set_index("rank")
    columns = {"compute_ns": "computing", "exposed_memory_ns": "copying", "idle_ns": "idle"}
    times = frame[list(columns)].rename(columns=columns)
    more = times.loc[ranks].mean() - times.drop(index=ranks).median()
    telling: pd.Series[float] = more[more * _LITTLE >= max(cost, more.max())]
    return telling.sort_values(ascending=False, kind="stable")


def _transferring(parts: pd.DataFrame, waiting: int) -> pd.Series[float]:
    """The time that the late ranks transfer data while another rank waits, if that is most of the waiting."""
    transfers = int(parts["communicating_ns"].sum())
    most = 2 * transfers > int(parts["wait_ns"].sum())
    return pd.Series({"transferring": transfers / waiting} if most else {}, dtype="float64")


def _by_replay(inputs: Inputs) -> str:
    """What the late ranks do longer by the replay of the job, "" if it names none or does not know."""
    job = replayed_job(inputs)
    return _BY_CAUSE.get(job.cause, "") if job and job.ranks else ""


def _suggestion(inputs: Inputs, late: LateRanks) -> str:
    return _SUGGESTIONS[_by_replay(inputs) if late.longer.empty else str(late.longer.index[0])]


def _few_steps(inputs: Inputs, late: LateRanks) -> list[int]:
    """The iterations with nearly all of the waiting, if they are few of those that communicate; else none."""
    by_step = late.parts.groupby("iteration")["wait_ns"].sum().sort_values(ascending=False, kind="stable")
    most = int((by_step.cumsum() < _NEARLY_ALL * by_step.sum()).sum()) + 1
    few = most <= _FEW_STEPS * inputs.late["iteration"].nunique()
    return sorted(by_step.index[:most].tolist()) if few else []


def _when(steps: list[int]) -> str:
    if not steps:
        return ""
    return f" Nearly all of it is in iteration{'s' * (len(steps) > 1)} {', '.join(map(str, steps))}."


def _told(inputs: Inputs, late: LateRanks) -> str:
    if late.longer.empty:
        return ""
    named, several = ranks_in_words(late.ranks), len(late.ranks) > 1
    if "transferring" in late.longer:
        meanwhile = inputs.per_step(late.longer["transferring"])
        return f" Meanwhile {named} transfer{'s' * (not several)} data with other ranks{meanwhile}."
    verbs = [
        f"{_ACTIVITIES[str(activity)][several]} longer{inputs.per_step(time)}"
        for activity, time in late.longer.items()
    ]
    return f" {named[0].upper()}{named[1:]} {' and '.join(verbs)} than the others."


RULE = Rule(
    topic="straggler",
    question="whom the ranks wait for",
    title="Waiting for a late rank",
    judge=straggler,
    applies=several_ranks,
    among_ranks="late",
    risk="Moving work between ranks moves memory, too.",
    needs="Data or layers that can be divided another way.",
)
