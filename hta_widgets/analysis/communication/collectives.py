"""Every communication kernel, and which kernels of different ranks are one collective."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.communication.bus import bandwidths
from hta_widgets.analysis.communication.matching import match
from hta_widgets.analysis.communication.operations import UNKNOWN, collective_of
from hta_widgets.analysis.communication.records import Records
from hta_widgets.analysis.communication.titles import titles
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Bool, Int64
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import counted, duration
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

# Bytes of an element, by the names of c10::ScalarType that PyTorch writes.
_ITEM_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Int": 4, "Long": 8, "UInt16": 2, "UInt32": 4, "UInt64": 8,
    "Half": 2, "BFloat16": 2, "Float": 4, "Double": 8, "ComplexHalf": 4, "ComplexFloat": 8,
    "ComplexDouble": 16, "Float8_e5m2": 1, "Float8_e4m3fn": 1, "Float8_e5m2fnuz": 1, "Float8_e4m3fnuz": 1,
    "Float8_e8m0fnu": 1,
}  # fmt: skip

_TEXTS = {
    "collective_name": "collective_name",
    "dtype": "dtype",
    "process_group": "process_group_name",
    "group_ranks": "process_group_ranks",
    "group_description": "process_group_description",
    "in_splits": "in_split_size",
    "out_splits": "out_split_size",
}
_NUMBERS = {
    "seq": "seq",
    "comms_id": "comms_id",
    "group_size": "group_size",
    "in_elements": "in_msg_nelems",
    "out_elements": "out_msg_nelems",
    "source_rank": "source_rank",
    "destination_rank": "destination_rank",
}
_COLUMNS = (
    "rank", "event_id", "iteration", "name", "collective", "process_group", "group_size", "seq", "dtype",
    "in_elements", "out_elements", "bytes", "device", "stream", "start_ns", "end_ns", "dur_ns",
    "match", "match_key", "match_ranks", "transfer_ns", "algbw_gbps", "busbw_gbps", "bandwidth_is",
)  # fmt: skip


def collectives(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Every communication kernel, and the kernels of other ranks in the same collective.

    What a collective was (operation, group, sequence number, message) is read from the kernel's own
    arguments, else from those of the innermost operator around its launch that has any
    (`record_param_comms`), else the operation from the range around its launch (`nccl:all_to_all`), else from
    the kernel's name. `matching.match` says which kernels are one collective; matches do not depend on the
    scope.

    Args:
        trace: the job.
        scope: kernels that belong to it (`RankTrace.members`), whole; default all.

    Returns:
        One row per communication kernel, by rank, start_ns, event_id. Columns: rank, event_id (int64),
        iteration (Int64), name (str, the kernel), collective (str: allreduce, allgather, reduce_scatter,
        all_to_all, dispatch, combine, broadcast, reduce, gather, scatter, barrier, send, recv, sendrecv, else
        the recorded operation or "unknown"), process_group (str or NA), group_size, seq (Int64), dtype (str
        or NA), in_elements, out_elements (Int64), bytes (Int64, of the larger), device, stream (Int64),
        start_ns, end_ns, dur_ns (int64 ns), match (Int64, the same on all ranks of one collective, or of a
        send and its receive), match_key (str: "comms_id", "seq", "order" or "pair", see `matching.match`),
        match_ranks (Int64, ranks matched). The match columns are NA unless a kernel of another rank certainly
        belongs to the same collective. transfer_ns (int64 ns, the duration without waiting for other ranks:
        the shortest of those matched). Bandwidths as nccl-tests defines them (doc/PERFORMANCE.md), in 1e9
        bytes per s, NaN where size, group or operation are not known: algbw_gbps (float64, bytes by
        transfer_ns), busbw_gbps (float64, that times 2(n-1)/n for an allreduce among n ranks, (n-1)/n for
        allgather, reduce_scatter, all_to_all, gather and scatter, 1 for others), bandwidth_is (str: "exact",
        "at least" where the transfer may hold waiting, or NA).
    """
    return shared_collectives(trace, scope or Scope()).copy()


def shared_collectives(trace: Trace, scope: Scope) -> pd.DataFrame:
    """`collectives`, to be read only: where the scope leaves nothing out, the columns are shared."""
    everything = _everything(trace)
    belong = belonging(trace, scope)
    return everything.copy(deep=False) if belong.all() else everything[belong].reset_index(drop=True)


@memoize_per_rank(last=4)
def belonging(trace: Trace, scope: Scope) -> Bool:
    """Which rows of `collectives(trace)` are those of `collectives(trace, scope)`."""
    everything = _everything(trace)
    belong = np.isin(everything["rank"].to_numpy(), trace.ranks_of(scope))
    # as `RankTrace.belong`, without a rank's columns
    for name, chosen in (("iteration", scope.iterations), ("stream", scope.streams), ("name", scope.names)):
        if chosen is not None:
            belong &= everything[name].isin(chosen).to_numpy(np.bool_)
    if scope.window_ns is not None:
        first, last = scope.window_ns
        start = everything["start_ns"].to_numpy()
        belong &= (start >= first) & (start < last)
    return belong


def collectives_of(trace: Trace, rank: int, scope: Scope | None = None) -> pd.DataFrame:
    """`collectives` of one rank, without a look at the others' rows."""
    own = _places(trace)[rank]
    chosen = belonging(trace, scope or Scope())[own]
    return _everything(trace).iloc[own][chosen].reset_index(drop=True)


@memoize_per_rank()
def recorded(trace: Trace) -> pd.DataFrame:
    """Every communication kernel with all that was recorded about it: the columns that `match` compares."""
    ahead = _read(trace)
    if len(ahead) == len(trace.ranks):
        return _frame_of(Records.joined([ahead[rank] for rank in trace.ranks]))
    return _frame_of(trace.merged(_evidence_of, Records.joined).by_rank())


def read_ahead(trace: Trace, rank: int) -> None:
    """Read what `recorded` will ask of a rank, which is in memory now."""
    if rank not in _read(trace):
        _read(trace)[rank] = _evidence_of(trace.rank(rank)).short()


@memoize_per_rank()
def _read(trace: Trace) -> dict[int, Records]:
    """What was read ahead, by rank."""
    return {}


@memoize_per_rank()
def _everything(trace: Trace) -> pd.DataFrame:
    found = match(recorded(trace), common_clock=trace.clock.method != "start")
    return pd.concat([found, bandwidths(found)], axis=1)[list(_COLUMNS)]


@memoize_per_rank()
def _places(trace: Trace) -> dict[int, slice]:
    """Where each rank's collectives lie in `_everything`."""
    rank_of = _everything(trace)["rank"].to_numpy()
    edges = np.searchsorted(rank_of, [*trace.ranks, np.iinfo(np.int64).max]).tolist()
    return {rank: slice(*edge) for rank, edge in zip(trace.ranks, pairwise(edges), strict=True)}


def described(rank_trace: RankTrace) -> pd.DataFrame:
    """What `collectives` says of the communication kernels of one rank, before any is matched with others."""
    return _frame_of(_evidence_of(rank_trace))


def _evidence_of(rank_trace: RankTrace) -> Records:
    """What was recorded of the communication kernels of one rank; numbers and texts as they are.

    Frames are made once for all ranks: to make many small ones takes longer than all that is in them.
    """
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.event_class == EventClass.COMMUNICATION))
    rows = rows[np.lexsort((rank_trace.event_id[rows], rank_trace.start[rows]))]
    source = _described_by(rank_trace, rows)
    iteration = rank_trace.iteration[rows].astype(np.int64)
    numbers = {
        "rank": np.full(len(rows), rank_trace.rank, np.int64),
        "event_id": rank_trace.event_id[rows].astype(np.int64),
        "iteration": np.where(iteration < 0, NULL, iteration),
        "device": rank_trace.device[rows].astype(np.int64),
        "stream": rank_trace.stream[rows].astype(np.int64),
        "start_ns": rank_trace.start[rows],
        "dur_ns": rank_trace.dur[rows],
        **{name: rank_trace.argument_of(column, source) for name, column in _NUMBERS.items()},
    }
    texts = {
        name: (rank_trace.argument_codes_of(column, source), rank_trace.table.dictionary(column))
        for name, column in _TEXTS.items()
    }
    codes, told = texts["collective_name"]
    untold = np.flatnonzero(codes < 0)
    title, operations = titles(rank_trace, rows[untold])
    codes[untold] = np.where(title < 0, title, title + len(told))
    texts["collective_name"] = codes, [*told, *operations]
    return Records.of(numbers, {"name": (rank_trace.name[rows], rank_trace.names), **texts})


def _frame_of(records: Records) -> pd.DataFrame:
    """The columns that are recorded, and those that follow from them."""
    numbers, texts = records.numbers, {name: records.texts_of(name) for name in records.codes}
    texts["collective"] = _operations(records)
    sender, receiver = _partners(records, texts["collective"])
    columns: dict[str, npt.NDArray[Any]] = {
        **numbers,
        "end_ns": numbers["start_ns"] + numbers["dur_ns"],
        **texts,
        "bytes": _bytes(records),
        "sender": sender,
        "receiver": receiver,
    }
    nullable = ("iteration", "device", "stream", *_NUMBERS, "bytes", "sender", "receiver")
    return pd.DataFrame(
        {
            name: _nullable(values)
            if name in nullable
            else pd.Series(values, dtype="str" if values.dtype == object else values.dtype)
            for name, values in columns.items()
        }
    )


def _operations(records: Records) -> npt.NDArray[np.object_]:
    """What each kernel does with others; an unknown operation keeps its recorded name."""
    stated = records.codes["collective_name"]
    read = np.where(stated >= 0, stated, records.codes["name"])
    words = np.full(len(records.texts), None, object)
    for code in np.unique(read).tolist():
        words[code] = collective_of(records.texts[code])
    found = words[read]
    unknown = (found == UNKNOWN) & (stated >= 0)
    found[unknown] = records.texts_of("collective_name")[unknown]
    return found


def _bytes(records: Records) -> Int64:
    """The size of each message, of the larger of what goes in and what comes out."""
    elements = np.maximum(records.numbers["in_elements"], records.numbers["out_elements"])
    size = np.array([*(_ITEM_BYTES.get(text, 0) for text in records.texts), 0])[records.codes["dtype"]]
    return np.where((elements != NULL) & (size > 0), elements * size, NULL)


def _partners(records: Records, operation: npt.NDArray[np.object_]) -> tuple[Int64, Int64]:
    """Who sends to whom, of sends and receives: as recorded, else between the two ranks of a group."""
    own, group = records.numbers["rank"], records.codes["group_ranks"]
    pairs = np.full((len(records.texts) + 1, 2), NULL)
    for code in np.unique(group[group >= 0]).tolist():
        pairs[code] = _two_ranks(records.texts[code]) or NULL
    one, two = pairs[group].T
    other = np.where(own == one, two, np.where(own == two, one, NULL))
    source, destination = (
        np.where(recorded == NULL, other, recorded)
        for recorded in (records.numbers["source_rank"], records.numbers["destination_rank"])
    )
    sends, receives = operation == "send", operation == "recv"
    sender = np.where(sends, own, np.where(receives, source, NULL))
    receiver = np.where(receives, own, np.where(sends, destination, NULL))
    return sender, receiver


def _two_ranks(text: str) -> tuple[int, int] | None:
    """The ranks of a group of two, from a list as PyTorch writes it: `[0, 4]`."""
    found = re.fullmatch(r'"?\[(\d{1,9}), ?(\d{1,9})\]"?', text)
    return (int(found[1]), int(found[2])) if found else None


def _described_by(rank_trace: RankTrace, rows: Int64) -> Int64:
    """The row whose arguments describe each kernel: itself, else its launch's nearest caller with any."""
    source = rows.astype(np.int64)
    if not rank_trace.table.has("collective_name") or not len(rows):
        return source

    def described(rows: Int64) -> Bool:
        return rank_trace.argument_codes_of("collective_name", rows) >= 0

    caller = np.where(described(rows), -1, rank_trace.issuer[rows]).astype(np.int64)
    while (caller >= 0).any():
        found = (caller >= 0) & described(caller)
        source[found] = caller[found]
        caller = np.where((caller >= 0) & ~found, rank_trace.parent[caller], -1)
    return source


def _nullable(values: Int64) -> pd.arrays.IntegerArray:
    absent = values == NULL
    return pd.arrays.IntegerArray(np.where(absent, 0, values), absent)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `collectives` in words."""
    if frame.empty:
        return "No communication runs on the device in the selection."
    by_name = frame.groupby("collective", sort=True)["dur_ns"].agg(["size", "sum"])
    most = by_name.sort_values("sum", ascending=False, kind="stable").iloc[0]
    name = most.name or "unnamed"
    text = f"{counted(len(frame), 'communication kernel')} took {duration(frame['dur_ns'].sum())}"
    if len(by_name) == 1:
        return f"{text}, all of it {name}."
    largest = f"{duration(most['sum'])} in {counted(most['size'], 'kernel')}"
    return f"{text}. The largest part is {name}: {largest}."


ANALYSIS = Analysis(
    label="Collectives",
    group="Communication",
    title="Which collectives run, and for how long",
    function=collectives,
    sentence=sentence,
    chart=Bars("dur_ns", ("collective", "process_group"), "communication", names="name", measure="Time"),
    requires=("communication kernels",),
    asks_little=True,
)
