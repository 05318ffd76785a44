"""Steps and the named stretches between them add up to the recording."""

from pathlib import Path

import pytest

from hta_widgets import Trace, examples
from hta_widgets.analysis.device_time.stretches import stretches
from tests.support import GPU_TRACES, SHARED_TRACES, shared_input, shared_trace
from tests.trace.helpers import rank_of, slice_, write

CASES = [
    *("i18_sync_after_step", "i20_two_ranks_sync_after_step", "a05_unfinished_step_zero"),
    *("a07_device_clock_ahead", "j05_steps_only_on_rank0", "j06_ranks_record_other_steps"),
    *("l01_graph_burst_corr_kept", "serving/decode_every_15ms.json.gz", "h12_restart_in_one_file"),
]
RECORDINGS = sorted(path.name for path in (SHARED_TRACES.parent / "recordings").glob("*/"))


def check(trace: Trace) -> None:
    """On every rank, by either clock: no gap, no overlap, and the sum is the recording."""
    for clock in ("auto", "host", "device"):
        timed = trace.timed_by(clock)  # type: ignore[arg-type]
        frame = stretches(timed)
        assert (frame["dur_ns"] > 0).all()
        for rank in timed.ranks:
            own = frame[frame["rank"] == rank]
            first, last = timed.rank(rank).extent
            assert own["dur_ns"].sum() == last - first
            assert own["start_ns"].tolist()[1:] == own["end_ns"].tolist()[:-1]
            counted = own["iteration"].dropna()
            assert counted.is_unique
            assert set(counted) <= set(timed.rank(rank).iterations["iteration"])


@pytest.mark.parametrize("name", examples.names())
def test_examples_add_up(name: str) -> None:
    check(examples.load(name))


@pytest.mark.parametrize("name", GPU_TRACES)
def test_real_recordings_add_up(name: str) -> None:
    check(Trace.open(shared_trace(name)))


@pytest.mark.parametrize("name", CASES)
def test_cases_add_up(name: str) -> None:
    check(Trace.open(shared_input(f"cases/{name}"), cache=False))


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_of_others_add_up(name: str) -> None:
    check(Trace.open(SHARED_TRACES.parent / "recordings" / name))


def test_each_stretch_has_its_name(tmp_path: Path) -> None:
    events = [slice_("import", "cpu_op", 0, 10)]
    for begin, number in ((20, 2), (120, 3), (1_000, 12), (1_100, 13)):
        dur = 300 if number == 13 else 100
        events.append(slice_(f"ProfilerStep#{number}", "user_annotation", begin, dur))
        events.append(slice_("aten::mm", "cpu_op", begin + 1, 90))
    events.append(slice_("exit", "cpu_op", 1_450, 50))
    trace = Trace.open(write(tmp_path / "trace.json", events), cache=False)
    frame = stretches(trace)
    assert list(zip(frame["stretch"], frame["dur_ns"] // 1_000, strict=True)) == [
        ("before", 20),
        ("step", 100),
        ("step", 100),
        ("between", 780),
        ("step", 100),
        ("open", 91),
        ("tail", 209),
        ("after", 100),
    ]


def test_without_marks_the_whole_is_guessed(tmp_path: Path) -> None:
    rank = rank_of(tmp_path, [slice_("aten::mm", "cpu_op", 5, 10), slice_("aten::mm", "cpu_op", 20, 10)])
    frame = stretches(Trace.open(tmp_path / "trace.json", cache=False))
    assert frame["stretch"].tolist() == ["guessed"] and frame["dur_ns"].sum() == 25_000
    assert rank.iterations["known"].tolist() == ["guessed"]
