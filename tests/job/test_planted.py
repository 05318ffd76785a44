"""Planted jobs: who is late, why, and what it costs; near misses name nobody, and gaps are told."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.analysis import ANALYSES, slowdown
from hta_widgets.charts.marks import marks
from hta_widgets.errors import MissingDataError
from tests.job.test_recordings import culprits, job_row
from tests.support import EVERY_CASE
from tests.verdicts.planted.rank_programs import MS, Pace, Play, data_parallel, pipeline
from tests.verdicts.planted.test_ranks import CASES, LATE, SLOW, among, one, unlike

SLOWER, MORE, HOST = "same kernels slower", "more work", "host late"
NAMED = {
    **{f"pipeline_slow_stage_{rank}": ([str(rank)], SLOWER) for rank in range(4)},
    **{f"pipeline_stage_with_more_layers_{rank}": ([str(rank)], MORE) for rank in range(4)},
    **{f"pipeline_late_host_{rank}": ([str(rank)], HOST) for rank in range(4)},
    **{f"data_parallel_slow_rank_{rank}": ([str(rank)], SLOWER) for rank in range(4)},
    **{f"replicas_of_a_pipeline_slow_rank_{rank}": ([str(rank)], SLOWER) for rank in range(4)},
    "pipeline_stage_that_copies": (["2"], "copies"),
    "pipeline_groups_of_two_tell_partners": (["1"], SLOWER),
    "pipeline_of_2_slow_first": (["0"], SLOWER),
    "pipeline_of_2_slow_last": (["1"], SLOWER),
    "pipeline_of_12_slow_stage": (["3"], SLOWER),
    "two_slow_ranks_of_eight": (["3", "6"], SLOWER),
    "data_parallel_of_2_slow": (["1"], SLOWER),
    "data_parallel_more_launches": (["1"], MORE),
    "data_parallel_larger_grids": (["3"], MORE),
    "one_kernel_name_is_slow": (["2"], SLOWER),
    "two_ranks_with_a_slow_link": (["0", "1"], "slow link"),
    "late_host": (["1"], HOST),
    "slow_in_two_of_five_steps": (["1"], SLOWER),
    "clocks_apart": (["1"], SLOWER),
    "clocks_far_apart_in_collectives": (["1"], SLOWER),
    "clocks_that_run_apart": (["1"], SLOWER),
    "victim_is_not_recorded": (["1"], SLOWER),
}
NOBODY = {
    **dict.fromkeys(("balanced_pipeline_of_4", "balanced_pipeline_of_3", "balanced_pipeline_of_2"), "none"),
    **dict.fromkeys(("equal_ranks_2", "equal_ranks_4", "equal_ranks_8", "slower_by_too_little"), "none"),
    "sequence_lengths": "no single rank: sequence imbalance",
    "sequence_lengths_in_equal_grids": "no single rank: sequence imbalance",
    "sequence_lengths_of_eight_ranks": "no single rank: sequence imbalance",
    "culprit_is_not_recorded_in_a_pipeline": "a rank that was not recorded",
    "culprit_is_not_recorded_in_data_parallel": "unknown",
    "unknown_partners": "unknown",
}
# Like others of these: tests/verdicts/planted/test_ranks.py asks what is found in all of them.
ALIKE = {
    "balanced_pipeline_of_2",
    "balanced_pipeline_of_3",
    "clocks_far_apart_in_collectives",
    "data_parallel_of_2_slow",
    "equal_ranks_2",
    "equal_ranks_8",
    "pipeline_of_2_slow_last",
    "sequence_lengths_of_eight_ranks",
}


def asked(names: Iterable[str]) -> list[str]:
    return [name for name in unlike(names) if EVERY_CASE or name not in ALIKE]


SAYS = {
    "data_parallel_slow_rank_2": (
        "less. Same kernels slower: rank 2. Its repair wins",
        True,
    ),
    "equal_ranks_4": ("No straggler: a step takes hardly longer than with all", False),
    "sequence_lengths": ("No single rank: sequence imbalance: no few of the", False),
}


@cache
def answer(name: str) -> pd.DataFrame:
    case = CASES[name]
    with TemporaryDirectory() as folder:
        return slowdown(case.play().open(Path(folder), case.without))


@pytest.mark.parametrize("name", asked(NAMED))
def test_the_culprit_and_its_cause(name):
    ranks, cause = NAMED[name]
    frame = answer(name)
    assert culprits(frame) == [("rank", rank, cause) for rank in ranks]
    job = job_row(frame)
    assert job["cause"] == cause
    assert job["slowdown"] > 1.02
    assert all(f"{rank}" in job["evidence"] for rank in ranks)


@pytest.mark.parametrize(("stage", "ranks"), [(0, "0, 1"), (1, "2, 3")])
def test_a_stage_of_tensor_parallel_ranks(stage, ranks):
    frame = answer(f"tensor_parallel_slow_{('first', 'last')[stage]}_stage")
    assert culprits(frame) == [("stage", str(stage), MORE)]
    assert f"ranks {ranks}" in job_row(frame)["evidence"]


@pytest.mark.parametrize("name", asked(NOBODY))
def test_nobody_is_named(name):
    frame = answer(name)
    assert culprits(frame) == []
    assert job_row(frame)["cause"] == NOBODY[name]


@pytest.mark.parametrize("name", ["single_rank", "slow_kernels_without_communication"])
def test_nothing_to_compare(name):
    with pytest.raises(MissingDataError):
        answer(name)


@pytest.mark.parametrize(
    ("slow", "equal"),
    [
        (lambda: pipeline(one(4, 1, LATE)), lambda: pipeline(among(4))),
        (lambda: data_parallel(one(4, 1, LATE)), lambda: data_parallel(among(4))),
    ],
)
def test_a_late_host_costs_what_the_job_without_it_gains(slow, equal, tmp_path):
    """Waits for the host are ideally those of the others, so the ideal job is the one without the fault."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "equal").mkdir()
    late = job_row(slowdown(Play(slow()).open(tmp_path / "slow")))
    without = job_row(slowdown(Play(equal()).open(tmp_path / "equal")))
    assert late["cost_ns"] == pytest.approx(late["time_ns"] - without["time_ns"], rel=0.02)


@pytest.mark.parametrize("times", [1.1, 2.0])
def test_the_ideal_is_an_even_split(times, tmp_path):
    """One of four computes `times` as long: the mean is (3 + times) / 4, and all others wait for it."""
    job = job_row(slowdown(Play(data_parallel(one(4, 1, Pace(times)))).open(tmp_path)))
    computing, transfer = 4_000_000, 100_000
    expected = (computing * times + transfer) / (computing * (3 + times) / 4 + transfer)
    assert job["slowdown"] == pytest.approx(expected, rel=0.005)


def test_clocks_change_nothing(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "apart").mkdir()
    same = slowdown(Play(pipeline(one(4, 1, SLOW))).open(tmp_path / "one"))
    apart = slowdown(
        Play(pipeline(one(4, 1, SLOW)), clocks_ns=(0, 3 * MS, -MS, 2 * MS)).open(tmp_path / "apart")
    )
    pd.testing.assert_frame_equal(same, apart)


@pytest.mark.parametrize("name", SAYS)
def test_the_sentence_and_the_bars(name):
    frame = answer(name)
    words, named = SAYS[name]
    assert words in ANALYSES["slowdown"].sentence(frame)
    bars = marks(ANALYSES["slowdown"].chart, frame[frame["scope"].isin(("job", "rank"))]).table
    notes = dict(zip(bars["label"], bars["note"], strict=True))
    assert any(label.startswith("rank") and note != "" for label, note in notes.items()) is named


def test_rows_of_one_scope(tmp_path):
    trace = Play(data_parallel(one(4, 1, SLOW))).open(tmp_path)
    whole, ranks = slowdown(trace), slowdown(trace, by="rank")
    kept = whole[whole["scope"].isin(("job", "rank"))].reset_index(drop=True)
    pd.testing.assert_frame_equal(ranks, kept)
    assert ranks["key"].tolist() == ["all", "0", "1", "2", "3"]
    with pytest.raises(ValueError, match="by must be one of all, operation, rank"):
        slowdown(trace, by="stages")  # type: ignore[arg-type]


def test_the_straggler_of_the_example():
    frame = slowdown(examples.load("ddp_4ranks"))
    assert culprits(frame) == [("rank", "2", SLOWER)]
