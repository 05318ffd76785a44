"""The change that takes the cost of a finding away, as edits of a replay; or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from hta_widgets.analysis.idle.causes import is_data_loading
from hta_widgets.analysis.replay import edits
from hta_widgets.analysis.replay.edits import Edit

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["BETWEEN_RANKS", "CHANGES", "NO_CHANGE", "Change"]


class Change(NamedTuple):
    """A change of the program: as it is said, and the edits that stand for it on a rank."""

    words: str
    edits_of: Callable[[RankTrace], list[Edit]]


def _loaders(rank_trace: RankTrace) -> list[Edit]:
    return [edits.without(edits.exactly(name)) for name in rank_trace.names if is_data_loading(name)]


_GRAPHS = Change("with runs of short kernels as graphs", lambda _: [edits.graphs()])

CHANGES: dict[str, Change] = {
    "data_stall": Change("without the data loader's time", _loaders),
    "sync_calls": Change("without waiting in synchronising calls", lambda _: [edits.syncs()]),
    "idle_host": Change(
        "without the host's time while it launches too late", lambda _: [edits.host(0, exposed=True)]
    ),
    "launch_bound": _GRAPHS,
    "tiny_kernels": _GRAPHS,
    "exposed_communication": Change("without the time of communication", lambda _: [edits.communication(0)]),
    "memory_copies": Change("without the time of copies", lambda _: [edits.copies(float("inf"))]),
}
"""By topic, where the finding names none itself."""

BETWEEN_RANKS = ("straggler", "mutual_waiting", "slow_kernels", "imbalance")
"""What ranks lose to each other: only a replay of all tells what is saved."""

NO_CHANGE: dict[str, str] = {
    "device_wait": "what the work waits for is not known",
    "slow_steps": "whether these steps must do more than the others is not known",
    "start_up": "it is no part of a steady step",
    "unrecorded_idle": "no launch is recorded that could come earlier",
    "no_work_due": "nothing is recorded that could come earlier",
    "fsdp_prefetch": "no edit changes the order of all-gathers, or takes their limit away",
    "tiny_collectives": "no edit joins messages, and whether they can wait for each other is not known",
    "pipeline_bubble": "how many microbatches there may be is for the program to say, and "
    "edits.microbatches replays other numbers",
    "buffers_broadcast": "other broadcasts are recorded under the same name",
    "slowed_by_communication": "communication takes its share of the device wherever it runs",
    **dict.fromkeys(
        ("host_loading", "host_straggler", "host_collectives", "host_outside", "host_optimizer"),
        "only work of devices is replayed, and none is recorded",
    ),
    "devices_in_turn": "what of one device's work the other needs is not known",
    "tensor_copies": "FSDP's own copies are recorded under the same names",
    "maybe_communication": "whether it is communication is not known",
}
"""By topic, why no edit takes its cost away."""
