"""Where reading goes on after text that is no event.

Both readers of a trace's events, the scanner and `raw_scan`, go by these rules: event i of one is event i of
the other only if both leave out the same text.
"""

from __future__ import annotations

import re
from typing import Final

from hta_widgets.trace.reader.bytes import Text

SPACE: Final = b" \t\r\n"
LONGEST_EVENT: Final = 4 << 20
"""An unclosed bracket must not swallow the file: an event is not longer."""
LONGEST_EVENT_AFTER_DAMAGE: Final = 64 << 10
LOOK_BACK: Final = 1 << 10
"""How much text before a brace is looked at."""

_EVENT_HEAD: Final = re.compile(rb'\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|args|bp|s)"\s*:')


def next_head(text: Text, start: int, stop: int) -> int | None:
    """Index of the first brace of text[start + 1 : stop] that opens an event, None where there is none.

    An object that is a value (after a colon) or the first of a nested array (after a bracket) is none.
    """
    for match in _EVENT_HEAD.finditer(text.data, start + 1, stop):
        before = text[max(start, match.start() - LOOK_BACK) : match.start()].tobytes().rstrip(SPACE)
        if before and before[-1:] not in b":[":
            return match.start()
    return None
