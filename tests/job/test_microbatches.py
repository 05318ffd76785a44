"""Another number of microbatches: the replay of a pipeline, held to the job played with that number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hta_widgets import edits
from hta_widgets.analysis import what_if
from hta_widgets.errors import MissingDataError
from tests.job.parallel_jobs import ParallelJob
from tests.job.test_changes import played, time
from tests.support import crossed
from tests.verdicts.planted.rank_programs import MS, Pace

pytestmark = pytest.mark.slow

JOB = ParallelJob(pipeline=4, microbatches=8, steps=3)
JOBS = {
    "1F1B": JOB,
    "GPipe": replace(JOB, schedule="GPipe"),
    "interleaved": replace(JOB, schedule="interleaved 1F1B", chunks=2),
    "unequal stages": replace(JOB, layers=(2, 2, 3, 2)),
    "replicas": replace(JOB, data=2),
    "tensor": replace(JOB, tensor=2),
}
PARTS = ["compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"]


def folder_of(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize(("name", "change"), crossed(JOBS, [(4, True), (12, True), (12, False), (4, False)]))
def test_another_number_of_microbatches(name, change, tmp_path):
    """Of the same size, or of the same batch: each computes for a part of the time then."""
    job, (count, same_size) = JOBS[name], change
    trace = job.open(folder_of(tmp_path / "job"))
    pace = Pace() if same_size else Pace(job.microbatches / count)
    changed = replace(job, microbatches=count, paces=dict.fromkeys(range(job.size), pace))
    frame = what_if(trace, edits.microbatches(count, same_size=same_size))
    assert time(frame, "after_ns") == pytest.approx(played(changed.play()), rel=0.002)
    assert (frame["low_ns"] <= frame["after_ns"]).all()
    assert (frame["after_ns"] <= frame["high_ns"]).all()
    assert (frame[PARTS].sum(axis=1) == frame["after_ns"]).all()
    assert (frame[PARTS] >= 0).all(axis=None)
    if not same_size:
        before = what_if(trace, edits.faster_links(1.0))
        assert frame["compute_ns"].tolist() == before["compute_ns"].tolist()


def test_as_many_as_recorded_change_nothing(tmp_path):
    frame = what_if(JOB.open(tmp_path), edits.microbatches(8))
    assert (frame["after_ns"] - frame["before_ns"]).abs().max() <= 1


def test_passes_that_a_late_host_holds_up_are_refused(tmp_path):
    """Before a pass it is idle, in no pass: how that goes on with other passes is not known."""
    trace = replace(JOB, paces={2: Pace(idle_ns=MS)}).open(tmp_path)
    with pytest.raises(MissingDataError, match="a replay of them takes 33 % more or less"):
        what_if(trace, edits.microbatches(16))


def test_what_cannot_be_told_is_refused(tmp_path):
    zero = replace(JOB, schedule="zero bubble").open(folder_of(tmp_path / "zero"))
    with pytest.raises(MissingDataError, match=r"that of this one is not: zero bubble \(ZB-H1\)"):
        what_if(zero, edits.microbatches(16))
    interleaved = JOBS["interleaved"].open(folder_of(tmp_path / "interleaved"))
    with pytest.raises(ValueError, match="in rounds of 4, not 6 of them"):
        what_if(interleaved, edits.microbatches(6))
    with pytest.raises(MissingDataError, match="pipeline stages"):
        what_if(ParallelJob(data=4, layers=2).open(folder_of(tmp_path / "data")), edits.microbatches(4))
    with pytest.raises(ValueError, match="replayed alone"):
        what_if(interleaved, [edits.microbatches(16), edits.no_stragglers()])
    with pytest.raises(ValueError, match="count must be 2 or more"):
        edits.microbatches(1)
