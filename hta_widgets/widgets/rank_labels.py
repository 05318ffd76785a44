"""What a rank is called on the screen: its number, and its place in the job where its file tells it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.trace.model import Trace

if TYPE_CHECKING:
    from hta_widgets.analysis.parallelism.coordinates import Coordinates


def lane_labels(trace: Trace, ranks: Iterable[int]) -> dict[int, str]:
    """The label of each rank above its lanes: `5 · stage 1, replica 0`."""
    return {rank: " · ".join(filter(None, (trace.rank(rank).label, _place(trace, rank)))) for rank in ranks}


def rank_options(trace: Trace) -> list[dict[str, object]]:
    """All ranks to choose from: ``[{"rank", "label", "place"}]``; `place` is "" where nothing tells it."""
    return [
        {"rank": rank, "label": trace.rank(rank).label, "place": _place(trace, rank)} for rank in trace.ranks
    ]


def _place(trace: Trace, rank: int) -> str:
    found = _listed(trace)
    return "" if found is None else found.told(rank)


@memoize_per_rank()
def _listed(trace: Trace) -> Coordinates | None:
    from hta_widgets.analysis.parallelism.coordinates import listed_coordinates

    found = listed_coordinates(trace)
    return None if found is None or trace.several_jobs else found
