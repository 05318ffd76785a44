"""What devices compute that do so nearly all of the time: kinds of kernels, their types, and their roof."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import pandas as pd

from hta_widgets.analysis.core.claim import Claim, Said, say, says, says_then
from hta_widgets.analysis.findings.finding import NOTE_PCT, Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import MAIN_QUESTION, Rule, never
from hta_widgets.analysis.findings.turn_rules import devices_of
from hta_widgets.analysis.kernels.classes import MATRIX, kernel_class
from hta_widgets.analysis.operators.roofline import roofline
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, percent
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.scope import Scope

COMPUTE_BOUND_PCT: Final = 80.0
"""From this share of the time on, what is not computing cannot be what makes the steps long."""
_MOST_KERNELS: Final = 2
_LEAST_PCT: Final = 0.1
_MOST_KINDS: Final = 4
_LEAST_KIND_PCT: Final = 5.0
_KINDS: Final = {
    "gemm": "matrix products", "gemv": "products of matrix and vector", "convolution": "convolutions",
    "attention": "attention", "elementwise": "pointwise kernels", "normalization": "normalization",
    "softmax": "softmax", "reduction": "reductions", "copy": "copies and casts",
    "layout": "changes of layout", "indexing": "indexing", "embedding": "embeddings",
    "optimizer": "the optimizer", "sort": "sorting",
    "scan": "scans", "fill": "fills",
}  # fmt: skip
_ADVICE: Final = {
    "elementwise": "torch.compile makes one kernel of several pointwise ones: values stay in registers.",
    "copy": "Look at which operators copy and cast: .contiguous(), .to(), cat.",
    "layout": "Keep tensors in the layout that the convolutions use: memory_format=torch.channels_last."
    "{channels_last}",
}
_LOOK: Final = "Look at the kernels that take most time: their data types, shapes and operators."
_PRODUCTS: Final = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


def compute_bound(inputs: Inputs) -> Finding | None:
    """Devices that compute nearly all of the time: the kernels themselves are what takes it.

    Its share is the time that computes, and it costs nothing: computing is what a device is for.
    """
    frame = inputs.temporal
    if frame.empty:
        return None
    several = [devices for rank in frame["rank"] if (devices := inputs.of(int(rank), devices_of)).number > 1]
    share = 100.0 * int(frame["compute_ns"].sum()) / int(frame["window_ns"].sum())
    each = 100.0 * sum(devices.compute_ns for devices in several) / int(frame["window_ns"].sum())
    if share < COMPUTE_BOUND_PCT or (len(several) == len(frame) and each < COMPUTE_BOUND_PCT):
        return None
    who = "The device computes" if len(frame) == 1 and not several else "The devices compute"
    ranks, rest = frame["rank"].tolist(), 100.0 - share
    kernels = _kernel_shares(inputs)
    kinds = _kinds(kernels)
    by_short = kernels.groupby(short_kernel_name, sort=False).sum().nlargest(_MOST_KERNELS)
    longest: list[Said] = [
        say(
            "{name} ({share})",
            name=Claim(
                "kernel_with_most_time",
                str(name),
                "name",
                ranks=tuple(ranks),
                about={"nth": nth},
                shown=str(name),
            ),
            share=Claim("kernel_time", part, "%", "computing", tuple(ranks), {"short_name": str(name)}),
        )
        for nth, (name, part) in enumerate(by_short.items())
    ]
    text = say(
        "{who} {share}{rest}.{kinds}{kernels}{roof}{hidden}",
        who=who,
        share=inputs.share_of_time("computing", share, ranks),
        rest=say(
            "; everything else takes {rest}",
            # no more precisely than anybody could act on
            rest=inputs.of_time("not_computing", rest, ranks)
            if rest >= _LEAST_PCT
            else Claim("not_computing", rest, "%", inputs.whole, tuple(ranks),
                       shown=f"less than {percent(_LEAST_PCT)}"),
        )
        if rest > 0
        else "",
        # none where the scope's names are those of work that began before it
        kernels=say(" The kernels with most computing time: {longest}.", longest=says(longest, ", "))
        if longest
        else "",
        kinds=_of_kinds(kinds, ranks),
        roof=_of_roof(inputs, ranks),
        hidden=_of_hidden(inputs, frame),
    )  # fmt: skip
    leading = kinds.index[0][0] if len(kinds) else ""
    return Finding(
        0,
        share,
        text,
        inputs.accelerator.fill(_ADVICE.get(leading, _LOOK)),
        "kernel_breakdown",
        Evidence(name=str(kernels.index[0]) if len(kernels) else ""),
        severity="verdict",
        headline=_headline(kinds, by_short),
    )


def _kinds(kernels: pd.Series[float]) -> pd.Series[float]:
    """Of the computing time the share (%) of each operation and type of operands, largest first.

    The operation is "" where names do not tell it; the type is that of what multiplies.
    """
    found: dict[tuple[str, str], float] = {}
    for name, share in kernels.items():
        known = kernel_class(str(name))
        operation = known.operation if known.operation in _KINDS else ""
        key = (operation or "", known.operand or "" if operation in MATRIX else "")
        found[key] = found.get(key, 0.0) + float(share)
    return pd.Series(found, dtype="float64").sort_values(ascending=False, kind="stable")


def _label(kind: Hashable) -> str:
    assert isinstance(kind, tuple)
    operation, operand = kind
    if operation in MATRIX:
        return f"{_KINDS[operation]} {f'in {operand}' if operand else 'of unknown type'}"
    return _KINDS.get(operation, "kernels whose names do not say what they do")


def _of_kinds(kinds: pd.Series[float], ranks: list[int]) -> Said:
    shown = kinds[kinds >= _LEAST_KIND_PCT].head(_MOST_KINDS)
    if shown.empty or all(isinstance(kind, tuple) and not kind[0] for kind in shown.index):
        return ""
    parts: list[Said] = []
    for kind, share in shown.items():
        about = dict(zip(("operation", "operand"), kind, strict=True)) if isinstance(kind, tuple) else {}
        parts.append(
            say(
                "{kind} {share}",
                kind=Claim(
                    "kind_of_kernels", _label(kind), "name", "", tuple(ranks), about, shown=_label(kind)
                ),
                share=Claim("computing_in_kind", float(share), "%", "computing", tuple(ranks), about),
            )
        )
    return say(" Of computing time: {parts}.{rest}", parts=says(parts[:2]), rest=says_then(parts[2:]))


def _headline(kinds: pd.Series[float], by_short: pd.Series[float]) -> str:
    """What most of it is, without numbers: a kind, or a kernel where that is of no known kind."""
    known = not kinds.empty and isinstance(kinds.index[0], tuple) and bool(kinds.index[0][0])
    shares = kinds if known else by_short
    if shares.empty:
        return ""
    first = _label(kinds.index[0]) if known else brief(by_short.index[0])
    return f"{'mostly' if shares.iloc[0] >= 100.0 / 2 else 'above all'} {first}"


def _of_roof(inputs: Inputs, ranks: list[int]) -> Said:
    """How near to its roof the matrix product is that would gain most by reaching it, as far as is known."""
    rank = ranks[0]
    found = inputs.of(rank, _furthest_product)
    if found is None:
        return ""
    name, efficiency, share = found
    about = {"name": name}
    return say(
        " {share} of the device work is {name}, which reaches {efficiency} of its roof{where}.",
        share=Claim("operator_work", share, "%", "device work", (rank,), about),
        name=Claim("product_below_roof", name, "name", "", (rank,)),
        efficiency=Claim("reaches_of_roof", efficiency, "%", "roof", (rank,), about),
        where=say(" on {rank}", rank=Claim("rank_of_roof", (rank,), "ranks")) if len(ranks) > 1 else "",
    )


def _furthest_product(inputs: Inputs, rank: int) -> tuple[str, float, float] | None:
    """Of the matrix products of a rank: name, % of the roof, % of the device work."""
    scope = Scope(ranks=(rank,), iterations=inputs.scope.iterations, window_ns=inputs.scope.window_ns)
    try:
        frame = roofline(inputs.trace, scope)
    except MissingDataError:
        return None
    frame = frame[frame["name"].isin(_PRODUCTS) & frame["headroom_ns"].notna() & frame["unit"].notna()]
    frame = frame[(frame["device_self_pct"] >= _LEAST_KIND_PCT) & (frame["efficiency_pct"] <= 100.0)]
    if frame.empty:
        return None
    row = frame.iloc[0]
    return str(row["name"]), float(row["efficiency_pct"]), float(row["device_self_pct"])


def _of_hidden(inputs: Inputs, frame: pd.DataFrame) -> Said:
    """What communication runs beside it, which takes no time of its own but bandwidth and units."""
    communicating, alone = int(frame["communication_ns"].sum()), int(frame["exposed_communication_ns"].sum())
    whole, ranks = int(frame["window_ns"].sum()), frame["rank"].tolist()
    share = 100.0 * communicating / whole
    if share < NOTE_PCT:
        return ""
    return say(
        " Communication runs {share}. {hidden} of it hides behind compute.",
        share=inputs.time_lost("communicating", share, communicating / len(frame), ranks),
        hidden=Claim("hidden_communication", 100.0 - 100.0 * alone / communicating, "%", "communication",
                     tuple(ranks)),
    )  # fmt: skip


def _kernel_shares(inputs: Inputs) -> pd.Series[float]:
    """Share (%) of the time of all compute kernels that each name takes, over all ranks; longest first."""
    total = inputs.kernel_times.sum(axis=1)
    return (100.0 * total / total.sum()).sort_values(ascending=False, kind="stable")


RULE = Rule(
    topic="compute_bound",
    question=MAIN_QUESTION,
    title="Computing",
    judge=compute_bound,
    role="work",
    applies=never,
)
