"""Which ranks belong together: hosts, nodes, and the groups in which the job is parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis

_KNOWN = ("data", "pipeline", "tensor", "context", "expert")


def rank_groups(trace: Trace) -> list[dict[str, Any]]:
    """The ways to group the ranks of a job of which at least two groups come out.

    Returns:
        ``[{"name", "groups", "of"}]``: "Host", "Node", "Pipeline stage", "Tensor group" and the like; the
        names of its groups; and of each rank, in the order of `trace.ranks`, the number of its group among
        them, -1 where it is in none.
    """
    from hta_widgets.analysis.job.ranks import nodes  # and with it the replay of a job

    hosts = [str(trace.metadata(rank).get("host_name") or "") for rank in trace.ranks]
    ways = [_way("Host", hosts)]
    node = nodes(trace, pd.Series(trace.ranks))
    ways.append(_way("Node", ["" if pd.isna(number) else f"node {number}" for number in node]))
    try:
        grid = cached_analysis(trace, "parallelism", Scope())
    except MissingDataError:
        grid = pd.DataFrame({"rank": [], "dimension": [], "coordinate": [], "ranks": []})
    for dimension in _KNOWN:
        own = grid[grid["dimension"] == dimension].drop_duplicates("rank").set_index("rank")
        if dimension == "pipeline":
            stages = own["coordinate"].dropna()
            ways.append(_way("Pipeline stage", [_named("stage", stages.get(rank)) for rank in trace.ranks]))
        members = own["ranks"]
        ways.append(
            _way(
                f"{dimension.capitalize()} group",
                [_named("ranks", members.get(rank)) for rank in trace.ranks],
            )
        )
    return [way for way in ways if len(way["groups"]) > 1]


def _named(what: str, value: Any) -> str:
    return "" if value is None or value == "" else f"{what} {value}"


def _way(name: str, groups: Sequence[str]) -> dict[str, Any]:
    """Groups in the order in which ranks meet them; "" is none."""
    number = {group: at for at, group in enumerate(dict.fromkeys(filter(None, groups)))}
    return {"name": name, "groups": list(number), "of": [number.get(group, -1) for group in groups]}
