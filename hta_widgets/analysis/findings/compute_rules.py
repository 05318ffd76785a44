"""Rules about kernels by their names: those that only turn layouts around, copy or cast, and fallbacks."""

from __future__ import annotations

import math
import re
from functools import partial

import numpy as np

from hta_widgets.analysis.core.claim import say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_name
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.callers import begins_in, callers_text
from hta_widgets.analysis.findings.evidence import evidence_of_event
from hta_widgets.analysis.findings.finding import NOTE_PCT, Finding
from hta_widgets.analysis.findings.growing_rule import STATIC_CACHE, growing
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on
from hta_widgets.analysis.findings.rule import MAIN_QUESTION, Change, Rule, never
from hta_widgets.analysis.findings.shorter import longest_run, running
from hta_widgets.analysis.operators.least_times import least_ns
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import rows_with
from hta_widgets.trace.rank_trace import RankTrace

# cuDNN and MIOpen bring the inputs of a convolution into their layout, and its output back.
_LAYOUT = re.compile(r"\b(?:nchwToNhwc|nhwcToNchw)Kernel\b|^batched_transpose_\d+x\d+_")
# Batch norm in the layout that channels_last replaces, whose threads read memory in steps of a whole image.
_BATCH_NORM = tuple(
    f"batch_norm_{part}_kernel" for part in ("backward", "collect_statistics", "transform_input")
)
_COPIES = re.compile(r"\bdirect_copy_kernel|\bCatArrayBatchedCopy")
# MIOpen's for convolutions for which it knows, or may use, no other.
_FALLBACK = re.compile(r"^naive_conv_")
_GROWS = f"Most of it copies all of a tensor to add little to it. {STATIC_CACHE}"
_KINDS = 5


def _judge(
    pattern: re.Pattern[str],
    least_pct: float,
    do: str,
    suggestion: str,
    inputs: Inputs,
    needless: bool = True,
) -> Finding | None:
    """About kernels that a program could do without, told from a share of the time on by what they do.

    needless: nothing takes their place.
    """
    runs = {rank: inputs.of(rank, _running, pattern) for rank in inputs.temporal["rank"].tolist()}
    loss = lost_on(inputs.temporal, {rank: time.length for rank, time in runs.items()})
    if loss is None or loss.share_pct < least_pct:
        return None
    rank_trace, rows = inputs.trace.rank(loss.worst), _rows(inputs, loss.worst, pattern)
    row = longest_run(rank_trace, rows, longest_name(rank_trace, rows))
    which = {"pattern": pattern.pattern}
    change = Change("without these kernels", lambda found: _without(found, pattern))
    if pattern is _LAYOUT and _batch_norm(rank_trace):
        change = Change(
            "without these kernels, and with batch norm as fast as memory",
            lambda found: _without(found, pattern) + _batch_norm(found),
            "That is more than the cost: batch norm is faster in channels_last, too.",
        )
    return loss.finding(
        say(
            "Kernels that {do} take {cost}.{by}",
            do=do,
            cost=inputs.time_lost("kernels_named", loss.share_pct, loss.cost_ns, loss.ranks, **which),
            by=callers_text(rank_trace, rows, **which),
        ),
        _GROWS if pattern is _COPIES and _grows(rank_trace, rows) else inputs.accelerator.fill(suggestion),
        "kernel_breakdown",
        evidence_of_event(rank_trace, row, loss.alone is not None),
        change=change if needless and not len(_of_fsdp(rank_trace, pattern)) else None,
        lost={rank: runs[rank] for rank in loss.ranks},
        severity="note",  # a program needs some of it
    )


def _grows(rank_trace: RankTrace, rows: Int64) -> bool:
    """Whether most of the time of these kernels makes a tensor grow by copying it."""
    rows = rows[rank_trace.launch[rows] >= 0]
    launch, took = rank_trace.issuer[rows].astype(np.int64), rank_trace.dur[rows]
    threads = np.unique(rank_trace.thread[launch]).tolist()
    inside = sum(
        int(took[begins_in(rank_trace, launch, growing(rank_trace, thread))].sum()) for thread in threads
    )
    return 2 * inside > int(took.sum())


def _rows(inputs: Inputs, rank: int, pattern: re.Pattern[str]) -> Int64:
    """The kernels of the judged time."""
    rank_trace = inputs.trace.rank(rank)
    rows = np.setdiff1d(_chosen(rank_trace, pattern), _of_fsdp(rank_trace, pattern), assume_unique=True)
    rows = rows[rank_trace.overlap(rows, inputs.scope)]
    return rows[np.argsort(rank_trace.start[rows], kind="stable")]


def _running(inputs: Inputs, rank: int, pattern: re.Pattern[str]) -> Intervals:
    """When any of these kernels runs in the judged time."""
    return running(inputs, rank, _rows(inputs, rank, pattern))


@memoize_per_rank(last=_KINDS)
def _chosen(rank_trace: RankTrace, pattern: re.Pattern[str]) -> Int64:
    """The rows that are compute kernels of such a name."""
    named = np.array([bool(pattern.search(name)) for name in rank_trace.names] or [False], np.bool_)
    if not named.any():
        return np.empty(0, np.int64)
    compute = rank_trace.compute_rows
    return compute[named[rank_trace.name[compute]]]


@memoize_per_rank(last=_KINDS)
def _of_fsdp(rank_trace: RankTrace, pattern: re.Pattern[str]) -> Int64:
    """Those that bring shards into and out of the buffers of FSDP's collectives: no program can leave them
    out.
    """
    rows = _chosen(rank_trace, pattern)
    rows = rows[rank_trace.launch[rows] >= 0]
    launch = rank_trace.issuer[rows].astype(np.int64)
    named = np.array([name.startswith("fsdp::") for name in rank_trace.names] or [False], np.bool_)
    calls = rows_with(rank_trace.name, named)
    calls = calls[rank_trace.event_class[calls] == EventClass.HOST_OP]
    return rows[begins_in(rank_trace, launch, calls)]


def _without(rank_trace: RankTrace, pattern: re.Pattern[str]) -> list[Edit]:
    names = sorted(name for name in rank_trace.names if pattern.search(name))
    return [edits.kernels(math.inf, name=edits.exactly(name)) for name in names]


def _batch_norm(rank_trace: RankTrace) -> list[Edit]:
    """Batch norm in another layout takes at least what its bytes do; nothing where these are unknown."""
    found = []
    for kernel in _BATCH_NORM:
        rows = _chosen(rank_trace, re.compile(kernel))
        if (least_ns(rank_trace, rows, of_unit=1.0) < rank_trace.dur[rows]).any():  # no NaN is
            found.append(edits.at_roof(name=f"*{kernel}*"))
    return found


RULES = (
    Rule(
        topic="layout_transposes",
        question=MAIN_QUESTION,
        title="Converting tensor layouts",
        label="Layout conversions",
        cause="tensor layout conversions",
        judge=partial(
            _judge,
            _LAYOUT,
            NOTE_PCT,
            "convert the layout of tensors for convolutions",
            "Keep model and inputs in the layout that the convolutions use: "
            ".to(memory_format=torch.channels_last). Operators without such kernels convert them back."
            "{channels_last}",
        ),
        risk="Operators without a kernel for that layout copy back and forth.",
        needs="Tensors in channels_last.",
        wrong_if="The layouts differ on purpose: other operators are faster in the one that they have.",
    ),
    Rule(
        topic="fallback_convolutions",
        question=MAIN_QUESTION,
        title="Convolving by fallback kernels",
        label="Fallback convolutions",
        cause="fallback kernels of convolutions",
        judge=partial(
            _judge,
            _FALLBACK,
            5.0,
            "MIOpen falls back on for convolutions",
            "Let MIOpen search for others (MIOPEN_FIND_MODE=NORMAL, once with MIOPEN_FIND_ENFORCE=SEARCH), "
            "install its kernels for this device, and use types and layouts that it has some for (fp16, "
            "bf16, channels_last).",
            needless=False,
        ),
        applies=never,
        no_change="how long other kernels for these convolutions take is not known",
        risk="A search takes minutes once for each shape.",
        needs="Shapes that repeat.",
        wrong_if="MIOpen has no other kernel for these shapes: then other shapes help.",
    ),
    Rule(
        topic="tensor_copies",
        question=MAIN_QUESTION,
        title="Copying and casting tensors",
        label="Tensor copies",
        cause="copies and casts of tensors",
        judge=partial(
            _judge,
            _COPIES,
            5.0,
            "only copy, cast or concatenate tensors",
            "Cast once instead of in every use, leave out .contiguous() and .clone() where views do, and "
            "write into one tensor instead of torch.cat. Some kernels are slower on views.",
        ),
        no_change="FSDP's own copies are recorded under the same names",
        needs="Tensors that can be made in the type and place in which they are used.",
        wrong_if="The copies are needed: kernels behind them run on no view, or in no other type.",
    ),
)
