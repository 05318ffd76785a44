"""The rule about the bubble of a pipeline: what its schedule implies, its stages and its transfers add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Said, Text, say, says
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.late_ranks import late_ranks
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.parallelism.pipeline import pipeline
from hta_widgets.analysis.parallelism.schedules import GPIPE, INTERLEAVED, ONE_F_ONE_B, ZB_H1
from hta_widgets.analysis.replay.what_if import LEAST_PCT
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.scope import Scope

SCHEDULE: Final = "schedule"
STAGES: Final = "stages"
TRANSFERS: Final = "transfers"

_MOST = 0.5
_PARTS = ("warm_up_ns", "steady_ns", "drain_ns")
_OTHERS = {
    GPIPE: ", and 1F1B keeps less in memory for more of them; interleaved stages divide it by their number",
    ONE_F_ONE_B: "; interleaved stages divide it by their number, for as many times the sends and receives",
    INTERLEAVED: "; more chunks per rank divide it further, for more sends and receives",
    ZB_H1: "",
}


@dataclass(frozen=True)
class Bubble:
    """The bubble of the judged steps, as means over ranks and steps in ns."""

    rows: pd.DataFrame  # of `pipeline`
    # what the schedule has with equal stages, what unequal ones add, and the rest: together the bubble. A few
    # ns below 0 where the passes fit better than the formula.
    schedule_ns: float
    stages_ns: float
    transfers_ns: float
    # of all judged time, what each rank waits in it, int64 ns by rank, but for what `straggler` tells as
    # waiting for late ranks
    claimed: pd.Series[int]
    late: tuple[int, ...]  # the ranks that `straggler` tells of

    @property
    def slowest(self) -> int:
        """The stage whose passes take longest."""
        work = self.rows.groupby("stage")["stage_work_pct"].mean()
        return int(work.index[int(work.to_numpy().argmax())])

    @property
    def slowest_ranks(self) -> list[int]:
        return sorted(self.rows.loc[self.rows["stage"] == self.slowest, "rank"].unique().tolist())

    @property
    def cause(self) -> str:
        """What makes most of it; unequal stages are no cause of their own where `straggler` names them."""
        stages = 0.0 if set(self.late) & set(self.slowest_ranks) else self.stages_ns
        parts = {SCHEDULE: self.schedule_ns, STAGES: stages, TRANSFERS: self.transfers_ns}
        return max(parts, key=lambda part: parts[part])


@memoize_per_rank()
def bubble(inputs: Inputs) -> Bubble | None:
    """The bubble of a pipeline whose schedule is known; None where `pipeline` tells none.

    A rank's waiting counts as far as it lies in no pass and no compute hides it.
    """
    scope = inputs.scope
    if not inputs.communicates or scope != Scope(ranks=scope.ranks, iterations=scope.iterations):
        return None
    try:
        rows = pipeline(inputs.trace, scope)
    except MissingDataError:
        return None
    if rows.empty or rows["ideal_bubble_pct"].isna().any():
        return None
    whole = rows["step_ns"] - rows["before_ns"] - rows["after_ns"]
    mean = 100.0 * rows["passes_ns"] / rows["stage_work_pct"]
    ideal = mean * rows["ideal_bubble_pct"] / (100.0 - rows["ideal_bubble_pct"])
    unequal = whole * rows["imbalance_pct"] / 100.0
    whole_bubble = rows[list(_PARTS)].sum(axis=1)
    waits, straggling, late = _waits(inputs)
    own = whole_bubble.groupby(rows["rank"]).sum().reindex(waits.index, fill_value=0)
    claimed = (waits.clip(upper=own) - straggling).clip(lower=0).astype("int64")
    return Bubble(
        rows,
        float(ideal.mean()),
        float(unequal.mean()),
        float((whole_bubble - ideal - unequal).mean()),
        claimed,
        late,
    )


def _waits(inputs: Inputs) -> tuple[pd.Series[int], pd.Series[int], tuple[int, ...]]:
    """By rank, ns: what it waits with nothing hiding it, and what `straggler` tells of; whom that names."""
    exposed = inputs.temporal.set_index("rank")["exposed_communication_ns"]
    nothing = pd.Series(0, exposed.index)
    try:
        waited = inputs.late_by_rank["waited_ns"].reindex(exposed.index, fill_value=0)
        found = late_ranks(inputs)
    except MissingDataError:  # waiting and sending cannot be distinguished
        return exposed, nothing, ()
    waits = waited.clip(upper=exposed)
    if found is None or not severity_of(found.share_pct):
        return waits, nothing, ()
    return waits, found.waits.reindex(exposed.index, fill_value=0), tuple(found.ranks)


def pipeline_bubble(inputs: Inputs) -> Finding | None:
    """Stages of a pipeline that wait for each other between passes, and what makes most of that.

    The cost is the waiting in the bubble that no other finding tells of. Its parts are of the whole bubble.
    """
    found = bubble(inputs)
    if found is None:
        return None
    frame = inputs.temporal.set_index("rank")
    lost = int(found.claimed.sum())
    cost, share = lost // len(frame), 100.0 * lost / max(int(frame["window_ns"].sum()), 1)
    rest = ", besides waiting for late ranks," if found.late else ""
    return Finding(
        cost,
        share,
        say(
            "The {stages} stages of the pipeline wait for each other between passes{rest} {lost}. {parts}",
            stages=Claim("pipeline_stages", int(found.rows["stages"].max()), "count"),
            rest=rest,
            lost=inputs.time_lost("waiting_in_bubble", share, cost),
            parts=_parts_in_words(inputs, found),
        ),
        _advice(inputs, found),
        "pipeline",
        Evidence(rank=found.slowest_ranks[0] if found.cause == STAGES else None),
    )


def _parts_in_words(inputs: Inputs, found: Bubble) -> Text:
    """When there is no pass, and why, in % of the steps of `pipeline`."""
    rows, parts = found.rows, {part: float(found.rows[part].mean()) for part in _PARTS}
    step = float(rows["step_ns"].mean())
    when = _shares(parts, step, {"warm_up_ns": "warm-up", "steady_ns": "steady state", "drain_ns": "drain"})
    causes: dict[str, Said] = {
        SCHEDULE: say("the schedule itself ({schedule})", schedule=_schedule(rows)),
        STAGES: "unequal stages",
        TRANSFERS: "sends and receives that no pass hides, and passes that vary",
    }
    of_cause = {SCHEDULE: found.schedule_ns, STAGES: found.stages_ns, TRANSFERS: found.transfers_ns}
    text = say(
        "From one step of the pipeline to the next, no pass runs for {lost}: {when}.",
        lost=_of_steps("bubble", 100.0 * sum(parts.values()) / step),
        when=says([say("{share} in {part}", share=share, part=part) for share, part in when]),
    )
    if why := _shares(of_cause, step, causes):
        text += say(
            " By cause: {why}.",
            why=says([say("{share} {part}", share=share, part=part) for share, part in why]),
        )
    if 100.0 * found.stages_ns / step >= LEAST_PCT:
        text += _stage(inputs, found)
    return text


def _of_steps(measure: str, pct: float, **about: str) -> Claim:
    return Claim(measure, pct, "%", "steps of the pipeline", about=about)


def _shares(times: dict[str, float], whole: float, words: Mapping[str, Said]) -> list[tuple[Claim, Said]]:
    """The share of each part with its name, without what is too little to be reported."""
    shares = {part: 100.0 * time / whole for part, time in times.items()}
    return [
        (_of_steps("bubble_part", share, part=part), words[part])
        for part, share in shares.items()
        if share >= LEAST_PCT
    ]


def _schedule(rows: pd.DataFrame) -> Text:
    """`1F1B, 8 microbatches`."""
    names = Claim("schedule", tuple(rows["schedule"].unique()), "name")
    chunks = int(rows["chunks"].max())
    microbatches = sorted(rows["microbatches"].unique().tolist())
    return say(
        "{names}{chunks}, {counts} microbatches",
        names=names,
        chunks=say(", {chunks} chunks per rank", chunks=Claim("pipeline_chunks", chunks, "count"))
        if chunks > 1
        else "",
        counts=says([Claim("microbatches", count, "count") for count in microbatches], " or "),
    )


def _stage(inputs: Inputs, found: Bubble) -> Text:
    """The slowest stage, and why it is."""
    work = float(found.rows.groupby("stage")["stage_work_pct"].mean().max())
    stage = {"stage": found.slowest}
    return say(
        " Stage {stage} takes longest, {times} times the mean{why}.",
        stage=Claim("slowest_stage", found.slowest, "count"),
        times=Claim("work_of_stage", work / 100, "x", about=stage),
        why=_why(inputs, found) or ", which its kernels do not explain",
    )


def _why(inputs: Inputs, found: Bubble) -> Text:
    """What the slowest stage has beyond the mean of the others: kernels, longer ones; nothing if neither."""
    mine = found.slowest_ranks
    ranks = sorted(found.rows["rank"].unique().tolist())
    kernels = pd.DataFrame([_kernels(inputs, rank) for rank in ranks], ranks, ["count", "time"])
    own, others = kernels.loc[mine].mean(), kernels.drop(index=mine).mean()
    more, longer = (own / others.clip(lower=1))[["count", "time"]]
    passes = found.rows.groupby(found.rows["stage"] == found.slowest)["passes_ns"].mean()
    if longer - 1 < _MOST * (passes[True] / passes[False] - 1):
        return NOTHING_SAID
    if more - 1 < _MOST * (longer - 1):
        ratio = Claim("kernels_of_stage_longer", float(longer / more), "x", ranks=tuple(mine))
        return say(": its kernels take {ratio} times as long as those of the others", ratio=ratio)
    launches = round((own["count"] - others["count"]) / max(inputs.judged, 1))
    count = Claim("kernels_of_stage_more", launches, "count", ranks=tuple(mine))
    return say(": it launches {count} kernels more per step", count=count)


def _kernels(inputs: Inputs, rank: int) -> tuple[int, int]:
    """How many compute kernels of the judged time a rank has, and how long they take, ns."""
    rank_trace = inputs.trace.rank(rank)
    rows = rank_trace.rows(inputs.scope)
    rows = rows[rank_trace.is_device[rows] & (rank_trace.event_class[rows] == EventClass.COMPUTE)]
    return len(rows), int(rank_trace.dur[rows].sum())


def _advice(inputs: Inputs, found: Bubble) -> str:
    if found.cause == STAGES:
        if not _why(inputs, found):
            return f"Look at what delays the passes of stage {found.slowest}: its host, its collectives."
        return (
            f"Move work from stage {found.slowest} to the others: other boundaries between the stages. If "
            "they have equal work, compare clocks and power limits of the devices."
        )
    if found.cause == TRANSFERS:
        return (
            "Send and receive while passes run: post receives ahead, batch them with sends, and let no pass "
            "wait for its own send. Fewer microbatches have fewer transfers, but a larger bubble."
        )
    row = found.rows.iloc[0]
    ideal = float(found.rows["ideal_bubble_pct"].mean())
    half = 100.0 * ideal / (200.0 - ideal)
    return (
        f"With {2 * int(row['microbatches'])} microbatches of the same size in a step, the schedule's own "
        f"bubble is {percent(half)} of a step without transfers instead of {percent(ideal)}"
        f"{_OTHERS.get(str(row['schedule']), '')}. Neither is promised: smaller microbatches run less "
        "efficient kernels, and more of the same size are a larger batch."
    )


RULE = Rule(
    topic="pipeline_bubble",
    question="whom the ranks wait for",
    title="Waiting of the pipeline's stages for each other",
    label="Pipeline bubble",
    cause="the pipeline bubble",
    lost_as="communication",
    judge=pipeline_bubble,
    applies=lambda inputs: bubble(inputs) is not None,
    no_change="how many microbatches there may be is for the program to say, and edits.microbatches "
    "replays other numbers",
    risk="More microbatches keep more activations, or make kernels smaller.",
    needs="A batch that can be divided, or layers that can be divided another way.",
    wrong_if="the passes are those of another schedule than the one that was recognised.",
)
