"""HTA's `hta.common.trace.Trace` on top of ours: the traces of a job as frames of encoded events.

The frames are made when they are first asked for, so that an analysis that does not need them pays nothing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.hta.common.event_links import (
    add_fwd_bwd_links,
    add_iteration,
    get_cpu_gpu_correlation,
    transform_correlation_to_index,
)
from hta_widgets.hta.common.lazy import Lazy
from hta_widgets.hta.common.rank_frame import hta_rows, symbols_of
from hta_widgets.hta.common.trace_file import (
    create_rank_to_trace_dict,
    get_trace_files,
    read_trace,
    write_trace,
)
from hta_widgets.hta.common.trace_parser import (
    MetaData,
    configured_frame,
    metadata_of,
    parse_trace_dataframe,
    parse_trace_dict,
)
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable, decode_symbol_id_to_symbol_name
from hta_widgets.hta.configs.default_values import DEFAULT_TRACE_DIR
from hta_widgets.hta.configs.parser_config import ParserConfig
from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.trace.model import Trace as Job

__all__ = [
    "MetaData",
    "Trace",
    "TraceSymbolTable",
    "add_fwd_bwd_links",
    "add_iteration",
    "create_rank_to_trace_dict",
    "get_cpu_gpu_correlation",
    "get_trace_files",
    "parse_trace_dataframe",
    "parse_trace_dict",
    "parse_trace_file",
    "trace_event_timestamp_to_unixtime_ns",
    "transform_correlation_to_index",
]

PHASE_COUNTER = "C"
PHASE_FLOW_START = "s"
PHASE_FLOW_END = "f"


class Trace:
    """The traces of a job as HTA holds them.

    Args:
        trace_files: {rank: file} or a list of files (relative ones lie in `trace_dir`); None: every trace in
            `trace_dir`.
        trace_dir: folder of the traces.
        parser_config: which arguments become columns, by default `ParserConfig.get_default_cfg()`.

    Attributes:
        whole: all events, as our own `Trace`; ``job``: the events that HTA looks at (see `hta.kept`).
        trace_path: the folder; ``trace_files``: rank -> file.
        traces: rank -> frame (see `common.rank_frame`), made when first asked for.
        meta_data: rank -> the file's keys but ``traceEvents``, and ``device_type``.
        is_parsed: whether there are frames.

    Raises:
        TraceNotFoundError: a path does not exist or holds no file to read.
        TraceFormatError: no file is a usable trace.
        TypeError: `trace_files` is no dict or list.
    """

    def __init__(
        self,
        trace_files: Mapping[int, str] | list[str] | None = None,
        trace_dir: str = DEFAULT_TRACE_DIR,
        parser_config: ParserConfig | None = None,
    ) -> None:
        self.trace_path = os.fspath(Path(trace_dir).expanduser()) if trace_dir else ""
        self.parser_config = parser_config or ParserConfig.get_default_cfg()
        # HTA knows one clock, the host's
        self.whole = Job.open(self._sources(trace_files), clock="host", repair=False)
        self.job = self.whole
        self.trace_files: dict[int, str] = {rank: self.whole.rank(rank).path for rank in self.whole.ranks}
        self.is_parsed = False
        self._aligned = False
        self.traces: MutableMapping[int, pd.DataFrame] = Lazy((), self._frame)
        self.meta_data: MutableMapping[int, MetaData] = Lazy((), self._metadata)
        self._symbol_table: TraceSymbolTable | None = None
        self._zero: int | None = None

    def __repr__(self) -> str:
        return f"Trace(ranks={list(self.traces)})"

    def _sources(self, trace_files: Any) -> Any:
        if trace_files is None:
            return self.trace_path
        if isinstance(trace_files, Mapping):
            return {int(rank): self._located(file) for rank, file in trace_files.items()}
        if isinstance(trace_files, list | tuple):
            return [self._located(file) for file in trace_files]
        raise TypeError(f"trace_files is a dict or a list, not {type(trace_files).__name__}")

    def _located(self, file: Any) -> Any:
        """The file, in `trace_path` if its name is relative."""
        if not isinstance(file, str | os.PathLike):
            return file
        name = os.fspath(file)
        if "://" in name or name.startswith(self.trace_path):
            return name
        return os.fspath(Path(self.trace_path) / name)

    # -- reading -------------------------------------------------------------------------------------

    def load_traces(
        self,
        include_last_profiler_step: bool | None = False,
        use_multiprocessing: bool = True,
        use_memory_profiling: bool = True,
    ) -> None:
        """Make all ranks available on one time axis, without each one's last step unless asked for.

        Loading again does nothing. `use_multiprocessing` and `use_memory_profiling` are HTA's; files are
        read side by side here in any case.
        """
        if self.is_parsed:
            warnings.warn("the traces are already loaded", stacklevel=2)
            return
        self.parse_traces()
        self.align_and_filter_trace(include_last_profiler_step)

    def parse_traces(
        self, max_ranks: int = -1, use_multiprocessing: bool = True, use_memory_profiling: bool = True
    ) -> None:
        """Make the first `max_ranks` ranks (-1: all) available as they are, nothing shifted or left out."""
        ranks = self.whole.ranks if max_ranks == -1 else self.whole.ranks[:max_ranks]
        self.parse_multiple_ranks(ranks)

    def parse_single_rank(self, rank: int) -> None:
        """Make one rank available as it is."""
        if rank in self.trace_files:
            self.parse_multiple_ranks([rank])

    def parse_multiple_ranks(
        self, ranks: Iterable[int], use_multiprocessing: bool = True, use_memory_profiling: bool = True
    ) -> None:
        """Make some ranks available as they are.

        Raises:
            KeyError: the job has no such rank.
        """
        wanted = sorted({*self.traces, *ranks})
        for rank in wanted:
            self.whole.rank(rank)
        self.job, self._aligned = self.whole, False
        self.is_parsed = bool(wanted)
        self.traces = Lazy(wanted, self._frame)
        self.meta_data = Lazy(wanted, self._metadata)

    def align_and_filter_trace(self, include_last_profiler_step: bool | None = False) -> None:
        """Put the ranks on one axis that starts with the first event, and leave out each rank's last step."""
        self.job = self.whole if include_last_profiler_step else without_last_step(self.whole)
        self._aligned = True
        self.traces = Lazy(self.traces, self._frame)

    @property
    def symbol_table(self) -> TraceSymbolTable:
        """Names and categories of all ranks; ids by rank, then alphabetically."""
        if self._symbol_table is None:
            table = TraceSymbolTable()
            for rank in self.whole.ranks:
                table.add_symbols(symbols_of(self.whole.rank(rank)))
            self._symbol_table = table
        return self._symbol_table

    @symbol_table.setter
    def symbol_table(self, table: TraceSymbolTable) -> None:
        self._symbol_table = table

    @property
    def zero_ns(self) -> int:
        """Where the frames' time 0 lies on the axis of `job`, in ns: the first event of any rank."""
        if self._zero is None:
            starts = [
                rank_trace.start[rows]
                for rank_trace in map(self.whole.rank, self.whole.ranks)
                if len(rows := hta_rows(rank_trace))
            ]
            self._zero = min((int(start.min()) for start in starts), default=0)
        return self._zero

    @property
    def min_ts(self) -> float:
        """Time 0 of the frames in the clock of the first rank's file, us; 0 before alignment."""
        return self._file_zero_ns(self.whole.ranks[0]) / 1000.0 if self._aligned else 0.0

    def _file_zero_ns(self, rank: int) -> int:
        """Time 0 in the clock of a rank's file, ns."""
        return self.zero_ns + self.whole.clock.offset_ns.get(rank, 0)

    def _frame(self, rank: int) -> pd.DataFrame:
        # Unshifted times are those of the file.
        zero = self.zero_ns if self._aligned else -self.whole.clock.offset_ns.get(rank, 0)
        return configured_frame(self.job.rank(rank), self.symbol_table, self.parser_config, zero)

    def _metadata(self, rank: int) -> MetaData:
        return metadata_of(self.whole.rank(rank))

    # -- asking --------------------------------------------------------------------------------------

    def get_ranks(self) -> list[int]:
        return sorted(self.traces)

    def _first_rank(self, rank: int | None) -> int:
        return next(iter(self.get_ranks()), -1) if rank is None else rank

    def get_trace(self, rank: int) -> pd.DataFrame:
        """The frame of a rank.

        Raises:
            ValueError: there is no such rank, or nothing was loaded.
        """
        if rank not in self.traces:
            known = self.get_ranks() if self.is_parsed else "not loaded"
            raise ValueError(f"no trace for rank {rank}: ranks are {known}")
        return self.traces[rank]

    def get_all_traces(self) -> MutableMapping[int, pd.DataFrame]:
        return self.traces

    def get_iterations(self, rank: int | None = None) -> list[int]:
        """ProfilerSteps of a rank (None: the first) that have events; empty for unknown ranks."""
        rank = self._first_rank(rank)
        if rank not in self.traces:
            return []
        numbers = self.traces[rank]["iteration"].unique()
        return sorted(int(number) for number in numbers if number >= 0)

    def get_trace_duration(self, rank: int | None = None) -> float:
        """Time from the first start to the last start on a rank (None: the first), us."""
        ts = self.get_trace(self._first_rank(rank))["ts"]
        return float(ts.max() - ts.min())

    def get_device_type(self) -> str:
        """ "NVIDIA GPU", "AMD GPU", "MTIA" or "UNKNOWN GPU", of the first rank; "UNKNOWN" without ranks."""
        return next((str(metadata["device_type"]) for metadata in self.meta_data.values()), "UNKNOWN")

    def get_trace_start_unixtime_ns(self, rank: int) -> int:
        """When the frames' time 0 was, in ns since the epoch, by the rank's clock.

        Raises:
            ValueError: there is no such rank.
            KeyError: the file has no ``baseTimeNanoseconds``.
        """
        if rank not in self.traces:
            raise ValueError(f"no trace for rank {rank}: ranks are {self.get_ranks()}")
        return self._file_zero_ns(rank) + _base_ns(self.meta_data[rank])

    def decode_symbol_ids(self, use_shorten_name: bool = True) -> None:
        """Add the columns `s_name` and `s_cat` to every rank's frame."""
        for rank in self.traces:
            decode_symbol_id_to_symbol_name(self.traces[rank], self.symbol_table, use_shorten_name)

    def add_fwd_bwd_links(self, rank: int) -> None:
        """Add to a rank's frame which forward operator each backward operator differentiates.

        Columns: fwdbwd (0 forward, 1 backward, -1 neither) and fwdbwd_index (`index` of the other, -1).
        From the sequence numbers that the profiler gives both (`RankTrace.forward`).
        """
        frame, rank_trace = self.get_trace(rank), self.job.rank(rank)
        backward = np.flatnonzero(rank_trace.forward >= 0)
        other = np.full(rank_trace.table.n, -1, np.int64)
        side = np.full(rank_trace.table.n, -1, np.int64)
        ends, begins = rank_trace.event_id[backward], rank_trace.event_id[rank_trace.forward[backward]]
        # A forward operator may have several backward ones: the last to start is its partner.
        order = np.argsort(rank_trace.start[backward], kind="stable")
        other[begins[order]], side[begins] = ends[order], 0
        other[ends], side[ends] = begins, 1
        frame["fwdbwd_index"], frame["fwdbwd"] = other[frame["index"]], side[frame["index"]]

    # -- raw files -----------------------------------------------------------------------------------

    def get_raw_trace_for_one_rank(self, rank: int = 0) -> dict[str, Any]:
        """The whole JSON document of a rank. Numbers are Python's; `trace.raw` edits without losing a digit.

        Raises:
            ValueError: there is no such rank.
        """
        if rank not in self.trace_files:
            raise ValueError(f"no trace for rank {rank}: ranks are {sorted(self.trace_files)}")
        return read_trace(self.trace_files[rank])

    def write_raw_trace(self, output_file: str, trace_contents: Mapping[str, Any]) -> None:
        """Write a JSON document, compressed if the name ends in ``.gz``."""
        write_trace(trace_contents, output_file)

    def convert_time_series_to_events(
        self, series: pd.DataFrame, counter_name: str, counter_col: str
    ) -> list[dict[str, Any]]:
        """Counter events (phase C) for a raw trace, from a time series.

        Args:
            series: columns pid, ts (us, as in the frames) and `counter_col`; optional: name, id.
            counter_name: what the counter is called.
        """
        missing = [column for column in ("pid", "ts", counter_col) if column not in series]
        if missing:
            warnings.warn(f"the time series has no column {missing[0]!r}: no events", stacklevel=2)
            return []
        shift = self._file_zero_ns(self.whole.ranks[0]) if self._aligned else 0
        ts_ns = np.rint(series["ts"].to_numpy(np.float64) * 1000).astype(np.int64) + shift
        whole = ts_ns % 1000 == 0
        times = [
            ns // 1000 if exact else ns / 1000
            for ns, exact in zip(ts_ns.tolist(), whole.tolist(), strict=True)
        ]
        names = series["name"].tolist() if "name" in series else [counter_name] * len(series)
        events = [
            {"ph": PHASE_COUNTER, "pid": pid, "ts": ts, "name": name, "args": {counter_name: value}}
            for pid, ts, name, value in zip(
                series["pid"].tolist(), times, names, series[counter_col].tolist(), strict=True
            )
        ]
        if "id" in series:
            for event, number in zip(events, series["id"].tolist(), strict=True):
                event["id"] = number
        return events

    @staticmethod
    def flow_event(
        id: int,
        pid: int,
        tid: int,
        ts: float,
        is_start: bool,
        name: str,
        cat: str,
        args: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One end of an arrow in a raw trace."""
        event: dict[str, Any] = {
            "ph": PHASE_FLOW_START if is_start else PHASE_FLOW_END,
            "id": id, "pid": pid, "tid": tid, "ts": ts, "cat": cat, "name": name,
        }  # fmt: skip
        if args is not None:
            event["args"] = args
        if not is_start:
            event["bp"] = "e"
        return event


def parse_trace_file(
    trace_file_path: str, cfg: ParserConfig | None = None
) -> tuple[MetaData, pd.DataFrame, TraceSymbolTable]:
    """One file: its metadata, its frame (times as in the file) and the symbols of both."""
    trace = Trace([trace_file_path], "", cfg)
    trace.parse_traces()
    rank = trace.get_ranks()[0]
    return trace.meta_data[rank], trace.get_trace(rank), trace.symbol_table


def trace_event_timestamp_to_unixtime_ns(trace_event_ts_us: float, trace_metadata: MetaData) -> int:
    """A time of a file (us) in ns since the epoch.

    Raises:
        KeyError: the file has no ``baseTimeNanoseconds``.
    """
    return round(trace_event_ts_us * 1000) + _base_ns(trace_metadata)


def _base_ns(metadata: MetaData) -> int:
    if metadata.get("baseTimeNanoseconds") is None:
        raise KeyError("the file has no baseTimeNanoseconds, so the zero of its times is unknown")
    return int(metadata["baseTimeNanoseconds"])
