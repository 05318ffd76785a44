"""What the host called, and what that cost.

tree            who called whom;  `paths` numbers equal paths
stacks          calls summed over equal paths: a flame graph
modules         the same by `nn.Module`
op_counts       operations by name
sequences       operators by the kernels that they launch, in order
cupti           hardware counters, by operator
"""
