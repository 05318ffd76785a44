"""Text from traces as a reader may see it: what is hidden in it is shown, and no letter moves its neighbours.

`js/src/visible.ts` does the same, and `tests/visible_cases.json` holds both to one table. It is the last step
before text is drawn: tables, searches and files have the text as it was recorded.
"""

from __future__ import annotations

import re
from typing import Final

# Controls but for tab and line feed, marks of direction, and what takes no room: two names would look alike,
# or the text after them would run backwards. The joiners U+200C and U+200D stay: words and emoji need them.
_HIDDEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff"
)
# The blocks of scripts that are written from right to left.
_RIGHT_TO_LEFT: Final = (
    "\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff"
)
_WORDS: Final = f"[{_RIGHT_TO_LEFT}]+(?: +[{_RIGHT_TO_LEFT}]+)*"
ISOLATES: Final = "\u2068\u2069"
"""First strong isolate, and its end: around words that `visible` isolates; they take no room."""

# What is isolated already comes first, so that a text may be made visible twice.
_UNSAFE: Final = re.compile(
    f"(?P<isolated>{ISOLATES[0]}{_WORDS}{ISOLATES[1]})|(?P<hidden>[{_HIDDEN}])|{_WORDS}"
)


def visible(text: str) -> str:
    """`text` with what is hidden in it shown as an escape, and words from right to left isolated.

    The order of the sentence around a name then holds, whatever the name is.

    >>> visible("a\u202eb")
    'a\\\\u202eb'
    """
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_safe, text)


def _safe(found: re.Match[str]) -> str:
    if found["hidden"]:
        return found[0].encode("unicode_escape").decode("ascii")
    return found["isolated"] or found[0].join(ISOLATES)
