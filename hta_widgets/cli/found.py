"""A finding of the overview by the identifier that `diagnose` prints."""

from __future__ import annotations

from typing import Any

from hta_widgets.analysis.findings import overview
from hta_widgets.cli.exits import UsageError
from hta_widgets.formatting import did_you_mean
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope


def found_row(trace: Trace, scope: Scope, finding: str) -> dict[str, Any]:
    """The row of `overview` about a topic.

    Raises:
        UsageError: nothing of the kind is found.
    """
    frame = overview(trace, scope)
    frame = frame[(frame["kind"] != "") & (frame["role"] != "doubt")]
    known = list(dict.fromkeys(frame["topic"]))
    if finding not in known:
        there = f"there is {', '.join(known)}" if known else "there is none"
        raise UsageError(f"no finding {finding!r} in this recording{did_you_mean(finding, known)}; {there}")
    return {str(name): value for name, value in frame[frame["topic"] == finding].iloc[0].items()}
