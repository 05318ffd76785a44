"""HTA's `hta.common.timeline`: events of a frame as bars, a row per stream, call depth, rank or trace.

For whole recordings use `TimelineScrubber`: a picture of plotly holds every bar and gets slow at tens of
thousands.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from hta_widgets.hta.common.trace_df import (
    find_events_by_name_patterns_using_decoded_names,
    find_events_by_name_patterns_using_symbol_table,
    get_symbol_column_names,
)
from hta_widgets.hta.common.trace_filter import Filter
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable, texts
from hta_widgets.hta.methods.conventions import show

AnnotationStreamID: int = -2
"""The stream of annotations over kernels. HTA takes 0, which is AMD's default stream."""
CPUStreamID: int = -1

DefaultMustHaveColumns = ["name", "ts", "dur"]
DefaultHoverColumns = ["trace", "rank", "iteration", "stream", "cat", "index"]
DefaultTaskLabelColumns = ["stream", "rank", "trace", "depth", "tid"]
_ALIGNED = ("index", "stream", "ts", "dur", "name", "first_kernel_start", "kernel_span", "num_kernels")
_LONGEST = 45
_KEPT_NAME = re.compile(r"(^##.+##$)|(^<.+>$)|(^Mem\w+(\s+\w+)?\s+\(.+\)$)")
_PLAIN_NAME = re.compile(r"^([\w_:.#\s<>,]+)(\(.+\))?")
_FEW_TASKS = 20


class EventType(Enum):
    """Which events a picture shows."""

    GPUEvents = 0
    CPUEvents = 1
    AllEvents = 2


class PlotFormat(Enum):
    """Where a picture goes: a text of HTML, the notebook, or only the file."""

    HTML = "html"
    Inline = "inline"
    File = "file"


@dataclass
class TimelinePlotSetting:
    """How events are drawn."""

    auto_detect: bool = True  # find `event_type` and the three `multi_...` from the events
    event_type: EventType = EventType.GPUEvents
    multi_ranks: bool = False
    multi_traces: bool = False
    multi_streams: bool = True
    x_start_column: str = "calibrated_start_global"
    x_end_column: str = "calibrated_end_global"
    task_column: str = "task"
    color_column: str = "name"
    task_height: int = 30  # height of a row in pixels
    amplify_short_events: bool = True  # bars are at least `short_events_display_duration` us long, to be seen
    short_events_display_duration: int = 1000
    use_global_time: bool = False  # dates instead of us since the first event
    plot_format: PlotFormat = PlotFormat.Inline
    compress_threads: bool = True  # host events of all threads share rows


DefaultTimelinePlotSetting = TimelinePlotSetting()


def auto_detect_setting(events: pd.DataFrame, setting: TimelinePlotSetting) -> None:
    """Set what of a setting the events tell, in place."""
    if not setting.auto_detect:
        return
    several = {
        column: column in events and len(events[column].unique()) > 1
        for column in ("rank", "trace", "stream")
    }
    setting.multi_ranks, setting.multi_traces, setting.multi_streams = several.values()
    on_host = events["stream"].eq(CPUStreamID) if "stream" in events else pd.Series([True])
    if on_host.all():
        setting.event_type = EventType.CPUEvents
    else:
        setting.event_type = EventType.AllEvents if on_host.any() else EventType.GPUEvents


def prepare_timeline_events(
    df: pd.DataFrame,
    setting: TimelinePlotSetting = DefaultTimelinePlotSetting,
    symbol_table: TraceSymbolTable | None = None,
    hover_columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The events, ready to plot: start and end of the bars, row labels, short names.

    Args:
        df: columns name, ts, dur.
        setting: how to draw; it stays as it is.
        symbol_table: their names and categories, where the frame holds ids.
        hover_columns: columns to show with a bar.

    Returns:
        The events by row and time; empty (with a warning) where there is nothing to draw.
    """
    missing = [column for column in DefaultMustHaveColumns if column not in df]
    if df.empty or missing:
        why = f"the frame has no column {missing[0]!r}" if missing else "there are no events"
        warnings.warn(why, stacklevel=2)
        return pd.DataFrame()
    setting = replace(setting)
    auto_detect_setting(df, setting)
    wanted = [*DefaultMustHaveColumns, *(hover_columns or DefaultHoverColumns), *DefaultTaskLabelColumns]
    events = df[[column for column in dict.fromkeys(wanted) if column in df]].copy()
    if symbol_table is not None:
        for column in ("name", "cat"):
            if column in events and events[column].dtype.kind == "i":
                symbols = [_simplified(symbol) for symbol in symbol_table.get_sym_table()]
                events[column] = texts(symbols, events[column].to_numpy())
    shown = events["dur"]
    if setting.amplify_short_events:
        shown = shown.clip(lower=setting.short_events_display_duration)
    first = events["ts"].min()
    since_first = events["ts"] - first
    begin = events["ts"] if setting.use_global_time else since_first
    events["ts"] = since_first
    end = begin + shown
    if setting.use_global_time:
        begin, end = pd.to_datetime(begin, unit="us"), pd.to_datetime(end, unit="us")
    events[setting.x_start_column], events[setting.x_end_column] = begin, end
    events[setting.task_column] = _tasks(events, setting)
    return events.sort_values([setting.task_column, "ts"], kind="stable")


def _simplified(name: str, longest: int = _LONGEST) -> str:
    """The name without arguments and return type, at most `longest` characters long."""
    if not _KEPT_NAME.match(name):
        name = re.sub(r"\(anonymous namespace\)::", "anon::", name)
        name = re.sub(r"^void\s+", "", name)
        name = name.replace("autograd::engine::evaluate_function: ", "autograd::")
        if plain := _PLAIN_NAME.match(name):
            name = plain[1]
    return name if len(name) < longest else name[: longest - 3] + "..."


def _tasks(events: pd.DataFrame, setting: TimelinePlotSetting) -> pd.Series:
    """The row that each event is drawn in."""
    parts = []
    if setting.multi_traces:
        parts.append("trace " + events["trace"].astype(str))
    if setting.multi_ranks:
        parts.append("rank " + events["rank"].astype(str).str.zfill(3))
    host = pd.Series("cpu events", index=events.index)
    if "depth" in events:
        host = "cpu level " + events["depth"].astype(int).astype(str).str.zfill(3)
    if "tid" in events and not setting.compress_threads:
        host = "tid " + events["tid"].astype(str) + " " + host
    stream = events["stream"] if "stream" in events else pd.Series(CPUStreamID, index=events.index)
    device = ("gpu stream " + stream.astype(str).str.zfill(3)).mask(
        stream.eq(AnnotationStreamID), "gpu annotate"
    )
    parts.append(device.mask(stream.eq(CPUStreamID), host))
    label = parts[0]
    for part in parts[1:]:
        label = label + " " + part
    return label


def plot_events_timeline(
    title: str,
    events: pd.DataFrame,
    setting: TimelinePlotSetting = DefaultTimelinePlotSetting,
    hover_columns: Sequence[str] | None = None,
    output_image_path: str | None = None,
) -> str | None:
    """Draw events that `prepare_timeline_events` made ready.

    Args:
        output_image_path: also write the picture: ``.html``, or an image (needs the package kaleido).

    Returns:
        HTML for `PlotFormat.HTML`, else None.
    """
    needed = (setting.x_start_column, setting.x_end_column, setting.task_column, setting.color_column)
    if events.empty or any(column not in events for column in needed):
        warnings.warn("there are no events that were made ready to plot", stacklevel=2)
        return None
    figure = _figure(title, events, setting, hover_columns or DefaultHoverColumns)
    if output_image_path and output_image_path.endswith(".html"):
        figure.write_html(output_image_path)
    elif output_image_path:
        figure.write_image(output_image_path)
    if setting.plot_format is PlotFormat.Inline:
        show([figure])
    if setting.plot_format is PlotFormat.HTML:
        return str(figure.to_html(include_plotlyjs="cdn"))
    return None


def _figure(
    title: str, events: pd.DataFrame, setting: TimelinePlotSetting, hover_columns: Sequence[str]
) -> go.Figure:
    # Plotly reads names as markup.
    events = events.assign(**{setting.color_column: events[setting.color_column].str.replace("<", "&lt;")})
    tasks = sorted(events[setting.task_column].unique())
    height = 80 if len(tasks) < _FEW_TASKS else setting.task_height
    figure = px.timeline(
        events,
        x_start=setting.x_start_column,
        x_end=setting.x_end_column,
        y=setting.task_column,
        hover_data=[column for column in hover_columns if column in events],
        category_orders={setting.task_column: tasks},
        color=setting.color_column,
        color_discrete_sequence=px.colors.qualitative.D3,
        height=50 + height * len(tasks),
        title=title,
    )
    if not setting.use_global_time:
        # Plotly takes the numbers for dates: give it lengths on a plain axis.
        figure.layout.xaxis.type = "linear"
        length = events[setting.x_end_column] - events[setting.x_start_column]
        for bars in figure.data:
            bars.x = length[events[setting.color_column].eq(bars.name)].to_numpy()
    first, last = events[setting.x_start_column].min(), events[setting.x_end_column].max()
    figure.update_layout(
        xaxis_range=[first, last],
        xaxis={"showgrid": True, "rangeslider_visible": True},
        paper_bgcolor="rgba(0,0,0,0)",
    )
    return figure


def align_module_with_kernels(
    events_df: pd.DataFrame,
    module_list: Sequence[str],
    sym_table: TraceSymbolTable | None = None,
    include_original_cpu_events: bool = False,
) -> pd.DataFrame:
    """Device events, and above them the operators that launched them, where their kernels run.

    Args:
        events_df: a frame with the columns of a call graph (first_kernel_start, kernel_span, num_kernels).
        module_list: regular expressions; operators whose name matches one from its start are shown.
        sym_table: their names, where the frame holds ids.
        include_original_cpu_events: keep the host's events too.

    Raises:
        ValueError: a column is missing.
    """
    missing = [column for column in _ALIGNED if column not in events_df]
    if missing:
        raise ValueError(f"the frame has no column {', '.join(missing)}")
    callers = events_df[events_df["stream"].eq(CPUStreamID) & events_df["num_kernels"].ge(1)]
    column, _ = get_symbol_column_names(events_df)
    if sym_table is not None and events_df["name"].dtype.kind == "i":
        chosen = find_events_by_name_patterns_using_symbol_table(callers, module_list, sym_table)
    elif column:
        chosen = find_events_by_name_patterns_using_decoded_names(callers, module_list, column)
    else:
        raise ValueError("the frame has no names as text, and there is no symbol table to read ids with")
    above = callers[callers["index"].isin(chosen)].copy()
    above["ts"], above["dur"] = above["first_kernel_start"], above["kernel_span"]
    if "end" in above:
        above["end"] = above["ts"] + above["dur"]
    above["stream"] = AnnotationStreamID
    kept = events_df if include_original_cpu_events else events_df[events_df["stream"].ge(0)]
    return pd.concat([kept, above], ignore_index=True)


def get_fig_title_from_fig_name(fig_name: str, sep: str = r"\s+|_+|-+") -> str:
    """``"kernel_times"`` -> ``"Kernel Times"``."""
    return " ".join(word.capitalize() for word in re.split(sep, fig_name or "untitled_figure") if word)


def get_fig_name_from_fig_title(title: str) -> str:
    """``"Kernel Times"`` -> ``"kernel_times"``."""
    return "_".join(word.lower() for word in (title or "Untitled Figure").split())


class Timeline:
    """Events and how to draw them.

    Args:
        timeline_events: a frame, or one that `prepare_timeline_events` made.
        symbol_table: its names and categories.
        filter_func: which events to show.
    """

    def __init__(
        self,
        timeline_events: pd.DataFrame,
        symbol_table: TraceSymbolTable,
        filter_func: Filter | None = None,
        setting: TimelinePlotSetting = DefaultTimelinePlotSetting,
        hover_columns: Sequence[str] | None = None,
    ) -> None:
        self.timeline_events = timeline_events
        self.symbol_table = symbol_table
        self.setting = setting
        self.hover_columns = list(hover_columns or DefaultHoverColumns)
        self.prepare(filter_func)

    @staticmethod
    def is_timeline_events(df: pd.DataFrame, setting: TimelinePlotSetting) -> bool:
        """Whether a frame is ready to plot."""
        return {setting.task_column, setting.x_start_column, setting.x_end_column} <= set(df.columns)

    def prepare(self, filter_func: Filter | None = None) -> None:
        """Make the events ready to plot, those that a filter keeps."""
        if self.is_timeline_events(self.timeline_events, self.setting):
            return
        if filter_func is not None:
            self.timeline_events = filter_func(self.timeline_events, self.symbol_table)
        self.timeline_events = prepare_timeline_events(
            self.timeline_events, self.setting, self.symbol_table, self.hover_columns
        )

    def plot(self, title: str, save_path: str | None = None) -> None:
        """Draw them; `save_path` also writes the picture."""
        plot_events_timeline(title, self.timeline_events, self.setting, self.hover_columns, save_path)
