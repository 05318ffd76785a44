"""Kernels that could take less: how much of the judged time they take, and how much of it would be left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hta_widgets.analysis.core.claim import Claim, Said, Unit, Value
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_name, longest_row
from hta_widgets.analysis.findings.callers import callers_text
from hta_widgets.analysis.findings.evidence import evidence_of_event
from hta_widgets.analysis.findings.finding import NOTE_PCT, Finding, Severity
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on
from hta_widgets.analysis.findings.rule import Change
from hta_widgets.analysis.kernels.peaks import Peaks, peaks_of_rank, recorded_name
from hta_widgets.arrays import Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, capitalised, in_words
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.rank_trace import RankTrace

Find = Callable[[RankTrace], tuple[Int64, Int64]]


@dataclass(frozen=True)
class Shorter:
    """What such kernels take on the ranks that it is about."""

    ranks: list[int]  # these ranks; alone: it is one of several
    alone: bool
    worst: int  # the rank that loses most, rows: its kernels in the judged time
    rows: Int64
    cost_ns: int  # what is lost on each rank on average
    # shares of the judged time
    taken_pct: float
    lost_pct: float
    running: dict[int, Intervals]  # rank -> when its kernels run

    def parts(self, inputs: Inputs, kind: str) -> dict[str, Said]:
        """What sentences about such kernels state: `lost`, `taken` and `left` of the time, and by whom."""
        ranks, left = tuple(self.ranks), self.taken_pct - self.lost_pct
        return {
            "lost": inputs.time_lost("lost_to_kernels", self.lost_pct, self.cost_ns, ranks, kind=kind),
            "taken": inputs.share_of_time("kernels_of_kind", self.taken_pct, ranks, kind=kind),
            "left": inputs.of_time("kernels_could_take", left, ranks, kind=kind),
            "by": callers_text(inputs.trace.rank(self.worst), self.rows, kind=kind),
        }

    def finding(
        self,
        inputs: Inputs,
        text: Said,
        suggestion: str,
        change: Change | None = None,
        *,
        kind: str = "operators",
        run: int | None = None,
        event: int | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """The finding about them; `run`: the kernel in which it shows, `event`: what causes that (rows)."""
        rank_trace = inputs.trace.rank(self.worst)
        run = longest_run(rank_trace, self.rows) if run is None else run
        name = longest_name(rank_trace, self.rows)
        return Finding(
            self.cost_ns,
            self.lost_pct,
            text,
            suggestion,
            kind,
            evidence_of_event(rank_trace, run, self.alone, name, event),
            change=change,
            lost=self.running,
            severity=severity,
        )


class AboutEvent:
    """Makes claims about an event of a rank."""

    def __init__(self, rank_trace: RankTrace, row: int) -> None:
        self.ranks, self.about = (rank_trace.rank,), {"event": int(rank_trace.event_id[row])}

    def __call__(self, measure: str, value: Value, unit: Unit = "count", shown: str = "") -> Claim:
        """What was measured of it."""
        return Claim(measure, value, unit, "", self.ranks, self.about, shown)


def shorter(
    inputs: Inputs, find: Find, abstain: Callable[[Inputs, int], None] | None = None
) -> Shorter | None:
    """What is lost to kernels, given for a rank with the time that would be left of each.

    None: less than is worth reporting. `abstain` raises what is missing to tell so of a rank.
    """
    ranks = inputs.temporal["rank"].tolist()
    if abstain is not None:
        for rank in ranks:
            inputs.of(rank, abstain)
    parts = {rank: inputs.of(rank, _of_rank, find) for rank in ranks}
    loss = lost_on(inputs.temporal, {rank: lost for rank, (_, _, lost) in parts.items()})
    if loss is None or loss.share_pct < NOTE_PCT:
        return None
    return Shorter(
        loss.ranks,
        loss.alone is not None,
        loss.worst,
        _judged(inputs, loss.worst, find)[0],
        loss.cost_ns,
        loss.share_of(sum(parts[rank][1] for rank in loss.ranks)),
        loss.share_pct,
        {rank: parts[rank][0] for rank in loss.ranks},
    )


def matters(inputs: Inputs, rank: int, rows: Int64) -> bool:
    """Whether this work takes enough of the judged time to be reported."""
    windows = inputs.trace.rank(rank).windows(inputs.scope)
    judged_ns = int((windows[:, 1] - windows[:, 0]).sum())  # that of `temporal`, without asking other ranks
    return bool(100.0 * time_of(inputs, rank, rows) >= NOTE_PCT * judged_ns)


def longest_run(rank_trace: RankTrace, rows: Int64, name: str = "") -> int:
    """The row that takes longest among these, or among those of a name."""
    chosen = rows[rank_trace.name[rows] == rank_trace.names.index(name)] if name else rows
    return longest_row(rank_trace, chosen)


def longest_kernel(name: str, rank: int, **about: Any) -> Claim:
    """A name, as that of the kernels with most time on a rank among those of a kind."""
    return Claim("longest_kernel", name, "name", "", (rank,), about, shown=short_kernel_name(name))


def running(inputs: Inputs, rank: int, rows: Int64) -> Intervals:
    """When any of this device work runs in the judged time."""
    rank_trace = inputs.trace.rank(rank)
    work = Intervals.union(rank_trace.start[rows], rank_trace.end[rows])
    return work & inputs.judged_time(rank)


def time_of(inputs: Inputs, rank: int, rows: Int64) -> int:
    """How much of the judged time any of this device work runs, ns."""
    rank_trace = inputs.trace.rank(rank)
    work = Intervals.union(rank_trace.start[rows], rank_trace.end[rows])
    return work.within(rank_trace.windows(inputs.scope))


def known_peaks(inputs: Inputs, ranks: list[int], why: str) -> Peaks:
    """The peaks of the devices of these ranks.

    Raises:
        MissingDataError: they are not known, or those of several models.
    """
    found = [inputs.recorded(rank, peaks_of_rank) for rank in ranks]
    if not found or found[0] is None or any(peaks != found[0] for peaks in found):
        raise unknown_device(inputs, ranks, why)
    return found[0]


def unknown_device(inputs: Inputs, ranks: list[int], why: str) -> MissingDataError:
    """What needs to know what the devices of these ranks can do: their name, or a datasheet for the name."""
    peaks = "state the peaks of the device by hta_widgets.analysis.register_peaks."
    names = sorted({name for rank in ranks if (name := inputs.recorded(rank, recorded_name))})
    if names:
        named = f"device of a known datasheet ({in_words([brief(name) for name in names])} is none)"
        return MissingDataError(named, capitalised(peaks), why)
    record = "Record with a version of PyTorch that writes deviceProperties"
    return MissingDataError("name of the device", f"{record}, or {peaks}", why)


def device_of(inputs: Inputs, ranks: list[int]) -> Claim:
    """The model of the devices of these ranks, whose peaks are known."""
    return Claim("device", known_peaks(inputs, ranks, "").device, "name", "", tuple(ranks))


def shapes_missing(why: str) -> MissingDataError:
    """What needs the inputs of operators, and why that matters."""
    return MissingDataError(
        "shapes of operators", "Record with torch.profiler.profile(record_shapes=True).", why
    )


def _judged(inputs: Inputs, rank: int, find: Find) -> tuple[Int64, Int64]:
    """The kernels in the judged time, and the time that would be left of each."""
    rank_trace = inputs.trace.rank(rank)
    rows, left = find(rank_trace)
    chosen = rank_trace.overlap(rows, inputs.scope)
    return rows[chosen], left[chosen]


def _of_rank(inputs: Inputs, rank: int, find: Find) -> tuple[Intervals, int, int]:
    """When these kernels run in the judged time, how much of it they take, and how much is lost, ns."""
    rows, left = _judged(inputs, rank, find)
    whole = int(inputs.trace.rank(rank).dur[rows].sum())
    if not whole:
        return Intervals.union([], []), 0, 0
    time = running(inputs, rank, rows)
    return time, time.length, round(time.length * (1 - int(left.sum()) / whole))
