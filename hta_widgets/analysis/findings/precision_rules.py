"""Matrix products in a precision that costs time: full fp32, and TF32 where 16 bits would do."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import pandas as pd

from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import known_peaks
from hta_widgets.analysis.kernels.classes import MATRIX, kernel_class
from hta_widgets.analysis.replay import edits
from hta_widgets.formatting import percent, significant
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import unique

if TYPE_CHECKING:
    from hta_widgets.analysis.kernels.units import Unit
    from hta_widgets.analysis.replay.edits import Edit
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["RULES", "fp32_units", "tf32_units"]

_LEAST_PCT = 30.0
"""A smaller share of the time of matrix products may be some parts that need the precision."""

_FASTER: Final = 2.0
"""16 bits are half the bytes of fp32: also a product that waits for memory takes half the time. More would be
a guess: how far a product is from the memory's limit depends on its shape."""

_FULL: Final = ("simt_fp32", "tensor_fp32")


def fp32_units(inputs: Inputs) -> Finding | None:
    """Matrix products in full fp32, on a device whose tensor cores multiply 16 bits several times as fast."""
    share, lost = _share(inputs, _FULL)
    if share <= _LEAST_PCT:
        return None
    why = "kernels multiply in full fp32; whether the device has faster units cannot be told"
    peaks = known_peaks(inputs, inputs.temporal["rank"].tolist(), why)
    fast, full = peaks.tflops.get("tensor_16bit"), max(peaks.tflops.get(unit, 0.0) for unit in _FULL)
    if fast is None or not full or fast < _FASTER * full:
        return None
    advice = "torch.autocast with torch.float16 and a GradScaler, which suits models that tolerate 16 bits."
    if "tensor_tf32" in peaks.tflops:
        advice = (
            'torch.set_float32_matmul_precision("high") is one line: fp32 tensors, multiplied as TF32 with '
            "10 bits of mantissa. torch.autocast with torch.bfloat16 also halves the memory traffic."
        )
    elif "AMD" in peaks.source:
        advice = "torch.autocast with torch.bfloat16, which also halves the memory traffic."
    return _finding(
        inputs, _FULL, share, lost,
        f"in full fp32; tensor cores of this device ({peaks.device}) multiply 16 bits at up to "
        f"{significant(fast / full)} times that rate",
        advice,
    )  # fmt: skip


def tf32_units(inputs: Inputs) -> Finding | None:
    """Matrix products in TF32: every device with TF32 multiplies 16 bits twice as fast."""
    share, lost = _share(inputs, ("tensor_tf32",))
    if share <= _LEAST_PCT:
        return None
    return _finding(
        inputs, ("tensor_tf32",), share, lost,
        "in TF32; the same tensor cores multiply 16 bits twice as fast",
        "torch.autocast with torch.bfloat16, or FSDP's MixedPrecisionPolicy(param_dtype=torch.bfloat16): it "
        "has the exponents of fp32, so that no loss scaling is needed.",
    )  # fmt: skip


def _finding(
    inputs: Inputs,
    units: Collection[str],
    share: float,
    lost: pd.Series[float],
    words: str,
    advice: str,
) -> Finding | None:
    about = inputs.temporal[inputs.temporal["rank"].isin(lost.index[lost > 0])]
    cost = int(lost.sum() / len(about))
    pct = 100.0 * lost.sum() / int(about["window_ns"].sum())
    longest = _kernels(inputs)[0]
    longest = longest[[name for name in longest.index if kernel_class(name).unit in units]]
    return Finding(
        cost,
        pct,
        f"{percent(share)} of the time of matrix products, convolutions and attention is spent {words}. In "
        f"16 bits they take half as long or less, which is {inputs.share(pct)}{inputs.per_step(cost)} lost; "
        f"the longest is {short_kernel_name(str(longest.idxmax()))}.",
        f"{advice} Check that the loss stays the same.",
        "kernel_classes",
        Evidence(
            rank=int(about["rank"].iloc[0]) if len(about) < len(inputs.temporal) else None,
            name=str(longest.idxmax()),
        ),
        change=Change(f"with these products {_FASTER:g} times as fast", lambda rank: _faster(rank, units)),
    )


def _faster(rank_trace: RankTrace, units: Collection[str]) -> list[Edit]:
    compute = rank_trace.is_device & (rank_trace.event_class == EventClass.COMPUTE)
    names = sorted(rank_trace.names[code] for code in unique(rank_trace.name[compute]).tolist())
    chosen = [name for name in names if _multiplies(name, units)]
    return [edits.kernels(_FASTER, name=edits.exactly(name)) for name in chosen]


def _multiplies(name: str, units: Collection[str]) -> bool:
    found = kernel_class(name)
    return found.operation in MATRIX and found.unit in units


def _share(inputs: Inputs, units: Collection[Unit] | Collection[str]) -> tuple[float, pd.Series[float]]:
    """Share (%) of the time of all matrix products that these units take; and by rank half of it, ns."""
    total, by_rank = _kernels(inputs)
    products = [name for name in total.index if kernel_class(name).operation in MATRIX]
    slow = [name for name in products if kernel_class(name).unit in units]
    whole = float(total[products].sum())
    share = 100.0 * float(total[slow].sum()) / whole if whole else 0.0
    return share, by_rank.loc[slow].sum() * (1 - 1 / _FASTER)


def _kernels(inputs: Inputs) -> tuple[pd.Series[float], pd.DataFrame]:
    """Time of each compute kernel over all ranks, and by rank, ns."""
    counts, means = inputs.compute_kernels
    by_rank = (counts * means).fillna(0.0)
    return by_rank.sum(axis=1), by_rank


RULES = (
    Rule(
        topic="fp32_units",
        question="on which units kernels multiply",
        title="Multiplying in full fp32",
        judge=fp32_units,
        risk="TF32 keeps 10 bits of the mantissa, BF16 7: losses and metrics have to be compared.",
        needs="Units for matrices: Volta or later, CDNA.",
    ),
    Rule(
        topic="tf32_units",
        question="on which units kernels multiply",
        title="Multiplying in TF32 instead of 16 bits",
        judge=tf32_units,
        risk="BF16 keeps 7 bits of the mantissa: losses and metrics have to be compared.",
        needs="torch.autocast, and a device of 2020 or later.",
    ),
)
