"""The rule about steps that take unusually long."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.device_time.step_times import LEAST_STEPS
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.growing_steps import without_growth
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.serving_ranks import is_serving
from hta_widgets.analysis.findings.unusual_steps import (
    beyond_usual,
    comes_every,
    longer_in,
    region_beyond,
    without_told,
    without_waits,
)
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief

_FEW = 0.5
"""Of the steps of a rank: more are no exception."""
_EVALUATION = (
    "Evaluation is meant to happen. It takes less time if it comes less often, on fewer batches, or on "
    "larger ones: torch.inference_mode() stores no activations."
)
_REGULAR = "the last pass of accumulated gradients, logging and evaluation do"


def slow_steps(inputs: Inputs) -> Finding | None:
    """Steps that take unusually long, as `step_times` defines it. The cost is what they take beyond usual.

    Steps that hold start-up are not unusual: they are left out.
    """
    if not len(inputs.steps):
        return None
    if inputs.steps["confidence"].eq("low").any():
        raise MissingDataError(
            "announced steps",
            "Call prof.step() after each step, with a profiler schedule.",
            "they are guessed from what repeats",
        )
    if inputs.steps["usual_ns"].isna().all():
        raise MissingDataError(
            f"usual step time (needs {LEAST_STEPS} complete steps)",
            "Record more steps: torch.profiler.schedule(..., active=10).",
        )
    steps = inputs.judged_rows
    steps = steps[~steps["partial"] & ~steps["start_up"]]
    if not steps["outlier"].any():
        return None
    # where most steps of a rank are long, it is the rank that is slow, and no step of it is unusual
    slow_rank = steps["outlier"].groupby(steps["rank"]).transform("mean") > _FEW
    late = steps[steps["outlier"] & ~slow_rank]
    late = without_waits(inputs, _not_stalled(inputs, without_growth(inputs, late)))
    late = without_told(inputs, late)
    if late.empty:
        return None
    ranks = late["rank"].nunique()
    whole = int(steps.loc[steps["rank"].isin(late["rank"]), "dur_ns"].sum())
    lost = int(late["excess_ns"].sum())
    worst = late.iloc[int(late["excess_ns"].to_numpy(np.int64).argmax())]
    slow = sorted(late["iteration"].unique().tolist())
    numbers = sorted(steps["iteration"].unique().tolist())
    count, every = len(slow), comes_every(numbers, slow)
    first = slow == numbers[:count]
    beyond = beyond_usual(inputs, int(worst["rank"]), int(worst["iteration"]))
    advice = ""
    evaluates = inputs.of(int(worst["rank"]), _evaluates, tuple(slow))
    if evaluates:
        advice = _EVALUATION
    elif every:
        like = "logging and statistics do" if is_serving(inputs) else _REGULAR
        advice = f"They come every {every} steps, as {like}: what is meant to happen is no loss. "
    elif first:
        advice = (
            f"{'They come' if count > 1 else 'It comes'} first: what runs only then, such as autotuning or "
            "compiling, ends by itself. Record after more warm-up steps to see. "
        )
    rank, step = int(worst["rank"]), int(worst["iteration"])
    share, concerned = 100.0 * lost / whole, sorted(late["rank"].unique().tolist())
    about = {"steps": slow}
    one, number = (rank,), len(numbers)
    region = region_beyond(inputs, rank, step)
    notes = [f"mostly {brief(region)}"] * bool(region) + [f"every {every} steps"] * bool(every)
    notes += [f"the first {count}" if count > 1 else "the first"] * (first and not every)
    notes = ["evaluation", *notes] if evaluates else notes
    where = Claim("region_beyond_usual", region, "name", ranks=one, about={"iteration": step})
    text = say(
        "{count} of {all} steps {take} unusually long. {cost} {lost}. Iteration {step} takes {time} on "
        "{rank}; {usual} is usual.{beyond}{where}{evaluates}",
        count=Claim("unusual_steps", count, "count"),
        all=Claim("steps", number, "count"),
        take="takes" if count == 1 else "take",
        cost="It costs" if count == 1 else "They cost",
        lost=inputs.share_of_time("beyond_usual", share, concerned, **about),
        step=Claim("slowest_step", (step,), "steps", ranks=one),
        time=Claim("step_time", int(worst["dur_ns"]), "ns", ranks=one, about={"iteration": step}),
        rank=Claim("slowest_step_on", one, "ranks", about={"iteration": step}),
        usual=Claim("usual_step_time", int(worst["usual_ns"]), "ns", ranks=one, about={"iteration": step}),
        beyond=beyond.text,
        where=say(" Most of that lies in {region}.", region=where) if region else "",
        evaluates=say(
            " {steps} {have} no backward pass, the others have one: evaluation.",
            steps=Claim("without_backward", tuple(slow), "steps", "", one, {}, "They" if count > 1 else "It"),
            have="have" if count > 1 else "has",
        )
        if evaluates
        else "",
    )
    return Finding(
        lost // ranks,
        share,
        text,
        advice
        if evaluates
        else advice + (f"Look at {brief(region)} in these steps." if region else beyond.advice),
        "temporal_breakdown",
        Evidence(
            rank if ranks == 1 else None,
            step,
            event_rank=rank,
            span=(int(worst["start_ns"]), int(worst["end_ns"])),
        ),
        title=f"{RULE.title} ({', '.join(notes)})" if notes else "",
        lost_as=beyond.lost_as,
        lost=inputs.when(concerned, lambda each: longer_in(inputs, each, slow)),
        explains=rank if ranks == 1 and len(inputs.trace.ranks) > 1 else None,
    )


def _evaluates(inputs: Inputs, rank: int, slow: tuple[int, ...]) -> bool:
    """Whether these of the judged steps have no backward pass, and all others have one."""
    rank_trace = inputs.trace.rank(rank)
    trained = np.unique(rank_trace.iteration[phases(rank_trace).of == PHASES.index("backward")])
    rows = inputs.judged_rows
    steps = set(rows.loc[rows["rank"] == rank, "iteration"])
    return steps - set(trained.tolist()) == set(slow) & steps


def _not_stalled(inputs: Inputs, late: pd.DataFrame) -> pd.DataFrame:
    """Unusual steps without those of which a rare pause of the host, a finding of its own, is most.

    Of the others it is no part of the excess.
    """
    if late.empty:
        return late
    spans = zip(late["rank"], late["start_ns"], late["end_ns"], strict=True)
    stalled = np.array([inputs.paused(rank).rare.clip(start, end).length for rank, start, end in spans])
    excess = late["excess_ns"].to_numpy(np.int64)
    return late.assign(excess_ns=excess - stalled)[2 * stalled < excess]


RULE = Rule(
    topic="slow_steps",
    question="which steps are unusual",
    says_why=False,
    title="Extra time in unusually long steps",
    label="Slow steps",
    cause="unusually long steps",
    lost_as="idle",
    judge=slow_steps,
    of_some_steps=True,
    applies=lambda inputs: bool(len(inputs.steps)),
    no_change="whether these steps must do more than the others is not known",
    wrong_if="These steps are meant to do more, such as evaluation or logging.",
)
