"""Names that mark a step: training's ``ProfilerStep#N`` and the serving engines' annotations.

There is no standard for serving steps; the table below has one row per engine's format.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

PROFILER_STEP = re.compile(r"^ProfilerStep\s*#\s*(\d+)")


@dataclass(frozen=True)
class ServingStep:
    """What a serving engine's annotation says about a step; None where it says nothing.

    Attributes:
        phase: ``prefill``, ``decode``, ``mixed``, ``diffusion`` or the engine's own word in lower case.
        batch_size: requests in the step.
        tokens: tokens processed in the step.
    """

    phase: str
    batch_size: int | None = None
    tokens: int | None = None


def _requests(context: int, generation: int) -> str:
    if context and generation:
        return "mixed"
    return "prefill" if context else "decode"


def _vllm_total(match: re.Match[str]) -> ServingStep:
    tokens, context, generation = (int(part) for part in match.groups())
    return ServingStep(_requests(context, generation), context + generation, tokens)


def _vllm_split(match: re.Match[str]) -> ServingStep:
    context, context_tokens, generation, generation_tokens = (int(part) for part in match.groups())
    tokens = context_tokens + generation_tokens
    return ServingStep(_requests(context, generation), context + generation, tokens)


def _vllm_new(match: re.Match[str]) -> ServingStep:
    new, cached = (int(part) for part in match.groups())
    return ServingStep(_requests(new, cached), new + cached)


def _diffusion(match: re.Match[str]) -> ServingStep:
    return ServingStep("diffusion", int(match[1]))


SGLANG_PHASES = {"extend": "prefill", "target_verify": "verify", "draft_extend": "draft"}


def _sglang(match: re.Match[str]) -> ServingStep:
    word = match[1].lower()
    fields = dict(re.findall(r"(\w+)=(\d+)", match[2]))
    size = int(fields["bs"]) if "bs" in fields else None
    # A decode step makes one token per request, which SGLang therefore does not repeat.
    tokens = int(fields["toks"]) if "toks" in fields else size if word == "decode" else None
    return ServingStep(SGLANG_PHASES.get(word, word), size, tokens)


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], ServingStep]], ...] = (
    # vLLM gpu_model_runner: execute_8192_context_9(sq...)_generation_37(sq...): tokens, prompts, decodes
    (re.compile(r"^execute_(\d+)_context_(\d+)\([^)]*\)_generation_(\d+)"), _vllm_total),
    # vLLM gpu_worker: execute_context_9(8155)_generation_37(37): prompts (their tokens), decodes (their
    # tokens)
    (re.compile(r"^execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)"), _vllm_split),
    # vLLM before 0.11: execute_new_2_cached_30
    (re.compile(r"^execute_new_(\d+)_cached_(\d+)"), _vllm_new),
    # xDiT: execute_diffusion_1_256x256: images, size
    (re.compile(r"^execute_diffusion_(\d+)"), _diffusion),
    # SGLang scheduler: step[DECODE bs=32], step[EXTEND bs=15 toks=15360]
    (re.compile(r"^step\[(\w+)\s*([^\]]*)\]"), _sglang),
)


def profiler_step(name: str) -> int | None:
    """The number in ``ProfilerStep#N``, None for any other name."""
    match = PROFILER_STEP.match(name)
    return int(match[1]) if match else None


def serving_step(name: str) -> ServingStep | None:
    """What a serving engine's step annotation says, None for any other name."""
    for pattern, read in _FORMS:
        match = pattern.match(name)
        if match:
            return read(match)
    # An engine's own variant of a known form is still a step, only without details.
    return ServingStep("unknown") if name.startswith("execute_") and "_generation_" in name else None
