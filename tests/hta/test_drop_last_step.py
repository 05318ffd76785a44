"""Which events HTA looks at, by its rule and without its bugs."""

import numpy as np
import pytest

from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.trace import Trace
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_, write

STEPS = [slice_(f"ProfilerStep#{number}", "user_annotation", 100 * number, 100) for number in (1, 2)]


def kept_names(tmp_path, events):
    kept = without_last_step(Trace.open(write(tmp_path / "trace.json", events), cache=False)).rank(0)
    return [kept.names[code] for code in kept.name]


def test_device_work_goes_with_its_launch(tmp_path):
    events = [
        *STEPS,
        slice_("cudaLaunchKernel", "cuda_runtime", 190, 5, correlation=1),
        slice_("cudaLaunchKernel", "cuda_runtime", 210, 5, correlation=2),
        slice_("before", "cpu_op", 50, 5),
        kernel("late but launched before", 250, 10, correlation=1),
        kernel("launched in the last step", 260, 10, correlation=2),
        kernel("orphan before", 150, 10),
        kernel("orphan after", 270, 10),
    ]
    assert kept_names(tmp_path, events) == [
        "ProfilerStep#1", "cudaLaunchKernel", "before", "late but launched before", "orphan before",
    ]  # fmt: skip


def test_waits_and_device_annotations_go_with_the_host(tmp_path):
    def on_device(name, category, start, **args):
        return {**slice_(name, category, start, 5, 7, stream=7, device=0, **args), "pid": 0}

    events = [
        *STEPS,
        slice_("forward", "user_annotation", 110, 5, **{"External id": 8}),
        slice_("backward", "user_annotation", 210, 5, **{"External id": 9}),
        on_device("forward", "gpu_user_annotation", 220, **{"External id": 8}),
        on_device("backward", "gpu_user_annotation", 230, **{"External id": 9}),
        slice_("cudaStreamSynchronize", "cuda_runtime", 195, 50, correlation=3),
        on_device("Stream Sync", "cuda_sync", 205, correlation=3),
        # The device reaches step 2 long after the host: its annotation is no step.
        on_device("ProfilerStep#2", "gpu_user_annotation", 900),
    ]
    assert kept_names(tmp_path, events) == [
        "ProfilerStep#1", "forward", "forward", "cudaStreamSynchronize", "Stream Sync",
    ]  # fmt: skip


def test_a_wait_without_any_call_goes_by_its_own_time(tmp_path):
    wait = {**slice_("Stream Sync", "cuda_sync", 205, 5, 7, stream=7, device=0, correlation=3), "pid": 0}
    assert kept_names(tmp_path, [*STEPS, wait]) == ["ProfilerStep#1"]
    early = {**wait, "ts": 105}
    assert kept_names(tmp_path, [*STEPS, early]) == ["ProfilerStep#1", "Stream Sync"]


def test_one_step_is_kept_and_so_is_a_rank_without_steps(tmp_path):
    assert kept_names(tmp_path, [STEPS[0], kernel("k", 500, 1)]) == ["ProfilerStep#1", "k"]
    write(tmp_path / "job" / "rank0.json", [*STEPS, slice_("op", "cpu_op", 250, 5)])
    write(tmp_path / "job" / "rank1.json", [slice_("op", "cpu_op", 250, 5)])
    kept = without_last_step(Trace.open(tmp_path / "job", cache=False))
    assert [kept.rank(rank).n for rank in kept.ranks] == [1, 1]


# Rows that HTA 0.6.1 keeps. Of a job with several steps it drops device work whose launch was not recorded,
# though the device was busy with it; here it stays.
HTA_ROWS = {
    "hta/trace_filter": {0: 2403, 1: 2339},
    "hta/trace_diff/control": {3: 62255},
    "hta/trace_diff/test": {1: 56116},
    "hta/nccl_parser_config": {0: 17952},
    "kineto/resnet50_num_workers_0": {0: 44658},
}


@pytest.mark.parametrize("name", HTA_ROWS)
def test_keeps_the_rows_that_hta_keeps_and_orphans(name):
    kept = without_last_step(Trace.open(shared_trace(name)))

    def compared(item):
        orphan = item.is_device & (item.launch < 0)
        return int(((np.array(item.categories)[item.category] != "Trace") & ~orphan).sum())

    assert {rank: compared(kept.rank(rank)) for rank in kept.ranks} == HTA_ROWS[name]
