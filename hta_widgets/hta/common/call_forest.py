"""The call tree of an HTA-shaped frame: `analysis.calls.tree` on its columns, answers in HTA's terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.nesting import nest
from hta_widgets.analysis.calls.tree import CallTree, adopt_backward, measure
from hta_widgets.arrays import Bool, Int64
from hta_widgets.hta.common.event_links import get_cpu_gpu_correlation
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable
from hta_widgets.hta.common.types import DeviceType
from hta_widgets.hta.methods.conventions import microseconds
from hta_widgets.trace.classify import CATEGORIES, EventClass, category_of, classify_events

# Of calls with equal times the caller is the one that usually calls; then the order of the file.
_CALLER_FIRST = {EventClass.PYTHON: 0, EventClass.ANNOTATION: 1, EventClass.HOST_OP: 2, EventClass.RUNTIME: 3}


@dataclass
class CallStackNode:
    """A call, a kernel, or the root of a stack."""

    parent: int = -1  # `index` of the caller, for a kernel of its launch; the root's id for top calls
    depth: int = -1  # -1 for a root, 0 for top calls, one more per caller
    height: int = -1  # 0 for a kernel, at least 1 for a call, one more than the highest child
    device: DeviceType = DeviceType.CPU  # GPU for kernels
    children: list[int] = field(default_factory=list)  # `index` of what it called or launched, by start


class CallForest:
    """The stacks of all threads in a frame.

    Args:
        df: columns index, ts, dur (us), stream (-1 on the host), pid, tid; optional: end, name, cat,
        correlation.
        symbols: what name and cat are encoded with; without it categories and steps are unknown.
        links: columns cpu_index, gpu_index: each kernel's launch (see `kernel_links`).
        merge_backward: hang backward threads below the step that they belong to.

    Attributes:
        index: `index` of each row; ``threads``: (pid, tid) of each stack; ``thread``: stack of each row, -1
            for rows that are no calls; ``tree``: who called whom, by row.
    """

    def __init__(
        self,
        df: pd.DataFrame,
        symbols: TraceSymbolTable | None,
        links: pd.DataFrame,
        merge_backward: bool = True,
    ) -> None:
        df = df.iloc[np.argsort(df["index"].to_numpy(), kind="stable")]
        self.index: Int64 = df["index"].to_numpy(np.int64)
        # Times since the epoch do not fit into ns as floats: the axis starts at the first event.
        self.zero = float(np.floor(df["ts"].min())) if len(df) else 0.0
        start, end = _times(df, self.zero)
        call, waits, tie = _calls(df, symbols)
        lanes = df.loc[call].groupby(["pid", "tid"], sort=True).ngroup()
        self.thread: Int64 = np.full(len(df), -1, np.int64)
        self.thread[call] = lanes.to_numpy()
        first = ~lanes.duplicated().to_numpy()
        pairs = df.loc[call, ["pid", "tid"]][first].iloc[np.argsort(lanes.to_numpy()[first])]
        self.threads: list[tuple[object, object]] = list(pairs.itertuples(index=False, name=None))
        parent = nest(start, end, self.thread, tie)
        if merge_backward and symbols is not None and "name" in df:
            name = df["name"].to_numpy(np.int32)
            parent = adopt_backward(parent, start, end, self.thread, name, symbols.sym_table)
        kernel, launch = self.rows(links["gpu_index"]), self.rows(links["cpu_index"])
        usable = (kernel >= 0) & (launch >= 0) & ~call[kernel] & ~waits[kernel] & call[launch]
        self.is_kernel: Bool = np.zeros(len(df), np.bool_)
        self.is_kernel[kernel[usable]] = True
        parent[kernel[usable]] = launch[usable]
        # A kernel need not nest: its own duration is exact.
        dur = np.rint(df["dur"].to_numpy(np.float64) * 1000).astype(np.int64)
        end = np.where(self.is_kernel, start + dur, end)
        self.tree: CallTree = measure(start, end, self.thread, parent, self.is_kernel)

    def rows(self, index: Iterable[int]) -> Int64:
        """Position of each event, -1 for events that the frame does not have."""
        wanted = np.asarray(index, np.int64)
        at = np.searchsorted(self.index, wanted)
        at = np.minimum(at, max(len(self.index) - 1, 0))
        if not len(self.index):
            return np.full(len(wanted), -1, np.int64)
        return np.where(self.index[at] == wanted, at, -1)

    def top_threads(self) -> Int64:
        """For each stack the one whose root its first call is under: its own, unless it was merged."""
        calls = self.tree.order[~self.is_kernel[self.tree.order]]
        under = np.arange(len(self.threads), dtype=np.int64)
        own = np.unique(self.thread[calls[self.tree.parent[calls] < 0]])
        merged = np.setdiff1d(under, own)
        if len(merged):
            guests = calls[np.isin(self.thread[calls], merged)]
            # By start: the first call of a merged thread decides, should several threads have adopted it.
            under[self.thread[guests[::-1]]] = self.thread[self.tree.root[guests[::-1]]]
        return under

    def parents(self, roots: Sequence[int]) -> Int64:
        """`index` of each row's caller: the stack's root for top calls, -1 outside. `roots`: id by stack."""
        parent = self.tree.parent
        top = np.append(np.asarray(roots, np.int64), -1)[self.thread]
        if not len(self.index):
            return top
        return np.where(parent >= 0, self.index[parent], np.where(self.tree.depth == 0, top, -1))

    def columns(self, roots: Sequence[int]) -> pd.DataFrame:
        """HTA's stack columns by `index`: int64, times float64 us; 0, first and last -1 without kernels."""
        tree = self.tree
        launching = tree.kernels > 0
        return pd.DataFrame(
            {
                "depth": tree.depth.astype(np.int64),
                "height": tree.height.astype(np.int64),
                "parent": self.parents(roots),
                "num_kernels": tree.kernels,
                "kernel_dur_sum": microseconds(tree.kernel_dur_sum_ns),
                "kernel_span": microseconds(tree.kernel_span_ns),
                "first_kernel_start": np.where(
                    launching, microseconds(tree.first_kernel_start_ns) + self.zero, -1.0
                ),
                "last_kernel_end": np.where(
                    launching, microseconds(tree.last_kernel_end_ns) + self.zero, -1.0
                ),
            },
            index=self.index,
        )

    def nodes(self, roots: Sequence[int]) -> dict[int, CallStackNode]:
        """A node for each row of the forest and each root that has children, by `index`."""
        order = self.tree.order
        nodes: dict[int, CallStackNode] = {}
        ids, parents = self.index[order].tolist(), self.parents(roots)[order].tolist()
        depths, heights = self.tree.depth[order].tolist(), self.tree.height[order].tolist()
        kinds = [DeviceType.CPU, DeviceType.GPU]
        devices = [kinds[kernel] for kernel in self.is_kernel[order].tolist()]
        for number, parent, depth, height, device in zip(ids, parents, depths, heights, devices, strict=True):
            nodes[number] = CallStackNode(parent, depth, height, device)
            caller = nodes.get(parent)
            if caller is None or depth == 0:
                caller = nodes.setdefault(parent, CallStackNode(-1, -1, 1))
                caller.height = max(caller.height, height + 1)
            caller.children.append(number)
        return nodes


def kernel_links(df: pd.DataFrame) -> pd.DataFrame:
    """gpu_index and cpu_index of each device row whose launch is in the frame. Stream 0 is a stream."""
    links = get_cpu_gpu_correlation(df).astype(np.int64)
    if "correlation" in df:
        # A frame of HTA says 0 both for event 0 and for a partner that is not there.
        ids = df.set_index("index")["correlation"]
        links = links[
            ids.reindex(links["cpu_index"]).to_numpy() == ids.reindex(links["gpu_index"]).to_numpy()
        ]
    return links


def root_id(tid: object, taken: Iterable[int] = ()) -> int:
    """Id of the root of a thread's stack: -|tid|, or a free negative number if that is none or taken."""
    used = set(taken)
    number = -abs(int(tid)) if isinstance(tid, int | np.integer) else 0
    return number if number < 0 and number not in used else min([*used, -2]) - 1


def _times(df: pd.DataFrame, zero: float) -> tuple[Int64, Int64]:
    """Start and end in ns since `zero` us."""
    ts, dur = df["ts"].to_numpy(np.float64), np.maximum(df["dur"].to_numpy(np.float64), 0.0)
    end = ts + dur
    if "end" in df:
        # A rounded end keeps calls inside their callers, a rounded sum may not; HTA's may be on another axis.
        recorded_end = df["end"].to_numpy(np.float64)
        end = np.where(np.abs(recorded_end - end) < 1.0, np.maximum(recorded_end, ts), end)
    return np.rint((ts - zero) * 1000).astype(np.int64), np.rint((end - zero) * 1000).astype(np.int64)


def _calls(df: pd.DataFrame, symbols: TraceSymbolTable | None) -> tuple[Bool, Bool, Int64]:
    """The rows that are calls of a host thread; those that are waits of a device; order among equal times."""
    host = ~df["stream"].ge(0).to_numpy()
    nothing = np.zeros(len(df), np.bool_)
    if symbols is None or "cat" not in df or not len(symbols.sym_table):
        return host, nothing, np.zeros(len(df), np.int64)
    elsewhere, tie = [], []
    for text in symbols.sym_table:
        category = category_of(text)
        # Known categories that are neither work nor calls: counter ranges, the profiler's own span.
        no_call = text in CATEGORIES and category.event_class in (EventClass.SYNC, EventClass.OTHER)
        elsewhere.append(category.device or no_call or text.startswith("gpu_"))
        tie.append(_CALLER_FIRST.get(category.event_class, len(_CALLER_FIRST)))
    cat = df["cat"].to_numpy(np.int32)
    name = df["name"].to_numpy(np.int32) if "name" in df else np.zeros(len(df), np.int32)
    waits = classify_events(cat, symbols.sym_table, name, symbols.sym_table)[0] == EventClass.SYNC
    return host & ~np.array(elsewhere)[cat], waits, np.array(tie, np.int64)[cat]
