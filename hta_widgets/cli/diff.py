"""`hta-widgets diff`: what changed between runs, and whether it is within limits."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from hta_widgets.analysis.evidence.budget import dumped
from hta_widgets.cli.comparison import Run, compared
from hta_widgets.cli.diff_document import comparison_as_dict, refusal_as_dict, within
from hta_widgets.cli.diff_table import comparison_lines
from hta_widgets.cli.exits import Exit, UsageError
from hta_widgets.cli.opening import open_trace, scope_of
from hta_widgets.cli.output import check_writable, form_of, write_frame, write_lines
from hta_widgets.errors import NotComparableError


def run(arguments: Namespace) -> Exit:
    """Run the command; `Exit.FOUND` if a change is beyond a limit of `--fail-on`.

    Raises:
        NotComparableError: the numbers would mislead; with `--format json` the reasons are written, too.
    """
    names = _names(arguments.paths, arguments.names)
    output: str = arguments.output
    check_writable(output)
    form = form_of(arguments.format, output)
    runs = [_opened(arguments, name, path) for name, path in zip(names, arguments.paths, strict=True)]
    try:
        found = compared(runs, arguments.by, arguments.limits)
    except NotComparableError as refusal:
        if form == "json":
            write_lines(output, [dumped(refusal_as_dict(runs, refusal))])
        raise
    if form == "table":
        write_lines(output, comparison_lines(found, arguments.top, output))
    elif form == "json":
        document = comparison_as_dict(found, arguments.top)
        write_lines(output, [dumped(within(document, arguments.budget))])
    else:
        write_frame(output, found.first_lines(arguments.top), form, "diff")
    return Exit.FOUND if found.failed else Exit.FINE


def _opened(arguments: Namespace, name: str, path: str) -> Run:
    own = Namespace(**{**vars(arguments), "paths": [path], "streams": None, "window": None})
    trace = open_trace(own)
    return Run(name, path, trace, scope_of(own, trace))


def _names(paths: Sequence[str], given: Sequence[str] | None) -> Sequence[str]:
    if len(paths) < 2:
        raise UsageError("a comparison takes at least two runs; see hta-widgets diff --help")
    if given is None:
        from hta_widgets.widgets.runs import default_names  # as the viewer has them; takes time to import

        return default_names(paths)
    if len(given) != len(paths):
        raise UsageError(f"there are {len(paths)} runs and {len(given)} names: give --name once for each run")
    if len(set(given)) < len(given) or "" in given:
        raise UsageError("the names of the runs must differ, and none may be empty")
    return given
