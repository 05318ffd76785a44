"""Operators: their time, their floating-point operations and their memory traffic.

table       the analysis;  `groups` tells what its rows are, `totals` sums them
calls       operators and modules as they nest, with the work launched in them
costs       formulas evaluated;  `coverage` tells how much of the device work has one
formulas    which formula an operator has;  `inputs` what they read, `cost` what they answer
matmul, library_gemm, convolution, attention, norms, pointwise, reductions, embeddings, optimizers, copies,
quantization, paged_attention, experts, compiled    the formulas, a module for each family
unfused_attention, fused_attention   attention in several operators, and its time in one kernel
unaligned   products whose sizes keep kernels from loading 16 bytes at once
waves, underfilled, tiny_products   kernels that leave the device empty, where no change above is about them
            (`fixed_elsewhere`);  `least_times` tells what they could take
chains      pointwise kernels that could be one
recomputed  what the backward pass runs again of the forward pass
roofline    how far operators are from what the device could do
utilization MFU, HFU and MBU of steps;  `step_work` adds up what they do, `six_p_t` what the model needs,
            `utilization_rows` makes its rows
categories  the category of an operator
"""
