"""`hta-widgets analyze`: the frame of one analysis in a format of choice."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.wholes import shown_scope, whole_of
from hta_widgets.cli.ask import ask
from hta_widgets.cli.document import bounded_lines, plain, scope_as_dict
from hta_widgets.cli.exits import Exit
from hta_widgets.cli.kinds import known_kind, values_of
from hta_widgets.cli.opening import open_trace, scope_of
from hta_widgets.cli.output import budget_of, check_writable, form_of, write_frame, write_lines
from hta_widgets.cli.rows import chosen_rows
from hta_widgets.cli.table import frame_lines
from hta_widgets.cli.terminal import cells_of, pieces_of, printable
from hta_widgets.formatting import capitalised
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_TABLE_ROWS = 40


def run(arguments: Namespace) -> Exit:
    """Run the command."""
    analysis = known_kind(arguments.kind)
    options = values_of(analysis, arguments.options)
    output: str = arguments.output
    check_writable(output)
    form = form_of(arguments.format, output)
    trace = open_trace(arguments)
    scope = shown_scope(trace, analysis.kind, scope_of(arguments, trace))
    answer = ask(analysis, trace, scope, options)
    frame = chosen_rows(answer, arguments, analysis, form in ("table", "json"))
    limit = len(frame) if arguments.limit is None else arguments.limit
    if form == "table":
        write_lines(output, _table(_answer(analysis, answer, trace, scope), frame, arguments.limit, output))
    elif form == "json":
        head = {
            "kind": analysis.kind,
            "scope": scope_as_dict(scope),
            "of": whole_of(trace, analysis.kind, scope),
            "options": plain(options),
            "sentence": _answer(analysis, answer, trace, scope),
            "failed": {name: str(error) for name, error in trace.failed.items()},
        }
        write_lines(output, bounded_lines(head, frame, budget_of(arguments.budget, output), limit))
    else:
        write_frame(output, frame.head(limit), form, analysis.kind)
    return Exit.FINE


def _answer(analysis: Analysis, frame: pd.DataFrame, trace: Trace, scope: Scope) -> str:
    """The answer in a sentence, with one for what it does not hold."""
    without = f"{capitalised(trace.without)}." if trace.without else ""
    return " ".join(filter(None, (analysis.said(frame, trace, scope), without)))


def _table(answer: str, frame: pd.DataFrame, limit: int | None, output: str) -> Iterator[str]:
    cells = cells_of(output)
    yield from pieces_of(printable(answer), cells)
    if len(frame):
        yield ""
        yield from frame_lines(frame, _TABLE_ROWS if limit is None else limit, cells)
