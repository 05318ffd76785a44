"""Metadata is checked where it is read: a bad value costs itself, and neither its file nor the others."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets.trace import Trace
from tests.trace.helpers import kernel, slice_, write

EVENTS = [slice_("step", "cpu_op", 0, 50), kernel("gemm", 10, 20)]

BAD: dict[str, dict[str, Any]] = {
    "superscript rank": {"distributedInfo": {"rank": "²"}},
    "rank of 5,000 digits": {"distributedInfo": {"rank": "7" * 5000}},
    "rank of 2**63": {"distributedInfo": {"rank": 1 << 63}},
    "rank of 2**63 as text": {"distributedInfo": {"rank": str(1 << 63)}},
    "rank of 4,000 digits": {"distributedInfo": {"rank": 10**4000}},
    "negative rank": {"distributedInfo": {"rank": -1}},
    "fractional rank": {"distributedInfo": {"rank": 1.5}},
    "rank is a list": {"distributedInfo": {"rank": [1]}},
    "world size is a list": {"distributedInfo": {"rank": 0, "world_size": [2]}},
    "world size of 2**70": {"distributedInfo": {"rank": 0, "world_size": 1 << 70}},
    "info is a text": {"distributedInfo": "rank 0"},
    "groups are a text": {"distributedInfo": {"rank": 0, "pg_config": "x"}},
    "base of 5,000 digits": {"baseTimeNanoseconds": "9" * 5000},
    "base of 2**63": {"baseTimeNanoseconds": 1 << 63},
    "base is true": {"baseTimeNanoseconds": True},
    "unhashable device": {"deviceProperties": [{"id": [0], "name": "GPU"}]},
    "device of 2**70": {"deviceProperties": [{"id": 1 << 70, "name": "GPU"}]},
    "device name is an object": {"deviceProperties": [{"id": 0, "name": {"a": 1}}]},
    "devices are an object": {"deviceProperties": {"id": 0}},
}


def used(trace: Trace) -> list[pd.DataFrame]:
    """All that reads metadata, and the events."""
    return [trace.health, trace.iterations, trace.events(), pd.DataFrame([trace.summary])]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_value_costs_only_itself(tmp_path: Path, bad: str) -> None:
    write(tmp_path / "rank0.json", EVENTS, schemaVersion=1, distributedInfo={"rank": 0})
    write(tmp_path / "rank1.json", EVENTS, **BAD[bad])
    trace = Trace.open(tmp_path, cache=False)
    used(trace)
    assert not trace.failed and len(trace.ranks) == 2
    lines = trace.health[trace.health["check"] == "metadata"]
    assert len(lines) == 1 and lines["rank"].tolist() == [max(trace.ranks)]
    assert len(lines["detail"].iloc[0]) < 200
    assert trace.metadata(0)["distributedInfo"] == {"rank": 0}


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "rank0.json", EVENTS, distributedInfo={"rank": "²", "backend": "nccl"})
    trace = Trace.open(path, cache=False)
    detail = trace.health.set_index("check").loc["metadata", "detail"]
    assert detail == "distributedInfo.rank is no rank: '²': not used"
    assert trace.metadata(0)["distributedInfo"] == {"backend": "nccl"}


def test_many_bad_values_are_counted_and_not_all_told(tmp_path: Path) -> None:
    devices = [{"id": [at], "name": "GPU"} for at in range(50)]
    trace = Trace.open(write(tmp_path / "rank0.json", EVENTS, deviceProperties=devices), cache=False)
    line = trace.health.set_index("check").loc["metadata"]
    assert line["count"] == 50 and line["detail"].endswith("; and 47 more: not used")


@pytest.mark.parametrize("rank", [3, "3", " 3 "])
def test_good_values_are_used_as_they_are(tmp_path: Path, rank: object) -> None:
    stated = {
        "distributedInfo": {"rank": rank, "world_size": 8},
        "baseTimeNanoseconds": "1700000000000000000",
    }
    trace = Trace.open(write(tmp_path / "x.json", EVENTS, **stated), cache=False)
    assert trace.ranks == [3] and trace.job_size == 8
    assert trace.metadata(3) == stated
    assert "metadata" not in trace.health["check"].tolist()


def test_a_null_states_nothing(tmp_path: Path) -> None:
    trace = Trace.open(write(tmp_path / "rank2.json", EVENTS, distributedInfo=None), cache=False)
    assert trace.ranks == [2] and "metadata" not in trace.health["check"].tolist()


def test_a_rank_in_collectives_is_bounded_as_well(tmp_path: Path) -> None:
    event = slice_("c", "cpu_op", 0, 5, Rank=(1 << 63) - 1)
    for name in ("a.json", "b.json"):
        write(tmp_path / name, [event])
    assert Trace.open(tmp_path, cache=False).ranks == [0, 1]


@pytest.mark.parametrize("rank", [-1, 1 << 31, 1 << 63])
def test_a_given_rank_is_checked(tmp_path: Path, rank: int) -> None:
    with pytest.raises(ValueError, match="a rank is a number"):
        Trace.open({rank: write(tmp_path / "a.json", EVENTS)}, cache=False)


@pytest.mark.parametrize("lane", ["--5", "stream --5", "stream ²", "9" * 30, "stream", ""])
def test_a_lane_without_a_number_has_no_stream(tmp_path: Path, lane: str) -> None:
    event = {**kernel("gemm", 10, 20), "tid": lane, "pid": lane, "args": {}}
    trace = Trace.open(write(tmp_path / "rank0.json", [event]), cache=False)
    assert trace.events()["stream"].isna().all()


@pytest.mark.parametrize("name", ["1²2.json", "²3².json"])
def test_digits_that_are_no_decimals_in_a_file_name(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, EVENTS)
    write(tmp_path / "other.json", EVENTS)
    assert len(Trace.open(tmp_path, cache=False).ranks) == 2


@pytest.mark.parametrize("key", ["tid", "pid", "name", "cat", "ph"])
def test_an_absent_text_is_the_empty_text(tmp_path: Path, key: str) -> None:
    absent = {name: value for name, value in slice_("a", "cpu_op", 0, 5).items() if name != key}
    events = [absent, {**absent, key: "", "ts": 10}, slice_("b", "cpu_op", 20, 5)]
    trace = Trace.open(write(tmp_path / "rank0.json", events), cache=False)
    frame = trace.events()
    if key == "ph":  # without a phase, there is no duration
        assert frame["name"].tolist() == ["b"]
    else:
        column = {"cat": "category"}.get(key, key)
        assert frame[column].astype("str").tolist()[:2] == ["", ""]
        assert len(frame) == 3
