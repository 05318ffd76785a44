"""How an answer can be drawn: each chart names the columns of the frame that it reads.

They say what is drawn, not how: the front end draws them as SVG, `hta_widgets.charts.plotly` with plotly.
Units go by the columns' suffixes (`_ns`, `_pct`, `_bytes`, `_gbps`).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bars", "Chart", "Flame", "Heat", "Histogram", "Lines", "Series", "Spread", "Stack", "Waterfall"]


@dataclass(frozen=True)
class Series:
    """One part of a stacked bar.

    Attributes:
        column: the column in ns, or what `Stack.part` holds in the rows of this part.
        label: its name in the legend.
        time_class: the class of time whose colour it takes.
        pattern: tells apart the parts of one class: "" (filled), "/", "." or "x".
        over: the class of time whose colour the pattern takes; default: the background's.
    """

    column: str
    label: str
    time_class: str
    pattern: str = ""
    over: str = ""


@dataclass(frozen=True)
class Stack:
    """One bar per rank (and iteration, where the frame has them), of parts that make up a whole.

    A frame has either a column for each part and one for the whole, or a row for each part; then `part` and
    `value` tell which.

    Attributes:
        series: the parts in drawing order; their times add up to `whole`, exactly.
        whole: the column that the series add up to; the name of their sum in a frame with a row for each.
        label: the columns that name a bar.
        part: the column that names the part of a row.
        value: the column with a row's time.
    """

    series: tuple[Series, ...]
    whole: str
    label: tuple[str, ...] = ("rank",)
    part: str = ""
    value: str = ""


@dataclass(frozen=True)
class Bars:
    """One bar per label, longest first, as long as the sum of a column over the label's rows.

    Attributes:
        value: the column that gives the length.
        label: the columns that name a bar.
        time_class: the class of time whose colour the bars take, or the column that tells it row by row.
        names: the column with the names of the events that a bar stands for.
        window: the columns with the start and end of what a bar stands for, where it is one stretch of time.
    """

    value: str
    label: tuple[str, ...]
    time_class: str
    names: str = ""
    window: tuple[str, str] | None = None


@dataclass(frozen=True)
class Lines:
    """A step function of time per combination of `by`: a row's value holds until the next row's time."""

    time: str
    value: str
    by: tuple[str, ...]
    time_class: str


@dataclass(frozen=True)
class Heat:
    """A cell per row, fuller the greater its value.

    Attributes:
        label: of the scale, where the heading does not say what the cells are.
        contrast: the scale begins at the least value, not at 0: for values that differ by little. It spans at
            least a tenth of that value, so that noise does not look like a difference.
        ring: the column that tells which cells are outlined.
    """

    x: str
    y: str
    value: str
    time_class: str
    label: str = ""
    contrast: bool = False
    ring: str = ""


@dataclass(frozen=True)
class Spread:
    """For each label a line per rank from `low` to `high` with a mark at `mid`."""

    label: str
    low: str
    mid: str
    high: str
    order: str
    time_class: str


@dataclass(frozen=True)
class Histogram:
    """How many rows have a `value` of which magnitude (the axis is logarithmic)."""

    value: str
    time_class: str


@dataclass(frozen=True)
class Flame:
    """A box per node, below its parent's, as wide as its value; `own` is what the node's children leave.

    Attributes:
        node, parent: numbers of a row and of the row that it belongs to (-1: none), unique within a rank.
        label: the column with a node's name.
        weights: (total, own, label, class of time) of each column that can give the width.
    """

    node: str
    parent: str
    label: str
    weights: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True)
class Waterfall:
    """For each run after the first a bar per part, which begins where the one before ends.

    A frame has a row for each run, [rank] and part, the whole last; the bars' lengths add up to its change.

    Attributes:
        series: the parts in drawing order; their changes add up to that of the whole, exactly.
        run, part: the columns that name the run and the part of a row.
        time, change: the columns with a part's time in a run, and by how much that is more than in the first.
        low, high: the columns with the 95 % interval of the change.
        significant: the column that tells whether the change is more than noise.
        whole: what `part` holds in the rows of the whole.
        whole_label: its name in the picture.
    """

    series: tuple[Series, ...]
    run: str
    part: str
    time: str
    change: str
    low: str
    high: str
    significant: str
    whole: str
    whole_label: str


Chart = Stack | Bars | Lines | Heat | Spread | Histogram | Flame | Waterfall
