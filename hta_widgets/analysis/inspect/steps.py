"""Two iterations of a run side by side: what takes longer in the second, class by class and name by name."""

from __future__ import annotations

from typing import Final

import pandas as pd

from hta_widgets.analysis.inspect.window import WindowBy, inspect_window
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_COUNTED: Final = ("count", "time_ns", "covered_ns")


def compare_iterations(
    trace: Trace, first: int, second: int, scope: Scope | None = None, by: WindowBy = "name"
) -> pd.DataFrame:
    """What takes longer, or less long, in one iteration than in another?

    Both are taken apart by `inspect_window`, and their rows are joined.

    Args:
        trace: the job.
        first, second: numbers of the iterations.
        scope: ranks and streams to look at; default everything. Its iterations and window do not count.
        by: what a row is, as in `inspect_window`.

    Returns:
        One row per rank and group, by rank, then by the greatest change. Columns: rank (int64), name,
        event_class (str), first_count, second_count, change_count (int64, events), first_time_ns,
        second_time_ns, change_time_ns, first_covered_ns, second_covered_ns, change_covered_ns (int64, ns;
        as `inspect_window` has `time_ns` and `covered_ns`; 0 where one of them has no such events). Each
        change is the second's less the first's.

    Raises:
        MissingDataError: a selected rank lacks one of the iterations; by operator, it has no operators.
        ValueError: `by` is none of the above.
    """
    scope = scope or Scope()
    for rank in trace.ranks_of(scope):
        known = set(trace.rank(rank).iterations["iteration"])
        for number in (first, second):
            if number not in known:
                remedy = "Call profiler.step() after each step, and select iterations that were recorded."
                raise MissingDataError(f"iteration {number} of rank {rank}", remedy)
    key = ["rank", "name"] if by in ("lane", "operator") else ["rank", "name", "event_class"]
    sides = []
    for label, number in (("first", first), ("second", second)):
        own = Scope(ranks=scope.ranks, streams=scope.streams, iterations=(number,))
        frame = inspect_window(trace, own, by)
        renamed = {name: f"{label}_{name}" for name in _COUNTED}
        sides.append(frame[[*dict.fromkeys([*key, "event_class"]), *_COUNTED]].rename(columns=renamed))
    joined = sides[0].merge(sides[1], on=key, how="outer", suffixes=("", "_of_second"))
    if "event_class_of_second" in joined:
        joined["event_class"] = joined["event_class"].fillna(joined.pop("event_class_of_second"))
    columns: dict[str, str] = {"rank": "int64", "name": "str", "event_class": "str"}
    for name in _COUNTED:
        sides_of = [f"{label}_{name}" for label in ("first", "second")]
        joined[sides_of] = joined[sides_of].fillna(0).astype("int64")
        joined[f"change_{name}"] = joined[sides_of[1]] - joined[sides_of[0]]
        columns |= dict.fromkeys([*sides_of, f"change_{name}"], "int64")
    joined["_size"] = -joined["change_covered_ns"].abs()
    order = joined.sort_values(["rank", "_size", "name", "event_class"], ignore_index=True)
    return order[list(columns)].astype(columns)
