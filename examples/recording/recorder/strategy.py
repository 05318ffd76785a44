"""How ranks share the training. Needs PyTorch."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn.parallel import DistributedDataParallel

from recorder.gpt import Block
from recorder.machine import Place

_SHARDING = {
    "fsdp_full_shard": ShardingStrategy.FULL_SHARD,
    "fsdp_shard_grad_op": ShardingStrategy.SHARD_GRAD_OP,
}


def shared(model: nn.Module, strategy: str, here: Place) -> Any:
    """The model, wrapped as the strategy says: PyTorch's defaults, and FSDP units of one block."""
    if strategy == "ddp":
        return DistributedDataParallel(model, [here.device] if here.device.type == "cuda" else None)
    if strategy in _SHARDING:
        return FullyShardedDataParallel(
            model,
            sharding_strategy=_SHARDING[strategy],
            auto_wrap_policy=ModuleWrapPolicy({Block}),
            device_id=here.device,
        )
    return model
