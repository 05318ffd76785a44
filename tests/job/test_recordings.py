"""The recorded jobs as Kineto files without labels: the same slowdown and culprit, kindly recorded or not."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest

from hta_widgets.analysis import slowdown
from tests.job.conversion import MS, recorded
from tests.job.labelled import answers, labelled
from tests.support import EVERY_CASE, crossed

pytestmark = pytest.mark.slow

STEPS = 4
UNKIND = {
    "kind": {},
    "clocks off by milliseconds": {"clock_ns": 5 * MS},
    "clocks off by seconds": {"clock_ns": 1000 * MS},
    "clocks drift": {"drift": 2e-5},
    "norm in the group of replicas": {"norm_of_replicas": True},
    "clip as a plain kernel": {"clip_is_a_kernel": True},
    "both": {"norm_of_replicas": True, "clip_is_a_kernel": True},
}
# one of each kind of these
UNLIKE_WAYS = ["kind", "clocks drift", "both", "clocks off by seconds"]
CULPRIT = {"AR": ("rank", "0", "same kernels slower"), "ST": ("stage", "3", "more work")}


@cache
def answer(name: str, variant: str, steps: int | None = STEPS, missing: tuple[int, ...] = ()) -> pd.DataFrame:
    with TemporaryDirectory() as folder:
        return slowdown(recorded(Path(folder) / "job", name, steps, missing=missing, **UNKIND[variant]))


def job_row(frame: pd.DataFrame) -> pd.Series:
    return frame[frame["scope"] == "job"].iloc[0]


def culprits(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    named = frame[frame["culprit"]]
    return list(zip(named["scope"], named["key"], named["cause"], strict=True))


@pytest.mark.parametrize(("variant", "name"), crossed(UNKIND if EVERY_CASE else UNLIKE_WAYS, CULPRIT))
def test_slowdown_and_culprit(variant, name):
    frame = answer(name, variant)
    job, truth = job_row(frame), answers(name, STEPS)["S"]
    assert job["slowdown"] == pytest.approx(truth, rel=0.01)
    assert job["slowdown_low"] <= job["slowdown"] <= job["slowdown_high"]
    assert culprits(frame) == [CULPRIT[name]]
    assert job["cause"] == CULPRIT[name][2]
    assert abs(job["model_error_pct"]) < 2


@pytest.mark.parametrize("name", CULPRIT if EVERY_CASE else ["ST"])  # AR is the larger job
def test_all_steps(name):
    frame = answer(name, "kind", None)
    assert job_row(frame)["slowdown"] == pytest.approx(answers(name)["S"], rel=0.01)
    assert culprits(frame) == [CULPRIT[name]]


@pytest.mark.parametrize("name", CULPRIT)
def test_parts_agree_with_the_labels(name):
    frame, truth = answer(name, "kind"), answers(name, STEPS)
    found = {scope: rows.set_index("key")["slowdown"] for scope, rows in frame.groupby("scope")}
    for kind in ("forward-compute", "backward-compute"):
        assert found["operation"][kind] == pytest.approx(truth["optype"][kind], rel=0.01)
    # The layer-norm gradients wait for ranks of the tensor group that were not recorded: up to 3 % of ST.
    assert found["stage"].to_dict() == pytest.approx(truth["stage"], rel=0.03)
    assert found["replica"].to_dict() == pytest.approx(truth["dp_rank"], rel=0.01)
    steps = labelled(name, STEPS)["step"].drop_duplicates().astype(str)
    assert list(found["iteration"].index) == list(steps)


@pytest.mark.parametrize(
    ("name", "missing", "named"),
    [
        ("AR", (1,), [CULPRIT["AR"]]),
        ("AR", tuple(range(1, 16, 2)), [CULPRIT["AR"]]),
        ("ST", (1,), [CULPRIT["ST"]]),
        ("ST", (0,), [CULPRIT["ST"]]),
    ],
)
def test_culprit_without_some_ranks(name, missing, named):
    frame = answer(name, "kind", STEPS, missing)
    assert culprits(frame) == named
    assert job_row(frame)["slowdown"] == pytest.approx(answers(name, STEPS)["S"], rel=0.08)


# a rank of the first stage and of another, a stage, some of each
UNLIKE = [("AR", (5,)), ("AR", (0, 1, 2, 3)), ("ST", (1,)), ("ST", (2, 7)), ("ST", (0, 2, 4, 6))]
UNRECORDED = [
    *(("AR", (rank,)) for rank in (0, 1, 4, 5, 12, 13)),
    *(("ST", (rank,)) for rank in (0, 1, 4, 5)),
    *(("AR", ranks) for ranks in ((1, 4), (2, 7), (0, 1, 2, 3), (12, 13, 14, 15), tuple(range(0, 16, 2)))),
    *(("ST", ranks) for ranks in ((1, 2), (2, 7), (4, 5), (6, 7), (0, 2, 4, 6))),
]


@pytest.mark.parametrize(("name", "missing"), UNRECORDED if EVERY_CASE else UNLIKE)
def test_the_range_holds_the_slowdown_of_the_whole_job(name, missing):
    """And no rank is blamed that is not: where a pipeline's neighbours are missing, nobody is."""
    frame = answer(name, "kind", STEPS, missing)
    job, truth = job_row(frame), answers(name, STEPS)["S"]
    assert job["slowdown_low"] <= truth <= job["slowdown_high"]
    assert job["slowdown_low"] <= job["slowdown"] <= job["slowdown_high"]
    right = (
        {("rank", "0"), ("stage", "0")} if name == "AR" else {("stage", "3"), ("rank", "6"), ("rank", "7")}
    )
    assert {named[:2] for named in culprits(frame)} <= right
    if not culprits(frame):
        assert job["cause"] in ("unknown", "a rank that was not recorded")


@pytest.mark.parametrize("missing", [(2,), (3,), (6,), (7,)] if EVERY_CASE else [(2,), (7,)])
def test_a_missing_rank_beyond_all_others_is_beyond_the_range(missing):
    """The fastest and the slowest of ST: what they do cannot be told from others, to within 0.5 % of S."""
    job, truth = job_row(answer("ST", "kind", STEPS, missing)), answers("ST", STEPS)["S"]
    assert 0.995 * job["slowdown_low"] <= truth <= 1.005 * job["slowdown_high"]
    assert job["cause"] == "unknown"


def test_a_neighbour_is_not_taken_for_one_that_was_not_recorded():
    """Rank 5 passes on what rank 1 sends and rank 9 receives: without it the two do not meet."""
    whole, without = (job_row(answer("AR", "kind", STEPS, missing)) for missing in ((), (5,)))
    assert without["slowdown"] == pytest.approx(whole["slowdown"], rel=0.01)


def test_the_culprit_was_not_recorded():
    frame = answer("AR", "kind", STEPS, (0,))
    assert culprits(frame) == []
    assert job_row(frame)["cause"] == "a rank that was not recorded"


@pytest.mark.parametrize("name", CULPRIT)
def test_costs_are_what_repair_wins(name):
    frame = answer(name, "kind")
    job = job_row(frame)
    assert job["cost_ns"] == pytest.approx(job["time_ns"] * (1 - 1 / job["slowdown"]), rel=1e-6)
    scope, key, _ = CULPRIT[name]
    worst = frame[frame["scope"].isin(("rank", "stage"))].set_index(["scope", "key"])["cost_ns"]
    assert worst.idxmax() == (scope, key)
    steps = frame[frame["scope"] == "iteration"]
    assert steps["cost_ns"].mean() == pytest.approx(job["cost_ns"], abs=1)
