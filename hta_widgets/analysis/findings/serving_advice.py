"""What a server is advised: the options of the engine that was recorded, and of no other.

An option is named only where the engine's own documentation, or its list of arguments, has it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.analysis.findings.inputs import Inputs

EXCHANGE_LESS: Final = (
    "Overlap collectives with compute, use a fused or one-shot all-reduce, or divide the model among fewer "
    "devices (tensor parallelism)."
)
# The first whose names are recorded; some engines annotate steps as vLLM does, so that one comes last.
_ENGINES: Final = {
    "SGLang": re.compile(r"^step\[\w+ bs=|(?:^|/)sglang/"),
    "TensorRT-LLM": re.compile(r"^\[Executor\] _forward_step|(?:^|/)tensorrt_llm/"),
    "ATOM": re.compile(r"^(?:prefill|decode)\[bs=\d|(?:^|/)atom/"),
    "xDiT": re.compile(r"^execute_diffusion_|(?:^|/)xfuser/"),
    "vLLM": re.compile(r"^execute_(?:context|new|\d)|(?:^|/)vllm/|^gpu_model_runner: "),
}
_OPTIONS: Final = {
    "ahead": {
        "vLLM": "--async-scheduling, where it is not the default",
        "SGLang": "its overlap scheduler, no --disable-overlap-schedule",
        "TensorRT-LLM": "disable_overlap_scheduler: false",
    },
    "tokens": {
        "vLLM": "--stream-interval",
        "SGLang": "--stream-interval",
        "TensorRT-LLM": "stream_interval, num_postprocess_workers",
    },
    "graphs": {
        "vLLM": "without --enforce-eager",
        "SGLang": "without --disable-cuda-graph",
        "TensorRT-LLM": "with cuda_graph_config",
    },
    "larger graphs": {
        "vLLM": "--max-cudagraph-capture-size or --cudagraph-capture-sizes",
        "SGLang": "--cuda-graph-max-bs, or --cuda-graph-max-bs-decode",
        "TensorRT-LLM": "max_batch_size of cuda_graph_config",
    },
    "sizes of graphs": {
        "vLLM": "--cudagraph-capture-sizes",
        "SGLang": "--cuda-graph-bs, or --cuda-graph-bs-decode",
        "TensorRT-LLM": "batch_sizes of cuda_graph_config",
    },
    "chunks": {
        "vLLM": "--max-num-batched-tokens",
        "SGLang": "--chunked-prefill-size",
        "TensorRT-LLM": "enable_chunked_prefill with a smaller max_num_tokens",
    },
    "drafts": {
        "vLLM": "num_speculative_tokens of --speculative-config",
        "SGLang": "--speculative-num-steps, --speculative-num-draft-tokens",
        "TensorRT-LLM": "max_draft_len of speculative_config",
    },
    "experts": {
        "vLLM": "--enable-eplb with num_redundant_experts of --eplb-config",
        "SGLang": "--enable-eplb with --ep-num-redundant-experts",
        "TensorRT-LLM": "load_balancer of moe_config",
    },
    "requests": {
        "SGLang": "--load-balance-method",
        "TensorRT-LLM": "enable_balance of attention_dp_config",
    },
    "loaded adapters": {
        "vLLM": "--max-loras, --max-cpu-loras",
        "SGLang": "--max-loras-per-batch, --max-loaded-loras",
    },
    "batches": {
        "vLLM": "a smaller --max-num-seqs divides them",
        "SGLang": "a smaller --pp-max-micro-batch-size divides them",
    },
}


def engine_of(inputs: Inputs) -> str:
    """The engine whose names are recorded, "" for none of those that are known."""
    there = {name for rank in inputs.trace.ranks_of(inputs.scope) for name in inputs.recorded(rank, _engines)}
    return next((name for name in _ENGINES if name in there), "")


def _engines(rank_trace: RankTrace) -> list[str]:
    names = rank_trace.names
    return [engine for engine, pattern in _ENGINES.items() if any(map(pattern.search, names))]


def graphs_switch(inputs: Inputs) -> str:
    """How the recorded engine is told to replay graphs, "" for one that is not known."""
    engine = engine_of(inputs)
    how = _OPTIONS["graphs"].get(engine)
    return f"start {engine} {how}, which replays CUDA graphs" if how else ""


def option(inputs: Inputs, topic: str) -> str:
    """` (vLLM: --async-scheduling)`, the option of the recorded engine for a topic; "" if it has none."""
    engine = engine_of(inputs)
    said = _OPTIONS[topic].get(engine)
    return f" ({engine}: {said})" if said else ""
