"""`hta-widgets report`: the explorer as one HTML file, findings as Markdown, tables as a workbook."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from pathlib import PurePath
from time import sleep
from typing import Any

from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.analysis.evidence.markdown import markdown
from hta_widgets.cli.exits import Exit, OutputError, UsageError
from hta_widgets.cli.opening import client_of, open_trace, reading, scope_of, source_of, warn_of_failed
from hta_widgets.cli.output import check_writable, write_bytes, write_lines
from hta_widgets.cli.terminal import printable
from hta_widgets.errors import MissingDataError
from hta_widgets.report.excel import whole_run
from hta_widgets.short_paths import paths_as
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis
from hta_widgets.widgets.panels import available_panels
from hta_widgets.widgets.relevance import without_content
from hta_widgets.widgets.trace_explorer import TraceExplorer

_OF_TRACE = (".xlsx", ".md")
"""Endings of reports that show no widget."""

_FIRST_LOOK = (
    "overview",
    "temporal_breakdown",
    "comm_comp_overlap",
    "idle_breakdown",
    "kernel_type_breakdown",
    "kernel_breakdown",
    "stragglers",
    "slowdown",
    "memory_peak",
)
_ALWAYS = "op_counts"
_SECONDS_BETWEEN_REPORTS = 0.05


def run(arguments: Namespace) -> Exit:
    """Run the command; prints the name of the file."""
    check_writable(arguments.output)
    if (ending := _ending(arguments.output)) in _OF_TRACE:
        trace = open_trace(arguments)
        cut = paths_as(arguments.shown_paths, [source_of(arguments)])
        scope = scope_of(arguments, trace)
        if ending == ".xlsx":
            content = whole_run(trace, scope, cut)
        else:  # the page of `diagnose`
            content = markdown(evidence(trace, scope)).encode("utf-8", "backslashreplace")
        write_bytes(arguments.output, content, text=False)
        write_lines("-", [printable(arguments.output)])
        return Exit.FINE
    requested = _requested(arguments.panels)
    explorer = _opened(arguments)
    try:
        warn_of_failed(arguments, explorer.trace)
        scope = scope_of(arguments, explorer.trace)
        with explorer.selection.hold_trait_notifications():
            for name, part in _selection(scope).items():
                setattr(explorer.selection, name, part)
        explorer.panels = _first_look(explorer.trace, scope) if requested is None else requested
        explorer.to_html(arguments.output, paths=arguments.shown_paths)
    except OSError as error:
        raise OutputError(f"cannot write {arguments.output}: {error.strerror or error}") from error
    finally:
        explorer.close()
    write_lines("-", [printable(arguments.output)])
    return Exit.FINE


def _ending(output: str) -> str:
    ending = PurePath(output).suffix.lower()
    if ending not in ("", ".html", ".htm", *_OF_TRACE):
        known = "an HTML file, an Excel workbook (.xlsx) or Markdown (.md)"
        raise UsageError(f"a report is {known}, not a file {ending}")
    return ending


def _opened(arguments: Namespace) -> TraceExplorer:
    """The explorer with its trace loaded, without panels: nothing is selected yet."""
    with reading(arguments) as show:
        explorer = TraceExplorer(
            source_of(arguments), panels=[], clock=arguments.clock, recording=arguments.recording,
            client=client_of(arguments),
        )  # fmt: skip
        while explorer.status == "busy":  # longer than `wait()`: until its parts have been created
            show(explorer.message)
            sleep(_SECONDS_BETWEEN_REPORTS)
        return explorer.wait()


def _requested(panels: str | None) -> list[str] | None:
    if panels is None:
        return None
    there = [entry["kind"] for entry in available_panels()]
    kinds = there if panels == "all" else [kind.strip() for kind in panels.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in there:
            raise UsageError(f"there is no panel {kind!r}; the panels are {', '.join(there)}")
    return kinds


def _first_look(trace: Trace, scope: Scope) -> list[str]:
    """The default panels that have something to show, which stays cached for the panels themselves."""
    found, left_out = [], without_content(trace)
    for kind in _FIRST_LOOK:
        if kind in left_out:
            continue
        with suppress(MissingDataError):
            cached_analysis(trace, kind, scope)
            found.append(kind)
    return found if len(found) > 1 else [*found, _ALWAYS]  # the findings alone may be what is missing


def _selection(scope: Scope) -> dict[str, Any]:
    """The scope as traits of `Selection`."""
    parts = {
        "ranks": scope.ranks,
        "iterations": scope.iterations,
        "window": scope.window_ns,
        "streams": scope.streams,
    }
    return {name: part for name, part in parts.items() if part is not None}
