"""Seven changes of six real recordings as the prototype foresaw them, and recordings that foresee nothing."""

import pytest

from hta_widgets import Trace, analysis, edits
from hta_widgets.errors import MissingDataError
from tests.support import shared_trace

EVERYTHING = [edits.kernels(2.0), edits.copies(2.0)]
CHANGES = {
    "host free": [edits.host(0)],
    "launches free": [edits.launches(0)],
    "no syncs": [edits.syncs()],
    "no loader": [edits.without("enumerate(DataLoader)*")],
    "device twice as fast": EVERYTHING,
    "compute twice as fast": [edits.kernels(2.0)],
    "no communication": [edits.communication(0)],
}
BOUNDS = ("host free", "launches free", "no syncs", "no communication")
"""What nobody gets in full may also change nothing."""

# Change of the extent of the recording in %: in the order of CHANGES; low, estimate, high where they differ.
TABLE = {
    "hta/nccl_parser_config": [-81.5, -5.4, 0, 0, 0, 0, 0],
    "hta/ns_resolution_trace": [-1.1, -0.2, 0, 0, -48.8, -48.4, 0],
    "hta/trace_diff/control": [
        -20.9, -9.9, -15.1, -0.1, (-1.2, -4.7, -4.9), (-1.2, -4.7, -4.9), (-7.4, -7.8, -9.5),
    ],
    "hta/trace_diff/test": [
        -0.4, -0.1, -0.4, 0, (-6.9, -15.8, -22.3), (-6.4, -15.0, -21.7), (-4.4, -6.0, -6.1),
    ],
    "kineto/resnet50_num_workers_0": [-28.0, -10.9, -0.1, -20.0, -0.1, 0, 0],
    "tracelens/mi300/resnet_act_checkpoint.json.gz": [0, 0, 0, 0, -5.6, -4.6, -38.1],
}  # fmt: skip
WITHIN = 1.0

ABSTAIN = {
    "hta/mtia_inference_trace": "simulated without changes, its time is off by 22.8 %",
    "hta/trace_compare/base": "events were removed from the file",
    "hta/trace_compare/test": "events were removed from the file",
    "hta/trace_filter": "events were removed from the file",
    "tracelens/inference/sglang_decode": "97.8 % of the recording waits for work from before it",
    "tracelens/inference/vllm_decode_full": "41.0 % of the recording waits for work from before it",
    "tracelens/mi210/gpu_only_trace": "for 38.6 % of the time the critical path is on the host",
    # toys: a few operators in seconds of a script that the profiler did not see
    "hta/critical_path/alexnet": "for 68.9 % of the time the critical path is in one call of the host",
    "hta/critical_path/simple_add": "for 59.1 % of the time the critical path is in one call of the host",
    "hta/critical_path/cuda_event_sync": "for 69.3 % of the time the critical path is in one call",
    "hta/triton_example": "for 100 % of the time the critical path is on the host",
}


@pytest.mark.parametrize("name", TABLE)
def test_scenarios_of_real_recordings(name):
    trace = Trace.open(shared_trace(name))
    for (change, asked), expected in zip(CHANGES.items(), TABLE[name], strict=True):
        whole = analysis.what_if(trace, asked).iloc[0]
        high, estimate, low = (
            100 * (whole[column] / whole["before_ns"] - 1) for column in ("high_ns", "after_ns", "low_ns")
        )
        least, most = (expected, expected) if not isinstance(expected, tuple) else (expected[0], expected[2])
        assert estimate == pytest.approx(
            expected[1] if isinstance(expected, tuple) else expected, abs=WITHIN
        ), change
        assert low == pytest.approx(most, abs=WITHIN), change
        assert high == (0 if change in BOUNDS else pytest.approx(least, abs=WITHIN)), change


@pytest.mark.parametrize("name", TABLE)
def test_these_recordings_can_be_trusted(name):
    quality = analysis.replay_quality(Trace.open(shared_trace(name))).iloc[0]
    assert quality["trusted"] and quality["reason"] == "" and quality["exact_error_ns"] == 0
    assert abs(quality["model_error_pct"]) < 4.3


@pytest.mark.parametrize("name", ABSTAIN)
def test_these_recordings_cannot_and_say_why(name):
    trace = Trace.open(shared_trace(name))
    quality = analysis.replay_quality(trace)
    assert not quality["trusted"].any() and (quality["exact_error_ns"] == 0).all()
    assert all(reason.startswith(ABSTAIN[name]) for reason in quality["reason"])
    with pytest.raises(MissingDataError, match="replay can be trusted") as raised:
        analysis.what_if(trace, edits.host(0))
    assert ABSTAIN[name] in raised.value.detail


def test_the_data_loader_cut_to_what_workers_leave():
    """One batch takes 1.4 ms with workers: a step of 155 ms at the median then takes 118."""
    trace = Trace.open(shared_trace("kineto/resnet50_num_workers_0"))
    frame = analysis.what_if(trace, edits.without("enumerate(DataLoader)*", keep_ns=1_400_000))
    steps = frame[frame["iteration"].notna()]
    assert steps["iteration"].tolist() == [5, 6, 7, 8, 9, 10] and set(steps["clock"]) == {"host"}
    measured = trace.rank(0).iterations
    assert steps["before_ns"].tolist() == (measured["end_ns"] - measured["start_ns"]).tolist()
    assert steps["after_ns"].median() == pytest.approx(118.3e6, rel=0.01)
    assert frame["after_ns"].iloc[0] == pytest.approx(743e6, rel=0.01)
