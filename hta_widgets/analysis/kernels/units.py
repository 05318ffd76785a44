"""The arithmetic units of a device, as kernels name them and datasheets state their peaks.

SIMT units multiply numbers one by one in every thread; tensor cores (matrix cores on AMD devices) multiply
tiles. How fast a matrix product can be depends on the unit that its kernel uses, not on the type of the
tensors: fp32 tensors may be multiplied on SIMT units, or on tensor cores as TF32.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

Unit = Literal[
    "simt_fp64",
    "simt_fp32",
    "simt_fp16",
    "tensor_fp64",
    "tensor_fp32",
    "tensor_tf32",
    "tensor_16bit",
    "tensor_8bit",
    "tensor_4bit",
]

UNITS: Final[tuple[Unit, ...]] = get_args(Unit)
"""Every unit; 8 and 4 bits are integers or floating point alike."""
