"""Step times and which of them are unusual."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets import Scope, Trace, examples
from hta_widgets.analysis.device_time.step_times import sentence, step_times
from hta_widgets.analysis.findings import overview
from hta_widgets.formatting import duration
from tests.analysis.kineto_file import event
from tests.analysis.kineto_file import job as kineto_job
from tests.support import shared_trace
from tests.verdicts.planted.host_program import MS, Program


def job(folder: Path, steps: dict[int, list[int]]) -> Trace:
    """Ranks whose steps take so many ms; each is full of operators, so that none counts as cut."""
    ranks = []
    for lengths in steps.values():
        events, now = [], 0
        for number, length in enumerate(lengths):
            events.append(event("user_annotation", f"ProfilerStep#{number}", now, 1_000_000 * length))
            events.append(event("cpu_op", "aten::mm", now + 1, 1_000_000 * length - 2))
            now += 1_000_000 * length
        ranks.append(events)
    return kineto_job(folder, *ranks)


def test_a_long_step_is_an_outlier_on_its_rank_only(tmp_path: Path) -> None:
    trace = job(tmp_path, {0: [10, 10, 11, 10, 10], 1: [10, 10, 10, 30, 10]})
    frame = step_times(trace)
    assert frame[["rank", "iteration", "dur_ns"]].iloc[2].tolist() == [0, 2, 11_000_000]
    assert frame.loc[frame["outlier"], ["rank", "iteration", "excess_ns"]].to_numpy().tolist() == [
        [1, 3, 20_000_000]
    ]
    assert sentence(frame).startswith(
        "A step takes 10.0 ms at the median. 1 of 5 iterations is unusually long"
    )
    findings = overview(trace)
    late = findings[findings["topic"] == "slow_steps"].iloc[0]
    assert (late["rank"], late["iteration"]) == (1, 3)
    assert late["cost_ns"] == 20_000_000
    assert late["share_pct"] == pytest.approx(100 * 20 / 70)


def test_what_is_usual_does_not_depend_on_the_scope(tmp_path: Path) -> None:
    trace = job(tmp_path, {0: [10, 10, 10, 30, 10]})
    alone = step_times(trace, Scope(iterations=(3,)))
    assert alone["outlier"].tolist() == [True]
    assert alone["usual_ns"].tolist() == [10_000_000]
    touched = step_times(trace, Scope(window_ns=(29_999_999, 30_000_001)))
    assert touched["iteration"].tolist() == [2, 3]


def test_a_step_that_was_cut_does_not_tell_what_is_usual(tmp_path: Path) -> None:
    events, now = [], 0
    for number, (length, calls) in enumerate([(10, 4), (10, 4), (12, 4), (12, 4), (2, 1)]):
        events.append(event("user_annotation", f"ProfilerStep#{number}", now, 1_000_000 * length))
        events += [event("cpu_op", "aten::mm", now + 1 + call, 1) for call in range(calls)]
        now += 1_000_000 * length
    frame = step_times(kineto_job(tmp_path, events))
    assert frame["partial"].tolist() == [False] * 4 + [True]
    assert frame["usual_ns"].tolist() == [11_000_000] * 5
    assert frame["excess_ns"].iloc[-1] == -9_000_000
    assert not frame["outlier"].any()


def with_start_up(folder: Path, starting: int, steps: int = 6) -> Trace:
    """Steps of 10 ms; in the first ones the driver loads code for 20 ms more while the device waits."""
    program = Program()
    for number in range(steps):
        with program.step(number):
            program.launch(5 * MS)
            program.synchronise()
            if number < starting:
                program.driver(f"cuModuleLoadData_{number}", 20 * MS)
            program.launch(5 * MS)
            program.synchronise()
    return program.open(folder)


def test_start_up_does_not_tell_what_is_usual(tmp_path: Path) -> None:
    trace = with_start_up(tmp_path, starting=2)
    frame = step_times(trace)
    assert frame["start_up"].tolist() == [True, True, False, False, False, False]
    steady = sorted(frame["dur_ns"].tolist())[:4]
    assert set(frame["usual_ns"]) == {round(sum(steady[1:3]) / 2)}
    assert frame["excess_ns"].iloc[0] == pytest.approx(20 * MS, rel=0.01)
    assert not frame["outlier"].any()
    assert sentence(frame).endswith("None is unusually long. 2 iterations with start-up are left out.")
    assert sentence(frame[:2]) == "Every complete step in the selection holds start-up."
    alone = step_times(trace, Scope(iterations=(0,)))
    assert alone["start_up"].tolist() == [True], "whatever the scope"
    assert "slow_steps" not in set(overview(trace, Scope(iterations=(0, 3)))["topic"])


def test_too_few_steps_are_steady(tmp_path: Path) -> None:
    frame = step_times(with_start_up(tmp_path, starting=2, steps=5))
    assert frame["usual_ns"].isna().all()


def test_steps_of_other_batch_sizes_are_not_alike(tmp_path: Path) -> None:
    events, now = [], 0
    for length, batch in [(10, 4), (30, 32)] * 4:
        events.append(event("user_annotation", f"step[DECODE bs={batch}]", now, 1_000_000 * length))
        now += 1_000_000 * length
    frame = step_times(kineto_job(tmp_path, events))
    assert frame["usual_ns"].tolist() == [10_000_000, 30_000_000] * 4
    assert not frame["outlier"].any()


def test_few_steps_tell_nothing_usual(tmp_path: Path) -> None:
    frame = step_times(job(tmp_path, {0: [10, 40, 10]}))
    assert frame["usual_ns"].isna().all()
    assert not frame["outlier"].any()
    ended = frame[~frame["open"]]
    assert sentence(ended).endswith("Too few can be compared to call one unusually long.")
    assert sentence(ended[:1]) == f"The only complete step takes {duration(ended['dur_ns'].iloc[0])}."


def test_steps_of_a_server_are_compared_with_their_like() -> None:
    frame = step_times(examples.load("inference_cuda_graphs"))
    assert not frame["outlier"].any()  # the long first one is a prefill
    assert frame["usual_ns"].isna().sum() == 1


@pytest.mark.parametrize("name", ["hta/critical_path/alexnet", "hta/execution_trace"])
def test_real_programs_that_only_start(name: str) -> None:
    frame = step_times(Trace.open(shared_trace(name)))
    assert frame["start_up"].tolist() == [True]
    assert sentence(frame) == "No steps are marked. Call prof.step() where a step ends."


@pytest.mark.parametrize("name", ["hta/trace_filter", "hta/cpu_only", "hta/mtia_inference_trace"])
def test_real_steps_are_those_of_the_trace(name: str) -> None:
    trace = Trace.open(shared_trace(name))
    frame = step_times(trace)
    assert not frame["start_up"].any()
    assert frame["dur_ns"].sum() == (trace.iterations["end_ns"] - trace.iterations["start_ns"]).sum()
    assert sentence(frame).endswith(".")
    nothing = step_times(trace, Scope(window_ns=(10**15, 10**15 + 1)))
    assert nothing.empty
    assert nothing.dtypes.equals(frame.dtypes)
    assert sentence(nothing) == "No complete step lies in the selection."
