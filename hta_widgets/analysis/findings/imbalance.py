"""Rules about work that the ranks do not share evenly, and about ranks that wait for each other."""

from __future__ import annotations

import pandas as pd

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.findings.evidence import evidence_of_loss
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.late_ranks import compute_longer, late_ranks
from hta_widgets.analysis.findings.pipeline_rules import bubble
from hta_widgets.analysis.findings.rule import Rule, several_ranks
from hta_widgets.analysis.findings.straggler import at_start, recorded_of
from hta_widgets.analysis.findings.unequal_work import BALANCE, expert_times, more_work, spread_experts
from hta_widgets.analysis.findings.waiting import idle_delays, late_rounds, waiting_of
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import ranks_in_words
from hta_widgets.trace.classify import EventClass

# A rank that is the main cause of less of the waiting, by steps, is one of several.
_MOST_STEPS = 0.75
# Nearly all of the waiting is for so few of the ranks: they are slow, though none of them more than another.
_NEARLY_ALL = 0.9
_FEW_RANKS = 0.5
# A rank that causes more of the waiting does stand out, even if nothing shows why it is late.
_ALONE = 2 / 3


def imbalance(inputs: Inputs) -> Finding | None:
    """A rank that the others wait for, since it has more work: more launches, or larger ones.

    The cost is its compute time beyond the median of the others, in kernels that they do not launch alike and
    as often. As many other kernels with no larger grids may be other work, or other code for the same work.
    """
    late = compute_longer(inputs) if len(inputs.temporal) > 1 else []  # one has nobody to compare with
    if not late:
        return None
    work = inputs.workloads
    compared = [work.compared(rank) for rank in late if rank in work.ranks]
    if not compared:
        return None
    one = max(compared, key=lambda each: each.more_ns)
    window = inputs.judged_ns.get(one.rank, 0)
    if one.more_ns <= one.slower_ns or not window or not (one.more_launches > 0 or one.larger):
        return None
    ranks, share = (one.rank,), 100.0 * one.more_ns / int(window)
    if (why := more_work(inputs, ranks)) and why.of_requests:  # which the waiting for it says
        return None
    how = say(f" in kernels with larger {one.larger}")
    if one.more_launches > 0:
        how = say(
            ": it launches {more} kernel{s} more per step",
            more=Claim("more_launches", one.more_launches, "count", ranks=ranks),
            s="s" * (one.more_launches > 1),
        )
    return Finding(
        one.more_ns,
        share,
        say(
            "{who} has more work than the others, {lost}{how}. In all, it computes {longer} longer. "
            "This is why the others wait for it, not another loss.",
            who=Claim("rank_with_more_work", ranks, "ranks", shown=at_start([one.rank])),
            lost=inputs.time_lost("more_work", share, one.more_ns, ranks),
            how=how,
            longer=Claim("computes_longer", one.more_pct, "%", "computing of the others", ranks),
        ),
        inputs.is_it_always() + BALANCE,
        "kernel_breakdown",
        Evidence(rank=one.rank),
        explains=one.rank,
    )


def mutual_waiting(inputs: Inputs) -> Finding | None:
    """Ranks that wait for each other, none of which is the main cause."""
    try:
        late = late_ranks(inputs)
    except MissingDataError:  # who causes the waiting is not known
        return None
    waited = inputs.late_by_rank["waited_ns"]
    if not waited.any() or (late and severity_of(late.share_pct)):
        return None
    frame = inputs.temporal.set_index("rank")
    waits = waited.reindex(frame.index, fill_value=0).clip(upper=frame["exposed_communication_ns"])
    of_stages = bubble(inputs)
    if of_stages is not None:  # a finding of its own
        waits = (waits - of_stages.claimed).clip(lower=0)
    cost, share = int(waits.sum()) // len(frame), 100.0 * int(waits.sum()) / int(frame["window_ns"].sum())
    if not severity_of(share):
        return None
    found = inputs.collectives
    in_pairs = found["dur_ns"].where(found["match_key"].eq("pair"), 0).sum()
    slow, most, delays = _few_ranks(inputs.late), _main_cause(inputs.late), late_rounds(inputs)
    suggestion = BALANCE
    late_ones = tuple(slow) if most is None else (most,)
    why = more_work(inputs, late_ones) if late_ones else None
    if why:
        suggestion = why.advice
    elif slow:
        suggestion = (
            f"Compare {ranks_in_words(slow)} with the others: their kernels, devices, clocks, nodes and data."
        )
    elif 2 * _beyond_mean(expert_times(inputs)) > cost:
        suggestion = spread_experts(inputs, "Experts of some ranks")
    elif 2 * in_pairs > found["dur_ns"].sum():
        suggestion = "Run more microbatches per step, interleave the stages, or move their boundaries."
    elif 2 * inputs.waits["idle_ns"].sum() > waited.sum() or idle_delays(inputs, delays):
        suggestion = "Look at what delays the hosts in turn: the data loader, garbage collection, logging."
    lost = waiting_of(inputs, frame.index.tolist())
    title = f"Waiting for {ranks_in_words(slow)}" if slow else ""
    return Finding(
        cost,
        share,
        say(
            "{who} wait {each_other} {lost}. {whom}{requests}",
            who=recorded_of(inputs, "The") or "The ranks",
            each_other="for each other" if most is None else "for another one",
            lost=inputs.time_lost("waiting_for_each_other", share, cost),
            whom=_whom(inputs.late, slow)
            if most is None
            else _causing_most(inputs.late, most, at_start([most])),
            requests=why.text if why and why.of_requests else NOTHING_SAID,
        ),
        suggestion,
        "stragglers",
        evidence_of_loss(inputs, lost, (EventClass.COMMUNICATION,), None, ""),
        lost=lost,
        delays=delays,
        title=title if most is None else "Waiting for another rank",
    )


def _few_ranks(late: pd.DataFrame) -> list[int]:
    """The ranks that cause nearly all of the waiting, if they are several, up to half of all; else none."""
    caused = late.groupby("rank")["blamed_ns"].sum().sort_values(ascending=False, kind="stable")
    most = int((caused.cumsum() < _NEARLY_ALL * caused.sum()).sum()) + 1
    return sorted(caused.index[:most].tolist()) if 1 < most <= _FEW_RANKS * len(caused) else []


def _whom(late: pd.DataFrame, slow: list[int]) -> Text:
    """For whom nearly all of it is; else whether the main cause changes between steps, or who is that."""
    if slow:
        ranks = Claim("ranks_with_nearly_all_waiting", tuple(slow), "ranks")
        return say("Nearly all of it is for {ranks}, none of which stands out among them.", ranks=ranks)
    step = late["iteration"].fillna(-1)
    waited = late["waited_ns"].groupby(step).sum()
    by_step = late["blamed_ns"].groupby([step, late["rank"]]).sum().unstack(fill_value=0)  # noqa: PD010
    main = by_step.idxmax(axis=1)[2 * by_step.max(axis=1) > waited]
    of_main = waited[main.index].groupby(main).sum()  # a step counts by what is waited in it
    whole = int(waited.sum())
    if 2 * int(of_main.sum()) > whole and len(of_main) > 1 and of_main.max() < _MOST_STEPS * whole:
        most = int(of_main.index[int(of_main.to_numpy().argmax())])
        pct = 100.0 * int(of_main[most]) / whole
        return say(
            "The slowest rank changes from step to step ({rank} in {steps} of {of}, with {share} of it).",
            rank=Claim("slowest_in_most_waiting", (most,), "ranks"),
            steps=Claim("steps_as_slowest", int((main == most).sum()), "count", ranks=(most,)),
            of=Claim("steps_with_exchanges", len(by_step), "count"),
            share=Claim("waiting_in_steps_as_slowest", pct, "%", "waiting", (most,)),
        )
    caused = by_step.sum()
    most = int(caused.index[int(caused.to_numpy().argmax())])
    if 2 * int(caused[most]) > whole:  # it does stand out, but is not known to be late in most steps
        return _causing_most(late, most, at_start([most]))
    return say("No rank stands out: {largest}", largest=_causing_most(late, most))


def _main_cause(late: pd.DataFrame) -> int | None:
    """The rank that causes most of the waiting, though it has no more to do than the others; None: none."""
    caused = late.groupby("rank")["blamed_ns"].sum()
    alone = caused.max() > _ALONE * late["waited_ns"].sum()
    return int(caused.index[int(caused.to_numpy().argmax())]) if alone else None


def _causing_most(late: pd.DataFrame, rank: int, who: str = "") -> Text:
    caused = int(late.loc[late["rank"] == rank, "blamed_ns"].sum())
    return say(
        "{rank} causes the largest part of it: {share}.",
        rank=Claim("causes_most_waiting", (rank,), "ranks", shown=who),
        share=Claim("caused_waiting", 100.0 * caused / int(late["waited_ns"].sum()), "%", "waiting", (rank,)),
    )


def _beyond_mean(times: pd.DataFrame) -> int:
    """How much longer the slowest rank takes than the mean of all, over all steps, ns."""
    return int((times.max(axis=1) - times.mean(axis=1)).sum())


RULES = (
    Rule(
        topic="imbalance",
        question="whom the ranks wait for",
        title="A rank with more work",
        label="More work",
        cause="rank {rank}'s extra work",
        judge=imbalance,
        applies=several_ranks,
        among_ranks="reason",
        risk="Moving work between ranks moves memory, too.",
        needs="Data or layers that can be divided another way.",
        wrong_if="kernels of other names or grids do the same work.",
    ),
    Rule(
        topic="mutual_waiting",
        question="whom the ranks wait for",
        title="Waiting of the ranks for each other",
        label="Mutual waiting",
        cause="ranks that wait for each other",
        lost_as="communication",
        judge=mutual_waiting,
        applies=several_ranks,
        among_ranks="in turn",
        risk="Moving work between ranks moves memory, too.",
        needs="Data or layers that can be divided another way.",
        wrong_if="ranks that were not recorded are late.",
    ),
)
