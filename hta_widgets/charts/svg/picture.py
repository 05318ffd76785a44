"""A drawing of what an explorer or a comparison shows, for places where nothing runs: saved notebooks, mail.

An SVG of plain shapes and text on a background of its own, so that it reads in light and dark pages alike.
"""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hta_widgets.charts.svg.drawing import LINE, MUTED, Drawing
from hta_widgets.charts.svg.story import StoryPicture, draw_story
from hta_widgets.charts.svg.waterfall import Fall, draw_waterfall
from hta_widgets.palette import LIGHT
from hta_widgets.short_paths import shorten
from hta_widgets.visible import visible

WIDTH = 960
_LEFT, _RIGHT = 16, WIDTH - 16
_MOST_BARS = 8
_LINE_CHARACTERS = 120

Part = tuple[str, str, float]  # label, class of time, length


@dataclass(frozen=True)
class Overview:
    """How busy a job was over time."""

    classes: Sequence[tuple[str, str]]  # (label, class of time) of each row of `activity`
    # per class, in equal bins over the extent, the mean number of busy lanes
    activity: Sequence[Sequence[float]]
    iterations: Sequence[tuple[str, float, float]]  # (label, start, end) as shares of the extent
    window: tuple[float, float] | None  # the selected (start, end) as shares of the extent
    length: str  # of the extent, in words


@dataclass(frozen=True)
class Bar:
    """A stacked bar: its name, its parts, and their sum in words."""

    name: str
    parts: Sequence[Part]
    total: str


@dataclass(frozen=True)
class PanelPicture:
    """What a panel says: its heading, the answer in a sentence, and bars or waterfalls if it draws any."""

    title: str
    sentence: str
    bars: Sequence[Bar] = ()
    falls: Sequence[Fall] = ()


@dataclass(frozen=True)
class Picture:
    """A static picture of what is shown. Notebooks show it as their output, and save it."""

    title: str  # what is shown
    facts: Sequence[tuple[str, str]]  # (label, value) of the header
    selected: str  # what is selected, in words
    overview: Overview | None  # the job over time; None without slices
    answers: Sequence[PanelPicture]  # what the panels say
    origin: str  # who drew it
    # what was found, as the first screen has it; None where nothing was judged
    story: StoryPicture | None = None

    def to_svg(self) -> str:
        """The picture as an SVG document."""
        drawing = Drawing(WIDTH)
        drawing.text(_LEFT, 26, self.title, size=15, bold=True, width=_RIGHT - _LEFT)
        y = _facts(drawing, 40, self.facts)
        drawing.text(_LEFT, y + 14, f"Selected: {self.selected}", fill=MUTED, width=_RIGHT - _LEFT)
        y += 24
        if self.story is not None:
            y = draw_story(drawing, y, _LEFT, _RIGHT, self.story)
        if self.overview is not None:
            y = _overview(drawing, y, self.overview)
        for answer in self.answers:
            y = _answer(drawing, y, answer)
        drawing.text(_LEFT, y + 14, self.origin, size=11, fill=MUTED, width=_RIGHT - _LEFT)
        headline = f"{self.story.headline}." if self.story is not None else ""
        said = [f"{self.title}.", headline, *(panel.sentence for panel in self.answers)]
        return drawing.document(y + 26, " ".join(filter(None, said)))

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        svg = self.to_svg()
        # an image by HTML as well: notebooks that are not trusted show no SVG, but such an image
        source = base64.b64encode(svg.encode()).decode()
        image = f'<img alt="{escape(visible(shorten(self.title)))}" src="data:image/svg+xml;base64,{source}">'
        return {"image/svg+xml": svg, "text/html": image, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"Picture({self.title!r})"


def _facts(drawing: Drawing, y: float, facts: Sequence[tuple[str, str]]) -> float:
    x: float = _LEFT
    for label, value in facts:
        step = 7.5 * min(max(len(label), len(value)), 40) + 20
        if x + step > _RIGHT:
            x, y = _LEFT, y + 36
        drawing.text(x, y + 12, label, size=11, fill=MUTED)
        drawing.text(x, y + 28, value, bold=True, width=step)
        x += step
    return y + 36


def _overview(drawing: Drawing, y: float, overview: Overview) -> float:
    height, width = 56, _RIGHT - _LEFT
    y = _legend(drawing, y, overview.classes)
    for number, (label, start, end) in enumerate(overview.iterations):
        x, wide = _LEFT + start * width, (end - start) * width
        if number % 2:
            drawing.rect(x, y, wide, height + 18, "#f3f4f6")
        drawing.text(x + 4, y + height + 13, label, size=11, fill=MUTED, width=wide - 8)
    sums = [sum(column) for column in zip(*overview.activity, strict=True)]
    scale = height / max([*sums, 1e-9])
    base = [0.0] * len(sums)
    for (_, time_class), row in zip(overview.classes, overview.activity, strict=True):
        top = [low + value for low, value in zip(base, row, strict=True)]
        edges = [(scale * low, scale * high) for low, high in zip(base, top, strict=True)]
        drawing.band(_LEFT, y + height, width, edges, LIGHT[time_class])
        base = top
    if overview.window is not None:
        start, end = overview.window
        x = _LEFT + start * width
        drawing.rect(x, y, max((end - start) * width, 1), height, "#0b63ce", opacity=0.2)
    drawing.rect(_LEFT, y + height, width, 1, LINE)
    drawing.text(_RIGHT, y - 6, overview.length, size=11, fill=MUTED, end=True)
    return y + height + 24


def _answer(drawing: Drawing, y: float, answer: PanelPicture) -> float:
    drawing.text(_LEFT, y + 16, answer.title, bold=True, width=_RIGHT - _LEFT)
    y += 20
    for line in textwrap.wrap(answer.sentence, _LINE_CHARACTERS, max_lines=3, placeholder=" …"):
        drawing.text(_LEFT, y + 14, line)
        y += 18
    if answer.bars:
        y = _legend(drawing, y + 4, [part[:2] for part in answer.bars[0].parts])
    longest = max((sum(part[2] for part in bar.parts) for bar in answer.bars), default=0) or 1
    for bar in answer.bars[:_MOST_BARS]:
        x, scale = _LEFT + 80.0, (_RIGHT - _LEFT - 160) / longest
        drawing.text(x - 8, y + 12, bar.name, size=11, fill=MUTED, end=True)
        for _, time_class, length in bar.parts:
            drawing.rect(x, y + 2, length * scale, 12, LIGHT[time_class])
            x += length * scale
        drawing.text(x + 8, y + 12, bar.total, size=11, fill=MUTED)
        y += 18
    if len(answer.bars) > _MOST_BARS:
        more = f"and {len(answer.bars) - _MOST_BARS} more"
        drawing.text(_LEFT + 80, y + 12, more, size=11, fill=MUTED)
        y += 18
    if answer.falls:
        y = draw_waterfall(drawing, y, (_LEFT, _RIGHT), answer.falls)
    return y + 6


def _legend(drawing: Drawing, y: float, entries: Sequence[tuple[str, str]]) -> float:
    x: float = _LEFT
    for label, time_class in entries:
        drawing.rect(x, y + 3, 8, 8, LIGHT[time_class])
        drawing.text(x + 13, y + 11, label, size=11, fill=MUTED)
        x += 6.5 * len(label) + 29
    return y + 18
