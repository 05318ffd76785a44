"""HTA's `hta.common.trace_call_graph`: call stacks of all threads of all ranks, with what they launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from hta_widgets.hta.common.call_forest import CallForest, CallStackNode, kernel_links, root_id
from hta_widgets.hta.common.trace_call_stack import CallStackGraph, CallStackIdentity
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = ["CallGraph", "CallStackGraph", "CallStackIdentity", "CallStackNode"]

_MAPPING = ["rank", "pid", "tid", "label", "stack_index", "stack_root", "count"]


class Frames(Protocol):
    """What a call graph needs of a trace: `common.trace.Trace` has it."""

    @property
    def symbol_table(self) -> TraceSymbolTable: ...

    def get_ranks(self) -> list[int]: ...

    def get_trace(self, rank: int) -> pd.DataFrame: ...

    def get_all_traces(self) -> Mapping[int, pd.DataFrame]: ...


class _OneFrame:
    """A frame that came without a trace."""

    def __init__(self, rank: int, df: pd.DataFrame, symbol_table: TraceSymbolTable) -> None:
        self.symbol_table = symbol_table
        self.traces = {rank: df}

    def get_ranks(self) -> list[int]:
        return list(self.traces)

    def get_trace(self, rank: int) -> pd.DataFrame:
        return self.traces[rank]

    def get_all_traces(self) -> dict[int, pd.DataFrame]:
        return self.traces


class CallGraph:
    """Call stacks by rank, process and thread.

    Building one adds the stack columns to the frames of `trace`: depth, height, parent, num_kernels (int64),
    kernel_dur_sum, kernel_span, first_kernel_start, last_kernel_end (float64 us, on the axis of ts). Where
    one thread runs the training steps and others run backward passes, these hang below `## backward ##`
    or, without it, the step that they lie in.

    Args:
        trace: the loaded trace.
        ranks: None or empty: all; ranks that are not loaded are ignored.

    Attributes:
        ranks: the ranks with stacks; ``trace_data``: the trace.
        call_stacks: one `CallStackGraph` per host thread.
        rank_to_stacks: rank -> identity -> stack; ``rank_to_nodes``: rank -> index -> node.
        mapping: one row per stack: rank, pid, tid, label ("main": has training steps, "bwd": autograd's, else
            the first event's name), stack_index, stack_root (negative id), count (of stacks under that
            root so far).

    Raises:
        ValueError: no rank is left.
    """

    def __init__(self, trace: Frames, ranks: Sequence[int] | None = None) -> None:
        loaded = trace.get_ranks()
        self.trace_data = trace
        self.ranks = [rank for rank in ranks if rank in loaded] if ranks else list(loaded)
        if not self.ranks:
            raise ValueError(f"no rank was found for the trace: it has {loaded}")
        self.call_stacks: list[CallStackGraph] = []
        self.rank_to_stacks: dict[int, dict[CallStackIdentity, CallStackGraph]] = {}
        self._nodes: dict[int, Callable[[], dict[int, CallStackNode]]] = {}
        rows: list[tuple[Any, ...]] = []
        for rank in self.ranks:
            rows += self._add_rank(rank)
        self.mapping = pd.DataFrame(rows, columns=_MAPPING)
        self._rank = self.ranks[0]

    @staticmethod
    def from_dataframe(
        df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None, rank: int = -1
    ) -> CallGraph:
        """The call graph of one rank's frame, which stays as it is.

        Args:
            symbol_table: what name and cat are encoded with; None: they hold text.
        """
        df = df.copy()
        if symbol_table is None:
            symbol_table = TraceSymbolTable.create_from_df(df)
            symbol_table.encode_df(df)
        return CallGraph(_OneFrame(rank, df, symbol_table))

    @property
    def rank_to_nodes(self) -> dict[int, dict[int, CallStackNode]]:
        return {rank: nodes() for rank, nodes in self._nodes.items()}

    def _add_rank(self, rank: int) -> list[tuple[Any, ...]]:
        df, symbols = self.trace_data.get_trace(rank), self.trace_data.symbol_table
        links = kernel_links(df)
        forest = CallForest(df, symbols, links)
        roots: list[int] = []
        for _, tid in forest.threads:
            # HTA's -|tid|, unless it means something else: a root there already, "none" or "unknown".
            roots.append(root_id(tid, (-1, -2, *roots)))
        for column, values in forest.columns(roots).reindex(df["index"]).items():
            df[str(column)] = values.to_numpy()
        nodes = self._nodes[rank] = _once(lambda: forest.nodes(roots))
        stacks = self.rank_to_stacks[rank] = {}
        labels = _labels(forest, df, symbols)
        under = forest.top_threads().tolist()
        of_thread = pd.Series(forest.thread, index=forest.index).reindex(df["index"]).to_numpy()
        rows: list[tuple[Any, ...]] = []
        seen: dict[int, int] = {}
        for number, (pid, tid) in enumerate(forest.threads):
            identity = CallStackIdentity(rank, pid, tid)  # type: ignore[arg-type]
            root = roots[under[number]]
            stack = CallStackGraph._of_rank(
                nodes, root, df[of_thread == number], identity, links, df, symbols
            )
            seen[root] = seen.get(root, 0) + 1
            rows.append((rank, pid, tid, labels[number], len(self.call_stacks), root, seen[root]))
            stacks[identity] = stack
            self.call_stacks.append(stack)
        return rows

    def get_call_stacks(
        self,
        rank: int | None = None,
        pid: int | None = None,
        tid: int | None = None,
        stack_index: int | None = None,
    ) -> Iterator[CallStackGraph]:
        """The stacks with the given rank, process, thread and number; None: any."""
        chosen = self.mapping
        for column, value in (("rank", rank), ("pid", pid), ("tid", tid), ("stack_index", stack_index)):
            if value is not None:
                chosen = chosen[chosen[column].eq(value)]
        return (self.call_stacks[number] for number in chosen["stack_index"])

    def _frame(self, rank: int | None) -> pd.DataFrame:
        """The frame of a rank; None: of the rank asked about last."""
        if rank is not None:
            if rank not in self.ranks:
                raise ValueError(f"no rank {rank}: this call graph has {self.ranks}")
            self._rank = rank
        return self.trace_data.get_trace(self._rank)

    def get_node_attributes(self, index: int, rank: int | None = None) -> pd.Series:
        """The row of an event.

        Args:
            index: the event's `index`.
            rank: None: the rank asked about last, at first the first.

        Raises:
            ValueError: there is no such event or rank.
        """
        df = self._frame(rank)
        found = df[df["index"].eq(index)]
        if found.empty:
            raise ValueError(f"no event {index} on rank {self._rank}")
        return found.iloc[0]

    def _call_of(self, index: int, rank: int | None) -> tuple[int, bool, CallStackGraph]:
        """(call, whether the event is a kernel of it, its stack) of an event."""
        node = self.get_node_attributes(index, rank)
        is_kernel = bool(node["stream"] >= 0)
        if is_kernel:
            if node["parent"] < 0:
                raise ValueError(f"event {index} on rank {self._rank} has no launch")
            node = self.get_node_attributes(int(node["parent"]))
        found = next(self.get_call_stacks(self._rank, node["pid"], node["tid"]), None)
        if found is None:
            raise ValueError(f"event {index} on rank {self._rank} is on no call stack")
        return int(node["index"]), is_kernel, found

    def get_csg_of_node(self, index: int, rank: int | None = None) -> CallStackGraph:
        """The stack of the thread that an event ran on; for a kernel that of its launch.

        Raises:
            ValueError: there is no such event or rank, or the event is on no stack.
        """
        return self._call_of(index, rank)[2]

    def get_stack_of_node(
        self, index: int, rank: int | None = None, skip_ancestors: bool = False
    ) -> pd.DataFrame:
        """The rows of an event, all it called and launched, and its callers unless `skip_ancestors`; by ts.

        Raises:
            ValueError: as `get_csg_of_node`.
        """
        call, is_kernel, stack = self._call_of(index, rank)
        chosen = {index} if is_kernel else set(stack.get_descendants(call, include_gpu_kernel=True))
        if not skip_ancestors:
            chosen.update(stack.get_path_to_root(call))
        df = self._frame(None)
        return df[df["index"].isin(chosen)].sort_values(["ts", "depth", "index"]).copy()

    def get_gpu_kernels(self, rank: int | None = None) -> pd.DataFrame:
        """The rows on a stream."""
        df = self._frame(rank)
        return df[df["stream"].ne(-1)]


def _once(make: Callable[[], dict[int, CallStackNode]]) -> Callable[[], dict[int, CallStackNode]]:
    made: list[dict[int, CallStackNode]] = []

    def get() -> dict[int, CallStackNode]:
        if not made:
            made.append(make())
        return made[0]

    return get


def _labels(forest: CallForest, df: pd.DataFrame, symbols: TraceSymbolTable) -> list[str]:
    if "name" not in df or not len(symbols.sym_table):
        return ["empty"] * len(forest.threads)
    name = df.set_index("index")["name"].reindex(forest.index).to_numpy(np.int64)
    step = np.array([text.startswith("ProfilerStep#") for text in symbols.sym_table])[name]
    autograd = np.array(["autograd::" in text for text in symbols.sym_table])[name]
    calls = forest.thread >= 0
    threads, first = np.unique(np.where(calls, forest.thread, len(forest.threads)), return_index=True)
    labels = [symbols.sym_table[name[row]] for row in first[threads < len(forest.threads)]]
    for mask, label in ((autograd, "bwd"), (step, "main")):
        for thread in np.unique(forest.thread[mask & calls]).tolist():
            labels[thread] = label
    return labels
