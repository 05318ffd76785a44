"""A recording most of which is not judged: what lies before the first device work, and after the last."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.claim import NOTHING_SAID, Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.call_time import narrowest_open
from hta_widgets.analysis.findings.callers import place_claim
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.host_time import hosts_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import MAIN_QUESTION, Found, Rule
from hta_widgets.analysis.idle.causes import is_data_loading, named
from hta_widgets.analysis.idle.cold_calls import PREPARES, first_call
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.analysis.serving.table import is_server
from hta_widgets.formatting import brief, duration
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_MOST, _NEARLY_ALL = 0.5, 0.9
_ALL: Final = 0.99
_FIRST_ALLOCATIONS: Final = ("aten::empty", "aten::empty_strided")
"""The first of them creates the context of a device."""
_PROFILER: Final = {"before": "starts", "after": "ends", "around": "starts or ends"}
_LEAST_NS: Final = 1_000_000
_WHOLE_STEPS: Final = (
    "Start the profiler after the set-up, and record whole steps: torch.profiler.schedule(wait=1, warmup=3, "
    "active=5)."
)
_OF_SERVER: Final = (
    "A server names no step while it has no requests. Dummy batches may lie there, which a rank computes as "
    "others exchange tokens of experts: Python stacks name them. Send requests to all ranks while the "
    "profiler runs."
)
_RULE: Final = Rule("outside", MAIN_QUESTION, "Time outside of what is judged", lambda inputs: None, "aside")


def outside(inputs: Inputs, earlier: Found | None) -> Found | None:
    """That most of what a rank records lies outside the judged time, and what its host does there.

    `earlier` is what `earlier_work` finds: where that is most of it, it is said there.
    """
    if inputs.asked != Scope(ranks=inputs.asked.ranks):
        return None
    found = [_ends(inputs, rank) for rank in inputs.trace.ranks_of(inputs.scope)]
    most = max((each for each in found if each), key=lambda each: each.apart.length, default=None)
    if most is None or not (inputs.trace.rank(most.rank).device_span or hosts_of(inputs)):
        return None  # then nothing is judged
    if (
        earlier
        and earlier.finding.evidence.rank == most.rank
        and (2 * earlier.finding.cost_ns >= most.apart.length)
    ):
        return None
    return _found(inputs, most)


class _Ends(NamedTuple):
    """What a rank records before the judged time, and after it: most of all that it records."""

    rank: int
    whole_ns: int
    before: Intervals
    after: Intervals

    @property
    def apart(self) -> Intervals:
        return self.before | self.after

    @property
    def side(self) -> str:
        """Where nine tenths of it lie."""
        least = _NEARLY_ALL * self.apart.length
        return (
            "before" if self.before.length >= least else "after" if self.after.length >= least else "around"
        )


def _ends(inputs: Inputs, rank: int) -> _Ends | None:
    rank_trace = inputs.trace.rank(rank)
    windows = rank_trace.windows(inputs.scope)
    if not len(windows):
        return None
    begin, end = rank_trace.extent
    first, last = inputs.worked.get(rank, (int(windows[0, 0]), int(windows[-1, 1])))
    before, after = (Intervals.union([low], [max(low, high)]) for low, high in ((begin, first), (last, end)))
    found = _Ends(rank, end - begin, before, after)
    return found if found.apart.length >= max(_MOST * found.whole_ns, _LEAST_NS) else None


def _found(inputs: Inputs, ends: _Ends) -> Found:
    rank, apart, ranks = ends.rank, ends.apart, (ends.rank,)
    rank_trace = inputs.trace.rank(rank)
    own = apart - Intervals.union(*([edge] for edge in _calls(rank_trace)))
    place, there_ns = _place(rank_trace, apart)
    if inputs.judged and inputs.settled_ns is None and inputs.scope.window_ns is None:
        judged = "the complete steps" if len(inputs.scope.iterations or ()) > 1 else "the complete step"
    else:
        judged = _edge(rank_trace, ends)
    headline = f"{duration(apart.length)} of {duration(ends.whole_ns)} recorded lie {ends.side} {judged}"
    where = NOTHING_SAID
    if 2 * own.length >= apart.length:
        profiler = f"the profiler {_PROFILER[ends.side]}"
        where = say(
            f" For {{time}} of it the program records no call: {profiler}.",
            time=Claim("apart_calls", own.length, "ns", "", ranks),
        )
        headline += f", while {profiler}"
        place = ""
    elif place:
        starting = place in inputs.cold_calls(rank) or _is_first(rank_trace, place, ends.before)
        who = "The process starts up: the host" if starting else "The host"
        where = say(
            f" {who} is in {{place}} for {{time}} of it.",
            place=place_claim("apart_most_in", place, rank),
            time=Claim("apart_in_call", there_ns, "ns", "", ranks, {"call": place}),
        )
        doing = "the data loader" if is_data_loading(place) else brief(short_place(place))
        headline += f", mostly start-up ({doing})" if starting else f", mostly in {doing}"
    text = say(
        "{apart} of {whole} recorded lie {side} {judged}.{where}",
        apart=Claim("apart", apart.length, "ns", "", ranks),
        whole=Claim("recorded", ends.whole_ns, "ns", "", ranks),
        side=Claim("apart_side", ends.side, "name", "", ranks),
        judged=judged,
        where=where,
    )
    only = rank if len(inputs.trace.ranks) > 1 else None
    finding = Finding(
        apart.length,
        0.0,
        text,
        _OF_SERVER if is_server(rank_trace) else _WHOLE_STEPS,
        "",
        Evidence(only, name=place, event_rank=rank, span=apart.longest),
        severity="note",
        headline=headline,
    )
    return Found(_RULE, finding)


def _is_first(rank_trace: RankTrace, name: str, before: Intervals) -> bool:
    """Whether most of the time before is the first call of an operator, which takes long once."""
    prepares = PREPARES.match(name) or name in _FIRST_ALLOCATIONS
    row = first_call(rank_trace, name) if prepares else None
    if row is None:
        return False
    call = before.clip(int(rank_trace.start[row]), int(rank_trace.end[row]))
    return 2 * call.length >= before.length > 0


def _edge(rank_trace: RankTrace, ends: _Ends) -> str:
    """How to call what is judged, by what begins or ends it."""
    of_device = rank_trace.is_device.any()
    work = rank_trace.is_device if of_device else rank_trace.event_class != EventClass.OTHER
    name = "device work" if of_device else "calls"
    if not work.any():
        return "what is judged"
    little = (1 - _ALL) * ends.apart.length
    if ends.after.length <= little and ends.before.end[0] == rank_trace.start[work].min():
        return f"any {name}"
    if ends.before.length <= little and ends.after.start[0] == rank_trace.end[work].max():
        return f"all {name}"
    return "what is judged"


def _calls(rank_trace: RankTrace) -> tuple[int, int]:
    """From the first event of the program to its last."""
    rows = rank_trace.event_class != EventClass.OTHER
    if not rows.any():
        return rank_trace.extent
    return int(rank_trace.start[rows].min()), int(rank_trace.end[rows].max())


def _place(rank_trace: RankTrace, apart: Intervals) -> tuple[str, int]:
    """The narrowest calls of the host that are open in half of a time and more, by name; "" if none are."""
    host = rank_trace.on_host & (rank_trace.event_class != EventClass.OTHER)
    rows = np.flatnonzero(host & (rank_trace.dur >= _LEAST_NS // 10))
    loops = set(rank_trace.iterations["label"])
    rows = rows[~named(rank_trace, loops.__contains__)[rows]]
    return narrowest_open(rank_trace, rows, apart, _MOST * apart.length)
