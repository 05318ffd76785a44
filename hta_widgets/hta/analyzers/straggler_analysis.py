"""`get_potential_stragglers` with HTA's extension point: who ranks the ranks can be changed."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.communication.stragglers import stragglers
from hta_widgets.errors import NoSuchStepError
from hta_widgets.hta.analyzers.straggler import (
    counts,
    extract_iteration_info,
    find_stragglers_with_late_start_comm_kernels,
    straggler_figures,
)
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.methods.conventions import or_else, show
from hta_widgets.trace.scope import Scope

__all__ = ["StragglerAnalysis", "find_stragglers_with_late_start_comm_kernels", "potential_stragglers"]


@or_else(list[int])
def potential_stragglers(
    t: Trace,
    profiler_steps: list[int] | None = None,
    num_candidates: int = 2,
    visualize: bool = False,
    straggler_identification_impl: Callable[..., pd.Series] = find_stragglers_with_late_start_comm_kernels,
) -> list[int]:
    """Which ranks keep the others waiting?

    Args:
        profiler_steps: steps to look at, by default all; those that do not exist are ignored.
        num_candidates: how many ranks to name, at least 1.
        visualize: show the timeline of the collectives and the candidates.
        straggler_identification_impl: another rule: takes (events of all ranks, symbol table, number of
            candidates, visualize) and returns a Series of scores by rank. The events are those of these
            steps, with HTA's columns after rank and idx.

    Returns:
        Ranks, the most suspicious first; ties go to the lower rank. Empty, with a warning, where nothing can
        be compared: one rank, or no collective that all ranks share. Defined in `analysis.stragglers`.

    Raises:
        NoSuchStepError: none of the steps exists, or none was recorded; a ValueError, as HTA's is.
    """
    num_candidates = max(num_candidates, 1)
    available = StragglerAnalysis.get_profiler_steps(t)
    steps = available if profiler_steps is None else [step for step in profiler_steps if step in available]
    if not steps:
        remedy = "Choose some of these." if available else "Call prof.step() after each step."
        raise NoSuchStepError(
            f"invalid value for argument: profiler_steps={profiler_steps}; "
            f"available profiler steps={available}. {remedy}"
        )
    if straggler_identification_impl is find_stragglers_with_late_start_comm_kernels:
        found = _by_definition(t, tuple(steps), num_candidates, visualize)
    else:
        found = straggler_identification_impl(_frame(t, steps), t.symbol_table, num_candidates, visualize)
    return [int(rank) for rank in found.sort_values(ascending=False, kind="stable").index[:num_candidates]]


def _by_definition(t: Trace, steps: tuple[int, ...], num_candidates: int, visualize: bool) -> pd.Series:
    """The default on our own columns: what HTA's frames lack (groups, sequence numbers) is known here."""
    scope = Scope(iterations=steps)
    late = stragglers(t.job, scope)
    if visualize:
        show(straggler_figures(collectives(t.job, scope), late, num_candidates))
    return counts(late, num_candidates)


def _frame(t: Trace, steps: list[int]) -> pd.DataFrame:
    frames = {rank: t.get_trace(rank) for rank in t.get_all_traces()}
    everything = pd.concat(list(frames.values()), keys=list(frames), names=["rank", "idx"]).reset_index()
    return everything[everything["iteration"].isin(steps)]


class StragglerAnalysis:
    """HTA's class of the same methods."""

    get_potential_stragglers = staticmethod(potential_stragglers)

    @staticmethod
    def get_profiler_steps(t: Trace) -> list[int]:
        """The numbers of the profiler steps of any rank, ascending."""
        return sorted({int(step) for step in extract_iteration_info(t)["iter"]})
