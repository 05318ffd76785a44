"""`hta-widgets what-if`: how long the iterations would take after a change."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from hta_widgets.analysis.critical_path.what_if import what_if
from hta_widgets.analysis.replay.answer import sentence
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.expressions import parse_all
from hta_widgets.analysis.replay.quality import replay_quality
from hta_widgets.cli.document import bounded_lines, scope_as_dict
from hta_widgets.cli.exits import Exit, UsageError
from hta_widgets.cli.found import found_row
from hta_widgets.cli.opening import open_trace, scope_of
from hta_widgets.cli.output import budget_of, check_writable, form_of, write_frame, write_lines
from hta_widgets.cli.table import frame_lines
from hta_widgets.cli.terminal import cells_of, pieces_of, printable
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_TABLE_ROWS = 40


def run(arguments: Namespace) -> Exit:
    """Run the command."""
    if not arguments.edits and not arguments.findings:
        raise UsageError("name a change: --edit or --finding; see hta-widgets what-if --help")
    edits = [edit for text in arguments.edits for edit in _edits(text)]
    output: str = arguments.output
    check_writable(output)
    form = form_of(arguments.format, output)
    trace = open_trace(arguments)
    scope = scope_of(arguments, trace)
    against = [_against(trace, scope, finding) for finding in arguments.findings]
    edits += [edit for row in against for edit in parse_all(str(row["edits"]))]
    if scope.ranks is None and not arguments.edits:
        scope = replace(scope, ranks=_ranks_of(against))
    try:
        frame = what_if(trace, edits, scope, path=arguments.path)
    except ValueError as error:
        raise UsageError(f"argument --edit: {error}") from None
    if not any(edit.across for edit in edits):
        _warn_of_left_out(arguments, trace, scope)
    if form == "table":
        write_lines(output, _table(frame, output))
    elif form == "json":
        head = {
            "kind": "what_if",
            "scope": scope_as_dict(scope),
            "edits": [edit.expression for edit in edits],
            "sentence": sentence(frame),
        }
        write_lines(output, bounded_lines(head, frame, budget_of(arguments.budget, output)))
    else:
        write_frame(output, frame, form, "what_if")
    return Exit.FINE


def _edits(text: str) -> tuple[Edit, ...]:
    try:
        return parse_all(text)
    except ValueError as error:
        raise UsageError(f"argument --edit: {error}") from None


def _against(trace: Trace, scope: Scope, finding: str) -> dict[str, Any]:
    """The finding of the overview, and the change that was replayed for it.

    Raises:
        UsageError: nothing of the kind is found, or no change against it is replayed.
    """
    row = found_row(trace, scope, finding)
    if not row["edits"]:
        raise UsageError(f"no change against {finding} is replayed on one rank: name one with --edit")
    return row


def _ranks_of(against: list[dict[str, Any]]) -> tuple[int, ...] | None:
    """The ranks that the savings of these findings are about; None: all of them."""
    ranks = {row["saving_rank"] for row in against}
    return None if any(map(pd.isna, ranks)) else tuple(sorted(map(int, ranks)))


def _warn_of_left_out(arguments: Namespace, trace: Trace, scope: Scope) -> None:
    """Warn of each rank whose replay cannot be trusted."""
    if not arguments.quiet:
        for found in replay_quality(trace, scope).query("not trusted").itertuples():
            sys.stderr.write(f"hta-widgets: warning: rank {found.rank} is left out: {found.reason}\n")


def _table(frame: pd.DataFrame, output: str) -> Iterator[str]:
    cells = cells_of(output)
    yield from pieces_of(printable(sentence(frame)), cells)
    if len(frame):
        yield ""
        yield from frame_lines(frame, _TABLE_ROWS, cells)
