"""The replay of the job decides who is late, and what that costs; where it has no answer, the waits do."""

import pytest

from hta_widgets import examples
from hta_widgets.analysis import slowdown
from hta_widgets.analysis.communication.standing_out import standing_out
from hta_widgets.analysis.findings import replayed_job as module
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.replayed_job import named_late, replayed_job
from hta_widgets.analysis.findings.straggler import straggler
from hta_widgets.analysis.job.culprits import Culprit
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope


@pytest.fixture(scope="module")
def job() -> Trace:
    return examples.load("ddp_4ranks")


def saying(monkeypatch: pytest.MonkeyPatch, job: Trace, found: Culprit) -> Inputs:
    """The inputs of findings, with a replay that names these."""
    frame = slowdown(job).assign(culprit=False)
    monkeypatch.setattr(module, "judged", lambda trace, scope: (found, frame))
    return Inputs(job, Scope())


def test_the_cost_is_that_of_the_rank(job):
    inputs = Inputs(job, Scope())
    frame = slowdown(job, inputs.scope)
    row = frame[(frame["scope"] == "rank") & (frame["key"] == "2")].iloc[0]
    finding = straggler(inputs)
    share = percent(100.0 * row["cost_ns"] / frame["time_ns"].iloc[0])
    assert row["cost_ns"] < frame["cost_ns"].iloc[0]
    assert finding is not None
    assert f"Rank 2 costs {share} of a step ({duration(row['cost_ns'])}): the same operations take" in (
        finding.text
    )


def test_ranks_late_in_turn_name_nobody_whoever_causes_most_waiting(monkeypatch, job):
    inputs = saying(monkeypatch, job, Culprit("nobody", varies=True))
    assert standing_out(inputs.late) == [2]
    assert named_late(inputs) == []
    assert straggler(inputs) is None


@pytest.mark.parametrize("kind", ["none", "missing", "unknown", "communication"])
def test_where_the_replay_leaves_it_open_the_waits_decide(monkeypatch, job, kind):
    inputs = saying(monkeypatch, job, Culprit(kind))
    assert named_late(inputs) == [2]
    finding = straggler(inputs)
    assert finding is not None
    assert ("would take hardly less" in finding.text) == (kind == "none")
    assert " of a step (" not in finding.text


def test_a_part_of_a_step_is_not_replayed(job):
    window = Inputs(job, Scope(window_ns=(0, 10**12)))
    assert replayed_job(window) is None
    assert named_late(window) == standing_out(window.late) == [2]


def test_without_a_replay_the_waits_decide(monkeypatch, job):
    def refuse(trace: Trace, scope: Scope) -> None:
        raise MissingDataError("order of operations", "Record launches as well.")

    monkeypatch.setattr(module, "judged", refuse)
    assert named_late(Inputs(job, Scope())) == [2]


def test_a_large_job_is_not_replayed_before_anybody_asks(monkeypatch, job):
    monkeypatch.setattr(module, "MOST_WORK", 1000)
    inputs = Inputs(job, Scope())
    assert replayed_job(inputs) is None
    assert named_late(inputs) == standing_out(inputs.late) == [2]
