"""Runs an analysis for the commands that print answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.cli.exits import UsageError
from hta_widgets.errors import out_of_memory
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope


def ask(analysis: Analysis, trace: Trace, scope: Scope, options: Mapping[str, Any]) -> pd.DataFrame:
    """The frame of an analysis.

    Raises:
        MissingDataError: the trace lacks what it needs.
        UsageError: it does not take such options.
    """
    try:
        with out_of_memory(f"computing {analysis.label}"):
            return analysis.answer(trace, scope, **options)
    except ValueError as error:
        if not options:  # then it is not the user's mistake
            raise
        raise UsageError(f"{analysis.kind}: {error}") from error
