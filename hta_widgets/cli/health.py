"""`hta-widgets health`: what is wrong, missing or doubtful in a trace."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from hta_widgets.cli.document import bounded_lines
from hta_widgets.cli.exits import Exit
from hta_widgets.cli.opening import open_trace
from hta_widgets.cli.output import budget_of, check_writable, text_form_of, write_lines
from hta_widgets.cli.terminal import cells_of, hanging, painted
from hta_widgets.cli.values import number_ranges
from hta_widgets.formatting import counted
from hta_widgets.trace.model import Trace

SEVERITIES = ("error", "warning", "info")


def run(arguments: Namespace) -> Exit:
    """Run the command; `Exit.FOUND` if there is a finding at least as severe as `--fail-on`."""
    check_writable(arguments.output)
    form = text_form_of(arguments.json, arguments.output)
    trace = open_trace(arguments, warn=False)  # the findings list the files left out
    if form == "json":
        budget = budget_of(arguments.budget, arguments.output)
        write_lines(arguments.output, bounded_lines(_head(trace), trace.health, budget))
    else:
        write_lines(arguments.output, _lines(trace, arguments.output))
    grave = SEVERITIES[: SEVERITIES.index(arguments.fail_on) + 1] if arguments.fail_on != "never" else ()
    return Exit.FOUND if trace.health["severity"].isin(grave).any() else Exit.FINE


def in_words(trace: Trace) -> str:
    """How many findings of each severity there are."""
    counts = _counts(trace)
    found = [counted(counts[severity], severity) for severity in SEVERITIES[:2] if counts[severity]]
    return " and ".join(found) or "no errors or warnings"


def finding_lines(rows: list[dict[str, Any]], output: str) -> Iterator[str]:
    """The findings of `widgets.job_header.health_rows`: severity, ranks and check, then the details."""
    cells = cells_of(output)
    for row in rows:
        where = f"  rank {number_ranges(sorted(set(row['ranks'])))}" if row["ranks"] else ""
        coloured = painted(f"{row['severity']:<7}", row["severity"], output)
        count = f"  ({row['count']:,})" if row["count"] > 1 else ""
        yield f"{coloured}  {row['check']}{where}{count}"
        for text in (row["detail"], row["remedy"] and f"Remedy: {row['remedy']}"):
            if text:
                yield from hanging(" " * 9, text, cells)


def _head(trace: Trace) -> dict[str, Any]:
    return {"kind": "health", "counts": _counts(trace)}


def _counts(trace: Trace) -> dict[str, int]:
    severity = trace.health["severity"]
    return {level: int((severity == level).sum()) for level in SEVERITIES}


def _lines(trace: Trace, output: str) -> Iterator[str]:
    from hta_widgets.widgets.job_header import (
        health_rows,  # as the explorer merges them; takes time to import
    )

    yield f"{in_words(trace).capitalize()} in {counted(len(trace.ranks), 'rank')}."
    rows = health_rows(trace)
    if rows:
        yield ""
        yield from finding_lines(rows, output)
