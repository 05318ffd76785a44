"""Why a job cannot be opened, or not as the caller asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hta_widgets.errors import ForeignFileError, HtaWidgetsError, TraceFormatError
from hta_widgets.trace.memory import parse_bytes
from hta_widgets.trace.reader.cache import Cache, cache_folder


def no_trace(path: Any, failed: Mapping[str, Exception], skipped: Mapping[str, str]) -> HtaWidgetsError:
    """The error of an opening in which no file could be read."""
    if len(failed) == 1 and not skipped and isinstance(only := next(iter(failed.values())), HtaWidgetsError):
        if isinstance(only, ForeignFileError):
            return TraceFormatError(only.path, only.reason, only.offset)
        return only
    reasons = [*map(str, failed.values()), *(f"{name}: {why}" for name, why in skipped.items())]
    where = str(path) if isinstance(path, str | Path) else "traces"
    return TraceFormatError(where, "no file is a usable trace: " + "; ".join(reasons))


def why_no_limit(limit: float | str | None, cache: Cache, client: Any) -> str:
    """Why a limit that the caller gave could not be kept; "" if it can, or none was given."""
    if limit is None:
        return ""
    try:
        is_too_small = parse_bytes(limit) <= 0
    except ValueError as error:
        return str(error)
    if is_too_small:
        return "it is not a number of bytes above 0"
    if client is not None:
        return "the columns lie on the client's workers, within the limits of Dask; leave out one of the two"
    if cache_folder(cache) is None:
        return "ranks that are dropped are read again from the cache, and there is none (cache=True)"
    return ""
