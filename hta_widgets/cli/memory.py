"""`hta-widgets memory`: what a memory snapshot of PyTorch holds, who requested it, and why it ran out."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import PurePath

from hta_widgets.analysis.evidence.budget import dumped
from hta_widgets.cli.document import frame_as_dict, plain
from hta_widgets.cli.exits import Exit, OutputError, UsageError
from hta_widgets.cli.output import check_writable, text_form_of, write_lines
from hta_widgets.cli.table import frame_lines
from hta_widgets.cli.terminal import cells_of, printable
from hta_widgets.errors import MissingDataError
from hta_widgets.memory_snapshot.snapshot import MemorySnapshot
from hta_widgets.trace.model import Trace


def run(arguments: Namespace) -> Exit:
    """Run the command."""
    check_writable(arguments.output)
    is_page = PurePath(arguments.output).suffix.lower() in (".html", ".htm") and not arguments.json
    form = "page" if is_page else text_form_of(arguments.json, arguments.output)
    if len(arguments.paths) != 1:
        raise UsageError("a memory snapshot is one file")
    snapshot = MemorySnapshot.open(arguments.paths[0])
    trace = None if arguments.trace is None else Trace.open(arguments.trace)
    if form == "page":
        _write_page(snapshot, trace, arguments)
    else:
        lines = {"json": _document, "table": _lines}[form](snapshot, trace, arguments)
        write_lines(arguments.output, lines)
    return Exit.FINE


def _write_page(snapshot: MemorySnapshot, trace: Trace | None, arguments: Namespace) -> None:
    from hta_widgets.widgets.memory_view import MemoryView  # takes time: text does without

    view = MemoryView(snapshot, trace)
    try:
        view.to_html(arguments.output)
    except OSError as error:
        raise OutputError(f"cannot write {arguments.output}: {error.strerror or error}") from error
    finally:
        view.close()
    write_lines("-", [printable(arguments.output)])


def _answers(
    snapshot: MemorySnapshot, trace: Trace | None, arguments: Namespace
) -> Iterator[tuple[str, str, object]]:
    """(key, heading, frame or what is missing) of each answer."""
    yield "summary", "Memory by device", snapshot.summary()
    yield "out_of_memory", "Failed allocations", snapshot.out_of_memory()
    for key, heading, ask in (
        ("peak", "Owners at the peak", snapshot.peak),
        ("owners", "Owners now", snapshot.owners),
    ):
        try:
            yield key, heading, ask(by=arguments.by)
        except MissingDataError as missing:
            yield key, heading, str(missing)
    if trace is not None:
        try:
            yield "recording", "Peak in the recording", snapshot.peak_in(trace)
        except MissingDataError as missing:
            yield "recording", "Peak in the recording", str(missing)
    yield "fragmentation", "Fragmentation", snapshot.fragmentation()
    yield "blockers", "What keeps segments from being given back", snapshot.blockers()


def _lines(snapshot: MemorySnapshot, trace: Trace | None, arguments: Namespace) -> Iterator[str]:
    cells = cells_of(arguments.output)
    yield printable(snapshot.sentence())
    for _, heading, answer in _answers(snapshot, trace, arguments):
        if isinstance(answer, str):
            yield from ("", heading, printable(answer))
        elif len(answer):  # type: ignore[arg-type]
            yield from ("", heading, *frame_lines(answer, arguments.top, cells))  # type: ignore[arg-type]


def _document(snapshot: MemorySnapshot, trace: Trace | None, arguments: Namespace) -> Iterator[str]:
    answers = {
        key: {"missing": answer} if isinstance(answer, str) else frame_as_dict(answer)  # type: ignore[arg-type]
        for key, _, answer in _answers(snapshot, trace, arguments)
    }
    head = {"kind": "memory", "sentence": snapshot.sentence(), "settings": plain(snapshot.settings)}
    yield dumped({**head, **answers})
