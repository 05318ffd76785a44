"""Names and text from a recording as data: one line, bounded, without what is hidden, and quoted in prose.

A kernel may be named like a sentence, an instruction or a link. In a field of the document a name stands
alone; in prose it stands between backticks, which a reader sees as the bounds of a name and which Markdown
shows as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

MOST_LETTERS: Final = 120
NO_LETTERS: Final = "(nothing that can be seen)"

_SPACE: Final = re.compile(r"\s+")
# controls, marks of direction and other formats, surrogates, private use, and what is not assigned
_HIDDEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn")


def cleaned(text: object, most: int = MOST_LETTERS) -> str:
    """`text` on one line of at most `most` letters, without what cannot be seen."""
    line = _SPACE.sub(" ", str(text)).strip()
    line = "".join(letter for letter in line if unicodedata.category(letter) not in _HIDDEN)
    if len(line) <= most:
        return line
    head = (most - 1) * 2 // 3
    return f"{line[:head]}…{line[len(line) - (most - 1 - head) :]}"


def quoted(name: object, most: int = MOST_LETTERS) -> str:
    """A name as it stands in prose."""
    letters = cleaned(name, most - 2).replace("`", "'")
    return f"`{letters or NO_LETTERS}`"


def quoted_in(text: str, names: Iterable[str]) -> str:
    """`text` on one line, with each of `names` that stands in it quoted."""
    line = cleaned(text, len(text))
    known = sorted({cleaned(name, len(name)) for name in names} - {""}, key=lambda name: (-len(name), name))
    if not known:
        return line
    pattern = "|".join(re.escape(name) for name in known)
    return re.sub(rf"(?<![\w`])(?:{pattern})(?![\w`])", lambda found: quoted(found[0]), line)
