"""Every fault is reported, and a clean trace is not."""

from pathlib import Path

from hta_widgets.trace import Trace
from tests.trace.helpers import kernel, slice_, write

CLEAN = [
    slice_("ProfilerStep#1", "user_annotation", 0, 100),
    slice_("ProfilerStep#2", "user_annotation", 100, 100),
    *[slice_("cudaLaunchKernel", "cuda_runtime", at, 5, correlation=at) for at in (10, 110)],
    *[kernel("k", at + 10, 5, correlation=at) for at in (10, 110)],
]


def checks(tmp_path, events, **metadata):
    path = write(tmp_path / "trace.json", events, distributedInfo={"rank": 0}, **metadata)
    frame = Trace.open(path, cache=False).health
    return dict(zip(frame["check"], frame["count"], strict=True))


def test_clean_trace(tmp_path):
    assert checks(tmp_path, CLEAN) == {}


def test_faults(tmp_path):
    found = checks(
        tmp_path,
        [
            *CLEAN,
            kernel("orphan", 50, 5, correlation=99),
            slice_("cudaLaunchKernel", "cuda_runtime", 60, 5, correlation=98),
            kernel("early", 65, 5, correlation=97),
            slice_("cudaLaunchKernel", "cuda_runtime", 70, 5, correlation=97),
            slice_("backwards", "cpu_op", 80, -3),
            slice_("centuries", "cpu_op", 80, 1e15),
            slice_("odd", "brand_new", 80, 1),
            {**kernel("mystery", 90, 2), "cat": "mtia_ccp_events"},
        ],
        schemaVersion=1,
        record_shapes=1,
    )
    assert found == {
        "negative_duration": 1,
        "absurd_duration": 1,
        "orphans": 2,
        "lost_launches": 1,
        "device_before_launch": 1,
        "unclassified": 1,
        "unknown_category": 1,
        "with_stack_off": 1,
        "profile_memory_off": 1,
        "partial_iterations": 1,  # the second step has far fewer launches
    }


def test_host_only_trace_names_the_flag(tmp_path):
    path = write(tmp_path / "trace.json", [slice_("aten::add", "cpu_op", 0, 5)])
    frame = Trace.open(path, cache=False).health.set_index("check")
    assert "ProfilerActivity.CUDA" in frame.loc["no_device_events", "remedy"]
    assert "prof.step()" in frame.loc["no_steps", "remedy"]


def test_damage_is_counted_and_located(tmp_path: Path) -> None:
    good = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}'
    before = f'{{"traceEvents": [{good}, '
    path = tmp_path / "rank0.json"
    path.write_text(f'{before}{{"ph": "X", "name" 5}}, {good}]}}')
    found = Trace.open(path, cache=False).health.set_index("check").loc["malformed_event"]
    assert found["count"] == 1
    assert found["detail"].endswith(f"(first at byte {len(before)})")
