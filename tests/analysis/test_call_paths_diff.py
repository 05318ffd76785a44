"""Comparing by call path: one line per place in the program, and what has moved between runs."""

from __future__ import annotations

import pathlib
from functools import cache
from itertools import pairwise
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.simulator import SimulatedJob, simulate
from hta_widgets.analysis.compare.compare import diff, sentence
from hta_widgets.analysis.compare.events import event_names
from hta_widgets.analysis.compare.paths import LONGEST, call_paths
from hta_widgets.analysis.compare.sampling import sample
from hta_widgets.errors import MissingDataError
from hta_widgets.trace import Scope, Trace
from hta_widgets.trace.classify import EventClass
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.support import EVERY_CASE, SOME_GPU_TRACES, crossed, shared_trace, tried

pytestmark = pytest.mark.slow

BY = ("kernel", "op", "call_path", "module", "phase", "collective")
COVER_ALL = ("kernel", "op", "call_path", "phase")
STEP = 1_000_000
QWEN = "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
BERT = "gaunernst_bert-small-uncased__1016001.json.gz"


@cache
def run(seed=1, copy=False, **fields):
    """A small simulated job with frames of modules; `copy`: the same job opened once more."""
    del copy
    fields = {"strategy": "ddp", "ranks": 2, "steps": 5, "layers": 2, "python_frames": True} | fields
    with TemporaryDirectory() as folder:
        files = simulate(SimulatedJob("job", seed=seed, **fields)).write(pathlib.Path(folder))
        return Trace.open(files, cache=False)


def pair(**planted):
    return {"before": run(), "after": run(seed=2, **planted)}


def calls(*places, steps=4, durations=None):
    """Events of a rank: every step calls these, each a path of names and the kernels that the last launches.

    A name `nn.Module: ...` is a Python frame, the others are operators.
    """
    events = []
    for step in range(steps):
        at = step * STEP
        events.append(event("user_annotation", f"ProfilerStep#{step}", at, STEP - 10))
        for place, (path, kernels) in enumerate(places):
            begin = at + 1_000 + place * 20_000
            for depth, name in enumerate(path):
                category = "python_function" if name.startswith("nn.Module: ") else "cpu_op"
                events.append(event(category, name, begin + 10 * depth, 10_000 - 20 * depth))
            for number, name in enumerate(kernels):
                correlation = 1 + step * 1_000 + place * 10 + number
                dur = (durations or {}).get(name, 500)
                events += [
                    launch(begin + 1_000 + 50 * number, correlation),
                    kernel(name, begin + 2_000 + 1_500 * number, dur, correlation=correlation),
                ]
    return events


def jobs(tmp_path, **runs):
    for name in runs:
        (tmp_path / name).mkdir()
    return {name: job(tmp_path / name, events) for name, events in runs.items()}


def of(frame, run):
    return frame[frame["run"] == run].set_index("line")


# -- equal runs, exact sums ------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "time"), crossed(BY, ("device", "host")))
def test_equal_runs_do_not_differ(by, time):
    for runs in ({"A": run(), "B": run()}, {"A": run(), "B": run(copy=True)}):
        frame = diff(runs, by, time=time)
        assert len(frame) and set(frame["change"]) == {"same"} and not frame["significant"].any()
        assert (frame[["change_ns", "change_count"]] == 0).all(axis=None)
        assert frame["change_pct"].dropna().eq(0).all()
        assert ((of(frame, "B")["low_ns"] <= 0) & (of(frame, "B")["high_ns"] >= 0)).all()
        assert (frame["before_ns"] == frame["exclusive_ns"]).all()
        assert (frame["before_count"] == frame["count"]).all()
        assert (frame["moved_from"] == "").all()
        assert of(frame, "A")["kernels"].equals(of(frame, "B")["kernels"])
        lines = len(of(frame, "A"))
        same = "The only line is" if lines == 1 else f"All {lines} lines are"
        assert sentence(frame) == f"{same} the same as in A."


def device_time(trace, steps):
    """All device work of the steps that count, added up without any of the code under test."""
    total = 0
    for rank in steps.ranks:
        rank_trace = trace.rank(rank)
        work = rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC)
        total += int(rank_trace.dur[work & np.isin(rank_trace.iteration, steps.iterations)].sum())
    return total


def assert_sums(runs, by):
    samples = sample(runs)
    frame = diff(runs, by, time="device")
    first = next(iter(runs))
    whole = {run: device_time(trace, samples[run]) / samples[run].units for run, trace in runs.items()}
    for run in runs:
        sums = of(frame, run)[["exclusive_ns", "before_ns", "change_ns"]].sum()
        assert sums["exclusive_ns"] == pytest.approx(whole[run], rel=1e-12, abs=1e-6)
        assert sums["before_ns"] == pytest.approx(whole[first], rel=1e-12, abs=1e-6)
        assert sums["change_ns"] == pytest.approx(whole[run] - whole[first], rel=1e-9, abs=1e-3)
    assert ((frame["exclusive_ns"] - frame["before_ns"] - frame["change_ns"]).abs() < 1e-6).all()
    return frame


@pytest.mark.parametrize("name", SOME_GPU_TRACES)
def test_every_nanosecond_of_a_real_trace_is_on_one_line(name):
    trace = Trace.open(shared_trace(name))
    for by in (*COVER_ALL, "module"):
        try:
            frame = assert_sums({"A": trace, "B": trace}, by)
        except MissingDataError:
            assert by == "module"
            continue
        assert set(frame["change"]) <= {"same"} and (frame["change_ns"] == 0).all()
        assert not frame.duplicated(["line", "kind", "run"]).any()
        if by in ("call_path", "module"):
            assert frame["line"].str.len().max() <= LONGEST


@pytest.mark.parametrize("name", ["hta/cpu_only", "hta/rank_non_gpu"])
def test_without_device_work_every_nanosecond_of_the_host_is_on_one_line(name):
    runs = {"A": shared(name), "B": Trace.open(shared_trace(name))}
    frames = {by: diff(runs, by) for by in ("op", "call_path", "phase")}
    sums = {by: round(of(frame, "B")["exclusive_ns"].sum()) for by, frame in frames.items()}
    assert len(set(sums.values())) == 1 and sums["op"] > 0
    for frame in frames.values():
        assert (frame["change_ns"] == 0).all() and set(frame["change"]) == {"same"}
        assert set(frame["kernels"]) == {""}


TWO_RUNS = (
    ("hta/trace_diff/control", "hta/trace_diff/test"),
    (f"tracelens/h100/{BERT}", f"tracelens/mi300/{BERT}"),
    (f"tracelens/h100/{QWEN}", f"tracelens/mi300/{QWEN}"),
)


@pytest.mark.parametrize(("by", "runs"), crossed(COVER_ALL, TWO_RUNS if EVERY_CASE else TWO_RUNS[:2]))
def test_differences_of_real_runs_add_up(by, runs):
    assert_sums({name: shared(name) for name in runs}, by)


@pytest.mark.parametrize("by", [*COVER_ALL, "module"])
def test_differences_of_unlike_setups_add_up(by):
    frame = assert_sums(
        {"DDP": run(), "FSDP": run(strategy="fsdp_full_shard"), "one": run(strategy="single", ranks=1)}, by
    )
    if by in ("call_path", "module"):
        assert "moved" in set(frame["change"])


@cache
def shared(name):
    return Trace.open(shared_trace(name))


# -- what a line is --------------------------------------------------------------------------------


def test_a_line_is_a_place_and_owns_what_its_operator_launches(tmp_path):
    events = calls(
        (["nn.Module: Net_0", "nn.Module: Linear_0", "aten::linear", "aten::addmm"], ["gemm"]),
        (["nn.Module: Net_0", "aten::relu"], ["relu", "copy"]),
        (["aten::addmm"], ["gemm"]),
        ([], ["lonely"]),
        durations={"gemm": 700, "relu": 300, "copy": 400, "lonely": 50},
    )
    trace = job(tmp_path, events)
    frame = of(diff({"A": trace, "B": trace}, "call_path"), "B")
    assert set(frame["kind"]) == {"call_path"}
    own = {line: (row.count_, row.total_ns, row.exclusive_ns, row.kernels) for line, row in rows(frame)}
    assert own == {
        "Net_0": (2, 1_400, 0, ""),
        "Net_0 / Linear_0": (1, 700, 0, ""),
        "Net_0 / Linear_0 / aten::linear": (1, 700, 0, ""),
        "Net_0 / Linear_0 / aten::linear / aten::addmm": (1, 700, 700, "gemm"),
        "Net_0 / aten::relu": (1, 700, 700, "copy, relu"),
        "aten::addmm": (1, 700, 700, "gemm"),
        "(no operator)": (0, 50, 50, "lonely"),
    }


def rows(frame):
    return frame.rename(columns={"count": "count_"}).iterrows()


def test_recursion_makes_no_new_lines(tmp_path):
    path = ["a", "b", "a", "b", "c", "a"]
    trace = job(tmp_path, calls((path, ["k"]), (["a", "c"], ["k"])))
    frame = of(diff({"A": trace, "B": trace}, "call_path"), "A")
    counts = frame["count"].to_dict()
    assert counts == {"a": 4, "a / b": 2, "a / b / c": 1, "a / c": 1}
    assert frame["exclusive_ns"].to_dict() == {"a": 500, "a / b": 0, "a / b / c": 0, "a / c": 500}


def test_long_paths_are_shortened_and_stay_apart(tmp_path):
    long = [f"operator number {number}" for number in range(60)]
    places = [([*long[:30], middle, *long[30:]], ["k"]) for middle in ("x", "y")]
    runs = jobs(tmp_path, A=calls(*places), B=calls(*places))
    frame = diff(runs, "call_path")
    item = of(frame, "B")
    assert item["change"].eq("same").all() and item.index.str.len().max() <= LONGEST
    assert item.index.is_unique and len(item) == 30 + 2 * 31
    deepest = item[item["exclusive_ns"] > 0]
    assert len(deepest) == 2 and deepest.index.str.endswith(" / operator number 59").all()


def test_the_same_operator_with_another_kernel_is_one_line(tmp_path):
    place = ["nn.Module: Net_0", "aten::mm"]
    runs = jobs(tmp_path, A=calls((place, ["sm80_gemm"])), B=calls((place, ["sm90_gemm"])))
    frame = of(diff(runs, "call_path"), "B")
    row = frame.loc["Net_0 / aten::mm"]
    assert row["change"] == "same" and row["change_ns"] == 0 and row["kernels"] == "sm90_gemm"
    assert of(diff(runs, "call_path"), "A").loc["Net_0 / aten::mm", "kernels"] == "sm80_gemm"
    assert set(of(diff(runs), "B")["change"]) == {"added", "removed"}


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1, max_size=4))
@settings(max_examples=tried(25), deadline=None)
def test_paths_of_random_calls(paths):
    with TemporaryDirectory() as folder:
        rank_trace = job(pathlib.Path(folder), calls(*((path, ["k"]) for path in paths), steps=1)).rank(0)
    expected = set()
    for path in paths:
        place = []
        for name in path:
            place = place[: place.index(name) + 1] if name in place else [*place, name]
            expected.add(" / ".join(place))
    found = call_paths(rank_trace)
    assert sorted(found.texts) == sorted(expected)
    assert all(text.split(" / ")[-1] == leaf for text, leaf in zip(found.texts, found.leaves, strict=True))


# -- moved -----------------------------------------------------------------------------------------


def test_an_operator_in_another_module_has_moved(tmp_path):
    gelu, mm = (["nn.Module: A_0", "aten::gelu"], ["gelu"]), (["nn.Module: B_0", "aten::mm"], ["gemm"])
    runs = jobs(
        tmp_path,
        base=calls(gelu, mm),
        new=calls((["nn.Module: A_0", "aten::other"], []), mm, (["nn.Module: B_0", "aten::gelu"], ["gelu"]),
                  durations={"gelu": 900}),
    )  # fmt: skip
    frame = assert_sums(runs, "call_path")
    new = of(frame, "new")
    row = new.loc["B_0 / aten::gelu"]
    assert row[["change", "moved_from"]].tolist() == ["moved", "A_0 / aten::gelu"]
    assert row[["before_ns", "exclusive_ns", "change_ns"]].tolist() == [500, 900, 400]
    assert row[["before_count", "count", "change_count"]].tolist() == [1, 1, 0]
    assert row["change_pct"] == 80 and row["significant"]
    left = new.loc["A_0 / aten::gelu"]
    assert left["change"] == "same" and left[["before_ns", "exclusive_ns", "change_ns"]].tolist() == [0, 0, 0]
    assert of(frame, "base").loc["A_0 / aten::gelu", "exclusive_ns"] == 500
    assert new.loc["A_0 / aten::other", "change"] == "added"
    assert "removed" not in set(new["change"])
    assert "has moved: +400 ns" in sentence(frame)
    # By operator nothing has a place.
    assert set(of(diff(runs, "op"), "new")["moved_from"]) == {""}


def test_a_module_that_is_wrapped_has_moved(tmp_path):
    inner = ["nn.Module: Block_0", "aten::mm"]
    runs = jobs(
        tmp_path, base=calls((inner, ["gemm"])), new=calls((["nn.Module: Wrapper_0", *inner], ["gemm"]))
    )
    frame = of(assert_sums(runs, "module"), "new")
    assert frame["change"].to_dict() == {
        "Block_0": "same",
        "Wrapper_0": "added",
        "Wrapper_0 / Block_0": "moved",
    }
    assert frame["change_ns"].eq(0).all()


def test_moves_pair_one_to_one_by_kernels_first_then_by_calls(tmp_path):
    def at(module, *kernels):
        return ([f"nn.Module: {module}", "aten::mm"], list(kernels))

    runs = jobs(
        tmp_path,
        base=calls(at("A_0", "small"), at("A_1", "large"), at("A_2", "large"), at("A_3", "other")),
        new=calls(
            at("B_0", "large"), at("B_1", "small"), at("B_2", "new"), at("B_3", "small"), at("B_4", "large")
        ),
    )  # fmt: skip
    frame = of(assert_sums(runs, "call_path"), "new")
    operators = frame[frame.index.str.endswith("aten::mm")]
    origin = operators.loc[operators["change"] == "moved", "moved_from"].to_dict()
    assert origin == {
        "B_0 / aten::mm": "A_1 / aten::mm",  # the first of the large ones
        "B_4 / aten::mm": "A_2 / aten::mm",
        "B_1 / aten::mm": "A_0 / aten::mm",
        "B_2 / aten::mm": "A_3 / aten::mm",  # called as often, in order: the first that is left
    }
    assert operators["change"]["B_3 / aten::mm"] == "added"
    assert not (operators["change"] == "removed").any()


def test_calls_are_counted_per_step_to_find_what_has_moved(tmp_path):
    """Neither kernels nor numbers of steps are the same: how often a step calls an operator tells."""

    def once(module, kernel):
        return [([f"nn.Module: {module}", "aten::mm"], [kernel])]

    def twice(module, kernel):
        return 2 * once(module, kernel)

    runs = jobs(
        tmp_path,
        base=calls(*once("A_0", "a"), *twice("A_1", "b"), steps=4),
        new=calls(*twice("B_0", "c"), *once("B_1", "d"), steps=8),
    )
    frame = of(assert_sums(runs, "call_path"), "new")
    origin = frame.loc[(frame["change"] == "moved") & frame.index.str.endswith("mm"), "moved_from"].to_dict()
    assert origin == {"B_0 / aten::mm": "A_1 / aten::mm", "B_1 / aten::mm": "A_0 / aten::mm"}


def test_another_collective_has_not_moved():
    frame = diff({"DDP": run(), "FSDP": run(strategy="fsdp_full_shard")}, "call_path")
    ends = frame["line"].str.endswith("record_param_comms")
    assert set(frame.loc[ends & (frame["run"] == "FSDP"), "change"]) == {"added", "removed"}


def test_other_operators_do_not_move(tmp_path):
    runs = jobs(
        tmp_path,
        base=calls((["nn.Module: A_0", "aten::mm"], ["gemm"])),
        new=calls((["nn.Module: A_0", "aten::bmm"], ["gemm"])),
    )
    changes = of(diff(runs, "call_path"), "new")["change"].to_dict()
    assert changes == {"A_0": "same", "A_0 / aten::mm": "removed", "A_0 / aten::bmm": "added"}


places = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["nn.Module: A_0", "nn.Module: B_0", "f", "g"]), max_size=3),
        st.lists(st.sampled_from(["k", "l"]), max_size=2),
    ),
    min_size=1,
    max_size=5,
)


@given(places, places)
@settings(max_examples=tried(15), deadline=None)
def test_moves_of_random_programs_keep_the_sums(before, after):
    with TemporaryDirectory() as folder:
        work = ([], ["k"])  # so that both runs have device work
        runs = jobs(
            pathlib.Path(folder), base=calls(work, *before, steps=2), new=calls(work, *after, steps=2)
        )
    frame = assert_sums(runs, "call_path")
    base, new = of(frame, "base"), of(frame, "new")
    moved = new[new["change"] == "moved"]
    assert moved["moved_from"].is_unique and (moved["moved_from"] != "").all()
    assert (new.loc[new["change"] != "moved", "moved_from"] == "").all()
    assert (base["moved_from"] == "").all() and set(base["change"]) <= {"same"}
    for line, row in moved.iterrows():
        source = row["moved_from"]
        assert line.split(" / ")[-1] == source.split(" / ")[-1]
        assert base["count"][line] == 0 and new["count"][source] == 0
        assert row["before_count"] == base["count"][source] > 0
        assert new.loc[source, ["before_count", "before_ns", "change_ns"]].eq(0).all()
        assert new["change"][source] == "same"
    # No operator is said to be gone that could have moved to where one is said to be new.
    gone = {(line.split(" / ")[-1], row["before_count"]) for line, row in new.iterrows()
            if row["change"] == "removed" and line != "(no operator)"}  # fmt: skip
    added = {
        (line.split(" / ")[-1], row["count"]) for line, row in new.iterrows() if row["change"] == "added"
    }
    assert not gone & added
    back = of(diff(dict(reversed(runs.items())), "call_path"), "base")
    assert (back["change"] == "moved").sum() == len(moved)


# -- planted changes -------------------------------------------------------------------------------


def changed(frame):
    return frame[(frame["run"] == "after") & frame["significant"]].set_index("line")


def test_a_slow_kernel_is_found_in_every_place_that_launches_it():
    frame = changed(diff(pair(slow_kernel=("GeluCUDA", 2000)), "call_path"))
    assert len(frame) == 2 and frame.index.str.endswith(" / aten::gelu").all()
    assert [f"GPT2MLP_{layer}" in line for layer, line in enumerate(sorted(frame.index))] == [True, True]
    assert (frame["change"] == "changed").all() and frame["change_pct"].between(90, 110).all()
    assert frame["kernels"].str.contains("GeluCUDA").all()


def test_a_new_operator_is_found_where_it_was_put():
    runs = pair(extra_op="aten::tanh")
    frame = changed(diff(runs, "call_path"))
    assert set(frame["change"]) == {"added"} and frame.index.str.endswith(" / aten::tanh").all()
    assert frame["change_ns"].sum() == pytest.approx(
        of(diff(runs, "op"), "after").loc["aten::tanh", "change_ns"]
    )


def test_a_straggler_is_slow_at_every_place_and_adds_none():
    frame = diff(pair(straggler=1, slowdown_permille=1300), "call_path", scope=Scope(ranks=(1,)))
    after = frame[frame["run"] == "after"]
    assert set(after["change"]) == {"same", "changed"}
    computing = after[(after["before_ns"] > 0) & ~after["kernels"].str.contains("nccl|Mem")]
    assert computing["change_pct"].between(20, 40).all()


def test_smaller_buckets_are_more_calls_of_one_place():
    frame = diff(pair(bucket_mb=4), "call_path")
    after = frame[(frame["run"] == "after") & (frame["change"] != "same")]
    assert len(after) and (after["change_count"] >= 0).all()
    assert after.loc[after["exclusive_ns"] > 0, "kernels"].str.contains("nccl").any()
    assert not after["change"].isin(["moved", "removed"]).any()


# -- another vendor's device -----------------------------------------------------------------------


def paired(frame, run, column):
    """Which share of a run's calls, or time, stands on lines that both runs have."""
    values = frame.pivot(index="line", columns="run", values=column)
    counts = frame.pivot(index="line", columns="run", values="count")
    both = ((counts > 0) | (values > 0)).all(axis=1)
    return float(values.loc[both, run].sum() / values[run].sum())


@pytest.mark.parametrize(
    ("model", "by", "calls", "time"),
    [
        (QWEN, "op", 0.96, 0.996),
        (QWEN, "call_path", 0.91, 0.996),
        (BERT, "op", 1.0, 1.0),
        (BERT, "call_path", 0.94, 1.0),
    ],
)
def test_another_vendors_run_of_one_model_pairs_up(model, by, calls, time):
    """All that H100 does has its line on MI300, and nearly all the other way round.

    MI300's attention zeroes a buffer and makes views of its own; it takes 0.4 % of the device's time.
    """
    runs = {gpu: shared(f"tracelens/{gpu}/{model}") for gpu in ("h100", "mi300")}
    frame = diff(runs, by)
    assert paired(frame, "h100", "count") == paired(frame, "h100", "exclusive_ns") == 1
    assert paired(frame, "mi300", "count") >= calls
    assert paired(frame, "mi300", "exclusive_ns") >= time
    # The same lines, but other kernels: by those, little would pair up.
    item, other = of(frame, "h100"), of(frame, "mi300")
    both = (item["exclusive_ns"] > 0) & (other["exclusive_ns"].reindex(item.index) > 0)
    assert item.loc[both, "kernels"].ne(other["kernels"].reindex(item.index)[both]).mean() > 0.5
    assert paired(diff(runs), "mi300", "exclusive_ns") < 0.2


# -- which events a line stands for ----------------------------------------------------------------


def test_names_of_the_events_of_a_line(tmp_path):
    events = calls(
        (["nn.Module: Net_0", "aten::linear", "aten::addmm"], ["gemm", "bias"]),
        (["Optimizer.step#SGD"], ["update"]),
        ([], ["lonely"]),
        durations={"bias": 20},
    )
    other = calls((["nn.Module: Net_0", "aten::linear", "aten::addmm"], ["Cijk"]))
    runs = jobs(tmp_path, A=events, B=other)

    def names(by, line, kind=None):
        return event_names(runs, by, kind or by, line)

    path = "Net_0 / aten::linear / aten::addmm"
    assert names("call_path", path) == {"A": ("aten::addmm", "gemm", "bias"), "B": ("aten::addmm", "Cijk")}
    assert names("op", "aten::addmm") == names("call_path", path)
    assert names("call_path", "(no operator)") == {"A": ("lonely",), "B": ()}
    assert names("module", "Net_0") == {"A": ("nn.Module: Net_0",), "B": ("nn.Module: Net_0",)}
    assert names("kernel", "update", "compute") == {"A": ("update",), "B": ()}
    assert names("phase", "forward")["A"] == ("nn.Module: Net_0",)
    assert names("phase", "optimizer") == {"A": ("Optimizer.step#SGD",), "B": ()}
    assert names("phase", "other") == {"A": (), "B": ()}
    with pytest.raises(ValueError, match="by is one of"):
        names("colour", "red")


def test_every_line_has_events_of_these_names():
    for by in BY:
        frame = diff(pair(), by)
        lines = frame.loc[frame["count"] > 0, ["kind", "line"]].drop_duplicates()
        for kind, line in lines.iloc[: 5 if EVERY_CASE else 2].itertuples(index=False):
            for name, names in event_names(pair(), by, kind, line).items():
                known = set(run(seed=1).rank(0).names if name == "before" else run(seed=2).rank(0).names)
                assert set(names) <= known and (names or line == "other"), (by, line)
                if by == "collective":
                    assert all(item.startswith("ncclDevKernel") for item in names)


def test_kernels_of_a_line_are_most_time_first():
    frame = diff({"A": run(), "B": run()}, "phase")
    kernels = of(diff({"A": run(), "B": run()}), "A")["exclusive_ns"]
    listed = of(frame, "A").loc["optimizer", "kernels"]
    present = sorted((name for name in kernels.index if name in listed), key=listed.index)
    assert present and all(kernels[item] >= kernels[other] for item, other in pairwise(present))
