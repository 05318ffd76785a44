"""How an answer can be drawn: each chart names the columns of the frame that it reads.

They say what is drawn, not how: the front end draws them as SVG, `hta_widgets.charts.plotly` with plotly.
Units follow from the columns' suffixes (`_ns`, `_pct`, `_bytes`, `_gbps`, `_flops`); the title of an axis is
the chart's `measure`, or else the name of the column.

A `Chart` is drawn in panels and by plotly. `Table`, `Segments`, `Changes`, `Contour` and `Savings` are
figures of plotly only: a panel has its table, its timeline, its lines and its sliders for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Combine = Literal["sum", "mean", "max"]


@dataclass(frozen=True)
class Series:
    """One part of a stacked bar.

    Attributes:
        column: the column in ns, or what `Stack.part` holds in the rows of this part.
        label: its name in the legend.
        time_class: the class of time whose colour it takes.
        pattern: distinguishes the parts of one class: "" (filled), "/", "." or "x".
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
    """

    series: tuple[Series, ...]  # the parts in drawing order; their times add up to `whole`, exactly
    whole: str  # the column that the series add up to; the name of their sum in a frame with a row for each
    label: tuple[str, ...] = ("rank",)  # the columns that name a bar
    part: str = ""  # the column that names the part of a row
    value: str = ""  # the column with a row's time
    # the columns with the bounds of the whole's 95 % interval: plotly's error bars
    interval: tuple[str, str] | None = None
    # the columns with the start and end of a bar's whole, where it is one stretch of time
    window: tuple[str, str] | None = None


@dataclass(frozen=True)
class Bars:
    """One bar per label, as long as what the rows of the label come to.

    Times, counts and bytes of several rows add up. Shares, rates and averages do not: they are combined as a
    mean, in which each row counts by its weight, or by their maximum.
    """

    value: str  # the column that gives the length
    label: tuple[str, ...]  # the columns that name a bar
    time_class: str  # the class of time whose colour the bars take, or the column that tells it row by row
    names: str = ""  # the column with the names of the events that a bar stands for
    no_event: str = ""  # what `names` holds in rows that stand for no event
    # the columns with the start and end of what a bar stands for, where it is one stretch of time
    window: tuple[str, str] | None = None
    note: str = ""  # a column whose text stands beside the value; there is a bar for each label and note
    combine: Combine = "sum"  # how the values of a label's rows become one
    # for a mean, the column that each row counts by. Bars with most weight are shown; without it, those with
    # the greatest values.
    weight: str = ""
    ascending: bool = False  # the least value stands on top, for values of which a low one is bad
    limit: float | None = None  # the value of a full bar; default: the longest
    measure: str = ""  # what the value is, in words
    # of a sum, the share of the whole that a bar and those above it make up stands beside it
    cumulative: bool = False

    def __post_init__(self) -> None:
        if (self.combine == "mean") != bool(self.weight):
            raise ValueError("a mean needs a weight, and nothing else has one")


@dataclass(frozen=True)
class Lines:
    """A step function of time per combination of `by`: a row's value holds until the next row's time."""

    time: str
    value: str
    by: tuple[str, ...]
    time_class: str
    # a column that is drawn as a thin line beside the value, such as what the value is part of; the greatest
    # value is then marked
    beside: str = ""
    measure: str = ""
    # the column with the time that a row's value holds until; the line has gaps where the next row begins
    # later. All rows are drawn, so they must be few.
    end: str = ""
    # the column that each row counts by in the mean of its line, which is then drawn and named. Of many lines
    # those with the lowest means are shown; without it, those with the greatest values.
    weight: str = ""
    limit: float | None = None  # the value at the top of the axis; default: the greatest of the line


@dataclass(frozen=True)
class Heat:
    """A cell per row, fuller the greater its value."""

    x: str
    y: str
    value: str
    time_class: str
    measure: str = ""  # what the cells are, where the heading does not say it
    # the scale begins at the least value, not at 0: for values that differ by little. It spans at least a
    # tenth of that value, so that noise does not look like a difference; the legend ends at the greatest
    # value all the same.
    contrast: bool = False


@dataclass(frozen=True)
class Trend:
    """A line through the steps, with a band around it, and a numbered dot at each outlier.

    Of several ranks the line is at the median, and the band reaches from the fastest to the slowest; of one
    rank the band holds the middle half of its steps, where they differ in `phase` of the commonest one.
    """

    x: str  # the column with the number of a step
    by: str  # that with the rank
    value: str
    time_class: str
    outlier: str  # the column that says which rows are unusual
    # the columns that say which rows do not count, and why in words: such a step has a ring, and the line a
    # gap
    aside: tuple[tuple[str, str], ...]
    measure: str = ""  # what the values are, in words
    phase: str = ""  # that with what a step does, if any


@dataclass(frozen=True)
class Spread:
    """For each label a line per rank from `low` to `high` with a mark at `mid`."""

    label: str
    low: str
    mid: str
    high: str
    order: str  # the column whose sum decides which labels are shown, the greatest first
    time_class: str
    item: str  # what `low` and `high` are the least and the greatest of
    # of the axis. "log" is for positive values that differ by orders of magnitude.
    scale: Literal["log", "linear"] = "log"
    # the columns with the quartiles, of which plotly draws boxes
    quartiles: tuple[str, str, str] | None = None
    measure: str = ""  # what the values are, in words


@dataclass(frozen=True)
class Histogram:
    """How many rows have a `value` of which magnitude (the axis is logarithmic)."""

    value: str
    time_class: str
    # a part of the value, by which plotly tells the rows apart that mostly consist of it
    part: Series | None = None
    rest: str = ""  # the name of the others
    measure: str = ""


@dataclass(frozen=True)
class Flame:
    """A box per node, below its parent's, as wide as its value; `own` is what the node's children leave."""

    # numbers of a row and of the row that it belongs to (-1: none), unique within a rank
    node: str
    parent: str
    label: str  # the column with a node's name
    # (total, own, label, class of time) of each column that can give the width
    weights: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True)
class Treemap(Flame):
    """The nodes of a tree as rectangles in their parent's; what their children leave is one beside them."""

    prefix: str = ""  # what the names of a node's events begin with, before its own name
    rest: str = ""  # the name of the node that stands for what lies in no other


@dataclass(frozen=True)
class Waterfall:
    """For each run after the first a bar per part, which begins where the one before ends.

    A frame has a row for each run, [rank] and part, the whole last; the bars' lengths add up to its change.
    """

    # the parts in drawing order; their changes add up to that of the whole, exactly
    series: tuple[Series, ...]
    # the columns that name the run and the part of a row
    run: str
    part: str
    # the columns with a part's time in a run, and by how much that is more than in the first
    time: str
    change: str
    # the columns with the 95 % interval of the change
    low: str
    high: str
    significant: str  # the column that tells whether the change is more than noise
    verdict: str  # the column that says so in words, or why not
    whole: str  # what `part` holds in the rows of the whole
    whole_label: str  # its name in the picture


@dataclass(frozen=True)
class Contour:
    """Lines of equal value over two columns of factors, with the recorded point and a chosen one."""

    # the columns of the axes, which are logarithmic
    x: str
    y: str
    value: str  # the column with the value of a pair
    whole: str  # the column with what it is a share of
    time_class: str  # the class of time whose colour the least value takes
    measures: tuple[str, str]  # what the axes are, in words
    point: tuple[float, float] = (1.0, 1.0)  # (x, y) that is marked


@dataclass(frozen=True)
class Savings:
    """A bar per change, which begins where the one above ends, and one for all; a mark shows it alone."""

    label: str  # the column that names a change
    # the columns with what it saves by itself, after those above, and with them
    alone: str
    adds: str
    together: str
    whole: str  # the column with the time that all of it is saved of
    time_class: str  # the column with the class of time whose colour a bar takes


@dataclass(frozen=True)
class Table:
    """The frame as it is."""

    across: str = ""  # a column of whose values each becomes a column that holds the `value` of its rows
    value: str = ""


@dataclass(frozen=True)
class Segments:
    """Stretches of time one after the other, in a lane per combination of `label`."""

    series: tuple[Series, ...]
    # the columns with the time of a row
    start: str
    duration: str
    part: str  # the column that holds the name of a row's series
    name: str  # the column that tells what a row is
    label: tuple[str, ...] = ("rank",)


@dataclass(frozen=True)
class Roofline:
    """A mark per row below the ceilings of its device, on logarithmic axes, and the rows as a list."""

    x: str  # the column with operations per byte
    y: str  # that with 1e12 operations per second
    size: str  # the column whose value the area of a mark shows, in ns
    label: str  # that with its name
    part: str  # the column with the unit that computes, each with its own ceiling
    peak: str  # the column with that ceiling, 1e12 operations per second
    bandwidth: str  # the column with the other one, 1e9 bytes per second
    achievable: str  # the column with what is reached of the peak at best
    device: str  # the column with the device that has these ceilings
    # the columns with the number of calls, and with their time in % of the device's
    calls: str
    share: str
    moved: str  # the column with 1e9 bytes per second
    bound: str  # the column that tells which ceiling is the lower one, "compute" or "memory"
    efficiency: str  # the column with the % of that ceiling
    headroom: str  # that with the ns above it


@dataclass(frozen=True)
class Changes:
    """For each run after the first a bar per line, as long as the line's change, with its interval."""

    run: str  # the column that names the run of a row
    # the columns that name a line
    kind: str
    line: str
    # the columns with a line's time in a run, and by how much that is more than in the first
    time: str
    change: str
    # the columns with the 95 % interval of the change
    low: str
    high: str
    significant: str  # the column that tells whether the change is more than noise


Chart = Stack | Bars | Lines | Heat | Trend | Spread | Histogram | Flame | Treemap | Roofline | Waterfall
Figure = Chart | Table | Segments | Changes | Contour | Savings
