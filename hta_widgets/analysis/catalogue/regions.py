"""Annotated regions on whatever side they were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pandas as pd

from hta_widgets.analysis.annotations.regions import Side, user_annotations
from hta_widgets.errors import MissingDataError

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.scope import Scope

__all__ = ["regions"]


def regions(trace: Trace, scope: Scope | None = None, side: Side | Literal[""] = "") -> pd.DataFrame:
    """`user_annotations` of one side; without one, of the device's, or of the host's if there are none."""
    if side:
        return user_annotations(trace, scope, side)
    try:
        return user_annotations(trace, scope, "gpu")
    except MissingDataError:
        return user_annotations(trace, scope, "cpu")
