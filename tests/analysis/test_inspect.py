"""Everything about an event, a gap and a stretch of time, against slow answers from the plain JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest

from hta_widgets import Scope, Trace, analysis, edits, examples
from hta_widgets.analysis.inspect.longest import sentence as longest_sentence
from hta_widgets.analysis.inspect.record import EventFacts, Frame, Replayed
from hta_widgets.analysis.inspect.window import WINDOW_BY, WindowBy
from hta_widgets.errors import MissingDataError
from hta_widgets.kernel_names import short_kernel_name
from tests.analysis import kineto_file as kineto
from tests.analysis import plain_events as plain
from tests.analysis.kineto_file import job, kernel, launch
from tests.replay.program import steps_of

RANK = 0


class Job:
    """A bundled job with Python functions, modules, both passes and collectives, also as plain events."""

    def __init__(self) -> None:
        folder = Path(examples.path("gpt2_ddp"))
        self.trace = Trace.open(folder, cache=False)
        self.plain, self.peer = (plain.Recording(folder / f"rank-{rank}.pt.trace.json.gz") for rank in (0, 1))
        self.events = self.plain.events
        first = self.facts(self.events[0])
        self.origin = self.events[0]["start"] - first.event.start_ns

    def facts(self, event: plain.Plain, replay: bool = False) -> EventFacts:
        return analysis.inspect_event(self.trace, RANK, event["at"], replay=replay)

    def sample(self, category: str, every: int) -> list[plain.Plain]:
        return [event for event in self.events if event["cat"] == category][::every]


@pytest.fixture(scope="module")
def gpt2() -> Iterator[Job]:
    yield Job()


def sampled(gpt2: Job) -> list[plain.Plain]:
    every = {"kernel": 31, "gpu_memcpy": 4, "cpu_op": 97, "cuda_runtime": 61, "python_function": 7,
             "user_annotation": 9}  # fmt: skip
    return [event for category, step in every.items() for event in gpt2.sample(category, step)]


def places(refs: Any) -> list[int]:
    return [ref.event_id for ref in refs]


def test_name_times_and_arguments_are_those_of_the_file(gpt2: Job) -> None:
    for event in sampled(gpt2):
        facts = gpt2.facts(event)
        assert facts.event.name == event["name"]
        assert (facts.event.start_ns + gpt2.origin, facts.end_ns + gpt2.origin) == (
            event["start"],
            event["end"],
        )
        assert facts.event.dur_ns == event["end"] - event["start"]
        assert (facts.category, facts.process, facts.thread) == (
            event["cat"], str(event["pid"]), str(event["tid"]),
        )  # fmt: skip
        known = {argument.name: argument.value for argument in facts.arguments}
        given = {key: value for key, value in event.get("args", {}).items() if value is not None}
        assert known.keys() == given.keys() - {"Trace name", "Trace iterations"}
        for name, value in known.items():
            assert value == given[name] or str(given[name]) in (value, json.dumps(value)), name


def test_callers_and_callees_are_those_that_hold_each_other_in_time(gpt2: Job) -> None:
    for event in sampled(gpt2):
        facts, inner = gpt2.facts(event), gpt2.plain.inside(event)
        assert places(facts.parents) == [other["at"] for other in gpt2.plain.around(event)]
        assert facts.children.count == len(inner)
        assert places(facts.children.first) == [other["at"] for other in inner[:50]]
        spans = [(other["start"], other["end"]) for other in inner]
        own = event["end"] - event["start"] - plain.covered(spans, event["start"], event["end"])
        assert facts.self_ns == own


def test_launch_queue_and_work_inside(gpt2: Job) -> None:
    queued = 0
    for event in gpt2.sample("kernel", 23):
        facts, call = gpt2.facts(event), gpt2.plain.launch(event)
        assert facts.launch is not None and call is not None
        assert facts.launch.call.event_id == call["at"]
        earlier = [e["end"] for e in gpt2.plain.on_stream(facts.stream or 0) if e["start"] < event["start"]]
        free = min(max(earlier, default=call["start"]), event["start"])
        assert facts.launch.latency_ns == event["start"] - call["start"]
        assert facts.launch.queued_ns == max(free - call["start"], 0)
        assert facts.launch.overhead_ns == facts.launch.latency_ns - facts.launch.queued_ns
        assert facts.launch.delay_ns == event["start"] - call["end"]
        queued += facts.launch.queued_ns > 0
    assert queued
    for event in [*gpt2.sample("cpu_op", 150), *gpt2.sample("user_annotation", 6)]:
        facts, work = gpt2.facts(event), gpt2.plain.work_in(event)
        assert facts.launched.count == len(work)
        assert facts.launched.time_ns == sum(each["end"] - each["start"] for each in work)
        assert places(facts.launched.first) == [each["at"] for each in work[:50]]


def test_neighbours_on_the_stream_and_of_the_name(gpt2: Job) -> None:
    for event in gpt2.sample("kernel", 41):
        facts = gpt2.facts(event)
        stream = gpt2.plain.on_stream(event["args"]["stream"])
        named = sorted((e for e in gpt2.events if e["name"] == event["name"]), key=lambda e: e["start"])
        for row, (before, after) in (
            (stream, (facts.previous, facts.next)),
            (named, (facts.same_name.previous, facts.same_name.next)),
        ):
            at = row.index(event)
            assert (before and before.event_id) == (row[at - 1]["at"] if at else None)
            assert (after and after.event_id) == (row[at + 1]["at"] if at + 1 < len(row) else None)


def test_distribution_of_the_name(gpt2: Job) -> None:
    for event in [*gpt2.sample("kernel", 41), *gpt2.sample("cpu_op", 151)]:
        same = gpt2.facts(event).same_name
        took = sorted(e["end"] - e["start"] for e in gpt2.events if e["name"] == event["name"])
        own = event["end"] - event["start"]
        assert (same.count, same.time_ns) == (len(took), sum(took))
        assert (same.shortest_ns, same.longest_ns) == (took[0], took[-1])
        if len(took) > 1:
            quarters = [round(value) for value in quantiles(took, n=4, method="inclusive")]
            assert [same.quartile_ns, same.median_ns, same.upper_quartile_ns] == quarters
        assert same.shorter == sum(each < own for each in took)
        assert same.longer == sum(each > own for each in took)
        bins = zip(same.edges_ns, same.edges_ns[1:], strict=False)
        assert list(same.counts) == [sum(low <= each < high for each in took) for low, high in bins]
        assert sum(same.counts) == len(took)


def test_collectives_on_other_ranks(gpt2: Job) -> None:
    reductions = [event for event in gpt2.events if "ncclDevKernel" in event["name"]]
    assert reductions
    for event in reductions:
        (peer,) = gpt2.facts(event).peers
        same = [event["args"][key] for key in ("Comms Id", "Seq")]
        (other,) = [
            e for e in gpt2.peer.of("kernel") if [e["args"].get(key) for key in ("Comms Id", "Seq")] == same
        ]
        assert (peer.event.rank, peer.event.event_id, peer.match_key) == (1, other["at"], "comms_id")
        mine = gpt2.facts(event).event
        assert peer.later_ns == peer.event.start_ns - mine.start_ns
    silent = gpt2.facts(gpt2.sample("gpu_memcpy", 1)[0])
    assert silent.peers == () and silent.missing["peers"] == "it is no communication kernel"


def test_both_passes_know_each_other(gpt2: Job) -> None:
    numbered = [event for event in gpt2.events if "Sequence number" in event.get("args", {})]
    backward = [event for event in numbered if event["args"].get("Fwd thread id")]
    assert backward
    for event in backward[::17]:
        number = event["args"]["Sequence number"]
        ahead = [
            e
            for e in numbered
            if not e["args"].get("Fwd thread id") and e["args"]["Sequence number"] == number
        ]
        facts = gpt2.facts(event)
        if not ahead:
            assert facts.forward is None and "sequence number" in facts.missing["forward"]
            continue
        last = max(ahead, key=lambda e: e["start"])
        assert facts.forward is not None and facts.forward.event_id == last["at"]
        again = gpt2.facts(last).backward
        with_number = [e for e in backward if e["args"]["Sequence number"] == number]
        assert sorted(places(again.first)) == sorted(e["at"] for e in with_number)


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("train.py", True),
        ("/home/me/project/model.py", True),
        ("torch/nn/modules/module.py", False),
        ("/opt/lib/python3.11/site-packages/transformers/trainer.py", False),
        ("/usr/lib/python3.11/threading.py", False),
        ("threading.py", False),
        ("json/encoder.py", False),
        ("numpy/_core/fromnumeric.py", False),
        ("<string>", False),
        ("profile.py", True),  # of Python, too, but more often of a program that is profiled
        ("project/threading.py", True),
    ],
)
def test_which_code_is_the_users_own(file: str, own: bool) -> None:
    assert Frame(f"{file}(12): step", file, 12, "step", None).is_own == own
    assert not Frame("<built-in method run>", "", 0, "<built-in method run>", None).is_own


def test_operator_module_and_python_line(gpt2: Job) -> None:
    loader = next(event for event in gpt2.events if "dataloader.py" in event["name"])
    facts = gpt2.facts(loader)
    frame = facts.python[0]
    assert (frame.file, frame.line, frame.function) == ("torch/utils/data/dataloader.py", 734, "__next__")
    assert frame.event is not None and frame.event.event_id == loader["at"]
    assert facts.module is None and facts.missing["module"].startswith("no nn.Module was open")
    assert facts.operator is None and facts.missing["operator"].startswith("no operator was open")

    # autograd's thread has no Python functions: those of the forward operator are told
    work = next(e for e in gpt2.sample("kernel", 1) if gpt2.facts(e).python_of is not None)
    facts = gpt2.facts(work)
    assert facts.python_of is not None and facts.forward is not None and facts.python
    assert facts.python_of == facts.forward
    assert facts.module is not None and facts.module.name.startswith("nn.Module: ")
    (forward,) = [event for event in gpt2.events if event["at"] == facts.forward.event_id]
    frames = [e["name"] for e in gpt2.plain.around(forward) if e["cat"] == "python_function"]
    assert [frame.text for frame in facts.python] == frames


def test_roofline_of_the_operator_call(gpt2: Job) -> None:
    product = next(
        e for e in gpt2.plain.of("cpu_op") if e["name"] == "aten::mm" and gpt2.plain.work_in(e)
        and e["args"]["Input Dims"][0][1] == e["args"]["Input Dims"][1][0]
    )  # fmt: skip
    work = gpt2.plain.work_in(product)
    roof = gpt2.facts(work[0]).roofline
    (m, k), (_, n) = product["args"]["Input Dims"]
    spent = sum(each["end"] - each["start"] for each in work)
    assert roof is not None and roof.operator.event_id == product["at"]
    assert (roof.flops, roof.kernels, roof.device_ns) == (2 * m * k * n, len(work), spent)
    assert roof.tflops_s == pytest.approx(2e-3 * m * k * n / spent)
    peak = analysis.peaks_of(str(roof.device))
    assert peak is not None and roof.unit is not None
    assert roof.peak_tflops_s == pytest.approx(peak.tflops[roof.unit])
    assert roof.bytes == 2 * (m * k + k * n + m * n)
    lowest = max(roof.flops / (peak.tflops[roof.unit] * 1e3), roof.bytes / peak.memory_gb_s)
    assert roof.efficiency_pct == pytest.approx(100 * lowest / spent)
    annotation = gpt2.facts(gpt2.sample("user_annotation", 1)[0])
    assert annotation.roofline is None and annotation.missing["roofline"]


def test_what_the_name_of_a_kernel_says(gpt2: Job) -> None:
    product = next(event for event in gpt2.events if "xmma_gemm" in event["name"])
    parts = gpt2.facts(product).parts
    assert (parts["operation"], parts["tile"], parts["unit"]) == ("gemm", "128x128x64", "tensor_16bit")
    host = gpt2.facts(gpt2.sample("cpu_op", 1)[0])
    assert host.parts == {} and host.missing["parts"] == "only names of device work have parts"


def test_facts_are_plain_values(gpt2: Job) -> None:
    for event in sampled(gpt2)[::5]:
        facts = gpt2.facts(event)
        told = json.loads(json.dumps(facts.to_dict(), allow_nan=False))
        assert told["event"]["event_id"] == event["at"]
        empty = [name for name in facts.missing if told[name] not in (None, {}, []) and told[name] != {
            "count": 0, "time_ns": 0, "first": []}]  # fmt: skip
        assert empty == []  # what is told is not said to be missing


def test_unknown_events_and_ranks(gpt2: Job) -> None:
    with pytest.raises(KeyError, match="no event 999999"):
        analysis.inspect_event(gpt2.trace, RANK, 999_999)
    with pytest.raises(KeyError, match="no rank 7"):
        analysis.inspect_event(gpt2.trace, 7, 0)


# -- the replay without an event


def number_of(trace: Trace, name: str, at: int = 0) -> int:
    """The number of an event by its name, and its place among those."""
    rows = trace.events()
    return int(rows.loc[rows["name"] == name, "event_id"].iloc[at])


def test_without_a_kernel_its_iteration_has_none_of_its_time(tmp_path: Path) -> None:
    # The device runs behind: each step is one kernel of 150 us.
    trace = job(tmp_path, steps_of(150_000)[0])
    gone = analysis.inspect_event(trace, 0, number_of(trace, "gemm2")).gone
    whole = analysis.what_if(trace, edits.kernels(float("inf"), name="gemm2")).iloc[0]  # one has that name
    assert gone is not None
    assert gone.iteration == Replayed(151_000, 1_000, 1_000, 1_000)  # the next step begins 1 us later
    assert (gone.recording.before_ns, gone.recording.after_ns) == (whole["before_ns"], whole["after_ns"])


def test_without_one_call_of_several_only_that_is_missing(tmp_path: Path) -> None:
    # The host takes 100 us for each step, 98 of them in the operator.
    trace = job(tmp_path, steps_of(10_000)[0])
    whole = analysis.what_if(trace, edits.without("aten::mm")).iloc[0]
    gone = analysis.inspect_event(trace, 0, number_of(trace, "aten::mm", 1)).gone
    assert gone is not None
    assert gone.recording.before_ns - gone.recording.after_ns == 98_000
    assert whole["before_ns"] - whole["after_ns"] > 3 * 98_000


def test_only_the_one_event_is_left_out(gpt2: Job) -> None:
    event = next(e for e in gpt2.events if "xmma_gemm" in e["name"])
    gone = gpt2.facts(event, replay=True).gone
    assert gone is not None and gone.iteration is not None
    saved = gone.recording.before_ns - gone.recording.after_ns
    every = analysis.what_if(
        gpt2.trace, edits.kernels(float("inf"), name=edits.exactly(event["name"])), Scope(ranks=RANK)
    )
    assert 0 <= saved <= event["end"] - event["start"] + 1_000
    assert saved < every["before_ns"].iloc[0] - every["after_ns"].iloc[0]


def test_a_recording_that_cannot_be_replayed_says_so(tmp_path: Path) -> None:
    orphans = [kernel(f"k{number}", 1000 * number, 500, correlation=0) for number in range(5)]
    facts = analysis.inspect_event(job(tmp_path, orphans), 0, 2)
    assert facts.gone is None and facts.missing["gone"].startswith(
        "the replay of this rank cannot be trusted: "
    )
    assert facts.launch is None and facts.missing["launch"].startswith("no recorded call launched it")
    assert (
        "with_stack=True" in facts.missing["python"]
        and "no operators are recorded" in facts.missing["operator"]
    )
    host = analysis.inspect_event(job(tmp_path, [kineto.event("cpu_op", "aten::add", 0, 10)]), 0, 0)
    assert host.missing["gone"].startswith("no device work is recorded")


def test_a_launch_of_several_names_the_others(tmp_path: Path) -> None:
    graph = kineto.event("cuda_runtime", "cudaGraphLaunch", 0, 20, correlation=1)
    trace = job(tmp_path, [graph, *(kernel(f"k{i}", 100 + 50 * i, 40, correlation=1) for i in range(3))])
    facts = analysis.inspect_event(trace, 0, 2, replay=False)
    assert facts.launch is not None and facts.launch.call.name == "cudaGraphLaunch"
    assert [other.name for other in facts.launch.siblings.first] == ["k0", "k2"]
    assert (facts.launch.siblings.count, facts.launch.siblings.time_ns) == (2, 80)
    assert [work.name for work in analysis.inspect_event(trace, 0, 0, replay=False).launched.first] == [
        "k0", "k1", "k2",
    ]  # fmt: skip


# -- gaps


def test_a_gap_lies_between_two_pieces_of_work(gpt2: Job) -> None:
    work = gpt2.plain.on_stream(7)
    seen = 0
    for before, after in zip(work[::19], work[1::19], strict=False):
        start, end = before["end"] - gpt2.origin, after["start"] - gpt2.origin
        if start >= end:
            continue
        seen += 1
        gap = analysis.inspect_gap(gpt2.trace, RANK, 7, (start + end) // 2)
        assert gap is not None and gap.before is not None and gap.after is not None
        assert (gap.start_ns, gap.end_ns) == (start, end)
        assert (gap.before.event_id, gap.after.event_id) == (before["at"], after["at"])
        assert sum(gap.causes_ns.values()) == end - start
        others = [(e["start"], e["end"]) for e in gpt2.events if e["cat"] in plain.DEVICE]
        assert gap.others_busy_ns == plain.covered(others, before["end"], after["start"])
        call = gpt2.plain.launch(after)
        assert call is not None and gap.launch is not None and gap.launch.call.event_id == call["at"]
    assert seen > 3
    busy = work[3]
    assert analysis.inspect_gap(gpt2.trace, RANK, 7, busy["start"] - gpt2.origin) is None
    with pytest.raises(MissingDataError, match="stream 99"):
        analysis.inspect_gap(gpt2.trace, RANK, 99, 0)


def test_a_gap_names_what_the_host_did(tmp_path: Path) -> None:
    trace = job(
        tmp_path,
        [
            kineto.event("cpu_op", "aten::ahead", 0, 50), launch(10, 1, dur=10),
            kernel("first", 100, 1000, correlation=1),
            kineto.event("python_function", "load.py(7): slow_read", 1000, 5000), launch(7000, 2, dur=10),
            kernel("second", 7100, 500, correlation=2),
        ],
    )  # fmt: skip
    gap = analysis.inspect_gap(trace, 0, 7, 3000)
    assert gap is not None and gap.causes_ns["host_busy"] == 5900 and gap.causes_ns["launch_latency"] == 100
    assert [place.name for place in gap.host] == ["load.py(7): slow_read"]
    assert gap.host[0].idle_ns == 4900
    end = analysis.inspect_gap(trace, 0, 7, 7600 + 100)
    assert end is None or end.after is None


# -- stretches of time


def expected(events: list[plain.Plain], start: int, end: int) -> dict[str, tuple[int, int, int]]:
    """By name: how many overlap a window, their time inside, and the time that any of them covers."""
    found = {}
    for name in {event["name"] for event in events}:
        spans = [(max(e["start"], start), min(e["end"], end)) for e in events if e["name"] == name
                 and e["start"] < end and max(e["end"], e["start"] + 1) > start]  # fmt: skip
        if spans:
            found[name] = len(spans), sum(b - a for a, b in spans), plain.covered(spans, start, end)
    return found


def test_a_stretch_by_name_class_lane_and_operator(gpt2: Job) -> None:
    start, end = 15_000_000, 18_000_000
    scope = Scope(ranks=RANK, window_ns=(start, end))
    low, high = start + gpt2.origin, end + gpt2.origin
    frame = analysis.inspect_window(gpt2.trace, scope)
    told = frame.groupby("name")[["count", "time_ns"]].sum()
    for name, (count, time, _) in expected(gpt2.events, low, high).items():
        assert (told.loc[name, "count"], told.loc[name, "time_ns"]) == (count, time), name
    assert len(told) == len(expected(gpt2.events, low, high))

    by_class = analysis.inspect_window(gpt2.trace, scope, by="class").set_index("name")
    calls = [event for event in gpt2.events if event["cat"] == "cuda_runtime"]
    inside = expected([{**event, "name": "runtime"} for event in calls], low, high)["runtime"]
    row = by_class.loc["runtime"]
    assert (row["count"], row["time_ns"], row["covered_ns"]) == inside
    assert row["covered_pct"] == pytest.approx(100 * inside[2] / (end - start))

    lanes = analysis.inspect_window(gpt2.trace, scope, by="lane").set_index("name")
    stream = [{**event, "name": "it"} for event in gpt2.plain.on_stream(7)]
    syncs = [
        {**e, "name": "it"} for e in gpt2.events if e["cat"] == "cuda_sync" and e["args"].get("stream") == 7
    ]
    row = lanes.loc["device 0 stream 7"]
    assert (row["count"], row["time_ns"], row["covered_ns"]) == expected([*stream, *syncs], low, high)["it"]

    operators = analysis.inspect_window(gpt2.trace, scope, by="operator").set_index("name")
    mine = []
    for event in gpt2.events:
        if event["cat"] in plain.DEVICE and event["start"] < high and event["end"] > low:
            holders = [e for e in gpt2.plain.around(event) if e["cat"] == "cpu_op"]
            if holders and holders[0]["name"] == "aten::mm":
                mine.append({**event, "name": "aten::mm"})
    row = operators.loc["aten::mm"]
    assert (row["count"], row["time_ns"], row["covered_ns"]) == expected(mine, low, high)["aten::mm"]
    device = [{**event, "name": "all"} for event in gpt2.events if event["cat"] in plain.DEVICE]
    assert operators["time_ns"].sum() == expected(device, low, high)["all"][1]
    with pytest.raises(ValueError, match="by must be one of"):
        analysis.inspect_window(gpt2.trace, scope, by="colour")  # type: ignore[arg-type]


@pytest.mark.parametrize("by", WINDOW_BY)
def test_a_stretch_without_events_consists_of_nothing(gpt2: Job, by: WindowBy) -> None:
    end = gpt2.trace.extent_ns[1]
    frame = analysis.inspect_window(gpt2.trace, Scope(window_ns=(end + 1, end + 1000)), by)
    assert frame.empty and frame["covered_ns"].dtype == "int64"


def test_the_same_stretch_of_the_other_iterations(gpt2: Job) -> None:
    table = gpt2.trace.rank(RANK).iterations
    begin, stop = int(table["start_ns"].iloc[1]), int(table["end_ns"].iloc[1])
    window = (begin + (stop - begin) // 4, begin + (stop - begin) // 2)
    frame = analysis.same_stretch(gpt2.trace, RANK, window)
    assert frame["iteration"].tolist() == [10, 11, 12] and frame["own"].tolist() == [False, True, False]
    assert (frame["start_ns"].iloc[1], frame["end_ns"].iloc[1]) == window
    for row in frame.itertuples():
        whole = table[table["iteration"] == row.iteration].iloc[0]
        length = int(whole["end_ns"]) - int(whole["start_ns"])
        share = (window[0] - begin) / (stop - begin)
        assert row.start_ns == pytest.approx(int(whole["start_ns"]) + share * length, abs=1)
        spans = [(e["start"], e["end"]) for e in gpt2.events if e["cat"] in plain.DEVICE]
        low, high = row.start_ns + gpt2.origin, row.end_ns + gpt2.origin
        assert row.idle_ns == row.window_ns - plain.covered(spans, low, high)
        assert (
            row.compute_ns + row.exposed_communication_ns + row.exposed_memory_ns + row.idle_ns
            == row.window_ns
        )
    with pytest.raises(MissingDataError, match="lies in no complete iteration"):
        analysis.same_stretch(gpt2.trace, RANK, (begin - 1_000_000, stop))


# -- what takes longest, and two iterations side by side


def test_the_longest_events_are_those_of_the_file(gpt2: Job) -> None:
    start, end = 15_000_000, 18_000_000
    frame = analysis.longest_events(gpt2.trace, Scope(ranks=RANK, window_ns=(start, end)), most=20)
    low, high = start + gpt2.origin, end + gpt2.origin
    inside = [event for event in gpt2.events if event["cat"] in plain.DEVICE
              and event["start"] < high and max(event["end"], event["start"] + 1) > low]  # fmt: skip
    inside.sort(key=lambda event: (event["start"] - event["end"], event["start"], event["at"]))
    assert frame["event_id"].tolist() == [event["at"] for event in inside[:20]]
    assert frame["dur_ns"].tolist() == [event["end"] - event["start"] for event in inside[:20]]
    assert frame["name"].tolist() == [event["name"] for event in inside[:20]]
    # named as in other panels
    assert longest_sentence(frame).startswith(
        f"Of device work, {short_kernel_name(inside[0]['name'])} takes longest: "
    )
    assert len(analysis.longest_events(gpt2.trace, most=0)) == 0
    with pytest.raises(ValueError, match="must not be negative"):
        analysis.longest_events(gpt2.trace, most=-1)


def test_the_longest_are_operators_where_no_device_worked(tmp_path: Path) -> None:
    for name in ("host", "device", "python"):
        (tmp_path / name).mkdir()
    calls = [kineto.event("cpu_op", "aten::short", 0, 50), kineto.event("cpu_op", "aten::long", 100, 70)]
    trace = job(tmp_path / "host", calls)
    assert analysis.longest_events(trace)["name"].tolist() == ["aten::long", "aten::short"]
    working = [*calls, launch(10, 1, dur=10), kernel("k", 60, 5, correlation=1)]
    one_works = job(tmp_path / "device", calls, working)
    assert analysis.longest_events(one_works)[["rank", "name"]].to_numpy().tolist() == [[1, "k"]]
    python = job(tmp_path / "python", [kineto.event("python_function", "train.py(1): step", 0, 50)])
    with pytest.raises(MissingDataError, match="device work and operators"):
        analysis.longest_events(python)


def test_two_iterations_differ_by_what_each_has_of_the_file(gpt2: Job) -> None:
    frame = analysis.compare_iterations(gpt2.trace, 10, 12, Scope(ranks=RANK), by="class").set_index("name")
    windows = (
        gpt2.trace.rank(RANK).windows(Scope(iterations=(10,))),
        gpt2.trace.rank(RANK).windows(Scope(iterations=(12,))),
    )
    calls = [{**event, "name": "runtime"} for event in gpt2.events if event["cat"] == "cuda_runtime"]
    sides = [
        expected(calls, int(window[0, 0]) + gpt2.origin, int(window[0, 1]) + gpt2.origin)["runtime"]
        for window in windows
    ]
    row = frame.loc["runtime"]
    for at, name in enumerate(("count", "time_ns", "covered_ns")):
        assert (row[f"first_{name}"], row[f"second_{name}"]) == (sides[0][at], sides[1][at])
        assert row[f"change_{name}"] == sides[1][at] - sides[0][at]
    by_name = analysis.compare_iterations(gpt2.trace, 10, 12, Scope(ranks=RANK))
    assert by_name["change_time_ns"].abs().max() > 0
    assert by_name["change_covered_ns"].abs().is_monotonic_decreasing
    back = analysis.compare_iterations(gpt2.trace, 12, 10, Scope(ranks=RANK))
    assert back["change_time_ns"].sum() == -by_name["change_time_ns"].sum()
    with pytest.raises(MissingDataError, match="iteration 99 of rank 0"):
        analysis.compare_iterations(gpt2.trace, 10, 99, Scope(ranks=RANK))


def test_what_only_one_iteration_does_counts_as_none_in_the_other(tmp_path: Path) -> None:
    steps = [kineto.event("user_annotation", f"ProfilerStep#{n}", 1000 * n, 900) for n in (1, 2)]
    calls = [kineto.event("cpu_op", "aten::both", 1010, 50), kineto.event("cpu_op", "aten::both", 2010, 80)]
    trace = job(tmp_path, [*steps, *calls, kineto.event("cpu_op", "aten::once", 2200, 30)])
    frame = analysis.compare_iterations(trace, 1, 2).set_index("name")
    once, both = frame.loc["aten::once"], frame.loc["aten::both"]
    assert (once["first_count"], once["second_count"], once["change_time_ns"]) == (0, 1, 30)
    assert (both["first_time_ns"], both["second_time_ns"], both["change_covered_ns"]) == (50, 80, 30)
