"""Ideal times where one name does unlike work, and where nothing but chance tells its operations apart."""

import numpy as np
import pandas as pd
import pytest

from hta_widgets.analysis import slowdown
from hta_widgets.analysis.job.ideal import ideal_times
from tests.job.parallel_jobs import ParallelJob

RANKS, STEPS = 2, 3
ALIKE = dict.fromkeys(range(RANKS), 0)


def operations(times: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
    """Kernels of one name: `times` by rank, step and place."""
    rank, step, _ = (place.ravel() for place in np.indices(times.shape))
    texts = {
        "kind": "compute",
        "name": "gemm",
        "collective": pd.NA,
        "process_group": pd.NA,
        "group_ranks": pd.NA,
    }
    ops = pd.DataFrame({**texts, "rank": rank, "step": step, "lane": 0, "group_size": pd.NA, "bytes": pd.NA})
    return ops, times.ravel()


def test_unlike_work_under_one_name_keeps_its_proportions():
    """Forward takes 300, backward 600, and one rank half as long again: both should take 1.25 times that."""
    usual = np.array([300, 300, 600, 600])
    times = np.stack([np.tile(usual, (STEPS, 1)), np.tile(usual * 3 // 2, (STEPS, 1))])
    ideal = ideal_times(*operations(times), ALIKE).reshape(times.shape)
    assert (ideal == usual * 5 // 4).all()
    assert ideal.sum() == times.sum()


def test_chance_is_split_evenly():
    """Microbatches of random length have one ideal: their mean, however a few of them happen to lie."""
    times = np.random.default_rng(1).integers(200, 2000, (RANKS, STEPS, 6))
    ideal = ideal_times(*operations(times), ALIKE)
    assert set(ideal.tolist()) == {round(times.mean())}


def test_what_one_rank_and_step_show_is_split_evenly():
    """With nothing to compare, unlike operations may be chance."""
    ideal = ideal_times(*operations(np.array([[[300, 600]]])), {0: 0})
    assert ideal.tolist() == [450, 450]


@pytest.mark.parametrize(
    "job",
    [
        ParallelJob(pipeline=4, data=2, tensor=2, microbatches=4),
        ParallelJob(tensor=2, data=2, microbatches=4),
    ],
    ids=["pipeline", "data"],
)
def test_no_rank_of_a_sound_job_costs_anything(job, tmp_path):
    """Ranks of a tensor group meet after every layer: as recorded among ideal ones they must fit."""
    frame = slowdown(job.open(tmp_path))
    assert frame["slowdown"].between(0.999, 1.002).all()
    step = frame.loc[frame["scope"] == "job", "time_ns"].iloc[0]
    assert (frame["cost_ns"].abs() < step / 500).all()
