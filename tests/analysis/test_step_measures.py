"""What a gate holds to limits: the numbers of the other comparisons, and two wholes of its own."""

import json
from functools import cache

import pytest

from hta_widgets import examples
from hta_widgets.analysis.compare.measures import STEP_TIME, step_measures
from hta_widgets.analysis.compare.run_table import run_table
from hta_widgets.analysis.compare.sampling import sample
from hta_widgets.analysis.compare.waterfall import STEP, step_waterfall
from hta_widgets.analysis.device_time.overlap import comm_comp_overlap
from hta_widgets.errors import NotComparableError
from hta_widgets.trace import Scope, Trace
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.support import TEXT_DTYPE, shared_trace

EXAMPLES = ("gpt2_baseline", "gpt2_ddp", "gpt2_fsdp_full_shard", "gpt2_fsdp_shard_grad_op")


@cache
def runs():
    return {name: examples.load(name) for name in EXAMPLES}


def test_step_and_parts_are_those_of_the_other_comparisons():
    frame = step_measures(runs()).set_index(["run", "measure"])
    table = run_table(runs()).set_index("run")
    waterfall = step_waterfall(runs()).set_index(["run", "part"])
    assert list(frame.index.unique("run")) == list(EXAMPLES[1:])
    for run, measure in frame.index:
        row = frame.loc[(run, measure)]
        assert row["change_ns"] == row["time_ns"] - row["before_ns"]
        if measure == STEP_TIME:
            listed = table.loc[run, ["change_ns", "change_low_ns", "change_high_ns", "significant"]]
            assert row["time_ns"] == table.loc[run, "step_ns"]
        elif measure in ("idle", "communication"):
            assert row["time_ns"] == table.loc[run, f"{measure}_ns"]
            continue
        else:
            listed = waterfall.loc[(run, measure), ["change_ns", "low_ns", "high_ns", "significant"]]
            assert row["time_ns"] == waterfall.loc[(run, measure), "time_ns"]
        assert row[["change_ns", "low_ns", "high_ns", "significant"]].tolist() == listed.tolist()
    parts = set(waterfall.index.unique("part")) - {STEP}
    assert set(frame.index.unique("measure")) == parts | {STEP_TIME, "idle", "communication"}


def test_communication_is_what_the_collectives_take_in_the_steps():
    """By hand: all communication of the job within the steps, over steps and ranks."""
    trace = runs()["gpt2_ddp"]
    steps = sample({"ddp": trace})["ddp"]
    total = 0
    for at, rank in enumerate(steps.ranks):
        for start, end in steps.windows[:, at].tolist():
            overlap = comm_comp_overlap(trace, Scope(ranks=(rank,), window_ns=(start, end)))
            total += int(overlap["communication_ns"].sum())
    frame = step_measures(runs()).set_index(["run", "measure"])
    expected = total / (len(steps) * len(steps.ranks))
    assert abs(frame.loc[("gpt2_ddp", "communication"), "time_ns"] - expected) <= 1


@pytest.mark.parametrize(
    ("cause", "category", "call"),
    [
        ("host_sync", "cuda_runtime", "cudaDeviceSynchronize"),
        ("data_stall", "user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
        ("host_busy", "cpu_op", "aten::slow"),
    ],
)
def test_what_one_cause_of_idle_time_adds_is_what_all_of_them_add(tmp_path, cause, category, call):
    """The second run waits longer in one call, and nothing else changes."""
    found = {}
    for name, longer in (("fast", 0), ("slow", 40_000)):
        events = []
        for number in range(6):
            begin = 200_000 * number
            wait = 20_000 + longer + 100 * number
            events += [
                event("user_annotation", f"ProfilerStep#{number}", begin, 200_000),
                event(category, call, begin, wait),
                launch(begin + wait, number + 1),
                kernel("k", begin + wait + 10, 200_000 - wait - 10, correlation=number + 1),
            ]
        (tmp_path / name).mkdir()
        found[name] = job(tmp_path / name, events)
    frame = step_measures(found).set_index("measure")
    assert frame.loc[cause, "change_ns"] == frame.loc["idle", "change_ns"] > 0
    for edge in ("low_ns", "high_ns"):
        assert frame.loc["idle", edge] == pytest.approx(frame.loc[cause, edge])
    assert frame.loc["idle", "significant"]


def test_nothing_between_a_run_and_itself():
    trace = runs()["gpt2_ddp"]
    frame = step_measures({"a": trace, "b": trace})
    assert (frame["change_ns"] == 0).all() and not frame["significant"].any()


def test_without_device_events_there_is_the_step_of_the_host(tmp_path):
    def host_only(name, step):
        marks = [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 1, "tid": 1,
             "ts": n * step + n // 2, "dur": step + n % 2, "args": {}}
            for n in range(6)
        ]  # fmt: skip
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": marks}), encoding="utf-8")
        return Trace.open(path, cache=False)

    frame = step_measures({"a": host_only("a", 500), "b": host_only("b", 700)})
    (row,) = frame.to_dict("records")
    assert (row["run"], row["measure"], row["significant"]) == ("b", STEP_TIME, True)
    assert (row["before_ns"], row["time_ns"], row["change_ns"]) == (500_500, 700_500, 200_000)
    assert row["low_ns"] < 200_000 < row["high_ns"]


def test_runs_that_cannot_be_compared():
    with pytest.raises(NotComparableError):
        step_measures({"a": runs()["gpt2_ddp"], "b": examples.load("inference_cuda_graphs")})
    with pytest.raises(ValueError, match="at least 2"):
        step_measures({"a": runs()["gpt2_ddp"]})


def test_recorded_runs():
    both = {name: Trace.open(shared_trace(f"hta/trace_diff/{name}")) for name in ("control", "test")}
    frame = step_measures(both)
    assert frame["measure"].is_unique and len(frame) == 14
    wholes = frame.set_index("measure")
    causes = wholes.index.difference(["compute", "exposed_communication", "exposed_memory", "idle",
                                      "communication", STEP_TIME])  # fmt: skip
    assert wholes.loc["idle", "time_ns"] == wholes.loc[causes, "time_ns"].sum()
    assert frame.dtypes.map(str).to_dict() == {
        "run": TEXT_DTYPE, "measure": TEXT_DTYPE,
        "before_ns": "int64", "time_ns": "int64", "change_ns": "int64",
        "low_ns": "float64", "high_ns": "float64", "significant": "bool", "verdict": TEXT_DTYPE,
    }  # fmt: skip
