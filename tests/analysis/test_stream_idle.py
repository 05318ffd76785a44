"""Pauses of each stream: HTA's three categories against a loop over events, on recorded traces."""

import numpy as np
import pandas as pd
import pytest

from hta_widgets.analysis.idle import streams as stream_idle
from hta_widgets.analysis.idle.streams import stream_idle_breakdown, stream_idle_intervals
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.scope import Scope
from tests.analysis.test_idle import FIRST, REAL, US, call, opened, trace_of
from tests.trace.helpers import kernel


def brute_force(rank_trace, delay_ns):
    """(device, stream, category) -> pauses, one event at a time."""
    loaded, found = rank_trace, {}
    working = np.flatnonzero(loaded.is_device & (loaded.event_class < EventClass.SYNC))
    free = {}
    for row in sorted(
        working.tolist(), key=lambda row: (loaded.start[row], loaded.end[row], loaded.event_id[row])
    ):
        lane = (int(loaded.device[row]), int(loaded.stream[row]))
        if lane in free:
            pause = max(0, int(loaded.start[row]) - free[lane])
            launch = int(loaded.launch[row])
            if launch >= 0 and loaded.start[launch] > free[lane]:
                category = "host_wait"
            else:
                category = "kernel_wait" if pause < delay_ns else "other"
            found.setdefault((*lane, category), []).append(pause)
        free[lane] = max(free.get(lane, int(loaded.end[row])), int(loaded.end[row]))
    return found


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("delay_ns", [30_000, 2_500])
def test_stream_pauses_equal_a_loop_over_events(name, delay_ns):
    trace = opened(name)
    rank = trace.ranks[0]
    expected = brute_force(trace.rank(rank), delay_ns)
    scope = Scope(ranks=(rank,))
    frame = stream_idle_breakdown(trace, scope, consecutive_kernel_delay_ns=delay_ns)
    for row in frame.itertuples():
        pauses = pd.Series(expected.get((row.device, row.stream, row.category), []), dtype="float64")
        assert row.idle_ns == pauses.sum()
        assert row.count == len(pauses)
        described = pauses.describe()[["mean", "std", "min", "25%", "50%", "75%", "max"]]
        ours = [row.mean_ns, row.std_ns, row.min_ns, row.p25_ns, row.p50_ns, row.p75_ns, row.max_ns]
        np.testing.assert_allclose(ours, described.to_numpy(), rtol=1e-9)
    assert len(frame) == 3 * len(frame[["device", "stream"]].drop_duplicates())
    intervals = stream_idle_intervals(trace, scope, consecutive_kernel_delay_ns=delay_ns)
    assert len(intervals) == frame["count"].sum() == sum(map(len, expected.values()))
    assert intervals["dur_ns"].sum() == frame["idle_ns"].sum()


@pytest.mark.parametrize("name", REAL)
def test_stream_pauses_of_neighbouring_scopes_add_up(name):
    trace = opened(name)
    first, last = trace.extent_ns
    middle = (first + last) // 2
    added = ["idle_ns", "count"]
    halves = [
        stream_idle_breakdown(trace, Scope(window_ns=w))[added] for w in ((first, middle), (middle, last))
    ]
    whole = stream_idle_breakdown(trace)
    assert (halves[0] + halves[1] == whole[added]).all(axis=None)
    steps = trace.iterations["iteration"].unique().tolist()
    parts = [stream_idle_intervals(trace, Scope(iterations=(step,))) for step in steps]
    inside = stream_idle_intervals(trace, Scope(iterations=tuple(steps)))
    assert sum(len(part) for part in parts) == len(inside)


def test_overlapping_kernels_leave_no_pause(tmp_path):
    """The long kernel still runs when the third starts; only the fourth waits."""
    events = [
        kernel(f"k{n}", start, dur) for n, (start, dur) in enumerate([(0, 50), (5, 5), (20, 5), (55, 5)])
    ]
    frame = stream_idle_intervals(trace_of(tmp_path, events, repair=False))
    assert frame["dur_ns"].tolist() == [0, 0, 5 * US]
    assert frame["start_ns"].tolist() == [5 * US, 20 * US, 50 * US]


def test_streams_of_two_devices_are_apart(tmp_path):
    other = kernel("b", 4, 2)
    other["pid"] = other["args"]["device"] = 1
    frame = stream_idle_breakdown(trace_of(tmp_path, [kernel("a", 0, 2), other, kernel("c", 10, 2)]))
    assert frame.groupby("device")["idle_ns"].sum().to_dict() == {0: 8 * US, 1: 0}
    assert frame.loc[frame["device"] == 1, "idle_pct"].isna().all()


def test_sentence(tmp_path):
    events = [*FIRST, call("cudaLaunchKernel", 12, 3, 2), kernel("k2", 22, 8, 2)]
    assert stream_idle.sentence(stream_idle_breakdown(trace_of(tmp_path, events))) == (
        "Stream 7 of rank 0 waits longest between its kernels, 2.00 µs. "
        "Over all streams, 0 % of the waiting is for launches that came late."
    )
    never = stream_idle_breakdown(trace_of(tmp_path / "never", FIRST))
    assert stream_idle.sentence(never) == "No stream waits in the selection."


def test_the_figure_draws_the_frame():
    frame = stream_idle_breakdown(opened("hta/trace_filter"))
    figure = ANALYSES["stream_idle_breakdown"].figure(frame)
    assert [bar.name for bar in figure.data] == ["Host wait", "Kernel wait", "Other"]
    assert figure.layout.title.text == "What each stream waits for between its kernels"
    assert np.sum([bar.y for bar in figure.data]) == pytest.approx(frame["idle_ns"].sum() / 1e6)
    assert f"<br>{frame['idle_pct'].iloc[0]:.2f} % of waiting" in figure.data[0].customdata
