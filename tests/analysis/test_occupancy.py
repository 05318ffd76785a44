"""Occupancy of kernels: what Kineto wrote, averaged by duration, and what its arithmetic is bound by."""

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, Trace
from hta_widgets.analysis.kernels.occupancy import ANALYSIS, occupancy, sentence
from hta_widgets.charts.marks import marks
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import Event, event, job, kernel, write
from tests.support import EVERY_CASE, shared_trace

DEVICE = {
    "id": 0, "numSms": 10, "warpSize": 32, "maxThreadsPerMultiprocessor": 2048, "computeMajor": 8,
    "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 167936,
}  # fmt: skip


def launched(
    name: str, dur: int, recorded: int, threads: int, blocks: int, registers: int = 16, shared: int = 0
) -> Event:
    return kernel(name, 1000, dur, **{
        "est. achieved occupancy %": recorded, "block": [threads, 1, 1], "grid": [blocks, 1, 1],
        "registers per thread": registers, "shared memory": shared,
    })  # fmt: skip


def opened(folder: Path, events: list[Event], devices: Any = (DEVICE,)) -> Trace:
    path = write(folder / "0.json", events)
    head = f'"schemaVersion": 1, "deviceProperties": {json.dumps(list(devices))}'
    path.write_text(path.read_text().replace('"schemaVersion": 1', head))
    return Trace.open({0: path}, cache=False)


@pytest.mark.parametrize(
    ("launch", "limiter", "source", "filled"),
    [
        (launched("k", 10, 100, 1024, 100, 32), "none", "recorded", 100.0),
        (launched("k", 10, 6, 128, 10), "grid", "recorded", 6.0),  # a block for each multiprocessor
        (launched("k", 10, 13, 128, 999, 255), "registers", "recorded", 13.0),  # room for 8 warps of them
        (launched("k", 10, 25, 128, 999, 16, 40_000), "shared memory", "recorded", 25.0),  # 4 blocks
        (launched("k", 10, 75, 768, 999), "block size", "recorded", 75.0),  # 2 blocks; no third fits
        (launched("k", 10, 0, 128, 999, 16, 100_000), "shared memory", "computed", 6.25),  # 0 is not true
        (launched("k", 10, 0, 32, 1), "grid", "recorded", 0.0),  # this is: 0.16 %, rounded
        (launched("k", 10, 50, 1024, 100, 32), "unknown", "recorded", 50.0),  # nothing known explains it
    ],
)
def test_what_bounds_a_launch(
    tmp_path: Path, launch: Event, limiter: str, source: str, filled: float
) -> None:
    (row,) = occupancy(opened(tmp_path, [launch])).to_dict("records")
    assert row == {
        "rank": 0, "event_class": "compute", "name": "k", "limiter": limiter, "source": source,
        "count": 1, "time_ns": 10, "occupancy_pct": filled,
    }  # fmt: skip


@pytest.mark.parametrize("devices", [[], [{**DEVICE, "id": 3}], [{"id": 0, "numSms": 10}], [7, {"id": []}]])
def test_without_the_limits_of_the_device_nothing_is_made_up(tmp_path: Path, devices: list[Any]) -> None:
    launches = [launched("k", 10, 6, 128, 10), launched("big", 10, 0, 128, 999, 16, 100_000)]
    frame = occupancy(opened(tmp_path, launches, devices)).set_index("name")
    assert (frame["limiter"] == "unknown").all()
    assert frame.loc["k", "occupancy_pct"] == 6.0
    assert frame.loc["k", "source"] == "recorded"
    assert frame.loc["big", "source"] == "unknown"
    assert np.isnan(frame.loc["big", "occupancy_pct"])  # the 0 in the file is not true


def test_launches_weigh_by_their_duration_and_ranks_are_never_added(tmp_path: Path) -> None:
    events = [launched("k", 30, 6, 128, 10), launched("k", 10, 13, 256, 10)]
    trace = Trace.open(
        {rank: opened(_folder(tmp_path, rank), events[: 2 - rank]).rank(0).path for rank in (0, 1)},
        cache=False,
    )
    frame = occupancy(trace)
    assert frame[["rank", "count", "time_ns", "occupancy_pct"]].to_numpy().tolist() == [
        [0, 2, 40, (30 * 6 + 10 * 13) / 40],
        [1, 1, 30, 6.0],
    ]
    assert ANALYSIS.chart is not None
    table = marks(ANALYSIS.chart, frame).table
    assert table[["label", "note"]].to_numpy().tolist() == [["k", "grid"]]
    assert table["value"].tolist() == [pytest.approx((60 * 6 + 10 * 13) / 70)]
    assert ANALYSIS.figure(frame).layout.xaxis.title.text == "Achieved occupancy (%)"
    assert sentence(frame) == (
        "Compute kernels fill 7.00 % of the device, on average over their time. The most is left "
        "unused by k, which fills 7.00 % for 70 ns, limited by grid."
    )
    empty = occupancy(trace, Scope(names=("other",)))
    assert empty.empty and (empty.dtypes == frame.dtypes).all()
    assert sentence(empty) == "No kernel with an occupancy belongs to the selection."


def _folder(parent: Path, rank: int) -> Path:
    folder = parent / str(rank)
    folder.mkdir()
    return folder


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="occupancy") as missing:
        occupancy(job(tmp_path, [kernel("k", 1000, 10)]))
    assert "profiler of the device's vendor" in missing.value.remedy
    with pytest.raises(MissingDataError, match="device events"):
        occupancy(job(tmp_path, [event("cpu_op", "aten::add", 0, 10)]))
    with pytest.raises(MissingDataError, match="occupancy"):
        occupancy(Trace.open(shared_trace("tracelens/mi300")))  # ROCm writes none


NAMES = ["hta/ns_resolution_trace", "tracelens/h100/Qwen*", "hta/trace_diff/test", "hta/trace_diff/control"]


@pytest.mark.parametrize("name", NAMES if EVERY_CASE else NAMES[:2])
def test_real_traces_have_the_mean_of_their_json_and_an_explanation_of_all(name: str) -> None:
    """The file's own arguments, added up in plain Python; and every launch is explained by its device."""
    folder = shared_trace(name.split("*")[0].rpartition("/")[0] if "*" in name else name)
    (path,) = folder.glob("Qwen*" if "*" in name else "*.json.gz")
    with gzip.open(path) as file:
        document = json.load(file)
    limit = {device["id"]: device["sharedMemPerBlock"] for device in document["deviceProperties"]}
    used: dict[str, float] = defaultdict(float)
    time: dict[str, float] = defaultdict(float)
    for item in document["traceEvents"]:
        arguments = item.get("args", {})
        recorded = arguments.get("est. achieved occupancy %")
        if recorded is None or (arguments["shared memory"] > limit[arguments["device"]] and not recorded):
            continue
        used[item["name"]] += recorded * item["dur"]
        time[item["name"]] += item["dur"]
    frame = occupancy(Trace.open(path))
    own = frame[frame["source"] == "recorded"]
    weighed = (own["occupancy_pct"] * own["time_ns"]).groupby(own["name"]).sum()
    pd.testing.assert_series_equal(
        weighed / own.groupby("name")["time_ns"].sum(),
        pd.Series({kernel: used[kernel] / time[kernel] for kernel in time}).rename_axis("name"),
        check_names=False,
        check_like=True,
        rtol=1e-6,
    )
    assert "unknown" not in {*frame["limiter"], *frame["source"]}
    assert frame["occupancy_pct"].between(0, 100).all()
    np.testing.assert_array_equal(frame["time_ns"], np.sort(frame["time_ns"])[::-1])
