"""A panel with one answer of a memory snapshot: a sentence, a chart, a table and a DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.charts.marks import Marks, marks
from hta_widgets.charts.spec import Bars, Lines
from hta_widgets.engine import UI_LOCK, start
from hta_widgets.formatting import byte_size, counted, duration, percent
from hta_widgets.memory_snapshot.snapshot import MemorySnapshot
from hta_widgets.widgets.panel import Panel, PanelState
from hta_widgets.widgets.selection import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from hta_widgets.trace.model import Trace


@dataclass(frozen=True)
class Answer(Analysis):
    """An answer of a snapshot; `function` takes it, and the trace beside it or None."""

    drawn: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame  # what of a frame the chart shows

    def figure(self, frame: pd.DataFrame) -> go.Figure:
        """The plotly figure of a frame of this answer."""
        return super().figure(self.drawn(frame))


class MemoryPanel(Panel):
    """An answer of a memory snapshot.

    Args:
        snapshot: an open `MemorySnapshot`.
        kind: a key of `ANSWERS`.
        trace: a recording of the same run, for "recording".
        python_expression: returns the Python expression of the panel's frame.
    """

    _depends: ClassVar = ("options",)

    def __init__(
        self,
        snapshot: MemorySnapshot,
        kind: str,
        trace: Trace | None = None,
        *,
        python_expression: Callable[[], str] | None = None,
    ) -> None:
        answer = ANSWERS[kind]
        self._snapshot, self._beside = snapshot, trace
        self._entry = answer
        described = self._describe(answer, answer.chart, {}, python_expression)
        start()
        with UI_LOCK:
            self._bind(Selection(), described)

    def frame(self, **options: Any) -> pd.DataFrame:
        """The DataFrame that the panel shows; see the method of `MemorySnapshot` for its columns.

        Args:
            options: other options than those that are chosen in the panel.
        """
        return self._entry.function(self._snapshot, self._beside, **(options or self._given()))

    def _question(self) -> dict[str, Any]:
        with UI_LOCK:
            return self._given()

    def _compute(self, question: dict[str, Any]) -> PanelState:
        frame = self._entry.function(self._snapshot, self._beside, **question)
        chart = self._entry.chart
        shown = self._entry.drawn(frame)
        drawn = marks(chart, shown) if chart and len(shown) else Marks(pd.DataFrame())
        extent = [int(shown["time_ns"].min()), int(shown["time_ns"].max())] if "time_ns" in shown else []
        return PanelState(frame, self._entry.sentence(frame), drawn, [], extent, frame.empty)

    def __repr__(self) -> str:
        return f"MemoryPanel({self.kind!r}, {self._snapshot!r})"


def _timeline(frame: pd.DataFrame) -> pd.DataFrame:
    """With times from the first event on; nothing where they are not recorded."""
    times = frame["time_us"]
    if not len(frame) or (times <= 0).any():
        return frame.iloc[:0].assign(time_ns=times.iloc[:0])
    return frame.assign(time_ns=1000 * (times - times.min()))


def _timeline_sentence(frame: pd.DataFrame) -> str:
    at = int(frame["allocated_bytes"].to_numpy().argmax())
    top = frame.iloc[at]
    text = (
        f"Device {top['device']}: at most {byte_size(top['allocated_bytes'])} allocated of "
        f"{byte_size(top['reserved_bytes'])} reserved then"
    )
    drawn = _timeline(frame)
    if not len(drawn):
        return f"{text}; the events have no times."
    after = duration(int(drawn["time_ns"].to_numpy()[at]))
    return f"{text}, {after} after the first of the events."


def _owners_sentence(frame: pd.DataFrame) -> str:
    top = frame.iloc[int(frame["bytes"].to_numpy().argmax())]
    peak = frame.loc[frame["device"] == top["device"], "bytes"].sum()
    share = f"{percent(top['pct'])} of the peak of device {top['device']} ({byte_size(peak)})"
    return f"{share} belongs to {top['owner']}."


def _fragmentation(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each part of what is reserved."""
    parts = {
        "largest_free_bytes": "largest free piece",
        "releasable_bytes": "free, can be given back",
        "stuck_bytes": "free, cannot be given back",
        "rounding_bytes": "rounding",
    }
    long = frame.melt("device", list(parts), "part", "bytes")
    return long.assign(part=long["part"].map(parts))


def _fragmentation_sentence(frame: pd.DataFrame) -> str:
    top = frame.iloc[int(frame["free_bytes"].to_numpy().argmax())]
    return (
        f"{byte_size(top['free_bytes'])} of {byte_size(top['reserved_bytes'])} that device {top['device']} "
        f"reserved are free, {byte_size(top['largest_free_bytes'])} of them in one piece; "
        f"{byte_size(top['stuck_bytes'])} lie in segments that are also in use and cannot be given back."
    )


def _blockers_sentence(frame: pd.DataFrame) -> str:
    if frame.empty:
        return "Every segment with free memory can be given back."
    top = frame.iloc[0]
    free, held = byte_size(top["free_bytes"]), byte_size(top["held_bytes"])
    segments = counted(len(frame), "segment")
    return f"{segments} cannot be given back; in one {free} are free beside {held} in use ({top['owner']})."


def _failures_sentence(frame: pd.DataFrame) -> str:
    if frame.empty:
        return "No allocation failed."
    causes = ", ".join(f"{count:,} {cause}" for cause, count in frame["cause"].value_counts().items())
    return f"{counted(len(frame), 'allocation')} failed, by cause: {causes}."


def _recording_sentence(frame: pd.DataFrame) -> str:
    top = frame.iloc[int(frame["peak_bytes"].to_numpy().argmax())]
    at = duration(int(top["peak_ns"]))
    text = f"Most was allocated {at} into the recording, {byte_size(top['peak_bytes'])}"
    if top["peak_bytes"] < top["overall_bytes"]:
        text += f" (the whole history has {byte_size(top['overall_bytes'])})"
    ran = [name for name in (top["operator"], top["device_work"]) if name]
    where = "" if pd.isna(top["iteration"]) else f" in iteration {top['iteration']}"
    return f"{text}{where}; {f'{ran[0]} ran then' if ran else 'no operator ran then'}."


ANSWERS: dict[str, Answer] = {
    answer.kind: answer
    for answer in (
        Answer(
            "Memory over time", "Memory", "How much was allocated and reserved, and when?",
            lambda snapshot, _trace: snapshot.timeline(), _timeline_sentence,
            Lines("time_ns", "allocated_bytes", ("device",), "memory", beside="reserved_bytes",
                  measure="Memory"),
            ("allocator history",), drawn=_timeline, kind="timeline",
        ),
        Answer(
            "Owners at the peak", "Memory", "Who owned the memory when most was allocated?",
            lambda snapshot, _trace, by="line": snapshot.peak(by=by), _owners_sentence,
            Bars("bytes", ("device", "owner"), "memory", measure="Memory"), ("allocator history",),
            (Option("by", "One bar per", ("line", "module", "stack", "annotation"), "line"),), kind="peak",
        ),
        Answer(
            "Peak in the recording", "Memory", "What ran when most was allocated?",
            lambda snapshot, trace: snapshot.peak_in(trace), _recording_sentence, None,
            ("allocator history",), kind="recording",
        ),
        Answer(
            "Failed allocations", "Memory", "Why did allocations fail?",
            lambda snapshot, _trace: snapshot.out_of_memory(), _failures_sentence, None, (),
            kind="out_of_memory",
        ),
        Answer(
            "Fragmentation", "Memory", "How much of what is reserved is free?",
            lambda snapshot, _trace: snapshot.fragmentation(), _fragmentation_sentence,
            Bars("bytes", ("device", "part"), "memory", measure="Memory"), (), drawn=_fragmentation,
            kind="fragmentation",
        ),
        Answer(
            "What blocks", "Memory", "What keeps segments from being given back?",
            lambda snapshot, _trace: snapshot.blockers(), _blockers_sentence,
            Bars("free_bytes", ("device", "owner"), "memory", measure="Free memory beside it"), (),
            kind="blockers",
        ),
    )
}  # fmt: skip
