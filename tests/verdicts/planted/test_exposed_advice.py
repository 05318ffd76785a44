"""What to do about communication that nothing hides depends on what the groups are for that communicate."""

import pytest

from hta_widgets.analysis.findings import overview
from tests.job.parallel_jobs import MESH, UNDEFINED, ParallelJob

pytestmark = pytest.mark.slow

CASES = {
    "tensor": (ParallelJob(tensor=4, microbatches=2), "async tensor parallelism"),
    "tensor beside data": (
        ParallelJob(tensor=2, data=2, microbatches=2, described=MESH), "async tensor parallelism",
    ),
    "expert": (ParallelJob(data=4, expert=4, microbatches=2), "dispatch and combine"),
    "a ring": (ParallelJob(context=4, microbatches=2), "ring attention"),
    # near misses: most of it is elsewhere, or nobody says what the groups are for
    "shards": (ParallelJob(data=4, shard=2, described=MESH), "prefetching of sharded parameters"),
    "more in shards than in tensor groups": (
        ParallelJob(tensor=2, data=4, shard=2, described=MESH), "prefetching of sharded parameters",
    ),
    "tensor, told by its forward passes": (
        ParallelJob(tensor=4, microbatches=2, layers=2, described=UNDEFINED), "between layers",
    ),
    "too few in the forward passes": (
        ParallelJob(tensor=4, microbatches=2, described=UNDEFINED), "a process group of fewer ranks",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_advice_by_purpose_of_the_groups(name, tmp_path):
    job, words = CASES[name]
    found = overview(job.open(tmp_path)).set_index("topic")
    advice = found.loc["exposed_communication", "suggestion"]
    assert words in advice
    assert ("inside" in advice) == (name in ("tensor", "tensor beside data", "expert", "a ring"))
    assert ("gradient buckets" in advice) == (
        name in ("tensor", "tensor beside data", "tensor, told by its forward passes")
    )
    assert "microbatches per step" not in advice  # nothing waits for a stage
