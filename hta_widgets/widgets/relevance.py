"""Which panels can answer for a recording, which cannot and why, and with which to begin."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis

FIRST = ("temporal_breakdown", "comm_comp_overlap", "kernel_breakdown", "op_counts")
_MOST = 2


def _on_device(rank: RankTrace) -> bool:
    return bool(rank.is_device.any())


def _communicates(rank: RankTrace) -> bool:
    return bool(np.any(rank.event_class == EventClass.COMMUNICATION))


def _has_cupti_ranges(rank: RankTrace) -> bool:
    from hta_widgets.trace.classify import COUNTER_RANGE

    return COUNTER_RANGE in rank.table.dictionary("category")


def _has_fsdp_ranges(rank: RankTrace) -> bool:
    from hta_widgets.analysis.strategy.fsdp_passes import RANGES

    return any(name.startswith(RANGES) for name in rank.names)


def _serves(rank: RankTrace) -> bool:
    from hta_widgets.analysis.serving.table import is_server

    return is_server(rank)


_RECORDED: dict[str, Callable[[RankTrace], bool]] = {
    "device events": _on_device,
    "device events on streams": _on_device,
    "launch calls of device events": _on_device,
    "link from device work to its launch": _on_device,
    "device events linked to their launches": _on_device,
    "operators": lambda rank: bool(np.any(rank.event_class == EventClass.HOST_OP)),
    "communication kernels": _communicates,
    "occupancy of kernels": lambda rank: bool(rank.table.has("occupancy_pct")),
    "memory bandwidth (GB/s)": lambda rank: bool(rank.table.has("memory_bandwidth_gbps")),
    "memory events": lambda rank: "[memory]" in rank.table.dictionary("name"),
    "CUPTI counter ranges": _has_cupti_ranges,
    "nn.Module frames": lambda rank: any(name.startswith("nn.Module: ") for name in rank.names),
    "FSDP ranges": _has_fsdp_ranges,
    "steps of a server": _serves,
}
"""Signs, each read in no time, that a rank has what `Analysis.requires` names; others are not looked for."""

_OF_OTHER_OPTIONS = {"memory_owners": {"nn.Module frames"}}
"""What an analysis requires only with other options than those a panel begins with."""


def unanswered(trace: Trace, kinds: Collection[str] | None = None) -> dict[str, str]:
    """The analyses that cannot answer for a recording, with the reason and what would have to be recorded.

    Only what lacks a sign of its data is asked. Most fail at once; some answer in another way, which of a job
    of many ranks takes long.
    """
    reasons: dict[str, str] = {}
    recorded = frozenset[str]().union(*trace.each(_signs))
    for kind in ANALYSES if kinds is None else [kind for kind in ANALYSES if kind in kinds]:
        needed = set(ANALYSES[kind].requires) - _OF_OTHER_OPTIONS.get(kind, set())
        if all(_has(trace, recorded, field) for field in needed):
            continue
        try:
            cached_analysis(trace, kind, Scope())
        except MissingDataError as missing:
            text = str(missing)
            reasons[kind] = capitalised(text)
    if "rank_waits" in reasons:  # what the panel of the job cannot do without
        reasons["job"] = reasons["rank_waits"]
    return reasons


def _signs(rank: RankTrace) -> frozenset[str]:
    """What a rank shows signs of."""
    return frozenset(field for field, sign in _RECORDED.items() if sign(rank))


def _has(trace: Trace, recorded: frozenset[str], field: str) -> bool:
    if field == "second rank":
        return len(trace.ranks) > 1
    return field not in _RECORDED or field in recorded


def first_panels(trace: Trace, lacking: dict[str, str]) -> tuple[str, ...]:
    """The panels to begin with: of those that can answer, and have something to show."""
    left_out = {*lacking, *without_content(trace)}
    return tuple(kind for kind in FIRST if kind not in left_out)[:_MOST]


def without_content(trace: Trace) -> tuple[str, ...]:
    """Panels that can answer and have nothing to show."""
    return () if any(trace.each(_communicates)) else ("comm_comp_overlap",)
