"""The pipeline of a job: its schedule, how much of its time is bubble, and how unequal its stages are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.core.chosen_rows import of_ranks_and_iterations
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.job.clocks import offsets
from hta_widgets.analysis.parallelism.bubbles import ideal_bubble, imbalance, parts
from hta_widgets.analysis.parallelism.dimensions import CONTEXT, EXPERT, PIPELINE, TENSOR
from hta_widgets.analysis.parallelism.grid import Purpose, may_have_pipeline, purposes
from hta_widgets.analysis.parallelism.microbatches import Passes, passes_of
from hta_widgets.analysis.parallelism.partners import shape
from hta_widgets.analysis.parallelism.schedules import UNKNOWN, schedule_of
from hta_widgets.charts.spec import Series, Stack
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import counted, percent
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_COLUMNS = {
    "iteration": "int64", "rank": "int64", "process_group": "str", "stage": "int64", "stages": "int64",
    "schedule": "str", "evidence": "str", "microbatches": "Int64", "chunks": "Int64", "order": "str",
    "step_ns": "int64", "before_ns": "int64", "compute_ns": "int64", "stalled_ns": "int64",
    "warm_up_ns": "int64", "steady_ns": "int64", "drain_ns": "int64", "after_ns": "int64",
    "bubble_pct": "float64", "ideal_bubble_pct": "float64", "imbalance_pct": "float64",
    "passes_ns": "int64", "stage_work_pct": "float64",
}  # fmt: skip
_INSIDE = (TENSOR, CONTEXT, EXPERT)
"""The groups whose communication is part of a pass; gradients of the replicas are reduced beside it."""

_OF_ALL = (
    "allreduce", "allgather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter",
    "barrier",
)  # fmt: skip
"""What all stages take part in, such as the sum of a loss."""

_RECORD_STAGES: Final = (
    "Record with PyTorch 2.4 or newer and torch.profiler.profile(activities=[ProfilerActivity.CPU, "
    "ProfilerActivity.CUDA]), so that record_param_comms names the group of each send and receive."
)
_EARLIER = 0.1
"""The share of a pass by which the next stage may seem to begin before its end, for clocks that differ."""

_RECORD_PARTNERS: Final = (
    "Record with a Kineto that writes the ranks that send and receive (Src Rank, Dst Rank; new in 2026), so "
    "that clocks can be set where they meet."
)
_RECORD_ALL: Final = "Record the same steps on every rank, with one schedule for torch.profiler.profile."


def pipeline(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Which schedule does the pipeline follow, how much of it is bubble, and are its stages equal?

    Stages are the ranks of a pipeline group (`parallelism`). A pass of a microbatch through a stage is what
    it launches in one direction, forward or backward, between what it exchanges with other stages; work of
    less than a twentieth of a usual pass is none. The order of the passes gives the schedule:

    - GPipe: all forwards, then all backwards (Huang et al., NeurIPS 2019).
    - 1F1B: stage s of p runs p - 1 - s forwards ahead, then forward and backward by turns (Narayanan et al.,
      "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021).
    - Interleaved 1F1B: 2 (p - 1 - s) + (v - 1) p ahead, with v chunks of the model per rank (Narayanan et
      al., "Efficient Large-Scale Language Model Training on GPU Clusters", SC 2021).
    - ZB-H1: 1F1B with the gradients of weights apart (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR
      2024).
    - DualPipe: microbatches enter at both ends (DeepSeek-V3 Technical Report, 2024). Its own bubble depends
      on how well passes overlap, and is not given.

    The pipeline begins with the first pass of any stage and ends with the last; clocks of ranks are set by
    the ends of the sends and receives that meet, if these agree on more than noise. A bubble is time in
    between in which the rank runs no pass. With f and b, the mean passes of a chunk in each direction, the
    schedule's own bubble is (p - 1) (f + b), and (p - 1) (f + b - w) of ZB-H1, where b is the gradient of the
    inputs and w that of the weights. What unequal stages cost is found by a replay of the passes in their
    order, each as soon as its input is there: with the durations measured, and with those scaled so that all
    stages have the mean.

    Args:
        trace: the job.
        scope: ranks, whose rows are returned; iterations.

    Returns:
        One row per complete step and rank of a pipeline, by iteration, process group, stage. Columns:
        iteration, rank (int64), process_group (str), stage (int64, from 0), stages (int64), schedule (str:
        "GPipe", "1F1B", "interleaved 1F1B", "zero bubble (ZB-H1)", "DualPipe" or "unknown"), evidence (str,
        in words; of "unknown" the reason), microbatches, chunks (Int64, of a step, and per rank; NA if
        unknown), order (str, F and B of the rank's passes), step_ns (int64 ns, of the rank, from where its
        step begins or its last one ended, to the end of the step and of the pipeline; what follows adds up to
        it:), before_ns (until the pipeline begins), compute_ns (kernels of passes), stalled_ns (in passes
        without a kernel that computes: collectives of the stage, late launches), warm_up_ns, steady_ns,
        drain_ns (bubble before the first backward pass, in between, and after the last forward pass),
        after_ns (all int64 ns), bubble_pct (float64, % of the pipeline's time), ideal_bubble_pct (float64,
        that of the schedule with equal stages and nothing else, NaN if unknown and of DualPipe),
        imbalance_pct (float64, % of the pipeline's time that equal stages would save, NaN likewise),
        passes_ns (int64 ns, of all passes of the rank), stage_work_pct (float64, that in % of the mean over
        the stages).

    Raises:
        MissingDataError: no process group is a pipeline, its stages were not all recorded, nothing that they
            exchange was, no backward work is known, or clocks differ so much that a stage seems to begin
            before the one before it.
    """
    return of_ranks_and_iterations(_answer(trace), trace, scope or Scope())


@memoize_per_rank()
def _answer(trace: Trace) -> pd.DataFrame:
    """`pipeline` of the whole job."""
    stages = pipelines(trace)
    rows = [row for purpose, passes in stages for row in _of_group(trace, purpose, passes)]
    if not rows and any(steps_of(passes) for _, passes in stages):
        raise MissingDataError(
            "times of stages that agree", _RECORD_PARTNERS, "stages seem to begin before their input is there"
        )
    if not rows:
        raise MissingDataError("passes of microbatches", RECORD_DEVICE, "no backward work can be identified")
    frame = typed_frame(rows, _COLUMNS)
    return frame.sort_values(["iteration", "process_group", "stage"], kind="stable", ignore_index=True)


@memoize_per_rank()
def pipelines(trace: Trace) -> list[tuple[Purpose, list[dict[int, Passes]]]]:
    """Each pipeline of the job, and the passes of each of its stages by step.

    Raises:
        MissingDataError: as `pipeline`, where there is none, or not all stages and exchanges were recorded.
    """
    known_purposes = purposes(trace, Scope()) if may_have_pipeline(trace) else ()
    found = [purpose for purpose in known_purposes if purpose.dimension == PIPELINE]
    if not found:
        raise MissingDataError("pipeline stages", _RECORD_STAGES, "no process group is that of a pipeline")
    exchanging = [purpose for purpose in _joined(found) if len(_exchanged(purpose))]
    if not exchanging:
        raise MissingDataError("sends and receives between stages", RECORD_DEVICE)
    whole = [each for each in exchanging if each.order and each.group.ranks == tuple(sorted(each.order))]
    if not whole:
        raise MissingDataError("every stage of a pipeline", _RECORD_ALL)
    inside = {
        rank: {
            each.group.name
            for each in known_purposes
            if each.dimension in _INSIDE and rank in each.group.ranks
        }
        for rank in trace.ranks
    }
    return [(purpose, _stages(trace, purpose, inside)) for purpose in whole]


def _joined(found: Sequence[Purpose]) -> list[Purpose]:
    """Pipelines whose neighbours have a group for each two, as those of DeepSpeed, as one each."""
    joined, pairs = (
        [each for each in found if each.group.size > 2],
        [each for each in found if each.group.size == 2],
    )
    while pairs:
        chain = [pairs.pop(0)]
        ranks = {*chain[0].group.ranks}
        while beside := next((each for each in pairs if ranks & {*each.group.ranks}), None):
            pairs.remove(beside)
            chain.append(beside)
            ranks |= {*beside.group.ranks}
        joined.append(_whole(chain, tuple(sorted(ranks))) if len(chain) > 1 else chain[0])
    return joined


def _whole(chain: Sequence[Purpose], ranks: tuple[int, ...]) -> Purpose:
    traffic = pd.concat([each.group.traffic for each in chain])
    traffic = traffic.sort_values(["rank", "start_ns", "event_id"], kind="stable", ignore_index=True)
    group = replace(chain[0].group, size=len(ranks), members=ranks, ranks=ranks, traffic=traffic)
    return chain[0]._replace(group=group, order=shape(group)[1])


def _exchanged(purpose: Purpose) -> pd.DataFrame:
    """What stages send each other; batched sends and receives have names of their own."""
    traffic = purpose.group.traffic
    return traffic[~traffic["collective"].isin(_OF_ALL)]


def _stages(trace: Trace, purpose: Purpose, inside: Mapping[int, set[str]]) -> list[dict[int, Passes]]:
    """The passes of each stage of a pipeline, by step."""
    found, traffic = collectives(trace), _exchanged(purpose)
    stages = []
    for rank in purpose.order:
        checkpoint()
        of_rank = found[found["rank"] == rank]
        within = of_rank.loc[of_rank["process_group"].isin(inside[rank]), "event_id"].to_numpy(np.int64)
        exchanged = traffic.loc[traffic["rank"] == rank, ["event_id", "collective"]]
        stages.append(passes_of(trace.rank(rank), exchanged, within))
    return stages


def steps_of(stages: Sequence[Mapping[int, Passes]]) -> list[int]:
    """The steps that all stages have passes of."""
    return sorted(set.intersection(*(set(passes) for passes in stages)))


def _of_group(trace: Trace, purpose: Purpose, stages: Sequence[Mapping[int, Passes]]) -> list[dict[str, Any]]:
    """The rows of one pipeline."""
    found = collectives(trace)
    own = found[found["rank"].isin(purpose.order) & found["collective"].isin(("send", "recv"))]
    own = own[own["process_group"] == purpose.group.name]
    rows: list[dict[str, Any]] = []
    ended: dict[int, int] = {}
    for step in steps_of(stages):
        met = own[(own["iteration"] == step) & own["match"].notna()]
        columns = (met[name].to_numpy(np.int64) for name in ("rank", "end_ns", "match"))
        ahead = offsets(*columns) if len(met) else {}
        rows += _of_step(trace, purpose, step, [passes[step] for passes in stages], ahead, ended)
    return rows


def _of_step(
    trace: Trace,
    purpose: Purpose,
    step: int,
    stages: Sequence[Passes],
    ahead: Mapping[int, int],
    ended: dict[int, int],
) -> list[dict[str, Any]]:
    """The rows of one step, which begins no earlier than the last one of each rank `ended`."""
    shifts = [ahead.get(rank, 0) for rank in purpose.order]
    begin = min(int(each.start.min()) - shift for each, shift in zip(stages, shifts, strict=True))
    end = max(int(each.end.max()) - shift for each, shift in zip(stages, shifts, strict=True))
    if not _agree(stages, shifts):
        return []
    schedule = schedule_of(stages)
    ideal, unequal = ideal_bubble(schedule, stages), imbalance(schedule, stages)
    passes_ns = [int((each.end - each.start).sum()) for each in stages]
    mean = sum(passes_ns) / len(stages)
    rows = []
    for stage, (rank, passes, shift) in enumerate(zip(purpose.order, stages, shifts, strict=True)):
        frame = trace.rank(rank).iterations
        own = frame.loc[frame["iteration"] == step].iloc[0]
        started = max(int(own["start_ns"]), ended.get(rank, int(own["start_ns"])))
        part = parts(passes, (started, int(own["end_ns"])), (begin + shift, end + shift))
        ended[rank] = end + shift + part.after
        rows.append(
            {
                "iteration": step, "rank": rank, "process_group": purpose.group.name, "stage": stage,
                "stages": len(stages), "schedule": schedule.name, "evidence": schedule.words,
                "microbatches": schedule.microbatches or pd.NA, "chunks": schedule.chunks or pd.NA,
                "order": passes.order, "step_ns": part.before + part.pipeline + part.after,
                "before_ns": part.before, "compute_ns": part.compute, "stalled_ns": part.stalled,
                "warm_up_ns": part.warm_up, "steady_ns": part.steady, "drain_ns": part.drain,
                "after_ns": part.after, "bubble_pct": 100 * part.bubble / part.pipeline,
                "ideal_bubble_pct": 100 * ideal / (mean + ideal),
                "imbalance_pct": 100 * unequal / part.pipeline, "passes_ns": passes_ns[stage],
                "stage_work_pct": 100 * passes_ns[stage] / mean,
            }
        )  # fmt: skip
    return rows


def _agree(stages: Sequence[Passes], shifts: Sequence[int]) -> bool:
    """Whether each stage begins its first pass when the one before has ended its own, or a little earlier.

    Unless microbatches enter at both ends. Clocks that differ by more than that break it, and then nothing
    that compares stages can be told.
    """
    if stages[-1].enters:
        return True
    first = [
        (int(each.start[0]) - shift, int(each.end[0]) - shift)
        for each, shift in zip(stages, shifts, strict=True)
    ]
    return all(after[0] >= end - _EARLIER * (end - begin) for (begin, end), after in pairwise(first))


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `pipeline` in words."""
    if frame.empty:
        return "No complete step of a pipeline lies in the selection."
    stages = counted(int(frame["stages"].max()), "stage")
    names = frame["schedule"].unique()
    measured = percent(_mean(frame, "bubble_pct"))
    if UNKNOWN in names:
        reason = frame.loc[frame["schedule"] == UNKNOWN, "evidence"].iloc[0]
        return f"The schedule of the {stages} is unknown: {reason}. Bubbles take {measured} of its time."
    chunks = int(frame["chunks"].max())
    microbatches = " or ".join(map(str, sorted(frame["microbatches"].unique())))
    ideal, unequal = (_mean(frame, name) for name in ("ideal_bubble_pct", "imbalance_pct"))
    said = [f"{' and '.join(names)} over {stages} with {microbatches} microbatches."]
    if chunks > 1:
        said.append(f"Each rank holds {chunks} chunks.")
    said.append(f"Bubbles take {measured} of the pipeline's time.")
    if not np.isnan(ideal):
        said.append(f"The schedule itself has {percent(ideal)}.")
    if unequal >= _TOLD:
        work = frame.groupby("stage")["stage_work_pct"].mean()
        slowest = f"stage {work.idxmax()} takes {work.max() / 100:.2f} times the mean"
        said.append(f"Equal stages would save {percent(unequal)}: {slowest}.")
    return " ".join(said)


_TOLD = 1.0
"""% of the pipeline's time from which the sentence speaks of unequal stages."""


def _mean(frame: pd.DataFrame, column: str) -> float:
    """Over ranks and steps, each by the time of its pipeline."""
    weight = frame["step_ns"] - frame["before_ns"] - frame["after_ns"]
    return float(np.average(frame[column], weights=weight))


ANALYSIS = Analysis(
    label="Pipeline",
    group="Communication",
    title="The pipeline's schedule, its bubbles, and its stages",
    function=pipeline,
    sentence=sentence,
    chart=Stack(
        (
            Series("compute_ns", "Compute", "compute"),
            Series("stalled_ns", "In a pass, not computing", "communication"),
            Series("warm_up_ns", "Bubble: warm-up", "idle", "/"),
            Series("steady_ns", "Bubble: steady", "idle", "x"),
            Series("drain_ns", "Bubble: drain", "idle", "."),
            Series("before_ns", "Before the pipeline", "host"),
            Series("after_ns", "After the pipeline", "host", "/"),
        ),
        "step_ns",
        ("iteration", "stage", "rank"),
    ),
    requires=(
        "second rank",
        "communication kernels",
        "process groups",
        "pipeline stages",
        "sends and receives between stages",
        "every stage of a pipeline",
        "passes of microbatches",
        "times of stages that agree",
    ),
)
