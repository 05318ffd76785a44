"""A change in parts that add up, as a drawing: each bar begins where the one above it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hta_widgets.charts.svg.drawing import LINE, MUTED, TEXT, Drawing
from hta_widgets.formatting import duration, signed
from hta_widgets.palette import LIGHT

_MOST_FALLS = 8
_ROW, _BAR = 18, 10
_LABEL, _VALUE, _CERTAINTY = 200, 80, 90
_VISIBLE = 1 / 2000  # what is narrower than this share of the drawing is named, not drawn


@dataclass(frozen=True)
class Step:
    """A bar."""

    label: str  # what changed
    time_class: str  # "" for the whole change
    # ns
    start: int
    end: int
    doubt: str | None  # why the change may be none; None if it is significant

    @property
    def text(self) -> str:
        """The change in words, with its sign."""
        change = self.end - self.start
        return signed(change, duration(change))


@dataclass(frozen=True)
class Fall:
    """The change of one run: its name, and the parts of the change with the whole as the last."""

    name: str
    steps: Sequence[Step]


def draw_waterfall(drawing: Drawing, y: float, sides: tuple[float, float], falls: Sequence[Fall]) -> float:
    """Draw the changes of all runs on one scale between the sides; return where the drawing ends."""
    left, right = sides
    shown = falls[:_MOST_FALLS]
    edges = [0, *(edge for fall in shown for step in fall.steps for edge in (step.start, step.end))]
    first, length = min(edges), max(max(edges) - min(edges), 1)
    begin, width = left + _LABEL, right - left - _LABEL - _VALUE - _CERTAINTY
    scale = width / length
    legend = "Change per step. Each bar begins where the one above ends. Hollow: not significant, as it says."
    drawing.text(left, y + 14, legend, size=11, fill=MUTED)
    y += 20
    for fall in shown:
        drawing.text(left, y + 14, fall.name, bold=True, width=right - left)
        y += 20
        drawn = [step for step in fall.steps if _visible(step, length)]
        drawing.rect(begin - first * scale, y, 1, _ROW * len(drawn), LINE)
        for step in drawn:
            _bar(drawing, y, (left, right), begin + (min(step.start, step.end) - first) * scale, scale, step)
            y += _ROW
        small = [f"{step.label} {step.text}" for step in fall.steps if not _visible(step, length)]
        if small:
            text = f"too small to draw: {', '.join(small)}"
            drawing.text(left, y + 13, text, size=11, fill=MUTED, width=right - left)
            y += _ROW
    if len(falls) > len(shown):
        drawing.text(left, y + 13, f"and {len(falls) - len(shown)} more", size=11, fill=MUTED)
        y += _ROW
    return y


def _visible(step: Step, length: int) -> bool:
    return not step.time_class or abs(step.end - step.start) > length * _VISIBLE


def _bar(drawing: Drawing, y: float, sides: tuple[float, float], x: float, scale: float, step: Step) -> None:
    (left, right), whole = sides, not step.time_class
    colour = TEXT if whole else LIGHT[step.time_class]
    drawing.text(left, y + 13, step.label, size=12, bold=whole, width=_LABEL - 8)
    width = max(abs(step.end - step.start) * scale, 1)
    top = y + (_ROW - _BAR) / 2
    drawing.rect(x, top, width, _BAR, "#fff" if step.doubt else colour, line=colour if step.doubt else "")
    drawing.text(right - _CERTAINTY, y + 13, step.text, size=12, bold=whole, end=True)
    if step.doubt:
        drawing.text(right, y + 13, step.doubt, size=11, fill=MUTED, end=True)
