"""What makes a sentence hard to read: its words, its numbers, and words that only this project uses so."""

from __future__ import annotations

import re

__all__ = ["MOST_NUMBERS", "MOST_WORDS", "house_words", "numbers", "sentences", "without_code", "words"]

MOST_WORDS = 25
MOST_NUMBERS = 2
"""In a sentence on the screen."""

_HOUSE = re.compile(
    r"(?<![\w-])(told|tells?|asked|kept|remembered|wanted|whoever|alike|all else)(?![\w-])", re.IGNORECASE
)
_END = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
# Calls with their arguments, dotted and scoped names, words with digits in them, and numbers that are names.
_CODE = re.compile(
    r"`[^`]*`|\w[\w:]*<[^<>]*(?:<[^<>]*>[^<>]*)*>|\w+:\w+|[\w.:]*\w\([^()]*(?:\([^()]*\)[^()]*)*\)"
    r"|\w+=\S+|\w+(?:::\w+)+|(?:\w+\.)+[a-zA-Z_]\w*"
)
_NAMED = re.compile(
    r"\b(?:rtx|gtx) \d+|\d+ bits\b|"
    r"\b(?:ranks?|steps?|streams?|stages?|groups?|iterations?|devices?|processes|threads?)"
    r"(?: \d+(?:(?:,| and| to|-) ?\d+)*)+"
)
_NUMBER = re.compile(r"(?<![\w.,#\N{HORIZONTAL ELLIPSIS}])[-+\N{MINUS SIGN}]?\d[\d,]*(?:\.\d+)?(?!\w)")


def house_words(text: str) -> list[str]:
    """The words of the house in a text, code aside."""
    return [found[0].lower() for found in _HOUSE.finditer(re.sub(r"`[^`]*`|\{\w*\}", "", text))]


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [each for each in _END.split(text.strip()) if each]


def words(sentence: str) -> int:
    """How many words it has; a name or a call is one."""
    return len(without_code(sentence).split())


def numbers(sentence: str) -> int:
    """How many quantities it states; the 2 of "rank 2" is a name, and so is a version."""
    return len(_NUMBER.findall(_NAMED.sub("it", without_code(sentence).lower())))


def without_code(sentence: str) -> str:
    """The sentence with a word in place of each call and each name in code."""
    return _CODE.sub("code", sentence)
