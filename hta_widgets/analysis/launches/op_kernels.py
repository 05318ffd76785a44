"""The kernels that each operator launches, and the delays from its start to launch and kernel."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.launches.launched import Launched, launched_ranks
from hta_widgets.arrays import Bool, Int64
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import brief, counted, duration
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_SEPARATOR = " -> "
_INSTANCE = ("op_id", "start_ns", "kernels", "op_delay_ns", "launch_latency_ns", "device_ns")
_SEQUENCE = ("kernels", "count", "op_delay_ns", "launch_latency_ns", "device_ns")
_MEMORY = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)


@kept(by_rank=True)
def op_kernels(
    trace: Trace,
    scope: Scope | None = None,
    prefix: str = "",
    by: Literal["sequence", "instance"] = "sequence",
    include_memory: bool = True,
) -> pd.DataFrame:
    """Which kernels does each host operator launch itself, and how long does it take until the first?

    A kernel belongs to the innermost operator open on the launching thread when it was launched, by a launch
    of its own or by a graph. Sequences are in order of launch. `op_delay_ns` is the time from the start of
    the operator to its first launch call, `launch_latency_ns` from there to the start of the first kernel.
    The definitions are those of Holistic Trace Analysis, restricted to one thread.

    An instance counts if its operator belongs to the scope (starts in its iteration, in its window), then
    with all its kernels; streams and names pick among the kernels.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        prefix: only operators whose name starts with it, e.g. "aten::"; launches inside another operator
            belong to the innermost of these around it. Empty: all operators.
        by: one row per operator name and sequence, or one per operator instance.
        include_memory: copies and fills count as kernels too; then the device_ns of an operator is its
            device_self_ns in `operators`.

    Returns:
        By sequence, most frequent first within a rank: rank int64, op, kernel_sequence (str, names joined by
        " -> "), kernels (in one sequence), count (instances) (int64), op_delay_ns, launch_latency_ns,
        device_ns (int64, ns, sums over instances), mean_op_delay_ns, mean_launch_latency_ns, mean_device_ns
        (float64, ns).
        By instance, in order of time within a rank: rank, op_id (event id), op, kernel_sequence, start_ns,
        kernels, op_delay_ns, launch_latency_ns, device_ns.

    Raises:
        MissingDataError: no selected rank has device events with a recorded launch.
        ValueError: `by` is neither "sequence" nor "instance".
    """
    if by not in ("sequence", "instance"):
        raise ValueError(f'by must be "sequence" or "instance", not {by!r}')
    scope = scope or Scope()
    frames = [
        _of_rank(rank_trace, work, scope, prefix, by, include_memory)
        for _, rank_trace, work in launched_ranks(trace, scope)
    ]
    frames = [frame for frame in frames if len(frame)] or frames[:1]
    if not frames:
        return _nothing(by)
    return pd.concat(frames, ignore_index=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `op_kernels` by sequence in words."""
    if frame.empty:
        return "No operator in the selection launched a kernel."
    busy = frame.groupby("op", sort=True)["device_ns"].sum()
    calls, single = int(frame["count"].sum()), int(frame.loc[frame["kernels"] == 1, "count"].sum())
    how = "one kernel each" if single == calls else f"kernels, {single:,} of them just one"
    return (
        f"{counted(calls, 'operator call')} launched {how}. "
        f"The kernels of {brief(str(busy.idxmax()))} take longest: {duration(float(busy.max()))}."
    )


def _of_rank(
    rank_trace: RankTrace, work: Launched, scope: Scope, prefix: str, by: str, include_memory: bool
) -> pd.DataFrame:
    op = _operators(rank_trace, prefix)[rank_trace.issuer[work.rows]]
    keep = (op >= 0) & work.listed(rank_trace, scope)
    if not include_memory:
        for memory in _MEMORY:
            keep &= rank_trace.event_class[work.rows] != memory
    if scope.iterations is not None:
        keep &= np.isin(rank_trace.iteration[op], scope.iterations)
    if scope.window_ns is not None:
        first_ns, last_ns = scope.window_ns
        keep &= (rank_trace.start[op] >= first_ns) & (rank_trace.start[op] < last_ns)
    chosen = np.flatnonzero(keep)
    if not len(chosen):
        return _nothing(by)
    # Stable: `work` is in order of launch, and so is each operator's sequence.
    chosen = chosen[np.argsort(op[chosen], kind="stable")]
    op = op[chosen]
    first = np.flatnonzero(np.diff(op, prepend=-1))
    kernels = np.diff(first, append=len(op))
    name = rank_trace.name[work.rows[chosen]].astype(np.int64)
    owner, launch = op[first], chosen[first]
    code = sequence_numbers(rank_trace.name[owner].astype(np.int64), name, first, kernels)
    columns = {
        "op_name": rank_trace.name[owner].astype(np.int64),
        "sequence": code,
        "at": first,
        "op_id": rank_trace.event_id[owner].astype(np.int64),
        "start_ns": rank_trace.start[owner],
        "kernels": kernels,
        "op_delay_ns": work.call_start[launch] - rank_trace.start[owner],
        "launch_latency_ns": work.start[launch] - work.call_start[launch],
        "device_ns": np.add.reduceat(rank_trace.dur[work.rows[chosen]], first),
    }
    if by == "instance":
        order = np.lexsort((columns["op_id"], columns["start_ns"]))
        rows = pd.DataFrame({column: values[order] for column, values in columns.items()})
    else:
        rows = _totals(columns)
    return _named(rank_trace, rows, name, by)


def _totals(instances: dict[str, Int64]) -> pd.DataFrame:
    """One row per operator name and sequence."""
    order = np.argsort(instances["sequence"], kind="stable")
    _, runs = np.unique(instances["sequence"][order], return_index=True)
    same = {column: instances[column][order][runs] for column in ("op_name", "sequence", "at", "kernels")}
    sums = ("op_delay_ns", "launch_latency_ns", "device_ns")
    totals = {column: np.add.reduceat(instances[column][order], runs) for column in sums}
    count = np.diff(runs, append=len(order))
    means = {f"mean_{column}": totals[column] / count for column in sums}
    return pd.DataFrame({**same, "count": count, **totals, **means})


def _named(rank_trace: RankTrace, rows: pd.DataFrame, name: Int64, by: str) -> pd.DataFrame:
    """Put texts in place of codes; one text per distinct sequence."""
    distinct = rows.drop_duplicates("sequence")
    texts = {
        code: _SEPARATOR.join(rank_trace.names[each] for each in name[at : at + count])
        for code, at, count in zip(distinct["sequence"], distinct["at"], distinct["kernels"], strict=True)
    }
    rows = rows.assign(
        rank=np.full(len(rows), rank_trace.rank, np.int64),
        op=[rank_trace.names[code] for code in rows["op_name"]],
        kernel_sequence=[texts[code] for code in rows["sequence"]],
    )
    if by == "sequence":
        rows = rows.sort_values(
            ["count", "device_ns", "op", "kernel_sequence"], ascending=[False, False, True, True]
        )
    return rows[[*_kinds(by)]].reset_index(drop=True)


def _nothing(by: str) -> pd.DataFrame:
    kinds = _kinds(by)
    return pd.DataFrame(columns=[*kinds]).astype(kinds)


def _kinds(by: str) -> dict[str, str]:
    """The columns and their types."""
    numbers = _INSTANCE if by == "instance" else _SEQUENCE
    means = () if by == "instance" else ("mean_op_delay_ns", "mean_launch_latency_ns", "mean_device_ns")
    head = (
        ("rank", "op_id", "op", "kernel_sequence") if by == "instance" else ("rank", "op", "kernel_sequence")
    )
    columns = [*head, *(column for column in numbers if column not in head), *means]
    texts = {"op": "str", "kernel_sequence": "str"}
    return dict.fromkeys(columns, "int64") | texts | dict.fromkeys(means, "float64")


@memoize_per_rank(last=8)
def _operators(rank_trace: RankTrace, prefix: str) -> Int64:
    """For each row the innermost operator around it whose name starts with `prefix`, -1 without one."""
    named = np.array([text.startswith(prefix) for text in rank_trace.names], np.bool_)
    wanted = (rank_trace.event_class == EventClass.HOST_OP) & named[rank_trace.name]
    around = np.full(rank_trace.n, -1, np.int64)
    _find_around(rank_trace.parent, wanted, around)
    return around


@kernel
def _find_around(parent: npt.NDArray[np.int32], wanted: Bool, around: Int64) -> None:
    for row in range(len(parent)):
        at = parent[row]
        while at >= 0 and not wanted[at]:
            at = parent[at]
        around[row] = at


def sequence_numbers(op: Int64, name: Int64, first: Int64, count: Int64) -> Int64:
    """A number for each operator's sequence name[first : first + count], equal for equal ones only."""
    size = 1 << max(4, int(2 * (len(name) + len(op))).bit_length())
    node = np.full((size, 2), -1, np.int64)
    code = np.empty(len(first), np.int64)
    _walk(op, name, first, count, node, np.empty(size, np.int64), code)
    return code


@kernel
def _walk(op: Int64, name: Int64, first: Int64, count: Int64, key: Int64, child: Int64, code: Int64) -> None:
    """Number sequences by the node of a trie they end in; its edges (node, name) are an open hash table."""
    mask = len(child) - 1
    nodes = 0
    for i in range(len(first)):
        node = 0
        for at in range(first[i] - 1, first[i] + count[i]):
            text = op[i] if at < first[i] else name[at]
            slot = ((node * 0x2545F491 + text) * 0x9E3779B1 >> 7) & mask
            while key[slot, 0] >= 0 and (key[slot, 0] != node or key[slot, 1] != text):
                slot = (slot + 1) & mask
            if key[slot, 0] < 0:
                nodes += 1
                key[slot, 0], key[slot, 1] = node, text
                child[slot] = nodes
            node = child[slot]
        code[i] = node


ANALYSIS = Analysis(
    label="Kernel order",
    group="Kernels",
    title="Which kernels operators launch, one after the other",
    function=op_kernels,
    sentence=sentence,
    chart=Bars("device_ns", ("op",), "compute", names="op", measure="Device time"),
    requires=("launch calls of device events",),
)
