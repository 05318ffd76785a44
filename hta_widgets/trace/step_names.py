"""Names that mark a step: training's ``ProfilerStep#N`` and the serving engines' annotations.

There is no standard for serving steps; the table below has one row per engine's format.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace

PROFILER_STEP = re.compile(r"^ProfilerStep\s*#\s*(\d+)")
# Scopes of vLLM's runners, each a part of a step; the forward pass is in every step once.
_RUNNER_SCOPE = re.compile(r"^(?:\w+_)?model_runner: (\w+)")
_BEFORE_FORWARD = frozenset(
    {"preprocess", "prepare", "update_states", "prepare_inputs", "synchronize", "prepare input"}
)
# Scopes that name no runner: of vLLM until 0.11, and on Ascend. Only those of a set together are a step's.
_BARE_SCOPES = (
    (frozenset({"Preprocess", "Forward", "Bookkeep"}), frozenset({"Postprocess", "Sample", "Draft", "EPLB"})),
    (frozenset({"prepare input", "forward", "post process"}), frozenset({"sample_token", "draft_token"})),
)


@dataclass(frozen=True)
class ServingStep:
    """What a serving engine's annotation says about a step; None where it says nothing."""

    # ``prefill``, ``decode``, ``mixed``, ``verify``, ``draft``, ``diffusion``, ``idle``, ``unknown`` or the
    # engine's own word in lower case
    phase: str
    batch_size: int | None = None  # requests in the step
    # tokens processed in the step; more than requests in a decode step that verifies drafts
    tokens: int | None = None
    padded: int | None = None  # requests that it computes, with those that only fill up the captured graph
    prompts: int | None = None  # requests whose prompts (or pieces of them) are read
    prompt_tokens: int | None = None  # tokens of these
    kv_tokens: int | None = None  # lengths of all sequences in the cache, added up: what attention reads
    decode_kv_tokens: int | None = None  # the same of the requests that decode

    def filled(self, other: "ServingStep") -> "ServingStep":
        """What is missing here from another annotation of the same step; nothing if it is of another one."""
        for name in ("phase", "batch_size", "tokens"):
            own, others = getattr(self, name), getattr(other, name)
            if own not in (None, "unknown") and others not in (None, "unknown", own):
                return self
        missing = {
            each.name: getattr(other, each.name)
            for each in fields(self)
            if getattr(self, each.name) in (None, "unknown")
        }
        return replace(self, **missing)


def _phase(prompts: int, decodes: int) -> str:
    if prompts and decodes:
        return "mixed"
    return "prefill" if prompts else "decode" if decodes else "idle"


def _total(*parts: int | None) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _vllm(match: re.Match[str]) -> ServingStep:
    """The sums in brackets are tokens (`37`, or `sq37`) and lengths of the sequences (`sk5120`)."""
    prompts, decodes = int(match["prompts"]), int(match["decodes"])
    inside = [match["of_prompts"] or "", match["of_decodes"] or ""]
    queries, lengths = ([_sum_in(text, key) for text in inside] for key in ("sq", "sk"))
    tokens = _total(*queries)
    if tokens is None and match["tokens"]:
        tokens = int(match["tokens"])
    return ServingStep(
        _phase(prompts, decodes), prompts + decodes, tokens,
        prompts=prompts, prompt_tokens=queries[0],
        kv_tokens=_total(*lengths), decode_kv_tokens=lengths[1],
    )  # fmt: skip


def _sum_in(text: str, key: str) -> int | None:
    """`sk5120` in `sq37sk5120sqsq37sqsk5120`; a plain number, before any other, is that of tokens."""
    found = re.search(rf"(?:^|\d){key}(\d+)", text) or (re.match(r"(\d+)", text) if key == "sq" else None)
    return int(found[1]) if found else None


def _vllm_new(match: re.Match[str]) -> ServingStep:
    new, cached = (int(part) for part in match.groups())
    return ServingStep(_phase(new, cached), new + cached, prompts=new)


def _diffusion(match: re.Match[str]) -> ServingStep:
    return ServingStep("diffusion", int(match[1]) if match[1] else None)


def _tensorrt_llm(match: re.Match[str]) -> ServingStep:
    prompts, decodes = int(match["prompts"]), int(match["decodes"])
    read = int(match["read"]) if match["read"] else None if prompts else 0
    written = int(match["written"]) if match["written"] else decodes
    return ServingStep(
        _phase(prompts, decodes), prompts + decodes, _total(read, written),
        prompts=prompts, prompt_tokens=read,
    )  # fmt: skip


_WORDS = {
    "extend": "prefill",
    "split_prefill": "prefill",
    "target_verify": "verify",
    "draft_extend": "draft",
    "draft_extend_v2": "draft",
}


# Phases in which no prompt is read.
_ONLY_WRITES = ("decode", "verify", "draft", "idle")


def _values(text: str) -> tuple[dict[str, int], int | None]:
    """`bs=117/128 tok=117`: whole numbers by name, none that stands there twice; and the padded batch."""
    found = re.findall(r"(?<!\w)(\w+)=(\d+)(?:/(\d+))?(?![\w./])", text)
    names = [name for name, _, _ in found]
    value = {name: int(number) for name, number, _ in found if names.count(name) == 1}
    padded = next((int(whole) for name, _, whole in found if name == "bs" in value and whole), None)
    return value, padded


def _fields(match: re.Match[str]) -> ServingStep:
    """`step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 g_sq=1 g_sk=12]`, `decode[bs=117/128 tok=117 d=117 sk=5120]`."""
    word = match["word"].lower()
    if word.startswith("dummy_"):  # computes only because other ranks do
        return ServingStep("idle", 0, 0)
    word = word.removeprefix("eager_")
    phase = _WORDS.get(word, word)
    value, padded = _values(match["fields"])
    size = value.get("bs")
    prompts, decodes = value.get("c", value.get("p")), value.get("g", value.get("d"))
    if prompts is not None and decodes is not None and prompts + decodes:
        phase = _phase(prompts, decodes)
    reads, writes = phase not in _ONLY_WRITES, phase != "prefill"
    queries = [value[name] for name in ("c_sq", "g_sq") if name in value]
    tokens = sum(queries) if queries else value.get("toks", value.get("tok"))
    if tokens is None and phase == "idle":
        tokens = 0
    elif tokens is None and phase == "decode" and size is not None:
        # a token per request, which SGLang therefore does not repeat, and those that were drafted
        tokens = size * (1 + value.get("spec", 0))
    lengths = [value[name] for name in ("c_sk", "g_sk") if name in value]
    kv_tokens = sum(lengths) if lengths else value.get("sk")
    decode_kv_tokens = value.get("g_sk", None if reads else kv_tokens)
    prompt_tokens = value.get("c_sq", None if writes else tokens) if reads else 0
    return ServingStep(
        phase, size, tokens, padded,
        prompts if prompts is not None else size if not writes else None if reads else 0,
        prompt_tokens, kv_tokens, decode_kv_tokens,
    )  # fmt: skip


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], ServingStep]], ...] = (
    # vLLM: execute_8192_context_9(sq8155sk...)_generation_37(sq37sk...), all tokens first;
    # execute_context_9(8155)_generation_37(37); execute_context_1(888_788544)_generation_0(0)
    (
        re.compile(
            r"^execute_(?:(?P<tokens>\d+)_)?context_(?P<prompts>\d+)(?:\((?P<of_prompts>[^)]*)\))?"
            r"_generation_(?P<decodes>\d+)(?:\((?P<of_decodes>[^)]*)\))?"
        ),
        _vllm,
    ),
    # vLLM before 0.11: execute_new_2_cached_30
    (re.compile(r"^execute_new_(\d+)_cached_(\d+)"), _vllm_new),
    # xDiT: execute_diffusion_1_256x256: images, size; SGLang's diffusion: denoising_step_7
    (re.compile(r"^execute_diffusion_(\d+)"), _diffusion),
    (re.compile(r"^denoising_step_()\d+"), _diffusion),
    # TensorRT-LLM: [Executor] _forward_step 57: 1 ctx reqs, 128 ctx tokens, 3 gen reqs
    (
        re.compile(
            r"^(?:\[Executor\] )?(?:_forward_step(?: \d+)?|executeStep): (?P<prompts>\d+) ctx reqs,? "
            r"(?:(?P<read>\d+) ctx tokens,? )?(?P<decodes>\d+) gen reqs(?:,? (?P<written>\d+) gen tokens)?"
        ),
        _tensorrt_llm,
    ),
    # SGLang: step[DECODE bs=32], step[EXTEND bs=15 toks=15360]
    (re.compile(r"^step\[(?P<word>\w+)\s*(?P<fields>.*)\]"), _fields),
    # ATOM: prefill[bs=2 tok=14721 ctx=[7803, 6918]], decode[bs=117/128 tok=117 d=117]
    (
        re.compile(
            r"^(?P<word>(?:dummy_)?(?:eager_)?(?:prefill|decode|mixed|verify|draft))\[(?P<fields>bs=\d.*)\]"
        ),
        _fields,
    ),
)

# vLLM's Python function for a batch of no requests, computed only because other ranks exchange tokens; no
# annotation names it.
_DUMMY = re.compile(r"^\S*\(\d+\): execute_dummy_batch$")
# How the names of all these forms begin: few names of a recording do.
_BEGINS = re.compile(
    r"^(?:execute|denoising_step_|\[Executor\] |_forward_step|step\["
    r"|(?:dummy_)?(?:eager_)?(?:prefill|decode|mixed|verify|draft)\[)"
)


# More requests or tokens than any step has.
_NO_COUNT = re.compile(r"\d{16}")


def _consistent(step: ServingStep) -> ServingStep:
    """Without numbers that contradict each other: fewer tokens than requests, a batch padded to less."""
    size, tokens = step.batch_size, step.tokens
    if size is not None and step.padded is not None and step.padded < size:
        step = replace(step, padded=None)
    if size is not None and tokens is not None and tokens < size:
        step = replace(step, tokens=None, prompt_tokens=None)
    return step


def profiler_step(name: str) -> int | None:
    """The number in ``ProfilerStep#N``, None for any other name."""
    match = PROFILER_STEP.match(name)
    return int(match[1]) if match else None


def serving_step(name: str) -> ServingStep | None:
    """What a serving engine's step annotation says, None for any other name."""
    if not _BEGINS.match(name):
        return ServingStep("idle", 0, 0) if _DUMMY.match(name) else None
    for pattern, read in _FORMS:
        match = pattern.match(name)
        if match:
            return ServingStep("unknown") if _NO_COUNT.search(name) else _consistent(read(match))
    # An engine's own variant of a known form is still a step, only without details.
    return ServingStep("unknown") if name.startswith("execute_") and "_generation_" in name else None


def runner_scopes(names: Iterable[str]) -> dict[str, str]:
    """The names that are scopes of a model runner: which part of a step each is, ``before`` the forward pass,
    ``forward``, or ``after`` it.
    """
    names = frozenset(names)
    scopes = {name: match[1] for name in names if (match := _RUNNER_SCOPE.match(name))}
    for all_of, some_of in _BARE_SCOPES:
        if not scopes and all_of <= names:
            scopes = {name: name for name in names & (all_of | some_of)}
    words = {name: scope[:1].lower() + scope[1:] for name, scope in scopes.items()}
    return {
        name: "forward" if word == "forward" else "before" if word in _BEFORE_FORWARD else "after"
        for name, word in words.items()
    }
