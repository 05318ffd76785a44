"""`hta-widgets skill`: how an agent is to use these commands."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from hta_widgets.cli.exits import Exit, OutputError
from hta_widgets.cli.output import write_lines
from hta_widgets.cli.terminal import printable

SKILL = Path(__file__).with_name("SKILL.md")


def run(arguments: Namespace) -> Exit:
    """Run the command; with `--write` it prints the name of the file."""
    text = SKILL.read_text(encoding="utf-8")
    if arguments.write is None:
        write_lines("-", text.splitlines())
        return Exit.FINE
    folder = Path(arguments.write) / "hta-widgets"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror or error}") from error
    write_lines(str(folder / SKILL.name), text.splitlines())
    write_lines("-", [printable(str(folder / SKILL.name))])
    return Exit.FINE
