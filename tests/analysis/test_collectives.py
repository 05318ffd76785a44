"""Which kernels are one collective: by recorded ids, by numbers, by order; and when nothing is sure."""

import pytest

from hta_widgets import examples
from hta_widgets.analysis.communication.collectives import collectives, collectives_of
from hta_widgets.analysis.communication.operations import collective_of
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.multirank import ALL_REDUCE, RankFile, job
from tests.support import shared_trace

US = 1_000
MS = 1_000_000


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (ALL_REDUCE, "allreduce"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "allreduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", "reduce_scatter"),
        ("ncclDevKernel_AllGather_RING_LL(x)", "allgather"),
        ("ncclDevKernel_Broadcast_RING_LL(x)", "broadcast"),
        ("ncclDevKernel_Reduce_Sum_f32(x)", "reduce"),
        ("ncclDevKernel_SendRecv(x)", "sendrecv"),
        ("ncclDevKernel_Generic(x)", "unknown"),
        ("void sglang::cross_device_reduce_1stage<__half, 8>(AllGather)", "allreduce"),
        ("_allgather_base", "allgather"),
        ("all_to_allv", "all_to_all"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("barrier", "barrier"),
        ("send", "send"),
        ("void c10d::(anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x*)", "allreduce"),
        ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", "dispatch"),
        ("void deep_ep::internode_ll::combine<3, 10, 7168, 9>(void*)", "combine"),
        ("EpDispatchLLSendPhase_bf16", "dispatch"),
        ("void deep_ep::elastic::pp_send_impl<24, 8>(ncclDevComm_t)", "send"),
        ("void deep_ep::bucket::nvlink_all_reduce<8, 24, 1024>(ncclDevComm_t)", "allreduce"),
        ("void c10d::nccl_extension::reduce_scatter_columns_kernel<float, true>(x)", "reduce_scatter"),
        ("moe_a2a_single_kernel", "all_to_all"),
        ("ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD_sum_f16", "reduce_scatter"),
        ("void run_(AllReduce)", "unknown"),
    ],
)
def test_the_operation_is_read_from_recorded_names_and_kernel_names(text, word):
    assert collective_of(text) == word


def two_ranks(tmp_path, first, second, **fields) -> Trace:
    """Kernels of 1 ms at the given times on two ranks, all in step 1."""
    ranks = []
    for rank, starts in enumerate((first, second)):
        recorded = RankFile(rank, **{name: value[rank] for name, value in fields.items()})
        recorded.step(1, 0, 1000 * MS)
        for start in starts:
            recorded.kernel(start, start + MS, launched=start - 5 * US)
        ranks.append(recorded)
    return job(tmp_path / "job", *ranks)


def matches(trace: Trace, rank: int) -> list[int | None]:
    frame = collectives(trace, Scope(ranks=(rank,)))
    return [
        None if number is None else int(number)
        for number in frame["match"].astype(object).where(frame["match"].notna(), None)
    ]


def test_without_ids_the_order_on_the_stream_decides(tmp_path):
    trace = two_ranks(tmp_path, [MS, 10 * MS, 20 * MS], [MS + 100, 10 * MS - 300, 20 * MS])
    frame = collectives(trace)
    assert frame["match"].tolist() == [0, 1, 2, 0, 1, 2]
    assert set(frame["match_key"]) == {"order"}
    assert frame["match_ranks"].tolist() == [2] * 6
    assert frame["iteration"].tolist() == [1] * 6


@pytest.mark.parametrize("lacking", ["the first", "the last"])
def test_unequal_counts_match_nothing(tmp_path, lacking):
    """Nor where those that both have would meet in time."""
    begins = [MS, 10 * MS, 20 * MS]
    trace = two_ranks(tmp_path, begins, begins[1:] if lacking == "the first" else begins[:-1])
    assert collectives(trace)["match"].isna().all()
    assert collectives(trace)["match_key"].isna().all()


def test_an_order_that_is_impossible_in_time_matches_nothing(tmp_path):
    # Each rank lacks one kernel: the counts agree, the kernels do not.
    trace = two_ranks(tmp_path, [MS, 10 * MS, 20 * MS], [10 * MS, 20 * MS, 30 * MS])
    assert collectives(trace)["match"].isna().all()


@pytest.mark.parametrize("clock_ns", [(0, 700 * US), (2 * MS, -2 * MS)])
def test_clocks_that_differ_do_not_disturb_the_order(tmp_path, clock_ns):
    trace = two_ranks(tmp_path, [MS, 10 * MS, 20 * MS], [MS, 10 * MS, 20 * MS], clock_ns=clock_ns)
    assert matches(trace, 0) == matches(trace, 1) == [0, 1, 2]


def test_groups_of_ranks_have_clocks_of_their_own(tmp_path):
    # Two pairs and all four; each clock is off by another amount, by more than the kernels last.
    ranks = []
    for rank, clock_ns in enumerate((0, 2 * MS, 4 * MS, -3 * MS)):
        recorded = RankFile(rank, clock_ns).step(1, 0, 1000 * MS)
        for begin in (10, 200, 500):
            pair = {"Collective name": "allgather", "Process Group Name": f"pair {rank // 2}"}
            for at in (0, 20, 50, 90):
                recorded.kernel((begin + at) * MS, (begin + at + 1) * MS, launched=100, **pair)
            every = {"Collective name": "allreduce", "Process Group Name": "world"}
            recorded.kernel((begin + 100) * MS, (begin + 101) * MS, launched=100, **every)
        ranks.append(recorded)
    frame = collectives(job(tmp_path / "job", *ranks))
    # The clocks of ranks 2 and 3 differ by more than such clocks do.
    pairs = frame[frame["process_group"] == "pair 0"]
    assert pairs["match"].notna().all()
    assert (pairs["match_ranks"] == 2).all()
    assert frame.loc[frame["process_group"] == "pair 1", "match"].isna().all()
    # Each is near enough to rank 0's.
    assert (frame.loc[frame["process_group"] == "world", "match_ranks"] == 4).all()


def test_different_amounts_in_an_all_reduce_are_no_match(tmp_path):
    ranks = [
        RankFile(rank).step(1, 0, 9 * MS).kernel(MS, 2 * MS, launched=500, **{"In msg nelems": 7 + rank})
        for rank in (0, 1)
    ]
    assert collectives(job(tmp_path / "job", *ranks))["match"].isna().all()


def test_recorded_ids_win_over_order(tmp_path):
    def one(rank: int, ids: list[int]) -> RankFile:
        file = RankFile(rank)
        for at, number in enumerate(ids):
            args = {"Collective name": "allreduce", "Comms Id": number, "Seq": number, "dtype": "BFloat16"}
            args |= {"In msg nelems": 8, "Out msg nelems": 16, "Process Group Name": "0", "Group size": 2}
            file.kernel((at + 1) * MS, (at + 2) * MS, **args)
        return file

    frame = collectives(job(tmp_path / "job", one(0, [4, 5, 6]), one(1, [5, 6, 7])))
    assert frame["match"].astype(object).where(frame["match"].notna(), None).tolist() == [
        None,
        0,
        1,
        0,
        1,
        None,
    ]
    assert frame["match_key"].fillna("").tolist() == ["", "comms_id", "comms_id", "comms_id", "comms_id", ""]
    assert frame["bytes"].tolist() == [32] * 6
    assert frame["collective"].tolist() == ["allreduce"] * 6


def test_sequence_numbers_are_those_of_their_group(tmp_path):
    def one(rank: int, group: str) -> RankFile:
        args = {"Collective name": "allreduce", "Seq": 3}
        return (
            RankFile(rank)
            .kernel(MS, 2 * MS, **args, **{"Process Group Name": "world"})
            .kernel(3 * MS, 4 * MS, **args, **{"Process Group Name": group})
        )

    frame = collectives(job(tmp_path / "job", one(0, "a"), one(1, "b"), one(2, "b")))
    by_group = frame.set_index(["rank", "process_group"])
    assert (
        by_group.loc[(0, "world"), "match"]
        == by_group.loc[(1, "world"), "match"]
        == by_group.loc[(2, "world"), "match"]
    )
    assert (
        by_group.loc[(1, "b"), "match"]
        == by_group.loc[(2, "b"), "match"]
        != by_group.loc[(0, "world"), "match"]
    )
    assert by_group["match"].isna().sum() == 1
    assert by_group.loc[(1, "b"), "match_ranks"] == 2
    assert set(by_group["match_key"].dropna()) == {"seq"}


def test_sends_and_receives_are_no_collectives(tmp_path):
    ranks = [
        RankFile(rank).kernel(MS, 2 * MS, **{"Collective name": name, "Seq": 1, "Process Group Name": "0"})
        for rank, name in ((0, "send"), (1, "recv"))
    ]
    frame = collectives(job(tmp_path / "job", *ranks))
    assert frame["collective"].tolist() == ["send", "recv"]
    assert frame["match"].isna().all()


def sent(
    tmp_path, sends: list[tuple[int, int]], receives: list[tuple[int, int]], known="ranks", clock_ns=0
) -> list[int | None]:
    """The matches of sends of rank 0 to rank 3, then of the receives; both given as start and end in us."""
    group = {"Process Group Name": "pp", "Process Group Ranks": [0, 3] if known == "pair" else [0, 1, 2, 3]}
    files = []
    for rank, times, name, side in ((0, sends, "send", "Dst Rank"), (3, receives, "recv", "Src Rank")):
        file = RankFile(rank, clock_ns if rank else 0).step(0, 0, 100 * MS)
        for number, (start, end) in enumerate(times):
            args = {"Collective name": name, "Seq": 7 * rank + number, "Comms Id": 99 + rank, **group}
            args |= {side: 3 - rank} if known == "ranks" else {}
            file.kernel(start * US, end * US, launched=start * US - 9, **args)
        files.append(file)
    frame = collectives(job(tmp_path / "job", *files))
    assert set(frame.loc[frame["match"].notna(), "match_key"]) <= {"pair"}
    return frame["match"].astype(object).where(frame["match"].notna(), None).tolist()


@pytest.mark.parametrize("known", ["ranks", "pair"])
@pytest.mark.parametrize("clock_ns", [0, 4 * MS, -2 * MS])
def test_the_nth_send_is_the_nth_receive_of_its_partner(tmp_path, known, clock_ns):
    sends, receives = [(100, 300), (400, 600), (700, 800)], [(90, 300), (500, 600), (650, 800)]
    assert sent(tmp_path, sends, receives, known, clock_ns) == [0, 1, 2, 0, 1, 2]


def test_a_send_to_an_unknown_rank_matches_nothing(tmp_path):
    assert sent(tmp_path, [(100, 300)], [(90, 300)], known="") == [None, None]


def test_sends_and_receives_of_unequal_number_match_nothing(tmp_path):
    assert sent(tmp_path, [(100, 300), (400, 600)], [(90, 300)]) == [None, None, None]


def test_neither_side_of_a_buffered_send_waits(tmp_path):
    sends, receives = [(100, 300), (400, 410), (700, 800)], [(90, 300), (500, 600), (650, 800)]
    assert sent(tmp_path, sends, receives) == [0, None, 1, 0, None, 1]


def test_a_receive_that_ends_before_its_send_is_another_ones(tmp_path):
    """Each rank lacks one: the counts agree, the messages do not."""
    sends, receives = [(100, 300), (400, 600), (700, 800)], [(90, 300), (310, 350), (650, 800)]
    assert sent(tmp_path, sends, receives) == [None] * 6


def test_streams_are_compared_by_their_place(tmp_path):
    ranks = [
        RankFile(rank)
        .step(1, 0, 100 * MS)
        .kernel(MS, 3 * MS, stream=stream, launched=10)
        .kernel(2 * MS, 4 * MS, stream=stream + 4, launched=30)
        for rank, stream in ((0, 0), (1, 20))
    ]
    frame = collectives(job(tmp_path / "job", *ranks))
    assert frame["match"].tolist() == [0, 1, 0, 1]


def test_what_the_kernel_lacks_is_read_from_the_operator_around_its_launch(tmp_path):
    file = RankFile(0)
    args = {"Collective name": "_allgather_base", "dtype": "Float", "In msg nelems": 5, "Seq": 9}
    file.add("cpu_op", "record_param_comms", 100, 1000, args=args)
    file.kernel(5000, 9000, name="ncclDevKernel_Generic(x)", launched=200)
    (row,) = collectives(job(tmp_path / "job", file)).to_dict("records")
    assert (row["collective"], row["seq"], row["bytes"]) == ("allgather", 9, 20)


def test_the_example_matches_by_recorded_id_what_the_simulator_ran():
    frame = collectives(examples.load("ddp_4ranks"))
    assert set(frame["match_key"]) == {"comms_id"}
    assert (frame.groupby("match")["rank"].nunique() == 4).all()
    assert (frame.groupby("match")["seq"].nunique() == 1).all()


def test_a_recording_with_holes_is_not_matched_by_order():
    # Both ranks have four kernels on stream 84 in either step, but not the same four: only some end together.
    frame = collectives(Trace.open(shared_trace("hta/trace_filter")))
    assert set(frame.loc[frame["match"].notna(), "stream"]) == {203}
    assert frame["match"].notna().sum() == 4


@pytest.mark.parametrize("name", ["hta/nccl_parser_config", "tracelens/mi300/resnet_act_checkpoint.json.gz"])
def test_one_rank_has_collectives_and_no_matches(name):
    frame = collectives(Trace.open(shared_trace(name)))
    assert len(frame) == {"hta/nccl_parser_config": 21}.get(name, 17)
    assert frame["match"].isna().all()


def test_a_scope_has_the_collectives_that_belong_to_it():
    trace = examples.load("ddp_4ranks")
    whole = collectives(trace)
    first, last = trace.extent_ns
    half = (first, (first + last) // 2)
    for scope in (
        Scope(window_ns=half),
        Scope(ranks=(1, 3), window_ns=half, iterations=(10, 11)),
        Scope(streams=(int(whole["stream"].iloc[0]),)),
        Scope(streams=(-5,)),
    ):
        ranks = [trace.rank(rank) for rank in trace.ranks_of(scope)]
        members = {
            (rank_trace.rank, int(event))
            for rank_trace in ranks
            for event in rank_trace.event_id[rank_trace.members(scope)]
        }
        expected = whole[[(row.rank, row.event_id) in members for row in whole.itertuples()]]
        assert collectives(trace, scope).equals(expected.reset_index(drop=True))


def test_no_communication_is_an_empty_frame():
    frame = collectives(Trace.open(shared_trace("hta/amd_trace")))
    assert frame.empty
    assert "match" in frame


def test_matches_do_not_depend_on_the_scope():
    trace = examples.load("ddp_4ranks")
    whole = collectives(trace)
    parts = [collectives(trace, Scope(iterations=(number,))) for number in (10, 11, 12, 13)]
    assert sum(map(len, parts)) == len(whole)
    joined = {(row.rank, row.event_id): row.match for part in parts for row in part.itertuples()}
    assert joined == {(row.rank, row.event_id): row.match for row in whole.itertuples()}


def test_those_of_one_rank_are_the_same_whichever_way_they_are_asked_for():
    trace = examples.load("ddp_4ranks")
    for scope in (Scope(), Scope(iterations=(11,)), Scope(streams=(7,)), Scope(window_ns=(0, 30 * MS))):
        every = collectives(trace, scope)
        for rank in trace.ranks:
            own = collectives_of(trace, rank, scope)
            assert own.equals(every[every["rank"] == rank].reset_index(drop=True))
