"""HTA's `hta.common.trace_parser`: one trace file as a document, as metadata, and as a frame.

HTA has four parsers (`ParserBackend`). Here one reader does the work, and all that is left of the choice is
whether the categories that a `ParserConfig` skips are left out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from hta_widgets.hta.common.extra_arguments import arguments_of
from hta_widgets.hta.common.rank_frame import LINK_COLUMNS, hta_rows, rank_frame, symbols_of
from hta_widgets.hta.common.trace_file import read_trace
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable
from hta_widgets.hta.configs.env_options import disable_ns_rounding
from hta_widgets.hta.configs.parser_config import ParserBackend, ParserConfig
from hta_widgets.hta.utils.utils import get_value_from_dict
from hta_widgets.trace.model import Trace as Job
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.head import HeadSearch

MetaData = dict[str, Any]

# A call that only the runtime of one kind of device has.
_DEVICE_OF_CALL = {
    "cudaLaunchKernel": "NVIDIA GPU",
    "hipLaunchKernel": "AMD GPU",
    "runFunction - job_prep_and_submit_for_execution": "MTIA",
}
_CHUNK = 1 << 16

_default_backend = ParserBackend.JSON


class MetaDataKey(StrEnum):
    """What is added to a file's own metadata."""

    DEVICE_TYPE = "device_type"


def infer_gpu_type(metadata: Mapping[str, Any] | None = None, name_set: Collection[str] | None = None) -> str:
    """Which kind of device was recorded: "NVIDIA GPU", "AMD GPU", "MTIA" or "UNKNOWN GPU"?

    Args:
        metadata: of the file; its communication backend tells an MTIA.
        name_set: the names of its events; calls of the device's runtime tell the others.
    """
    if "mtia:hccl" in str(get_value_from_dict(metadata, "distributedInfo.backend", "")):
        return "MTIA"
    names = name_set or ()
    return next((device for call, device in _DEVICE_OF_CALL.items() if call in names), "UNKNOWN GPU")


def set_default_trace_parsing_backend(parser_backend: ParserBackend) -> None:
    """Set the backend of configurations that name none.

    Raises:
        ValueError: there is no such backend.
    """
    global _default_backend
    _default_backend = ParserBackend(parser_backend)


def get_default_trace_parsing_backend() -> ParserBackend:
    """The backend of configurations that name none, at first `ParserBackend.JSON`."""
    return _default_backend


def parse_trace_dict(trace_file_path: str) -> dict[str, Any]:
    """The JSON document in a trace file, compressed or not; see `common.trace_file.read_trace`."""
    return read_trace(trace_file_path)


def parse_trace_dataframe(
    trace_file_path: str, cfg: ParserConfig
) -> tuple[MetaData, pd.DataFrame, TraceSymbolTable]:
    """One file: its metadata with `device_type`, its events, and the symbols that encode these.

    The frame has the columns of `common.rank_frame.rank_frame` but the links to launches and steps, which
    `common.trace.parse_trace_file` adds. Times are those of the file, in us.

    Raises:
        TraceNotFoundError: there is no such file.
        TraceFormatError: the file is no usable trace.
        ValueError: the configuration names a backend that does not exist.
    """
    job = Job.open([trace_file_path], repair=False)
    rank_trace = job.rank(job.ranks[0])
    symbols = TraceSymbolTable(symbols_of(rank_trace))
    frame = configured_frame(rank_trace, symbols, cfg, -job.clock.offset_ns.get(rank_trace.rank, 0))
    return metadata_of(rank_trace), frame.drop(columns=list(LINK_COLUMNS)), symbols


def configured_frame(
    rank_trace: RankTrace, symbols: TraceSymbolTable, config: ParserConfig, zero_ns: int
) -> pd.DataFrame:
    """HTA's frame of a rank with the arguments and rows that a configuration asks for.

    Args:
        zero_ns: what is time 0, in ns on the job's axis.

    Raises:
        ValueError: the configuration names a backend that does not exist.
    """
    specs, extra = arguments_of(rank_trace, config)
    rows = hta_rows(rank_trace)
    if ParserBackend(config.parser_backend or _default_backend) is not ParserBackend.JSON:
        skipped = np.array([text in config.skip_event_types for text in rank_trace.categories], np.bool_)
        rows = rows[~skipped[rank_trace.category[rows]]]
    if config.max_event_duration_us is not None:
        rows = rows[rank_trace.dur[rows] <= config.max_event_duration_us * 1000]
    return rank_frame(rank_trace, symbols.sym_index, zero_ns, specs, extra, rows)


def metadata_of(rank_trace: RankTrace) -> MetaData:
    """The keys of a rank's file but ``traceEvents``, and `device_type`."""
    device = infer_gpu_type(rank_trace.metadata, set(rank_trace.names))
    return {**rank_trace.metadata, MetaDataKey.DEVICE_TYPE.value: device}


def parse_metadata_ijson(fh: BinaryIO) -> MetaData:
    """The metadata at the head of an open trace: its keys before ``traceEvents``, which are not read.

    Unlike HTA's, this needs no package ijson and keeps nested values.

    Raises:
        ValueError: there is no JSON object.
    """
    head = HeadSearch()
    while chunk := fh.read(_CHUNK):
        if (events := head.feed(chunk, last=False)) is not None:
            before = bytes(head.text[: events.key]).rstrip().removesuffix(b",")
            return json.loads(before + b"}")
    return json.loads(head.text)


def round_down_time_stamps(df: pd.DataFrame) -> None:
    """Round float times to whole us as HTA does, in place: starts up, ends down; durations can become -1.

    Frames of `Trace` are never rounded: this is for comparing them with HTA's. Nothing happens where ts
    holds no floats, or where HTA_DISABLE_NS_ROUNDING=1.

    Args:
        df: columns ts and dur; `end` is added.
    """
    if df["ts"].dtype != np.float64 or disable_ns_rounding():
        return
    end = np.floor(df["ts"] + df["dur"])
    df["ts"] = np.ceil(df["ts"])
    df["end"], df["dur"] = end, end - df["ts"]
