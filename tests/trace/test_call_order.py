"""Who calls whom where times are equal: calls are numbered as they are made, wherever the file has them."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets.analysis import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace import RankTrace, Trace
from tests.support import shared_input
from tests.trace.helpers import kernel, slice_, write

# Recordings of whole microseconds, in which many calls begin and end together; equal kernels in a graph;
# a step as long as the profiler's span; two programs; products whose time in 16 bits is an estimate.
RECORDINGS = [
    "recordings/inductor_2022", "recordings/mnist_torch18_cpu", "cases/c07_graph_many_streams",
    "traces/hta/critical_path/cuda_event_sync", "cases/d01_interleaved", "recordings/vgg11_a100",
]  # fmt: skip
# Analyses that follow from who calls whom, without a number of a place in the file.
OF_CALLS = ("operators", "op_counts", "critical_path", "overview", "idle_breakdown")


def shuffled(events: list[dict[str, Any]], seed: int) -> tuple[list[dict[str, Any]], list[int]]:
    """The events in another order, and where each was before."""
    order = list(range(len(events)))
    random.Random(seed).shuffle(order)
    return [events[place] for place in order], order


def callers(rank: RankTrace, order: list[int] | None = None) -> dict[int, int]:
    """The caller of each event, both by their places before the shuffle."""
    place = order or list(range(rank.table.n))
    event = rank.event_id.tolist()
    return {
        place[event[row]]: place[event[parent]] if parent >= 0 else -1
        for row, parent in enumerate(rank.parent.tolist())
    }


@pytest.mark.parametrize("number", ["External id", "Ev Idx"])
@pytest.mark.parametrize("seed", range(4))
def test_calls_of_equal_times_nest_by_their_numbers(tmp_path: Path, number: str, seed: int) -> None:
    events = []
    for step in range(5):
        at = 100 * step
        for depth in range(4):  # each calls the next, in the same microsecond
            events.append(slice_(f"aten::op{depth}", "cpu_op", at, 3, **{number: 10 * step + depth + 1}))
        events.append(slice_("cudaLaunchKernel", "cuda_runtime", at, 3, correlation=step + 1))
        events.append(kernel("gemm", at + 20, 10, step + 1))
    changed, order = shuffled(events, seed)
    rank = Trace.open(write(tmp_path / "trace.json", changed), cache=False).rank(0)
    called_by = callers(rank, order)
    for step in range(5):
        assert [called_by[6 * step + depth] for depth in range(5)] == [-1, *range(6 * step, 6 * step + 4)]


def rows_of(frame: pd.DataFrame) -> list[str]:
    # places of rows and events in the file
    columns = [name for name in frame if not name.endswith("_id") and name not in ("node", "match")]
    return sorted(repr(row) for row in frame[columns].astype(object).itertuples(index=False, name=None))


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_shuffled_recording_gives_the_same_answers(name: str, tmp_path: Path) -> None:
    folder = shared_input(name)
    file = next(path for path in sorted(folder.iterdir()) if path.suffix in (".json", ".gz"))
    data = file.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    before = Trace.open(write(tmp_path / "a" / "t.json", document["traceEvents"]), cache=False)
    changed, order = shuffled(document["traceEvents"], 1)
    after = Trace.open(write(tmp_path / "b" / "t.json", changed), cache=False)
    assert callers(before.rank(0)) == callers(after.rank(0), order)
    for kind in OF_CALLS:
        try:
            expected = rows_of(ANALYSES[kind].function(before))
        except MissingDataError:
            with pytest.raises(MissingDataError):
                ANALYSES[kind].function(after)
            continue
        assert rows_of(ANALYSES[kind].function(after)) == expected, kind
