"""Rules about a server: how long a token takes, decoding behind prompts, and transfers of its cache."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on_ranks
from hta_widgets.analysis.findings.rule import Rule, never
from hta_widgets.analysis.findings.serving_advice import option
from hta_widgets.analysis.findings.serving_host import named, waiting, where_of
from hta_widgets.analysis.findings.serving_ranks import (
    DECODING,
    is_serving,
    of_ranks,
    steps_in_words,
)
from hta_widgets.analysis.serving.phases import METRICS, phases_of
from hta_widgets.analysis.serving.steps import in_scope, without
from hta_widgets.analysis.serving.table import steps_of
from hta_widgets.analysis.serving.transfers import moved, moved_alone
from hta_widgets.errors import MissingDataError

# Functions in which engines encode images, video or audio, called only where a request has some.
_ENCODES = re.compile(
    r": (?:embed_multimodal|get_multimodal_embeddings|get_(?:image|video|audio)_features?)$"
)
_ENCODE_LESS = (
    "Images, video or audio are encoded in these steps, too, which pieces of prompts do not divide: allow "
    "fewer of them at once, or encode on other devices. Besides: "
)
# A mean that is closer to the median says no more than that.
_MORE = 1.1


def leading_phase(inputs: Inputs, rank: int) -> str | None:
    """The phase that a verdict is about: that in which requests decode, or else that with most time."""
    return inputs.of(rank, _leading)


def serving_rate(inputs: Inputs) -> Finding | None:
    """`15.0 ms per token; the GPU works 71.4 % of it; 4.26 ms between steps in schedule`, then the rate."""
    found = {rank: row for rank, row in of_ranks(inputs, _rate).items() if row}
    if not found:
        return None
    rank, row = next(iter(found.items()))
    about = {"phase": row.phase, "follows": row.follows}
    token_ns = row.tpot_ns
    first = say(
        "{time} per {unit}{on_average}{if_at_once}",
        time=Claim("serving_period", row.period_ns if token_ns is None else token_ns, "ns", ranks=(rank,),
                   about={**about, "per_token": token_ns is not None}),
        unit="token" if token_ns is not None else steps_in_words(row.phase).removesuffix("s"),
        on_average=say(" ({mean} on average)", mean=Claim("mean_token", row.mean_ns, "ns", ranks=(rank,)))
        if row.mean_ns is not None else "",
        if_at_once="" if row.follows else " if the next step follows at once",
    )  # fmt: skip
    if row.works_pct is not None:
        whole = "the period" if row.follows else "the step"
        works = Claim("serving_works", row.works_pct, "%", whole, (rank,), about)
        device = inputs.accelerator.word
        first += say("; the {device} works {works} of it", device=device, works=works)
    idle = of_ranks(inputs, waiting)
    ranks, share, cost, _ = lost_on_ranks(inputs, idle)
    if row.follows and severity_of(share):
        # as in the finding about it, of all steps: one loss has one figure
        bubble, where = inputs.per_step("between_steps", cost, ranks), where_of(inputs, ranks)
        first += say("; {bubble} {where}{place}", bubble=bubble, where=where, place=named(inputs, rank))
    text = first
    if row.tokens_per_s is not None:
        rate = Claim("serving_tokens", round(row.tokens_per_s), "count", ranks=(rank,), about=about)
        text += say(". {rate} tokens per second in all{requests}", rate=rate, requests=_whose(found, rank))
    return Finding(
        0,
        100.0 if row.works_pct is None else row.works_pct,
        text + ".",
        "Compare it with what the server reports itself.",
        "serving_phases",
        Evidence(event_rank=rank, span=row.span),
        severity="verdict",
        headline=str(first),
    )


def _whose(found: dict[int, _Rate], rank: int) -> Text:
    """` for requests of rank 0`: data-parallel ranks have requests of their own."""
    if len(found) == 1:
        return NOTHING_SAID
    return say(" for requests of {rank}", rank=Claim("rank_of_rate", (rank,), "ranks"))


def decode_behind_prefill(inputs: Inputs) -> Finding | None:
    """Requests that decode wait while prompts are read: in steps of their own, or in the same ones."""
    found = {rank: each for rank, each in of_ranks(inputs, _behind).items() if each}
    if not found:
        return None
    rank = max(found, key=lambda rank: (found[rank].cost_ns, -rank))
    behind = found[rank]
    share = 100.0 * behind.cost_ns / inputs.judged_ns[rank]
    text = say(
        "While prompts are read, requests that decode wait {lost}. Their next token takes up to {longest} "
        "instead of {usual}.",
        lost=inputs.time_lost("behind_prompts", share, behind.cost_ns, (rank,), phase=behind.phase),
        longest=Claim("longest_wait_for_token", behind.longest_ns, "ns", ranks=(rank,)),
        usual=Claim("serving_period", behind.usual_ns, "ns", ranks=(rank,),
                    about={"phase": behind.phase, "follows": True, "per_token": False}),
    )  # fmt: skip
    encodes = inputs.any_name(_ENCODES)
    if behind.bound_ns is not None and not encodes:
        text += say(
            " With pieces of prompts half as large that is at least {bound}.",
            bound=Claim(
                "wait_with_half_a_chunk", behind.bound_ns, "ns", ranks=(rank,), about={"phase": behind.phase}
            ),
        )
    return Finding(
        behind.cost_ns,
        share,
        text,
        f"{_ENCODE_LESS * encodes}Read prompts in smaller pieces{option(inputs, 'chunks')}. That shortens "
        "the longest wait at some cost of throughput. Or read them on other devices (disaggregated prefill).",
        "serving_steps",
        Evidence(event_rank=rank, span=behind.span),
        severity="note" if severity_of(share) else None,
    )


def kv_transfer(inputs: Inputs) -> Finding | None:
    """Keys and values that move to or from another server, or another memory."""
    found = {rank: each for rank, each in of_ranks(inputs, _moved).items() if each[0].length}
    if not found:
        return None
    whole, alone = (
        lost_on_ranks(inputs, {rank: each[part] for rank, each in found.items()}) for part in (0, 1)
    )
    return Finding(
        alone.cost_ns,
        alone.share_pct,
        say(
            "Keys and values move to or from other memories {lost}, {alone} while the device does nothing "
            "else. If that is another server, it has a recording of its own.",
            lost=inputs.time_lost("kv_moved", whole.share_pct, whole.cost_ns, whole.ranks),
            alone=inputs.of_time("kv_moved_alone", alone.share_pct, alone.ranks),
        ),
        "Transfer layer by layer, while later layers still compute.",
        "serving_steps",
        Evidence(event_rank=whole.worst, span=found[whole.worst][0].longest),
        severity="note" if severity_of(whole.share_pct) else None,
    )


def request_times(inputs: Inputs) -> Finding | None:
    """What is not in any recording of a server, but in its own metrics."""
    if is_serving(inputs):
        raise MissingDataError(
            "times of requests",
            "The server's metrics have them: "
            + "; ".join(f"{what}: {where}" for what, where in METRICS.items())
            + ".",
        )
    return None


class _Rate(NamedTuple):
    phase: str
    period_ns: int
    tpot_ns: int | None
    mean_ns: int | None
    tokens_per_s: float | None
    works_pct: float | None
    follows: bool
    span: tuple[int, int] | None


class _Behind(NamedTuple):
    """How long decoding waits for prompts; the longest wait for a token, and with half the piece at least.

    phase: of steps that only decode, or verify drafts; usual_ns: from one of these to the next.
    """

    phase: str
    cost_ns: int
    longest_ns: int
    usual_ns: int
    bound_ns: int | None
    span: tuple[int, int]


def _rate(inputs: Inputs, rank: int) -> _Rate | None:
    steps = timed_steps(inputs, rank)
    phases = phases_of(steps)
    phase = leading_phase(inputs, rank)
    if phase is None:
        return None
    row = phases[phases["phase"] == phase].iloc[0]
    own = steps[(steps["phase"] == row["phase"]) & steps["start_ns"].notna()].iloc[0]
    span = (int(own["start_ns"]), int(own["start_ns"] + own["device_ns"]))
    return _Rate(
        str(row["phase"]),
        int(row["period_ns"]),
        None if pd.isna(row["tpot_ns"]) else int(row["tpot_ns"]),
        _mean_token(steps, int(row["period_ns"])) if phase == "decode" else None,
        None if np.isnan(row["tokens_per_s"]) else float(row["tokens_per_s"]),
        None if np.isnan(row["works_pct"]) else float(row["works_pct"]),
        bool(row["follows"]),
        span if span[0] < span[1] else None,
    )


def timed_steps(inputs: Inputs, rank: int) -> pd.DataFrame:
    """The steps in scope that show how long one takes."""
    return _started(inputs, in_scope(steps_of(inputs.trace.rank(rank)), inputs.asked).assign(rank=rank), rank)


def _started(inputs: Inputs, steps: pd.DataFrame, rank: int) -> pd.DataFrame:
    return without(steps, [step for each, step in inputs.left_out if each == rank])


def _leading(inputs: Inputs, rank: int) -> str | None:
    phases = phases_of(timed_steps(inputs, rank))
    phases = phases[phases["period_ns"].notna()]
    if phases.empty:
        return None
    tokens = phases[phases["tpot_ns"].notna() & (phases["phase"] != "mixed")]
    return str((tokens if len(tokens) else phases)["phase"].iloc[0])


def _moved(inputs: Inputs, rank: int) -> tuple[Intervals, Intervals]:
    rank_trace, judged = inputs.trace.rank(rank), inputs.judged_time(rank)
    return moved(rank_trace) & judged, moved_alone(rank_trace) & judged


def _behind(inputs: Inputs, rank: int) -> _Behind | None:
    """Prompts between two steps in which requests decode, or beside them."""
    steps = steps_of(inputs.trace.rank(rank)).assign(rank=rank)
    phases = phases_of(_started(inputs, steps, rank))
    phases = phases[phases["phase"].isin(DECODING) & phases["follows"]]
    if phases.empty:
        return None
    phase, usual = str(phases["phase"].iloc[0]), int(phases["period_ns"].iloc[0])
    judged = set(in_scope(steps, inputs.scope)["iteration"])
    cost, longest = 0, (0, (0, 0))
    for at, following in _until_next_token(steps):
        if steps["iteration"].iloc[at] not in judged:
            continue
        begin, end = int(steps["start_ns"].iloc[at]), int(steps["start_ns"].iloc[following])
        between = steps["phase"].iloc[at + 1 : following].eq("prefill").any()
        if not between and steps["phase"].iloc[at] != "mixed":
            continue
        cost += max(0, end - begin - usual)
        longest = max(longest, (end - begin, (begin, end)))
    if not cost:
        return None
    wait, span = longest
    return _Behind(phase, cost, wait, usual, usual + (wait - usual) // 2, span)


def _until_next_token(steps: pd.DataFrame) -> list[tuple[int, int]]:
    """The places of each step in which requests decode and of the next, where it is known when that came."""
    known = steps["period_ns"].notna().to_numpy(np.bool_)
    decodes = np.flatnonzero(steps["phase"].isin((*DECODING, "mixed"))).tolist()
    return [(at, following) for at, following in pairwise(decodes) if known[at:following].all()]


def _mean_token(steps: pd.DataFrame, usual_ns: int) -> int | None:
    """What a token takes on average, ns, prompts in between included; None where that is about as usual."""
    pairs = _until_next_token(steps)
    if (steps["tokens"] > steps["requests"])[steps["phase"].isin(DECODING)].fillna(False).any() or not pairs:
        return None
    begin = steps["start_ns"].to_numpy(np.int64, na_value=0)
    mean = round(sum(int(begin[following] - begin[at]) for at, following in pairs) / len(pairs))
    return mean if mean >= _MORE * usual_ns else None


RULES = (
    Rule(
        topic="serving_rate",
        question="how long a token takes",
        title="Serving",
        judge=serving_rate,
        role="work",
        applies=never,
        leads=True,
    ),
    Rule(
        topic="decode_behind_prefill",
        question="how long decoding waits for prompts",
        title="Decoding behind prompts",
        label="Decoding behind prompts",
        cause="decoding that waits behind prompts",
        judge=decode_behind_prefill,
        applies=is_serving,
        no_change="prompts have to be read in any case; smaller pieces shorten the longest wait, not the sum",
        wrong_if="Time per token does not matter, only how many tokens the server makes.",
    ),
    Rule(
        topic="kv_transfer",
        question="how long keys and values move between memories",
        title="Transfer of keys and values",
        judge=kv_transfer,
        role="aside",
        applies=never,
    ),
    Rule(
        topic="request_times",
        question="how long requests queue, wait for their first token, and which drafts are accepted",
        title="Times of requests",
        judge=request_times,
        role="aside",
        applies=never,
    ),
)
