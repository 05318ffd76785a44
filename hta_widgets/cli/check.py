"""`hta-widgets check`: whether a change saved what a finding of the first recording predicted."""

from __future__ import annotations

from argparse import Namespace

from hta_widgets.analysis.evidence.budget import dumped
from hta_widgets.analysis.evidence.check import CONFIRMED, checked
from hta_widgets.cli.exits import Exit, UsageError
from hta_widgets.cli.found import found_row
from hta_widgets.cli.opening import open_trace, scope_of
from hta_widgets.cli.output import check_writable, text_form_of, write_lines
from hta_widgets.cli.terminal import printable
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope


def run(arguments: Namespace) -> Exit:
    """Run the command; `Exit.FOUND` if the change did not save what was predicted, or that cannot be told.

    Raises:
        NotComparableError: the numbers would mislead.
    """
    if len(arguments.paths) != 2:
        raise UsageError("a check takes two runs, before and after the change; see hta-widgets check --help")
    check_writable(arguments.output)
    form = text_form_of(arguments.json, arguments.output)
    (before, first), (after, second) = (_opened(arguments, path) for path in arguments.paths)
    found_row(before, first, arguments.finding)  # which names the findings that there are
    found = checked(before, after, arguments.finding, (first, second))
    lines = [found["sentence"], *(f"Doubtful: {doubt}." for doubt in found["doubts"])]
    write_lines(arguments.output, [dumped(found)] if form == "json" else map(printable, lines))
    return Exit.FINE if found["outcome"] in CONFIRMED else Exit.FOUND


def _opened(arguments: Namespace, path: str) -> tuple[Trace, Scope]:
    own = Namespace(**{**vars(arguments), "paths": [path], "streams": None, "window": None})
    trace = open_trace(own)
    return trace, scope_of(own, trace)
