"""The exit codes of the command line, their meaning, and its own errors."""

from __future__ import annotations

from enum import IntEnum

from hta_widgets.errors import HtaWidgetsError, MissingDataError, NotComparableError


class Exit(IntEnum):
    """The exit codes; the first six are part of the interface."""

    FINE = 0
    FOUND = 1
    USAGE = 2
    UNREADABLE = 3
    MISSING = 4
    UNWRITTEN = 5
    INTERNAL = 70  # as in sysexits.h
    INTERRUPTED = 130  # 128 + the signal, as in shells
    PIPE = 141


_WORDS = {
    Exit.FINE: "fine",
    Exit.FOUND: "found what --fail-on names, or a change that did not save what was predicted",
    Exit.USAGE: "bad usage, or runs that cannot be compared",
    Exit.UNREADABLE: "the trace cannot be read",
    Exit.MISSING: "the trace lacks what the question needs",
    Exit.UNWRITTEN: "the output cannot be written",
    Exit.INTERNAL: "a bug in hta-widgets",
    Exit.INTERRUPTED: "interrupted",
    Exit.PIPE: "the output pipe was closed",
}


class UsageError(HtaWidgetsError):
    """The command is invalid, or refers to something that the trace does not have."""


class OutputError(HtaWidgetsError):
    """The output cannot be written."""


def code_of(error: Exception) -> Exit:
    """The exit code of an error."""
    if isinstance(error, UsageError | NotComparableError):
        return Exit.USAGE
    if isinstance(error, MissingDataError):
        return Exit.MISSING
    if isinstance(error, OutputError):
        return Exit.UNWRITTEN
    if isinstance(error, HtaWidgetsError):
        return Exit.UNREADABLE
    return Exit.INTERNAL


def codes_in_words() -> str:
    """A line for each exit code."""
    return "\n".join(f"  {code.value:<4}{words}" for code, words in _WORDS.items())
