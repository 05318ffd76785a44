"""Who waits for whom: worked out by hand, against the simulator's truth, and conserved."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.simulator import Simulation
from examples.simulator.bundled import JOBS
from hta_widgets import examples
from hta_widgets.analysis.communication.arrivals import NOISE_NS, arrivals
from hta_widgets.analysis.communication.stragglers import lateness, sentence, stragglers
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.multirank import ALL_REDUCE, RankFile, job
from tests.support import shared_trace, tried

MS = 1_000_000


def arriving(tmp_path, *steps: list[int], clocks=(0, 0, 0), name=ALL_REDUCE, stream=20, base=True) -> Trace:
    """One collective per step: each rank joins at the given time of it, and it ends 1 ms after the last."""
    ranks = []
    for rank, clock in enumerate(clocks):
        recorded = RankFile(rank, clock, base)
        for number, arrivals_at in enumerate(steps):
            begin = 100 * MS * number
            recorded.step(number, begin, begin + 90 * MS)
            recorded.kernel(
                begin + arrivals_at[rank], begin + max(arrivals_at) + MS, name, stream, launched=begin + 10
            )
        ranks.append(recorded)
    return job(tmp_path / "job", *ranks)


def test_the_last_to_arrive_is_charged_with_the_waiting_of_all(tmp_path):
    frame = stragglers(arriving(tmp_path, [0, 2 * MS, 5 * MS]))
    assert frame["rank"].tolist() == [0, 1, 2]
    assert frame["waited_ns"].tolist() == [5 * MS, 3 * MS, 0]
    assert frame["caused_wait_ns"].tolist() == [0, 0, 8 * MS]
    assert frame["lateness_ns"].tolist() == [0, 2 * MS, 5 * MS]
    assert frame["start_offset_ns"].tolist() == [0, 2 * MS, 5 * MS]
    assert frame["last"].tolist() == [0, 0, 1]
    assert frame["position"].tolist() == [3, 2, 1]
    assert frame["caused_pct"].tolist() == [0.0, 0.0, 100.0]
    assert frame["blamed_ns"].tolist() == [0, 0, 8 * MS]
    assert frame["unfollowed_ns"].tolist() == [0, 0, 0]
    assert sentence(frame) == (
        "Ranks wait 8.00 ms in 1 iteration. For 100 % of it, the cause is rank 2. "
        "It arrives last at 1 of its 1 uneven exchange."
    )


def test_step_zero_counts(tmp_path):
    frame = stragglers(arriving(tmp_path, [0, 2 * MS, 0], [MS, 0, 0]))
    assert frame["iteration"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame.loc[frame["last"] == 1, ["iteration", "rank"]].to_numpy().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 20),
        (ALL_REDUCE, 0),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 0),
        ("rcclGenericKernel(ncclDevKernelArgs)", 3),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 20),
    ],
)
def test_any_library_and_any_stream(tmp_path, name, stream):
    frame = stragglers(arriving(tmp_path, [0, 2 * MS, 0], name=name, stream=stream))
    assert frame["caused_wait_ns"].tolist() == [0, 4 * MS, 0]


@pytest.mark.parametrize("clocks", [(0, 2 * MS, -2 * MS), (3 * MS, 0, 0)])
def test_wrong_clocks_change_nothing_but_the_start_offsets(tmp_path, clocks):
    steps = [0, 2 * MS, 5 * MS], [MS, 0, 0], [0, MS, 0]
    right = stragglers(arriving(tmp_path / "..", *steps))
    wrong = stragglers(arriving(tmp_path, *steps, clocks=clocks))
    pd.testing.assert_frame_equal(
        right.drop(columns="start_offset_ns"), wrong.drop(columns="start_offset_ns")
    )
    assert wrong["start_offset_ns"].tolist() != right["start_offset_ns"].tolist()


def test_without_a_common_clock_there_are_no_start_offsets(tmp_path):
    far = 100 * 24 * 3600 * 1_000_000_000
    frame = stragglers(arriving(tmp_path, [0, 2 * MS, 5 * MS], clocks=(0, far, 2 * far)))
    assert frame["caused_wait_ns"].tolist() == [0, 0, 8 * MS]
    assert frame["start_offset_ns"].isna().all()


def test_differences_below_the_noise_name_nobody(tmp_path):
    frame = stragglers(arriving(tmp_path, [0, NOISE_NS, 0]))
    assert frame["collectives"].tolist() == [1, 1, 1]
    assert frame[["counted", "last", "waited_ns", "caused_wait_ns", "lateness_ns"]].to_numpy().sum() == 0
    assert frame["caused_pct"].isna().all()
    assert sentence(frame) == "None of 3 ranks waits noticeably for another at the collectives."


@pytest.mark.parametrize("name", ["broadcast", "reduce", "gather", "scatter", "send"])
def test_operations_that_end_unevenly_blame_nobody(tmp_path, name):
    ranks = [
        RankFile(rank).kernel(MS, (2 + rank) * MS, **{"Collective name": name, "Comms Id": 5})
        for rank in (0, 1)
    ]
    trace = job(tmp_path / "job", *ranks)
    if name == "send":
        with pytest.raises(MissingDataError):
            stragglers(trace)
    else:
        assert stragglers(trace).empty
        assert sentence(stragglers(trace)) == "No collective of several ranks lies in the selection."


@pytest.mark.parametrize("apart", [0, MS])
def test_a_late_root_is_waited_for_where_all_leave_together(tmp_path, apart):
    """Rank 1 arrives 2 ms late; its clock is 50 us ahead, as an all-reduce shows."""
    files = []
    for rank in (0, 1):
        begin, late = MS // 20 * rank, 2 * MS * rank
        file = RankFile(rank).kernel(begin, begin + MS, **{"Collective name": "allreduce", "Comms Id": 4})
        root = {"Collective name": "broadcast", "Comms Id": 5}
        files.append(file.kernel(begin + 9 * MS + late, begin + 13 * MS - apart * rank, **root))
    frame = stragglers(job(tmp_path / "job", *files))
    caused = frame.groupby("rank")["caused_wait_ns"].sum()
    assert caused.to_dict() == {0: 0, 1: 0 if apart else 2 * MS}


def test_the_simulated_straggler_is_found_and_its_waiting_is_the_true_one():
    job_ = JOBS["ddp_4ranks"]
    truth = Simulation(job_).truth
    frame = stragglers(examples.load("ddp_4ranks"))
    by_rank = frame.groupby("rank")["caused_wait_ns"].sum()
    assert by_rank.idxmax() == truth.straggler == 2
    assert (frame.loc[frame["rank"] == 2, "position"] == 1).all()
    # True waiting: until the last rank's start. Ranks leave up to 300 ns apart, which the durations contain.
    waiting = [
        sum(max(collective.start_ns) - start for start in collective.start_ns)
        for collective in truth.collectives
        if max(collective.start_ns) - min(collective.start_ns) > 2 * NOISE_NS
    ]
    assert len(waiting) == frame["counted"].groupby(frame["iteration"]).max().sum()
    assert abs(by_rank.sum() - sum(waiting)) <= 2 * 300 * 4 * len(waiting)
    assert (frame["lateness_ns"] - frame["start_offset_ns"]).abs().max() <= 2 * 300 * 4


def test_clock_offsets_of_the_simulated_hosts_do_not_matter(tmp_path):
    right = replace(JOBS["ddp_4ranks"], steps=2, layers=2)
    shifted = replace(right, clock_offsets_ns=(0, 3_000_000, -2_000_000, 40_000_000))
    for name, simulated in (("right", right), ("shifted", shifted)):
        Simulation(simulated).write(tmp_path / name)
    columns = ["rank", "iteration", "waited_ns", "caused_wait_ns", "lateness_ns", "position"]
    pd.testing.assert_frame_equal(
        stragglers(Trace.open(tmp_path / "shifted", cache=False))[columns],
        stragglers(Trace.open(tmp_path / "right", cache=False))[columns],
    )


def test_iterations_add_up():
    trace = examples.load("ddp_4ranks")
    whole = stragglers(trace)
    parts = [stragglers(trace, Scope(iterations=(number,))) for number in (10, 11, 12, 13)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)


def test_the_real_job():
    frame = stragglers(Trace.open(shared_trace("hta/trace_filter")))
    found = frame.set_index(["iteration", "rank"])["caused_wait_ns"]
    # Step 551: 42.496 and 42.744 ms, less than 1 % apart. Step 552: 63.644 and 62.163 ms.
    assert found.to_dict() == {(551, 0): 0, (551, 1): 0, (552, 0): 0, (552, 1): 1_481_000}
    assert frame["start_offset_ns"].tolist() == [0, 0, 0, 1_292_000]


@pytest.mark.parametrize(
    ("name", "scope", "field"),
    [
        ("hta/nccl_parser_config", None, "second rank"),
        ("hta/trace_filter", Scope(ranks=(1,)), "second rank"),
    ],
)
def test_what_is_missing_is_reported(name, scope, field):
    with pytest.raises(MissingDataError) as missing:
        stragglers(Trace.open(shared_trace(name)), scope)
    assert missing.value.field == field


def test_ranks_without_communication_or_without_common_collectives_are_distinguished(tmp_path):
    silent = job(tmp_path / "silent", *(RankFile(rank).kernel(MS, 2 * MS, name="gemm") for rank in (0, 1)))
    with pytest.raises(MissingDataError, match="ranks 0 and 1 have none") as missing:
        stragglers(silent)
    assert missing.value.field == "communication kernels"
    first, second = RankFile(0).kernel(MS, 2 * MS), RankFile(1).kernel(MS, 2 * MS).kernel(3 * MS, 4 * MS)
    with pytest.raises(MissingDataError) as missing:
        stragglers(job(tmp_path / "holes", first, second))
    assert missing.value.field == "collective that is recorded on two ranks"


@pytest.mark.parametrize("scope", [Scope(streams=(7,)), Scope(iterations=(99,)), Scope(window_ns=(-9, -5))])
def test_a_selection_without_collectives_is_empty(scope):
    frame = stragglers(Trace.open(shared_trace("hta/trace_filter")), scope)
    assert frame.empty
    assert list(frame)[:3] == ["rank", "iteration", "collectives"]


def test_windows_that_cut_a_collective_add_up():
    trace = examples.load("ddp_4ranks")
    first, last = trace.extent_ns
    columns = ["counted", "last", "waited_ns", "caused_wait_ns", "lateness_ns", "blamed_ns", "unfollowed_ns"]
    whole = stragglers(trace)[columns].sum()
    # Between the arrivals of rank 0 and rank 2 at the first collective.
    for cut in (13_000_000, 15_000_000, 33_000_000):
        parts = [stragglers(trace, Scope(window_ns=part))[columns] for part in ((first, cut), (cut, last))]
        assert (parts[0].sum() + parts[1].sum() == whole).all()


durations = st.lists(st.lists(st.integers(0, 10**9), min_size=2, max_size=5), min_size=1, max_size=8)


@settings(max_examples=tried(25), deadline=None)
@given(durations)
def test_what_is_waited_is_caused(each):
    rows = [
        (rank, number % 3, "allreduce", number, 0, dur)
        for number, of in enumerate(each)
        for rank, dur in enumerate(of)
    ]
    frame = pd.DataFrame(rows, columns=["rank", "iteration", "collective", "match", "start_ns", "dur_ns"])
    part = arrivals(frame)
    assert (part["waited_ns"] >= 0).all()
    assert (part.groupby("match")["is_last"].sum() <= 1).all()
    answer = lateness(frame.sample(frac=1, random_state=1), common_clock=True)
    sums = answer.groupby("iteration")[["waited_ns", "caused_wait_ns"]].sum()
    assert (sums["waited_ns"] == sums["caused_wait_ns"]).all()
    np.testing.assert_array_equal(answer["position"].min(), 1)
    pd.testing.assert_frame_equal(answer, lateness(frame, common_clock=True))


def test_the_picture_shows_every_rank():
    frame = stragglers(examples.load("ddp_4ranks"))
    (cells,) = ANALYSES["stragglers"].figure(frame).data
    assert list(cells.y) == ["0", "1", "2", "3"]
    assert np.sum(cells.z) == pytest.approx(frame["blamed_ns"].sum() / 1e6)
    waited = frame.set_index(["rank", "iteration"])["waited_ns"].loc[1, 11]
    assert f"waited_ns: {waited / 1e6:.6f} ms" in cells.text[1][list(cells.x).index("11")]
