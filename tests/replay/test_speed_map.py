"""The map of host and device speed: every point is what `what_if` says, and its shape tells what binds."""

import math

import pytest

from hta_widgets import Scope, Trace, analysis, edits, examples
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import job
from tests.replay.program import only_a_script, steps_of
from tests.support import shared_trace

SPEEDS = (0.5, 1.0, 2.0)


def mapped(trace: Trace, **more: object) -> dict[tuple[float, float], int]:
    frame = analysis.speed_map(trace, speeds=SPEEDS, **more)
    assert frame.columns.tolist() == ["rank", "host_factor", "device_factor", "before_ns", "after_ns"]
    return {(row.host_factor, row.device_factor): row.after_ns for row in frame.itertuples()}


@pytest.mark.parametrize("iterations", [None, (1010, 1011)])
def test_each_point_is_the_answer_of_what_if(iterations: tuple[int, ...] | None) -> None:
    trace = Trace.open(shared_trace("hta/trace_diff/control"))
    scope = Scope(iterations=iterations)
    beside = edits.communication(0.5)
    found = mapped(trace, scope=scope, beside=beside)
    assert len(found) == len(SPEEDS) ** 2
    for (host, device), after in found.items():
        rows = analysis.what_if(trace, [beside, edits.host(1 / host), edits.kernels(device)], scope)
        if iterations is None:
            rows = rows[rows["iteration"].isna()]
        recorded = analysis.what_if(trace, [], scope)
        whole = recorded[recorded["iteration"].isna()] if iterations is None else recorded
        assert after == whole["before_ns"].sum() - (rows["before_ns"] - rows["after_ns"]).sum()


def test_a_job_behind_its_device_follows_the_device_alone(tmp_path) -> None:
    """300 us of kernels a step, 100 us of host: a host twice as fast changes little, a device nearly all."""
    events, _ = steps_of(kernel_ns=300_000, count=8)
    found = mapped(job(tmp_path, events))
    recorded = found[1.0, 1.0]
    assert found[2.0, 1.0] > 0.98 * recorded
    assert found[1.0, 2.0] < 0.55 * recorded
    assert found[0.5, 2.0] > found[1.0, 2.0]  # a slow host binds a fast device


def test_a_job_behind_its_host_follows_the_host_alone(tmp_path) -> None:
    events, _ = steps_of(kernel_ns=10_000, count=8)
    found = mapped(job(tmp_path, events))
    recorded = found[1.0, 1.0]
    assert found[1.0, 2.0] > 0.98 * recorded
    assert found[2.0, 1.0] < 0.6 * recorded


def test_the_recorded_point_is_the_recording(ddp_trace: Trace) -> None:
    frame = analysis.speed_map(ddp_trace).query("host_factor == 1 and device_factor == 1")
    assert frame["rank"].tolist() == ddp_trace.ranks
    assert frame["after_ns"].tolist() == frame["before_ns"].tolist()


def test_what_cannot_be_answered(tmp_path) -> None:
    with pytest.raises(MissingDataError):
        analysis.speed_map(job(tmp_path, only_a_script()))
    events, _ = steps_of(kernel_ns=10_000)
    for speed in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="speeds must be"):
            analysis.speed_map(job(tmp_path, events), speeds=[1.0, speed])


@pytest.fixture(scope="module")
def ddp_trace() -> Trace:
    return examples.load("ddp_4ranks")
