"""Why a rank computes longer though its device is no slower: it has more requests, or fuller experts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.serving_advice import option
from hta_widgets.analysis.findings.serving_ranks import exchanges, of_ranks, without_steps
from hta_widgets.analysis.findings.workloads import Comparison
from hta_widgets.analysis.parallelism.expert_work import expert_rows
from hta_widgets.analysis.parallelism.experts import expert_balance
from hta_widgets.analysis.serving.steps import in_scope
from hta_widgets.analysis.serving.table import steps_of
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised, ranks_in_words

MORE: Final = 1.1
"""So many times as much as others have is more work."""
# All else is much of the time, and takes longer by at most this part of what experts take longer by.
_TELLING, _ALIKE = 0.1, 0.2
_DISTRIBUTE: Final = (
    "Spread requests evenly over the ranks that are data-parallel, by their tokens rather than in "
    "turn{option}."
)

BALANCE: Final = (
    "Give the ranks equal work: batches bucketed by length, a capacity for what a rank may get, or other "
    "boundaries between pipeline stages."
)


class MoreWork(NamedTuple):
    """What ranks have more of than the others.

    of_requests: their batches are larger; else their experts get more tokens. text: sentences about that.
    """

    of_requests: bool
    text: Text
    advice: str


@memoize_per_rank(last=8)
def more_work(inputs: Inputs, ranks: tuple[int, ...]) -> MoreWork | None:
    """Why these ranks compute longer than the others; None where that is not their work, or not known."""
    return _of_requests(inputs, ranks) or _of_experts(inputs, ranks)


def _of_requests(inputs: Inputs, ranks: tuple[int, ...]) -> MoreWork | None:
    found = {rank: each for rank, each in of_ranks(inputs, _batches).items() if each}
    mine, others = (
        {rank: each for rank, each in found.items() if (rank in ranks) is own} for own in (True, False)
    )
    nameless = without_steps(inputs)
    if set(mine) != set(ranks) or not (others or nameless):
        return None
    own = sum(each.tokens for each in mine.values()) / len(mine)
    theirs, dummies = NOTHING_SAID, NOTHING_SAID
    if others:
        mean = sum(each.tokens for each in others.values()) / len(others)
        if own < MORE * mean:
            return None
        theirs = say(
            ", the others {theirs} on average",
            theirs=Claim("tokens_per_step", mean, "count", "", tuple(others), {}, f"{mean:.3g}"),
        )
        idle = max(others, key=lambda rank: (others[rank].empty, -rank))
        if others[idle].empty:
            dummies = say(
                " {idle} has no requests in {empty} of {steps} steps: it computes only since all ranks "
                "exchange tokens of experts.",
                idle=Claim("most_without_requests", (idle,), "ranks", "", tuple(others), {}, f"Rank {idle}"),
                empty=Claim("steps_without_requests", others[idle].empty, "count", ranks=(idle,)),
                steps=Claim("steps_of_server", others[idle].steps, "count", ranks=(idle,)),
            )
    if nameless:
        dummies += say(
            " {who} name{s} no step: likely dummy batches, computed only since all ranks exchange tokens of "
            "experts.",
            who=Claim("ranks_without_steps", nameless, "ranks", shown=capitalised(ranks_in_words(nameless))),
            s="s" * (len(nameless) == 1),
        )
    text = say(
        " {who} compute{s} {own} tokens per step{theirs}.{dummies}",
        who=Claim("late_ranks", ranks, "ranks", shown=capitalised(ranks_in_words(ranks))),
        s="s" * (len(ranks) == 1),
        own=Claim("tokens_per_step", own, "count", "", tuple(mine), {}, f"{own:.3g}"),
        theirs=theirs,
        dummies=dummies,
    )
    return MoreWork(True, text, _DISTRIBUTE.format(option=option(inputs, "requests")))


def _of_experts(inputs: Inputs, ranks: tuple[int, ...]) -> MoreWork | None:
    if _get_more_tokens(inputs, ranks):
        return MoreWork(False, NOTHING_SAID, spread_experts(inputs, "Its experts"))
    if not all(inputs.recorded(rank, exchanges) for rank in ranks):
        return None
    times = {rank: inputs.of(rank, _times).sum() for rank in inputs.judged_ns}
    table = pd.DataFrame(times, index=["experts", "rest"]).T
    mine, others = table[table.index.isin(ranks)].mean(), table[~table.index.isin(ranks)].median()
    if not others["experts"] > 0 or not others["rest"] >= _TELLING * others.sum():
        return None
    ratio = mine["experts"] / others["experts"]
    if ratio < MORE or mine["rest"] > (1 + _ALIKE * (ratio - 1)) * others["rest"]:
        return None
    about = {"others": tuple(rank for rank in times if rank not in ranks)}
    text = say(
        " Only kernels of experts take longer, {ratio} times as long: likely they get more tokens.",
        ratio=Claim("experts_times", float(ratio), "x", "", ranks, about, f"{ratio:.3g}"),
    )
    return MoreWork(False, text, spread_experts(inputs, "Its experts"))


def by_kernels(inputs: Inputs, ranks: Collection[int]) -> str:
    """What to do about ranks that compute longer: whether equal kernels are slower, or there are more."""
    work = inputs.workloads
    compared = [work.compared(rank) for rank in ranks if rank in work.ranks and len(work.ranks) > 1]
    one = max(compared, key=lambda each: each.slower_ns + each.more_ns, default=None)
    if one is None or not one.slower_ns + one.more_ns:
        return ""
    return advice_for_slower(inputs, one) if one.slower_ns >= one.more_ns else BALANCE


def advice_for_slower(inputs: Inputs, one: Comparison) -> str:
    """What to look at where a rank's kernels take longer than equal ones of the others."""
    if one.few:
        return (
            "Compare the data of the kernels that take longer (lengths of sequences, routing of tokens, rows "
            "of embeddings), then the devices."
        )
    by = f" ({inputs.accelerator.monitor})" if inputs.accelerator.monitor else ""
    return (
        f"If shapes are equal, too, compare clocks, power limits and temperatures of the devices{by}, and "
        "what else runs on them."
    )


def spread_experts(inputs: Inputs, whose: str) -> str:
    """What to try where experts get unequally many tokens."""
    return (
        f"{whose} get more tokens than the others': balance the router or set a capacity for each expert, "
        f"copy the experts that are chosen most, or place them another way{option(inputs, 'experts')}."
    )


def _get_more_tokens(inputs: Inputs, ranks: Collection[int]) -> bool:
    """Whether the experts of all of these get more tokens than usual, by the splits of all-to-alls."""
    try:
        balance = expert_balance(inputs.trace, inputs.scope)
    except MissingDataError:
        return False
    load = balance[balance["rank"].isin(ranks)].groupby("rank")["load_pct"].mean()
    return set(load.index) == set(ranks) and bool((load > 100.0 * MORE).all())


class _Batches(NamedTuple):
    """Of a server's judged steps: how many, how many without requests, tokens in each on average."""

    steps: int
    empty: int
    tokens: float


def _batches(inputs: Inputs, rank: int) -> _Batches | None:
    steps = in_scope(steps_of(inputs.trace.rank(rank)), inputs.scope)
    if steps.empty or steps["tokens"].isna().any():
        return None
    return _Batches(len(steps), int((steps["tokens"] == 0).sum()), float(steps["tokens"].mean()))


def expert_times(inputs: Inputs) -> pd.DataFrame:
    """ns that kernels of experts take, a row per judged step and a column per rank that exchanges tokens."""
    found = {
        rank: inputs.of(rank, _times)["experts"] for rank in inputs.judged_ns
        if inputs.recorded(rank, exchanges)
    }  # fmt: skip
    return pd.DataFrame(found).dropna()


def _times(inputs: Inputs, rank: int) -> pd.DataFrame:
    """What kernels of experts and all others take by judged step, ns."""
    rank_trace = inputs.trace.rank(rank)
    rows = rank_trace.compute_rows
    rows = rows[rank_trace.belong(rows, inputs.scope)]
    mine, time = expert_rows(rank_trace)[rows], rank_trace.dur[rows]
    table = pd.DataFrame({"experts": np.where(mine, time, 0), "rest": np.where(mine, 0, time)})
    return table.groupby(rank_trace.iteration[rows]).sum()
