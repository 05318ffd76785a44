"""How a job is trained, derived from its collectives: DDP, FSDP and the like, sizes, and memory needed.

messages        the collectives of each step, and which part of the step sends them
step            one step of one group, as a `reading`;  uses `data_parallel` and `model_parallel`
group_evidence  all steps and groups of a rank
table           `training_strategy`;  uses `rows` and `silence`
model_states    `strategy_memory`
fsdp_passes     which FSDP unit each collective and kernel belongs to
fsdp_units      what each of them gathers, computes and reduces
"""
