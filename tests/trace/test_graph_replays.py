"""Replays of graphs that lack kernels, told from graphs that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets.trace import Trace
from hta_widgets.trace.graph_replays import Replays
from hta_widgets.trace.rank_trace import RankTrace
from tests.support import shared_trace
from tests.trace.helpers import kernel, rank_of, slice_

NODE_US = 10
WHOLE = tuple(range(40))


def replays(tmp_path: Path, *graphs: tuple[int, ...], **options: Any) -> RankTrace:
    return rank_of(tmp_path, events(*graphs, **options))


def events(
    *graphs: tuple[int, ...], numbers: tuple[int, ...] = (), caller: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """A replay each millisecond: its recorded kernels, the number of its graph, and who calls it."""
    found = []
    for at, nodes in enumerate(graphs):
        begin = 1000 * at
        found.append(slice_("cudaGraphLaunch", "cuda_runtime", begin + 2, 5, correlation=at + 1))
        if caller:
            found.append(slice_(caller[at], "cpu_op", begin, 10))
        for place, node in enumerate(nodes):
            one = kernel(f"k{node % 100}", begin + 20 + NODE_US * place, NODE_US, at + 1)
            if numbers:
                one["args"]["graph id"] = numbers[at]
            one["args"]["grid"] = [1 + node // 100, 1, 1]
            found.append(one)
    return found


@pytest.mark.parametrize(
    ("graphs", "options", "short"),
    [
        ((WHOLE, WHOLE, WHOLE[:5], WHOLE), {}, 1),
        ((WHOLE, WHOLE, WHOLE[::3], WHOLE[:7], WHOLE), {}, 2),
        ((WHOLE, WHOLE, (), WHOLE), {}, 1),  # nothing of it was recorded
        ((WHOLE, WHOLE[::-1], WHOLE[:5], WHOLE), {}, 1),  # streams beside each other have no order
        ((WHOLE, WHOLE[:5], WHOLE[:6], WHOLE[:7]), {}, 0),  # nothing says that the longest is no other graph
        ((WHOLE, WHOLE, WHOLE[:5], WHOLE[:5], WHOLE), {}, 0),  # it comes again: a graph of its own
        ((WHOLE, WHOLE, WHOLE[:25], WHOLE), {}, 0),  # as few as may lack in a graph for a smaller batch
        ((WHOLE, WHOLE, (*WHOLE[:5], 99), WHOLE), {}, 0),  # it runs what the others do not
        ((WHOLE, WHOLE, tuple(100 + node for node in WHOLE[:5]), WHOLE), {}, 0),  # other grids
        ((WHOLE, WHOLE, WHOLE[:5]), {}, 0),  # cut by the end
        ((WHOLE[:10], WHOLE[:10], WHOLE[:2], WHOLE[:10]), {}, 0),  # pieces of a step
        ((WHOLE, WHOLE, WHOLE[:5], WHOLE), {"caller": ("a", "a", "b", "a")}, 0),
        ((WHOLE, WHOLE, WHOLE[:5], WHOLE), {"caller": ("a",) * 4}, 1),
        ((WHOLE, WHOLE[:5], WHOLE[:5], WHOLE), {"numbers": (1, 1, 1, 1)}, 2),
        ((WHOLE, WHOLE[:5], WHOLE[:9], WHOLE), {"numbers": (1, 2, 2, 1)}, 1),  # 5 of 9
        ((WHOLE, WHOLE[:35], WHOLE[:36], WHOLE), {"numbers": (1, 1, 1, 1)}, 1),
        ((WHOLE, WHOLE[:5]), {"numbers": (1, 1)}, 0),  # cut by the end
    ],
)
def test_short_replays(
    graphs: tuple[tuple[int, ...], ...], options: dict[str, Any], short: int, tmp_path: Path
) -> None:
    found = replays(tmp_path, *graphs, **options).recording.replays
    assert (found.count, found.short) == (len(graphs), short)


def test_what_is_missing(tmp_path: Path) -> None:
    """5 and 10 of 40 kernels of 10 us, in a span of 4.4 ms."""
    recording = replays(tmp_path, WHOLE, WHOLE, WHOLE[:5], WHOLE[-10:], WHOLE).recording
    missing = (35 + 30) * NODE_US * 1000
    assert recording.replays == Replays(5, 2, missing)
    assert recording.missing_pct == pytest.approx(100 * missing / 4_400_000)
    assert recording.cuts_replays


def test_health_tells_how_many_replays_lack_kernels(tmp_path: Path) -> None:
    for name, graphs, severity in (
        ("many", [WHOLE, WHOLE, WHOLE[:5], WHOLE], "warning"),
        ("one of many", [WHOLE, WHOLE[:5], *[WHOLE] * 20], "info"),
    ):
        trace = rank_of(tmp_path / name, events(*graphs))
        found = Trace.open(trace.path, cache=False).health.set_index("check").loc["short_replays"]
        assert (found["count"], found["severity"]) == (1, severity)
        assert f"of {len(graphs)}" in found["detail"]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("hta/trace_diff/test", 12),  # two graphs in turn, of 339 and 502 kernels
        ("tracelens/inference/sglang_decode", 1),
        ("tracelens/inference/vllm_decode_full", 1),
    ],
)
def test_recorded_replays_are_whole(name: str, count: int) -> None:
    trace = Trace.open(shared_trace(name), cache=False)
    assert trace.rank(trace.ranks[0]).recording.replays == Replays(count, 0, 0)
