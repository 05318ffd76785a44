"""What the timeline hatches: estimated slices, and steps that are left out."""

from pathlib import Path

from hta_widgets import Trace, examples
from hta_widgets.timeline import doubtful, lanes_of
from tests.job.many_ranks import write_job
from tests.trace.test_impossible_records import changed, late_end, lost, opened


def test_an_estimated_slice_is_hatched_where_it_is_drawn(tmp_path: Path) -> None:
    trace = opened(tmp_path, changed(late_end))
    lanes = lanes_of(trace)
    (found,) = [each for each in doubtful(trace, lanes) if each["lane"] is not None]
    record = trace.records().iloc[0]
    at = lanes.find(0, int(record["event_id"]))
    assert found["lane"] == lanes.lane_of(at) and found["start"] == lanes.start[at] == record["start_ns"]
    assert found["dur"] == record["dur_ns"] < record["recorded_dur_ns"]
    assert found["reason"] == f"its times are estimated: {record['reason']}"


def test_a_step_with_lost_work_is_hatched_as_a_whole(tmp_path: Path) -> None:
    trace = opened(tmp_path, changed(lost(10, 14)))
    found = doubtful(trace, lanes_of(trace))
    vetoes = trace.vetoes()
    assert vetoes and all(veto.iteration is not None for veto in vetoes)
    assert [(each["start"], each["start"] + each["dur"]) for each in found] == [
        (veto.start_ns, veto.end_ns) for veto in vetoes
    ]
    for each, veto in zip(found, vetoes, strict=True):
        assert each["lane"] is None and each["rank"] == 0 and veto.reason in each["reason"]


def test_a_sound_recording_has_none() -> None:
    trace = examples.load("ddp_4ranks")
    assert doubtful(trace, lanes_of(trace)) == []


def test_of_a_sound_job_that_was_opened_before_no_rank_is_read(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", 16, slow=5)
    first = Trace.open(job)
    lanes = lanes_of(first)
    assert doubtful(first, lanes) == []
    again = Trace.open(job)
    assert doubtful(again, lanes) == []
    assert not any(again.rank(rank).events.here for rank in again.ranks)
