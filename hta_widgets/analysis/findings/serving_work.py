"""Rules about what a server's steps compute: parts of the model, padding, and experts of unequal load."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Said, say, says, says_then
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule, never, several_ranks
from hta_widgets.analysis.findings.serving_advice import EXCHANGE_LESS, option
from hta_widgets.analysis.findings.serving_ranks import DECODING, is_serving, of_ranks, steps_in_words
from hta_widgets.analysis.findings.serving_rules import leading_phase
from hta_widgets.analysis.findings.unequal_work import MORE, expert_times, spread_experts
from hta_widgets.analysis.parallelism.expert_work import expert_rows
from hta_widgets.analysis.serving.padding import computed_requests
from hta_widgets.analysis.serving.parts import part_of_kernel
from hta_widgets.analysis.serving.phases import in_turns
from hta_widgets.analysis.serving.roles import Roles, roles_of
from hta_widgets.analysis.serving.steps import in_scope
from hta_widgets.analysis.serving.table import steps_of
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace


# Roles that a sentence puts together; all others are other kernels.
_PARTS: Final = {
    **dict.fromkeys(("qkv", "o_proj", "gate_up", "down", "router", "lm_head", "product"), "matrix products"),
    **{part: part for part in ("attention", "experts", "communication", "sampling")},
    "lora": "LoRA",
}
_OTHERS: Final = "other kernels"
_LEAST_PCT: Final = 5.0
_MOST_PCT: Final = 50.0
# From this share on these are worth a word, whatever takes most.
_ADDED: Final = ("sampling", "LoRA")
_ADDED_PCT: Final = 10.0
_ADVICE: Final = {
    "communication": EXCHANGE_LESS,
    "experts": "Larger batches read the weights of experts less often per token; so do experts that are "
    "divided among more devices.",
    "copies": "Copy beside compute, on a stream of its own, or keep on the device what is copied.",
    "LoRA": "Merge the adapter into the weights if all requests use one; else adapters of lower rank, or of "
    "fewer modules, take less time.",
    "sampling": "Sample fewer requests with top-p, top-k or penalties, or use the engine's fused sampler.",
    _OTHERS: "Fuse small kernels: norms, rope, copies, quantisation (torch.compile, the engine's fusions).",
}
_READ_LESS: Final = (
    "Each step of decoding reads all weights and the cache: larger batches, or fewer bytes (fp8, fp4, a "
    "quantised cache), make a token cheaper."
)
_DENOISE_LESS: Final = (
    "Each denoising step computes all of the picture: products of lower precision (fp8) take less time, and "
    "so do fewer steps, or steps that use again what earlier ones computed."
)
_COMPUTE_LESS: Final = (
    "Each token of a prompt is computed: products of lower precision (fp8) take less time, and a prefix "
    "cache skips what was read before."
)
_FEWEST_RANKS: Final = 2


def serving_work(inputs: Inputs) -> Finding | None:
    """`Of the device's work in decode steps: experts 72.7 % and matrix products 11.5 %.`"""
    found = {rank: each for rank, each in of_ranks(inputs, _work).items() if each}
    if not found:
        return None
    rank, work = next(iter(found.items()))
    shown = work.parts[work.parts >= _LEAST_PCT].sort_index(key=lambda part: part == _OTHERS, kind="stable")
    if shown.empty:
        return None
    parts: list[Said] = [
        say(
            "{part} {share}",
            part=str(part),
            share=Claim("serving_part", float(share), "%", "the steps' work", (rank,),
                        {"phase": work.phase, "part": part}),
        )
        for part, share in shown.items()
    ]  # fmt: skip
    most = str(shown.idxmax())
    return Finding(
        0,
        float(shown.max()),
        say(
            "Of the device's work in {steps}: {parts}.{rest}",
            steps=steps_in_words(work.phase),
            parts=says(parts[:2]),
            rest=says_then(parts[2:]),
        ),
        _advice(shown, most, work.phase),
        "roles",
        Evidence(event_rank=rank),
        severity="verdict",
        headline=f"{'mostly' if shown.max() >= _MOST_PCT else 'above all'} {most}",
    )


def padding(inputs: Inputs) -> Finding | None:
    """Requests that only fill up a captured graph: they are computed, and thrown away."""
    asked = of_ranks(inputs, _padded)
    found = {rank: each for rank, each in asked.items() if each is not None}
    if not found:
        if not any(inputs.recorded(rank, _replays) for rank in asked):
            return None
        raise MissingDataError(
            "sizes of the replayed graphs",
            "Open the trace of the graphs' capture with it: capture=. Some engines name it in their steps.",
        )
    ranks = sorted(found)
    cost = sum(found[rank].cost_ns for rank in ranks) // len(ranks)
    share = 100.0 * cost * len(ranks) / sum(inputs.judged_ns[rank] for rank in ranks)
    worst = max(ranks, key=lambda rank: (found[rank].cost_ns, -rank))
    return Finding(
        cost,
        share,
        say(
            "Graphs are replayed for {computed} requests where {real} decode. If their work grows with the "
            "batch, that costs {lost}.",
            computed=Claim("computed_requests", found[worst].computed, "count", ranks=(worst,)),
            real=Claim("real_requests", found[worst].real, "count", ranks=(worst,)),
            lost=inputs.time_lost("padding", share, cost, ranks),
        ),
        f"Capture graphs of sizes near this batch{option(inputs, 'sizes of graphs')}, or limit the batch to "
        "a size that is captured.",
        "serving_steps",
        Evidence(event_rank=worst, span=found[worst].span),
        severity="note" if severity_of(share) else None,
        saves_at_most="at most: weights are read once, however many requests there are",
    )


def uneven_experts(inputs: Inputs) -> Finding | None:
    """Experts of some ranks that take longer in a step than those of others, which then wait."""
    table = expert_times(inputs) if is_serving(inputs) else pd.DataFrame()
    if len(table.columns) < _FEWEST_RANKS or table.empty:
        return None
    mean, most = table.mean(axis=1), table.max(axis=1)
    cost = int((most - mean).sum())
    ranks = [int(str(rank)) for rank in table]
    share = 100.0 * cost * len(ranks) / sum(inputs.judged_ns[rank] for rank in ranks)
    heaviest = int(table.columns[int(table.sum().to_numpy().argmax())])
    if most.sum() < MORE * mean.sum():
        return None
    return Finding(
        cost,
        share,
        say(
            "Experts take {longest} per step on the slowest rank and {usual} on average. Ranks wait {lost} "
            "for that on average. Over all steps, rank {rank} has most of this work.",
            longest=Claim("experts_longest", float(most.mean()), "ns/step", ranks=tuple(ranks)),
            usual=Claim("experts_mean", float(mean.mean()), "ns/step", ranks=tuple(ranks)),
            lost=inputs.time_lost("uneven_experts", share, cost, ranks),
            rank=Claim(
                "rank_with_most_experts", (heaviest,), "ranks", ranks=tuple(ranks), shown=str(heaviest)
            ),
        ),
        spread_experts(inputs, "Experts of some ranks"),
        "roles",
        Evidence(rank=heaviest),
        severity="note" if severity_of(share) else None,
        explains=heaviest if table[heaviest].sum() >= MORE * mean.sum() else None,
    )


def _advice(shown: pd.Series[float], most: str, phase: str) -> str:
    if added := next((part for part in _ADDED if shown.get(part, 0.0) >= _ADDED_PCT), ""):
        return _ADVICE[added]
    usual = {"prefill": _COMPUTE_LESS, "mixed": _COMPUTE_LESS, "diffusion": _DENOISE_LESS}
    return _ADVICE.get(most, usual.get(phase, _READ_LESS))


def _added(part: str, text: str, why: str, inputs: Inputs) -> Finding | None:
    """A part beside the model's own that takes much of the judged time."""
    found = {rank: parts.get(part, 0) for rank, parts in of_ranks(inputs, _part_times).items()}
    whole, judged = sum(found.values()), sum(inputs.judged_ns[rank] for rank in found)
    if not whole or 100.0 * whole < _ADDED_PCT * judged:
        return None
    ranks = sorted(found)
    share, cost = 100.0 * whole / judged, whole // len(ranks)
    return Finding(
        cost,
        share,
        say(text, lost=inputs.time_lost("added_work", share, cost, ranks, part=part)),
        _ADVICE[part],
        "roles",
        Evidence(event_rank=max(ranks, key=lambda rank: (found[rank], -rank))),
        saves_at_most=why,
    )


def unaccepted_drafts(inputs: Inputs) -> Finding | None:
    """Drafts of which too few are accepted for the time that they take."""
    found = {rank: each for rank, each in of_ranks(inputs, _drafts).items() if each}
    if not found:
        return None
    rank = max(found, key=lambda rank: (found[rank].cost_ns, -rank))
    most = found[rank]
    share = 100.0 * most.cost_ns / inputs.judged_ns[rank]
    if not severity_of(share):
        return None
    return Finding(
        most.cost_ns,
        share,
        say(
            "Drafts cost more time than they save. A request gets {tokens} tokens per turn; drafting takes "
            "{drafting} of it. Without drafts a token takes {without} instead of {now}.",
            tokens=Claim("tokens_per_turn", most.tokens, "count", "", (rank,), {}, f"{most.tokens:.2f}"),
            drafting=Claim("drafting", most.drafting_pct, "%", "the turns", (rank,)),
            without=Claim("token_without_drafts", most.without_ns, "ns", ranks=(rank,)),
            now=Claim("token_with_drafts", most.now_ns, "ns", ranks=(rank,)),
        ),
        f"Draft fewer tokens{option(inputs, 'drafts')}, or none; or take a draft model that is smaller, or "
        "agrees more often.",
        "serving_phases",
        Evidence(rank=rank if len(inputs.trace.ranks) > 1 else None, event_rank=rank),
        saves_at_most="steps without drafts take about as long as verifying them does now",
    )


class _Work(NamedTuple):
    phase: str
    parts: pd.Series[float]


class _Drafts(NamedTuple):
    """What drafts cost; tokens of a request in a turn, the share of drafting, a token without and with."""

    cost_ns: int
    tokens: float
    drafting_pct: float
    without_ns: float
    now_ns: float


class _Padded(NamedTuple):
    cost_ns: int
    computed: int
    real: int
    span: tuple[int, int]


def _work(inputs: Inputs, rank: int) -> _Work | None:
    """Of the steps of the leading phase: what each part of the model takes of their device work, in %."""
    rank_trace = inputs.trace.rank(rank)
    phase = leading_phase(inputs, rank)
    if phase is None:
        return None
    every = steps_of(rank_trace)
    steps = in_scope(every, inputs.asked)
    places = np.flatnonzero(every["iteration"].isin(steps["iteration"][steps["phase"] == phase]))
    known = roles_of(rank_trace)
    mine = np.isin(known.step, places)
    parts = _parts(rank_trace, known)[mine]
    time = pd.Series(rank_trace.dur[known.rows[mine]]).groupby(parts).sum()
    if not time.sum():
        return None
    return _Work(phase, (100.0 * time / time.sum()).sort_values(ascending=False, kind="stable"))


def _part_times(inputs: Inputs, rank: int) -> dict[str, int]:
    """What each part of the model takes of the judged steps' device work, ns."""
    rank_trace = inputs.trace.rank(rank)
    steps, known = steps_of(rank_trace), roles_of(rank_trace)
    judged = steps["iteration"].isin(in_scope(steps, inputs.scope)["iteration"]).to_numpy(np.bool_)
    mine = judged[known.step]
    parts = _parts(rank_trace, known)[mine]
    times = pd.Series(rank_trace.dur[known.rows[mine]]).groupby(parts).sum()
    return {str(part): int(time) for part, time in times.items()}


def _drafts(inputs: Inputs, rank: int) -> _Drafts | None:
    """Of turns whose accepted tokens are known; None where a token would take no less without drafts."""
    turns = in_turns(in_scope(steps_of(inputs.trace.rank(rank)), inputs.scope).assign(rank=rank))
    turns = turns[turns["phase"].isin(DECODING) & (turns["tokens"] > turns["requests"]).fillna(False)]
    turns = turns[turns[["emitted", "period_ns", "device_ns", "bubble_ns"]].notna().all(axis=1)]
    if turns.empty:
        return None
    whole, made, requests = (float(turns[name].sum()) for name in ("period_ns", "emitted", "requests"))
    drafting = whole - float((turns["device_ns"] + turns["bubble_ns"]).sum())
    now, without = whole / made, (whole - drafting) / requests
    if without >= now:
        return None
    return _Drafts(
        round(whole * (1 - without / now)),
        made / requests,
        100.0 * drafting / whole,
        without * requests / len(turns),
        now * requests / len(turns),
    )


def _padded(inputs: Inputs, rank: int) -> _Padded | None:
    """What computing more requests than there are may cost; None where that is not known of any step."""
    rank_trace = inputs.trace.rank(rank)
    steps = steps_of(rank_trace).assign(computed=computed_requests(rank_trace))
    steps = in_scope(steps, inputs.scope)
    steps = steps[steps["computed"].notna() & steps["requests"].notna() & steps["device_ns"].notna()]
    if steps.empty:
        return None
    lost = steps["device_ns"] * (steps["computed"] - steps["requests"]) // steps["computed"]
    worst = steps.iloc[int(lost.to_numpy(np.int64).argmax())]
    begin = int(worst["start_ns"])
    span = (begin, begin + int(worst["device_ns"]))
    return _Padded(int(lost.sum()), int(worst["computed"]), int(worst["requests"]), span)


def _replays(rank_trace: RankTrace) -> bool:
    return bool(roles_of(rank_trace).replayed.any())


def _parts(rank_trace: RankTrace, known: Roles) -> npt.NDArray[np.object_]:
    """Of each row of `roles_of` the part of the model: by its place, its role, or else its name."""
    names = (rank_trace.names[code] for code in rank_trace.name[known.rows].tolist())
    parts = np.array(
        [
            _PARTS.get(role or part_of_kernel(name), _OTHERS)
            for role, name in zip(known.role.tolist(), names, strict=True)
        ],
        object,
    )
    parts[expert_rows(rank_trace)[known.rows]] = "experts"
    parts[rank_trace.event_class[known.rows] == EventClass.COMMUNICATION] = "communication"
    parts[rank_trace.event_class[known.rows] == EventClass.MEMORY_COPY] = "copies"
    return parts


RULES = (
    Rule(
        topic="serving_work",
        question="which part of the model takes the time of steps",
        title="Work of steps",
        judge=serving_work,
        role="work",
        applies=never,
        beside=True,
    ),
    Rule(
        topic="adapters",
        question="what adapters take",
        title="Running LoRA adapters",
        label="Adapters",
        cause="LoRA adapters",
        judge=partial(
            _added,
            "LoRA",
            "Adapters (LoRA) take {lost}, beside the products of the model.",
            "merged into the weights, an adapter takes no time of its own",
        ),
        applies=never,
        wrong_if="Requests use several adapters, so that none can be merged.",
    ),
    Rule(
        topic="sampling_work",
        question="what choosing tokens takes",
        title="Choosing tokens",
        label="Sampling",
        cause="choosing tokens",
        judge=partial(
            _added,
            "sampling",
            "Choosing the next tokens takes {lost} on the device.",
            "a fused sampler, or greedy sampling, takes hardly any time",
        ),
        applies=never,
        wrong_if="Requests need these filters and penalties.",
    ),
    Rule(
        topic="unaccepted_drafts",
        question="whether drafts save time",
        title="Drafting too much",
        label="Drafts",
        cause="drafting too much",
        judge=unaccepted_drafts,
        applies=never,
        wrong_if="These requests are harder to draft than usual ones.",
    ),
    Rule(
        topic="padding",
        question="how many requests only fill up graphs",
        title="Padding of graphs",
        label="Padding",
        cause="requests that only fill up graphs",
        judge=padding,
        applies=is_serving,
        wrong_if="Steps take as long for fewer requests: then only the memory of graphs is lost.",
    ),
    Rule(
        topic="uneven_experts",
        question="whether experts of all ranks have as much to do",
        title="Experts of unequal load",
        judge=uneven_experts,
        role="aside",
        applies=lambda inputs: several_ranks(inputs) and is_serving(inputs),
        wrong_if="The devices of these ranks are of different speed.",
    ),
)
