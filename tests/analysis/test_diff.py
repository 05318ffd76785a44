"""Comparing runs: nothing between equal runs, what was planted between others, and sums that are exact."""

from __future__ import annotations

import json
import math
import pathlib
import pickle
from collections import Counter
from functools import cache
from importlib import import_module
from itertools import combinations, islice
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.simulator import SimulatedJob, simulate
from hta_widgets.analysis.calls.op_counts import op_counts
from hta_widgets.analysis.compare.comparability import comparability
from hta_widgets.analysis.compare.compare import diff
from hta_widgets.analysis.compare.noise import beyond_alone, difference, interval, t_quantile
from hta_widgets.analysis.compare.parts import evenly
from hta_widgets.analysis.compare.run_table import run_table
from hta_widgets.analysis.compare.sampling import sample
from hta_widgets.analysis.compare.waterfall import step_waterfall
from hta_widgets.analysis.device_time.temporal import temporal_breakdown
from hta_widgets.analysis.idle.causes import CAUSES
from hta_widgets.analysis.idle.split import PARTS
from hta_widgets.errors import MissingDataError, NotComparableError
from hta_widgets.trace import Scope, Trace
from tests.analysis import multirank
from tests.analysis.kineto_file import event, job, kernel, launch, write
from tests.analysis.multirank import RankFile
from tests.support import EVERY_CASE, shared_trace, tried

pytestmark = pytest.mark.slow

NCCL = "ncclDevKernel"


@cache
def run(seed=1, **fields):
    """A small simulated job; equal arguments give one trace."""
    fields = {"strategy": "ddp", "ranks": 2, "steps": 5, "layers": 2} | fields
    with TemporaryDirectory() as folder:
        files = simulate(SimulatedJob("job", seed=seed, **fields)).write(pathlib.Path(folder))
        return Trace.open(files, cache=False)


def pair(**planted):
    return {"before": run(), "after": run(seed=2, **planted)}


def found(frame, run="after"):
    """The lines that are called significant in a run."""
    return set(frame.loc[(frame["run"] == run) & frame["significant"], "line"])


def say(module, frame):
    return import_module(f"hta_widgets.analysis.compare.{module}").sentence(frame)


def steps_of(kernels, count=5, step=1_000_000, wobble=0):
    """Events of a rank: every step launches these (name, dur) one after the other, from op `aten::<name>`."""
    events = []
    for number in range(count):
        begin = number * step
        events.append(event("user_annotation", f"ProfilerStep#{number}", begin, step - 10))
        at = begin + 1_000
        for place, (name, dur) in enumerate(kernels):
            took = dur + wobble * (number + place) % 7
            correlation = 1 + number * 100 + place
            events += [
                event("cpu_op", f"aten::{name}", at, 500),
                launch(at + 100, correlation, dur=50),
                kernel(name, at + 1_000, took, correlation=correlation),
            ]
            at += 2_000 + took
    return events


# -- equal runs ------------------------------------------------------------------------------------


def test_equal_runs_take_equally_long():
    runs = {"A": run(), "B": run()}
    for by in ("job", "rank"):
        frame = step_waterfall(runs, by=by)
        assert (frame["change_ns"] == 0).all() and not frame["significant"].any()
    table = run_table(runs)
    assert (table["change_ns"] == 0).all() and not table["significant"].any()
    assert "within noise" in say("run_table", table)
    assert "more than the steps do" in say("waterfall", frame)


def test_runs_that_differ_by_chance_only_do_not_differ():
    """Of fifty pairs of one configuration at most one has a line that differs, of ten none (99 %)."""
    pairs, seeds = (50, range(11)) if EVERY_CASE else (10, range(5))
    runs = [run(seed=seed, ranks=1, strategy="single", steps=4, drift_permille=5) for seed in seeds]
    false = Counter()
    for first, second in islice(combinations(runs, 2), pairs):
        both = {"A": first, "B": second}
        false.update(by for by in ("kernel", "op", "call_path") if diff(both, by)["significant"].any())
        false["waterfall"] += bool(step_waterfall(both)["significant"].any())
        false["run_table"] += bool(run_table(both)["significant"].any())
    assert max(false.values()) <= pairs // 50, false


# -- planted changes -------------------------------------------------------------------------------


def test_a_kernel_that_takes_twice_as_long_is_found_and_nothing_else():
    runs = pair(slow_kernel=("GeluCUDA", 2000))
    frame = diff(runs)
    (line,) = found(frame)
    assert "GeluCUDA" in line
    row = frame[(frame["line"] == line) & (frame["run"] == "after")].iloc[0]
    assert row["change"] == "changed" and row["change_pct"] == pytest.approx(100, abs=5)
    assert row["low_ns"] < row["change_ns"] < row["high_ns"] and row["change_count"] == 0
    assert found(diff(runs, "op")) == {"aten::gelu"}
    assert found(diff(runs, "phase")) == {"forward"}
    assert not found(diff(runs, "collective"))
    assert say("compare", frame).startswith(
        "1 of 23 lines differs from before beyond noise; vectorized_elementwise_kernel<Gelu"
    )


def test_an_operator_that_is_new_is_found_and_nothing_else():
    runs = pair(extra_op="aten::tanh")
    frame = diff(runs, "op")
    assert found(frame) == {"aten::tanh"}
    row = frame[(frame["line"] == "aten::tanh")].set_index("run")
    assert row["change"].to_dict() == {"before": "same", "after": "added"}
    assert row["count"].to_dict() == {"before": 0, "after": 2}
    assert math.isnan(row.loc["before", "mean_ns"]) and math.isnan(row.loc["after", "change_pct"])
    # Seen from the other side, it is gone.
    gone = diff(dict(reversed(runs.items())), "op")
    assert set(gone.loc[gone["change"] == "removed", "line"]) >= {"aten::tanh"}
    (line,) = found(diff(runs))
    assert "tanh" in line


def test_a_straggler_computes_longer_and_the_others_wait_for_it():
    runs = pair(straggler=1, slowdown_permille=1200)
    frame = step_waterfall(runs, by="rank")
    changed = frame[frame["significant"]].groupby("rank")["part"].agg(list).to_dict()
    assert changed == {0: ["exposed_communication", "step"], 1: ["compute", "step"]}
    table = run_table(runs).set_index("run")
    assert table.loc["after", "busiest_rank"] == 1 and table.loc["after", "imbalance_pct"] > 5
    assert abs(table.loc["before", "imbalance_pct"]) < 1
    assert table.loc["after", "significant"] and "more" in say("run_table", table.reset_index())
    words = say("waterfall", step_waterfall(runs))
    assert "longer" in words and ("compute" in words or "communication" in words)


def test_smaller_buckets_are_more_collectives():
    frame = diff(pair(bucket_mb=4), "collective")
    after = frame[frame["run"] == "after"]
    assert after["change"].tolist() == ["changed"]
    assert after["change_count"].iloc[0] > 0
    kernels = diff(pair(bucket_mb=4))
    changed = kernels.loc[(kernels["run"] == "after") & (kernels["change"] != "same"), "line"]
    assert changed.str.startswith(NCCL).all() and len(changed) == 1


# -- the numbers -----------------------------------------------------------------------------------


def test_values_are_per_step_and_rank(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    runs = {
        "one rank": job(tmp_path / "a", steps_of([("k", 100), ("l", 50)], count=3)),
        "two ranks": job(tmp_path / "b", *[steps_of([("k", 100), ("k", 200)], count=5)] * 2),
    }
    frame = diff(runs).set_index(["line", "run"])
    item, two = frame.loc[("k", "one rank")], frame.loc[("k", "two ranks")]
    assert two[["steps", "count", "total_ns", "mean_ns"]].tolist() == [5, 2, 300, 150]
    assert item[["steps", "count", "total_ns", "mean_ns"]].tolist() == [3, 1, 100, 100]
    assert two[["change_count", "change_ns", "change_pct"]].tolist() == [1, 200, 200]
    assert two[["low_ns", "high_ns", "significant", "change"]].tolist() == [200, 200, True, "changed"]
    assert frame.loc[("l", "two ranks"), ["change_ns", "change"]].tolist() == [-50, "removed"]
    assert list(frame.index.get_level_values("run"))[:2] == ["one rank", "two ranks"]


def test_imbalance_is_how_much_longer_than_the_mean_the_busiest_rank_computes(tmp_path):
    ranks = [steps_of([("k", dur)], count=3) for dur in (100, 300, 200)]
    row = run_table({"A": job(tmp_path, *ranks)}).iloc[0]
    assert (row["busiest_rank"], row["imbalance_pct"]) == (1, 50.0)


def test_memory_of_a_run_is_that_of_its_devices(tmp_path):
    recorded = RankFile(0)
    for step in range(3):
        recorded.step(step, 10_000 * step, 10_000 * (step + 1))
        recorded.kernel(10_000 * step + 500, 10_000 * step + 900, launched=10_000 * step + 100)
    recorded.memory(700, 8, 1, 8).memory(800, 4_000, 2, 4_000, device=0)
    row = run_table({"A": multirank.job(tmp_path / "job", recorded)}).iloc[0]
    assert row["peak_bytes"] == 8


def test_operators_do_not_count_their_callees_twice(tmp_path):
    events = []
    for step in range(3):
        at = step * 100_000
        events += [
            event("user_annotation", f"ProfilerStep#{step}", at, 99_000),
            event("cpu_op", "outer", at + 100, 10_000),
            launch(at + 200, 10 * step + 1),
            event("cpu_op", "inner", at + 1_000, 4_000),
            launch(at + 1_100, 10 * step + 2),
            launch(at + 20_000, 10 * step + 3),
            kernel("a", at + 30_000, 10, correlation=10 * step + 1),
            kernel("b", at + 31_000, 200, correlation=10 * step + 2),
            kernel("c", at + 32_000, 3_000, correlation=10 * step + 3),
        ]
    trace = job(tmp_path, events)
    frame = diff({"A": trace, "B": trace}, "op").set_index(["line", "run"]).xs("A", level="run")
    columns = ["count", "total_ns", "exclusive_ns"]
    assert frame.loc["outer", columns].tolist() == [1, 210, 10]
    assert frame.loc["inner", columns].tolist() == [1, 200, 200]
    assert frame.loc["(no operator)", columns].tolist() == [0, 3000, 3000]
    host = diff({"A": trace, "B": trace}, "op", time="host").set_index(["line", "run"]).xs("A", level="run")
    assert host.loc["outer", columns].tolist() == [1, 10_000, 6_000]
    assert host.loc["inner", columns].tolist() == [1, 4_000, 4_000]


@pytest.mark.parametrize("by", ["kernel", "op", "phase"])
def test_exclusive_times_of_all_lines_are_all_device_time(by):
    trace, steps = run(), sample({"A": run()})["A"]
    scope = Scope(iterations=tuple(steps.iterations.tolist()))
    counts = op_counts(trace, scope, "gpu")
    frame = diff({"A": trace, "B": run(seed=2)}, by)
    own = frame.loc[frame["run"] == "A", "exclusive_ns"].sum() * len(steps) * len(steps.ranks)
    assert round(own) == counts["total_duration_ns"].sum()
    changes = frame.groupby("run")["exclusive_ns"].sum()
    of_b = frame.loc[frame["run"] == "B", "change_ns"].sum()
    assert of_b == pytest.approx(changes["B"] - changes["A"], abs=1e-3)


def test_scope_holds_for_all_runs_or_each():
    runs = {"A": run(), "B": run()}
    apart = diff(runs, scope={"A": Scope(ranks=(0,)), "B": Scope(ranks=(1,))})
    for name, rank in (("A", 0), ("B", 1)):
        alone = diff(runs, scope=Scope(ranks=(rank,)))
        expected = alone[alone["run"] == "A"].set_index("line")["exclusive_ns"]
        assert (
            apart[apart["run"] == name]
            .set_index("line")["exclusive_ns"]
            .sort_index()
            .equals(expected.sort_index())
        )
    fewer = diff(runs, scope=Scope(iterations=(11, 12, 13)))
    assert set(fewer["steps"]) == {3}


def test_windows_choose_steps_and_streams_choose_work(tmp_path):
    """What a step launched counts though it runs beyond the window."""
    events = []
    for step in range(4):
        at, number = step * 100_000, 10 * step
        events += [
            event("user_annotation", f"ProfilerStep#{step}", at, 100_000),
            launch(at + 1_000, number + 1),
            launch(at + 2_000, number + 2),
            kernel("near", at + 5_000, 50_000, correlation=number + 1),
            kernel("late", at + 104_000, 900, stream=8, correlation=number + 2),
        ]
    trace = job(tmp_path, events)
    first, last = trace.iterations["start_ns"].iloc[0], trace.iterations["end_ns"].iloc[2]
    frame = diff({"A": trace, "B": trace}, scope=Scope(window_ns=(int(first), int(last))))
    assert set(frame["steps"]) == {3}
    assert frame.groupby("line")["count"].first().to_dict() == {"late": 1, "near": 1}
    assert set(diff({"A": trace, "B": trace}, scope=Scope(streams=(8,)))["line"]) == {"late"}


@pytest.mark.parametrize("by", ["job", "rank"])
def test_the_waterfall_adds_up(by):
    runs = {"A": run(), "B": run(seed=2, bucket_mb=4), "C": run(seed=3, strategy="fsdp_full_shard")}
    frame = step_waterfall(runs, by=by)
    keys = ["run"] + (["rank"] if by == "rank" else [])
    of_step = frame[frame["part"] == "step"].set_index(keys)[["sum_ns", "time_ns", "change_ns"]]
    of_parts = (
        frame[frame["part"] != "step"].groupby(keys, sort=False)[["sum_ns", "time_ns", "change_ns"]].sum()
    )
    pd.testing.assert_frame_equal(of_step, of_parts)
    assert (frame["time_ns"] * frame["steps"] * frame["ranks"] - frame["sum_ns"]).abs().max() <= (
        frame["steps"] * frame["ranks"]
    ).max()
    assert set(frame["part"]) == {*PARTS, "step"}


def test_the_waterfall_of_a_rank_is_that_of_the_run_on_this_rank_alone(tmp_path):
    """Its steps have their own begin and end."""
    runs = {}
    for name, times in (("A", (100_000, 150_000)), ("B", (120_000, 180_000))):
        (tmp_path / name).mkdir()
        runs[name] = job(tmp_path / name, *(durations(*[time] * 5) for time in times))
    frame = step_waterfall(runs, by="rank")
    for rank in (0, 1):
        alone = step_waterfall(runs, Scope(ranks=(rank,)))
        of_rank = frame[frame["rank"] == rank].drop(columns="rank").reset_index(drop=True)
        pd.testing.assert_frame_equal(of_rank, alone)
    steps = frame[frame["part"] == "step"].set_index(["run", "rank"])["change_ns"]
    assert steps.to_dict() == {("A", 0): 0, ("A", 1): 0, ("B", 0): 20_000, ("B", 1): 30_000}


def test_the_waterfall_is_the_temporal_breakdown():
    runs = {"A": run(), "B": run(seed=2)}
    steps = sample(runs)["A"]
    assert steps.clock == "host"
    frame = step_waterfall(runs).query("run == 'A'").set_index("part")["sum_ns"]
    whole = temporal_breakdown(run(), Scope(iterations=tuple(steps.iterations.tolist()))).sum()
    assert frame["step"] == whole["window_ns"]
    assert frame["compute"] == whole["compute_ns"]
    assert frame["exposed_communication"] == whole["exposed_communication_ns"]
    assert frame["exposed_memory"] == whole["exposed_memory_ns"]
    assert sum(frame[cause] for cause in CAUSES) == whole["idle_ns"]
    row = run_table(runs).iloc[0]
    assert sum(row[f"{part}_ns"] for part in PARTS) == row["step_ns"]
    assert sum(row[f"{cause}_ns"] for cause in CAUSES) == row["idle_ns"]
    assert row["peak_bytes"] > 0


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=12), st.integers(1, 1000))
def test_parts_are_rounded_so_that_they_add_up(totals, units):
    values = evenly(np.array(totals, np.int64), units)
    assert values.sum() == (2 * sum(totals) + units) // (2 * units)
    assert (np.abs(values - np.array(totals) / units) <= 1 + 1e-6 * units).all()


# -- the sample ------------------------------------------------------------------------------------


def durations(*times):
    """A rank of steps that take so long, each with one kernel."""
    events, at = [], 0
    for number, time in enumerate(times):
        events += [
            event("user_annotation", f"ProfilerStep#{number}", at, time),
            launch(at + 10, number + 1),
            kernel("k", at + 100, 1_000, correlation=number + 1),
        ]
        at += time
    return events


def test_warm_up_and_outliers_do_not_count(tmp_path):
    trace = job(
        tmp_path, durations(200_000, 150_000, 100_000, 101_000, 140_000, 99_000, 100_000, 50_000, 100_500)
    )
    steps = sample({"A": trace})["A"]
    assert steps.iterations.tolist() == [2, 3, 5, 6] + ([8] if steps.clock == "host" else [])
    why = {number: reason for number, reason in steps.excluded.items() if number != 8}
    assert why == {0: "warm-up", 1: "warm-up", 4: "outlier", 7: "outlier"}
    table = comparability({"A": trace}).set_index("check")
    assert "2 left out: warm-up" in table.loc["steps", "value"]


def test_steps_of_a_server_are_compared_with_those_of_as_many_tokens(tmp_path):
    """Prompts of two lengths are no outliers of each other."""
    events, at = [], 0
    for number, tokens in enumerate([1000, 4000] * 6):
        time = 100 * tokens + 50_000 * (number == 5)
        name = f"step[EXTEND bs=1 toks={tokens}]"
        events += [
            event("user_annotation", name, at, time - 10),
            launch(at + 10, number + 1),
            kernel("k", at + 100, time - 1_000, correlation=number + 1),
        ]
        at += time
    excluded = sample({"A": job(tmp_path, events)})["A"].excluded
    assert {step for step, why in excluded.items() if why in ("outlier", "warm-up")} == {5}


def test_the_clock_of_the_iterations_is_used(tmp_path):
    """The host's marks jump and its device, far behind, works at an even pace; then the device keeps up."""
    events = []
    for number in range(8):
        host = number * 100_000 + (number % 3) * 15_000
        events += [
            event("user_annotation", f"ProfilerStep#{number}", host, 50_000 + 9_000 * (number % 4)),
            launch(host + 10, number + 1),
            kernel("k", 1_000_000 + number * 100_000, 60_000, correlation=number + 1),
        ]
    steps = sample({"A": job(tmp_path, events)})["A"]
    assert steps.clock == "device" and len(steps) == 7
    assert set(steps.durations.tolist()) == {100_000}, "each until the next one begins"
    assert steps.excluded == {7: "nothing marks its end on the device"}
    (tmp_path / "b").mkdir()
    trace = job(tmp_path / "b", durations(*[100_000] * 6))
    assert sample({"A": trace})["A"].clock == "host"


def test_runs_of_different_clocks_are_timed_on_the_device_with_what_they_wait_for(tmp_path):
    """From the first work of each step to that of the next: waiting for the host counts in both."""
    behind = []
    for number in range(8):
        behind += [
            event("user_annotation", f"ProfilerStep#{number}", number * 100_000, 50_000),
            launch(number * 100_000 + 10, number + 1),
            kernel("k", 1_000_000 + number * 100_000, 60_000, correlation=number + 1),
        ]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    runs = {"A": job(tmp_path / "a", behind), "B": job(tmp_path / "b", durations(*[100_000] * 8))}
    for steps in sample(runs).values():
        assert steps.clock == "device"
        assert set(steps.durations.tolist()) == {100_000}
        assert steps.excluded == {7: "nothing marks its end on the device"}
    for steps in sample(runs, Scope(iterations=(0, 1, 2, 4, 5, 6))).values():
        assert steps.clock == "device"
        assert steps.iterations.tolist() == [0, 1, 2, 4, 5, 6]
        assert set(steps.durations.tolist()) == {100_000}, "the step in between takes its own time"


def test_steps_count_only_where_all_ranks_have_them(tmp_path):
    runs = {"A": job(tmp_path, durations(*[2_000] * 5), durations(*[2_000] * 4))}
    steps = sample(runs)["A"]
    assert steps.iterations.tolist() == [0, 1, 2, 3] and steps.excluded == {4: "not on every rank"}


def test_a_step_that_the_recording_cuts_does_not_count(tmp_path):
    """It takes as long as the others, but most of its work is missing."""
    events = steps_of([(f"k{number}", 100) for number in range(10)])
    last = max(number for number, item in enumerate(events) if item["cat"] == "user_annotation")
    steps = sample({"A": job(tmp_path, events[: last + 4])})["A"]
    assert steps.iterations.tolist() == [0, 1, 2, 3]
    assert steps.excluded == {4: "cut by the recording"}


def test_work_of_steps_that_do_not_count_is_in_no_line(tmp_path):
    events = durations(*[100_000] * 3, 200_000, *[100_000] * 3)
    events += [launch(300_500, 90), kernel("rare", 320_000, 5_000, correlation=90)]
    trace = job(tmp_path, events)
    assert sample({"A": trace})["A"].excluded == {3: "outlier"}
    frame = diff({"A": trace, "B": trace})
    assert set(frame["line"]) == {"k"} and set(frame["count"]) == {1}
    assert set(diff({"A": trace, "B": trace}, "op")["kernels"]) == {"k"}


@pytest.mark.parametrize(("count", "clock"), [(3, "host"), (4, "device")])
def test_two_steps_on_the_device_are_too_few(tmp_path, count, clock):
    """Nothing marks the end of the last one; two show no variation."""
    runs = {}
    for name, behind in (("A", 1_000_000), ("B", 0)):
        events = []
        for number in range(count):
            begin = number * 100_000
            events += [
                event("user_annotation", f"ProfilerStep#{number}", begin, 90_000),
                launch(begin + 10, number + 1),
                kernel("k", behind + begin + 100, 60_000, correlation=number + 1),
            ]
        (tmp_path / name).mkdir()
        runs[name] = job(tmp_path / name, events)
    assert [trace.rank(0).iteration_clock for trace in runs.values()] == ["device", "host"]
    assert {steps.clock for steps in sample(runs).values()} == {clock}


def test_on_the_device_a_step_begins_with_its_first_work(tmp_path):
    """Its last work comes at another time in each step, and changes nothing."""
    runs = {}
    for name, behind in (("A", 1_000_000), ("B", 0)):
        events = []
        for number in range(8):
            begin = number * 100_000
            events += [
                event("user_annotation", f"ProfilerStep#{number}", begin, 99_000),
                launch(begin + 10, 2 * number + 1),
                launch(begin + 20, 2 * number + 2),
                kernel("k", behind + begin + 100, 30_000, correlation=2 * number + 1),
                kernel(
                    "l", behind + begin + 31_000 + 7_000 * (number % 5), 9_000, correlation=2 * number + 2
                ),
            ]
        (tmp_path / name).mkdir()
        runs[name] = job(tmp_path / name, events)
    for steps in sample(runs).values():
        assert steps.clock == "device" and set(steps.durations.tolist()) == {100_000}


def test_steps_are_found_by_number_though_they_are_in_order_of_time(tmp_path):
    events = []
    for place, number in enumerate((12, 13, 3, 4)):
        begin = place * 100_000
        events += [
            event("user_annotation", f"ProfilerStep#{number}", begin, 99_000),
            launch(begin + 10, place + 1),
            kernel("k", begin + 100, 1_000, correlation=place + 1),
        ]
    steps = sample({"A": job(tmp_path, events)})["A"]
    assert steps.iterations.tolist() == [12, 13, 3, 4]
    assert steps.position(np.array([3, 4, 5, 12, 13, 99])).tolist() == [2, 3, -1, 0, 1, -1]


# -- noise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "freedom", "expected"),
    [(0.05, 1, 12.7062), (0.05, 2, 4.30265), (0.05, 5, 2.57058), (0.01, 8, 3.35539), (0.001, 30, 3.64596),
     (0.05, 10_000, 1.95996)],
)  # fmt: skip
def test_students_t(alpha, freedom, expected):
    """Against the printed tables."""
    assert t_quantile(alpha, freedom) == pytest.approx(expected, rel=1e-5)


def test_intervals_cover_the_truth_as_often_as_they_say():
    """The difference of two samples of one distribution is 0: so 95 % of the intervals contain it."""
    dice = np.random.default_rng(5)
    for steps in (3, 5, 20):
        drawn = dice.normal(1_000.0, 50.0, size=(2 * steps, 2_000))
        noise = difference(drawn[:steps], drawn[steps:])
        covered = ((noise.low <= 0) & (noise.high >= 0)).mean()
        assert 0.93 <= covered <= 0.99, steps
        # None of 2,000 lines, in 99 of 100 such comparisons.
        assert noise.significant.sum() == 0


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31))
@settings(max_examples=tried(15), deadline=None)
def test_a_difference_does_not_depend_on_what_else_is_compared(first, second, seed):
    dice = np.random.default_rng(seed)
    old, new = dice.integers(0, 1000, (first, 3)), dice.integers(0, 1000, (second, 3))
    noise, alone = difference(old, new), difference(old[:, :1], new[:, :1])
    assert noise.change[0] == alone.change[0]
    np.testing.assert_allclose([noise.low[0], noise.high[0]], [alone.low[0], alone.high[0]], atol=1e-6)
    assert not noise.significant[0] or alone.significant[0]
    if min(first, second) < 2:
        assert np.isnan(noise.low).all() and not noise.significant.any()
    else:
        assert (noise.low <= noise.high + 1e-9).all()


@pytest.mark.parametrize(("alike", "steps", "wrong"), [(0.5, 30, 0.04), (0.5, 10, 0.08), (0.8, 30, 0.12)])
def test_steps_that_are_like_the_one_before_tell_less(alike, steps, wrong):
    """Equal runs whose steps drift; as if independent, 13, 13 and 42 % of them would differ significantly."""
    dice = np.random.default_rng(6)
    drift = dice.normal(0, 30, size=(2, steps, 300))
    for step in range(1, steps):
        drift[:, step] *= math.sqrt(1 - alike**2)
        drift[:, step] += alike * drift[:, step - 1]
    first, second = 1_000 + drift
    pairs = [difference(first[:, [line]], second[:, [line]]) for line in range(300)]
    assert np.mean([pair.significant[0] for pair in pairs]) <= wrong
    low, high = np.array([interval(first[:, line]) for line in range(300)]).T
    assert ((low <= 1_000) & (high >= 1_000)).mean() >= 0.8


def test_one_line_that_is_asked_about_bears_only_its_own_noise():
    dice = np.random.default_rng(7)
    first, second = dice.normal(1_000, 20, size=(2, 6, 400))

    def beyond(second):
        found = difference(first, second)
        means = zip(first.mean(axis=0), second.mean(axis=0), found.low, found.high, strict=True)
        return np.array([beyond_alone(*values, 6) for values in means]), found.significant

    equal, _ = beyond(second)
    assert equal.mean() <= 0.01
    slower, together = beyond(second * 1.08)
    assert slower.mean() >= 0.95 and together.mean() <= 0.5
    assert not beyond_alone(1_000, 1_100, math.nan, math.nan, 1)
    assert not beyond_alone(1_000, 1_009, 8, 10, 6)


def test_lines_that_no_run_has_are_no_comparisons():
    """The more lines are compared, the more it takes to be significant; absent ones are not compared."""
    old, new = np.random.default_rng(8).normal(1_000, 20, size=(2, 6, 1))
    absent, present = np.zeros((6, 400)), np.full((6, 400), 1_000.0)
    found = []
    for shift in range(0, 200, 5 if EVERY_CASE else 20):
        alone, beside_absent, beside_others = (
            bool(difference(np.hstack([old, other]), np.hstack([new + shift, other])).significant[0])
            for other in (absent[:, :0], absent, present)
        )
        assert alone == beside_absent
        found.append((alone, beside_others))
    assert {(True, False), (True, True)} <= set(found)


def test_interval_of_one_sample():
    low, high = interval(np.array([10, 12, 11, 13]))
    assert low < 11.5 < high
    assert all(math.isnan(edge) for edge in interval(np.array([10])))


def test_steps_that_do_not_vary_tell_no_more_than_the_others():
    """The interval of a difference from a constant is that of the sample alone: no degree of freedom more."""
    sample = np.array([100.0, 104.0, 99.0])
    alone = interval(sample)
    found = difference(np.zeros((3, 1)), sample[:, None])
    assert (found.low[0], found.high[0]) == pytest.approx(alone)


def test_changes_below_one_percent_are_not_significant():
    old = np.full((10, 2), 1_000_000)
    noise = difference(old, old + np.array([9_000, 20_000]))
    assert noise.significant.tolist() == [False, True]


# -- comparability ---------------------------------------------------------------------------------


def test_runs_of_other_kinds_are_refused(tmp_path):
    serving = run(strategy="serving", ranks=1, steps=6)
    with pytest.raises(NotComparableError, match="a step is not the same") as caught:
        diff({"A": run(), "B": serving})
    assert pickle.loads(pickle.dumps(caught.value)).reasons == caught.value.reasons
    (tmp_path / "b").mkdir()
    host_only = job(tmp_path, [item for item in durations(*[100_000] * 3) if item["cat"] != "kernel"])
    with_device = job(tmp_path / "b", durations(*[100_000] * 3))
    with pytest.raises(NotComparableError, match="host has no device events"):
        step_waterfall({"both": with_device, "host": host_only})
    frame = comparability({"both": with_device, "host": host_only})
    assert set(frame.loc[frame["severity"] == "refuse", "check"]) == {"device work"}
    assert say("comparability", frame).startswith("These runs cannot be compared")
    for nothing in (Scope(iterations=(99,)), Scope(ranks=(99,))):
        with pytest.raises(NotComparableError, match="no step"):
            diff({"A": with_device, "B": with_device}, scope=nothing)
    with pytest.raises(MissingDataError):
        step_waterfall({"A": host_only, "B": host_only})
    assert diff({"A": host_only, "B": host_only}, "phase")["exclusive_ns"].sum() > 0


def test_each_doubt_is_shown():
    same = comparability(pair())
    assert set(same["severity"]) == {"ok"} and set(same["reason"]) == {""}
    assert "Nothing" in say("comparability", same)

    def doubts(other):
        frame = comparability({"A": run(), "B": other})
        assert not (frame["severity"] == "refuse").any()
        return set(frame.loc[frame["severity"] == "doubt", "check"])

    assert doubts(run(strategy="single", ranks=1)) >= {"world size", "recorded ranks"}
    assert doubts(run(seed=2, batch=4)) == {"input shapes"}
    assert "python frames" in doubts(run(seed=2, python_frames=True))
    assert doubts(run(seed=2, steps=2)) == {"steps"}


def test_many_outliers_are_a_doubt(tmp_path):
    """Every fifth step has become twice as long: a habit, not an accident."""
    runs = {}
    for name, often in (("A", 100), ("B", 5), ("C", 20)):
        (tmp_path / name).mkdir()
        times = [200_000 if number % often == often - 1 else 100_000 + number for number in range(26)]
        runs[name] = job(tmp_path / name, durations(*times))
    frame = comparability(runs).set_index(["check", "run"]).loc["steps"]
    assert frame.loc["B", "reason"] == "5 steps of B are outliers and do not count: see them alone"
    del runs["B"]
    assert comparability(runs).set_index("check").loc["steps", "severity"].eq("ok").all()


def test_a_version_that_one_run_did_not_record_is_no_difference(tmp_path):
    def written(name, **metadata):
        path = write(tmp_path / name, durations(*[100_000] * 3))
        path.write_text(path.read_text().replace("{", json.dumps(metadata)[:-1] + ", ", 1))
        return Trace.open(path, cache=False)

    cuda, nccl = {"cuda_runtime_version": 12010}, {"distributedInfo": {"nccl_version": "2.19"}}
    runs = {"A": written("a.json", **cuda), "B": written("b.json", **cuda, cuda_driver_version=12020)}
    versions = comparability(runs).set_index("check").loc["versions"]
    assert versions["severity"].eq("ok").all()
    assert versions["value"].tolist() == ["cuda_runtime 12010", "cuda_runtime 12010, cuda_driver 12020"]
    runs["C"] = written("c.json", cuda_runtime_version=11080, **nccl)
    assert comparability(runs).set_index("check").loc["versions", "severity"].eq("doubt").all()


def test_a_device_that_one_run_did_not_record_is_no_difference(tmp_path):
    def written(name, *devices):
        path = write(tmp_path / name, durations(*[100_000] * 3))
        metadata = {"deviceProperties": [{"id": 0, "name": device} for device in devices]}
        path.write_text(path.read_text().replace("{", json.dumps(metadata)[:-1] + ", ", 1))
        return Trace.open(path, cache=False)

    runs = {"A": written("a.json", "H100"), "B": written("b.json")}
    devices = comparability(runs).set_index("check").loc["devices"]
    assert devices["value"].tolist() == ["H100", "not recorded"]
    assert devices["severity"].eq("ok").all()
    runs["C"] = written("c.json", "MI300")
    assert comparability(runs).set_index("check").loc["devices", "severity"].eq("doubt").all()


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="at least 2"):
        diff({"A": run()})
    with pytest.raises(ValueError, match="by is one of"):
        diff(pair(), "colour")
    with pytest.raises(ValueError, match="time is"):
        diff(pair(), time="both")
    with pytest.raises(ValueError, match='"job" or "rank"'):
        step_waterfall(pair(), by="step")
    with pytest.raises(MissingDataError, match="modules"):
        diff(pair(), "module")
    assert len(run_table({"A": run()})) == 1


def test_any_number_of_runs_in_their_order():
    runs = {
        "Baseline": run(strategy="single", ranks=1),
        "DDP": run(),
        "FSDP": run(strategy="fsdp_full_shard"),
    }
    frame = diff(runs)
    assert frame["run"].tolist() == list(runs) * (len(frame) // 3)
    nccl = frame[frame["line"].str.startswith(NCCL) & (frame["run"] != "Baseline")]
    assert set(nccl["change"]) == {"added", "same"}
    table = run_table(runs)
    assert table["run"].tolist() == list(runs)
    assert table["communication_ns"].iloc[0] == 0 and (table["communication_ns"].iloc[1:] > 0).all()
    assert list(dict.fromkeys(step_waterfall(runs)["run"])) == list(runs)


# -- real traces -----------------------------------------------------------------------------------


def test_another_vendors_device_pairs_up_by_operator():
    name = "gaunernst_bert-small-uncased__1016001.json.gz"
    runs = {gpu: Trace.open(shared_trace(f"tracelens/{gpu}/{name}")) for gpu in ("h100", "mi300")}
    checks = comparability(runs).set_index("check")["severity"]
    assert checks["devices"].eq("doubt").all() and checks["input shapes"].eq("ok").all()
    frame = diff(runs, "op")
    assert frame["low_ns"][frame["run"] == "mi300"].isna().all() and not frame["significant"].any()
    other = frame[frame["run"] == "mi300"]
    both = other[other["change"] == "same"]
    assert both["exclusive_ns"].sum() > 0.95 * other["exclusive_ns"].sum()
    # Their kernels have next to no names in common.
    kernels = diff(runs)
    assert (kernels.loc[kernels["run"] == "mi300", "change"].isin(["added", "removed"])).mean() > 0.5
    modules = diff(runs, "module")
    assert (modules["change"] == "same").all() and modules["line"].str.contains(" / ").any()
    assert "noise" in say("compare", frame)


def test_control_and_test_differ_as_in_hta():
    """HTA's golden numbers for its default step; over all steps the counts of `op_counts`."""
    runs = {name: Trace.open(shared_trace(f"hta/trace_diff/{name}")) for name in ("control", "test")}
    doubts = comparability(runs)
    assert {"devices", "world size"} <= set(doubts.loc[doubts["severity"] == "doubt", "check"])
    # Of HTA's `compare_traces(control, test, device_type=DeviceType.GPU, use_short_name=False)`.
    bar_scope = diff(runs, scope=Scope(iterations=(1009,)))
    other = bar_scope[bar_scope["run"] == "test"]
    assert other["change_ns"].sum() == 82_339_000
    assert np.sign(other["change_count"]).value_counts().to_dict() == {0: 84, -1: 75, 1: 42}
    assert other["change_count"].sum() == 928
    samples = sample(runs)
    frame = diff(runs)
    for name, steps in samples.items():
        scope = Scope(iterations=tuple(steps.iterations.tolist()))
        expected = op_counts(runs[name], scope, "gpu").groupby("name")["count"].sum()
        bar_scope = frame[(frame["run"] == name) & (frame["count"] > 0)].set_index("line")["count"] * len(
            steps
        )
        assert (
            bar_scope.round().astype(int).groupby(level=0).sum().sort_index().to_dict() == expected.to_dict()
        )
