"""What the overview says of devices that compute, and of idle time whose cause was not recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets import Scope, Trace
from hta_widgets.analysis.findings import CHECKED, OPEN, VERDICT, overview, story
from tests.analysis.kineto_file import Event, event, job, kernel, launch
from tests.first_lines import first_lines
from tests.job.many_ranks import write_job
from tests.support import shared_trace

STEP = 100_000  # ns


def steps(count: int = 4, first: int = 0) -> list[Event]:
    """Announced steps, back to back."""
    return [
        event("user_annotation", f"ProfilerStep#{number}", first + STEP * number, STEP, tid=1)
        for number in range(count)
    ]


def computing(ns: int, name: str = "gemm", linked: bool = True, count: int = 4) -> list[Event]:
    """In each step one kernel of this length, launched as the step begins."""
    found = []
    for number in range(count):
        begin = STEP * number + 1_000
        if linked:
            found.append(launch(begin, correlation=number + 1))
        found.append(kernel(name, begin + 2_000, ns, correlation=number + 1))
    return found


def topics(trace: Trace) -> dict[str, dict[str, Any]]:
    frame = overview(trace)
    return {row["topic"]: row for row in frame[~frame["severity"].isin((OPEN, CHECKED))].to_dict("records")}


@pytest.mark.parametrize(("ns", "fires"), [(80_000, True), (79_999, False)])
def test_a_device_that_computes_is_said_to(tmp_path: Path, ns: int, fires: bool) -> None:
    trace = job(tmp_path, [*steps(), *computing(ns)])
    found = topics(trace)
    assert ("compute_bound" in found) == fires
    if fires:
        row = found["compute_bound"]
        assert (row["severity"], row["cost_ns"], row["share_pct"]) == (VERDICT, 0, 80.0)
        assert "computes 80.0 % of step time; everything else takes 20.0 %" in row["text"]
        assert "gemm (100 %)" in row["text"] and row["name"] == "gemm"


@pytest.mark.parametrize(
    ("gap_ns", "told"),
    [
        (0, "computes 100 % of the time. The"),
        (400, "100 % of the time; everything else takes less than 0.100 %."),
        (4_000, "99.5 % of the time; everything else takes 0.500 %."),
    ],
)
def test_next_to_nothing_is_told_as_such(tmp_path: Path, gap_ns: int, told: str) -> None:
    half = 400_000
    events = [launch(1, 1), launch(3, 2), kernel("gemm", 10, half, correlation=1)]
    events.append(kernel("gemm", 10 + half + gap_ns, half - gap_ns, correlation=2))
    assert told in topics(job(tmp_path, events))["compute_bound"]["text"]


def test_the_verdict_comes_first_and_names_the_longest_kernels(tmp_path: Path) -> None:
    events = steps()
    for number in range(4):
        begin = STEP * number + 1_000
        events += [launch(begin, 10 + number), launch(begin + 2, 20 + number)]
        events += [kernel("short", begin + 500, 20_000, correlation=10 + number)]
        events += [kernel("long", begin + 21_000, 72_000, correlation=20 + number)]
    trace = job(tmp_path, events)
    frame = overview(trace)
    assert frame["severity"].iloc[0] == VERDICT
    assert "long (78.3 %), short (21.7 %)" in frame["text"].iloc[0]
    assert "the GPU computes 92.0 % of it" in first_lines(trace, frame)


def test_a_name_from_the_trace_that_is_markup_stays_text(tmp_path: Path) -> None:
    row = topics(job(tmp_path, [*steps(), *computing(90_000, "<img src=x>")]))["compute_bound"]
    assert "<img src=x> (100 %)" in row["text"]


@pytest.mark.parametrize(("missing", "fires"), [(4, True), (0, False)])
def test_idle_time_without_a_recorded_launch_is_not_blamed_on_the_host(
    tmp_path: Path, missing: int, fires: bool
) -> None:
    kernels = [item for item in computing(40_000) if item["cat"] == "kernel"]
    calls = [item for item in computing(40_000) if item["cat"] != "kernel"]
    host = [event("cpu_op", "aten::mm", STEP * number + 500, 2_000) for number in range(4)]
    found = topics(job(tmp_path, [*steps(), *host, *calls[missing:], *kernels]))
    assert ("unrecorded_idle" in found) == fires
    if fires:
        assert "idle_host" not in found and "launch_bound" not in found
        assert "100 % of the device work has no launch in the recording" in found["unrecorded_idle"]["text"]


@pytest.mark.parametrize(("last", "fires"), [(40_000, True), (98_000, False)])
def test_time_after_the_last_device_work_is_nobodys_fault(tmp_path: Path, last: int, fires: bool) -> None:
    """The recording's only step goes on on the host without device work: no launch or kernel is to blame."""
    events = [*steps(1), launch(100, 1), kernel("gemm", 200, last - 300, correlation=1)]
    events += [launch(110, 2), kernel("gemm", last - 100, 100, correlation=2)]
    events += [event("cpu_op", "aten::save", STEP - 1_000, 1_000)]
    found = topics(job(tmp_path, events))
    assert ("no_work_due" in found) == fires
    if fires:
        assert found["no_work_due"]["cost_ns"] == STEP - last
        assert "idle_host" not in found


def test_a_warning_comes_before_the_verdict(tmp_path: Path) -> None:
    told = overview(job(tmp_path, [*steps(), *computing(85_000)]))["topic"].tolist()
    assert told[0] == "idle_host" and "compute_bound" in told


@pytest.mark.parametrize(
    ("name", "share", "before"),
    [
        ("hta/ns_resolution_trace", 97.43, ["fp32_units"]),
        ("tracelens/inference/vllm_decode_full", 99.4, []),
        ("tracelens/inference/sglang_decode", 93.4, []),
        # without the 14 ms in which the host waits for work of before the recording
        ("tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 91.0, []),
    ],
)
def test_recordings_that_compute(name: str, share: float, before: list[str]) -> None:
    """What could be computed faster is told before that it takes the time."""
    frame = overview(Trace.open(shared_trace(name)))
    assert frame["topic"].tolist()[: len(before) + 1] == [*before, "compute_bound"]
    assert frame["share_pct"].iloc[len(before)] == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize(
    "name",
    ["hta/nccl_parser_config", "kineto/resnet50_num_workers_0", "hta/trace_diff/control", "hta/trace_filter"],
)
def test_recordings_that_wait_are_not_called_compute_bound(name: str) -> None:
    assert "compute_bound" not in overview(Trace.open(shared_trace(name)))["topic"].tolist()


def test_files_that_could_not_be_read_are_told_first(tmp_path: Path) -> None:
    """In every overview, whatever it is asked about; and not where all could be read."""
    write_job(tmp_path / "job", 3, slow=1)
    whole = Trace.open(tmp_path / "job", cache=False)
    assert "unread_files" not in set(overview(whole)["topic"])
    headline = story(whole, Scope(ranks=(0,))).headline
    max((tmp_path / "job").iterdir()).write_text("<html>not a trace</html>")
    trace = Trace.open(tmp_path / "job", cache=False)
    one = overview(trace, Scope(ranks=(0,)))
    last = Scope(iterations=(trace.iterations["iteration"].max(),))
    for frame in (one, overview(trace), overview(trace, last)):
        first = frame.iloc[0]
        assert (first["section"], first["topic"]) == ("recording", "unread_files")
        assert first["text"] == (
            "1 file could not be read: whatever is said is about the 2 ranks that could be."
        )
    assert story(trace, Scope(ranks=(0,)), one).headline == headline
