"""What stragglers cost a job, and who and what causes it."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.job.causes import MORE_WORK, SLOW_LINK, SLOWER_KERNELS, UNKNOWN, Cause, cause_of
from hta_widgets.analysis.job.culprits import Culprit, culprit
from hta_widgets.analysis.job.ideal import COMMUNICATION
from hta_widgets.analysis.job.model import HOST, JobModel
from hta_widgets.analysis.job.trusted import trusted_model
from hta_widgets.analysis.parallelism.coordinates import IN_WORDS
from hta_widgets.analysis.parallelism.experts import fuller
from hta_widgets.arrays import Float64
from hta_widgets.formatting import capitalised
from hta_widgets.frames import typed_frame
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

NONE = "none"
IMBALANCE = "no single rank: sequence imbalance"
NOBODY = "no single rank"
NOT_RECORDED = "a rank that was not recorded"

# Names with less of the time than this are one row.
_RARE = 0.005

_COLUMNS = {
    "scope": "str", "key": "str", "place": "str", "slowdown": "float64", "cost_ns": "int64", "cause": "str",
    "evidence": "str", "culprit": "bool", "slowdown_low": "float64", "slowdown_high": "float64",
    "time_ns": "int64", "model_error_pct": "float64",
}  # fmt: skip


By = Literal["all", "operation", "rank", "stage", "replica", "tensor", "context", "iteration"]


@kept()
def slowdown(trace: Trace, scope: Scope | None = None, by: By = "all") -> pd.DataFrame:
    """What do stragglers cost, who are they, and why are they slow?

    The job is replayed: operations follow the ones they waited for, and ranks meet at collectives and at
    sends and receives. T is the time of a step in that replay, T_ideal its time if every operation took its
    ideal time: computation and copies an even split over ranks and steps of what is spent on their name, in
    the proportions in which ranks that do the same share it out within a step; communication the median of
    the same transfers (without waiting for other ranks), waits for the host the lower median at the same
    place. The slowdown of the job is T / T_ideal; of a part (an operation, rank, stage, replica) it is the
    time with that part as recorded and the rest ideal, by T_ideal; of an iteration its own T / T_ideal. What
    a part costs is what a step gains if only that part is repaired. Parts do not add up, and may be below 1:
    the ideal is a mean, so a faster part gets slower.

    No clock is compared. Where partners, stages or the order are not recorded, they are found from what time
    never contradicts; the tolerance for that is derived from the recording. The culprits are the fewest
    ranks, or the stage, whose repair wins half of the loss; of what they do, that whose repair wins most is
    the cause.

    Source: "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025).

    Args:
        trace: the job.
        scope: ranks and iterations to look at; default all that the ranks have in common. Its window, streams
            and names change nothing: a step is replayed as a whole.
        by: besides the job's row only those of this scope; default all.

    Returns:
        One row for the job, then rows by operation, by rank, by what the job is split along (stage, replica,
        tensor rank, context rank, as in `parallelism` where it knows), and by iteration. Columns: scope (str:
        job, operation, rank, stage, replica, tensor, context or iteration), key (str: the operation's name or
        the number; "all" for the job), place (str, of ranks: where it stands, such as "stage 1, replica 2";
        "" elsewhere), slowdown (float64), cost_ns (int64 ns per step), cause (str: "same kernels
        slower", "more work", "host late", "copies", "slow link" or "unknown" of culprits; for the job that of
        its culprit, "none", "a rank that was not recorded", or "no single rank", where work varies from one
        microbatch to the next with ": sequence imbalance"; "" elsewhere), evidence (str), culprit (bool),
        slowdown_low, slowdown_high (float64, of the job: what it may be where the recording leaves the order
        open or ranks are missing; NaN elsewhere), time_ns (int64 ns, of the job and iterations: T; else with
        the part as recorded and the rest ideal), model_error_pct (float64, of the job and ranks: by how much
        the replay is longer than the recording; NaN elsewhere).

    Raises:
        MissingDataError: fewer than two ranks, no common step, ranks that do not meet, or an order of
            operations that does not explain the recording.
        ValueError: `by` is none of these.
    """
    if by not in get_args(By):
        raise ValueError(f"by must be one of {', '.join(get_args(By))}, not {by!r}")
    scope = scope or Scope()
    frame, _ = _answer(trace, scope.ranks, scope.iterations)
    return frame.copy() if by == "all" else frame[frame["scope"].isin(("job", by))].reset_index(drop=True)


def judged(trace: Trace, scope: Scope) -> tuple[Culprit, pd.DataFrame]:
    """Who slows the job, and the answer of `slowdown` that says so; raises what that raises."""
    frame, found = _answer(trace, scope.ranks, scope.iterations)
    return found, frame


@memoize_per_rank(last=2)
def _answer(
    trace: Trace, ranks: tuple[int, ...] | None, iterations: tuple[int, ...] | None
) -> tuple[pd.DataFrame, Culprit]:
    """`slowdown` with the rows of all scopes, and who is named there."""
    model = trusted_model(trace, ranks, iterations)
    total, least = model.total, model.least
    rows = _parts(model)
    found = culprit(model)
    if found.kind in ("ranks", "place"):
        cause = cause_of(model, found.ranks, IN_WORDS.get(found.scope, found.scope))
        tokens = fuller(trace, found.ranks, total - least) if cause.cause == SLOWER_KERNELS else 1.0
        if tokens > 1.0:
            text = f"experts get {tokens:.2f} times the mean of tokens, and take no longer for each"
            cause = Cause(MORE_WORK, text)
    else:
        cause = Cause(*_without_ranks(found, model, trace.job_size))
    low, high = model.between
    who = _who(model, found)
    evidence = f"{who}. {capitalised(cause.evidence)}" if who else cause.evidence
    job = {
        "scope": "job", "key": "all", "place": "", "slowdown": total / least, "cost_ns": round(total - least),
        "cause": cause.cause, "evidence": evidence, "culprit": False,
        "slowdown_low": low, "slowdown_high": high, "time_ns": round(total),
        "model_error_pct": 100 * (total / model.measured - 1),
    }  # fmt: skip
    named = _named(found)
    for row in rows:
        row["culprit"] = (row["scope"], row["key"]) in named
        row["cause"], row["evidence"] = (cause.cause, cause.evidence) if row["culprit"] else ("", "")
        rank = int(row["key"]) if row["scope"] == "rank" else None
        row["place"] = "" if rank is None else model.places.told(rank)
        row["model_error_pct"] = None if rank is None else 100 * model.model_error[rank]
    return typed_frame([job, *rows], _COLUMNS), found


def _parts(model: JobModel) -> list[dict[str, Any]]:
    """The rows of all parts: scope, key, slowdown, cost_ns, time_ns."""
    ops = model.ops
    labels = {
        "operation": _operation(model),
        "rank": ops["rank"],
        **{scope: ops["rank"].map(getattr(model.places, scope)) for scope in model.places.split},
    }
    rows, replayed = list[dict[str, Any]](), dict[bytes, tuple[Float64, Float64]]()
    for scope, label in labels.items():
        code, keys = pd.factorize(label, sort=True)
        same = code.tobytes()  # without a pipeline each rank is a replica
        if same not in replayed:
            chosen = np.arange(len(keys))
            alone = model.net.with_other(model.ideal, model.taken, code, chosen).mean(axis=1)
            without = model.net.with_other(model.taken, model.ideal, code, chosen).mean(axis=1)
            replayed[same] = alone, model.total - without
        alone, cost = replayed[same]
        rows += _rows(scope, keys, alone, model.least, cost)
    of_step = model.net.step_times(model.taken).astype(np.float64)
    ideal = model.net.step_times(model.ideal)
    numbers = ops.groupby("step")["iteration"].first()
    return rows + _rows("iteration", numbers.to_numpy(), of_step, model.least, of_step - ideal)


def _rows(
    scope: str,
    keys: npt.ArrayLike,
    time: Float64,
    least: float,
    cost: Float64,
) -> list[dict[str, Any]]:
    values = (
        np.asarray(keys).tolist(),
        (time / least).tolist(),
        np.rint(cost).tolist(),
        np.rint(time).tolist(),
    )
    return [
        {"scope": scope, "key": str(key), "slowdown": times, "cost_ns": int(cost_ns), "time_ns": int(time_ns)}
        for key, times, cost_ns, time_ns in zip(*values, strict=True)
    ]


def _operation(model: JobModel) -> pd.Series:
    """The operation that each row of the model belongs to; rare ones are "other"."""
    ops = model.ops
    name = ops["name"].where(~ops["kind"].isin(COMMUNICATION), ops["collective"])
    name = name.fillna("unknown")
    share = pd.Series(model.taken).groupby(name).sum() / max(int(model.taken.sum()), 1)
    common = set(share.index[share >= _RARE]) | set(name[ops["kind"].isin((*COMMUNICATION, HOST))].unique())
    return name.where(name.isin(common), "other")


def _named(found: Culprit) -> set[tuple[str, str]]:
    """The rows that are culprits."""
    if found.kind == "place":
        return {(found.scope, str(found.key))}
    return {("rank", str(rank)) for rank in found.ranks}


def _who(model: JobModel, found: Culprit) -> str:
    if not found.ranks:
        return ""
    numbers = ", ".join(map(str, found.ranks))
    where = model.places.told(found.ranks[0])
    if found.kind == "place":
        who = f"{IN_WORDS.get(found.scope, found.scope)} {found.key} (ranks {numbers})"
    elif len(found.ranks) > 1:
        who = f"ranks {numbers}"
    else:
        who = f"rank {numbers} ({where})" if where else f"rank {numbers}"
    its = "Its" if len(found.ranks) == 1 or found.kind == "place" else "Their"
    return f"{who}. {its} repair wins {_won(found)} of the loss"


def _won(found: Culprit) -> str:
    """How much a repair wins: as others then are faster than on average, it may win more than the loss."""
    return f"{100 * found.won:.0f} %" if found.won < 1.0 else "all"


def _without_ranks(found: Culprit, model: JobModel, job_size: int) -> tuple[str, str]:
    """Cause and evidence where no rank's own work is to blame."""
    ranks = model.ops["rank"].nunique()
    if found.kind == "unknown" and model.missing and not found.doubtful:
        text = f"none of the {ranks} ranks that were recorded makes half of the loss"
        return UNKNOWN, f"{text}, and {model.missing} of {job_size} were not"
    if found.kind == "unknown" or (found.kind == "missing" and ranks == job_size):
        part = 100 * model.in_doubt / model.total
        text = "waiting for ranks or partners that the recording does not show"
        return UNKNOWN, f"up to {part:.0f} % of a step may be {text}"
    if found.kind == "none":
        return NONE, "a step takes hardly longer than with all operations at their ideal times"
    if found.kind == "missing":
        return (
            NOT_RECORDED,
            f"waiting for ranks that were not recorded is {_won(found)} of the loss",
        )
    if found.kind == "communication":
        return SLOW_LINK, f"repairing all transfers wins {_won(found)} of the loss"
    text = f"no few of the {ranks} ranks make half of the loss"
    if found.varies == "work":
        return IMBALANCE, f"{text}; work varies from one microbatch to the next"
    return NOBODY, f"{text}; hosts are late now and then" if found.varies == "hosts" else text
