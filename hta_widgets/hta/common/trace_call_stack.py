"""HTA's `hta.common.trace_call_stack`: the calls of one thread as a tree that can be walked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pandas as pd

from hta_widgets.hta.common.call_forest import CallForest, CallStackNode, root_id
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable
from hta_widgets.hta.common.types import DeviceType, infer_device_type

__all__ = ["CallStackGraph", "CallStackIdentity", "CallStackNode", "DFSCallback", "DeviceType"]

NON_EXISTENT_NODE_INDEX = -2
NULL_NODE_INDEX = -1

DFSCallback = Callable[[int, CallStackNode], None]


class CallStackIdentity(NamedTuple):
    """Where the calls of a stack were recorded."""

    rank: int = -1
    pid: int = -1
    tid: int = -1


class CallStackGraph:
    """The calls of one host thread, and the kernels that they launched.

    Args:
        df: the thread's events, columns index, ts, dur, stream.
        identity: rank, process and thread.
        cpu_gpu_correlation: columns cpu_index, gpu_index: each kernel's launch.
        full_df: all events of the rank, which has the kernels. If it has the stack columns (see
            `CallGraph`), they are filled in.
        symbol_table: what the frames are encoded with.
        nodes: index -> node to add to; stacks that share it can be linked.
        use_existing_stack_columns: HTA's; stacks are always built from the times.
        save_call_stack_to_df: fill in the stack columns of `full_df`.

    Attributes:
        nodes: index -> node; the root has a negative index, ``root_index``.

    Raises:
        ValueError: `df` has no column index_correlation.
    """

    def __init__(
        self,
        df: pd.DataFrame,
        identity: CallStackIdentity,
        cpu_gpu_correlation: pd.DataFrame,
        full_df: pd.DataFrame,
        symbol_table: TraceSymbolTable,
        nodes: dict[int, CallStackNode] | None = None,
        use_existing_stack_columns: bool = True,
        save_call_stack_to_df: bool = True,
    ) -> None:
        if "index_correlation" not in df.columns:
            raise ValueError("the frame has no column index_correlation")
        self._describe(df, identity, cpu_gpu_correlation, full_df, symbol_table)
        self.root_index = root_id(identity.tid)
        host = df[df["stream"].eq(-1)].assign(pid=0, tid=0)
        launched = cpu_gpu_correlation.loc[cpu_gpu_correlation["cpu_index"].isin(host["index"]), "gpu_index"]
        kernels = full_df[full_df["index"].isin(launched) & full_df["stream"].ge(0)]
        kernels = kernels.assign(pid=0, tid=0)
        columns = [
            column for column in ("index", "ts", "dur", "end", "stream", "pid", "tid") if column in host
        ]
        rows = pd.concat([host[columns], kernels.reindex(columns=columns)]) if len(kernels) else host[columns]
        forest = CallForest(rows, None, cpu_gpu_correlation)
        built = forest.nodes([self.root_index])
        built.setdefault(self.root_index, CallStackNode())
        self._nodes: Callable[[], dict[int, CallStackNode]]
        shared = {} if nodes is None else nodes
        shared.update(built)
        self._nodes = lambda: shared
        if save_call_stack_to_df and "parent" in full_df.columns:
            stack = forest.columns([self.root_index])
            stack = stack.loc[stack.index.isin(full_df.index)]
            for column in stack.columns.intersection(full_df.columns):
                full_df.loc[stack.index, column] = stack[column].astype(full_df[column].dtype)

    @classmethod
    def _of_rank(
        cls,
        nodes: Callable[[], dict[int, CallStackNode]],
        root_index: int,
        df: pd.DataFrame,
        identity: CallStackIdentity,
        cpu_gpu_correlation: pd.DataFrame,
        full_df: pd.DataFrame,
        symbol_table: TraceSymbolTable,
    ) -> CallStackGraph:
        """A stack of a rank whose nodes are made together, when first asked for."""
        self = cls.__new__(cls)
        self._describe(df, identity, cpu_gpu_correlation, full_df, symbol_table)
        self.root_index = root_index
        self._nodes = nodes
        return self

    def _describe(
        self,
        df: pd.DataFrame,
        identity: CallStackIdentity,
        correlations: pd.DataFrame,
        full_df: pd.DataFrame,
        symbol_table: TraceSymbolTable,
    ) -> None:
        self.df, self.identity, self.full_df = df, identity, full_df
        self.correlations, self.symbol_table = correlations, symbol_table
        self.device_type = infer_device_type(df)

    def __repr__(self) -> str:
        return "\n".join(["CallStackGraph", *(f"    {key}: {node}" for key, node in self.nodes.items())])

    @property
    def nodes(self) -> dict[int, CallStackNode]:
        return self._nodes()

    def get_nodes(self) -> dict[int, CallStackNode]:
        return self.nodes

    def get_dataframe(self) -> pd.DataFrame:
        """The thread's events."""
        return self.df

    def get_parent(self, idx: int) -> int:
        """The caller of a node, -2 if there is no such node."""
        node = self.nodes.get(idx)
        return NON_EXISTENT_NODE_INDEX if node is None else node.parent

    def get_children(self, idx: int) -> list[int]:
        node = self.nodes.get(idx)
        return [] if node is None else node.children

    def get_root(self, idx: int) -> int:
        """The root above a node, -1 if there is no such node."""
        return self.get_path_to_root(idx)[-1] if idx in self.nodes else NULL_NODE_INDEX

    def get_path_to_root(self, idx: int) -> list[int]:
        """The node, its callers from the innermost on, and the root; empty for an unknown node."""
        nodes = self.nodes
        if idx not in nodes:
            return []
        path = [idx]
        while path[-1] >= 0 and path[-1] in nodes:
            path.append(nodes[path[-1]].parent)
        return path

    def get_paths_to_leaves(self, idx: int, include_cuda_kernel: bool = False) -> list[list[int]]:
        """Every path from a node down to a leaf; kernels belong to them only if asked for."""
        nodes = self.nodes
        paths: list[list[int]] = []
        if idx not in nodes or (self._is_gpu(idx) and not include_cuda_kernel):
            return paths
        waiting: list[list[int]] = [[idx]]
        while waiting:
            path = waiting.pop()
            below = [
                child for child in self._below(path[-1]) if include_cuda_kernel or not self._is_gpu(child)
            ]
            if below:
                waiting += [[*path, child] for child in reversed(below)]
            else:
                paths.append(path)
        return paths

    def get_leaf_nodes(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:
        """The last node of every path down from a node."""
        return [path[-1] for path in self.get_paths_to_leaves(idx, include_gpu_kernel)]

    def get_descendants(self, idx: int, include_gpu_kernel: bool = False) -> list[int]:
        """The node and everything below it, ascending; kernels only if asked for."""
        if idx not in self.nodes or (self._is_gpu(idx) and not include_gpu_kernel):
            return []
        found, waiting = [], [idx]
        while waiting:
            at = waiting.pop()
            found.append(at)
            waiting += [child for child in self._below(at) if include_gpu_kernel or not self._is_gpu(child)]
        return sorted(found)

    def _below(self, idx: int) -> Iterator[int]:
        return (child for child in self.nodes[idx].children if child in self.nodes)

    def _is_gpu(self, idx: int) -> bool:
        return self.nodes[idx].device == DeviceType.GPU

    def get_depth(self) -> pd.Series:
        """Depth by index of the thread's events."""
        index = self.df["index"]
        if "depth" in self.full_df:
            return self.full_df.loc[index, "depth"]
        nodes = self.nodes
        known = [int(idx) for idx in index if idx in nodes]
        return pd.Series([nodes[idx].depth for idx in known], index=known, dtype="Int16", name="depth")

    def dfs_traverse(self, enter_func: DFSCallback, exit_func: DFSCallback) -> None:
        """Walk down from the root: `enter_func(index, node)` before a node's children, `exit_func` after."""
        nodes = self.nodes
        waiting = [(self.root_index, False)]
        while waiting:
            idx, done = waiting.pop()
            if done:
                exit_func(idx, nodes[idx])
                continue
            enter_func(idx, nodes[idx])
            waiting.append((idx, True))
            waiting += [(child, False) for child in reversed(nodes[idx].children) if child in nodes]

    def update_parent_of_first_layer_nodes(self, new_parent_index: int) -> None:
        """Hang the top calls that lie within another call's time below that call.

        Raises:
            ValueError: there is no such call.
        """
        nodes, frame = self.nodes, self.full_df.set_index("index", drop=False)
        if new_parent_index not in nodes or new_parent_index not in frame.index:
            raise ValueError(f"no node {new_parent_index}")
        end = frame["ts"] + frame["dur"]
        first, last = frame["ts"][new_parent_index], end[new_parent_index]
        old = nodes[self.root_index]
        inside = frame["ts"].ge(first) & end.le(last)
        moved = [child for child in old.children if child != new_parent_index and inside.get(child, False)]
        new = nodes[new_parent_index]
        new.children += moved
        old.children = [child for child in old.children if child not in set(moved)]
        for child in moved:
            nodes[child].parent = new_parent_index
        self._measure_again(moved, new_parent_index)
        if not old.children:
            del nodes[self.root_index]
            self.root_index = self.get_root(new_parent_index)

    def _measure_again(self, moved: list[int], above: int) -> None:
        nodes = self.nodes
        waiting = list(moved)
        while waiting:
            idx = waiting.pop()
            nodes[idx].depth = nodes[nodes[idx].parent].depth + 1
            waiting += self._below(idx)
        for idx in self.get_path_to_root(above):
            if idx in nodes:
                nodes[idx].height = 1 + max((nodes[child].height for child in self._below(idx)), default=0)
