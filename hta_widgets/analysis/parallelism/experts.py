"""How evenly tokens are spread over the ranks of the experts, and what it costs that they are not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.core.chosen_rows import of_ranks_and_iterations
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import computing
from hta_widgets.analysis.parallelism.exchanges import exchanges
from hta_widgets.analysis.parallelism.grid import groups_of_experts
from hta_widgets.analysis.parallelism.process_groups import ProcessGroup
from hta_widgets.charts.spec import Heat
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted, duration
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_COLUMNS = {
    "iteration": "int64", "process_group": "str", "exchange": "int64", "phase": "str", "rank": "int64",
    "size": "int64", "ranks_recorded": "int64", "tokens": "Int64", "elements": "Int64",
    "load_pct": "float64", "start_ns": "int64", "expert_ns": "int64", "excess_ns": "int64",
    "wait_ns": "Int64",
}  # fmt: skip
_MOSTLY = 0.5
_AS_FAST = 1.1
"""Experts that take at most this many times as long for a token as others are as fast."""

_RECORD_SPLITS: Final = (
    "Record with PyTorch 2.2 or newer and torch.profiler.profile(activities=[ProfilerActivity.CPU, "
    "ProfilerActivity.CUDA]): its record_param_comms events carry the split sizes of all_to_all_single. "
    "Kernels of other libraries, such as DeepEP, carry none."
)
_RECORD_ALL: Final = "Record the same steps on every rank, with one schedule for torch.profiler.profile."


def expert_balance(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Do the ranks of the experts get equally many tokens, and what does it cost that they do not?

    An exchange is an all-to-all that sends tokens to the ranks of their experts (dispatch) and the one that
    sends the results back (combine), with the same splits the other way round; in backward gradients take the
    same way. The dispatch delivers what the experts of a rank compute on: a token that goes to two experts
    counts twice. Against the mean over the recorded ranks of the group that is the rank's load. If all
    experts are padded to one capacity, the splits are equal, and hide it.

    Args:
        trace: the job.
        scope: ranks, whose rows are returned; iterations.

    Returns:
        One row per exchange of complete steps and rank, by process group, exchange, rank. Columns: iteration
        (int64), process_group (str), exchange (int64, numbered from 0 in each group, over all steps), phase
        (str, "forward" or "backward"), rank, size, ranks_recorded (int64, ranks of the group), tokens (Int64,
        rows received; NA where PyTorch cut the list, after 30 ranks), elements (Int64, the same in elements),
        load_pct (float64, elements in % of the mean of the recorded ranks), start_ns (int64 ns, of the
        dispatch), expert_ns (int64 ns, time with kernels that compute, between dispatch and combine),
        excess_ns (int64 ns, that beyond the mean of the recorded ranks, rounded; negative below it), wait_ns
        (Int64 ns, of the rank in the combine for the last of the group: its duration beyond the shortest; NA
        where the kernels of the ranks are not matched).

    Raises:
        MissingDataError: no process group is that of experts, or no split sizes of tokens were recorded, or
            not for the same exchanges of two ranks.
    """
    return of_ranks_and_iterations(_answer(trace), trace, scope or Scope())


@memoize_per_rank()
def _answer(trace: Trace) -> pd.DataFrame:
    """`expert_balance` of the whole job."""
    groups = groups_of_experts(trace)
    if not groups:
        raise MissingDataError(
            "expert parallelism", _RECORD_SPLITS, "no process group is described or used as that of experts"
        )
    found = [(group, exchanges(trace, group)) for group in groups]
    if not any(len(pairs) for _, pairs in found):
        raise MissingDataError("split sizes of tokens", _RECORD_SPLITS)
    times = collectives(trace).set_index(["rank", "event_id"])[
        ["start_ns", "end_ns", "dur_ns", "transfer_ns", "match"]
    ]
    parts = [_of_group(trace, group, pairs, times) for group, pairs in found if len(set(pairs["rank"])) > 1]
    parts = [part for part in parts if len(part)]
    if not parts:
        raise MissingDataError("exchanges of tokens on two ranks", _RECORD_ALL)
    frame = pd.concat(parts, ignore_index=True)
    return frame.sort_values(["process_group", "exchange", "rank"], ignore_index=True)


def fuller(trace: Trace, ranks: Collection[int], cost_ns: float) -> float:
    """How many times the mean of tokens the experts of ranks get, if that is what these ranks cost; else 1.

    So it is if their experts compute longer than the mean by half of the cost or more in a step, but take no
    longer for a token than those of the other ranks.
    """
    try:
        frame = _answer(trace)
    except MissingDataError:
        return 1.0
    mine = frame["rank"].isin(ranks)
    if not mine.any() or mine.all():
        return 1.0
    of_step = frame[mine].groupby(["iteration", "rank"])["excess_ns"].sum()
    each, others = (
        float(rows["expert_ns"].sum()) / max(float(rows["elements"].sum()), 1.0)
        for rows in (frame[mine], frame[~mine])
    )
    explained = of_step.mean() >= _MOSTLY * cost_ns and each <= _AS_FAST * others
    return float(frame.loc[mine, "load_pct"].mean()) / 100.0 if explained else 1.0


def _of_group(trace: Trace, group: ProcessGroup, pairs: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    """The rows of one group: of the steps in which all of its recorded ranks exchange equally often."""
    ranks = pairs["rank"].nunique()
    count = pairs[_complete(trace, pairs)].groupby(["iteration", "rank"]).size().unstack()  # noqa: PD010
    equal = count.notna().all(axis=1) & (count.max(axis=1) == count.min(axis=1))
    whole = pairs[pairs["iteration"].isin(count.index[equal & (count.shape[1] == ranks)])]
    whole = whole.reset_index(drop=True)
    whole["nth"] = whole.groupby(["rank", "iteration"]).cumcount()
    dispatch, combine = (
        times.loc[list(zip(whole["rank"], whole[side], strict=True))].reset_index(drop=True)
        for side in ("dispatch_id", "combine_id")
    )
    exchange = whole.groupby(["iteration", "nth"], sort=True).ngroup()
    expert = _computing(trace, whole["rank"], dispatch["end_ns"], combine["start_ns"])
    waited = (combine["dur_ns"] - combine["transfer_ns"]).astype("Int64")
    return pd.DataFrame(
        {
            "iteration": whole["iteration"], "process_group": group.name, "exchange": exchange,
            "phase": np.where(whole["backward"], "backward", "forward"), "rank": whole["rank"],
            "size": group.size, "ranks_recorded": ranks, "tokens": whole["tokens"],
            "elements": whole["elements"],
            "load_pct": 100.0 * whole["elements"].astype("float64") / _mean(whole["elements"], exchange),
            "start_ns": dispatch["start_ns"], "expert_ns": expert,
            "excess_ns": (expert - _mean(expert, exchange)).round().astype("int64"),
            "wait_ns": waited.where(combine["match"].notna()),
        }
    ).astype(_COLUMNS)  # fmt: skip


def _mean(values: pd.Series, by: pd.Series) -> pd.Series:
    mean: pd.Series = values.astype("float64").groupby(by).transform("mean")
    return mean.where(mean > 0, 1.0)


def _complete(trace: Trace, pairs: pd.DataFrame) -> pd.Series:
    """Which pairs belong to complete steps."""
    kept = pd.Series(False, pairs.index)
    for rank, rows in pairs.groupby("rank"):
        frame = trace.rank(int(str(rank))).iterations
        kept[rows.index] = rows["iteration"].isin(frame.loc[~frame["partial"], "iteration"])
    return kept


def _computing(trace: Trace, rank: pd.Series, begin: pd.Series, end: pd.Series) -> pd.Series:
    """int64 ns in which a rank's kernels compute, from `begin` to `end` of each row."""
    found = pd.Series(0, rank.index, "int64")
    for number, rows in rank.groupby(rank):
        checkpoint()
        windows = np.stack([begin[rows.index], np.maximum(begin, end)[rows.index]], axis=1)
        found[rows.index] = computing(trace.rank(int(str(number)))).within_each(windows)
    return found


_EVEN = 105.0
"""% of the mean up to which the fullest rank of an exchange is called balanced."""


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `expert_balance` in words."""
    if frame.empty:
        return "No exchange of tokens lies in the selection."
    keys = ["process_group", "exchange"]
    fullest = frame.loc[frame.groupby(keys)["load_pct"].idxmax()]
    mean = fullest["load_pct"].mean()
    text = (
        f"In {counted(len(fullest), 'exchange')} of tokens the fullest rank gets {mean / 100:.2f} times the "
        f"mean of the recorded ranks, on average"
    )
    if mean <= _EVEN:
        return f"{text}: the experts are balanced."
    by_group = fullest.groupby("process_group")["rank"].agg(lambda ranks: ranks.mode().iloc[0])
    same = fullest["rank"].eq(fullest["process_group"].map(by_group)).mean()
    if same > _MOSTLY:
        ranks = sorted(by_group.unique().tolist())
        shown = ", ".join(map(str, ranks[:_SHOWN])) + (", ..." if len(ranks) > _SHOWN else "")
        who = f"mostly rank {shown}" if len(ranks) == 1 else f"mostly ranks {shown}, each in its group"
    else:
        who = "not mostly the same rank"
    steps = frame["iteration"].nunique()
    excess = frame.groupby(keys)["excess_ns"].max().groupby("process_group").sum().max() / steps
    saved = duration(round(excess))
    text = f"{text} ({who}). Equal loads would save a group at most {saved} of computing per step"
    waits = frame["wait_ns"].dropna()
    if len(waits):
        waited = int(waits.sum()) / frame["rank"].nunique() / steps
        text += f". A rank waits {duration(round(waited))} per step for the last one's results, on average"
    return f"{text}."


_SHOWN = 4


ANALYSIS = Analysis(
    label="Experts",
    group="Communication",
    title="How evenly tokens are spread over the ranks of experts",
    function=expert_balance,
    sentence=sentence,
    chart=Heat("exchange", "rank", "load_pct", "communication", measure="Tokens, of the mean", contrast=True),
    requires=(
        "second rank",
        "communication kernels",
        "process groups",
        "expert parallelism",
        "split sizes of tokens",
        "exchanges of tokens on two ranks",
    ),
)
