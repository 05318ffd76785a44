"""Latency and bandwidth by size: planted ones, what hides them, and the same fit by a slow search."""

import gzip
import json

import numpy as np
import pytest

from hta_widgets import Scope, Trace
from hta_widgets.analysis import ANALYSES, alpha_beta
from hta_widgets.analysis.communication.alpha_beta import fit
from hta_widgets.errors import MissingDataError
from tests.analysis.multirank import RankFile, job
from tests.support import shared_trace

MS = 1_000_000
SIZES = (4_000, 40_000, 400_000, 4_000_000, 8_000_000)
NCCL_DATA = "hta/nccl_parser_config/nccl_data.json.gz"


def exchanging(folder, times, operation="allreduce", recorded=3, ranks=3) -> Trace:
    """A job of messages with these [(bytes, ns)]; each rank comes later than the one before it."""
    files = [RankFile(rank) for rank in range(recorded)]
    for seq, (size, transfer) in enumerate(times):
        args = {"Collective name": operation, "dtype": "Float", "Process Group Name": "0", "Seq": seq}
        args |= {"In msg nelems": size // 4, "Out msg nelems": size // 4, "Group size": ranks}
        for file in files:
            last = 20 * seq * MS
            file.kernel(last - (ranks - 1 - file.rank) * MS, last + transfer, **args)
    return job(folder, *files)


def planted(size: int, alpha_ns: int = 30_000, bus_gbps: float = 20.0) -> int:
    """An all-reduce of three ranks: each byte crosses a link 4/3 times."""
    return alpha_ns + round(size * 4 / 3 / bus_gbps)


def slow_fit(points) -> tuple[float, float, float]:
    """Alpha, slope and error of the least mean relative distance, by a search: it is convex in the slope."""

    def at(slope: float) -> tuple[float, float]:
        rests = [max(0.0, time - slope * size) for size, time in points]
        return min((sum(abs(a + slope * s - t) / t for s, t in points), a) for a in [0.0, *rests])

    low, high = 0.0, max(time / size for size, time in points)
    for _ in range(300):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if at(one)[0] <= at(two)[0] else (one, high)
    error, alpha = at(low)
    return alpha, low, error / len(points)


@pytest.mark.parametrize(
    ("odd", "error_pct"), [({}, 0.0), ({40_000: 3.0}, 100 * (1 - 1 / 3) / 5)], ids=["clean", "one odd size"]
)
def test_what_was_planted_is_found(tmp_path, odd, error_pct):
    times = [(size, round(planted(size) * odd.get(size, 1))) for size in SIZES] * 3
    frame = alpha_beta(exchanging(tmp_path, times))
    (row,) = frame.to_dict("records")
    assert (row["collective"], row["group_size"], row["bandwidth_is"]) == ("allreduce", 3, "exact")
    assert (row["messages"], row["sizes"], row["why"]) == (15, 5, "")
    assert row["transfer_ns"] == sum(time for _, time in times)
    assert row["alpha_ns"] == pytest.approx(30_000, abs=2)
    assert row["beta_gbps"] == pytest.approx(20.0, rel=1e-4)
    assert row["half_bytes"] == pytest.approx(30_000 * 20 * 3 / 4, abs=100)
    assert row["error_pct"] == pytest.approx(error_pct, abs=0.01)
    assert row["alpha_low_ns"] <= row["alpha_ns"] <= row["alpha_high_ns"]
    assert row["beta_low_gbps"] <= row["beta_gbps"] <= row["beta_high_gbps"]
    said = ANALYSES["alpha_beta"].sentence(frame)
    assert said.startswith(
        "The latency of allreduce among 3 ranks is 30.0 µs. Large messages reach 20.0 GB/s (bus), "
    )


def test_a_rank_that_was_not_recorded_may_be_waited_for(tmp_path):
    """Of each size the shortest: of the others the waiting is not known."""
    times = [(size, planted(size) + late * MS) for late in (0, 3) for size in SIZES]
    frame = alpha_beta(exchanging(tmp_path, times, recorded=1, ranks=1 + 2))
    (row,) = frame.to_dict("records")
    assert row["bandwidth_is"] == "at least"
    # rank 0 comes 2 ms before the last
    assert row["alpha_ns"] == pytest.approx(30_000 + 2 * MS, abs=2)
    assert "not recorded" in ANALYSES["alpha_beta"].sentence(frame)


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ([(size, planted(size)) for size in SIZES[:3]] * 9, "3 sizes, and a fit takes 4"),
        ([(size, 50_000) for size in SIZES], "the time does not grow with the size"),
        # the growth of a single size is none
        (
            [(size, 90_000 if size > 5e6 else 50_000) for size in SIZES],
            "the time does not grow with the size",
        ),
    ],
)
def test_what_tells_no_latency(tmp_path, times, why):
    (row,) = alpha_beta(exchanging(tmp_path, times)).to_dict("records")
    assert row["why"] == why
    assert np.isnan(row["beta_gbps"])


def test_messages_without_a_size_are_missing(tmp_path):
    trace = exchanging(tmp_path, [(4_000, 50_000)], operation="barrier")
    with pytest.raises(MissingDataError, match="collective with a known size"):
        alpha_beta(trace)


def test_the_kind_that_takes_longest_comes_first(tmp_path):
    files = [RankFile(0), RankFile(1)]
    times = {"all_gather": MS, "allreduce": 3 * MS, "broadcast": 2 * MS}
    for seq, (kind, transfer) in enumerate(times.items()):
        args = {"Collective name": kind, "dtype": "Float", "Process Group Name": "0", "Seq": seq}
        args |= {"In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2}
        for file in files:
            file.kernel(20 * seq * MS, 20 * seq * MS + transfer, **args)
    frame = alpha_beta(job(tmp_path, *files))
    assert frame["collective"].tolist() == ["allreduce", "broadcast", "allgather"]
    assert frame.index.tolist() == [0, 1, 2]


def test_a_choice_of_time_is_a_choice_of_messages(tmp_path):
    trace = exchanging(tmp_path, [(size, planted(size)) for size in SIZES])
    start = int(trace.rank(0).start.min())
    assert alpha_beta(trace, Scope(window_ns=(start, start + 30 * MS)))["sizes"].tolist() == [2]
    assert alpha_beta(trace, Scope(window_ns=(start + 10**12, start + 10**12 + 1))).empty


def test_the_fit_is_that_of_a_slow_search():
    dice = np.random.default_rng(7)
    for _ in range(40):
        size = np.sort(dice.choice(10_000_000, dice.integers(4, 9), replace=False)).astype(float) + 1
        time = np.rint(
            (dice.uniform(0, 1e5) + size / dice.uniform(1, 200)) * dice.lognormal(0, 0.3, len(size))
        )
        found, slow = fit(size, time), slow_fit(list(zip(size.tolist(), time.tolist(), strict=True)))
        assert found.error == pytest.approx(slow[2], rel=1e-6)


def test_a_recording_whose_times_do_not_follow_the_sizes():
    """One of two ranks: the transfers hold its waiting, and without the fastest size none of it grows."""
    path = shared_trace(NCCL_DATA)
    shortest: dict[int, int] = {}
    total = 0
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    for args, dur in ((event["args"], event["dur"]) for event in events if event.get("cat") == "kernel"):
        if args.get("Collective name") == "allreduce":
            assert args["dtype"] == "Float"
            size, dur_ns = 4 * args["In msg nelems"], round(1000 * dur)
            total += dur_ns
            shortest[size] = min(dur_ns, shortest.get(size, dur_ns))
    row = alpha_beta(Trace.open(path)).set_index("collective").loc["allreduce"]
    assert (row["sizes"], row["bandwidth_is"]) == (len(shortest), "at least")
    assert row["transfer_ns"] == pytest.approx(total, abs=15)
    points = list(shortest.items())
    assert min(slow_fit(points[:i] + points[i + 1 :])[1] for i in range(5)) == pytest.approx(0, abs=1e-9)
    assert row["why"] == "the time does not grow with the size"
