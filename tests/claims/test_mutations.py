"""What is said of a recording stays true, or is not said, when it is recorded another way."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets.errors import HtaWidgetsError
from tests.claims.checking import check_job
from tests.claims.mutations import MUTATIONS, mutated
from tests.claims.recordings import EXAMPLES, path_of
from tests.support import shared_input

RECORDINGS = [
    "traces/hta/trace_diff/control/",
    "traces/hta/ns_resolution_trace/",
    "recordings/transformer_gh200",
    "recordings/loader_t4_amp",
    "recordings/cpu_ddp_slow_rank2",
]


def source(name: str) -> Path:
    return path_of(name) if name in EXAMPLES else shared_input(name)


@pytest.mark.parametrize("change", MUTATIONS)
@pytest.mark.parametrize("name", ["single_gpu_dataloader_stall", "inference_cuda_graphs", *RECORDINGS])
def test_claims_stay_true(name: str, change: str, tmp_path: Path) -> None:
    try:
        faults = check_job(mutated(source(name), tmp_path / "job", MUTATIONS[change]))
    except HtaWidgetsError as error:
        assert str(error)  # nothing is left to read, and that is said
        return
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.parametrize("by", [1.2, 1.5, 3.0])
@pytest.mark.parametrize("name", ["ddp_4ranks", "gpt2_ddp", "recordings/three_experiments"])
def test_one_slower_rank_raises_nothing_and_claims_stay_true(name: str, by: float, tmp_path: Path) -> None:
    from tests.claims.mutations import _slower

    faults = check_job(mutated(source(name), tmp_path / "job", _slower(by, True), only=1))
    assert not faults, "\n".join(map(str, faults))
