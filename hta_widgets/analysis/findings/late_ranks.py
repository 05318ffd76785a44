"""The ranks that the others wait for, and what they do longer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from hta_widgets.analysis.communication.arrivals import LOOSE
from hta_widgets.analysis.communication.operations import POINT_TO_POINT
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.finding import severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.replayed_job import named_late, replayed_job
from hta_widgets.analysis.job.causes import COPIES, LATE_HOST, MORE_WORK, SLOW_LINK, SLOWER_KERNELS
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent

# Ranks that wait for a tenth of what another waits are not worth naming.
FAR_LESS = 10
# What a culprit does longer than others explains a wait if it makes up a third of it.
_LITTLE = 3
_NEARLY_ALL = 0.9
# Above it, nobody is named: the unknown part may change who causes most.
_MOSTLY_UNKNOWN_PCT = 50.0
_BY_CAUSE = {
    SLOWER_KERNELS: "computing",
    MORE_WORK: "computing",
    SLOW_LINK: "transferring",
    COPIES: "copying",
    LATE_HOST: "idle",
}


@dataclass(frozen=True)
class LateRanks:
    """The ranks that cause most of what the others wait."""

    ranks: list[int]  # they, ascending
    parts: pd.DataFrame  # what is waited for them, as in `waits`
    # rank -> ns that it waits for them with nothing else running, of the ranks that wait noticeably
    waits: pd.Series[int]
    share_pct: float  # those in % of the time of these ranks
    # activity -> ns that the late ranks spend on it beyond the others, the longest first; or on transfers
    # while a rank waits; or "starting": by how much their first work is later, where no steps are marked, or
    # "entering": by how much they enter the only step later. Empty where only the replay of the job tells why
    # they are late, as where a host is late with the first work of a step, before which the step's time does
    # not begin.
    longer: pd.Series[float]

    @property
    def began_late(self) -> bool:
        """They were late when the recording began: the job loses nothing by that."""
        return "entering" in self.longer.index[:1]

    @property
    def cost_ns(self) -> int:
        return int(self.waits.sum()) // len(self.waits)


@memoize_per_rank()
def late_ranks(inputs: Inputs) -> LateRanks | None:
    """The ranks that `named_late` names, if they have more to do than the others; else None.

    What a rank waits counts as far as no compute hides it: at most its exposed communication. That is no
    promise: without the wait, the rank may wait for something else.

    Raises:
        MissingDataError: most of the waiting has no known cause, or nothing says that the recordings are of
            one run.
    """
    if not inputs.late["waited_ns"].any() and not inputs.unclear.any():
        return None
    _require_known(inputs)
    ranks = named_late(inputs)
    if not ranks:
        return None
    parts = inputs.waits[inputs.waits["culprit"].isin(ranks)]
    frame = inputs.temporal[~inputs.temporal["rank"].isin(ranks)].set_index("rank")
    exposed = frame["exposed_communication_ns"]
    waits = parts.groupby("rank")["wait_ns"].sum().reindex(frame.index, fill_value=0).clip(upper=exposed)
    waits = waits[waits * FAR_LESS > waits.max()]
    if waits.empty:
        return None
    share = 100.0 * int(waits.sum()) / int(frame["window_ns"][waits.index].sum())
    longer = _entering(inputs, ranks, parts, int(waits.mean()))
    if longer.empty:
        longer = _longer(inputs, ranks, int(waits.mean()))
    if longer.empty:
        longer = _transferring(parts, len(waits))
    if longer.empty:
        longer = _starting(inputs, ranks, int(waits.mean()))
    if longer.empty and not longer_by_replay(inputs):
        return None
    return LateRanks(ranks, parts, waits, share, longer)


def compute_longer(inputs: Inputs) -> list[int]:
    """The ranks that `straggler` names as late because they compute longer than the others."""
    try:
        late = late_ranks(inputs)
    except MissingDataError:
        return []
    if late is None or not severity_of(late.share_pct):
        return []
    return late.ranks if "computing" in late.longer.index[:1] else []


def _require_known(inputs: Inputs) -> None:
    frame, unclear = inputs.temporal, int(inputs.unclear.sum())
    waited, unfollowed = (int(inputs.late[column].sum()) for column in ("waited_ns", "unfollowed_ns"))
    if not severity_of(100.0 * frame["exposed_communication_ns"].sum() / max(frame["window_ns"].sum(), 1)):
        return
    if inputs.trace.clock.method == "start":
        raise MissingDataError(
            "common clock of the ranks",
            "Open the files of one run together, from a PyTorch that states the zero of their times "
            "(baseTimeNanoseconds).",
            "so the recordings may be of different runs",
        )
    unknown = 100.0 * (unfollowed + unclear) / max(waited + unclear, 1)
    if unknown > _MOSTLY_UNKNOWN_PCT and _leave_apart(inputs, unfollowed + unclear):
        raise MissingDataError(
            f"common end of the ranks in {percent(unknown)} of the communication that may be waiting",
            "Ranks leave broadcasts, reductions to one rank, gathers and scatters apart. A barrier before "
            "them, in one recording, shows who is late.",
        )
    if unknown > _MOSTLY_UNKNOWN_PCT:
        in_pairs = inputs.collectives["collective"].isin(POINT_TO_POINT).any()
        writes = ", with a PyTorch that writes the ranks of sends and receives (Src Rank, Dst Rank)"
        raise MissingDataError(
            f"record of the partners in {percent(unknown)} of the communication that may be waiting",
            f"Record every rank, as a whole and in the same run{writes * bool(in_pairs)}.",
            "the ranks wait for others whose own waits are not recorded",
        )


def _leave_apart(inputs: Inputs, unknown_ns: int) -> bool:
    """Whether all ranks are recorded, and most of this time is in collectives that a rank may leave early."""
    found = inputs.collectives
    loose = int(found.loc[found["collective"].isin(LOOSE), "dur_ns"].sum())
    return len(inputs.trace.ranks) > 1 and not inputs.trace.absent.count and 2 * loose > unknown_ns


def _longer(inputs: Inputs, ranks: list[int], cost: int) -> pd.Series[float]:
    """What the late ranks do longer than the others: ns by activity, longest first, if it explains a lot."""
    frame = inputs.temporal.set_index("rank")
    columns = {"compute_ns": "computing", "exposed_memory_ns": "copying", "idle_ns": "idle"}
    times = frame[list(columns)].rename(columns=columns)
    more = times.loc[ranks].mean() - times.drop(index=ranks).median()
    telling: pd.Series[float] = more[more * _LITTLE >= max(cost, more.max())]
    return telling.sort_values(ascending=False, kind="stable")


def _transferring(parts: pd.DataFrame, waiting: int) -> pd.Series[float]:
    """The time that the late ranks transfer data while another rank waits, if that is most of the waiting."""
    transfers = int(parts["communicating_ns"].sum())
    most = 2 * transfers > int(parts["wait_ns"].sum())
    return pd.Series({"transferring": transfers / waiting} if most else {}, dtype="float64")


def _entering(inputs: Inputs, ranks: list[int], parts: pd.DataFrame, cost: int) -> pd.Series[float]:
    """By how much the late ranks enter the first judged step later, if nearly all waiting is in it.

    Nothing in the recording made them late then. In later steps it is what they did in the step before.
    """
    none, steps = pd.Series({}, dtype="float64"), inputs.scope.iterations
    if not inputs.announced or not steps:
        return none
    in_first = parts.loc[parts["iteration"] == steps[0], "wait_ns"].sum()
    if in_first < _NEARLY_ALL * parts["wait_ns"].sum():
        return none
    first = replace(inputs.scope, iterations=(steps[0],))
    begin = pd.Series(
        {
            rank: int(windows[0, 0])
            for rank in inputs.temporal["rank"].tolist()
            if len(windows := inputs.trace.rank(rank).windows(first, "host"))  # the device may be late in it
        }
    )
    own, others = begin[begin.index.isin(ranks)], begin[~begin.index.isin(ranks)]
    later = int(own.min() - others.median()) if len(own) and len(others) else 0
    return pd.Series({"entering": later} if 2 * later > cost else {}, dtype="float64")


def _starting(inputs: Inputs, ranks: list[int], cost: int) -> pd.Series[float]:
    """By how much the first work of the late ranks is later than that of the others, if it explains a lot.

    Where no steps are marked, the time of a rank begins with its first work: it is not idle before.
    """
    later = 0.0
    if not inputs.judged:
        first = pd.Series({rank: _first_work(inputs, rank) for rank in inputs.temporal["rank"].tolist()})
        later = float(first[ranks].min() - first.drop(ranks).median())
    return pd.Series({"starting": later} if later * _LITTLE >= cost else {}, dtype="float64")


def _first_work(inputs: Inputs, rank: int) -> int:
    return int(inputs.trace.rank(rank).windows(inputs.scope)[0, 0])


def longer_by_replay(inputs: Inputs) -> str:
    """What the late ranks do longer by the replay of the job, "" if it names none or does not know."""
    job = replayed_job(inputs)
    return _BY_CAUSE.get(job.cause, "") if job and job.ranks else ""
