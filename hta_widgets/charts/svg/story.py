"""The story of a job as a drawing: what all numbers are of, the headline, one bar, and its findings."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from hta_widgets.charts.svg.drawing import MUTED, Drawing
from hta_widgets.palette import LIGHT

_SAVED, _GROUND = "#1b6e3c", "#ffffff"  # --hta-good, --hta-background of the front end
_MIXED = 0.52  # --hta-mixed
_FADES_TO = 0.12
_SLICES = 16
_STRIPE = 7.0
_HEADLINE_SIZE, _HEADLINE_CHARACTERS = 18, 86
_LINE_CHARACTERS = 130
_BAR = 24.0
_NUMBER_ROOM = 18.0
_NOUN_WIDTH = 240.0


@dataclass(frozen=True)
class Segment:
    """A part of the bar."""

    share: float  # of the whole, 0 to 1
    # how a saving is known ("simulated", "bound"), or time that stays ("unknown", "hidden", "rest")
    form: str
    time_class: str  # the class of the time, as the palette has it
    text: str  # class and length in words
    number: int = 0  # of the finding that it belongs to, from 1; 0 for none


@dataclass(frozen=True)
class FoundPicture:
    """A finding: its number from 1, its name, what it saves or costs in words, and the mark of its form."""

    number: int
    noun: str
    label: str
    form: str
    time_class: str


@dataclass(frozen=True)
class StoryPicture:
    """What an explorer's first screen says."""

    scope: str  # what all numbers are of
    headline: str  # what was found, in a sentence
    beside: Sequence[str] = ()  # sentences below it
    segments: Sequence[Segment] = ()  # of the bar, which they fill; none where there is no bar
    # what stands under the two ends of the bar
    saved: str = ""
    remains: str = ""
    findings: Sequence[FoundPicture] = ()  # those that are listed


def draw_story(drawing: Drawing, y: float, left: float, right: float, story: StoryPicture) -> float:
    """Draw it between `left` and `right`; returns where it ends."""
    width = right - left
    drawing.text(left, y + 14, f"All numbers are for {story.scope}", fill=MUTED, width=width)
    y += 20
    for line in textwrap.wrap(story.headline, _HEADLINE_CHARACTERS, max_lines=3, placeholder=" …"):
        drawing.text(left, y + 20, line, size=_HEADLINE_SIZE, bold=True, width=width)
        y += 24
    for sentence in story.beside:
        for line in textwrap.wrap(sentence, _LINE_CHARACTERS, max_lines=2, placeholder=" …"):
            drawing.text(left, y + 15, line, fill=MUTED)
            y += 18
    if story.segments:
        y = _bar(drawing, y + 8, left, width, story)
    for found in story.findings:
        drawing.text(left, y + 14, f"{found.number} {found.noun}", bold=True, width=_NOUN_WIDTH)
        _part(drawing, (left + _NOUN_WIDTH, y + 5, 14.0, 10.0), found.form, found.time_class)
        x = left + _NOUN_WIDTH + 20
        drawing.text(x, y + 14, found.label, fill=MUTED, width=right - x)
        y += 20
    return y + 8


def _bar(drawing: Drawing, y: float, left: float, width: float, story: StoryPicture) -> float:
    x = left
    for segment in story.segments:
        long = segment.share * width
        _part(drawing, (x, y, max(long - 1, 0.5), _BAR), segment.form, segment.time_class, segment=True)
        if segment.number and long > _NUMBER_ROOM:
            drawing.rect(x + 4, y + 5, 14, 14, _GROUND)
            drawing.text(x + 8, y + 16, str(segment.number), size=11, bold=True)
        elif segment.form == "rest" and long > 8.0 * len(segment.text):
            drawing.text(x + 6, y + 16, segment.text, size=11)
        x += long
    y += _BAR
    drawing.text(left, y + 14, story.saved, size=11)
    rest = [segment for segment in story.segments if segment.form == "rest"]
    entries = [(segment.text, segment.time_class) for segment in rest]
    x = left + width - sum(6.5 * len(text) + 24 for text, _ in entries)
    drawing.text(x - 8, y + 14, f"{story.remains}:" if entries else story.remains, size=11, end=True)
    for text, time_class in entries:
        _part(drawing, (x, y + 5, 14.0, 10.0), "rest", time_class)
        drawing.text(x + 18, y + 14, text, size=11, fill=MUTED)
        x += 6.5 * len(text) + 24
    return y + 22


def _part(
    drawing: Drawing,
    box: tuple[float, float, float, float],
    form: str,
    time_class: str,
    *,
    segment: bool = False,
) -> None:
    """A part in the look of its form: solid, fading, dotted, hatched, or pale."""
    x, y, width, height = box
    of = LIGHT[time_class]
    mark = form if segment else ""
    if form == "simulated":
        drawing.rect(*box, _SAVED, form=mark)
    elif form == "bound":
        step = width / _SLICES
        for at in range(_SLICES):  # each covers the rest: pieces side by side would show seams
            strength = 1 - (1 - _FADES_TO) * at / (_SLICES - 1)
            drawing.rect(x + at * step, y, width - at * step, height, _mixed(_SAVED, strength))
        drawing.rect(*box, "none", line=_SAVED, form=mark)
    elif form == "unknown":
        drawing.rect(*box, _GROUND, line=MUTED, dashes="2 2", form=mark)
    elif form == "hidden":
        drawing.rect(*box, of, opacity=0.15, form=mark)
        drawing.stripes(*box, of, _STRIPE)
    elif form == "rest":
        drawing.rect(*box, of, opacity=_MIXED, form=mark)


def _mixed(colour: str, strength: float) -> str:
    """A colour mixed into the ground."""
    pairs = ((int(colour[at : at + 2], 16), int(_GROUND[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(one * strength + ground * (1 - strength)):02x}" for one, ground in pairs)
