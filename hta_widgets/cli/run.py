"""Runs a command and turns every error into one line and an exit code."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from hta_widgets.cli.arguments import parse
from hta_widgets.cli.exits import Exit, OutputError, code_of
from hta_widgets.cli.output import ClosedOutput, to_stdout
from hta_widgets.cli.paths import check_paths
from hta_widgets.cli.terminal import printable, what_encodings_lack
from hta_widgets.errors import HtaWidgetsError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on `argv`, by default the arguments of the process; returns the exit code."""
    # closed by the caller (`>&-`): Python has None there
    sys.stdout = sys.stdout or ClosedOutput()
    sys.stderr = sys.stderr or io.StringIO()
    codecs.register_error("hta_widgets", what_encodings_lack)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an ASCII terminal shows \xb5s and does not fail
            stream.reconfigure(errors="hta_widgets")
    debug = "--debug" in (sys.argv[1:] if argv is None else argv)
    try:
        code = _run(argv)
        with to_stdout():
            sys.stdout.flush()
    except BrokenPipeError:
        _give_up_stdout()
        return Exit.PIPE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc()
        with contextlib.suppress(OSError):  # there is nowhere left to say it
            sys.stderr.write(f"hta-widgets: {printable(_in_words(error))}\n")
        if isinstance(error, OutputError):
            _give_up_stdout()
        return code_of(error)
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = parse(argv)
    except SystemExit as over:  # --help, --version, --list
        return int(over.code or 0)
    check_paths(getattr(arguments, "paths", ()))
    # by name: a command imports what it needs, and pandas alone would double the time of --help
    module = arguments.command.replace("-", "_")
    return import_module(f"hta_widgets.cli.{module}").run(arguments)


def _in_words(error: Exception) -> str:
    if isinstance(error, HtaWidgetsError):
        return str(error)
    return f"internal error, {type(error).__name__}: {error} (--debug shows where)"


def _give_up_stdout() -> None:
    """Python flushes stdout at exit, which would fail again and print a traceback."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = io.StringIO()
