"""How a job is trained, as its collectives tell it: DDP, FSDP and the like, sizes, and memory that follows.

messages        the collectives of each step, and which part of the step sends them
step            one step of one group: `data_parallel`, `model_parallel`; what is said is a `reading`
evidence           all steps and groups of a rank
table           `training_strategy`; `rows` and `silence` are parts of it
model_states    `strategy_memory`
"""

from hta_widgets.analysis.strategy.model_states import strategy_memory
from hta_widgets.analysis.strategy.table import strategies, training_strategy

__all__ = ["strategies", "strategy_memory", "training_strategy"]
