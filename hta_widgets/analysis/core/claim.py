"""Sentences whose every number and name is a record: what was measured, of what, and its value.

Prose alone cannot be checked. A sentence is written with `say`, and what it states comes as `Claim`s; tests
recompute each of them by its `measure` from the plain file, and fail where a sentence holds a number that is
no claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Final, Literal

from hta_widgets.formatting import (
    amount,
    bandwidth,
    brief,
    byte_size,
    duration,
    flop_count,
    in_words,
    percent,
    plain,
    ranks_in_words,
)

Unit = Literal["%", "ns", "ns/step", "count", "B", "GB/s", "FLOP", "TFLOP/s", "x", "ranks", "steps", "name"]
Value = int | float | str | tuple[int, ...] | tuple[str, ...]

_SHOWN: Final[dict[Unit, Callable[[Any], str]]] = {
    "%": percent,
    "ns": duration,
    "ns/step": duration,
    "count": plain,
    "B": byte_size,
    "GB/s": bandwidth,
    "FLOP": flop_count,
    "TFLOP/s": lambda value: amount(value, "tflops_s"),
    "x": plain,
    "ranks": ranks_in_words,
    "steps": lambda steps: ", ".join(map(str, steps)),
    "name": lambda name: brief(name) if isinstance(name, str) else in_words([brief(each) for each in name]),
}


@dataclass(frozen=True)
class Claim:
    """One thing that a sentence states."""

    measure: str  # what was measured; `tests/claims` has a slow reader for each
    value: Value  # the result, in `unit`
    # "%" of `of`; "ns", mean over `ranks`; "ns/step", the same for each judged step; "count"; "B" and so on;
    # "ranks", "steps" and "name": which they are
    unit: Unit
    # the whole of a share: "step time" or "the time" (all judged time of `ranks`), or the measure that the
    # whole is
    of: str = ""
    ranks: tuple[int, ...] = ()  # those that it is about
    # what else the measurement depends on, such as the name of kernels
    about: Mapping[str, Any] = field(default_factory=dict)
    shown: str = ""  # how the sentence writes it, where that is not how its unit is written

    def __str__(self) -> str:
        return self.shown or _SHOWN[self.unit](self.value)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; with the text that stands in the sentence."""
        return {**vars(self), "about": dict(self.about), "shown": str(self)}


@dataclass(frozen=True)
class Text:
    """Sentences, and the claims in them."""

    template: str = ""  # as for `str.format`; it holds no number
    parts: Mapping[str, Said] = field(default_factory=dict)  # what stands in its fields

    def __str__(self) -> str:
        return self.template.format(**{name: str(part) for name, part in self.parts.items()})

    def __bool__(self) -> bool:
        return bool(self.template)

    def __add__(self, other: Said) -> Text:
        return Text("{first}{second}", {"first": self, "second": other})

    @property
    def claims(self) -> Iterator[Claim]:
        """All that is stated, in the order in which the parts were given."""
        for part in self.parts.values():
            if isinstance(part, Claim):
                yield part
            elif isinstance(part, Text):
                yield from part.claims

    @property
    def places(self) -> Iterator[tuple[Claim, int]]:
        """Each claim with where it starts in the text, in the order of the text."""
        at = 0
        for literal, name, _, _ in Formatter().parse(self.template):
            at += len(literal)
            if name is None:
                continue
            part = self.parts[name]
            if isinstance(part, Claim):
                yield part, at
            elif isinstance(part, Text):
                yield from ((claim, at + inside) for claim, inside in part.places)
            at += len(str(part))

    @property
    def prose(self) -> str:
        """The same without the claims."""
        parts = {
            name: part.prose if isinstance(part, Text) else "" if isinstance(part, Claim) else part
            for name, part in self.parts.items()
        }
        return self.template.format(**parts)


Said = Claim | Text | str
"""What may stand in a field of a `Text`; a `str` is prose, never a name or a number of the recording."""

NOTHING_SAID: Final = Text()


def say(template: str, /, **parts: Said) -> Text:
    """`say("{who} waits {time}.", who=..., time=Claim(...))`: like an f-string that keeps its claims."""
    return Text(template, parts)


def says(parts: list[Said], last: str = " and ") -> Text:
    """`a, b and c`."""
    names = [f"part{at}" for at in range(len(parts))]
    fields = [f"{{{name}}}" for name in names]
    head, tail = ", ".join(fields[:-1]), "".join(fields[-1:])
    return Text(f"{head}{last if head else ''}{tail}", dict(zip(names, parts, strict=True)))


def says_then(parts: list[Said]) -> Text:
    """` Then a and b. Then c.`: two to a sentence."""
    text = NOTHING_SAID
    for at in range(0, len(parts), 2):
        text += say(" Then {parts}.", parts=says(parts[at : at + 2]))
    return text
