"""Each edit on small recordings, with what it saves worked out by hand, to the nanosecond."""

import fnmatch
import glob
import math
import pickle

import pytest

from hta_widgets import analysis, edits
from hta_widgets.analysis.replay.device_times import slowing
from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.analysis.replay.passes import ESTIMATE, MOST, PINNED
from hta_widgets.analysis.replay.places import matches
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import job
from tests.analysis.test_roofline import COPY, SQUARE, TF32, opened
from tests.analysis.test_roofline import operator as kernel_of
from tests.replay.program import call, copy, launch, operator, work


def test_a_name_is_meant_by_itself_and_by_its_escape():
    names = ("f(float*)", "f(float?)", "f(floats)", "at[0]", "at0", "a.b", "axb", "", "two\nlines")
    patterns = (*names, *map(glob.escape, names), "f*", "[[]", "[]]", "[!a]t*", "*]")
    for pattern in patterns:
        meant = [name for name in names if matches(pattern, name)]
        assert meant == [name for name in names if fnmatch.fnmatchcase(name, pattern)], pattern


def extents(folder, events, *changes):
    """The extent of the recording: pinned, estimated, at most."""
    rank_trace = job(folder, events).rank(0)
    graph = graph_of(rank_trace)
    plan = Plan(graph, rank_trace)
    for change in changes:
        change.apply(plan)
    assert int(Plan(graph, rank_trace).replay(ESTIMATE).max()) == graph.extent
    return tuple(int(plan.replay(mode).max()) for mode in (PINNED, ESTIMATE, MOST))


def extent(folder, events, *changes):
    """The extent where nothing shared the device: all three are one."""
    found = set(extents(folder, events, *changes))
    assert len(found) == 1
    return found.pop()


def host_bound():
    """Three operators with a launch of 10 us each, 6 us before its kernel or copy starts.

    The last one ends at 91 us: its launch begins at 75, then come 6 us of latency and 10 of work.
    """
    return [
        operator("aten::mm", 0, 30_000),
        launch(1, 5_000, 15_000),
        work("gemm_nn", 1, 11_000, 16_000),
        operator("aten::add", 40_000, 70_000),
        launch(2, 50_000, 60_000),
        work("add", 2, 56_000, 61_000),
        operator("aten::copy_", 71_000, 90_000),
        launch(3, 75_000, 85_000, name="cudaMemcpyAsync"),
        copy("Memcpy DtoD (Device -> Device)", 3, 81_000, 91_000),
    ]


def test_an_edit_is_shown_as_the_expression_that_makes_it():
    edit = edits.without("aten::x")
    assert repr(edit) == f"Edit(expression={edit.expression!r}, bound={edit.bound})"


def test_half_the_host(tmp_path):
    assert extent(tmp_path, host_bound()) == 91_000
    assert extent(tmp_path, host_bound(), edits.host(0.5)) == 37_500 + 6_000 + 10_000


def test_a_free_host_leaves_latency_and_device_work(tmp_path):
    # All launched at once: 6 us, 5 us, gap 1 us, 5 us, gap 1 us, 10 us
    assert extent(tmp_path, host_bound(), edits.host(0)) == 28_000


def test_the_host_within_an_operator(tmp_path):
    # aten::add is open from 40 to 70 us. Without all of it launch 2 happens at 40 us and launch 3 at 45,
    # so the copy waits for the stream: 40 + 6 + 5, gap 1, 10.
    assert extent(tmp_path, host_bound(), edits.host(0.5, within="aten::add")) == 91_000 - 15_000
    assert extent(tmp_path, host_bound(), edits.host(0, within="aten::add")) == 62_000
    assert extent(tmp_path, host_bound(), edits.host(0, within="aten::ad")) == 91_000


def test_the_host_outside_an_operator(tmp_path):
    # aten::add is open for 30 us before launch 3.
    assert extent(tmp_path, host_bound(), edits.host(0, outside="aten::add")) == 30_000 + 6_000 + 10_000
    assert extent(tmp_path, host_bound(), edits.host(0, "aten::*", outside="aten::add")) == 91_000 - 34_000


def test_the_host_while_a_device_waits_for_it(tmp_path):
    # Two streams. The device works from 5 to 15 us, and waits for launch 2 for 25, which takes 5 to arrive.
    events = [
        launch(1, 0, 2_000),
        work("gemm", 1, 5_000, 15_000),
        launch(2, 40_000, 42_000),
        work("add", 2, 45_000, 50_000, stream=8),
    ]
    assert extent(tmp_path, events) == 50_000
    assert extent(tmp_path, events, edits.host(0, exposed=True)) == 50_000 - 25_000
    assert extent(tmp_path, events, edits.host(0.5, exposed=True)) == 50_000 - 12_500
    assert extent(tmp_path, events, edits.host(0)) == 15_000


def test_free_launches(tmp_path):
    # Launches 1 and 2 of 10 us each lie before launch 3, whose latency does not change.
    assert extent(tmp_path, host_bound(), edits.launches()) == 71_000
    assert extent(tmp_path, host_bound(), edits.launches(0.5)) == 81_000


def test_without_an_operator(tmp_path):
    # What it launched stays: launch 2 happens when the operator before has ended.
    assert extent(tmp_path, host_bound(), edits.without("aten::add")) == 62_000
    assert extent(tmp_path, host_bound(), edits.without("aten::add", keep_ns=12_000)) == 91_000 - 18_000
    assert extent(tmp_path, host_bound(), edits.without("aten::add", keep_ns=29_999)) == 91_000 - 1
    assert extent(tmp_path, host_bound(), edits.without("aten::add", keep_ns=30_000)) == 91_000


def test_without_pauses(tmp_path):
    # Two pauses of 2 and 3 ms between three launches, each before an operator of its own name.
    events = [launch(1, 0, 2_000), work("gemm", 1, 5_000, 15_000)]
    for number, (name, at) in enumerate((("a", 2_002_000), ("b", 5_004_000)), start=2):
        events += [operator(name, at, at + 1_000), launch(number, at + 1_000, at + 2_000)]
        events += [work("gemm", number, at + 6_000, at + 16_000)]
    whole, behind_the_second = 5_004_000 + 16_000, 2_018_000 + 1_000 + 10_000
    assert extent(tmp_path, events) == whole
    assert extent(tmp_path, events, edits.pauses("b")) == behind_the_second
    assert extent(tmp_path, events, edits.pauses(longer_than_ns=2_500_000)) == behind_the_second
    assert extent(tmp_path, events, edits.pauses("c")) == whole
    # then the device takes as long as the host
    assert extent(tmp_path, events, edits.pauses()) == 5_000 + 10_000 + 1_000 + 10_000 + 1_000 + 10_000
    with pytest.raises(ValueError, match="at least 1,000,000"):
        edits.pauses(longer_than_ns=999_999)


def test_time_is_cut_once_however_often_asked(tmp_path):
    twice = (edits.without("aten::add"), edits.without("aten::*d*"))
    assert extent(tmp_path, host_bound(), *twice) == 62_000
    both = (edits.host(0.5, within="aten::add"), edits.without("aten::add"))
    assert extent(tmp_path, host_bound(), *both) == 62_000


def test_names_are_patterns_for_the_whole_name(tmp_path):
    for pattern, saved in (("aten::a*", 29_000), ("aten::a?d", 29_000), ("aten::[ab]dd", 29_000), ("add", 0)):
        assert extent(tmp_path, host_bound(), edits.without(pattern)) == 91_000 - saved


def device_bound():
    """Three pieces of work launched at once: 40 us each, 2 us apart."""
    return [
        operator("aten::mm", 0, 1_900),
        launch(1, 0, 1_000),
        operator("aten::add", 2_000, 3_900),
        launch(2, 2_000, 3_000),
        launch(3, 4_000, 5_000),
        work("gemm_nn", 1, 5_000, 45_000),
        work("add", 2, 47_000, 87_000),
        work("gemm_tn", 3, 89_000, 129_000),
    ]


def test_faster_kernels(tmp_path):
    assert extent(tmp_path, device_bound(), edits.kernels(2.0)) == 69_000
    assert extent(tmp_path, device_bound(), edits.kernels(4.0, name="gemm*")) == 5_000 + 10 + 40_000 + 23_990
    assert extent(tmp_path, device_bound(), edits.kernels(2.0, name="mm")) == 129_000


def test_kernels_launched_inside_an_operator(tmp_path):
    assert extent(tmp_path, device_bound(), edits.kernels(2.0, within="aten::mm")) == 109_000
    assert extent(tmp_path, device_bound(), edits.kernels(2.0, within="aten::*")) == 89_000
    assert extent(tmp_path, device_bound(), edits.kernels(2.0, name="add", within="aten::mm")) == 129_000


def test_kernels_without_time(tmp_path):
    # Launch 3 happens at 4 us, its latency is 5 us; launch, latency and gap of those before fit in that.
    assert extent(tmp_path, device_bound(), edits.kernels(math.inf)) == 9_000


def test_slower_kernels_take_longer(tmp_path):
    assert extent(tmp_path, device_bound(), edits.kernels(0.5)) == 249_000


def test_factors_multiply(tmp_path):
    changes = edits.kernels(2.0), edits.kernels(2.0, name="add")
    assert extent(tmp_path, device_bound(), *changes) == 5_000 + 20_000 + 2_000 + 10_000 + 2_000 + 20_000
    assert extent(tmp_path, device_bound(), *reversed(changes)) == 59_000


def test_a_part_of_a_group_edited_first_keeps_its_factor(tmp_path):
    changes = edits.kernels(4.0, within="aten::mm"), edits.kernels(2.0)
    assert extent(tmp_path, device_bound(), *changes) == 5_000 + 5_000 + 2_000 + 20_000 + 2_000 + 20_000
    alike = [
        event | ({"name": "gemm"} if event["name"] == "add" or "gemm" in event["name"] else {})
        for event in device_bound()
    ]
    assert extent(tmp_path, alike, *changes) == extent(tmp_path, alike, *reversed(changes)) == 54_000


def transfers():
    """A kernel, a copy and an all-reduce of 40 us each on one stream, 2 us apart."""
    events = device_bound()
    events[-2] = copy("Memcpy HtoD (Pinned -> Device)", 2, 47_000, 87_000)
    events[-1] = work("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3, 89_000, 129_000)
    return events


def test_copies_kernels_and_communication_are_three_things(tmp_path):
    assert extent(tmp_path, transfers(), edits.kernels(2.0)) == 109_000
    assert extent(tmp_path, transfers(), edits.copies(4.0)) == 99_000
    assert extent(tmp_path, transfers(), edits.copies(4.0, name="*DtoH*")) == 129_000
    assert extent(tmp_path, transfers(), edits.copies(4.0, within="aten::add")) == 99_000
    assert extent(tmp_path, transfers(), edits.copies(4.0, within="aten::mm")) == 129_000
    assert extent(tmp_path, transfers(), edits.communication()) == 89_000
    assert extent(tmp_path, transfers(), edits.communication(0.25)) == 99_000
    assert extent(tmp_path, transfers(), edits.communication(0, name="*AllGather*")) == 129_000


def waiting(name: str = "cudaStreamSynchronize"):
    """A kernel of 40 us; the host waits for it and then launches the next, of 10 us."""
    return [
        operator("aten::item", 2_000, 49_000),
        launch(1, 0, 1_000),
        work("gemm_nn", 1, 5_000, 45_000),
        call(name, 3_000, 48_000),
        launch(2, 50_000, 51_000),
        work("add", 2, 55_000, 65_000),
    ]


def test_without_waits_the_host_goes_on(tmp_path):
    # The call itself takes its 3 us: launch 2 at 8 us; its kernel is behind the first, 1 us after.
    assert extent(tmp_path, waiting(), edits.syncs()) == 45_000 + 1_000 + 10_000
    assert extent(tmp_path, waiting(), edits.syncs(within="aten::item")) == 56_000
    assert extent(tmp_path, waiting(), edits.syncs(within="aten::mm")) == 65_000


def test_waits_for_the_whole_device_are_left_unless_named(tmp_path):
    events = waiting("cudaDeviceSynchronize")
    assert extent(tmp_path, events, edits.syncs()) == 65_000
    assert extent(tmp_path, events, edits.syncs("cudaDevice*")) == 56_000
    assert extent(tmp_path, events, edits.syncs("cudaStream*")) == 65_000


def test_a_blocking_copy_is_a_wait(tmp_path):
    # The call's own time is that of a launch, 1 us: launch 3 at 5 us, its kernel behind the copy.
    events = [
        launch(1, 0, 1_000),
        work("gemm_nn", 1, 5_000, 25_000),
        launch(2, 2_000, 48_000, name="cudaMemcpyAsync"),
        copy("Memcpy DtoH (Device -> Pageable)", 2, 26_000, 45_000),
        launch(3, 50_000, 51_000),
        work("add", 3, 55_000, 65_000),
    ]
    assert extent(tmp_path, events, edits.syncs()) == 45_000 + 1_000 + 10_000
    # The call that blocks is no launch to be had for free, and launch 1 is not what the copy waits for.
    assert extent(tmp_path, events, edits.launches()) == 65_000


def test_a_caching_allocator_neither_takes_time_nor_waits(tmp_path):
    # cudaMalloc takes 20 us, cudaFree waits until 95 us: without both, launch 2 comes right behind launch 1.
    events = [
        launch(1, 0, 1_000),
        work("gemm_nn", 1, 5_000, 90_000),
        call("cudaMalloc", 1_000, 21_000),
        call("cudaFree", 21_000, 95_000),
        launch(2, 95_000, 96_000),
        work("add", 2, 100_000, 110_000),
    ]
    assert extent(tmp_path, events, edits.allocator()) == 90_000 + 1_000 + 10_000
    assert extent(tmp_path, events, edits.allocator(), edits.kernels(math.inf)) == 1_000 + 5_000


def test_copies_at_a_bandwidth(tmp_path):
    # 400 kB take 40 us at 10 GB/s.
    events = transfers()
    events[-2]["args"]["bytes"] = 400_000
    assert extent(tmp_path, events, edits.copy_bandwidth(20.0)) == 109_000
    assert extent(tmp_path, events, edits.copy_bandwidth(5.0)) == 129_000, "never slower"
    assert extent(tmp_path, events, edits.copy_bandwidth(20.0, name="*DtoH*")) == 129_000
    assert extent(tmp_path, events, edits.copy_bandwidth(20.0, within="aten::mm")) == 129_000
    with pytest.raises(MissingDataError, match="bytes of copies"):
        extent(tmp_path, transfers(), edits.copy_bandwidth(20.0))


@pytest.mark.parametrize(
    ("collective", "share"), [("allreduce", 1.5), ("_allgather_base", 0.75), ("broadcast", 1.0)]
)
def test_collectives_at_a_bus_bandwidth(tmp_path, collective, share):
    # Of 4 ranks, 100,000 floats: 400 kB, of which a link carries a share.
    events = transfers()
    described = {"Collective name": collective, "In msg nelems": 100_000, "dtype": "Float", "Group size": 4}
    events[-1]["args"] |= described
    found = extent(tmp_path, events, edits.bus_bandwidth(50.0))
    assert found == 89_000 + 400_000 * share / 50
    assert extent(tmp_path, events, edits.bus_bandwidth(1.0)) == 129_000, "never slower"
    with pytest.raises(MissingDataError, match="sizes of collectives"):
        extent(tmp_path, transfers(), edits.bus_bandwidth(50.0))


def test_kernels_of_a_given_time(tmp_path):
    assert extent(tmp_path, device_bound(), edits.kernel_time(15_000, "gemm*")) == 79_000
    assert extent(tmp_path, device_bound(), edits.kernel_time(50_000, "gemm*")) == 129_000
    assert extent(tmp_path, device_bound(), edits.kernel_time(15_000, "gemm*", within="aten::mm")) == 104_000


def beside_communication(slower: int):
    """Six kernels on stream 7, 10 us alone, and as many times as long in the first 70 us of an all-reduce.

    All are launched at once. The all-reduce takes 100 us, of which 30 are exposed, and then a kernel waits.
    """
    events, at = [], 20_000
    for number in range(6):
        taken = 10_000 * (slower if number < 3 else 1)
        at = 20_000 + 20_000 * number if number < 3 else 130_000 + 15_000 * (number - 3)
        events += [
            launch(number + 1, 1_000 * number, 1_000 * number + 500),
            work("gemm", number + 1, at, at + taken, grid=[1, 1, 1]),
        ]
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    return [*events, launch(9, 7_000, 7_500), work(name, 9, 20_000, 120_000, stream=20)]


@pytest.mark.parametrize("slower", [1, 2])
def test_overlapped_communication_costs_what_it_slows_down(tmp_path, slower):
    # Of the all-reduce (3 * 10 * slower) us are hidden; the rest is gone but for what it slows compute by.
    rank_trace = job(tmp_path, beside_communication(slower)).rank(0)
    assert slowing(rank_trace) == slower
    plan = Plan(graph_of(rank_trace), rank_trace)
    edits.overlap().apply(plan)
    exposed = 100_000 - 30_000 * slower
    lost = (plan.graph.weight - plan.weight).tolist()
    assert sum(lost) == exposed * (2 - slower)


def test_too_few_kernels_tell_no_slowing(tmp_path):
    events = [event for event in beside_communication(2) if event["args"].get("correlation") != 1]
    assert slowing(job(tmp_path, events).rank(0)) == 1.0


def test_communication_as_early_as_its_data(tmp_path):
    """A second all-reduce, whose data is computed at 50 us, is launched at 200 us and starts 6 us later."""
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    events = [
        launch(1, 0, 1_000),
        work("gemm", 1, 6_000, 20_000),
        launch(2, 21_000, 22_000),
        work(name, 2, 27_000, 37_000, stream=20),
        launch(3, 38_000, 39_000),
        work("gemm", 3, 44_000, 50_000),
        launch(4, 200_000, 201_000),
        work(name, 4, 206_000, 300_000, stream=20),
    ]
    assert extent(tmp_path, events, edits.prompt_communication("other")) == 300_000
    # the second starts with the usual gap behind its data, as nothing else holds it up
    assert extent(tmp_path, events, edits.prompt_communication()) == max(201_000, 50_000 + 1_000 + 94_000)
    # the first all-reduce of a stream starts as it did: how soon it should is not known
    assert extent(tmp_path, events[:4], edits.prompt_communication()) == 37_000


def test_work_on_a_stream_of_its_own(tmp_path):
    # `add` runs from 7 to 47 us beside gemm_nn; gemm_tn follows that with the gap that it had behind add.
    assert extent(tmp_path, device_bound(), edits.own_stream("add")) == 45_000 + 2_000 + 40_000
    assert extent(tmp_path, device_bound(), edits.own_stream("add", within="aten::mm")) == 129_000
    # Both gemms follow each other on their stream.
    assert extent(tmp_path, device_bound(), edits.own_stream("gemm*")) == 45_000 + 2_000 + 40_000
    # All of a stream on its own: nothing changes.
    assert extent(tmp_path, device_bound(), edits.own_stream("*")) == 129_000


def test_a_fused_optimizer(tmp_path):
    # Three launches of 2 us, 10 us apart, in 40 us; the next one comes behind.
    events = [operator("Optimizer.step#SGD.step", 0, 40_000), operator("aten::mm", 41_000, 50_000)]
    for number in range(3):
        begin = 5_000 + 10_000 * number
        events += [
            launch(number + 1, begin, begin + 2_000),
            work("add", number + 1, begin + 5_000, begin + 6_000),
        ]
    events += [launch(9, 45_000, 47_000), work("gemm", 9, 50_000, 60_000)]
    # Of 40 us 6 are of launches; a tenth of the other 34 is left.
    assert extent(tmp_path, events, edits.fused_optimizer()) == 3_400 + 5_000 + 5_000 + 10_000
    assert extent(tmp_path, events, edits.fused_optimizer("Adam*")) == 60_000


def test_a_fused_optimizer_reads_and_writes_once(tmp_path):
    """Kernels of 40 and 10 us of one operator, and of 30 of another: 50 of 80 us are left."""
    optimizer = call("Optimizer.step#Adam.step", 0, 60_000) | {"cat": "user_annotation"}
    events, start = [optimizer], 10_000
    for number, (name, ns) in enumerate([("lerp_", 40_000), ("lerp_", 10_000), ("sqrt", 30_000)]):
        begin, end = 20_000 * number, 20_000 * number + 5_000
        events += [operator(f"aten::{name}", begin, end), launch(number + 1, begin + 1_000, end)]
        events.append(work("elementwise", number + 1, start, start + ns))
        start += ns + 1_000
    # The first launch after 1 us, 9 us to its kernel, and 1 us between kernels.
    assert extent(tmp_path, events) == 1_000 + 9_000 + 80_000 + 2_000
    assert extent(tmp_path, events, edits.fused_optimizer()) == 100 + 9_000 + 50_000 + 2_000


def profiled(overhead, steps=4):
    """Steps with a pause of 50 us and ten operators, each with a launch; events cost so much to record."""
    events, now, number = [], 0, 0
    for step in range(steps):
        begin = now
        now += 50_000
        for _ in range(10):
            number += 1
            opened, now = now, now + 3_000 + overhead // 2
            begun, now = now, now + 2_000 + overhead
            events += [launch(number, begun, now), work("add", number, begun + 4_000, begun + 5_000)]
            now += 3_000 + overhead // 2
            events.append(operator("aten::add", opened, now))
        events.append(call(f"ProfilerStep#{step}", begin, now) | {"cat": "user_annotation"})
    return events


def made(folder):
    folder.mkdir()
    return folder


def test_a_step_without_the_profiler(tmp_path):
    """The same program recorded at 6 us an event, taken back to the step that it has at none."""
    slow, free = (job(made(tmp_path / str(ns)), profiled(ns)) for ns in (6_000, 0))
    step = {trace: float(analysis.what_if(trace, [])["before_ns"][1]) for trace in (slow, free)}
    assert step[slow] == 50_000 + 10 * (8_000 + 12_000) and step[free] == 50_000 + 10 * 8_000
    frame = analysis.what_if(slow, [edits.unprofiled(130_000)])
    assert frame["after_ns"][1:-1].to_numpy() == pytest.approx(130_000, rel=0.01)
    # The pause is none of the profiler's, and half of what is left of the rest is half.
    half = analysis.what_if(slow, [edits.unprofiled(130_000), edits.host(0.5)])
    assert half["after_ns"][1:-1].to_numpy() == pytest.approx(65_000, rel=0.02)
    longer = analysis.what_if(slow, [edits.unprofiled(260_000)])
    assert longer["after_ns"].equals(longer["before_ns"])
    with pytest.raises(MissingDataError, match="where the host's events cost nothing to record"):
        analysis.what_if(slow, [edits.unprofiled(30_000)])


@pytest.mark.parametrize("wrong", [0, -1, math.nan])
def test_a_step_takes_time(wrong):
    with pytest.raises(ValueError, match="step_ns must be more than 0"):
        edits.unprofiled(wrong)


def run_of_launches(wait_after: int | None = None):
    """20 launches of 4 us, 10 us apart, of kernels of 2 us; latency 5 us."""
    events = []
    for at in range(20):
        begin = 10_000 * at
        events += [launch(at + 1, begin, begin + 4_000), work("add", at + 1, begin + 5_000, begin + 7_000)]
        if at == wait_after:
            events.append(call("cudaStreamSynchronize", begin + 4_000, begin + 9_000))
    return events


def test_a_run_of_launches_as_a_graph(tmp_path):
    # The first call of a thread begins no run. Launch 2 takes from 10 to 14 us, the others no time: 5 us
    # later their first kernel starts, 18 of 2 us and between them 30 % of the usual gap of 1 us.
    fused = 14_000 + 5_000 + 18 * 2_000 + 17 * 300
    assert extent(tmp_path, run_of_launches()) == 197_000
    assert extent(tmp_path, run_of_launches(), edits.graphs(at_least=19)) == fused
    assert extent(tmp_path, run_of_launches(), edits.graphs(at_least=20)) == 197_000
    assert extent(tmp_path, run_of_launches(), edits.graphs(19, shorter_than_ns=2_000)) == fused
    assert extent(tmp_path, run_of_launches(), edits.graphs(19, shorter_than_ns=1_999)) == 197_000


def test_a_wait_divides_runs(tmp_path):
    assert extent(tmp_path, run_of_launches(wait_after=9), edits.graphs(at_least=11)) == 197_000
    assert extent(tmp_path, run_of_launches(wait_after=9), edits.graphs(at_least=10)) < 197_000


def beside():
    """b on stream 7 starts 90 us after its launch, while a collective on stream 20 used the device."""
    return [
        launch(1, 0, 1_000),
        launch(2, 2_000, 3_000),
        launch(3, 200_000, 201_000),
        launch(4, 198_000, 199_000),
        work("a", 1, 5_000, 10_000),
        work("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2, 11_000, 150_000, stream=20),
        work("b", 3, 295_000, 305_000),
        work("long", 4, 203_000, 400_000, stream=21),
    ]


def test_a_delay_beside_other_work_is_shorter_with_it_or_stays(tmp_path):
    """`long` ran in all of the delay of b, and ends last; without it b does.

    Pinned, b ends at 305 us; estimated and at most the whole delay is gone: 200 + 5 + 10 us.
    """
    change = edits.kernels(math.inf, name="long")
    assert extents(tmp_path, beside(), change) == (305_000, 215_000, 215_000)


def test_an_edit_prints_as_what_makes_it():
    made = {
        edits.host(): "edits.host(0.0)",
        edits.host(1): "edits.host(1.0)",
        edits.host(0.5, within="aten::mm"): "edits.host(0.5, within='aten::mm')",
        edits.host(0, None, "load", True): "edits.host(0.0, outside='load', exposed=True)",
        edits.launches(0.25): "edits.launches(0.25)",
        edits.syncs(): "edits.syncs()",
        edits.syncs("cuda*", "aten::item"): "edits.syncs(call='cuda*', within='aten::item')",
        edits.allocator(): "edits.allocator()",
        edits.without('a"b'): "edits.without('a\"b')",
        edits.without("x", 5): "edits.without('x', keep_ns=5)",
        edits.kernels(2): "edits.kernels(2.0)",
        edits.kernels(math.inf, name="*gemm*"): "edits.kernels(math.inf, name='*gemm*')",
        edits.copies(3.5, within="w"): "edits.copies(3.5, within='w')",
        edits.communication(): "edits.communication(0.0)",
        edits.communication(0.5, within="w"): "edits.communication(0.5, within='w')",
        edits.copy_bandwidth(24): "edits.copy_bandwidth(24.0)",
        edits.bus_bandwidth(300, "*Reduce*"): "edits.bus_bandwidth(300.0, name='*Reduce*')",
        edits.kernel_time(5, "gemm"): "edits.kernel_time(5, 'gemm')",
        edits.overlap(): "edits.overlap()",
        edits.own_stream("a", within="b"): "edits.own_stream('a', within='b')",
        edits.prompt_communication("a"): "edits.prompt_communication(name='a')",
        edits.fused_optimizer(): "edits.fused_optimizer('Optimizer.step*')",
        edits.fused_attention(): "edits.fused_attention()",
        edits.fused_pointwise(): "edits.fused_pointwise()",
        edits.no_recomputation(): "edits.no_recomputation()",
        edits.padded_products(): "edits.padded_products()",
        edits.pauses("a"): "edits.pauses(before='a', longer_than_ns=1000000)",
        edits.batched_products(): "edits.batched_products()",
        edits.full_waves(): "edits.full_waves()",
        edits.filled_device(): "edits.filled_device()",
        edits.at_roof(): "edits.at_roof(1.0)",
        edits.at_roof(0.5, operation="gemm"): "edits.at_roof(0.5, operation='gemm')",
        edits.kernels(2.0, operation="gemm"): "edits.kernels(2.0, operation='gemm')",
        edits.graphs(): "edits.graphs(at_least=50, shorter_than_ns=50000)",
        edits.unprofiled(6.5e6): "edits.unprofiled(6500000)",
    }
    for edit, expression in made.items():
        assert edit.expression == expression
        assert eval(expression, {"edits": edits, "math": math}) == edit


def test_kernels_by_what_they_do(tmp_path):
    def named(name):
        return [event | {"name": name} if event["name"] == "gemm_nn" else event for event in device_bound()]

    for operation, left in (("gemm", 109_000), ("gem?", 109_000), ("attention", 129_000)):
        edit = edits.kernels(2.0, operation=operation)
        assert extent(tmp_path, named("ampere_sgemm_128x64_tn"), edit) == left
        assert extent(tmp_path, named("named_by_nobody"), edit) == 129_000
    both = edits.kernels(2.0, name="add*", operation="gemm")
    assert extent(tmp_path, named("ampere_sgemm_128x64_tn"), both) == 129_000


def nested():
    """A module calls a product, which takes 20 us of the host; another one is outside it."""
    return [
        operator("step", 0, 80_000),
        operator("nn.Module: Block_0", 1_000, 30_000),
        operator("aten::mm", 5_000, 25_000),
        launch(1, 10_000, 20_000),
        work("gemm_nn", 1, 16_000, 21_000),
        operator("aten::mm", 40_000, 60_000),
        launch(2, 45_000, 55_000),
        work("gemm_nn", 2, 51_000, 91_000),
    ]


@pytest.mark.parametrize(
    ("path", "saved"),
    [
        ("aten::mm", 25_000),  # of the first 20 us, and what lies before the second launch
        ("*Block_* / aten::mm", 20_000),
        ("step / *Block_* / aten::mm", 20_000),
        ("*Block_* / step / aten::mm", 0),  # the step is not inside the block
        ("*Block_1 / aten::mm", 0),
        ("step / aten::mm", 25_000),  # whatever lies between them
        (edits.exactly("step / aten::mm"), 0),  # a call of just this name
    ],
)
def test_a_call_by_its_path(tmp_path, path, saved):
    assert extent(tmp_path, nested(), edits.without(path)) == 91_000 - saved


def test_kernels_inside_a_path(tmp_path):
    outside = extent(tmp_path, nested(), edits.kernels(2.0, within="step / aten::mm"))
    assert outside == 91_000 - 20_000
    assert extent(tmp_path, nested(), edits.kernels(2.0, within="*Block_* / aten::mm")) == 91_000


def at_roof_ns(trace, edit):
    """How long the last kernel takes with the edit; nothing else is on its way."""
    rank_trace = trace.rank(0)
    graph = graph_of(rank_trace)
    plan = Plan(graph, rank_trace)
    edit.apply(plan)
    saved = graph.extent - int(plan.replay(ESTIMATE).max())
    return int(rank_trace.dur[rank_trace.is_device].max()) - saved


def test_kernels_at_the_roof(tmp_path):
    """2 * 1024**3 operations take 13.8 us on TF32 units of an A100 (156 TFLOP/s), 12 MiB 8.1 (1,555 GB/s)."""
    trace = opened(tmp_path, kernel_of("aten::mm", 1, TF32, 100_000, *SQUARE))
    least = 2 * 1024**3 / 156e12 * 1e9
    assert at_roof_ns(trace, edits.at_roof()) == math.ceil(least)
    assert at_roof_ns(trace, edits.at_roof(0.5)) == math.ceil(2 * least)
    assert at_roof_ns(trace, edits.at_roof(0.1)) == 100_000  # it is faster than that
    assert at_roof_ns(trace, edits.at_roof(name="*simt*")) == 100_000
    assert at_roof_ns(trace, edits.at_roof(operation="attention")) == 100_000
    slow = opened(tmp_path, kernel_of("aten::add", 1, COPY, 80_000, *SQUARE))
    assert at_roof_ns(slow, edits.at_roof(0.5)) == math.ceil(2 * 3 * 2**22 / 1555)


def test_without_shapes_or_peaks_there_is_no_roof(tmp_path):
    shapeless = opened(tmp_path, kernel_of("aten::mm", 1, TF32, 100_000))
    unknown = opened(tmp_path, kernel_of("aten::mm", 1, TF32, 100_000, *SQUARE), device="Some GPU")
    for trace in (shapeless, unknown):
        with pytest.raises(MissingDataError, match="record_shapes=True"):
            at_roof_ns(trace, edits.at_roof())
    for reached in (0, -1, 1.5, math.nan):
        with pytest.raises(ValueError, match="a share of the peaks"):
            edits.at_roof(reached)


def test_an_edit_is_a_value():
    one, same = edits.kernels(2, name="a"), edits.kernels(2.0, name="a")
    assert one == same and hash(one) == hash(same)
    assert one != edits.kernels(2.0) and one != edits.kernels(3.0, name="a")


def test_an_edit_survives_a_pickle(tmp_path):
    for edit in (edits.kernels(2.0, name="gemm*"), edits.without("aten::add"), edits.graphs(10)):
        again = pickle.loads(pickle.dumps(edit))
        assert again == edit
        assert extent(tmp_path, device_bound(), again) == extent(tmp_path, device_bound(), edit)


def test_only_what_can_be_had_in_full_is_no_bound():
    bounds = [edits.host(), edits.launches(0), edits.syncs(), edits.communication(0), edits.fused_optimizer()]
    assert all(edit.bound for edit in [*bounds, edits.kernels(math.inf), edits.copies(math.inf)])
    others = [edits.host(0.1), edits.launches(0.5), edits.allocator(), edits.without("x"), edits.kernels(9.0)]
    others += [edits.graphs(), edits.unprofiled(1)]
    assert not any(edit.bound for edit in [*others, edits.copies(2.0), edits.communication(0.5)])


@pytest.mark.parametrize("wrong", [-1, -0.001, math.inf, math.nan])
def test_a_factor_of_time_is_a_number_from_zero_on(wrong):
    for make in (edits.host, edits.launches, edits.communication):
        with pytest.raises(ValueError, match="at least 0"):
            make(wrong)


@pytest.mark.parametrize("wrong", [0, -2.0, math.nan])
def test_faster_is_above_zero(wrong):
    for make in (edits.kernels, edits.copies):
        with pytest.raises(ValueError, match="more than 0"):
            make(wrong)


@pytest.mark.parametrize("wrong", [0, -2.0, math.nan, math.inf])
def test_a_bandwidth_is_above_zero(wrong):
    for make in (edits.copy_bandwidth, edits.bus_bandwidth):
        with pytest.raises(ValueError, match="more than 0"):
            make(wrong)


def test_nothing_negative_is_kept():
    with pytest.raises(ValueError, match="ns must not be negative"):
        edits.kernel_time(-1, "x")
    with pytest.raises(ValueError, match="keep_ns must not be negative"):
        edits.without("x", keep_ns=-1)


def test_the_pattern_of_a_name_matches_only_it(tmp_path):
    events = device_bound()
    events[-1]["name"] = "gemm[a]*?"
    assert extent(tmp_path, events, edits.kernels(2.0, name=edits.exactly("gemm[a]*?"))) == 109_000
    assert extent(tmp_path, events, edits.kernels(2.0, name="gemm[a]*?")) == 129_000
