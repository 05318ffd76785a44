"""The whole graph of some instances of an annotation on one rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hta_widgets.arrays import Int64
from hta_widgets.engine import checkpoint
from hta_widgets.hta.analyzers.critical_path.clip import Clip
from hta_widgets.hta.analyzers.critical_path.device_edges import device_edges
from hta_widgets.hta.analyzers.critical_path.host_edges import lock_edges, stack_edges
from hta_widgets.hta.analyzers.critical_path.model import NO_EVENT, Edges, Nodes
from hta_widgets.hta.analyzers.critical_path.nodes import number_nodes


def build(clip: Clip, data_load_events: Sequence[str], causal: bool, strict: bool) -> tuple[Nodes, Edges]:
    """Nodes and edges, in HTA's order of construction.

    The parts are int64[k, 5]: begin, end, type, weight in ns, event the time is attributed to.

    Args:
        causal: every device event depends on its launch, at least without weight.
        strict: keep negative weights (the effect begins before its cause ends); else they count as 0.
    """
    numbered = number_nodes(clip, data_load_events)
    checkpoint()
    parts = [lock_edges(clip, numbered), stack_edges(clip, numbered), device_edges(clip, numbered, causal)]
    edges = _last_of_each_pair(np.concatenate(parts), len(numbered.nodes.time))
    weight = edges[:, 3] if strict else np.maximum(edges[:, 3], 0)
    return numbered.nodes, Edges(
        edges[:, 0].copy(), edges[:, 1].copy(), edges[:, 2].copy(), weight / 1000.0, edges[:, 4].copy()
    )


def _last_of_each_pair(edges: Int64, nodes: int) -> Int64:
    """One edge per pair of nodes: in the place of the first, with the values of the last.

    An attribution stays even if a later edge of the pair has none.
    """
    pair = edges[:, 0] * nodes + edges[:, 1]
    _, first = np.unique(pair, return_index=True)
    _, from_end = np.unique(pair[::-1], return_index=True)
    last = len(pair) - 1 - from_end
    merged = edges[last]
    attributed = edges[:, 4] != NO_EVENT
    event = pd.Series(edges[attributed, 4], index=pair[attributed])
    event = event[~event.index.duplicated(keep="last")]
    merged[:, 4] = event.reindex(pair[last], fill_value=NO_EVENT)
    return merged[np.argsort(first, kind="stable")]
