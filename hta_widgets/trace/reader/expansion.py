"""How much a file may hold for its size: a small file that inflates to gigabytes is no recording.

Real recordings compress to a tenth or a thirtieth of their text, and to some ten bytes for each event.
HTA_WIDGETS_EXPANSION is how many times larger than the file its text may be (200), or "off".
"""

from __future__ import annotations

import os
from typing import Final

from hta_widgets.errors import TraceFormatError

_USUAL: Final = 200.0
_BYTES_PER_EVENT: Final = 100  # of text; so a file has at most two events for each of its own bytes
_ALWAYS_BYTES: Final = 100 << 20
_ALWAYS_EVENTS: Final = 1 << 20


def most_expansion() -> float | None:
    """How many times larger than the file its text may be; None: there is no limit."""
    text = os.environ.get("HTA_WIDGETS_EXPANSION", "")
    if text.lower() == "off":
        return None
    try:
        return max(1.0, float(text))
    except ValueError:
        return _USUAL


def check_expansion(path: str, read: int, text: int, events: int, most: float | None) -> None:
    """Check what was found in the first `read` bytes of a file: bytes of text, and events.

    Raises:
        TraceFormatError: it is more than a recording has.
    """
    if most is None:
        return
    if text > _ALWAYS_BYTES + most * read or events > _ALWAYS_EVENTS + most / _BYTES_PER_EVENT * read:
        reason = (
            f"{read:,} bytes hold {events:,} events in {text:,} bytes of text, more than a recording does; "
            "HTA_WIDGETS_EXPANSION=off reads it all the same"
        )
        raise TraceFormatError(path, reason, None)
