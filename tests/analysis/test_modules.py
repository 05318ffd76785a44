"""Time of modules: a small model by hand, sums, recorded models."""

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, analysis
from hta_widgets.analysis.calls.modules import OUTSIDE, module_stacks, sentence
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.marks import marks
from hta_widgets.errors import MissingDataError
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_, write


def call(name: str, category: str, start: float, dur: float, **args: int) -> dict:
    return slice_(name, category, start, dur, **args)


# time        0         20        40        60        80       100
# Net         ##############################################
#   Linear       ######      (forward)  ######
#   helper                  ########## -> Linear (same instance, through a function)
# loss                                                          #####
MODEL = [
    call("train.py(1): step", "python_function", 0, 110),
    call("nn.Module: Net_0", "python_function", 0, 90),
    call("nn.Module: Linear_0", "python_function", 10, 20),
    call("aten::mm", "cpu_op", 12, 10),
    call("cudaLaunchKernel", "cuda_runtime", 14, 2, correlation=1),
    call("net.py(9): helper", "python_function", 40, 30),
    call("nn.Module: Linear_0", "python_function", 45, 20),
    call("cudaLaunchKernel", "cuda_runtime", 50, 2, correlation=2),
    call("cudaLaunchKernel", "cuda_runtime", 80, 2, correlation=3),
    call("aten::loss", "cpu_op", 100, 10),
    call("cudaLaunchKernel", "cuda_runtime", 102, 2, correlation=4),
    *(kernel(f"k{number}", 120 + 10 * number, number, correlation=number) for number in range(1, 5)),
]


@pytest.fixture
def model(tmp_path) -> Trace:
    return Trace.open(write(tmp_path / "trace.json", MODEL), cache=False)


def rows(frame, *columns):
    return list(frame[list(columns)].itertuples(index=False, name=None))


def test_calls_of_one_module_by_different_ways_are_one(model):
    frame = module_stacks(model)
    assert rows(frame, "name", "node", "parent_node", "depth", "count") == [
        ("Net_0", 0, -1, 0, 1),
        ("Linear_0", 1, 0, 1, 2),
        (OUTSIDE, 2, -1, 0, 0),
    ]
    assert rows(frame, "host_ns", "host_self_ns", "kernels", "device_ns") == [
        (90_000, 50_000, 3, 6_000),
        (40_000, 40_000, 2, 3_000),
        (20_000, 20_000, 1, 4_000),
    ]
    assert sentence(frame) == (
        "Of all modules, Net_0 itself takes the most host time: 50.0 µs, 45.5 % of the time of all calls. "
        "Modules launch 60.0 % of the device work."
    )
    by_kernels, by_host = ANALYSES["module_stacks"].figure(frame).data
    assert by_kernels.visible and not by_host.visible
    assert (by_host.type, by_host.branchvalues, by_kernels.branchvalues) == ("treemap", "remainder", "total")
    assert list(by_host.labels) == ["rank 0", "Net_0", "Linear_0", OUTSIDE]
    assert list(by_host.parents) == ["", "rank 0", "rank 0:0", "rank 0"]
    assert list(by_host.values) == [0, 50_000, 40_000, 20_000]
    assert list(by_kernels.values) == [10_000, 6_000, 3_000, 4_000]


def test_areas_add_up_to_all_kernels_and_to_all_time_of_the_host(model):
    chart, frame = ANALYSES["module_stacks"].chart, module_stacks(model)
    ranks = pd.concat([frame, frame.assign(rank=1)])  # two ranks lie on each other
    table = marks(chart, ranks).table
    assert rows(table, "name", "parent", "count", "width_0", "width_1") == [
        ("Net_0", -1, 2, 12_000, 180_000),
        (OUTSIDE, -1, 0, 8_000, 40_000),
        ("Linear_0", 0, 4, 6_000, 80_000),
    ]
    tops = table[table["parent"] < 0]
    calls = analysis.call_stacks(model)
    assert tops["width_0"].sum() == 2 * calls.loc[calls["depth"] == 0, "device_ns"].sum()
    assert tops["width_1"].sum() == 2 * calls["host_self_ns"].sum()
    assert {chart.prefix + "Net_0", chart.prefix + "Linear_0"} <= set(calls["name"])


def test_windows_add_up(model):
    halves = [module_stacks(model, Scope(window_ns=window)) for window in ((0, 55_000), (55_000, 200_000))]
    whole = module_stacks(model, Scope(window_ns=(0, 200_000)))
    assert sum(int(half["host_self_ns"].sum()) for half in halves) == int(whole["host_self_ns"].sum())


def test_without_frames_of_modules_it_says_what_to_record(tmp_path):
    trace = Trace.open(write(tmp_path / "trace.json", MODEL[3:5]), cache=False)
    with pytest.raises(MissingDataError, match="with_stack=True"):
        module_stacks(trace)
    assert sentence(module_stacks(trace, Scope(ranks=(7,)))) == "No host call lies in the selection."


@pytest.mark.parametrize(
    "name",
    [
        "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    ],
)
def test_recorded_models_add_up_to_their_call_stacks(name):
    trace = Trace.open(shared_trace(name))
    modules, calls = module_stacks(trace), analysis.call_stacks(trace)
    assert modules["host_self_ns"].sum() == calls["host_self_ns"].sum()
    top = modules[modules["depth"] == 0]
    for column in ("kernels", "device_ns"):
        assert top[column].sum() == calls.loc[calls["depth"] == 0, column].sum()
    assert (modules["host_self_ns"] >= 0).all()
    inner = modules[modules["parent_node"] >= 0].groupby("parent_node")["device_ns"].sum()
    assert (inner <= modules.set_index("node")["device_ns"].reindex(inner.index)).all()
