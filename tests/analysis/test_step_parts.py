"""What steps consist of, beside the median step, and two of them beside each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hta_widgets import Trace, examples
from hta_widgets.analysis import idle_breakdown, step_difference, step_parts, temporal_breakdown
from hta_widgets.analysis.device_time.step_parts import cause_of_change, sentence
from hta_widgets.analysis.idle.split import BUSY, PARTS
from hta_widgets.analysis.inspect.step_difference import difference_of
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import event
from tests.analysis.kineto_file import job as kineto_job
from tests.support import SOME_EXAMPLES

MS = 1_000_000


def job(folder: Path, *ranks: list[tuple[int, int]]) -> Trace:
    """Ranks of steps, each of so many ms of one kernel and so many of idle time after it."""
    files = []
    for steps in ranks:
        events, now = [], 0
        for number, (busy, idle) in enumerate(steps):
            length = MS * (busy + idle)
            events.append(event("user_annotation", f"ProfilerStep#{number}", now, length))
            events.append(event("cpu_op", "aten::mm", now + 1, length - 2))
            events.append(event("kernel", "gemm", now, MS * busy, stream=7))
            now += length
        files.append(events)
    return kineto_job(folder, *files)


@pytest.mark.parametrize("name", SOME_EXAMPLES)
def test_the_parts_are_those_of_the_breakdowns_and_add_up(name: str) -> None:
    trace = examples.load(name)
    frame = step_parts(trace)
    assert (frame[[f"{part}_ns" for part in PARTS]].sum(axis=1) == frame["dur_ns"]).all()
    temporal, idle = (each(trace, by="iteration") for each in (temporal_breakdown, idle_breakdown))
    for part in PARTS:
        whole = temporal if part in BUSY else idle
        assert frame[f"{part}_ns"].tolist() == whole[f"{part}_ns"].tolist()


def test_the_median_step_is_one_of_the_steps(tmp_path: Path) -> None:
    frame = step_parts(
        job(tmp_path, [(10, 1), (10, 2), (14, 6), (10, 4)], [(9, 1), (10, 2), (14, 3), (9, 4)])
    )
    # of compute 10, 10, 14, 10, 9, 10, 14, 9 and idle 1, 2, 6, 4, 1, 2, 3, 4 ms the nearest to 10 and 2.5
    assert frame[["median_rank", "median_iteration"]].drop_duplicates().to_numpy().tolist() == [[0, 1]]
    assert frame["change_ns"].tolist() == [MS * ms for ms in (-1, 0, 8, 2, -2, 0, 5, 1)]
    assert sentence(frame) == (
        "Step 2 on rank 0 is 8.00 ms longer than the median step. The GPU computes 4.00 ms more and "
        "is idle 4.00 ms more without a recorded cause."
    )


def test_the_median_step_is_none_of_the_rank_that_does_something_else(tmp_path: Path) -> None:
    frame = step_parts(job(tmp_path, [(9, 1)] * 5, [(5, 5)] * 5, [(5, 5)] * 5))  # all take equally long
    assert set(frame["median_rank"]) == {1}
    assert " Rank 0 differs most: the GPU computes 4.00 ms more and" in sentence(frame)


def test_steps_that_are_shorter_than_the_median_one_are_told(tmp_path: Path) -> None:
    frame = step_parts(job(tmp_path, [(14, 0), (10, 0)] * 3))
    assert sentence(frame) == (
        "Step 1 is 4.00 ms shorter than the median step. The GPU computes 4.00 ms less."
    )


def test_of_two_ranks_one_differs_from_the_other(tmp_path: Path) -> None:
    text = sentence(step_parts(job(tmp_path, [(5, 5)] * 5, [(9, 1)] * 5)))
    assert " Rank 1 differs from rank 0: the GPU computes 4.00 ms more and" in text


def test_steps_that_are_too_few_have_no_median(tmp_path: Path) -> None:
    frame = step_parts(job(tmp_path, [(10, 1), (10, 2), (14, 6)]))
    assert frame[["change_ns", "median_rank", "median_iteration"]].isna().all(axis=None)
    assert sentence(frame) == "Fewer than 4 complete steps, so none can be compared with a median step."


def test_a_rank_that_others_wait_for_is_named_though_all_take_equally_long() -> None:
    text = sentence(step_parts(examples.load("ddp_4ranks")))
    assert "Rank 2 differs most: the GPU computes 1.75 ms more and spends 1.75 ms less in exposed" in text


def test_without_device_work_it_says_what_to_record(tmp_path: Path) -> None:
    trace = kineto_job(
        tmp_path, [event("user_annotation", "ProfilerStep#1", 0, MS), event("cpu_op", "a", 0, MS)]
    )
    for ask in (step_parts, lambda trace: step_difference(trace, 1, 1)):
        with pytest.raises(MissingDataError, match="device"):
            ask(trace)


def test_a_difference_adds_up_to_the_nanosecond() -> None:
    trace = examples.load("ddp_4ranks")
    for first, second in ((10, 13), ((0, 10), (2, 12)), ((2, 12), (0, 10)), (11, 11)):
        frame = step_difference(trace, first, second)
        *parts, whole = frame[["first_ns", "second_ns", "change_ns"]].to_numpy(np.int64)
        assert np.sum(parts, axis=0).tolist() == whole.tolist()
        assert whole[2] == whole[1] - whole[0]
    steps = step_parts(trace).set_index(["rank", "iteration"])["dur_ns"]
    one = step_difference(trace, (0, 10), (2, 12)).iloc[-1]
    assert one[["first_ns", "second_ns"]].tolist() == [steps[0, 10], steps[2, 12]]
    mean = step_difference(trace, 10, 13).iloc[-1]
    for column, number in (("first_ns", 10), ("second_ns", 13)):
        assert abs(mean[column] - steps[:, number].mean()) <= 0.5


def test_two_steps_are_told_apart_in_words(tmp_path: Path) -> None:
    trace = job(tmp_path, [(10, 5), (12, 1), (10, 5), (10, 5)])
    found = difference_of(trace, 0, 1)
    assert found.title == "Step 1 is 2.00 ms shorter than step 0"
    assert found.sentence == (
        "The GPU is idle 4.00 ms less without a recorded cause, although it computes 2.00 ms more."
    )
    assert found.names.to_numpy().tolist() == [["gemm", "compute", 2 * MS]]
    same = difference_of(trace, 0, 2)
    assert (same.title, same.sentence) == (
        "Step 2 takes as long as step 0",
        "Every part takes the same time in both.",
    )
    assert same.names.empty


def test_ranks_without_both_steps_do_not_count(tmp_path: Path) -> None:
    trace = job(tmp_path, [(10, 5), (12, 1), (10, 5)], [(10, 5), (12, 1)])
    assert difference_of(trace, 1, 2).ranks == 1
    with pytest.raises(MissingDataError, match="step 7"):
        step_difference(trace, 0, 7)


def test_causes_that_cancel_each_other_are_no_exception_of_each_other() -> None:
    none = dict.fromkeys(PARTS, 0)
    assert cause_of_change(none | {"compute": 1_790_000, "exposed_communication": -1_750_000}) == (
        "The GPU computes 1.79 ms more and spends 1.75 ms less in exposed communication."
    )
    assert cause_of_change(none | {"host_busy": -88 * MS, "exposed_communication": 59 * MS}) == (
        "The GPU waits 88.0 ms less for the CPU to launch work, "
        "although it spends 59.0 ms more in exposed communication."
    )
    assert cause_of_change(none | {"data_stall": MS, "compute": MS // 20}) == (
        "The GPU waits 1.00 ms more for the data loader."
    )
