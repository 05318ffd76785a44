"""Text for terminals: names from traces made harmless, colours if there is a terminal, columns."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TextIO

from hta_widgets.visible import ISOLATES, visible

_COLOURS = {"error": "31", "warning": "33", "info": "2", "heading": "1", "muted": "2"}


def printable(text: str) -> str:
    """`text` on one line, without terminal control: escapes, line ends, marks of direction."""
    if not text.isprintable():
        text = "".join(
            letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
            for letter in text
        )
    return visible(text)


def what_encodings_lack(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that an output cannot show: a hyphen for a minus, escapes for others."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].replace("\N{MINUS SIGN}", "-")
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal."""
    return stream.isatty()


def to_terminal(output: str) -> bool:
    """Whether what is written to `output` is seen on a terminal."""
    return output == "-" and is_terminal(sys.stdout)


def painted(text: str, colour: str, output: str) -> str:
    """`text` in a colour if `output` is a terminal that has any (https://no-color.org)."""
    if not to_terminal(output) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def heading(text: str, output: str) -> str:
    """`text` as a heading of what is written to `output`."""
    return painted(text, "heading", output)


def columns_of(stream: TextIO) -> int | None:
    """The number of characters per line of the terminal; None if the stream is not a terminal."""
    return shutil.get_terminal_size().columns if is_terminal(stream) else None


def cells_of(output: str) -> int | None:
    """The number of characters per line of `output`; None if it is not a terminal."""
    return columns_of(sys.stdout) if output == "-" else None


def width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if letter in ISOLATES or unicodedata.combining(letter)
        else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def shortened(text: str, cells: int) -> str:
    """`text` in at most `cells`, its middle left out: names of kernels differ at both ends."""
    if width(text) <= cells:
        return text
    # by letters: a wide letter takes two cells, so drop until it fits; what is isolated may be cut in two
    text = "".join(letter for letter in text if letter not in ISOLATES)
    keep = cells - 1
    while keep > 1:
        head = (keep + 1) // 2
        short = f"{text[:head]}…{text[len(text) - (keep - head) :]}"
        if width(short) <= cells:
            return visible(short)
        keep -= 1
    return "…"


def pieces_of(text: str, cells: int | None) -> list[str]:
    """`text` broken between words into lines of at most `cells`; None: one line."""
    if cells is None:
        return [text]
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if width(longer) <= cells or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def hanging(mark: str, text: str, cells: int | None) -> Iterator[str]:
    """`text` behind a mark, broken into lines of at most `cells` that begin below one another."""
    indent = " " * len(mark)
    first, *others = pieces_of(printable(text), cells and max(cells - len(mark), 20))
    yield f"{mark}{first}"
    yield from (f"{indent}{piece}" for piece in others)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Rows of cells as lines with columns two spaces apart; `right`: which to align to the right."""
    if not rows:
        return []
    widths = [max(width(row[at]) for row in rows) for at in range(len(right))]
    return [
        "  ".join(
            " " * (cells - width(text)) + text if to_right else text + " " * (cells - width(text))
            for text, cells, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
