"""What the devices of all ranks did in the steps that every rank recorded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.communication.collectives import recorded
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.configurations import Configuration, configurations
from hta_widgets.arrays import Int64
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace

Column = npt.NDArray[np.generic]

NOT_CALLED = np.iinfo(np.int64).min
"""In place of the time of a launch that was not recorded."""

# by number: 0, 1, 2
_KINDS = pd.Series(["compute", "copy", "collective"], dtype="str")
_COPIES = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)
_OF_COLLECTIVE = (
    "collective",
    "process_group",
    "group_ranks",
    "group_size",
    "sender",
    "receiver",
    "seq",
    "comms_id",
    "in_elements",
    "bytes",
)


def operations(
    trace: Trace, ranks: tuple[int, ...] | None = None, iterations: tuple[int, ...] | None = None
) -> pd.DataFrame:
    """The device work of ranks in the steps that they have in common, of all or of those given.

    Returns:
        One row per kernel, copy and fill, by step, rank, lane, start. Columns: step (int64, from 0),
        iteration, rank, event_id, lane (int64, one per device and stream), nth (int64, position in its lane
        and step), name (str), kind (str: compute, copy, collective, send or recv), start_ns, end_ns, dur_ns
        (int64 ns, of the rank's clock), called_ns (int64 ns, when the launching call began; NOT_CALLED where
        unknown), ended_before_ns (int64 ns, when the earlier steps of the rank had ended on its device;
        NOT_CALLED in the first), shape (int64, code of launch grid, block and inputs, -1 without any), and
        what `collectives` reads of communication: collective, process_group, group_ranks, group_size, sender,
        receiver, seq, comms_id, in_elements, bytes (NA for other work).

    Raises:
        MissingDataError: no device work, or no step that all ranks recorded whole.
    """
    chosen = [rank for rank in trace.ranks if ranks is None or rank in ranks]
    names, shapes = _Numbers(), _Numbers({"": -1})
    work_by_rank = trace.each_with(_work_of, dict.fromkeys(chosen))
    parts = [work.numbered(names, shapes) for work in work_by_rank.values()]
    with_work = [part for part in parts if len(part["rank"])]
    if not with_work:
        raise MissingDataError("device events", RECORD_DEVICE)
    common = set.intersection(*(set(np.unique(part["iteration"]).tolist()) for part in with_work))
    common &= common if iterations is None else set(iterations)
    begun = common.difference(*(work.after_lost for work in work_by_rank.values()))
    common = begun or common
    if not common:
        raise MissingDataError(
            "step that all ranks recorded",
            "Record the same steps on every rank, with one schedule for torch.profiler.profile.",
        )
    frame = pd.DataFrame({name: np.concatenate([part[name] for part in with_work]) for name in with_work[0]})
    frame = frame[np.isin(frame["iteration"], sorted(common))]
    step = np.searchsorted(sorted(common), frame["iteration"])
    keys = [frame[name].to_numpy() for name in ("event_id", "end_ns", "start_ns", "lane", "rank")]
    frame = frame.assign(step=step.astype(np.int64)).iloc[np.lexsort([*keys, step])].reset_index(drop=True)
    of_collective = _communication(trace, frame)
    kind = _KINDS.take(frame["kind"].to_numpy()).reset_index(drop=True)
    other = of_collective["collective"].where(of_collective["collective"].isin(("send", "recv")))
    frame["kind"] = kind.where(kind != "collective", other.fillna("collective"))
    frame["name"] = names.told().take(frame["name"].to_numpy()).reset_index(drop=True)
    new_lane = (frame[["step", "rank", "lane"]].diff() != 0).any(axis=1).to_numpy()
    first = np.maximum.accumulate(np.where(new_lane, np.arange(len(frame)), 0))
    frame["nth"] = np.arange(len(frame)) - first
    return pd.concat([frame, of_collective], axis=1)


class _Numbers(dict[str, int]):
    """Numbers of texts that all ranks share."""

    def of(self, texts: list[str]) -> Int64:
        """The number of each text."""
        return np.array([self.setdefault(text, len(self)) for text in texts], np.int64)

    def told(self) -> pd.Series:
        """The text of each number."""
        return pd.Series(list(self), dtype="str")


class _DeviceWork(NamedTuple):
    """What a rank's device did in its whole steps.

    Attributes:
        columns: of `operations`, those that follow from this rank; kinds as places in `_KINDS`.
        after_lost: the steps before which it is not known until when the device was busy.
        known, number: configurations, and of each row the place of its own in them.
    """

    columns: dict[str, Column]
    after_lost: list[int]
    known: list[Configuration]
    number: Int64

    def numbered(self, names: _Numbers, shapes: _Numbers) -> dict[str, Column]:
        """All columns; texts as numbers, those of launch grid, block and inputs as one."""
        name = names.of([each.name for each in self.known])[self.number]
        shape = shapes.of(["".join(each[1:]) for each in self.known])[self.number]
        return {**self.columns, "name": name, "shape": shape}


def _work_of(rank_trace: RankTrace, _: None) -> _DeviceWork:
    return _device_work(rank_trace)


@memoize_per_rank()
def _device_work(rank_trace: RankTrace) -> _DeviceWork:
    frame = rank_trace.iterations
    numbers, whole = frame["iteration"].to_numpy(np.int64), ~frame["partial"].to_numpy(np.bool_)
    lacking = np.isin(numbers, [step.iteration for step in rank_trace.doubtful_steps if step.doubt_ns])
    after_lost = numbers[np.append(False, lacking)[: len(numbers)]].tolist()
    rows = np.flatnonzero(rank_trace.is_device & np.isin(rank_trace.iteration, numbers[whole]))
    event_class = rank_trace.event_class[rows]
    copies = np.isin(event_class, _COPIES)
    launch = rank_trace.launch[rows]
    called = np.where(launch >= 0, rank_trace.start[np.maximum(launch, 0)], NOT_CALLED)
    device, devices = pd.factorize(rank_trace.device[rows])
    iteration = rank_trace.iteration[rows].astype(np.int64)
    columns: dict[str, Column] = {
        "iteration": iteration,
        "rank": np.full(len(rows), rank_trace.rank, np.int64),
        "event_id": rank_trace.event_id[rows].astype(np.int64),
        "lane": rank_trace.stream[rows] * max(len(devices), 1) + device,
        "kind": np.where(event_class == EventClass.COMMUNICATION, 2, copies),
        "start_ns": rank_trace.start[rows],
        "end_ns": rank_trace.end[rows],
        "dur_ns": rank_trace.dur[rows],
        "called_ns": called,
        "ended_before_ns": _ended_before(iteration, rank_trace),
    }
    return _DeviceWork(columns, after_lost, *configurations(rank_trace, rows))


def _ended_before(iteration: Int64, rank_trace: RankTrace) -> Int64:
    """When the device had ended the iterations before each of these, from the first of them on.

    Before that it has nothing to do when the host begins, unless there is work of earlier launches.
    """
    if not len(iteration):
        return iteration
    every = np.flatnonzero(rank_trace.is_device & (rank_trace.iteration >= iteration.min()))
    numbers, place = np.unique(rank_trace.iteration[every], return_inverse=True)
    ends = np.full(len(numbers), NOT_CALLED)
    np.maximum.at(ends, place, rank_trace.end[every])
    begin = NOT_CALLED
    if not len(rank_trace.earlier_work):
        frame = rank_trace.iterations
        first = frame["iteration"].to_numpy(np.int64) == numbers[0]
        begin = int(frame["host_start_ns"].to_numpy(np.int64)[first][0])
    return np.append(begin, np.maximum.accumulate(ends)[:-1])[np.searchsorted(numbers, iteration)]


def _communication(trace: Trace, frame: pd.DataFrame) -> pd.DataFrame:
    """What is recorded of the communication among these operations; NA for other work."""
    exchanges = recorded(trace)
    found = np.full(len(frame), -1)
    if len(exchanges):
        ids = int(max(exchanges["event_id"].max(), frame["event_id"].max())) + 1
        key, wanted = (of["rank"].to_numpy() * ids + of["event_id"].to_numpy() for of in (exchanges, frame))
        order = np.argsort(key)
        at = order[np.minimum(np.searchsorted(key, wanted, sorter=order), len(key) - 1)]
        found = np.where(key[at] == wanted, at, -1)
    return exchanges[list(_OF_COLLECTIVE)].reindex(found).reset_index(drop=True)
