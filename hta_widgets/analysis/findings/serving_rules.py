"""Rules about a server: how long a token takes, the time between steps, and decoding behind prompts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.callers import place_claim
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import IDLE_QUESTION, Change, Rule, never
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.serving.bubbles import bubbles_of, idle_between
from hta_widgets.analysis.serving.phases import METRICS, phases_of
from hta_widgets.analysis.serving.steps import in_scope
from hta_widgets.analysis.serving.table import is_server, steps_of
from hta_widgets.analysis.serving.transfers import moved, moved_alone
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief

Answer = TypeVar("Answer")

_MOST: Final = 0.5
# Less of the time between steps is not worth a word.
_LEAST_BUBBLE_PCT: Final = 1.0
# Steps in which requests decode, and no prompt is read.
_DECODING: Final = ("decode", "verify")
_AHEAD: Final = "scheduled ahead, each step begins when the one before it ends"
_REMEDIES: Final = (
    (
        r"schedul|get_next_batch|prepare_inputs|update_states|allocate_slots",
        "Schedule the next step while the device works on this one: vLLM with --async-scheduling, SGLang "
        "with its overlap scheduler (no --disable-overlap-schedule), TensorRT-LLM likewise "
        "(disable_overlap_scheduler: false).",
    ),
    (
        r"detok|output_proc|process_outputs|stream_output|make_stats|process_batch_result",
        "Move the handling of tokens out of the engine's loop: detokenise in another process, stream every "
        "few tokens (vLLM --stream-interval, SGLang --stream-interval).",
    ),
    (
        r"sampl|logits_proc|grammar|bitmask|penal",
        "Sample on the device, and prepare masks of structured output while the device works.",
    ),
    (
        r"\bitem\b|_local_scalar_dense|\bcpu\b|tolist|[sS]ynchronize|numpy",
        "Read tokens back later or not at all: copy them asynchronously, and launch the next step first "
        "(vLLM --async-scheduling, SGLang's overlap scheduler).",
    ),
    (
        r"broadcast|recv|shm_|zmq|rpc|pickle|\bget\b|dequeue|acquire",
        "The workers wait for the engine's message: shorten what it sends and computes before it, or send "
        "the next step ahead (asynchronous scheduling).",
    ),
)
_OTHER_REMEDY: Final = (
    "Shorten what the host does then, or do it while the device works: schedule the next step ahead (vLLM "
    "--async-scheduling, SGLang's overlap scheduler)."
)
_UNKNOWN_REMEDY: Final = (
    "Record what the engine does then: Python stacks (with_stack=True) of the process that schedules, and of "
    "all its threads. Scheduling the next step ahead (vLLM --async-scheduling, SGLang's overlap scheduler) "
    "hides such time."
)


def steps_in_words(phase: str) -> str:
    """`decode steps`, or `steps` where the engine does not name their phase."""
    return "steps" if phase == "unknown" else f"{phase} steps"


def is_serving(inputs: Inputs) -> bool:
    """Whether any rank names steps of a server."""
    return any(inputs.of(rank, _names_steps) for rank in inputs.trace.ranks_of(inputs.scope))


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
        "{time} per {unit}{if_at_once}",
        time=Claim("serving_period", row.period_ns if token_ns is None else token_ns, "ns", ranks=(rank,),
                   about={**about, "per_token": token_ns is not None}),
        unit="token" if token_ns is not None else steps_in_words(row.phase).removesuffix("s"),
        if_at_once="" if row.follows else " if the next step follows at once",
    )  # fmt: skip
    if row.works_pct is not None:
        whole = "the period" if row.follows else "the step"
        works = Claim("serving_works", row.works_pct, "%", whole, (rank,), about)
        device = inputs.accelerator.word
        first += say("; the {device} works {works} of it", device=device, works=works)
    idle = of_ranks(inputs, _between)
    share, cost = _lost(inputs, idle)
    if row.follows and share >= _LEAST_BUBBLE_PCT:
        # as in the finding about it, of all steps: one loss has one figure
        bubble = inputs.per_step("between_steps", cost, sorted(idle))
        place = inputs.of(rank, _place).frame
        first += say("; {bubble} between steps{place}", bubble=bubble, place=_named(place, rank))
    text = first
    if row.tokens_per_s is not None:
        rate = Claim("serving_tokens", round(row.tokens_per_s), "count", ranks=(rank,), about=about)
        text += say(". {rate} tokens per second in all", rate=rate)
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


def bubble_between_steps(inputs: Inputs) -> Finding | None:
    """Time between the steps of a server in which the device waits for the next one."""
    idle = of_ranks(inputs, _between)
    lost = {rank: time for rank, time in idle.items() if time.length}
    if not lost:
        return None
    ranks = sorted(idle)
    judged = {rank: inputs.judged_ns[rank] for rank in ranks}
    share, cost = _lost(inputs, idle)
    worst = max(lost, key=lambda rank: (lost[rank].length / judged[rank], -rank))
    place = inputs.of(worst, _place)
    return Finding(
        cost,
        share,
        say(
            "Between steps the device idles {lost}. {doing}",
            lost=inputs.time_lost("between_steps", share, cost, ranks),
            doing=_doing(place, worst),
        ),
        _remedy(place),
        "serving_steps",
        Evidence(rank=worst if len(lost) > 1 else None, event_rank=worst, span=lost[worst].longest,
                 event_id=place.event_id),
        change=Change(
            say("without {place} between steps", place=place_claim("between_steps_in", place.frame, worst)),
            lambda _: [edits.without(edits.exactly(place.frame))],
        ) if place.frame else None,
        saves_at_most=_AHEAD,
        lost=lost,
        share_of={rank: 100.0 * idle[rank].length / judged[rank] for rank in ranks} if len(ranks) > 1 else {},
    )  # fmt: skip


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
    if behind.bound_ns is not None:
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
        "Read prompts in smaller pieces (vLLM --max-num-batched-tokens, SGLang --chunked-prefill-size). That "
        "shortens the longest wait at some cost of throughput. Or read them on other devices (disaggregated "
        "prefill).",
        "serving_steps",
        Evidence(event_rank=rank, span=behind.span),
        severity="note" if severity_of(share) else None,
    )


def kv_transfer(inputs: Inputs) -> Finding | None:
    """Keys and values that move to or from another server, or another memory."""
    found = {rank: each for rank, each in of_ranks(inputs, _moved).items() if each[0].length}
    if not found:
        return None
    ranks = sorted(found)
    judged = sum(inputs.judged_ns[rank] for rank in ranks)
    whole, alone = (sum(found[rank][part].length for rank in ranks) for part in (0, 1))
    share = 100.0 * whole / judged
    longest = max(ranks, key=lambda rank: (found[rank][0].length, -rank))
    return Finding(
        alone // len(ranks),
        100.0 * alone / judged,
        say(
            "Keys and values move to or from other memories {lost}, {alone} while the device does nothing "
            "else. The other side of a transfer is in a recording of its own.",
            lost=inputs.time_lost("kv_moved", share, whole // len(ranks), ranks),
            alone=inputs.of_time("kv_moved_alone", 100.0 * alone / judged, ranks),
        ),
        "Transfer layer by layer, while later layers still compute.",
        "serving_steps",
        Evidence(event_rank=longest, span=found[longest][0].longest),
        severity="note" if severity_of(share) else None,
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
    tokens_per_s: float | None
    works_pct: float | None
    follows: bool
    span: tuple[int, int] | None


class _Place(NamedTuple):
    """What the host does between steps: a Python function or call; else after what nothing is recorded."""

    frame: str
    after: str
    event_id: int | None


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


def of_ranks(inputs: Inputs, ask: Callable[[Inputs, int], Answer]) -> dict[int, Answer]:
    """What is found of the ranks that name steps of a server, and whose device work is recorded."""
    ranks = [rank for rank in inputs.trace.ranks_of(inputs.scope) if inputs.of(rank, _names_steps)]
    return {rank: inputs.of(rank, ask) for rank in ranks if inputs.judged_ns.get(rank)}


def _names_steps(inputs: Inputs, rank: int) -> bool:
    rank_trace = inputs.trace.rank(rank)
    return is_server(rank_trace) and rank_trace.device_span is not None


def _rate(inputs: Inputs, rank: int) -> _Rate | None:
    steps = in_scope(steps_of(inputs.trace.rank(rank)), inputs.asked).assign(rank=rank)
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
        None if np.isnan(row["tokens_per_s"]) else float(row["tokens_per_s"]),
        None if np.isnan(row["works_pct"]) else float(row["works_pct"]),
        bool(row["follows"]),
        span if span[0] < span[1] else None,
    )


def _leading(inputs: Inputs, rank: int) -> str | None:
    steps = in_scope(steps_of(inputs.trace.rank(rank)), inputs.asked).assign(rank=rank)
    phases = phases_of(steps)
    phases = phases[phases["period_ns"].notna()]
    if phases.empty:
        return None
    tokens = phases[phases["tpot_ns"].notna() & (phases["phase"] != "mixed")]
    return str((tokens if len(tokens) else phases)["phase"].iloc[0])


def _between(inputs: Inputs, rank: int) -> Intervals:
    return idle_between(inputs.trace.rank(rank)) & inputs.judged_time(rank)


def _lost(inputs: Inputs, idle: dict[int, Intervals]) -> tuple[float, int]:
    """How much of the judged time of these ranks that is, in %, and ns on each."""
    whole = sum(time.length for time in idle.values())
    return 100.0 * whole / sum(inputs.judged_ns[rank] for rank in idle), whole // len(idle)


def _moved(inputs: Inputs, rank: int) -> tuple[Intervals, Intervals]:
    rank_trace, judged = inputs.trace.rank(rank), inputs.judged_time(rank)
    return moved(rank_trace) & judged, moved_alone(rank_trace) & judged


def _place(inputs: Inputs, rank: int) -> _Place:
    """Where the host is for most of the time between judged steps."""
    rank_trace = inputs.trace.rank(rank)
    steps, bubbles = steps_of(rank_trace), bubbles_of(rank_trace)
    judged = set(in_scope(steps, inputs.scope)["iteration"])
    of_frame: Counter[int] = Counter()
    of_after: Counter[int] = Counter()
    rows: dict[int, int] = {}
    idle = 0
    for iteration, bubble in zip(steps["iteration"].tolist(), bubbles, strict=True):
        if bubble is None or iteration not in judged:
            continue
        idle += bubble.idle_ns
        row = bubble.frame if bubble.frame >= 0 else bubble.call if bubble.is_recorded else -1
        if row >= 0:
            of_frame[int(rank_trace.name[row])] += bubble.idle_ns
            rows.setdefault(int(rank_trace.name[row]), row)
        elif bubble.before >= 0:
            of_after[int(rank_trace.name[bubble.before])] += bubble.idle_ns
    for place, found in enumerate((of_frame, of_after)):
        code, time = max(found.items(), key=lambda each: (each[1], -each[0]), default=(-1, 0))
        if time > _MOST * idle:
            name = rank_trace.names[code]
            if place == 0:
                return _Place(name, "", int(rank_trace.event_id[rows[code]]))
            return _Place("", name, None)
    return _Place("", "", None)


def _doing(place: _Place, rank: int) -> Text:
    if place.frame:
        return say("The host runs {place} then.", place=place_claim("between_steps_in", place.frame, rank))
    if place.after:
        after = place_claim("unrecorded_after", place.after, rank)
        return say("What the host does then, after {after}, is not recorded.", after=after)
    return say("What the host does then differs, or is not recorded.")


def _named(frame: str, rank: int) -> Text:
    """` in schedule`, the function without its file, for the verdict; or nothing."""
    if not frame:
        return NOTHING_SAID
    function = brief(frame.rpartition(": ")[2])
    place = Claim("between_steps_in", frame, "name", ranks=(rank,), shown=function)
    return say(" in {place}", place=place)


def _remedy(place: _Place) -> str:
    if not place.frame:
        return _UNKNOWN_REMEDY
    return next((text for word, text in _REMEDIES if re.search(word, place.frame)), _OTHER_REMEDY)


def _behind(inputs: Inputs, rank: int) -> _Behind | None:
    """Prompts between two steps in which requests decode, or beside them."""
    steps = steps_of(inputs.trace.rank(rank)).assign(rank=rank)
    phases = phases_of(steps)
    phases = phases[phases["phase"].isin(_DECODING) & phases["follows"]]
    if phases.empty:
        return None
    phase, usual = str(phases["phase"].iloc[0]), int(phases["period_ns"].iloc[0])
    judged = set(in_scope(steps, inputs.scope)["iteration"])
    steps = steps[steps["period_ns"].notna()]
    decodes = np.flatnonzero(steps["phase"].isin((*_DECODING, "mixed")))
    cost, longest = 0, (0, (0, 0))
    for at, following in pairwise(decodes.tolist()):
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
        topic="bubble_between_steps",
        question=IDLE_QUESTION,
        title="Waiting between steps",
        label="Gaps between steps",
        cause="waiting between steps",
        lost_as="idle",
        judge=bubble_between_steps,
        applies=is_serving,
        risk="Scheduled ahead, a step does not know yet which requests the one before it ends.",
        wrong_if="There are no requests to work on then.",
    ),
    Rule(
        topic="decode_behind_prefill",
        question="how long decoding waits for prompts",
        title="Decoding behind prompts",
        label="Decoding behind prompts",
        cause="decoding that waits behind prompts",
        lost_as="compute",
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
