"""The rows of an answer about the whole job that a scope's ranks and iterations choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.scope import Scope

__all__ = ["of_ranks_and_iterations"]


def of_ranks_and_iterations(frame: pd.DataFrame, trace: Trace, scope: Scope) -> pd.DataFrame:
    """The rows whose `rank` and `iteration` belong to a scope, numbered from 0."""
    chosen = frame["rank"].isin(trace.ranks_of(scope))
    if scope.iterations is not None:
        chosen &= frame["iteration"].isin(scope.iterations)
    return frame[chosen].reset_index(drop=True)
