"""`hta-widgets diagnose`: the evidence of a recording as Markdown, or as JSON of a fixed schema."""

from __future__ import annotations

from argparse import Namespace
from pathlib import PurePath

from hta_widgets.analysis.evidence.budget import dumped
from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.analysis.evidence.markdown import markdown
from hta_widgets.cli.exits import Exit, UsageError
from hta_widgets.cli.opening import open_trace, scope_of
from hta_widgets.cli.output import check_writable, write_lines
from hta_widgets.errors import out_of_memory


def run(arguments: Namespace) -> Exit:
    """Run the command."""
    if arguments.json and arguments.markdown:
        raise UsageError("--json and --markdown exclude each other")
    check_writable(arguments.output)
    as_json = arguments.json or (PurePath(arguments.output).suffix == ".json" and not arguments.markdown)
    trace = open_trace(arguments)
    scope = scope_of(arguments, trace)
    try:
        with out_of_memory("computing the evidence"):
            document = evidence(trace, scope, budget=arguments.budget, reading=_reading(arguments))
    except ValueError as error:
        raise UsageError(str(error)) from error
    lines = [dumped(document)] if as_json else markdown(document).splitlines()
    write_lines(arguments.output, lines)
    return Exit.FINE


def _reading(arguments: Namespace) -> list[str]:
    """What the commands of the document repeat, beside the part of the job."""
    recording = [] if arguments.recording is None else ["--recording", arguments.recording]
    return [*recording, *([] if arguments.clock == "auto" else ["--clock", arguments.clock])]
