"""The rule about ranks that the others wait for: in which steps, and through whom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hta_widgets.analysis.communication.waits import longest_wait
from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Said, Text, say, says
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.late_ranks import FAR_LESS, LateRanks, late_ranks, longer_by_replay
from hta_widgets.analysis.findings.replayed_job import replayed_job
from hta_widgets.analysis.findings.rule import WAITS_FOR_LATE, Rule, several_ranks
from hta_widgets.analysis.findings.serving_ranks import is_serving
from hta_widgets.analysis.findings.unequal_work import MoreWork, by_kernels, more_work
from hta_widgets.analysis.findings.waiting import waiting_of
from hta_widgets.formatting import capitalised, ranks_in_words
from hta_widgets.trace.classify import EventClass

# This much of the waiting in this part of the steps or fewer is no matter of all of them.
_NEARLY_ALL = 0.9
_FEW_STEPS = 0.25
# Of the waiting of a rank: if so much is for the culprits, all of it is shown as waiting for them.
_MOST = 0.5
_ACTIVITIES = {
    "computing": ("computes", "compute"),
    "copying": ("copies memory", "copy memory"),
    "idle": ("is idle", "are idle"),
}
_SUGGESTIONS = {
    "computing": "Compare the kernels of {ranks} with those of the others: how many, how large, how fast.",
    "transferring": "Look at the transfers of {ranks} beside those of the others, and over which links.",
    "copying": "Look at the copies of {ranks} beside those of the others, and whether they must be then.",
    "idle": "Look at what the host of {ranks} does then: the data loader, synchronising calls, Python.",
    "starting": "Look at what the host of {ranks} does before the first work.",
    "entering": "Begin to record all ranks at the same step, after a barrier. If they do, look at what "
    "{ranks} did in the step before.",
}
_HOST_OF_SERVER = (
    "Look at what the host of {ranks} does then: its part of the engine, launches, and other processes on "
    "its cores. Bind each worker to cores of its own, near its device."
)
_SLOW_LAUNCHES = (
    "The same calls take the host of {ranks} longer: compare its cores, their clocks, what else runs on them "
    "and what traces calls with those of the others. CUDA graphs make fewer calls."
)
_FAR_LONGER = 2
_BEFORE_ITS_WORK = "a replay of ranks begins with their first work"


def straggler(inputs: Inputs) -> Finding | None:
    """The ranks that cause most of what the others wait, as `late_ranks` finds them."""
    late = late_ranks(inputs)
    if late is None:
        return None
    waiting, late_ones = late.waits.index.tolist(), tuple(late.ranks)
    replayed, few = replayed_job(inputs), _few_steps(inputs, late)
    recorded = recorded_of(inputs)
    caused = 100.0 * int(late.parts["wait_ns"].sum()) / int(inputs.late["waited_ns"].sum())
    text = say(
        "{who} for {late} {lost}. That is {caused} of all waiting{among}.",
        who=_who_waits(waiting, len(inputs.temporal) - len(late_ones), late_ones),
        late=Claim("late_ranks", late_ones, "ranks"),
        lost=inputs.time_lost("waiting_for", late.share_pct, late.cost_ns, waiting, late=late_ones),
        caused=Claim("caused_waiting", caused, "%", "waiting", late_ones),
        among=say(" among {recorded}", recorded=recorded) if recorded else "",
    )
    for more in (_when(few, late_ones), _through(late), _longer_in_words(inputs, late)):
        text += more
    launches = _slow_launches(inputs, late_ones) if "idle" in late.longer.index[:1] else NOTHING_SAID
    text += launches
    why = more_work(inputs, late_ones) if "computing" in late.longer.index[:1] else None
    if why and why.of_requests:
        text += why.text
    elif replayed:
        text += replayed.sentence(inputs)
    usual = _SLOW_LAUNCHES if launches else _suggestion(inputs, late)
    advice = why.advice if why else usual.format(ranks=ranks_in_words(late.ranks))
    return Finding(
        late.cost_ns,
        0.0 if late.began_late else late.share_pct,
        text,
        inputs.is_it_always() + advice,
        "stragglers",
        _evidence(inputs, late, few),
        lost=_lost(inputs, late),
        late=late_ones,
        not_estimated=_BEFORE_ITS_WORK if "starting" in late.longer else "",
        severity="note" if late.began_late and severity_of(late.share_pct) else None,
        title=_title(late, few, why),
    )


def _slow_launches(inputs: Inputs, late: tuple[int, ...]) -> Text:
    """That each launch takes far longer on the late ranks than on the others; nothing where none does."""
    taken = {rank: inputs.of(rank, _launch_ns) for rank in inputs.judged_ns}
    others = tuple(rank for rank in taken if rank not in late)
    own = min(taken.get(rank, 0) for rank in late)
    usual = float(np.median([taken[rank] for rank in others])) if others else 0.0
    if not usual or own < _FAR_LONGER * usual:
        return NOTHING_SAID
    return say(
        " There, a launch takes the host {own} or more in the median, on the others {usual}.",
        own=Claim("launch_call", own, "ns", "", late, {"of_ranks": "least"}),
        usual=Claim("launch_call", usual, "ns", "", others, {"of_ranks": "median"}),
    )


def _launch_ns(inputs: Inputs, rank: int) -> int:
    """How long a call that launches compute takes in the median, in the judged time; 0 without any."""
    rank_trace = inputs.trace.rank(rank)
    work = (rank_trace.event_class == EventClass.COMPUTE) & rank_trace.is_device & (rank_trace.launch >= 0)
    rows = np.flatnonzero(work)
    rows = rows[rank_trace.belong(rows, inputs.scope)]
    calls = np.unique(rank_trace.launch[rows])
    return int(np.median(rank_trace.dur[calls])) if len(calls) else 0


def _title(late: LateRanks, few: list[int], why: MoreWork | None) -> str:
    if why:
        return f"Waiting for a rank with {'more requests' if why.of_requests else 'fuller experts'}"
    if late.began_late:
        return "Waiting for a rank that began late"
    return f"{RULE.title} in iteration {few[0]}" if len(few) == 1 else ""


def _evidence(inputs: Inputs, late: LateRanks, few: list[int]) -> Evidence:
    """The longest wait for one of the late ranks: its kernel, and the time until it begins."""
    rank = late.ranks[0] if len(late.ranks) == 1 else None
    about = Evidence(rank=rank, iteration=few[0] if len(few) == 1 else None)
    met = longest_wait(inputs.trace, late.ranks[0], inputs.scope)
    if met.empty:
        return about
    waited = int(met["waited_ns"].max())
    last = met[met["is_last"] & met["rank"].isin(late.ranks)]
    if len(last):  # it is late itself
        event, before, after = last.iloc[0], waited, 0
    else:  # others that wait for it are
        event, before, after = met[met["waits"]].iloc[0], 0, waited
    start = int(event["start_ns"])
    first, end = inputs.trace.extent_ns
    return replace(
        about,
        event_rank=int(event["rank"]),
        event_id=int(event["event_id"]),
        span=(max(start - before, first), min(start + after, end)),
    )


def _lost(inputs: Inputs, late: LateRanks) -> dict[int, Intervals]:
    """When the others wait: on those that wait for the late ranks most of their waiting."""
    waited = inputs.late_by_rank["waited_ns"]
    mostly = [rank for rank, ns in late.waits.items() if ns >= _MOST * waited.get(rank, 0)]
    return waiting_of(inputs, [int(str(rank)) for rank in mostly])


def _who_waits(ranks: list[int], others: int, late: tuple[int, ...]) -> Text:
    whole = "The other ranks" if len(ranks) == others > 1 else at_start(ranks)
    who = Claim("waiting_ranks", tuple(sorted(ranks)), "ranks", about={"late": late}, shown=whole)
    return say("{who} wait{s}", who=who, s="s" * (len(ranks) == 1))


def at_start(ranks: list[int]) -> str:
    """Ranks at the start of a sentence."""
    text = ranks_in_words(sorted(ranks))
    return capitalised(text)


def recorded_of(inputs: Inputs, the: str = "the") -> Text:
    """`the 3 of 4 ranks that were recorded`; nothing where all were."""
    world, found = inputs.trace.summary["world_size"], len(inputs.trace.ranks)
    if not isinstance(world, int) or world <= found:
        return NOTHING_SAID
    return say(
        "{the} {found} of {world} ranks that were recorded",
        the=the,
        found=Claim("recorded_ranks", found, "count"),
        world=Claim("world_size", world, "count"),
    )


def _through(late: LateRanks) -> Text:
    """Who arrives last instead of the culprits, since it waits for them itself; nothing if hardly anybody."""
    passed = late.parts[~late.parts["last"].isin(late.ranks)]
    if int(passed["wait_ns"].sum()) * FAR_LESS < int(late.parts["wait_ns"].sum()):
        return NOTHING_SAID
    sums = [passed.groupby(column)["wait_ns"].sum() for column in ("rank", "last")]
    waiting, through = (sorted(of[of * FAR_LESS > of.max()].index.tolist()) for of in sums)
    about = {"late": tuple(late.ranks)}
    return say(
        " {waiting} wait{s} through {through}, which {themselves} for {late}.",
        waiting=Claim("waiting_indirectly", tuple(waiting), "ranks", about=about, shown=at_start(waiting)),
        s="s" * (len(waiting) == 1),
        through=Claim("waited_through", tuple(through), "ranks", about=about),
        themselves="itself waits" if len(through) == 1 else "themselves wait",
        late=Claim("late_ranks", tuple(late.ranks), "ranks"),
    )


def _suggestion(inputs: Inputs, late: LateRanks) -> str:
    longer = longer_by_replay(inputs) if late.longer.empty else str(late.longer.index[0])
    if longer == "computing" and (by_work := by_kernels(inputs, late.ranks)):
        return by_work
    return _HOST_OF_SERVER if longer == "idle" and is_serving(inputs) else _SUGGESTIONS[longer]


def _few_steps(inputs: Inputs, late: LateRanks) -> list[int]:
    """The iterations with nearly all of the waiting, if they are few of those that communicate; else none."""
    by_step = late.parts.groupby("iteration")["wait_ns"].sum().sort_values(ascending=False, kind="stable")
    most = int((by_step.cumsum() < _NEARLY_ALL * by_step.sum()).sum()) + 1
    few = most <= _FEW_STEPS * inputs.late["iteration"].nunique()
    return sorted(by_step.index[:most].tolist()) if few else []


def _when(steps: list[int], late: tuple[int, ...]) -> Text:
    if not steps:
        return NOTHING_SAID
    return say(
        " Nearly all of it is in iteration{s} {steps}.",
        s="s" * (len(steps) > 1),
        steps=Claim("steps_with_nearly_all_waiting", tuple(steps), "steps", ranks=late),
    )


def _began(late: LateRanks) -> Text:
    """That the late ranks began later; where the step's begin shows it, the cause is from before that."""
    ranks, ((_, later),) = tuple(late.ranks), late.longer.items()
    measure, what, end = "begins_later", "to work", "."
    if late.began_late:
        measure, what, end = "enters_later", "the step", ": the cause lies before the recording."
    return say(
        f" {{who}} begin{{s}} {what} {{later}} after the others{end}",
        who=Claim("late_ranks", ranks, "ranks", shown=at_start(late.ranks)),
        s="s" * (len(ranks) == 1),
        later=Claim(measure, float(later), "ns", "", ranks),
    )


def _longer_in_words(inputs: Inputs, late: LateRanks) -> Text:
    ranks, several = tuple(late.ranks), len(late.ranks) > 1
    if late.longer.empty:
        return NOTHING_SAID
    if "transferring" in late.longer:
        return say(
            " Meanwhile {late} transfer{s} data with other ranks{time}.",
            late=Claim("late_ranks", ranks, "ranks"),
            s="s" * (not several),
            time=inputs.time_per_step("transferring_meanwhile", late.longer["transferring"], ranks),
        )
    who = Claim("late_ranks", ranks, "ranks", shown=at_start(late.ranks))
    if late.longer.index[0] in ("starting", "entering"):
        return _began(late)
    verbs: list[Said] = [
        say(
            "{verb} longer{time}",
            verb=_ACTIVITIES[str(activity)][several],
            time=inputs.time_per_step("longer", time, ranks, activity=str(activity)),
        )
        for activity, time in late.longer.items()
    ]
    return say(" {who} {verbs} than the others.", who=who, verbs=says(verbs))


RULE = Rule(
    topic="straggler",
    question="whom the ranks wait for",
    title="Waiting for a late rank",
    label="Rank {rank} is late",
    cause=WAITS_FOR_LATE,
    lost_as="communication",
    judge=straggler,
    applies=several_ranks,
    among_ranks="late",
    risk="Moving work between ranks moves memory, too.",
    needs="Data or layers that can be divided another way.",
    wrong_if="the late rank itself waits for something that is not recorded.",
)
