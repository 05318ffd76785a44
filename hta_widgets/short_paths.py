"""Paths in text that leaves the machine: cut to their last part, so that it names no user, folder or host."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

Paths = Literal["short", "full"]

_USER = r"[^\s/\\'\"<>|:,;()\[\]{}]+"
_HOME = rf"/(?:home|Users)/{_USER}|/root|[A-Za-z]:[\\/]+Users[\\/]+{_USER}"
_PART = r"[^\s/\\'\"<>|:*?,;()\[\]{}=]+"
_BEFORE = r"(?<![\w/\\.:~)\]}>-])"
_PATTERNS = (
    # Python code: all before the file's name, folders with spaces too
    (re.compile(rf"{_BEFORE}(?:[A-Za-z]:)?[\\/][^<>|\"'\n:*?]*[\\/](?=[^\\/<>|\"'\n:*?]+\.py\b)"), ""),
    # addresses of files and stores; pages of the web stay
    (re.compile(r"\b(?!https?://)[a-z][a-z0-9+.-]*://(?:[^\s/'\"<>]*/)*(?=[^\s/'\"<>])"), ""),
    (re.compile(rf"{_BEFORE}(?:{_HOME})(?![^\s\\/'\"<>|:,;()\[\]{{}}])(?![\\/]+{_PART})[\\/]*"), "~"),
    (re.compile(rf"{_BEFORE}/(?:{_PART}/+)+(?={_PART})"), ""),
    (re.compile(rf"(?<![\w/\\])(?:[A-Za-z]:[\\/]+|\\\\+)(?:{_PART}[\\/]+)*(?={_PART})"), ""),
)


@lru_cache(maxsize=1 << 16)
def shorten(text: str) -> str:
    """The text with every absolute path in it cut to its last part, and home folders to `~`.

    >>> shorten("/home/ada/run 7/train.py(12): main")
    'train.py(12): main'
    >>> shorten("TraceExplorer('/data/ada/job', panels=[])")
    "TraceExplorer('job', panels=[])"
    >>> shorten("open /home/ada, 3/4 of forward/backward")
    'open ~, 3/4 of forward/backward'
    """
    if "/" not in text and "\\" not in text:
        return text
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def shortener(sources: Iterable[Any] = ()) -> Callable[[str], str]:
    """`shorten`, which also cuts the folders of these paths and addresses, whatever is in their names."""
    known: set[str] = set()
    for source in _texts(sources):
        address, question, signature = source.partition("?") if "://" in source else (source, "", "")
        known |= {question + signature} - {""}  # what signs an address
        whole = address if "://" in source else str(Path(address).absolute())
        for text in (address, whole):
            folder, slash, _ = text.rstrip("/\\").rpartition("\\" if "\\" in text else "/")
            if folder.strip("./"):
                known.add(folder + slash)
    folders = sorted(known, key=len, reverse=True)
    home = re.compile(rf"{re.escape(str(Path.home()))}(?![\w\\/.-])")

    def cut(text: str) -> str:
        if "/" in text or "\\" in text:
            for folder in folders:
                text = text.replace(folder, "")
            text = home.sub("~", text)
        return shorten(text)

    return cut


def paths_as(paths: Paths, sources: Iterable[Any] = ()) -> Callable[[str], str]:
    """What to do with text: cut its paths ("short"), or leave it ("full").

    Raises:
        ValueError: it is neither.
    """
    if paths not in ("short", "full"):
        raise ValueError(f"paths is {paths!r}: it is 'short' or 'full'")
    return shortener(sources) if paths == "short" else str


def _texts(sources: Any) -> Iterable[str]:
    if isinstance(sources, str | os.PathLike):
        yield str(os.fspath(sources))
    elif isinstance(sources, Mapping):
        yield from _texts(list(sources.values()))
    elif isinstance(sources, list | tuple | set | frozenset):
        for source in sources:
            yield from _texts(source)
