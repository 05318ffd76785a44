"""The graph of a recording: its replay is the recording, and its edges are those that a reader would draw."""

import numpy as np
import pytest

from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.analysis.replay.kinds import EVENT_ENDS, EVENT_STARTS, QUEUE
from hta_widgets.analysis.replay.passes import ESTIMATE, MOST, PINNED
from hta_widgets.trace.classify import EventClass
from tests.analysis.kineto_file import Event, job, kernel
from tests.replay.program import call, copy, launch, queued, work
from tests.replay.recordings import (
    RECORDINGS,
    Change,
    edges_of,
    random_change,
    ranks_of,
    recorded,
    replayed,
    slow_replay,
    slow_weights,
)

MODES = (PINNED, ESTIMATE, MOST)


@pytest.fixture(scope="module", params=RECORDINGS)
def ranks(request):
    """The recording of each name, for all tests before the next one: rank and graph of some ranks."""
    return ranks_of(recorded(request.param))


def test_an_unchanged_recording_is_replayed_as_it_was(ranks):
    for rank_trace, graph in ranks:
        unchanged = Change(np.ones(len(graph.groups)), np.zeros(len(graph.groups), np.bool_))
        for mode in MODES:
            np.testing.assert_array_equal(replayed(graph, unchanged, mode), graph.time)
        starts = np.flatnonzero(graph.node_kind == EVENT_STARTS)
        ends = np.flatnonzero(graph.node_kind == EVENT_ENDS)
        for nodes, times in ((starts, rank_trace.start), (ends, rank_trace.end)):
            np.testing.assert_array_equal(graph.time[nodes] + graph.origin_ns, times[graph.row[nodes]])


def test_causes_come_first_and_every_node_has_one(ranks):
    for _, graph in ranks:
        assert (graph.source < graph.target).all()
        assert (np.diff(graph.first)[1:] > 0).all() and graph.first[1] == 0
        assert graph.first[-1] == len(graph.source)


def test_all_device_work_is_in_the_graph_once(ranks):
    for rank_trace, graph in ranks:
        rows = graph.row[graph.node_kind == EVENT_STARTS]
        work = rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC)
        assert sorted(rows.tolist()) == np.flatnonzero(work).tolist()


@pytest.mark.parametrize(
    "name", ["shared:hta/trace_diff/control", "shared:hta/critical_path/alexnet", "example:gpt2_ddp"]
)
def test_the_replay_is_that_of_the_definition_in_plain_python(name):
    dice = np.random.default_rng(5)
    for _, graph in ranks_of(recorded(name)):
        for mode in MODES:
            change = random_change(graph, dice)
            expected = slow_replay(graph, slow_weights(graph, change, mode))
            assert replayed(graph, change, mode).tolist() == expected


def test_slower_work_beside_a_delay_delays_longer_in_plain_python():
    graph = ranks_of(recorded("shared:hta/trace_diff/control"))[0][1]
    assert len(graph.pair_edge)
    slower = Change(np.full(len(graph.groups), 1.5), np.zeros(len(graph.groups), np.bool_))
    expected = slow_replay(graph, slow_weights(graph, slower, ESTIMATE))
    assert replayed(graph, slower, ESTIMATE).tolist() == expected


# -- small recordings ----------------------------------------------------------------------------------------


def test_one_stream_behind_its_host(tmp_path):
    """Latencies of an idle device are 15 and 16 us: usual are 15.5. Without a queue the usual gap is 1 us."""
    events = [
        launch(1, 0, 10_000),
        call("cudaGetDevice", 12_000, 13_000),  # launches nothing, waits for nothing: no point
        launch(2, 30_000, 40_000),
        work("a", 1, 15_000, 20_000),
        work("b", 2, 46_000, 50_000),
    ]
    assert edges_of(job(tmp_path, events)) == {
        "call a": [("origin", "origin", 0, 0)],
        "mark": [("host", "call a", 0, 0)],  # the recording is one iteration, which begins here
        "start a": [("launch_first", "call a", 15_000, 0)],
        "finish a": [("device", "start a", 5_000, 0)],
        "return a": [("call", "call a", 10_000, 0)],
        "call b": [("host", "return a", 20_000, 0)],
        "start b": [("launch", "call b", 15_500, 500), ("stream", "finish a", 1_000, 0)],
        "finish b": [("device", "start b", 4_000, 0)],
        "return b": [("call", "call b", 10_000, 0)],
    }


def test_a_queued_kernel_waits_for_the_one_before(tmp_path):
    """b and c wait for their stream; 2 and 4 us after what ran before: usual are 3."""
    events = [
        launch(1, 0, 1_000),
        launch(2, 2_000, 3_000),
        launch(3, 4_000, 5_000),
        work("a", 1, 5_000, 50_000),
        work("b", 2, 52_000, 60_000),
        work("c", 3, 64_000, 70_000),
    ]
    edges = edges_of(job(tmp_path, events))
    assert edges["start b"] == [("launch", "call b", 5_000, 0), ("stream", "finish a", 2_000, 0)]
    assert edges["start c"] == [("launch", "call c", 5_000, 0), ("stream", "finish b", 3_000, 1_000)]


def test_a_long_gap_says_nothing_of_usual_ones(tmp_path):
    """c was launched long before, but 20 us and more after b nothing was waiting for the stream."""
    events = [
        launch(1, 0, 1_000),
        launch(2, 2_000, 3_000),
        launch(3, 4_000, 5_000),
        work("a", 1, 5_000, 50_000),
        work("b", 2, 52_000, 60_000),
        work("c", 3, 80_000, 85_000),
    ]
    edges = edges_of(job(tmp_path, events))
    assert edges["start c"][1] == ("stream", "finish b", 2_000, 18_000)
    events[-1] = work("c", 3, 79_998, 85_000)
    assert edges_of(job(tmp_path, events))["start b"][1] == ("stream", "finish a", 2_000, 0)
    assert edges_of(job(tmp_path, events))["start c"][1] == ("stream", "finish b", 10_999, 8_999)


WAIT = {"wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 10}


def two_streams(recorded_at: int):
    """A kernel on stream 20, one on stream 7 behind it, and a recorded wait of 7 for what 20 was given."""
    return [
        launch(1, 0, 1_000),
        launch(2, 8_000, 9_000),
        work("before", 1, 6_000, 60_000, stream=20),
        work("after", 2, 61_000, 70_000),
        call("cudaEventRecord", recorded_at, recorded_at + 500, correlation=10),
        call("cudaStreamWaitEvent", 7_000, 7_500, correlation=11),
        kernel("Stream Wait Event", 7_000, 0, cat="cuda_sync", correlation=11, **WAIT),
    ]


def test_a_recorded_wait_of_a_stream(tmp_path):
    edges = edges_of(job(tmp_path, two_streams(recorded_at=2_000)))
    # Only "before" found the device idle.
    assert edges["start after"] == [
        ("launch_first", "call after", 6_000, 0),
        ("wait", "finish before", 1_000, 0),
    ]
    assert "call cudaEventRecord" not in edges and "call cudaStreamWaitEvent" not in edges


def test_a_wait_for_what_was_recorded_before_any_launch_is_for_nothing(tmp_path):
    late = [{**one} for one in two_streams(recorded_at=2_000)]
    late[0] = launch(1, 2_600, 3_600)  # after the record: not covered
    edges = edges_of(job(tmp_path, late))
    # And where waits are recorded, none is inferred.
    assert edges["start after"] == [("launch_first", "call after", 53_000, 0)]


def test_a_wait_for_what_was_launched_later_is_contradicted(tmp_path):
    """The event was recorded after the call that waits for it, and covers what was launched in between."""
    events = two_streams(recorded_at=12_000)
    events[0], events[2] = launch(1, 10_000, 11_000), work("before", 1, 16_000, 60_000, stream=20)
    edges = edges_of(job(tmp_path, events))
    assert edges["start after"] == [("launch_first", "call after", 53_000, 0)]


def other_stream(call_of_other: int, until: int):
    """b on stream 7 starts 50 us after its launch; on stream 20 ran something else."""
    return [
        launch(1, 0, 1_000),
        launch(2, 20_000, 21_000),
        launch(3, call_of_other, call_of_other + 1_000),
        work("a", 1, 5_000, 10_000),
        work("b", 2, 70_000, 80_000),
        work("other", 3, 26_000, until, stream=20),
    ]


def test_an_unexplained_start_just_after_work_on_another_stream(tmp_path):
    edges = edges_of(job(tmp_path, other_stream(15_000, 69_000)))
    # Latencies on the idle device: 5 us of a, 11 of other; b was launched before other ended.
    assert edges["start b"] == [
        ("launch", "call b", 8_000, 0),
        ("stream", "finish a", 1_000, 0),
        ("late", "finish other", 1_000, 0),
    ]


@pytest.mark.parametrize("until", [42_999, 70_501])
def test_what_ended_long_before_or_later_is_no_cause(tmp_path, until):
    """Within reach is what ended in the last 2 x 8 + 10 us, and by the slack of the clocks 0.5 us later."""
    near = edges_of(job(tmp_path, other_stream(15_000, 44_000 if until < 70_000 else 70_500)))
    assert near["start b"][-1][:2] == ("late", "finish other")
    edges = edges_of(job(tmp_path, other_stream(15_000, until)))
    assert [edge[0] for edge in edges["start b"]] == ["launch", "stream"]


def test_what_was_launched_later_is_no_cause(tmp_path):
    quick = [
        launch(4, 90_000, 91_000),
        work("d", 4, 95_000, 96_000),
        launch(5, 100_000, 101_000),
        work("e", 5, 105_000, 106_000),
    ]
    # Usual are the 5 us of a, d and e.
    edges = edges_of(job(tmp_path, [*other_stream(21_500, 69_000), *quick]))
    assert edges["start b"] == [("launch", "call b", 5_000, 45_000), ("stream", "finish a", 1_000, 0)]
    edges = edges_of(job(tmp_path, [*other_stream(15_000, 69_000), *quick]))
    assert edges["start b"][-1] == ("late", "finish other", 1_000, 0)


def collective(launched: int):
    return [
        launch(1, 0, 1_000),
        launch(2, launched, launched + 1_000),
        work("gemm", 1, 5_000, 30_000),
        work("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2, 31_500, 50_000, stream=20),
    ]


def test_a_collective_waits_for_the_work_launched_before_it(tmp_path):
    edges = edges_of(job(tmp_path, collective(launched=3_000)))
    assert edges["start ncclDevKernel_AllReduce_Sum_f32_RING_LL"] == [
        ("launch_first", "call ncclDevKernel_AllReduce_Sum_f32_RING_LL", 5_000, 0),
        ("collective", "finish gemm", 1_000, 500),
    ]


def test_a_collective_does_not_wait_for_a_copy(tmp_path):
    """Nothing says that it sends what the copy brings: input for the next step is copied beside it."""
    events = collective(launched=3_000)
    events[2] = copy("Memcpy HtoD (Pinned -> Device)", 1, 5_000, 30_000)
    edges = edges_of(job(tmp_path, events))
    kinds = [edge[0] for edge in edges["start ncclDevKernel_AllReduce_Sum_f32_RING_LL"]]
    assert kinds[0] == "launch_first" and "collective" not in kinds


def test_compute_does_not_wait_for_compute_of_another_stream(tmp_path):
    events = collective(launched=3_000)
    events[-1]["name"] = "softmax"
    edges = edges_of(job(tmp_path, events))
    assert [edge[0] for edge in edges["start softmax"]] == ["launch_first", "late"]


def test_compute_after_a_wait_call_waits_for_the_collective_before(tmp_path):
    """It is the first launch after the host let its stream wait; the one behind it need not wait itself."""
    events = [
        launch(1, 0, 1_000),
        launch(2, 10_000, 11_000),
        call("cudaStreamWaitEvent", 40_000, 40_500),
        launch(3, 41_000, 42_000),
        launch(4, 50_000, 51_000),
        launch(5, 6_000, 7_000),
        work("gemm", 1, 5_000, 10_000),
        work("relu", 5, 11_000, 14_000, stream=21),  # compute: nothing says that add waits for it
        work("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2, 15_000, 30_000, stream=20),
        work("add", 3, 46_000, 48_000),
        work("mul", 4, 55_000, 56_000),
    ]
    edges = edges_of(job(tmp_path, events))
    assert edges["start add"] == [
        ("launch", "call add", 5_000, 0),
        ("stream", "finish gemm", 1_000, 0),
        ("collective", "finish ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1_000, 0),
    ]
    assert [edge[0] for edge in edges["start mul"]] == ["launch", "stream"]


def blocking(copied_at: int, returns: int = 50_000):
    return [
        launch(1, 0, 4_000),
        launch(2, 10_000, returns, name="cudaMemcpyAsync"),
        work("gemm", 1, 5_000, 30_000),
        copy("Memcpy DtoH (Device -> Pageable)", 2, 31_000, copied_at),
    ]


def test_a_call_that_returns_after_its_copy_waited_for_it(tmp_path):
    """Its own time is that of a call that launches a kernel, 4 us; it returns 5 us after the copy."""
    edges = edges_of(job(tmp_path, blocking(45_000)))
    assert edges["return Memcpy DtoH (Device -> Pageable)"] == [
        ("waiting_call", "call Memcpy DtoH (Device -> Pageable)", 4_000, 0),
        ("copy", "finish Memcpy DtoH (Device -> Pageable)", 5_000, 0),
    ]


def test_a_copy_may_be_stamped_as_done_one_microsecond_after_its_call(tmp_path):
    edges = edges_of(job(tmp_path, blocking(51_000)))
    assert edges["return Memcpy DtoH (Device -> Pageable)"][1][2:] == (-1_000, 0)
    edges = edges_of(job(tmp_path, blocking(51_001)))
    assert edges["return Memcpy DtoH (Device -> Pageable)"] == [
        ("call", "call Memcpy DtoH (Device -> Pageable)", 40_000, 0)
    ]


def synchronising(name: str, begin: int, end: int):
    return [
        launch(1, 0, 1_000),
        launch(2, 2_000, 3_000),
        work("a", 1, 6_000, 30_000),
        work("b", 2, 7_000, 40_000, stream=20),
        call(name, begin, end),
        launch(3, 60_000, 61_000),
        work("c", 3, 65_000, 70_000),
    ]


def test_a_synchronising_call_waits_for_the_last_to_end(tmp_path):
    edges = edges_of(job(tmp_path, synchronising("cudaDeviceSynchronize", 10_000, 44_000)))
    assert edges["return cudaDeviceSynchronize"] == [
        ("waiting_call", "call cudaDeviceSynchronize", 3_000, 0),
        ("sync", "finish b", 4_000, 0),
    ]


def test_a_synchronising_call_does_not_wait_for_what_is_launched_later(tmp_path):
    """b ends within the call, but its launch came after the call began: by another thread."""
    events = synchronising("cudaDeviceSynchronize", 1_500, 44_000)
    events[1] = launch(2, 2_000, 3_000, tid=2)
    edges = edges_of(job(tmp_path, events))
    assert edges["return cudaDeviceSynchronize"] == [
        ("waiting_call", "call cudaDeviceSynchronize", 3_000, 0),
        ("sync", "finish a", 14_000, 0),
    ]


def test_a_call_that_finds_all_done_still_may_not_return_before(tmp_path):
    """It took its own time and did not wait; under an edit it might."""
    edges = edges_of(job(tmp_path, synchronising("cudaDeviceSynchronize", 50_000, 54_000)))
    assert edges["return cudaDeviceSynchronize"] == [
        ("call", "call cudaDeviceSynchronize", 4_000, 0),
        ("sync", "finish a", 3_000, 0),
        ("sync", "finish b", 3_000, 0),
    ]


def test_a_wait_for_a_stream_is_for_what_is_recorded(tmp_path):
    """The file says that it waited for stream 7, so b on stream 20 is none of it."""
    events = synchronising("cudaStreamSynchronize", 10_000, 44_000)
    events[4]["args"]["correlation"] = 12
    events.append(kernel("Stream Sync", 10_000, 34_000, stream=7, cat="cuda_sync", correlation=12))
    edges = edges_of(job(tmp_path, events))
    assert edges["return cudaStreamSynchronize"][1:] == [("sync", "finish a", 14_000, 0)]


def test_a_wait_for_a_stream_that_found_it_done_is_for_the_last_that_its_thread_launched(tmp_path):
    edges = edges_of(job(tmp_path, synchronising("cudaStreamSynchronize", 50_000, 54_000)))
    assert edges["return cudaStreamSynchronize"][1:] == [("sync", "finish b", 3_000, 0)]


def test_a_launch_into_a_full_queue_waits_for_an_earlier_one(tmp_path):
    trace = job(tmp_path, queued(1_500, holds=1_000))
    graph = graph_of(trace.rank(0))
    assert graph is not None and graph.queue == 1_000
    edges = edges_of(trace)
    # The call may return as soon as the earlier one is done, and does so 700 ns later.
    assert edges["return k1400"] == [
        ("waiting_call", "call k1400", 1_000, 0),
        ("queue", "finish k400", 0, 700),
    ]
    assert edges["return k999"] == [("call", "call k999", 1_000, 0)]


def test_a_real_queue_lets_go_when_the_launch_so_many_before_is_done():
    """On this device 1,022 launches fit; of any other number the calls would return at any time after."""
    ((_, graph),) = ranks_of(recorded("shared:hta/ns_resolution_trace"))
    assert graph.queue == 1_022
    held_up = (graph.kind == QUEUE) & (graph.residual > 0)
    assert held_up.sum() > 1_000
    assert np.percentile(graph.residual[held_up], [5, 95]) == pytest.approx([5_000, 7_000], abs=500)


def test_a_shorter_queue_was_never_full(tmp_path):
    trace = job(tmp_path, queued(1_500, holds=800))
    graph = graph_of(trace.rank(0))
    assert graph is not None and graph.queue == 0
    assert not any(edge[0] == "queue" for edges in edges_of(trace).values() for edge in edges)


def handed_over(pause: int, backward_ends: int):
    """Thread 1 launches, rests and launches again; thread 2 launches once meanwhile."""
    return [
        launch(1, 0, 10_000),
        launch(2, backward_ends - 4_000, backward_ends, tid=2),
        launch(3, 10_000 + pause, 15_000 + pause),
        work("a", 1, 5_000, 6_000),
        work("b", 2, backward_ends + 1_000, backward_ends + 2_000),
        work("c", 3, 16_000 + pause, 17_000 + pause),
    ]


def test_a_thread_that_rests_waits_for_the_other(tmp_path):
    edges = edges_of(job(tmp_path, handed_over(pause=200_000, backward_ends=150_000)))
    assert edges["call b"] == [("handoff", "return a", 136_000, 0)]
    assert edges["call c"] == [("host", "return a", 0, 0), ("handoff", "return b", 60_000, 0)]


def test_a_short_pause_is_the_thread_s_own(tmp_path):
    edges = edges_of(job(tmp_path, handed_over(pause=50_000, backward_ends=40_000)))
    assert edges["call c"] == [("host", "return a", 50_000, 0)]
    edges = edges_of(job(tmp_path, handed_over(pause=50_001, backward_ends=40_000)))
    assert edges["call c"][1] == ("handoff", "return b", 20_001, 0)


def test_what_ended_with_the_thread_s_own_last_call_did_not_let_it_go_on(tmp_path):
    edges = edges_of(job(tmp_path, handed_over(pause=200_000, backward_ends=11_000)))
    assert edges["call c"] == [("host", "return a", 200_000, 0)]
    edges = edges_of(job(tmp_path, handed_over(pause=200_000, backward_ends=11_001)))
    assert edges["call c"][1] == ("handoff", "return b", 198_999, 0)


def test_a_call_that_is_still_open_has_not_handed_over(tmp_path):
    events = handed_over(pause=200_000, backward_ends=150_000)
    events[1] = launch(2, 20_000, 260_000, tid=2)
    edges = edges_of(job(tmp_path, events))
    assert edges["call c"] == [("host", "return a", 200_000, 0)]


def test_work_without_a_launch_keeps_its_gap(tmp_path):
    events = [
        work("early", 90, 3_000, 4_000),
        work("later", 91, 9_000, 12_000),
        launch(1, 2_000, 4_000),
        work("a", 1, 20_000, 25_000),
    ]
    edges = edges_of(job(tmp_path, events))
    assert edges["start early"] == [("origin", "origin", 1_000, 0)]
    assert edges["start later"] == [("orphan", "finish early", 5_000, 0)]
    # a is not the first on its stream, and nothing shows what latency is usual: 6 us
    assert edges["start a"] == [("launch", "call a", 6_000, 0), ("stream", "finish later", 1_000, 7_000)]


def test_of_a_graph_only_the_first_event_waits_for_the_launch(tmp_path):
    events = [
        launch(1, 0, 10_000, name="cudaGraphLaunch"),
        work("a", 1, 12_000, 20_000),
        work("b", 1, 21_000, 30_000),
        launch(2, 50_000, 60_000, name="cudaGraphLaunch"),
        work("c", 2, 62_000, 70_000),
        work("d", 2, 71_000, 80_000),
    ]
    edges = edges_of(job(tmp_path, events))
    assert edges["start b"] == [("stream", "finish a", 1_000, 0)]
    assert edges["start c"] == [("launch", "call c", 12_000, 0), ("stream", "finish b", 1_000, 0)]
    assert edges["start d"] == [("stream", "finish c", 1_000, 0)]


def test_a_call_inside_a_call_is_none_of_its_own(tmp_path):
    events = [
        call("cudaLaunchKernelExC", 0, 10_000, correlation=5),
        launch(1, 2_000, 4_000),
        call("cudaMalloc", 5_000, 6_000),
        work("a", 1, 15_000, 20_000),
    ]
    edges = edges_of(job(tmp_path, events))
    assert edges == {
        "call cudaLaunchKernelExC": [("origin", "origin", 0, 0)],
        "mark": [("host", "call cudaLaunchKernelExC", 0, 0)],
        "start a": [("launch_first", "call cudaLaunchKernelExC", 15_000, 0)],
        "finish a": [("device", "start a", 5_000, 0)],
        "return cudaLaunchKernelExC": [("call", "call cudaLaunchKernelExC", 10_000, 0)],
    }


def launches_of_graphs(*graphs: int) -> list[Event]:
    """Each of two nodes on two streams, where each node begins when the one before has ended."""
    events = []
    for at, graph in enumerate(graphs):
        done, ids = 100_000 * at, {"graph id": graph}
        events += [
            launch(at + 1, 20_000 * at, 20_000 * at + 10_000, name="cudaGraphLaunch"),
            work(f"a{at}", at + 1, done + 15_000, done + 60_000, 7, **ids),
            work(f"b{at}", at + 1, done + 61_000, done + 112_000, 8, **ids),
        ]
    return events


def test_a_launch_of_a_graph_waits_for_the_one_before(tmp_path):
    """And a node for that on another stream behind which it began, though nothing tells what it waits for."""
    edges = edges_of(job(tmp_path, launches_of_graphs(3, 3)))
    assert ("late", "finish a0", 1_000, 0) in edges["start b0"]
    assert edges["start a1"] == [
        ("launch", "call a1", 15_000, 0),
        ("stream", "finish a0", 1_000, 0),
        ("wait", "finish b0", 1_000, 2_000),
    ]
    assert ("late", "finish a1", 1_000, 0) in edges["start b1"]


def test_a_launch_of_a_graph_waits_for_what_ended_last_and_not_for_what_began_last(tmp_path):
    long = work("long", 1, 20_000, 113_000, 9, **{"graph id": 3})
    edges = edges_of(job(tmp_path, [*launches_of_graphs(3, 3), long]))
    assert [edge[1] for edge in edges["start a1"] if edge[0] == "wait"] == ["finish long"]


@pytest.mark.parametrize("graphs", [(3, 4), (0, 0), (3, 0, 0)])
def test_other_graphs_may_run_at_once(tmp_path, graphs):
    edges = edges_of(job(tmp_path, launches_of_graphs(*graphs)))
    assert not [edge for each in edges.values() for edge in each if edge[0] == "wait"]


def test_nodes_of_a_graph_without_recorded_launches(tmp_path):
    nodes = [each for each in launches_of_graphs(3, 3) if each["cat"] == "kernel"]
    edges = edges_of(job(tmp_path, nodes))
    assert edges["start a1"] == [("orphan", "finish a0", 55_000, 0)]


def test_a_graph_that_ran_beside_itself_does_not_wait(tmp_path):
    """What time contradicts is no cause: two graphs may have been made of one, whose id they have."""
    beside = work("a1", 2, 50_000, 90_000, 9, **{"graph id": 3})
    edges = edges_of(job(tmp_path, [*launches_of_graphs(3, 3)[:4], beside]))
    assert edges["start a1"] and not [edge for each in edges.values() for edge in each if edge[0] == "wait"]
