"""Annotated regions: spans that the program, or PyTorch, has named.

regions         how often they run and how long they take
kernels         the device work they cause;  `owners` finds the region of each kernel
"""
