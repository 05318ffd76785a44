"""Small recordings of the time between steps, with known answers: what a step takes, and what it consists of.

The recordings are the rows "Time between steps" of the cases that lie beside the real traces.
"""

import pandas as pd
import pytest

from hta_widgets import Trace, analysis
from hta_widgets.analysis.findings import judged_scope
from tests.support import shared_input

SHARE = 0.5  # % points


def opened(name: str) -> Trace:
    return Trace.open(shared_input(f"cases/{name}"), cache=False)


def judged(trace: Trace) -> pd.DataFrame:
    """The time split of what the findings judge, by rank."""
    return analysis.temporal_breakdown(trace, judged_scope(trace)).set_index("rank")


def ended(trace: Trace, rank: int = 0) -> list[int]:
    """How long the steps of a rank take whose end is recorded, us."""
    frame = analysis.step_times(trace)
    frame = frame[(frame["rank"] == rank) & ~frame["open"] & ~frame["partial"]]
    return (frame["dur_ns"] // 1_000).tolist()


@pytest.mark.parametrize("name", ["i18_sync_after_step", "a07_device_clock_ahead"])
def test_the_time_until_the_next_step_belongs_to_the_step(name: str) -> None:
    trace = opened(name)
    assert set(ended(trace)) == {1_000}
    row = judged(trace).loc[0]
    assert row["compute_pct"] == pytest.approx(80, abs=SHARE)
    assert row["idle_pct"] == pytest.approx(20, abs=SHARE)


@pytest.mark.parametrize("name", ["i02_loss_read_after_step", "i04_control_step_at_loop_top"])
def test_steps_that_hold_their_work_stay_as_they_are(name: str) -> None:
    trace = opened(name)
    assert set(ended(trace)) == {1_000}
    assert judged(trace).loc[0, "compute_pct"] == pytest.approx(80, abs=SHARE)


def test_the_host_that_prepares_a_batch_between_steps_is_named() -> None:
    found = analysis.overview(opened("i18_sync_after_step"))
    first = found.iloc[0]
    assert first["topic"] == "idle_host" and "batch_prepare" in first["text"]
    assert "of step time" in first["text"]


def test_ranks_in_lock_step_have_one_whole() -> None:
    trace = opened("i20_two_ranks_sync_after_step")
    assert set(trace.iterations["clock"]) == {"device"}
    assert set(ended(trace, 0)) == set(ended(trace, 1)) == {1_500}
    by_rank = judged(trace)
    assert len(set(by_rank["window_ns"])) == 1
    assert by_rank["idle_pct"].tolist() == [pytest.approx(13.3, abs=SHARE), pytest.approx(40, abs=SHARE)]


def test_work_that_runs_after_all_steps_tells_nothing_of_any() -> None:
    """The kernels of eight graphs come in one burst after the last mark."""
    trace = opened("l01_graph_burst_corr_kept")
    frame = analysis.step_times(trace)
    assert len(frame) == 8 and not frame["outlier"].any() and frame["usual_ns"].isna().all()
    found = analysis.overview(trace)
    assert "slow_steps" not in set(found["topic"])
    assert not found["share_pct"].any(), "how long a step took cannot be told"


def test_a_step_that_the_recording_does_not_end_is_partial() -> None:
    frame = analysis.step_times(opened("a05_unfinished_step_zero"))
    assert frame["iteration"].tolist() == [2, 3, 4]
    assert frame["partial"].tolist() == [False, False, True]


def test_per_step_figures_divide_by_the_steps_of_the_rank() -> None:
    """Ranks recorded steps 2 to 5 and 4 to 7: four each, six in all."""
    found = analysis.overview(opened("j06_ranks_record_other_steps")).set_index("topic")
    assert "(300 µs per step)" in found.loc["exposed_communication", "text"]
    assert "(272 µs per step)" in found.loc["idle_host", "text"]
    assert set(found["steps"].dropna()) == {4}


def test_idle_time_between_decode_steps_is_the_servers() -> None:
    """Twelve steps, one every 15 ms, with 10.74 ms of work each."""
    trace = opened("serving/decode_every_15ms.json.gz")
    assert {round(took / 1_000, 1) for took in ended(trace)} == {15.0}
    assert judged(trace).loc[0, "idle_pct"] == pytest.approx(28.4, abs=SHARE)
