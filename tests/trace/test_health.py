"""Every fault is reported, and a clean trace is not."""

from pathlib import Path

import pytest

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
        "launches_unseen": 1,  # after launched work of its stream; MTIA's engines need no call
        "lost_launches": 1,
        "incomplete_steps": 1,  # the step of the launch whose work is missing
        "device_before_launch": 1,
        "unclassified": 1,
        "unknown_category": 1,
        "with_stack_off": 1,
        "profile_memory_off": 1,
        "partial_iterations": 1,  # the second step has far fewer launches
    }


@pytest.mark.parametrize(
    ("often", "us", "low"),
    [
        (20, 50, "1.00 % low (10.0 µs)"),
        (20, 99, "0.505 % low (10.0 µs)"),
        (20, 100, ""),  # too little to tell
        (19, 50, ""),  # it may be chance
        (20, 50.5, ""),
    ],
)
def test_what_whole_microseconds_may_cut_off(tmp_path: Path, often: int, us: float, low: str) -> None:
    """Half of one of each record, on average."""
    events = [kernel("k", 200 * at, us) for at in range(often)]
    found = Trace.open(write(tmp_path / "trace.json", events), cache=False).health.set_index("check")
    assert ("whole_microseconds" in found.index) == bool(low)
    if low:
        row = found.loc["whole_microseconds"]
        assert row["count"] == often and f"device time is {low}" in row["detail"]


def test_what_is_most_severe_comes_first(tmp_path):
    cut = [slice_("ProfilerStep#3", "user_annotation", 200, 100), kernel("orphan", 50, 5, correlation=99)]
    for rank in (0, 1):
        path = tmp_path / f"rank{rank}.json"
        write(path, [*CLEAN, *cut], distributedInfo={"rank": rank}, schemaVersion=1)
    (tmp_path / "rank2.json").write_text("<html>")
    severities = Trace.open(tmp_path, cache=False).health["severity"].tolist()
    assert set(severities) == {"error", "warning", "info"}
    assert severities == sorted(severities, key=["error", "warning", "info"].index)


def test_few_orphans_are_no_reason_to_worry(tmp_path):
    def severity(linked):
        events = [slice_("ProfilerStep#1", "user_annotation", 0, 10_000), kernel("early", 1, 5, 10**6)]
        for at in range(1, linked + 1):
            events += [
                slice_("cudaLaunchKernel", "cuda_runtime", 10 * at, 2, correlation=at),
                kernel("k", 10 * at + 5, 2, correlation=at),
            ]
        frame = Trace.open(write(tmp_path / "trace.json", events), cache=False).health
        return frame.set_index("check").loc["orphans", "severity"]

    assert severity(99) == "info"  # one of a hundred
    assert severity(98) == "warning"


def test_an_option_whose_data_is_there_was_on(tmp_path):
    """Whatever the metadata say, or do not say."""
    shaped = slice_("aten::add", "cpu_op", 5, 2, **{"Input Dims": [[2, 3]]})
    found = checks(tmp_path, [*CLEAN, shaped], schemaVersion=1)
    assert "with_stack_off" in found and "record_shapes_off" not in found


def test_ranks_without_a_common_clock_are_a_warning(tmp_path):
    def clock(begin):
        for rank, at in enumerate((0, begin)):
            write(
                tmp_path / f"rank{rank}.json",
                [kernel("k", at, 100)],
                distributedInfo={"rank": rank, "world_size": 2},
            )
        return Trace.open(tmp_path, cache=False).health.set_index("check").loc["clock"]

    assert clock(50)["severity"] == "info"
    apart = clock(10_000_000_000)
    assert apart["severity"] == "warning" and "not comparable" in apart["remedy"]


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
    bad = '{"ph": "X", "name" 5}'
    path.write_text(f"{before}{bad}, {good}, {bad}, {good}, {bad}, {good}]}}")
    found = Trace.open(path, cache=False).health.set_index("check").loc["malformed_event"]
    assert found["count"] == 3
    assert found["detail"].endswith(f"(first at byte {len(before)})")
