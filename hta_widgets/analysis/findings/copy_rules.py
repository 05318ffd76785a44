"""Rules about large copies between host and device: from pageable memory, and far below their link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hta_widgets.analysis.core.claim import Claim, Said, say
from hta_widgets.analysis.findings.evidence import evidence_of_event
from hta_widgets.analysis.findings.finding import Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import (
    longest_run,
    running,
    unknown_device,
)
from hta_widgets.analysis.kernels.peaks import peaks_of_rank
from hta_widgets.analysis.replay import edits
from hta_widgets.arrays import Int64
from hta_widgets.formatting import significant
from hta_widgets.trace.classify import EventClass

LARGE_BYTES: Final = 1_000_000
"""What a smaller copy takes is not its bytes."""

SLOW: Final = 0.3
"""Below this share of its link, a copy is slow: a busy host and traffic beside it explain a half."""

_GENERATIONS: Final = {"PCIe 3": 12.0, "PCIe 4": 24.0, "PCIe 5": 53.0}
"""What large copies from pinned memory reach on 16 lanes, 1e9 bytes per s; an H100 on PCIe 5 reached 54."""

_DEVICES: Final = {
    "PCIe 3": ("V100", "V100S", "T4"),
    "PCIe 4": ("A100", "A10", "A30", "A40", "L4", "L40", "L40S", "MI210", "MI250", "MI250X"),
    "PCIe 5": ("H100", "H800", "H20", "H200", "B200", "MI300X", "MI325X", "MI350X", "MI355X"),
}
"""By their slot; of devices on another link, such as GH200, it is unknown."""


@dataclass(frozen=True)
class _Copies:
    """Large copies of one name in the judged time of a rank."""

    rank: int
    name: str
    rows: Int64
    size: Int64
    time: Int64

    @property
    def gbps(self) -> float:
        """1e9 bytes per s of the median copy."""
        return float(np.median(self.size / np.maximum(self.time, 1)))

    def beyond_ns(self, gbps: float) -> int:
        """How much longer they take than at this bandwidth, each by itself."""
        return int(np.maximum(self.time - np.ceil(self.size / gbps).astype(np.int64), 0).sum())


def pageable_copies(inputs: Inputs) -> Finding | None:
    """Large copies from or to memory that the host may move: the driver copies them once more, in pieces."""
    found = [copies for copies in _large(inputs) if "Pageable" in copies.name]
    if not found:
        return None
    most = max(found, key=lambda copies: int(copies.time.sum()))
    gbps, known_by = _pinned(inputs, most)
    if gbps is None:
        if severity_of(100.0 * int(most.time.sum()) / inputs.judged_ns[most.rank]) is None:
            return None
        why = "memory that is copied is pageable; how fast pinned memory would be is unknown"
        raise unknown_device(inputs, [most.rank], why)
    to_device = "HtoD" in most.name
    how = "DataLoader(pin_memory=True), tensor.pin_memory()" if to_device else "torch.empty(pin_memory=True)"
    return _finding(
        inputs,
        most,
        gbps,
        say(
            "Pinned memory usually reaches {gbps} ({known_by}): the driver copies pageable memory once more",
            gbps=_usual(most, gbps, known_by),
            known_by=known_by,
        ),
        f"Keep what is copied in pinned memory ({how}) and copy with non_blocking=True, so that the host "
        "need not wait either. Pinned memory cannot be swapped out.",
    )


def slow_copies(inputs: Inputs) -> Finding | None:
    """Large copies from or to pinned memory far below what the device's link carries."""
    slow = []
    for copies in _large(inputs):
        link = _link(inputs, copies.rank)
        if link and "Pinned" in copies.name and copies.gbps < SLOW * _GENERATIONS[link]:
            slow.append((copies, link))
    if not slow:
        return None
    most, link = max(slow, key=lambda each: each[0].beyond_ns(_GENERATIONS[each[1]]))
    by = f" ({inputs.accelerator.monitor})" if inputs.accelerator.monitor else ""
    return _finding(
        inputs,
        most,
        _GENERATIONS[link],
        say("{link} carries some {gbps}", link=link, gbps=_usual(most, _GENERATIONS[link], link)),
        f"Check that the process runs on the device's NUMA node, that the slot has all its lanes{by}, and "
        "what else uses the link meanwhile; copy contiguous tensors.",
    )


def _in_gb(gbps: float) -> str:
    return f"{significant(gbps)} GB/s"


def _usual(copies: _Copies, gbps: float, known_by: str) -> Claim:
    about = {"name": copies.name, "known_by": known_by}
    return Claim("usual_bandwidth", gbps, "GB/s", "", (copies.rank,), about, _in_gb(gbps))


def _finding(inputs: Inputs, copies: _Copies, gbps: float, usual: Said, suggestion: str) -> Finding | None:
    cost = copies.beyond_ns(gbps)
    share = 100.0 * cost / inputs.judged_ns[copies.rank]
    if not cost:
        return None
    rank, which = (copies.rank,), {"name": copies.name}
    rank_trace = inputs.trace.rank(copies.rank)
    row = longest_run(rank_trace, copies.rows)
    size = int(copies.size.sum()) / (inputs.judged or 1)
    text = say(
        "{name} takes {cost} longer than at the usual bandwidth. It copies {size}{per_step} at "
        "{gbps}. {usual}.",
        name=Claim("name_of_copies", copies.name, "name", "", rank),
        cost=inputs.time_lost("beyond_bandwidth", share, cost, rank, **which, gbps=gbps),
        size=Claim("copied_bytes", size, "B", "", rank, which, f"{significant(size / 1e6)} MB"),
        per_step=" per step" if inputs.judged else "",
        gbps=Claim("median_bandwidth", copies.gbps, "GB/s", "", rank, which, _in_gb(copies.gbps)),
        usual=usual,
    )
    return Finding(
        cost,
        share,
        text,
        suggestion,
        "bandwidth_summary",
        evidence_of_event(rank_trace, row, len(inputs.temporal) > 1),
        change=Change(
            say("with these copies at {gbps}", gbps=_usual(copies, gbps, "")),
            lambda _: [edits.copy_bandwidth(gbps, name=edits.exactly(copies.name))],
        ),
        lost={copies.rank: running(inputs, copies.rank, copies.rows)},
        only_if_saved=not severity_of(share),
        severity=severity_of(share) or "note",
    )


def _large(inputs: Inputs) -> list[_Copies]:
    """The large copies between host and device, by rank and name."""
    return [copies for rank in inputs.temporal["rank"].tolist() for copies in inputs.of(rank, _large_of)]


def _large_of(inputs: Inputs, rank: int) -> list[_Copies]:
    rank_trace, found = inputs.trace.rank(rank), []
    rows = np.flatnonzero(rank_trace.event_class == EventClass.MEMORY_COPY)
    rows = rows[rank_trace.overlap(rows, inputs.scope)]
    rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
    size = rank_trace.argument_of("bytes", rows)
    rows, size = rows[size > LARGE_BYTES], size[size > LARGE_BYTES]
    for code in np.unique(rank_trace.name[rows]).tolist():
        name, chosen = rank_trace.names[code], rank_trace.name[rows] == code
        if "HtoD" in name or "DtoH" in name:
            mine = rows[chosen]
            found.append(_Copies(rank, name, mine, size[chosen], rank_trace.dur[mine]))
    return found


def _pinned(inputs: Inputs, copies: _Copies) -> tuple[float | None, str]:
    """What copies from pinned memory reach: as recorded in the same direction, else what the link carries."""
    way = "HtoD" if "HtoD" in copies.name else "DtoH"
    same = [other.gbps for other in _large(inputs) if way in other.name and "Pinned" in other.name]
    if same:
        return max(same), "as others here reach"
    link = _link(inputs, copies.rank)
    return (_GENERATIONS[link], f"by {link}") if link else (None, "")


def _link(inputs: Inputs, rank: int) -> str | None:
    """The link of the rank's device, if that is a known model."""
    peaks = inputs.recorded(rank, peaks_of_rank)
    model = peaks.device.split()[0] if peaks else ""
    return next((link for link, models in _DEVICES.items() if model in models), None)


RULES = (
    Rule(
        topic="pageable_copies",
        question="what copies cost",
        title="Copying from or to pageable memory",
        label="Pageable copies",
        cause="copies of pageable memory",
        lost_as="memory",
        judge=pageable_copies,
        risk="Pinned memory is taken from what the host can page out.",
        needs="pin_memory=True and copies with non_blocking=True, read after they are done.",
        wrong_if="Other work shares the link meanwhile: then pinned memory is no faster.",
    ),
    Rule(
        topic="slow_copies",
        question="what copies cost",
        title="Copying far below the speed of the link",
        label="Slow copies",
        cause="slow copies",
        lost_as="memory",
        judge=slow_copies,
        needs="Access to the machine: its link, and what else uses it.",
        wrong_if="The copies are of many small pieces, or the device sits in a slot with fewer lanes.",
    ),
)
