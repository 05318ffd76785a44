"""The dimension of a grid of ranks that a process group runs along, from the words that describe it."""

from __future__ import annotations

import re
from typing import Final

DATA: Final = "data"
TENSOR: Final = "tensor"
PIPELINE: Final = "pipeline"
CONTEXT: Final = "context"
EXPERT: Final = "expert"
DIMENSIONS: Final = (DATA, PIPELINE, TENSOR, CONTEXT, EXPERT)
EMBEDDING: Final = "embedding"
"""No dimension: the stages at both ends of a pipeline, which share the weights of the embedding."""

_WORDS = {
    **dict.fromkeys(("data", "dp", "ddp", "fsdp", "hsdp"), DATA),
    **dict.fromkeys(("tensor", "tp"), TENSOR),
    **dict.fromkeys(("pipeline", "pp"), PIPELINE),
    **dict.fromkeys(("context", "cp"), CONTEXT),
    **dict.fromkeys(("expert", "experts", "ep", "moe"), EXPERT),
    **dict.fromkeys(("embedding", "embeddings", "embd"), EMBEDDING),
}
_ROLES = {"shard": "shard", "replicate": "replicate"}


def described(description: str) -> tuple[tuple[str, ...], str]:
    """The dimensions that a description names, in the order of `DIMENSIONS`, and its role in hybrid sharding.

    Megatron-Core describes its groups as `TENSOR_MODEL_PARALLEL_GROUP`, PyTorch's DeviceMesh as `mesh_tp`
    (megatron/core/parallel_state.py, torch/distributed/device_mesh.py). A group that spans several dimensions
    names all of them (`mesh_dp_cp`); Megatron-Core's model-parallel group spans tensor and pipeline.

    Returns:
        Dimensions, empty if the description names none, and "shard", "replicate" or "".
    """
    words = [word.removesuffix("parallel") or word for word in re.split(r"[^a-z0-9]+", description.lower())]
    found = {_WORDS[word] for word in words if word in _WORDS}
    if EMBEDDING in found:
        return (EMBEDDING,), ""
    if not found and "model" in words:
        found = {TENSOR, PIPELINE}
    role = next((_ROLES[word] for word in words if word in _ROLES), "") if found == {DATA} else ""
    return tuple(dimension for dimension in DIMENSIONS if dimension in found), role
