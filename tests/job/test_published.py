"""The two recorded jobs whose slowdowns are published: all numbers, from their labels."""

import json

import numpy as np
import pytest

from tests.job.labelled import answers, labelled
from tests.support import shared_job

JOBS = ("AR", "ST")


def published(kind: str, name: str) -> dict:
    return json.loads(shared_job(f"{kind}-{name}.json").read_text())


@pytest.mark.parametrize("name", JOBS)
def test_step_times_and_slowdown(name):
    result, found = published("result", name), answers(name)
    assert (found["forced"], found["unreached"]) == (0, 0)
    assert found["T"] / 1e9 == pytest.approx(np.mean(list(result["step_t_nodelay"].values())), rel=1e-5)
    assert found["T_ideal"] / 1e9 == pytest.approx(np.mean(list(result["step_t_noblk"].values())), rel=1e-5)
    assert found["S"] == pytest.approx(result["blocking_slowdown"], rel=1e-5)
    steps = [result["blocking_step_slowdown"][str(step)] for step in sorted(labelled(name)["step"].unique())]
    assert found["steps"] == pytest.approx(steps, rel=1e-5)


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("scope", ["optype", "stage", "dp_rank"])
def test_slowdown_by_operation_stage_and_replica(name, scope):
    result = published("result", name)[f"blocking_decompose_by_{scope}"]
    assert answers(name)[scope] == pytest.approx(result, rel=1e-5)


@pytest.mark.parametrize("name", JOBS)
def test_what_repairing_the_worst_workers_and_the_last_stage_wins(name):
    assert answers(name)["M_W"] == pytest.approx(published("mw", name)["Mw"], rel=1e-4)
    assert answers(name)["M_S"] == pytest.approx(published("ms", name)["Ms"], rel=1e-4, abs=1e-6)
