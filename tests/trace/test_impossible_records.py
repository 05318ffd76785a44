"""Records that cannot be true are marked, estimated or left out; what can be true is left alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hta_widgets.analysis import memory_owners, memory_timeline, overview
from hta_widgets.errors import TraceFormatError
from hta_widgets.trace import RankTrace, Scope, Trace
from tests.support import SHARED_TRACES
from tests.trace.helpers import kernel, slice_, write

US = 1000
STEPS, KERNELS = 5, 4
BASE = 1_000_000  # us: no recording begins at 0
Event = dict[str, Any]
Change = Callable[[list[Event]], None]


def program(steps: int = STEPS, kernels: int = KERNELS, fraction: float = 0.0) -> list[Event]:
    """Steps of 1,000 us, in each some kernels that take 800 us in all, one after the other.

    `fraction` of a microsecond is added to every length: the file is then one of nanoseconds.
    """
    events, number = [], 0
    took = 800 / kernels
    for step in range(steps):
        at = BASE + 1000 * step
        events.append(slice_(f"ProfilerStep#{step}", "user_annotation", at, 1000))
        for place in range(kernels):
            number += 1
            launch = at + 4 + 10 * place
            events += [
                slice_("aten::mm", "cpu_op", launch - 2, 9, **{"External id": number}),
                slice_("cudaLaunchKernel", "cuda_runtime", launch, 5, correlation=number,
                       **{"External id": number}),
                kernel("gemm", at + 20 + took * place, took + (fraction if place % 2 else 0), number),
            ]  # fmt: skip
    return events


def kernels_of(events: list[Event]) -> list[Event]:
    return [event for event in events if event["cat"] == "kernel"]


def opened(tmp_path: Path, events: list[Event], **options: Any) -> Trace:
    return Trace.open(write(tmp_path / "trace.json", events, schemaVersion=1), cache=False, **options)


def rank_of(tmp_path: Path, change: Change, **options: Any) -> RankTrace:
    events = program()
    change(events)
    return opened(tmp_path, events, **options).rank(0)


def busy_ns(rank: RankTrace) -> int:
    return int(rank.dur[rank.is_device].sum())


def marks_of(rank: RankTrace) -> dict[str, int]:
    marks, counts = np.unique(rank.slices.marked.mark, return_counts=True)
    names = ("", "no_time", "early_start", "late_end", "overlap", "unfinished")
    return {names[mark]: int(count) for mark, count in zip(marks.tolist(), counts.tolist(), strict=True)}


def late_end(events: list[Event]) -> None:
    kernels_of(events)[5]["dur"] = 2_300_000


def long_overlap(events: list[Event]) -> None:
    kernels_of(events)[5]["dur"] = 300


def zero(events: list[Event]) -> None:
    kernels_of(events)[5].update(ts=0, dur=0)


def no_duration(events: list[Event]) -> None:
    del kernels_of(events)[5]["dur"]


def centuries(events: list[Event]) -> None:
    kernels_of(events)[5]["dur"] = 1e15


def negative(events: list[Event]) -> None:
    kernels_of(events)[5]["dur"] = -7


def ages_ago(events: list[Event]) -> None:
    kernels_of(events)[5]["ts"] = -9e15


def seconds_early(events: list[Event]) -> None:
    kernels_of(events)[5]["ts"] -= 800_000


@pytest.mark.parametrize(
    ("change", "mark"),
    [
        (late_end, "late_end"),
        (long_overlap, "overlap"),
        (zero, "no_time"),
        (no_duration, "no_time"),
        (centuries, "no_time"),
        (negative, "no_time"),
        (ages_ago, "no_time"),
        (seconds_early, "early_start"),
    ],
)
def test_one_bad_record_is_estimated_from_like_work(change: Change, mark: str, tmp_path: Path) -> None:
    trace = opened(tmp_path, changed(change))
    rank = trace.rank(0)
    assert marks_of(rank) == {mark: 1}
    assert busy_ns(rank) == STEPS * 800 * US
    assert rank.device_span == (20 * US, (4000 + 820) * US)
    assert not rank.iterations["partial"].any()  # like work takes the same time each: nothing is in doubt
    row = trace.records().iloc[0]
    assert (row["mark"], row["excluded"], row["dur_ns"], row["name"]) == (mark, False, 200 * US, "gemm")
    assert row["start_ns"] == (1000 + 20 + 200) * US
    frame = trace.events()
    assert frame.loc[frame["event_id"] == row["event_id"], "mark"].tolist() == [mark]
    health = trace.health.set_index("check")
    assert health.loc[mark, "count"] == 1 and "gemm" in health.loc[mark, "detail"]
    assert "CUPTI" in health.loc[mark, "remedy"]


def test_a_bad_record_is_named_wherever_it_stands(tmp_path: Path) -> None:
    events = changed(long_overlap)
    bad = kernels_of(events)[5]
    trace = opened(tmp_path, [bad, *(each for each in events if each is not bad)])
    assert "The first is gemm at " in trace.health.set_index("check").loc["overlap", "detail"]


def test_two_records_suffice_to_see_that_one_is_impossible(tmp_path: Path) -> None:
    events = program(steps=1, kernels=2)
    kernels_of(events)[0]["dur"] = 700
    assert marks_of(opened(tmp_path, events).rank(0)) == {"overlap": 1}


def changed(change: Change) -> list[Event]:
    events = program()
    change(events)
    return events


@pytest.mark.parametrize("change", [late_end, long_overlap, seconds_early])
def test_everything_is_believed_on_request(change: Change, tmp_path: Path) -> None:
    events = changed(change)
    trace = opened(tmp_path, events, repair=False)
    rank = trace.rank(0)
    assert busy_ns(rank) == sum(int(event["dur"] * US) for event in kernels_of(events))
    assert trace.records().empty and not trace.vetoes() and not rank.doubtful_steps


def test_work_without_peers_is_left_out_and_its_step_named(tmp_path: Path) -> None:
    def change(events: list[Event]) -> None:
        for event in kernels_of(events)[4:6]:
            event.update(name=f"only {event['ts']}", dur=500_000)

    trace = opened(tmp_path, changed(change))
    rank = trace.rank(0)
    assert trace.records()["excluded"].tolist() == [True, True]
    assert rank.iterations["partial"].tolist() == [False, True, False, False, False]
    [veto] = trace.vetoes("savings")
    assert (veto.iteration, veto.kind) == (1, "impossible_times") and "2 device records" in veto.reason
    assert (veto.start_ns, veto.end_ns) == (1000 * US, 2000 * US)
    assert "1: " in trace.health.set_index("check").loc["incomplete_steps", "detail"]


def overlap_of(length: float, **change: Any) -> Change:
    def apply(events: list[Event]) -> None:
        kernels_of(events)[5].update(dur=length, **change)

    return apply


def dependent(events: list[Event]) -> None:
    """The next kernel is launched to begin before this one ends, as on Hopper and later."""
    kernels_of(events)[5]["dur"] = 208
    next_number = kernels_of(events)[6]["args"]["correlation"]
    for event in events:
        if event["cat"] == "cuda_runtime" and event["args"]["correlation"] == next_number:
            event["name"] = "cudaLaunchKernelExC"


def dependent_of_another_shape(events: list[Event]) -> None:
    """The same after a kernel that takes twice as long as all others of its name and grid."""
    dependent(events)
    events.remove(kernels_of(events)[6])
    kernels_of(events)[5]["dur"] = 408
    for event in events:
        if event["name"] == "cudaLaunchKernel":
            event["name"] = "cudaLaunchKernelExC"


def dependent_that_ends_late(events: list[Event]) -> None:
    """Before a dependent launch, too, a kernel does not take that much longer only to reach over."""
    dependent(events)
    events.remove(kernels_of(events)[7])
    kernels_of(events)[6].update(name="softmax", dur=400)
    kernels_of(events)[5]["dur"] = 520


def several_streams(events: list[Event]) -> None:
    event = kernels_of(events)[5]
    event.update(dur=700, tid=20)


def one_graph(events: list[Event]) -> None:
    """Lanes of one graph replay share a queue in the file."""
    first, second = kernels_of(events)[5:7]
    second["args"]["correlation"] = first["args"]["correlation"]
    first["dur"] = 350
    events[:] = [e for e in events if not (e["cat"] == "cuda_runtime" and e["args"]["correlation"] == 7)]


@pytest.mark.parametrize(
    "change",
    [
        overlap_of(200.027),
        overlap_of(203.7),
        dependent,
        dependent_of_another_shape,
        several_streams,
        one_graph,
    ],
    ids=["27 ns", "3.7 us", "dependent launch", "another shape", "other stream", "graph replay"],
)
def test_what_devices_do_is_no_fault(change: Change, tmp_path: Path) -> None:
    events = changed(change)
    rank = opened(tmp_path, events).rank(0)
    assert not len(rank.slices.marked)
    assert busy_ns(rank) == sum(round(event["dur"] * US) for event in kernels_of(events))


@pytest.mark.parametrize("change", [dependent, dependent_of_another_shape])
def test_dependent_launches_begin_with_hopper(change: Change, tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", changed(change), deviceProperties=[{"computeMajor": 8}])
    assert marks_of(Trace.open(path, cache=False).rank(0)) == {"overlap": 1}


def test_an_end_far_into_a_dependent_launch_is_impossible(tmp_path: Path) -> None:
    assert marks_of(opened(tmp_path, changed(dependent_that_ends_late)).rank(0)) == {"overlap": 1}


@pytest.mark.parametrize("ahead", [50, 300, 5_000, 900_000])
def test_a_clock_that_runs_ahead_is_no_fault_of_records(ahead: float, tmp_path: Path) -> None:
    events = program()
    for event in kernels_of(events):
        event["ts"] -= ahead
    trace = opened(tmp_path, events)
    rank = trace.rank(0)
    assert not len(rank.slices.marked)
    assert rank.clock_ahead_ns == (ahead - 16) * US
    assert [veto.kind for veto in trace.vetoes("idle_causes")] == ["device_before_launch"]
    assert not trace.vetoes("savings")


def test_kernels_of_no_length_are_normal_in_whole_microseconds_only(tmp_path: Path) -> None:
    def with_zero(fraction: float) -> list[Event]:
        events = program(kernels=8, fraction=fraction)
        for event in events:
            if event["cat"] == "kernel":
                event["dur"] = round(event["dur"] - 0.6 * bool(fraction), 3)
        kernels_of(events)[5]["dur"] = 0
        return events

    short = [
        {**each, "dur": min(each["dur"], 2)} if each["cat"] == "kernel" else each for each in with_zero(0.0)
    ]
    assert not len(opened(tmp_path, short).rank(0).slices.marked)
    assert marks_of(opened(tmp_path, with_zero(0.25)).rank(0)) == {"no_time": 1}


def test_a_kernel_of_no_length_whose_peers_take_long_has_no_time(tmp_path: Path) -> None:
    events = program(kernels=8)
    kernels_of(events)[5]["dur"] = 0
    assert marks_of(opened(tmp_path, events).rank(0)) == {"no_time": 1}


def test_kernels_that_all_take_no_time_have_none(tmp_path: Path) -> None:
    events = program()
    for event in kernels_of(events):
        event["dur"] = 0
    assert marks_of(opened(tmp_path, events).rank(0)) == {"no_time": STEPS * KERNELS}


@pytest.mark.parametrize(("which", "again"), [("all", 1.0), ("every tenth kernel", 0.0), ("none", 0.0)])
def test_events_that_the_file_holds_twice_count_once(tmp_path: Path, which: str, again: float) -> None:
    events = program(steps=20)
    twice = {"all": events, "every tenth kernel": kernels_of(events)[::10], "none": []}[which]
    trace = opened(tmp_path, [*events, *map(dict, twice)])
    assert trace.rank(0).n == len(events)
    health = trace.health.set_index("check")
    assert ("repeated" in health.index) is bool(twice)
    if twice:
        assert health.loc["repeated", "count"] == len(twice)
    assert not len(
        opened(tmp_path, [*events, *map(dict, twice)], repair=False).health.query("check == 'repeated'")
    )


def test_kernels_of_one_graph_are_no_repeats(tmp_path: Path) -> None:
    """They have one name and one id, and run one after the other."""
    events = program()
    for event in kernels_of(events):
        event["args"]["correlation"] = 1 + (event["args"]["correlation"] - 1) // KERNELS * KERNELS
    assert opened(tmp_path, events).rank(0).device_events == STEPS * KERNELS


def test_host_records_without_a_time_are_no_events_in_time(tmp_path: Path) -> None:
    events = program()
    half = len(events) // 2
    for event in events[half:]:
        event.update(ts=0, dur=0)
    trace = opened(tmp_path, events)
    assert trace.rank(0).n == half and trace.extent_ns[1] <= 3_000 * US
    assert trace.health.set_index("check").loc["no_time", "count"] == len(events) - half


def test_times_further_apart_than_int64_holds(tmp_path: Path) -> None:
    events = program()
    events += [slice_("aten::add", "cpu_op", -9.2e15, 1), slice_("aten::add", "cpu_op", 9.2e15, 1)]
    trace = opened(tmp_path, events)
    assert trace.records()["mark"].tolist() == ["no_time"] * 2
    assert trace.extent_ns[1] == STEPS * 1000 * US


@pytest.mark.parametrize("seconds", [50, 3000])
def test_a_program_that_rests_is_no_fault(seconds: int, tmp_path: Path) -> None:
    events = program()
    events.append(slice_("cudaDeviceSynchronize", "cuda_runtime", BASE + seconds * 10**6, 5, correlation=99))
    assert opened(tmp_path, events).rank(0).n == len(events)


def test_an_open_step_lasts_until_the_end_and_is_partial(tmp_path: Path) -> None:
    def change(events: list[Event]) -> None:
        steps = [event for event in events if event["cat"] == "user_annotation"]
        steps[1]["dur"] = 0
        del steps[-1]["dur"]

    trace = opened(tmp_path, changed(change))
    steps = trace.iterations
    assert steps["partial"].tolist() == [False, True, False, False, True]
    assert (steps["end_ns"] - steps["start_ns"]).tolist() == [1000 * US] * 4 + [820 * US]
    assert trace.records()["mark"].tolist() == ["unfinished"] * 2
    assert [veto.iteration for veto in trace.vetoes("steps")] == [1, 4]


def lost(first: int, last: int) -> Change:
    def apply(events: list[Event]) -> None:
        for event in kernels_of(events)[first:last]:
            events.remove(event)

    return apply


@pytest.mark.parametrize(
    ("first", "last", "steps", "remedy"),
    [(0, 8, [0, 1], "warm"), (8, 9, [2], "fewer steps"), (18, 20, [4], "torch.cuda.synchronize()")],
)
def test_steps_with_lost_work_are_left_out_and_named(
    first: int, last: int, steps: list[int], remedy: str, tmp_path: Path
) -> None:
    trace = opened(tmp_path, changed(lost(first, last)))
    frame = trace.iterations
    assert frame.loc[frame["partial"], "iteration"].tolist() == steps
    vetoes = trace.vetoes("idle_causes")
    assert [veto.iteration for veto in vetoes] == steps
    assert all(remedy in veto.remedy and "not recorded" in veto.reason for veto in vetoes)
    health = trace.health.set_index("check")
    assert health.loc["lost_launches", "count"] == last - first
    assert trace.records()["mark"].tolist() == ["work_lost"] * (last - first)


def test_launches_that_are_captured_run_later(tmp_path: Path) -> None:
    def change(events: list[Event]) -> None:
        lost(8, 10)(events)
        events += [
            slice_("cudaStreamBeginCapture_v10000", "cuda_runtime", BASE + 2001, 1, correlation=90),
            slice_("cudaStreamEndCapture_v10000", "cuda_runtime", BASE + 2022, 1, correlation=91),
        ]

    trace = opened(tmp_path, changed(change))
    rank = trace.rank(0)
    assert not len(rank.losses.lost) and len(rank.losses.captured) == 2
    assert rank.recording.kind != "graph capture"
    [veto] = trace.vetoes("idle_causes")
    assert (veto.kind, veto.start_ns, veto.end_ns) == ("graph_capture", 2001 * US, 2022 * US)


def test_fills_may_have_no_work(tmp_path: Path) -> None:
    events = [*program(), slice_("cudaMemsetAsync", "cuda_runtime", BASE + 60, 2, correlation=77)]
    assert not len(opened(tmp_path, events).rank(0).losses.lost)


@pytest.mark.parametrize("inner", ["cuLaunchKernel", "cudaEventRecord"])
def test_calls_that_share_an_id_are_one_launch(inner: str, tmp_path: Path) -> None:
    events = program()
    for event in [event for event in events if event["cat"] == "cuda_runtime"]:
        at = event["ts"] + (1 if inner == "cuLaunchKernel" else -1)
        number = event["args"]["correlation"]
        events.append(slice_(inner, "cuda_driver", at, 2, correlation=number))
    rank = opened(tmp_path, events).rank(0)
    assert {rank.names[code] for code in rank.name[rank.launch[rank.is_device]]} == {"cudaLaunchKernel"}
    assert (rank.recording.launches, rank.recording.unanswered) == (STEPS * KERNELS, 0)


def test_work_without_an_id_may_be_that_of_any_launch(tmp_path: Path) -> None:
    def change(events: list[Event]) -> None:
        for event in kernels_of(events)[::4]:
            event["args"]["correlation"] = 0

    trace = opened(tmp_path, changed(change))
    assert not trace.vetoes() and not len(trace.rank(0).losses.lost)
    health = trace.health.set_index("check")
    assert health.loc["unlinked", "count"] == STEPS and "orphans" not in health.index


def test_work_whose_call_is_missing(tmp_path: Path) -> None:
    def change(events: list[Event]) -> None:
        calls = [event for event in events if event["cat"] == "cuda_runtime"]
        for event in (calls[0], calls[9]):
            events.remove(event)

    trace = opened(tmp_path, changed(change))
    health = trace.health.set_index("check")["count"]
    assert (health["orphans"], health["calls_lost"]) == (1, 1)  # the first was launched before the recording
    assert trace.records()["mark"].tolist() == ["call_lost"]


def test_two_processes_in_one_file(tmp_path: Path) -> None:
    events = program()
    for event in events[len(events) // 2 :]:
        event["pid"] = 0 if event["cat"] == "kernel" else 11
    late_end(events)
    trace = opened(tmp_path, events)
    assert not len(trace.rank(0).slices.marked)  # no order holds between them
    assert trace.health.set_index("check").loc["several_processes", "count"] == 2
    assert {veto.kind for veto in trace.vetoes("ranks")} == {"several_processes"}


@pytest.mark.parametrize(
    ("category", "call", "named"),
    [
        ("cuda_runtime", "cudaLaunchKernel", "CUPTI"),
        ("cuda_runtime", "hipLaunchKernel", "rocprofiler"),
        ("xpu_runtime", "urEnqueueKernelLaunch", "Level Zero"),
        ("privateuse1_runtime", "aclrtLaunchKernel", "torch_npu"),
    ],
)
def test_remedies_are_those_of_the_recorder(category: str, call: str, named: str, tmp_path: Path) -> None:
    def change(events: list[Event]) -> None:
        late_end(events)
        for event in events:
            if event["cat"] == "cuda_runtime":
                event.update(cat=category, name=call)

    trace = opened(tmp_path, changed(change))
    assert named in trace.health.set_index("check").loc["late_end", "remedy"]


def test_lost_device_rows_do_not_advise_what_was_on(tmp_path: Path) -> None:
    trace = opened(tmp_path, [event for event in program() if event["cat"] != "kernel"])
    found = trace.health.set_index("check").loc["no_device_events"]
    assert found["count"] == STEPS * KERNELS and "ProfilerActivity" not in found["remedy"]
    assert [veto.kind for veto in trace.vetoes("efficiency")] == ["no_device_events"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Total Reserved", 2**63 - 1),
        ("Bytes", 2**63 - 1),
        ("Bytes", 10**9),
        ("Total Allocated", -5),
        ("Total Allocated", 2**64 - 1),
        ("Total Reserved", 3),
    ],
)
def test_memory_events_that_contradict_themselves(key: str, value: int, tmp_path: Path) -> None:
    def event(at: int, **change: int) -> Event:
        totals = {"Total Reserved": 1 << 20, "Total Allocated": 1000 * (at + 1), "Bytes": 1000}
        args = {**totals, "Addr": at + 1, "Device Id": 0, "Device Type": 1, **change}
        return {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 10, "tid": 1,
                "ts": BASE + 10 * at, "args": args}  # fmt: skip

    events = [*program(), *(event(at, **({key: value} if at == 3 else {})) for at in range(8))]
    trace = opened(tmp_path, events)
    health = trace.health.set_index("check")
    assert health.loc["memory_contradiction", "count"] == 1 and "memory_gaps" not in health.index
    assert len(overview(trace)) and len(memory_owners(trace))
    assert memory_timeline(trace)["reserved_bytes"].max() == 1 << 20
    del events[-2]
    assert opened(tmp_path, events).health.set_index("check").loc["memory_gaps", "count"] == 1


@pytest.mark.parametrize("cached", [False, True])
def test_repeated_events_are_left_out_of_what_the_cache_holds(tmp_path: Path, cached: bool) -> None:
    events = program(steps=20)
    path = write(tmp_path / "trace.json", [*events, *map(dict, events)], schemaVersion=1)
    folder = tmp_path / "cache"
    if cached:
        Trace.open(path, cache=folder)
    assert len(Trace.open(path, cache=folder).rank(0).event_id) == len(events)


def test_marks_are_the_same_from_the_cache(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.json", changed(late_end))
    folder = tmp_path / "cache"
    first = Trace.open(path, cache=folder).records()
    again = Trace.open(path, cache=folder)
    assert again.records().equals(first) and busy_ns(again.rank(0)) == STEPS * 800 * US
    raw = Trace.open(path, cache=folder, repair=False)
    assert busy_ns(raw.rank(0)) > 2_000_000 * US and raw.extent_ns[1] > 2_000_000 * US
    assert raw.rank_keys != again.rank_keys


def test_vetoes_are_asked_for_a_claim_and_a_part(tmp_path: Path) -> None:
    trace = opened(tmp_path, changed(lost(4, 8)))
    assert [veto.iteration for veto in trace.vetoes("ranks")] == [1]
    assert not trace.vetoes("ranks", Scope(iterations=(0, 2)))
    assert trace.vetoes("ranks", Scope(iterations=(1,))) and not trace.vetoes(scope=Scope(ranks=(3,)))
    with pytest.raises(ValueError, match="no class of claims"):
        trace.vetoes("weather")  # type: ignore[arg-type]


# Real recordings in which something is marked, with the evidence.
KNOWN = {
    # cut by hand: it holds 9 of 26,000 operators
    "traces/hta/trace_compare/test/test.json.gz": {"work_lost": 1},
    # CUPTI was on, as the rows of the runtime show, and delivered no device record
    "traces/hta/cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz": {"work_lost": 94},
    "recordings/alloc_heavy_a40/trace.json.gz": {"work_lost": 9},
    "recordings/trace0_2080ti/trace.json": {"work_lost": 3},
    "recordings/wsl_rows_lost/default_trace.json": {"work_lost": 20},
}


def test_real_recordings_hold_nothing_impossible() -> None:
    folders = [SHARED_TRACES, SHARED_TRACES.parent / "recordings"]
    files = [path for folder in folders for path in sorted(folder.rglob("*.json*"))]
    if not files:
        pytest.skip("real traces not found: set HTA_WIDGETS_TRACES to the folder that holds them")
    found = {}
    for path in files:
        try:
            marks = Trace.open(path, cache=False).records()["mark"]
        except TraceFormatError:  # no recording: graphs of executions, manifests
            continue
        if len(marks):
            found[str(path.relative_to(SHARED_TRACES.parent))] = marks.value_counts().to_dict()
    known = {name: marks for name, marks in KNOWN.items() if (SHARED_TRACES.parent / name).exists()}
    assert found == known
