"""What is said of a recording stays true, or is not said, when it is recorded another way."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets.errors import HtaWidgetsError
from tests.claims.checking import check_job
from tests.claims.mutations import MUTATIONS, mutated, slower
from tests.claims.recordings import EXAMPLES, path_of
from tests.support import EVERY_CASE, crossed, shared_input

SMALL = [
    "single_gpu_dataloader_stall",
    "inference_cuda_graphs",
    "recordings/transformer_gh200",
    "recordings/loader_t4_amp",
]
LARGE = ["recordings/cpu_ddp_slow_rank2", "traces/hta/trace_diff/control/", "traces/hta/ns_resolution_trace/"]
# By default each change of two small recordings, which have what it takes away: large ones take the time.
CASES = [
    *crossed(SMALL, MUTATIONS),
    *crossed([*SMALL[2:], *SMALL[:2]], MUTATIONS),
    (LARGE[0], "first half"),
]
if EVERY_CASE:
    CASES = crossed([*SMALL, *LARGE], MUTATIONS)
SLOWER = crossed(["gpt2_ddp", "recordings/three_experiments", "ddp_4ranks"], [1.2, 1.5, 3.0])


def source(name: str) -> Path:
    return path_of(name) if name in EXAMPLES else shared_input(name)


@pytest.mark.parametrize(("name", "change"), CASES)
def test_claims_stay_true(name: str, change: str, tmp_path: Path) -> None:
    try:
        faults = check_job(mutated(source(name), tmp_path / "job", MUTATIONS[change]))
    except HtaWidgetsError as error:
        assert str(error)  # nothing is left to read, and that is said
        return
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.parametrize(("name", "by"), SLOWER)
def test_one_slower_rank_raises_nothing_and_claims_stay_true(name: str, by: float, tmp_path: Path) -> None:
    faults = check_job(mutated(source(name), tmp_path / "job", slower(by, device_only=True), only=1))
    assert not faults, "\n".join(map(str, faults))
