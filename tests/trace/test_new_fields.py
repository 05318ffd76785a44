"""Fields that PyTorch 2.14 and 2.15 write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets import analysis
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.cli.ask import ask
from hta_widgets.errors import MissingDataError
from hta_widgets.trace import Scope, Trace
from tests.support import shared_input
from tests.trace.helpers import kernel, rank_of, slice_, write


def answer(kind: str, trace: Trace) -> pd.DataFrame | str:
    try:
        return ask(ANALYSES[kind], trace, Scope(), {})
    except MissingDataError as error:
        return str(error)


def test_lanes_of_graphs_change_no_answer() -> None:
    lanes, plain = (
        Trace.open(shared_input(f"cases/serving/{name}.json.gz"), cache=False)
        for name in ("ann_all", "ann_none")
    )
    for kind in ANALYSES:
        one, other = answer(kind, lanes), answer(kind, plain)
        assert one.equals(other) if isinstance(one, pd.DataFrame) else one == other, kind


def test_a_kernel_is_on_the_stream_that_ran_it(tmp_path: Path) -> None:
    drawn = kernel("in_graph", 5, 2, stream=62)
    drawn["args"]["original_stream"] = 3
    rank = rank_of(tmp_path, [drawn, kernel("other", 9, 1, stream=7)])
    assert rank.stream.tolist() == [3, 7]
    assert [rank.tids[code] for code in rank.tid] == ["3", "7"]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"Bytes": 70_000_000_000, "Total Allocated": 1 << 30},
         "an allocation of 65.2 GiB at 8.00 µs. 1.00 GiB were allocated then"),
        ({"Bytes": 70_000_000_000, "Total Allocated": 0},
         "an allocation of 65.2 GiB at 8.00 µs. 0 B were allocated then"),
        ({"Bytes": 70_000_000_000}, "an allocation of 65.2 GiB at 8.00 µs"),
        ({"Total Allocated": 1 << 30}, "an allocation at 8.00 µs. 1.00 GiB were allocated then"),
        ({"Bytes": 0, "Total Allocated": -1}, "an allocation at 8.00 µs"),
    ],
)  # fmt: skip
def test_an_allocation_that_failed_is_said(sizes: dict[str, int], said: str, tmp_path: Path) -> None:
    def failed(at: int, sizes: dict[str, int]) -> dict[str, Any]:
        return {
            "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[OutOfMemory]", "pid": 1, "tid": 1,
            "ts": at, "args": {**sizes, "Device Type": 1},
        }  # fmt: skip

    events = [slice_("aten::empty", "cpu_op", 1, 5), failed(30, {"Bytes": 7}), failed(9, sizes)]
    path = write(tmp_path / "a.json", events)
    row = Trace.open(path, cache=False).health.set_index("check").loc["out_of_memory"]
    assert (row["severity"], row["count"]) == ("warning", 2)
    assert row["detail"] == f"requests that the allocator refused: {said}"


def test_a_shared_recording_ran_out_of_memory() -> None:
    shared = Trace.open(shared_input("cases/g01_oom"), cache=False)
    assert "out_of_memory" in set(shared.health["check"])


def test_counters_of_the_device_are_counters() -> None:
    trace = Trace.open(shared_input("cases/b10_hardware_counters"), cache=False)
    names = set(analysis.counters(trace)["counter"])
    assert any(name.startswith("sm__cycles_active") for name in names)


@pytest.mark.parametrize("start, stride, ranks", [(0, 1, "[0, 1, 2]"), (1, 4, "[1, 5, 9]")])
def test_ranks_of_a_group_by_start_and_stride(tmp_path: Path, start: int, stride: int, ranks: str) -> None:
    event = kernel("ncclDevKernel_AllReduce", 5, 2)
    event["args"] |= {"Global rank start": start, "Global rank stride": stride, "Group size": 3}
    table = rank_of(tmp_path, [event]).table
    assert table.dictionary("process_group_ranks") == [ranks]
