"""`hta-widgets memory`: what a memory snapshot of PyTorch holds, who requested it, and why it ran out."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator

from hta_widgets.analysis.evidence.budget import dumped
from hta_widgets.cli.document import frame_as_dict, plain
from hta_widgets.cli.exits import Exit, UsageError
from hta_widgets.cli.output import check_writable, text_form_of, write_lines
from hta_widgets.cli.table import frame_lines
from hta_widgets.cli.terminal import columns_of, printable
from hta_widgets.errors import MissingDataError
from hta_widgets.memory_snapshot.snapshot import MemorySnapshot


def run(arguments: Namespace) -> Exit:
    """Run the command."""
    check_writable(arguments.output)
    form = text_form_of(arguments.json, arguments.output)
    if len(arguments.paths) != 1:
        raise UsageError("a memory snapshot is one file")
    snapshot = MemorySnapshot.open(arguments.paths[0])
    lines = _document(snapshot, arguments) if form == "json" else _lines(snapshot, arguments)
    write_lines(arguments.output, lines)
    return Exit.FINE


def _answers(snapshot: MemorySnapshot, arguments: Namespace) -> Iterator[tuple[str, str, object]]:
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
    yield "fragmentation", "Fragmentation", snapshot.fragmentation()
    yield "blockers", "What keeps segments from being given back", snapshot.blockers()


def _lines(snapshot: MemorySnapshot, arguments: Namespace) -> Iterator[str]:
    cells = columns_of(sys.stdout) if arguments.output == "-" else None
    yield printable(snapshot.sentence())
    for _, heading, answer in _answers(snapshot, arguments):
        if isinstance(answer, str):
            yield from ("", heading, printable(answer))
        elif len(answer):  # type: ignore[arg-type]
            yield from ("", heading, *frame_lines(answer, arguments.top, cells))  # type: ignore[arg-type]


def _document(snapshot: MemorySnapshot, arguments: Namespace) -> Iterator[str]:
    answers = {
        key: {"missing": answer} if isinstance(answer, str) else frame_as_dict(answer)  # type: ignore[arg-type]
        for key, _, answer in _answers(snapshot, arguments)
    }
    head = {"kind": "memory", "sentence": snapshot.sentence(), "settings": plain(snapshot.settings)}
    yield dumped({**head, **answers})
