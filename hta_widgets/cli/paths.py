"""Whether the paths of a command exist: looked at before what takes seconds to import."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from hta_widgets.errors import TraceNotFoundError
from hta_widgets.formatting import did_you_mean, in_words

_MOST_READ: Final = 1000
_MOST_NAMED: Final = 5
# What is no path of this machine: standard input, a URL, a pattern; an event.
_NO_PATH: Final = re.compile(r"-|.*(?:://|::|[*?[]).*|\d+:\d+", re.DOTALL)


def check_paths(paths: Iterable[str]) -> None:
    """Check that these paths of a command exist, as far as they are paths of this machine.

    Raises:
        TraceNotFoundError: one does not; it names what lies there instead.
    """
    for text in paths:
        if _NO_PATH.fullmatch(text):
            continue
        path = Path(text).expanduser()
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise TraceNotFoundError(f"no such file or folder: {path}{_instead(path)}") from None
        except (OSError, ValueError):  # said by what opens it
            continue


def _instead(path: Path) -> str:
    """The name that is most like the first one that is missing, and what else lies there."""
    while not path.parent.is_dir():
        path = path.parent
    try:
        names = sorted(entry.name for entry in islice(path.parent.iterdir(), _MOST_READ))
    except OSError:
        return ""
    names = [name for name in names if not name.startswith(".")]
    shown = names[:_MOST_NAMED] + [f"{len(names) - _MOST_NAMED:,} more"] * (len(names) > _MOST_NAMED)
    holds = f"{path.parent} holds {in_words(shown)}" if shown else f"{path.parent} is empty"
    return f"{did_you_mean(path.name, names)}; {holds}"
