"""How long each step takes on each rank, and which steps take unusually long."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.chosen_rows import of_ranks_and_iterations
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.medians import medians
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.start_up import job_start_up
from hta_widgets.charts.spec import Trend
from hta_widgets.formatting import counted, duration
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import distinct, paired
from hta_widgets.trace.scope import Scope

# Three standard deviations of a normal distribution, estimated by the median absolute deviation, which is
# robust to outliers; and never less than a tenth, since the steps of a steady job hardly differ.
DEVIATIONS: Final = 3 * 1.4826
LEAST_EXCESS: Final = 0.1
# The usual time of a step is known only from this many complete steps on.
LEAST_STEPS: Final = 4

_LAST = np.iinfo(np.int64).max


@kept()
def step_times(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How long does each iteration take on each rank, and which take unusually long?

    A step's usual time is the median of the steady steps of all ranks in the whole trace, whatever the scope,
    so that selecting a step does not change whether it is unusual. The steps of a server are compared with
    those of their kind: of the same phase (prefill, decode), batch size and number of tokens. A step is an
    outlier if it takes longer than usual by more than a tenth and by more than three standard deviations
    (1.4826 times the median absolute deviation each). With fewer than four steady steps there is no usual
    time.

    Steady are the steps that the recording does not cut, that hold no start-up, whose end is recorded, and
    whose window holds most of their own device work. A step ends where the next one begins; when the last one
    ended is not recorded where its mark does not say so: it is open. Start-up is idle time around calls of
    the driver that take a millisecond or more with nothing to wait for, in few of the steps; a step holds it
    if that is 3 % of its time or more. Guessed steps are never steady: nothing says that they are steps.

    Args:
        trace: the job.
        scope: ranks, iterations, and a time window that a step must touch; default everything.

    Returns:
        One row per rank and iteration, ascending, each with its whole time. Columns: rank, iteration,
        start_ns, end_ns (ns on the job's axis), dur_ns (int64, ns), usual_ns, excess_ns (dur_ns - usual_ns)
        (Int64, ns; NA without a usual time, and of guessed steps), outlier, partial (cut by the recording),
        start_up (holds start-up), open (its end is not recorded; none of these is ever an outlier) (bool),
        source (what marks the steps), confidence ("high", "medium", "low"), known ("announced" by the
        program, "annotated" by regular spans of one name, or "guessed" from repetition), phase (of a server's
        step, "" of others) (str), kind (int64: steps of one number are compared with one another).
    """
    scope = scope or Scope()
    frame = of_ranks_and_iterations(_every_step(trace), trace, scope)
    if scope.window_ns is None:
        return frame
    touched = (frame["start_ns"] < scope.window_ns[1]) & (frame["end_ns"] > scope.window_ns[0])
    return frame[touched].reset_index(drop=True)


@memoize_per_rank()
def _every_step(trace: Trace) -> pd.DataFrame:
    """`step_times` of everything, which no scope changes."""
    frame = trace.iterations
    dur = (frame["end_ns"] - frame["start_ns"]).to_numpy(np.int64)
    partial, is_open = (frame[name].to_numpy(np.bool_) for name in ("partial", "open"))
    starting, phase = _starting(trace, frame), frame["phase"].fillna("")
    # periods of what repeats are no steps of which one could be slow
    is_step = frame["known"].ne("guessed").to_numpy(np.bool_) & ~_contradicted(trace, frame)
    steady = is_step & ~partial & ~starting & ~is_open
    batch, tokens = (frame[name].to_numpy(np.int64, na_value=_LAST) for name in ("batch_size", "tokens"))
    kinds, kind = distinct(paired(paired(phase.to_numpy(object), batch), tokens))
    enough = np.bincount(kind[steady], minlength=len(kinds)) >= LEAST_STEPS
    usual = np.where(enough, medians(kind[steady], dur[steady], len(kinds)), np.nan)[kind]
    spread = medians(kind[steady], np.abs(dur - usual)[steady], len(kinds))[kind]
    limit = np.maximum(DEVIATIONS * spread, LEAST_EXCESS * usual)
    unknown = np.isnan(usual)
    usual_ns = np.where(unknown, dur, np.rint(usual)).astype(np.int64)
    steps = pd.DataFrame(
        {
            **{name: frame[name].array for name in ("rank", "iteration", "start_ns", "end_ns")},
            "dur_ns": dur,
            "usual_ns": pd.arrays.IntegerArray(usual_ns, unknown),
            "excess_ns": pd.arrays.IntegerArray(dur - usual_ns, unknown.copy()),
            "outlier": (dur - usual > limit) & steady,
            "partial": partial,
            "start_up": starting,
            "open": is_open,
            **{name: frame[name].array for name in ("source", "confidence", "known")},
            "phase": phase.array,
            "kind": kind,
        }
    )
    return steps.sort_values(["rank", "iteration"], kind="stable", ignore_index=True)


def _contradicted(trace: Trace, frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which rows of a frame like `Trace.iterations` are steps whose window does not hold their own work."""
    found = np.zeros(len(frame), np.bool_)
    for rank in trace.ranks:
        if numbers := trace.rank(rank).contradicted_iterations:
            found |= ((frame["rank"] == rank) & frame["iteration"].isin(numbers)).to_numpy(np.bool_)
    return found


def _starting(trace: Trace, frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which rows of a frame like `Trace.iterations` hold start-up."""
    starting = np.zeros(len(frame), np.bool_)
    rank_of, start, end = (frame[name].to_numpy(np.int64) for name in ("rank", "start_ns", "end_ns"))
    for rank in trace.ranks:
        _, found = job_start_up(trace, rank)
        if found is not None:
            rows = slice(*np.searchsorted(rank_of, (rank, rank + 1)).tolist())  # rank after rank
            spans = zip(start[rows].tolist(), end[rows].tolist(), strict=True)
            starting[rows] = [found.takes(*span) for span in spans]
    return starting


def sentence(frame: pd.DataFrame) -> str:
    """The answer in words."""
    complete = frame[~frame["partial"]]
    if complete.empty:
        return "No complete step lies in the selection."
    starting, complete = complete[complete["start_up"]], complete[~complete["start_up"]]
    some = complete if len(complete) else starting
    if some["known"].eq("guessed").all():
        return guessed_steps(some)
    if complete.empty:
        return "Every complete step in the selection holds start-up."
    ended = complete[~complete["open"]]
    if ended.empty:
        longest = duration(complete["dur_ns"].max())
        return f"The end of the only step is not recorded; its recorded work takes {longest}."
    complete = ended
    count = starting["iteration"].nunique()
    aside = (
        f" {counted(count, 'iteration')} with start-up {'is' if count == 1 else 'are'} left out."
        if count
        else ""
    )
    if len(complete) == 1:
        return f"The only complete step takes {duration(complete['dur_ns'].iloc[0])}.{aside}"
    late = complete[complete["outlier"]]
    phase = complete["phase"].mode().iloc[0]
    usual = complete[complete["phase"].eq(phase)]  # steps of another phase do something else
    where = f" where the phase is {phase or 'unknown'}" * (len(usual) < len(complete))
    median = f"A step takes {duration(usual['dur_ns'].median())} at the median{where}"
    chosen = usual if late.empty else late
    worst = chosen.iloc[int(chosen["dur_ns"].to_numpy().argmax())]
    longest = f"{duration(worst['dur_ns'])} in iteration {worst['iteration']} on rank {worst['rank']}"
    if late.empty:
        compared = complete["usual_ns"].notna().any()
        found = (
            "None is unusually long." if compared else "Too few can be compared to call one unusually long."
        )
        return f"{median}, at most {longest}. {found}{aside}"
    count, whole = late["iteration"].nunique(), complete["iteration"].nunique()
    said = f"{count:,} of {counted(whole, 'iteration')} {'is' if count == 1 else 'are'} unusually long"
    return f"{median}. {said}. The longest takes {longest}.{aside}"


def guessed_steps(frame: pd.DataFrame) -> str:
    """What there is to say of iterations that no mark shows."""
    remedy, count = "Call prof.step() where a step ends.", frame["iteration"].nunique()
    if count < 2:
        return f"No steps are marked. {remedy}"
    return (
        f"No steps are marked; {counted(count, 'repeat')} of the same work are guessed to be steps. {remedy}"
    )


def slowest_steps(iterations: pd.DataFrame) -> pd.DataFrame:
    """The slowest and fastest rank of each iteration of a frame like `Trace.iterations`.

    Columns: iteration, slowest_ns, fastest_ns, slowest_rank, ranks, partial (on any rank).
    """
    frame = iterations.assign(dur_ns=iterations["end_ns"] - iterations["start_ns"])
    frame = frame.sort_values(["iteration", "dur_ns"], kind="stable")
    groups = frame.groupby("iteration", sort=True)
    return pd.DataFrame(
        {
            "slowest_ns": groups["dur_ns"].last(),
            "fastest_ns": groups["dur_ns"].first(),
            "slowest_rank": groups["rank"].last(),
            "ranks": groups.size(),
            "partial": groups["partial"].any(),
        }
    ).reset_index()


ANALYSIS = Analysis(
    label="Step times",
    group="Time",
    title="How long each step takes on each rank",
    function=step_times,
    sentence=sentence,
    chart=Trend(
        "iteration",
        "rank",
        "dur_ns",
        "host",
        "outlier",
        (
            ("partial", "cut by the recording"),
            ("start_up", "holds start-up"),
            ("open", "its end is not recorded"),
        ),
        "Step time",
        "phase",
    ),
    requires=(),
    ignores=("iterations",),
)
