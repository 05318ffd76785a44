"""Steps of a server and the time between them, as a person would read them from the annotations."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from hta_widgets.analysis.core.memoize import memoize_per_rank
from tests.claims.job import Job, PlainRank, Record, Window, length, overlap, union
from tests.claims.measures.idle import CALLS, the_rank
from tests.claims.registry import Stated, check, close, time_of
from tests.verdicts.plain_reader import subtract

_VLLM = re.compile(r"execute_(?:(\d+)_)?context_(\d+)\((?:sq)?(\d+).*\)_generation_(\d+)\((?:sq)?(\d+)")
_SGLANG = re.compile(r"step\[(\w+)\b(.*)\]")
_SGLANG_WORDS = {
    "EXTEND": "prefill", "SPLIT_PREFILL": "prefill", "TARGET_VERIFY": "verify", "DRAFT_EXTEND": "draft",
    "DRAFT_EXTEND_V2": "draft",
}  # fmt: skip
_SCOPE = re.compile(r"gpu_model_runner: (\w+)|(Preprocess|Forward|Postprocess|Sample|Bookkeep)$")
_TENSORRT_LLM = re.compile(
    r"\[Executor\] _forward_step \d+: (\d+) ctx reqs, (\d+) ctx tokens, (\d+) gen reqs$"
)
ATOM = re.compile(r"(prefill|decode)\[bs=(\d+)(?:/(\d+))? tok=(\d+)(?: p=(\d+))?(?: d=(\d+))?")
_SLEEPS = re.compile(
    "_process_input_queue|self_check_during_idle|maybe_sleep|on_idle|fetch_new_requests|get_from_request_queue"
)
MARKS = ("user_annotation", "python_function")
_DIFFUSION = re.compile(r"denoising_step_\d+|execute_diffusion_\d+")


class Step(NamedTuple):
    """A step: what it computes, when the device works for it; lengths of the sequences that decode."""

    phase: str
    requests: int
    tokens: int
    start: int
    end: int
    lengths: int = 0


def labelled(name: str) -> tuple[str, int, int] | None:
    """Phase, requests and tokens that an annotation states; none in a batch that serves nobody."""
    if name.endswith("): execute_dummy_batch"):
        return "idle", 0, 0
    if found := _VLLM.match(name):
        _, prompts, read, decodes, made = (int(part or 0) for part in found.groups())
        phase = "mixed" if prompts and decodes else "prefill" if prompts else "decode"
        return phase, prompts + decodes, read + made
    if found := _SGLANG.match(name):
        phase = _SGLANG_WORDS.get(found[1], found[1].lower())
        if phase == "idle":
            return "idle", 0, 0
        values = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", found[2])}
        tokens = values.get("c_sq", 0) + values.get("g_sq", 0) or values.get("toks") or values["bs"]
        return phase, values["bs"], tokens
    if found := _TENSORRT_LLM.match(name):
        prompts, read, decodes = (int(part) for part in found.groups())
        phase = "mixed" if prompts and decodes else "prefill" if prompts else "decode"
        return phase, prompts + decodes, read + decodes
    if found := ATOM.match(name):
        return "mixed" if found[5] else found[1], int(found[2]), int(found[4])
    return ("diffusion", 0, 0) if _DIFFUSION.match(name) else None


@memoize_per_rank()
def steps(rank: PlainRank) -> list[Step]:
    """The steps in order; of an annotation in an annotation the inner one, of several the outer one."""
    marks = [each for each in rank.events if each.category in MARKS and labelled(each.name)]
    marks = marks or scoped(rank)
    found = []
    for mark in marks:  # by start, the longer first
        inside = steps_in(marks, mark)
        around = [each for each in marks if each.start <= mark.start and mark.end <= each.end]
        if len(inside) == 2 or (len(around) > 1 and len(steps_in(marks, around[0])) > 2):
            continue
        work = [
            each for each in rank.work if (call := rank.launch(each)) and mark.start <= call.start < mark.end
        ]
        if not work:  # without launches, what its mark on the device holds
            alike = [each for each in marks if each.name == mark.name]
            there = [each for each in rank.events if each.category == "gpu_user_annotation"]
            there = [each for each in there if each.name == mark.name]
            if len(there) == len(alike):
                window = there[alike.index(mark)]
                work = [each for each in rank.work if window.start <= each.start < window.end]
        if work:
            phase, requests, tokens = labelled(mark.name) or ("", 0, 0)
            for each in inside:
                word, _, verified = labelled(each.name) or ("", 0, 0)
                if word == "verify":
                    phase, tokens = word, verified
            begin, end = min(each.start for each in leading(work)), max(each.end for each in work)
            lengths = re.search(r"(?:g_sk=|generation_\d+\(sq\d+sk)(\d+)", mark.name)
            found.append(Step(phase, requests, tokens, begin, end, int(lengths[1]) if lengths else 0))
    for at in range(len(found) - 2, -1, -1):  # decoding before a step that verifies drafts for it
        if found[at].phase == "decode" and found[at + 1].phase in ("verify", "draft"):
            ahead = next((step.phase for step in found[at:] if step.phase not in ("decode", "draft")), "")
            if ahead == "verify":
                found[at] = found[at]._replace(phase="draft")
    return found


def scoped(rank: PlainRank) -> list[Record]:
    """Steps of a runner that only names their parts: each from one that prepares inputs to the next."""
    parts = [each for each in rank.events if each.category == "user_annotation" and _SCOPE.match(each.name)]
    begins = [each for each in parts if each.name.lower().endswith("preprocess")]
    found = []
    for at, first in enumerate(begins):
        until = begins[at + 1].start if at + 1 < len(begins) else parts[-1].end + 1
        end = max(each.end for each in parts if first.start <= each.start < until)
        found.append(replace(first, name="step[UNKNOWN bs=0]", end=end))
    return found


def steps_in(marks: list[Record], outer: Record) -> list[Record]:
    """What an annotation holds, itself included."""
    return [each for each in marks if outer.start <= each.start and each.end <= outer.end]


def leading(work: list[Record]) -> list[Record]:
    """What a step begins with: the work on its busiest stream, copies to the host aside."""
    streams = {each.stream for each in work}
    busiest = max(streams, key=lambda stream: sum(each.dur for each in work if each.stream == stream))
    return [each for each in work if each.stream == busiest and "DtoH" not in each.name] or work


def nothing_in(rank: PlainRank, window: Window) -> list[Window]:
    """When the device does nothing in it."""
    return subtract([window], rank.busy["any"]) if window[0] < window[1] else []


@memoize_per_rank()
def resting(rank: PlainRank) -> list[Step]:
    """The steps after which the server has no requests for long: its host sleeps, or all are gone."""
    every = steps(rank)
    idle = [length(nothing_in(rank, (one.end, after.start))) for one, after in pairwise(every)]
    usual = median([each for each in idle if each] or [0])
    asleep = union(
        each.window for each in rank.events if each.category in CALLS and _SLEEPS.search(each.name)
    )
    found = []
    for at, each in enumerate(idle):
        if each < max(1_000_000, 2 * usual):
            continue
        later = every[at + 1 :]
        prompts = [step.requests for step in later[: next_of(later, "prefill")]]
        ahead = later[len(prompts) :][:1]
        gone = every[at].phase == "decode" and prompts and ahead and ahead[0].phase == "decode"
        slept = sum(length(overlap(asleep, part)) for part in [(every[at].end, every[at + 1].start)])
        if (gone and ahead[0].requests <= max(prompts)) or 2 * slept >= each:
            found.append(every[at])
    return found


def next_of(every: list[Step], phase: str) -> int:
    """How many steps at the begin are of this phase."""
    return next((at for at, step in enumerate(every) if step.phase != phase), len(every))


@memoize_per_rank()
def between(rank: PlainRank) -> list[Window]:
    """When the device does nothing between two steps, or for long in one as its host is late; collection
    of garbage and times without requests aside."""
    every, late = steps(rank), []
    for each in every:
        gaps = nothing_in(rank, (each.start, each.end))
        late += [gap for gap in gaps if gap[1] - gap[0] >= 200_000 and is_late(rank, gap)]
    for one, after in pairwise(every):
        if one not in resting(rank):
            late += nothing_in(rank, (one.end, after.start))
    collected = union(each.window for each in rank.events if each.name == "Python GC")
    found = subtract(union(late), collected)
    return [part for window in rank.windows for part in overlap(found, window)]


def is_late(rank: PlainRank, gap: Window) -> bool:
    """Whether what ends it is launched after its begin."""
    following = min((work for work in rank.work if work.start >= gap[1]), key=lambda work: work.start)
    call = rank.launch(following)
    return call is not None and call.end > gap[0]


@time_of("added_work", rel=0.02)
def added_work(rank: PlainRank, about: dict[str, Any]) -> int:
    """Kernels of a part beside the model's own, in judged steps."""
    work = [each for step in judged_steps(rank) for each in work_of(rank, step)]
    return sum(each.dur for each in work if part_of(each) == about["part"])


def steady(found: list[tuple[Step, int]]) -> list[tuple[Step, int]]:
    """The longest stretch whose batch stays within a tenth of its largest; all steps that read prompts."""
    if not found or found[0][0].phase != "decode":
        return found
    best: list[tuple[Step, int]] = []
    for first in range(len(found)):
        for last in range(first + 1, len(found) + 1):
            batch = [step.requests for step, _ in found[first:last]]
            if min(batch) >= 0.9 * max(batch) and last - first > len(best):
                best = found[first:last]
    return best


def timed(rank: PlainRank, about: dict[str, Any]) -> list[tuple[Step, int]]:
    """The steady steps of a phase, each with its period, or its own time where no step follows."""
    every = steps(rank)
    if about["phase"] == "verify":
        every = [step for step in every if step.phase != "draft"]
    if not about["follows"]:
        return [(step, step.end - step.start) for step in every if step.phase == about["phase"]]
    alone = list(resting(rank))
    alone += [one for one, after in pairwise(every) if left_out(rank, after)]
    every = [step for step in every if not left_out(rank, step)]
    periods = [(one, 0 if one in alone else after.start - one.start) for one, after in pairwise(every)]
    last = [(every[-1], 0)]
    chosen = steady([pair for pair in periods + last if pair[0].phase == about["phase"]])
    return [pair for pair in chosen if pair[1]]


def left_out(rank: PlainRank, step: Step) -> bool:
    """Whether it is not judged, though a later one is."""
    after = any(start >= step.end for start, _ in rank.windows)
    return after and not rank.within([(step.start, step.end)])


def is_drafted(step: Step) -> bool:
    return step.phase in ("decode", "verify") and step.tokens > step.requests


def emitted(rank: PlainRank) -> dict[Step, int]:
    """By how much the sequences of each step that verifies drafts have grown when the next one begins."""
    every = [step for step in steps(rank) if step.phase != "draft"]
    return {
        one: after.lengths - one.lengths
        for one, after in pairwise(every)
        if is_drafted(one) and one.requests == after.requests and one.phase == after.phase
        and one.requests <= after.lengths - one.lengths <= one.tokens
    }  # fmt: skip


@check("serving_period")
def serving_period(job: Job, stated: Stated) -> str:
    """The usual time from the begin of a step to that of the next, or per token that a request gets."""
    rank = the_rank(job, stated)
    found = timed(rank, stated.about)
    if stated.about.get("per_token") and any(step.tokens > step.requests for step, _ in found):
        new = emitted(rank)
        times = [time * step.requests / new[step] for step, time in found if step in new]
    else:
        times = [time for _, time in found]
    return close(stated, median(times), 0.01, 1_000.0)


@check("mean_token")
def mean_token(job: Job, stated: Stated) -> str:
    """The mean time from a step in which requests decode to the next of these."""
    rank = the_rank(job, stated)
    every = [step for step in steps(rank) if not left_out(rank, step)]
    unknown = [*resting(rank), *(one for one, after in pairwise(steps(rank)) if left_out(rank, after))]
    decoding = [at for at, step in enumerate(every) if step.phase in ("decode", "mixed", "verify")]
    times = [
        every[after].start - every[at].start for at, after in pairwise(decoding)
        if not any(step in unknown for step in every[at:after])
    ]  # fmt: skip
    return close(stated, sum(times) / len(times), 0.01, 1_000.0)


@check("serving_tokens")
def serving_tokens(job: Job, stated: Stated) -> str:
    """Tokens per second; of drafts those that were accepted."""
    rank = the_rank(job, stated)
    found, new = timed(rank, stated.about), emitted(rank)
    made = [(new.get(step, 0) if is_drafted(step) else step.tokens, time) for step, time in found]
    made = [(tokens, time) for tokens, time in made if tokens]
    return close(stated, 1e9 * sum(tokens for tokens, _ in made) / sum(time for _, time in made), 0.01)


@check("rank_of_rate")
def rank_of_rate(job: Job, stated: Stated) -> str:
    """It names steps, and is not the only one that does."""
    serving = [rank.number for rank in job.ranks.values() if steps(rank)]
    known = set(stated.value) <= set(serving) and len(serving) > 1
    return "" if known else f"ranks {serving} name steps"


@check("ranks_without_steps")
def ranks_without_steps(job: Job, stated: Stated) -> str:
    """These work and name no step; others do."""
    silent = [rank.number for rank in job.ranks.values() if rank.work and not steps(rank)]
    known = set(stated.value) <= set(silent) and len(silent) < len(job.ranks)
    return "" if known else f"ranks {silent} name no step"


@check("serving_works")
def serving_works(job: Job, stated: Stated) -> str:
    """How much of the period the device works, or of the step alone."""
    rank = the_rank(job, stated)
    found = timed(rank, stated.about)[: None if stated.about["follows"] else 1]
    busy = sum(length(overlap(rank.busy["any"], (step.start, step.start + time))) for step, time in found)
    return close(stated, 100.0 * busy / sum(time for _, time in found), 0.01)


@time_of("between_steps")
def between_steps(rank: PlainRank, about: dict[str, Any]) -> int:
    """The device does nothing between two steps."""
    return rank.within(between(rank))


@check("between_steps_in")
def between_steps_in(job: Job, stated: Stated) -> str:
    """The call is open in a tenth of that time or more, or in most of it."""
    rank = the_rank(job, stated)
    least = 0.5 if stated.about.get("mostly") else 0.1
    open_ = union(each.window for each in rank.named(str(stated.value)))
    inside = sum(length(overlap(open_, part)) for part in between(rank))
    whole = length(between(rank))
    return "" if 1.1 * inside >= least * whole else f"it is open for {inside} of {whole} ns"


@check("between_steps_part")
def between_steps_part(job: Job, stated: Stated) -> str:
    """The call is open for so much of that time."""
    rank = the_rank(job, stated)
    open_ = union(each.window for each in rank.named(stated.about["call"]))
    inside = sum(length(overlap(open_, part)) for part in between(rank))
    return close(stated, 100.0 * inside / length(between(rank)), 0.05, 1.0)


@check("unrecorded_after")
def unrecorded_after(job: Job, stated: Stated) -> str:
    """There is such a call, and less than half of the time between steps is recorded."""
    rank = the_rank(job, stated)
    if not rank.named(str(stated.value)):
        return "there is no such call"
    calls = union(each.window for each in rank.events if each.category in CALLS)
    recorded = sum(length(overlap(calls, part)) for part in between(rank))
    return "" if recorded <= 0.6 * length(between(rank)) else f"{recorded} ns of it are recorded"


def waits(rank: PlainRank) -> list[tuple[Step, int]]:
    """Of steps in which requests decode: how long until the next of these, where prompts are in between."""
    every, found = steps(rank), []
    decoding = [at for at, step in enumerate(every) if step.phase in ("decode", "mixed", "verify")]
    for at, following in pairwise(decoding):
        if any(step in resting(rank) for step in every[at:following]):
            continue
        prompts = any(step.phase == "prefill" for step in every[at + 1 : following])
        if prompts or every[at].phase == "mixed":
            found.append((every[at], every[following].start - every[at].start))
    return found


def usual(rank: PlainRank, about: dict[str, Any]) -> float:
    """From one step that only decodes to the next."""
    return median(time for _, time in timed(rank, {"phase": about["phase"], "follows": True}))


@time_of("behind_prompts", rel=0.05)
def behind_prompts(rank: PlainRank, about: dict[str, Any]) -> int:
    """What requests that decode wait longer because of prompts."""
    judged = [
        (step, time) for step, time in waits(rank)
        if any(start - 1_000_000_000 <= step.start < end for start, end in rank.windows)
    ]  # fmt: skip
    return round(sum(max(0, time - usual(rank, about)) for _, time in judged))


@check("longest_wait_for_token")
def longest_wait_for_token(job: Job, stated: Stated) -> str:
    """The longest of these."""
    return close(stated, max(time for _, time in waits(the_rank(job, stated))), 0.01, 1_000.0)


@check("wait_with_half_a_chunk")
def wait_with_half_a_chunk(job: Job, stated: Stated) -> str:
    """Half of what is more than usual."""
    rank = the_rank(job, stated)
    longest = max(time for _, time in waits(rank))
    return close(stated, (usual(rank, stated.about) + longest) / 2, 0.01, 1_000.0)


def last_few(rank: PlainRank) -> list[Window]:
    """When the device is at steps with less than an eighth of the requests of the largest batch before."""
    every, largest, found = steps(rank), 0, []
    for at, step in enumerate(every):
        largest = max(largest, step.requests)
        if 8 * step.requests < largest:
            found.append((step.start, every[at + 1].start if at + 1 < len(every) else step.end))
    return found


@time_of("few_requests", rel=0.02)
def few_requests(rank: PlainRank, about: dict[str, Any]) -> int:
    """All of it that is judged."""
    return rank.within(last_few(rank))


@check("steps_of_few_requests")
def steps_of_few_requests(job: Job, stated: Stated) -> str:
    return close(stated, len(last_few(the_rank(job, stated))), 0.0)


@check("requests_at_first")
def requests_at_first(job: Job, stated: Stated) -> str:
    """The largest batch, after which no step has more requests than the one before."""
    every = [step.requests for step in steps(the_rank(job, stated))]
    after = every[every.index(max(every)) :]
    if any(one < following for one, following in pairwise(after)):
        return "other requests join"
    return close(stated, max(every), 0.0)


_NAMED = (
    ("copies", r"^Memcpy"),
    ("LoRA", r"lora_|[bs]gmv"),
    (
        "communication",
        r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device|nccl|rccl"
        r"|(?:deep_ep|pplx)::.*(?:dispatch|combine)",
    ),
    ("experts", r"moe|expert|matmul_ogs|routing|bitmatrix|topk_|finalize_|grouped_gemm|GroupProblem"),
    (
        "others",
        r"norm|rope|rotary|_and_cache|store_kvcache|act_and_mul|Memset|elementwise|gather|triton_",
    ),
    ("attention", r"attention|attn|flash(?!infer)|reduce_segments"),
    ("sampling", r"argmax|sampl"),
    ("matrix products", r"Cijk_|gemm|nvjet|product|splitK"),
)


def part_of(record: Record) -> str:
    """Which part of the model a kernel is, by the first word of these in its name."""
    return _part_named(record.name)


@cache
def _part_named(name: str) -> str:
    found = (part for part, words in _NAMED if re.search(words, name, re.IGNORECASE))
    part = next(found, "others")
    return "other kernels" if part == "others" else part


def work_of(rank: PlainRank, step: Step) -> list[Record]:
    return [each for each in rank.work if step.start <= each.start < step.end]


def judged_steps(rank: PlainRank) -> list[Step]:
    """Those that begin in the judged time, or whose host does."""
    return [
        step for step in steps(rank)
        if any(start - 1_000_000_000 <= step.start < end for start, end in rank.windows)
    ]  # fmt: skip
