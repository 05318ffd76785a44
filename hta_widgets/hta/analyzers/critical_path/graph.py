"""The critical path graph as a networkx graph with HTA's attributes and methods."""

from __future__ import annotations

import logging
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.hta.analyzers.critical_path.longest import longest_path
from hta_widgets.hta.analyzers.critical_path.model import (
    NO_EVENT,
    SYNC,
    BoundType,
    CPEdge,
    CPEdgeType,
    CPNode,
    Edges,
    Nodes,
)
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.methods.names import shorten_name
from hta_widgets.hta.utils.utils import is_comm_kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

try:
    import networkx as nx
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "HTA's critical path is a graph of the package networkx, which is not installed: "
        "pip install 'hta_widgets[hta]'. hta_widgets.analysis.critical_path needs no such package.",
        name="networkx",
    ) from error


logger = logging.getLogger(__name__)

_BOUND_BY_TYPE = {
    CPEdgeType.KERNEL_KERNEL_DELAY: BoundType.GPU_KERNEL_KERNEL_OVERHEAD.value,
    CPEdgeType.KERNEL_LAUNCH_DELAY: BoundType.GPU_KERNEL_LAUNCH_OVERHEAD.value,
    CPEdgeType.DEPENDENCY: "",
    CPEdgeType.SYNC_DEPENDENCY: "",
}


class CPGraph(nx.DiGraph):  # type: ignore[misc]
    """Causes and effects among the events of one rank; nodes are numbers, positions in `node_list`.

    Edges carry `weight` (us) and `object`, a `CPEdge`. Change weights, or add and remove edges, and call
    `critical_path` again to see what would happen.

    Attributes:
        rank: the rank. ``trace_df``, ``full_trace_df``: its events as HTA's frame, in the graph's window and
            all; ``symbol_table``: texts of their codes.
        node_list: a `CPNode` per number; only those with edges are in the graph.
        event_to_start_node_map, event_to_end_node_map: event id -> node.
        edge_to_event_map: (begin, end) -> id of the event that the time of the edge is attributed to; -1: the
            thread outside all events.
        critical_path_nodes, critical_path_events_set: the longest path, after `critical_path`.
    """

    def __init__(self, incoming_graph_data: Any = None, **attr: Any) -> None:
        self._arrays: Edges | None = None
        numbers, marks = np.empty(0, np.int64), np.empty(0, np.bool_)
        self._nodes = Nodes(numbers, numbers, marks, marks)
        self._events = np.empty(0, np.int64)
        self._rank_trace: RankTrace | None = None
        self.t_full: Trace | None = None
        self.rank = -1
        self.data_load_events: list[str] | None = None
        self.strict = False
        self.critical_path_nodes: list[int] = []
        self.critical_path_events_set: set[int] = set()
        self._critical_edges: set[CPEdge] | None = None
        super().__init__(incoming_graph_data, **attr)

    @classmethod
    def from_arrays(
        cls,
        t_full: Trace,
        rank_trace: RankTrace,
        events: np.ndarray[Any, np.dtype[np.int64]],
        nodes: Nodes,
        edges: Edges,
        data_load_events: Sequence[str] | None,
        strict: bool = False,
    ) -> CPGraph:
        """The graph of `nodes` and `edges` among `events` (ids) of a rank."""
        graph = cls()
        graph.t_full, graph._rank_trace, graph.rank = t_full, rank_trace, rank_trace.rank
        graph._events, graph._nodes = events, nodes
        graph._arrays = edges
        for name in ("_adj", "_pred", "_node"):  # empty; without them, the first read builds the real ones
            del graph.__dict__[name]
        graph.data_load_events = list(data_load_events) if data_load_events is not None else None
        graph.strict = strict
        return graph

    # -- networkx' dictionaries, built on first read: a path can be found without them -------------

    @cached_property
    def _filled(self) -> Any:
        edges, graph = self._arrays, nx.DiGraph()
        if edges is not None:
            graph.add_edges_from(
                (edge.begin, edge.end, {"weight": edge.weight, "object": edge})
                for edge in map(edges.edge, range(len(edges.begin)))
            )
        return graph

    @cached_property
    def _adj(self) -> Any:
        return self._filled._adj

    @cached_property
    def _pred(self) -> Any:
        return self._filled._pred

    @cached_property
    def _node(self) -> Any:
        return self._filled._node

    @property
    def _succ(self) -> Any:
        return self._adj

    @_succ.setter
    def _succ(self, value: Any) -> None:
        self._adj = value

    @property
    def _untouched(self) -> Edges | None:
        """The edges, if nobody has seen the dictionaries, so that nobody can have changed them."""
        return None if "_filled" in self.__dict__ else self._arrays

    # -- the trace ---------------------------------------------------------------------------------

    @property
    def rank_trace(self) -> RankTrace:
        """The rank's events as we hold them."""
        assert self._rank_trace is not None, "a graph made by networkx knows no trace"
        return self._rank_trace

    @cached_property
    def full_trace_df(self) -> pd.DataFrame:
        assert self.t_full is not None, "a graph made by networkx knows no trace"
        return self.t_full.get_trace(self.rank)

    @cached_property
    def trace_df(self) -> pd.DataFrame:
        return self.full_trace_df[self.full_trace_df["index"].isin(self._events)].copy()

    @property
    def symbol_table(self) -> Any:
        assert self.t_full is not None, "a graph made by networkx knows no trace"
        return self.t_full.symbol_table

    # -- nodes and edges ---------------------------------------------------------------------------

    @cached_property
    def node_list(self) -> list[CPNode]:
        nodes = self._nodes
        columns = (
            nodes.event.tolist(),
            (nodes.time / 1000.0).tolist(),
            nodes.is_start.tolist(),
            nodes.is_blocking.tolist(),
        )
        return [CPNode(number, *item) for number, item in enumerate(zip(*columns, strict=True))]

    def _numbers(self, starts: bool) -> dict[int, int]:
        numbers = np.flatnonzero(self._nodes.is_start == starts)
        return dict(zip(self._nodes.event[numbers].tolist(), numbers.tolist(), strict=True))

    @cached_property
    def event_to_start_node_map(self) -> dict[int, int]:
        return self._numbers(True)

    @cached_property
    def event_to_end_node_map(self) -> dict[int, int]:
        return self._numbers(False)

    @cached_property
    def edge_to_event_map(self) -> dict[tuple[int, int], int]:
        if self._arrays is None:
            return {}
        attributed = np.flatnonzero(self._arrays.event != NO_EVENT)
        pairs = zip(
            self._arrays.begin[attributed].tolist(), self._arrays.end[attributed].tolist(), strict=True
        )
        return dict(zip(pairs, self._arrays.event[attributed].tolist(), strict=True))

    @cached_property
    def _edges_of_event(self) -> dict[int, list[CPEdge]]:
        found: dict[int, list[CPEdge]] = {}
        for (begin, end), event in self.edge_to_event_map.items():
            found.setdefault(event, []).append(self.edges[begin, end]["object"])
        return found

    def get_nodes_for_event(self, ev_id: int) -> tuple[CPNode | None, CPNode | None]:
        """Start and end node of an event; (None, None) if it has none."""
        start, end = self.event_to_start_node_map.get(ev_id), self.event_to_end_node_map.get(ev_id)
        return (
            None if start is None else self.node_list[start],
            None if end is None else self.node_list[end],
        )

    def get_events_for_edge(self, edge: CPEdge) -> tuple[int, int]:
        """Ids of the events that an edge begins and ends at."""
        return int(self._nodes.event[edge.begin]), int(self._nodes.event[edge.end])

    def get_event_attribution_for_edge(self, edge: CPEdge) -> int | None:
        """Id of the event that the time of an edge is attributed to; None where there is none."""
        return self.edge_to_event_map.get((edge.begin, edge.end))

    def get_edges_attributed_to_event(self, ev_idx: int) -> list[CPEdge]:
        """The edges whose time is attributed to an event."""
        return self._edges_of_event.get(ev_idx, [])

    # -- the path ----------------------------------------------------------------------------------

    def critical_path(self) -> bool:
        """Find the longest path, with the weights as they are now; False if the graph is not sound.

        Not sound are: a cycle, synchronisation between events of one stream, and, if
        CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS=1 when it was built, an edge of more than 1 us below zero.
        """
        if not self._sound():
            return False
        edges = self._untouched
        if edges is not None:
            path = longest_path(edges.begin, edges.end, edges.weight)
            found = None if path is None else path.tolist()
        else:
            try:
                found = nx.dag_longest_path(self, weight="weight")
            except nx.NetworkXUnfeasible:
                found = None
        if found is None or len(found) < 2:
            logger.error("The critical path graph has a cycle or no edge.")
            return False
        self.mark_path(found)
        return True

    def mark_path(self, nodes: Sequence[int]) -> None:
        """Make `nodes` the critical path; they follow each other along edges."""
        self.critical_path_nodes = [int(node) for node in nodes]
        self.critical_path_events_set = {int(event) for event in self._nodes.event[self.critical_path_nodes]}
        self._critical_edges = None

    @property
    def critical_path_edges_set(self) -> set[CPEdge]:
        """The edges of the path."""
        if self._critical_edges is None:
            self._critical_edges = {edge for edge, _ in self._on_path()}
        return self._critical_edges

    def _sound(self) -> bool:
        edges = self._arrays
        if edges is None:
            return True
        if self.strict and (edges.weight < -1).any():
            logger.error("%d edges begin after they end.", int((edges.weight < -1).sum()))
            return False
        sync = edges.type == SYNC
        ends = self._row_of(self._nodes.event[np.stack([edges.begin[sync], edges.end[sync]])])
        stream, gpu = self.rank_trace.stream[ends], self.rank_trace.device[ends]
        within = self.rank_trace.is_device[ends].all(axis=0) & (stream[0] == stream[1]) & (gpu[0] == gpu[1])
        if within.any():
            logger.error("%d synchronisations are between events of one stream.", int(within.sum()))
            return False
        return True

    def _row_of(self, events: Any) -> Any:
        return np.searchsorted(self.rank_trace.event_id, events)

    def _on_path(self) -> Iterator[tuple[CPEdge, float]]:
        """The edges of the path in order, each with the weight it has now."""
        pairs = list(zip(self.critical_path_nodes[:-1], self.critical_path_nodes[1:], strict=True))
        edges = self._untouched
        if edges is None:
            for begin, end in pairs:
                data = self.edges[begin, end]
                weight = data.get("weight", 0.0)
                yield data.get("object") or CPEdge(begin, end, CPEdgeType.DEPENDENCY, weight), weight
            return
        count = len(self._nodes.event)
        key = edges.begin * count + edges.end
        order = np.argsort(key)
        wanted = np.array([begin * count + end for begin, end in pairs], np.int64)
        for at in order[np.searchsorted(key[order], wanted)].tolist():
            edge = edges.edge(at)
            yield edge, edge.weight

    def get_critical_path_breakdown(self) -> pd.DataFrame | None:
        """One row per edge of the path, in its order; None without a path.

        Columns: event_idx (id of the event the time is attributed to, NaN for none), duration (us, the weight
        as it is now), type, then of that event s_name (short name), cat, pid, tid, stream, index; bound_by.
        """
        if not self.critical_path_nodes:
            return None
        on_path = list(self._on_path())
        attributed = [self.get_event_attribution_for_edge(edge) for edge, _ in on_path]
        events = np.array([NO_EVENT if event is None else event for event in attributed], np.int64)
        frame = pd.DataFrame(
            {
                "event_idx": np.where(events == NO_EVENT, np.nan, events),
                "duration": [weight for _, weight in on_path],
                "type": [edge.type.value for edge, _ in on_path],
            }
        )
        rank_trace = self.rank_trace
        known = events >= 0
        row = np.where(known, self._row_of(np.maximum(events, 0)), 0)
        short = [shorten_name(name) for name in rank_trace.names]
        rows = self.full_trace_df.set_index("index").reindex(events)
        frame["s_name"] = [
            short[rank_trace.name[at]] if here else np.nan for at, here in zip(row, known, strict=True)
        ]
        for column in ("cat", "pid", "tid", "stream"):
            frame[column] = rows[column].to_numpy()
        frame["index"] = np.where(known, events, np.nan)
        frame["bound_by"] = [self.bound_by(item) for item in frame.to_dict("records")]
        return frame

    def bound_by(self, row: Mapping[Hashable, Any]) -> str:
        """What limits the speed of an edge: the value of a `BoundType`; ``""`` for dependencies.

        Args:
            row: an edge as `get_critical_path_breakdown` has it: type, s_name, stream and event_idx. Without
                event_idx, as in HTA, the stream tells device from host, and the name tells communication.
        """
        kind, name = CPEdgeType(row["type"]), row["s_name"]
        if kind in _BOUND_BY_TYPE:
            return _BOUND_BY_TYPE[kind]
        event = row.get("event_idx", -1)
        if event >= 0:
            at = self._row_of(event)
            on_device = bool(self.rank_trace.is_device[at])
            communicates = self.rank_trace.event_class[at] == EventClass.COMMUNICATION
        else:
            on_device, communicates = row["stream"] >= 0, is_comm_kernel(str(name))
        if on_device:
            # HTA knows no memory class here: copies count as compute. `analysis` tells them apart.
            bound = BoundType.GPU_COMMUNICATION_BOUND if communicates else BoundType.GPU_COMPUTE_BOUND
            return bound.value
        patterns = self.data_load_events or []
        loads = isinstance(name, str) and any(re.search(pattern, name) for pattern in patterns)
        return BoundType.DATA_LOADING.value if loads else BoundType.CPU_BOUND.value

    def summary(self) -> pd.Series[float]:
        """Print and return the share of the path (in %) by `bound_by`.

        Raises:
            ValueError: `critical_path` has found no path.
        """
        breakdown = self.get_critical_path_breakdown()
        if breakdown is None:
            raise ValueError("there is no critical path: call critical_path() first, it returns True")
        # HTA prints this line above the series that a notebook shows.
        print("Critical Path broken down by boundedness = (in % of duration)")  # noqa: T201
        return breakdown.groupby("bound_by")["duration"].sum() / breakdown["duration"].sum() * 100

    def show_critical_path(self) -> None:
        """Log the nodes of the path."""
        names = self.rank_trace.names
        for number in self.critical_path_nodes:
            node = self.node_list[number]
            name = names[self.rank_trace.name[self._row_of(node.ev_idx)]]
            logger.info("Critical %s, ev_id = %d, ev_name = %s", node, node.ev_idx, name)

    def save(self, out_dir: str) -> str:
        """Write the graph to ``out_dir + ".zip"`` and return that path; `restore_cpgraph` reads it."""
        from hta_widgets.hta.analyzers.critical_path.archive import save

        return save(self, out_dir)
