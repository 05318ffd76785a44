"""The change that takes the cost of a finding away, as edits of a replay; or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hta_widgets.analysis.idle.causes import is_data_loading
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["BETWEEN_RANKS", "CHANGES", "NO_CHANGE", "Change"]


class Change(NamedTuple):
    """A change of the program: as it is said, and the edits that stand for it on a rank."""

    words: str
    edits_of: Callable[[RankTrace], list[Edit]]


def _loaders(rank_trace: RankTrace) -> list[Edit]:
    return [edits.without(edits.exactly(name)) for name in rank_trace.names if is_data_loading(name)]


def _exposed_host(rank_trace: RankTrace) -> list[Edit]:
    """The time of the host while devices are idle, but for waiting for a batch: a finding of its own."""
    rows = np.flatnonzero((rank_trace.event_class == EventClass.ANNOTATION) & (rank_trace.stream == NULL))
    names = [rank_trace.names[code] for code in np.unique(rank_trace.name[rows]).tolist()]
    loaders = sorted(name for name in names if is_data_loading(name))
    if not loaders:
        return [edits.host(0, exposed=True)]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*loaders, strict=False))
    common = "".join(letter for letter, *_ in alike)
    if len(loaders) > 1 and not all(is_data_loading(name) for name in names if name.startswith(common)):
        return [edits.host(0, exposed=True)]
    pattern = edits.exactly(common) + "*" * (len(loaders) > 1)
    return [edits.host(0, outside=pattern, exposed=True)]


_GRAPHS = Change("with runs of short kernels as graphs", lambda _: [edits.graphs()])

CHANGES: dict[str, Change] = {
    "data_stall": Change("without the data loader's time", _loaders),
    "sync_calls": Change("without waiting in synchronising calls", lambda _: [edits.syncs()]),
    "idle_host": Change("without the host's time while the device is idle", _exposed_host),
    "launch_bound": _GRAPHS,
    "tiny_kernels": _GRAPHS,
    "exposed_communication": Change("without the time of communication", lambda _: [edits.communication(0)]),
    "memory_copies": Change("without the time of copies", lambda _: [edits.copies(float("inf"))]),
}
"""By topic, where the finding names none itself."""

BETWEEN_RANKS = ("straggler", "mutual_waiting", "slow_kernels", "imbalance")
"""What ranks lose to each other: no replay of one rank tells what is saved."""

NO_CHANGE: dict[str, str] = {
    "device_wait": "the work may need what it waits for",
    "slow_steps": "what these steps do beyond the others is not told apart",
    "start_up": "it is no part of a steady step",
    "unrecorded_idle": "no launch is recorded that could come earlier",
    "no_work_due": "nothing is recorded that could come earlier",
    "buffers_broadcast": "other broadcasts are recorded under the same name",
    "maybe_communication": "whether it is communication is not known",
}
"""By topic, why no edit takes its cost away."""
