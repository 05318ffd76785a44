"""What belongs together because neighbours do."""

from __future__ import annotations

from collections.abc import Iterable


def components(nodes: Iterable[int], edges: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The lowest node that each node is connected with."""
    parent = {node: node for node in nodes}

    def top(node: int) -> int:
        while parent[node] != node:
            node = parent[node]
        return node

    for a, b in edges:
        low, high = sorted((top(a), top(b)))
        parent[high] = low
    return {node: top(node) for node in parent}
