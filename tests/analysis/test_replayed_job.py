"""The replay of the job decides who is late, and what that costs; where it has no answer, the waits do."""

import pytest

from hta_widgets import examples
from hta_widgets.analysis import overview, slowdown, temporal_breakdown
from hta_widgets.analysis.communication.standing_out import standing_out
from hta_widgets.analysis.findings import replayed_job as module
from hta_widgets.analysis.findings.among_ranks import among_ranks
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.imbalance import mutual_waiting
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.replayed_job import named_late, replayed_job
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.analysis.findings.saving import Saving
from hta_widgets.analysis.findings.story import story
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
    # a share of the recorded steps, as all that the overview says, and as the bar has it
    step = temporal_breakdown(job, inputs.scope)["window_ns"].mean() / 4
    cost = duration(step * row["cost_ns"] / frame["time_ns"].iloc[0])
    assert "Rank 2 holds the others up: the same operations take" in str(finding.text)
    late = story(job).advice[0]
    assert late.figure == f"−{cost}" and f"the steps take {share} less" in late.sure
    assert share not in " ".join(late.what + late.why)  # what is saved is no cost


def test_ranks_late_in_turn_name_nobody_whoever_causes_most_waiting(monkeypatch, job):
    inputs = saying(monkeypatch, job, Culprit("nobody", varies=True))
    assert standing_out(inputs.late) == [2]
    assert named_late(inputs) == []
    assert straggler(inputs) is None


def test_a_rank_that_causes_all_waiting_stands_out_though_the_replay_names_nobody(monkeypatch, job):
    finding = mutual_waiting(saying(monkeypatch, job, Culprit("nobody", varies=True)))
    assert finding is not None and finding.title == "Waiting for another rank"
    assert "Rank 2 causes the largest part of it: 100 %." in str(finding.text)
    assert "stands out" not in str(finding.text) and "each other" not in str(finding.text)


@pytest.mark.parametrize("kind", ["none", "missing", "unknown", "communication"])
def test_where_the_replay_leaves_it_open_the_waits_decide(monkeypatch, job, kind):
    inputs = saying(monkeypatch, job, Culprit(kind))
    assert named_late(inputs) == [2]
    finding = straggler(inputs)
    assert finding is not None
    assert ("would take hardly less" in str(finding.text)) == (kind == "none")
    assert " costs " not in str(finding.text)


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


def saving(
    inputs: Inputs, topic: str, share_pct: float, rank: int | None = None, late: tuple[int, ...] = ()
) -> Saving:
    """Of a finding of this rule that costs so much."""
    (rule,) = (rule for rule in RULES if rule.topic == topic)
    finding = Finding(1_000_000, share_pct, "", "", "stragglers", Evidence(rank=rank))
    return among_ranks(inputs, rule, finding, set(late))


def test_what_is_saved_is_what_the_replay_of_all_ranks_says(job):
    frame = slowdown(job, Inputs(job, Scope()).scope)
    row = frame[(frame["scope"] == "rank") & (frame["key"] == "2")].iloc[0]
    told = overview(job).set_index("topic")
    late, reason = told.loc["straggler"], told.loc["slow_kernels"]
    steps = int((frame["scope"] == "iteration").sum())
    assert late["saving_ns"] == pytest.approx(steps * row["cost_ns"], abs=2 * steps)
    assert late["saving_pct"] == pytest.approx(100.0 * row["cost_ns"] / frame["time_ns"].iloc[0])
    assert (late["section"], late["method"]) == ("saves", "replay")
    assert late["saving_low_ns"] <= late["saving_ns"] <= late["saving_high_ns"]
    assert reason["share_pct"] > late["saving_pct"] == reason["saving_pct"]
    assert (reason["method"], reason["saving_low_ns"]) == ("bound", 0)
    assert told.index[:2].tolist() == ["straggler", "slow_kernels"]


def test_what_makes_a_rank_late_saves_no_more_than_it_costs(job):
    inputs = Inputs(job, Scope())
    small = saving(inputs, "imbalance", 4.0, 2, (2,))
    assert (small.pct, small.ns, small.method) == (4.0, 1_000_000, "analytic")
    assert str(small.text).startswith("At most 4.00 % can be saved: all that makes rank 2 late")
    innocent = saving(inputs, "imbalance", 4.0, 1, (2,))
    assert str(innocent.text).startswith("Saving not estimated") and innocent.ns is None


@pytest.mark.parametrize(
    ("found", "method", "words"),
    [
        (Culprit("nobody"), "bound", "with all ranks as fast as the ranks are on average, the steps take at"),
        (Culprit("none"), "bound", "with all ranks as fast as the ranks are on average, the steps take at"),
        (Culprit("communication", (0, 1), 0.5), "replay", "with all transfers as fast as is usual"),
        (
            Culprit("missing"),
            "analytic",
            "At most 20.0 % can be saved: a simulation of one rank cannot show more",
        ),
        (
            Culprit("unknown"),
            "analytic",
            "At most 20.0 % can be saved: a simulation of one rank cannot show more",
        ),
    ],
)
def test_a_saving_is_told_as_far_as_the_replay_decides(monkeypatch, job, found, method, words):
    told = saving(saying(monkeypatch, job, found), "mutual_waiting", 20.0)
    assert (told.method, words in str(told.text)) == (method, True)
    loss = slowdown(job)["cost_ns"].iloc[0] / slowdown(job)["time_ns"].iloc[0]
    part = {"bound": 1.0, "replay": 0.5}.get(method, 0.2 / loss)
    assert told.pct == pytest.approx(100 * part * loss, rel=1e-5)


def test_ranks_whose_repair_wins_nothing_save_nothing_now(monkeypatch, job):
    frame = slowdown(job).assign(culprit=False)
    frame.loc[0, ["cost_ns", "slowdown_low", "slowdown_high"]] = [0, 0.99, 1.0]
    monkeypatch.setattr(module, "judged", lambda trace, scope: (Culprit("none"), frame))
    told = saving(Inputs(job, Scope()), "straggler", 20.0, 2, (2,))
    assert (told.section, told.ns, told.high_ns) == ("not now", 0, 0)
    assert "the steps take as long: something else then decides the time." in str(told.text)
