"""How the ranks of a job form a grid, and how well they share the work along its dimensions.

dimensions      what a process group is for, by its description
process_groups  the groups of each rank, with their members and what they carry
partners        whether ranks that send to each other form a chain or a ring
exchanges       tokens that go to experts, and come back
grid            `parallelism`;  uses all of these and `strategy`
coordinates     stage, replica, tensor and context rank of each rank;  uses `grid`
microbatches    the passes of microbatches through a stage;  `schedules` their order
bubbles         the parts of a step, and the bubble of a schedule
pipeline        `pipeline`;  uses these and `grid`
rescheduled     a pipeline with another number of microbatches;  uses these
experts         `expert_balance`;  uses `exchanges` and `grid`
"""
