"""The files that a URL stands for: one file, a folder, or a pattern such as `s3://bucket/run/rank*.json.gz`.

A folder of HTTP is a page of links. It is asked for as a page, and never taken for a trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from hta_widgets.errors import HtaWidgetsError, TraceNotFoundError
from hta_widgets.trace.reader.remote import RemoteFile, connected, persistent
from hta_widgets.trace.reader.remote_errors import scheme_of, shown

_AT_ONCE = 16
_WEB = ("http", "https")
_PAGE = "text/html"


@dataclass(frozen=True)
class Listing:
    """What a URL stands for."""

    root: str  # what the paths of all files begin with: the folder, or the part of a pattern before its signs
    files: list[RemoteFile]  # those of the folder or pattern, or the file itself
    below: list[RemoteFile] = field(default_factory=list)  # those in its folders
    failed: Mapping[str, Exception] = field(default_factory=dict)  # folders in it that could not be listed
    is_file: bool = False  # the URL is that of the one file

    def relative(self, file: RemoteFile) -> str:
        """The path of a file below the root."""
        return file.path.removeprefix(self.root).lstrip("/")


def listed(url: str, endings: tuple[str, ...]) -> Listing:
    """What a URL stands for. One with the ending of a trace file is not asked for: reading it will tell.

    Raises:
        RemoteError: it cannot be asked.
        TraceNotFoundError: there is no such file or folder, or nothing that matches.
    """
    system, key = connected(url)
    system.invalidate_cache()  # of listings: files may have come or changed since
    if _is_pattern(url):
        found = persistent(lambda: system.glob(key, detail=True), url)
        if not found:
            raise TraceNotFoundError(f"nothing matches {shown(url)}")
        before = re.split(r"[*?[]", RemoteFile(system, key).path)[0]
        return _sorted_out(system, before.rpartition("/")[0], found.values())
    if shown(url).endswith(endings) or _is_file(system, key, url):
        return Listing("", [RemoteFile(system, key)], is_file=True)
    return _sorted_out(system, RemoteFile(system, key).path, _entries(system, key))


def _is_pattern(url: str) -> bool:
    """In an address of the web, `?` begins a query, and `[` an IPv6 host."""
    return any(sign in url for sign in ("*" if scheme_of(url) in _WEB else "*?["))


def _is_file(system: Any, key: str, url: str) -> bool:
    if scheme_of(url) in _WEB and shown(url).endswith("/"):
        return False
    info = persistent(lambda: system.info(key), url)
    return bool(info["type"] == "file" and info.get("mimetype") != _PAGE)


def _entries(system: Any, folder: str) -> list[dict[str, Any]]:
    """What lies in a folder; pages also link to themselves, and to what lies elsewhere."""
    url = system.unstrip_protocol(folder)
    here = folder.rstrip("/")
    return [
        entry
        for entry in persistent(lambda: system.ls(folder, detail=True), url)
        if entry["name"].rstrip("/") != here
        and (scheme_of(url) not in _WEB or _is_below(entry["name"], here))
    ]


def _is_below(address: str, folder: str) -> bool:
    """Whether the address that a page links to lies in its folder, once it is followed."""
    rest = unquote(address.removeprefix(folder + "/"))
    return address.startswith(folder + "/") and ".." not in re.split(r"[/\\]", rest) and "://" not in rest


def _sorted_out(system: Any, root: str, entries: Iterable[dict[str, Any]]) -> Listing:
    entries = list(entries)
    folders = [
        name
        for entry in entries
        if entry["type"] == "directory" and not _last(name := entry["name"]).startswith(".")
    ]
    below: list[RemoteFile] = []
    failed: dict[str, Exception] = {}

    def files_of(folder: str) -> list[RemoteFile] | HtaWidgetsError:
        try:
            return _files(system, _entries(system, folder))
        except HtaWidgetsError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for folder, found in zip(folders, pool.map(files_of, folders), strict=True):
            if isinstance(found, HtaWidgetsError):
                failed[shown(system.unstrip_protocol(folder))] = found
            else:
                below += found
    return Listing(root, _files(system, entries), below, failed)


def _files(system: Any, entries: Iterable[dict[str, Any]]) -> list[RemoteFile]:
    return [RemoteFile(system, entry["name"]) for entry in entries if entry["type"] == "file"]


def _last(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1]
