"""Regions that the program, or PyTorch, named.

regions         how often they occur and how long they take
kernels         what the device works for them;  `owners` says which region a kernel belongs to
"""
