"""Attention that is not fused: its scores are written to memory, and read again by every operator on them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hta_widgets.analysis.core.claim import NOTHING_SAID, Said, Text, say, says
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import (
    AboutEvent,
    device_of,
    known_peaks,
    matters,
    shapes_missing,
    shorter,
)
from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.fused_attention import fused_ns
from hta_widgets.analysis.operators.inputs import itemsize
from hta_widgets.analysis.operators.recorded import recorded_inputs
from hta_widgets.analysis.operators.unfused_attention import (
    Attention,
    attention_by_name,
    unfused_attentions,
)
from hta_widgets.analysis.replay import edits
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.rank_trace import RankTrace

_LOAD_BYTES = 16
"""What a thread loads at once at best; fused kernels need rows of heads that are whole loads."""


def attention_not_fused(inputs: Inputs) -> Finding | None:
    """A product, a softmax and a product again, where one kernel would do."""
    found = shorter(inputs, fused_ns, _abstain)
    if found is None:
        return None
    rank_trace = inputs.trace.rank(found.worst)
    attentions = unfused_attentions(rank_trace)
    of = attentions.of[np.isin(attentions.work, found.rows)]
    taken = np.bincount(of, rank_trace.dur[attentions.work[np.isin(attentions.work, found.rows)]])
    main = attentions.found[int(taken.argmax())]
    states = AboutEvent(rank_trace, main.softmax)
    return found.finding(
        inputs,
        say(
            "Attention that is not fused costs {lost}: it writes its scores to memory and reads them again. "
            "It takes {taken}.{by} One kernel would take {left}, at half the peak of this device ({device}). "
            "One of them writes scores of {heads} heads x {queries} queries x {keys} keys.{why}",
            **found.parts(inputs, "unfused attention"),
            heads=states("attention_heads", main.heads),
            queries=states("attention_queries", main.queries),
            keys=states("attention_keys", main.keys),
            device=device_of(inputs, found.ranks),
            why=_why(rank_trace, main),
        ),
        _advice(main),
        Change("with attention fused", lambda _: [edits.fused_attention()]),
        event=main.softmax,
    )


def _abstain(inputs: Inputs, rank: int) -> None:
    """What looks like attention by names can be judged only by shapes and peaks."""
    rank_trace = inputs.trace.rank(rank)
    if unfused_attentions(rank_trace).found:
        if matters(inputs, rank, unfused_attentions(rank_trace).work):
            known_peaks(inputs, [rank], "attention is not fused; how fast it could be is not known")
        return
    _abstain_without_operators(rank_trace)
    softmax = attention_by_name(rank_trace)
    recorded = recorded_inputs(rank_trace)
    passed = recorded.of_row[softmax]
    softmax = softmax[(recorded.shapes[passed] < 0) | (recorded.types[passed] < 0)]
    calls = operator_calls(rank_trace)
    owner = np.append(calls.rows, -1)[calls.owner]
    if len(softmax) and matters(inputs, rank, calls.work[np.isin(owner, softmax)]):
        raise shapes_missing("softmaxes between matrix products have no shapes: they may be of attention")


def _abstain_without_operators(rank_trace: RankTrace) -> None:
    """Kernels alone do not tell which softmaxes are of attention, unless another kernel is all of it."""
    calls = operator_calls(rank_trace)
    names = [
        rank_trace.names[code] for code in np.unique(rank_trace.name[calls.work[calls.owner < 0]]).tolist()
    ]
    operations = {kernel_class(name).operation for name in names}
    if "softmax" in operations and "attention" not in operations:
        raise MissingDataError(
            "operators",
            "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ...], record_shapes=True).",
            "kernels of softmaxes have no operators that show whether they are attention",
        )


def _why(rank_trace: RankTrace, attention: Attention) -> Text:
    """What the events show of why it is not fused, and why its products are slow."""
    states, said = AboutEvent(rank_trace, attention.softmax), NOTHING_SAID
    if attention.math >= 0:
        path = "F.scaled_dot_product_attention took its math path"
        said = say(" {path}", path=states("path_of_attention", "math", "name", path))
        said += _against(rank_trace, attention)
    multiple = int(_LOAD_BYTES / itemsize(attention.dtype))
    if attention.keys % multiple and _unaligned(rank_trace, attention):
        said += say(
            " Rows of {keys} scores are no multiple of {multiple}: its products run unaligned kernels.",
            keys=states("attention_keys", attention.keys),
            multiple=states("numbers_in_16_bytes", multiple),
        )
    return said


def _against(rank_trace: RankTrace, attention: Attention) -> Text:
    """What of its inputs the one or the other fused kernel does not take."""
    passed = recorded_inputs(rank_trace).of(attention.math)
    multiple = int(_LOAD_BYTES / itemsize(attention.dtype))
    states = AboutEvent(rank_trace, attention.math)
    widths = {passed.shape(at)[-1] for at in range(3) if passed.is_tensor(at) and passed.shape(at)}
    odd: list[Said] = [states("width_of_heads", width) for width in sorted(widths) if width % multiple]
    said = say(".")
    if odd:
        said = say(
            "; its heads have {odd} elements, no multiple of {multiple}.",
            odd=says(odd),
            multiple=states("numbers_in_16_bytes", multiple),
        )
    refused: list[Said] = []
    if attention.dtype == "float32":
        refused.append(states("type_of_input", "the type float32", "name"))
    if passed.is_tensor(3):
        refused.append(states("mask_of_attention", "a mask", "name"))
    return (
        said + say(" Flash attention does not take {what}.", what=says(refused, " or ")) if refused else said
    )


def _unaligned(rank_trace: RankTrace, attention: Attention) -> bool:
    """Whether the kernels of its two products say that they load less than they could at once."""
    calls, words = operator_calls(rank_trace), Counter[bool]()
    owner = np.append(calls.rows, -1)[calls.owner]
    for row in calls.work[np.isin(owner, [attention.first, attention.second])].tolist():
        alignment = kernel_class(rank_trace.names[rank_trace.name[row]]).alignment
        words[alignment is not None and alignment * itemsize(attention.dtype) < _LOAD_BYTES] += 1
    return words[True] > 0


def _advice(attention: Attention) -> str:
    if attention.math >= 0:
        return (
            "torch.nn.attention.sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION) or FLASH_ATTENTION says in a "
            "warning why that kernel is refused: 16 bits, heads of a multiple of 8 elements, and is_causal "
            "instead of a mask suit them all. Results differ in the last digits."
        )
    return (
        "F.scaled_dot_product_attention is all of it in one kernel; in transformers "
        'attn_implementation="sdpa" or "flash_attention_2". The weights of attention are then not returned, '
        "and results differ in the last digits."
    )


RULE = Rule(
    topic="attention_not_fused",
    question="whether attention is fused",
    title="Writing the scores of attention to memory",
    label="Unfused attention",
    cause="unfused attention",
    judge=attention_not_fused,
    applies=lambda inputs: inputs.has_operators,
    risk="Results differ in the last bits, and the scores are not there to be read.",
    needs="scaled_dot_product_attention with a mask, type and size of head that a fused kernel takes.",
    wrong_if="The program needs the scores themselves, or changes them in a way that no fused kernel has.",
)
