"""HTA's older `hta.common.call_stack`: stacks without kernels, whose roots all have the index -1.

New code uses `common.trace_call_graph`, which this is a variant of.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.hta.common import trace_call_stack
from hta_widgets.hta.common.call_forest import CallForest
from hta_widgets.hta.common.trace_call_graph import Frames
from hta_widgets.hta.common.trace_call_stack import CallStackIdentity
from hta_widgets.hta.common.types import DeviceType, infer_device_type

__all__ = ["CallGraph", "CallStackGraph", "CallStackIdentity", "CallStackNode", "DeviceType"]

NON_EXISTENT_NODE_INDEX = -2
NULL_NODE_INDEX = -1

_NO_LINKS = pd.DataFrame({"cpu_index": np.empty(0, np.int64), "gpu_index": np.empty(0, np.int64)})


class CallStackNode(NamedTuple):
    """A call: `index` of its caller (-1 at the top), its depth, `index` of what it called."""

    parent: int = NULL_NODE_INDEX
    depth: int = -1
    children: list[int] = []  # noqa: RUF012 (HTA's default; a NamedTuple has no factories)


class CallStackGraph(trace_call_stack.CallStackGraph):
    """The calls of one thread; a device's stream has none.

    Args:
        df: the thread's events, columns index, ts, dur, stream, index_correlation.
        identity: rank, process and thread.
        filter_func: frame -> the part of it to look at.

    Attributes:
        nodes: index -> node; -1 is the root. ``device_type``: CPU, GPU or (mixed) UNKNOWN.

    Raises:
        ValueError: `df` has no column index_correlation.
    """

    def __init__(
        self,
        df: pd.DataFrame,
        identity: CallStackIdentity,
        filter_func: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    ) -> None:
        if "index_correlation" not in df.columns:
            raise ValueError("the frame has no column index_correlation")
        self.df, self.full_df, self.identity = df, df, identity
        self.device_type = infer_device_type(df)
        self.correlations = df["index_correlation"]  # type: ignore[assignment]
        self.filter_func = filter_func
        self.root_index = NULL_NODE_INDEX
        nodes: dict[Any, Any] = {}
        if self.device_type != DeviceType.GPU:
            chosen = df if filter_func is None else filter_func(df)
            columns = [column for column in ("index", "ts", "dur", "end") if column in chosen]
            forest = CallForest(chosen[columns].assign(stream=-1, pid=0, tid=0), None, _NO_LINKS)
            found = {NULL_NODE_INDEX: trace_call_stack.CallStackNode(), **forest.nodes([NULL_NODE_INDEX])}
            nodes = {
                idx: CallStackNode(node.parent, node.depth, node.children) for idx, node in found.items()
            }
        self._nodes = lambda: nodes

    def _is_gpu(self, idx: int) -> bool:
        return False

    def get_depth(self) -> pd.Series:
        """Depth by index of the thread's events; -1 for those of a device."""
        if self.device_type == DeviceType.GPU:
            return pd.Series(-1, index=self.df.index, name="depth")
        depths = {idx: node.depth for idx, node in self.nodes.items() if idx >= 0}
        return pd.Series(depths, name="depth", dtype=np.int64)


class CallGraph:
    """The stacks of all threads; building one adds the columns depth and parent to the frames of `trace`.

    With HTA_DISABLE_CG_DEPTH=1 in the environment only parent, as in HTA.

    Args:
        trace: the loaded trace.
        ranks: None: all.
        filter_func: frame -> the part of it to look at, thread by thread.
        remapped_tids: rank -> thread -> the thread to count it to, e.g. the backward thread to the main one.
        pre_process_trace_data: first cut Python calls that end after their caller (see
            `constrain_child_time_withinin_parent`).

    Attributes:
        call_stacks: one `CallStackGraph` per thread; ``mapping``: csg_index (position there) by (rank,
        pid, tid).
    """

    def __init__(
        self,
        trace: Frames,
        ranks: Sequence[int] | None = None,
        filter_func: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
        remapped_tids: Mapping[int, Mapping[int, int]] | None = None,
        pre_process_trace_data: bool = False,
    ) -> None:
        self.trace_data = trace
        self.pre_process_trace_data = pre_process_trace_data
        self.call_stacks: list[CallStackGraph] = []
        rows: list[tuple[Any, ...]] = []
        for rank in trace.get_ranks() if ranks is None else ranks:
            df = trace.get_trace(rank)
            if pre_process_trace_data:
                self.constrain_child_time_withinin_parent(df)
            first = len(self.call_stacks)
            for (pid, tid), thread in _by_thread(df, (remapped_tids or {}).get(rank, {})):
                rows.append((rank, pid, tid, len(self.call_stacks)))
                self.call_stacks.append(
                    CallStackGraph(thread, CallStackIdentity(rank, pid, tid), filter_func)
                )
            _add_columns(df, self.call_stacks[first:])
        mapping = pd.DataFrame(rows, columns=["rank", "pid", "tid", "csg_index"])
        self.mapping = mapping.set_index(["rank", "pid", "tid"])

    def get_stack_of_node(self, node_id: int, rank: int, skip_ancestors: bool = False) -> pd.DataFrame:
        """The leaves below an event and their kernels, and its callers unless `skip_ancestors`.

        For a kernel the stack of its launch.

        Raises:
            ValueError: there is no such event, or it is a kernel without a launch.
        """
        df = self.trace_data.get_trace(rank).set_index("index", drop=False)
        if node_id not in df.index:
            raise ValueError(f"no event {node_id} on rank {rank}")
        on_device = set(df.index[df["stream"].ge(0)])
        if node_id in on_device:
            launch = int(df["index_correlation"][node_id])
            if launch not in df.index or launch in on_device:
                raise ValueError(f"event {node_id} on rank {rank} has no launch")
            return self.get_stack_of_node(launch, rank, skip_ancestors)
        stack = next(
            stack for stack in self.call_stacks if stack.identity.rank == rank and node_id in stack.nodes
        )
        chosen = stack.get_leaf_nodes(node_id)
        kernels = df.loc[chosen, "index_correlation"]
        if not skip_ancestors:
            chosen += [idx for idx in stack.get_path_to_root(node_id) if idx >= 0]
        return df.loc[list(dict.fromkeys([*chosen, *kernels[kernels.isin(df.index)]]))]

    def constrain_child_time_withinin_parent(self, df: pd.DataFrame) -> None:
        """Cut each Python call at the end of its caller (python_parent_id) on its thread, in place."""
        if not {"python_id", "python_parent_id"} <= set(df.columns):
            return
        python = np.flatnonzero(df["python_id"].to_numpy() > -1)
        ids = df["python_id"].to_numpy()[python]
        at = pd.Series(np.arange(len(ids)), index=ids)
        at = at[~at.index.duplicated(keep="last")]
        caller = at.reindex(df["python_parent_id"].to_numpy()[python]).fillna(-1).to_numpy(np.int64)
        tid = df["tid"].to_numpy()[python]
        caller[tid[caller] != tid] = -1
        calls = caller >= 0
        ts = df["ts"].to_numpy(np.float64)[python]
        dur = df["dur"].to_numpy(np.float64)[python]
        # Once per level of the stack: what is cut cuts what it calls.
        while True:
            most = np.maximum(ts[caller] + dur[caller] - ts, 0.0)
            cut = calls & (dur > most)
            if not cut.any():
                break
            dur[cut] = most[cut]
        whole = df["dur"].to_numpy().copy()
        whole[python] = dur
        df["dur"] = whole


def _by_thread(df: pd.DataFrame, remapped: Mapping[int, int]) -> Any:
    tid = df["tid"].map(dict(remapped)).fillna(df["tid"]).astype(df["tid"].dtype) if remapped else df["tid"]
    for (pid, thread), rows in df.assign(tid=tid).groupby(["pid", "tid"]):
        on_stream = rows["stream"].ge(0)
        # A stream's annotations and waits are no work of it.
        yield (pid, thread), rows[on_stream] if on_stream.any() else rows


def _add_columns(df: pd.DataFrame, stacks: Sequence[CallStackGraph]) -> None:
    depth = {idx: node.depth for stack in stacks for idx, node in stack.nodes.items() if idx >= 0}
    parent = {idx: node.parent for stack in stacks for idx, node in stack.nodes.items() if idx >= 0}
    if os.environ.get("HTA_DISABLE_CG_DEPTH") != "1":
        df["depth"] = df["index"].map(depth).fillna(-1).astype(np.int64)
    of_calls = df["index"].map(parent).fillna(-1).astype(np.int64)
    df["parent"] = of_calls.where(df["stream"].lt(0), df["index_correlation"])
