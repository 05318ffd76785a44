"""The rule about drafts of which nothing shows how many are accepted: what they take, and when they pay."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.calls.tree import owners
from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import device_work
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on_ranks
from hta_widgets.analysis.findings.rule import Rule, never
from hta_widgets.analysis.findings.serving_advice import option
from hta_widgets.analysis.findings.serving_ranks import DECODING, of_ranks
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.serving.phases import METRICS
from hta_widgets.analysis.serving.steps import in_scope
from hta_widgets.analysis.serving.table import steps_of
from hta_widgets.trace.rank_trace import RankTrace

# Calls and scopes in which vLLM and SGLang draft.
_DRAFTS: Final = re.compile(
    r"(?:^|/)spec_decode/\w+\.py\(\d+\): propose$|: propose_draft_token_ids$"
    r"|eagle_\w*worker\w*\.py\(\d+\): draft$|^(?:\w+_)?model_runner: draft$|^Draft$|^draft_token$"
)


def drafting(inputs: Inputs) -> Finding | None:
    """Drafting, where lengths of sequences do not show how many drafts are accepted."""
    found = {rank: each for rank, each in of_ranks(inputs, _drafting).items() if each}
    if not found:
        return None
    lost = {rank: each.drafts & inputs.judged_time(rank) for rank, each in found.items()}
    ranks, share, cost, most = lost_on_ranks(inputs, lost)
    if not severity_of(share):
        return None
    turns, drafts = found[most].turns.length, (found[most].drafts & found[most].turns).length
    return Finding(
        cost,
        share,
        say(
            "Drafting takes {lost}. How many drafts are accepted is not recorded. They save time only if a "
            "request gets more than {tokens} tokens per turn.",
            lost=inputs.time_lost("drafting_named", share, cost, ranks),
            tokens=Claim("tokens_that_pay", turns / (turns - drafts), "count", "", (most,), {},
                         f"{turns / (turns - drafts):.3g}"),
        ),
        f"Compare that with the server's own metric ({METRICS['acceptance rate of drafts']}). If it is less, "
        f"draft fewer tokens{option(inputs, 'drafts')}, or none.",
        "serving_phases",
        Evidence(event_rank=most, span=lost[most].longest),
        lost=inputs.when(ranks, lambda rank: lost[rank]),
    )  # fmt: skip


class _Drafting(NamedTuple):
    """When turns in which drafts are verified last, and when the device drafts."""

    turns: Intervals
    drafts: Intervals


def _drafting(inputs: Inputs, rank: int) -> _Drafting | None:
    """None where nothing names what drafts, or the tokens that a turn makes are known."""
    rank_trace = inputs.trace.rank(rank)
    steps = in_scope(steps_of(rank_trace), inputs.scope)
    verifies = steps["phase"].isin(DECODING) & (steps["tokens"] > steps["requests"]).fillna(False)
    turns = steps[verifies & steps["turn_ns"].notna()]
    if turns.empty or turns["emitted"].notna().any():
        return None
    own = steps[steps["phase"].eq("draft") & steps["device_ns"].notna()]
    begin, drafts = (each["start_ns"].to_numpy(np.int64) for each in (turns, own))
    found = _Drafting(
        Intervals.union(begin, begin + turns["turn_ns"].to_numpy(np.int64)),
        Intervals.union(drafts, drafts + own["device_ns"].to_numpy(np.int64)) | _in_calls(rank_trace),
    )
    return found if len(found.drafts & found.turns) else None


def _in_calls(rank_trace: RankTrace) -> Intervals:
    """From the first to the last device work that each call launches in which drafts are made."""
    calls, work = named(rank_trace, _DRAFTS.search) & ~rank_trace.is_device, device_work(rank_trace)
    if not calls.any():
        return Intervals.union([], [])
    owner = owners(stacks(rank_trace), calls)[work.rows]
    mine = owner >= 0
    spans = pd.DataFrame({"first": work.start[mine], "last": work.end[mine]}).groupby(owner[mine])
    first, last = spans["first"].min(), spans["last"].max()
    return Intervals.union(first.to_numpy(), last.to_numpy())


RULE = Rule(
    topic="drafting_time",
    question="whether drafts save time",
    title="Drafting",
    label="Drafts",
    cause="drafting",
    judge=drafting,
    applies=never,
    no_change="whether drafts save time depends on how many are accepted",
    wrong_if="Verifying drafts takes longer than decoding without: then they have to bring more.",
)
