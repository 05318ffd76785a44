"""HTA's filters: each on a few rows, and the counts that HTA's tests give on a real trace."""

import functools

import pandas as pd
import pytest

from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.common.trace_df import (
    find_events_by_name_patterns_using_decoded_names,
    find_events_by_name_patterns_using_symbol_table,
    find_op_occurrence,
    get_iterations,
    get_symbol_column_names,
)
from hta_widgets.hta.common.trace_filter import (
    CompositeFilter,
    CPUOperatorFilter,
    FirstIterationFilter,
    GPUKernelFilter,
    IterationFilter,
    IterationIndexFilter,
    MemCopyEventFilter,
    NameFilter,
    NameIdColumnFilter,
    NameStringColumnFilter,
    QueryFilter,
    RankFilter,
    TimeRangeFilter,
    ZeroDurationFilter,
)
from hta_widgets.hta.common.trace_stack_filter import (
    AfterOperatorFilter,
    BeforeOperatorFilter,
    CombinedOperatorFilter,
    OperatorFilter,
    OperatorFilterMethod,
    UnderOperatorFilter,
)
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable
from tests.support import shared_trace

TABLE = TraceSymbolTable(["op", "opera", "Memcpy HtoD", "Event Sync", "gpu_memcpy", "cpu_op", "cuda_driver"])


def events():
    frame = pd.DataFrame(
        {
            "index": range(6),
            "iteration": [-1, 5, 5, 6, 6, 7],
            "ts": [0, 10, 12, 20, 26, 30],
            "dur": [9, 8, 3, 10, 0, 5],
            "name": [0, 1, 0, 2, 3, 0],
            "cat": [5, 5, 6, 4, 5, 5],
            "stream": [-1, -1, -1, 7, -1, -1],
            "correlation": [-1, -1, 4, 4, 5, -1],
            "index_correlation": [-1, -1, 3, 2, -1, -1],
            "rank": [0, 0, 0, 1, 1, 2],
            "tid": [1, 1, 1, 7, 1, 2],
        }
    )
    TABLE.decode_df(frame)
    return frame


@functools.cache
def unaligned(name):
    trace = Trace(trace_dir=str(shared_trace(name)))
    trace.parse_traces()
    trace.decode_symbol_ids(use_shorten_name=False)
    return trace


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (IterationFilter(5), [1, 2]),
        (IterationFilter([5, 7, 9]), [1, 2, 5]),
        (IterationIndexFilter(0), [1, 2]),
        (IterationIndexFilter([1, 2]), [3, 4, 5]),
        (FirstIterationFilter(), [1, 2]),
        (RankFilter([1, 2]), [3, 4, 5]),
        (TimeRangeFilter((10, 30)), [1, 2, 3, 4]),
        (TimeRangeFilter((0.0, 9.0)), [0]),
        (NameFilter("op"), [0, 1, 2, 5]),
        (NameFilter("op$", TABLE), [0, 2, 5]),
        (NameFilter("cpu", name_column="s_cat"), [0, 1, 4, 5]),
        (NameStringColumnFilter("Mem"), [3]),
        (QueryFilter("dur > 8 and stream < 0"), [0]),
        (ZeroDurationFilter, [0, 1, 2, 3, 5]),
        (GPUKernelFilter(), [3]),
        (CPUOperatorFilter(), [0, 1, 2, 4, 5]),
        (MemCopyEventFilter("Memcpy HtoD", TABLE), [3]),
        (MemCopyEventFilter("Memcpy DtoD", TABLE), []),
        (CompositeFilter([IterationFilter([5, 6]), ZeroDurationFilter, NameFilter("op")]), [1, 2]),
    ],
)
def test_filters(keep, kept):
    assert keep(events())["index"].tolist() == kept


def test_filters_with_a_symbol_table():
    assert GPUKernelFilter()(events(), TABLE)["index"].tolist() == [3, 4]
    assert CPUOperatorFilter()(events(), TABLE)["index"].tolist() == [0, 1, 2, 5]
    assert NameIdColumnFilter("op$")(events(), TABLE)["index"].tolist() == [0, 2, 5]


def test_frames_without_names():
    encoded = events().drop(columns=["name", "s_name"])
    assert GPUKernelFilter()(encoded)["index"].tolist() == [3]
    assert CPUOperatorFilter()(encoded)["index"].tolist() == [0, 1, 2, 4, 5]
    assert MemCopyEventFilter("Memcpy DtoD", TABLE)(encoded).empty
    assert MemCopyEventFilter("Memcpy HtoD")(encoded).empty
    # A table without waits of the device has no name to look for.
    assert GPUKernelFilter()(encoded, TraceSymbolTable(["op"]))["index"].tolist() == [3]
    with pytest.raises(KeyError, match="name"):
        GPUKernelFilter()(encoded, TABLE)


def test_positions_that_select_nothing():
    with pytest.warns(UserWarning, match="select none"):
        assert IterationIndexFilter(-1)(events()).empty
    no_steps = events().assign(iteration=-1)
    assert len(IterationIndexFilter(0)(no_steps)) == 6


@pytest.mark.parametrize(
    ("keep", "column"),
    [
        (IterationFilter(1), "iteration"),
        (IterationIndexFilter(1), "iteration"),
        (RankFilter(1), "rank"),
        (TimeRangeFilter((0, 1)), "ts"),
        (GPUKernelFilter(), "stream"),
        (CPUOperatorFilter(), "stream"),
    ],
)
def test_without_its_column_a_filter_warns_and_keeps_all(keep, column):
    with pytest.warns(UserWarning, match=column):
        assert len(keep(events().drop(columns=column))) == 6


def test_names_that_cannot_be_read():
    encoded = events().drop(columns=["s_name", "s_cat"])
    for keep in (NameStringColumnFilter("op"), NameIdColumnFilter("op"), NameFilter("op")):
        with pytest.warns(UserWarning, match="nothing is filtered"):
            assert len(keep(encoded)) == 6


@pytest.mark.parametrize("make", [IterationFilter, IterationIndexFilter, RankFilter])
def test_numbers_are_numbers(make):
    with pytest.raises(TypeError, match="str"):
        make("5")


@pytest.mark.parametrize("time_range", [(2, 1), (1,), [1, 2], ("a", "b"), (float("nan"), 1)])
def test_time_ranges(time_range):
    with pytest.raises(ValueError, match="time_range"):
        TimeRangeFilter(time_range)


def test_composites_hold_filters():
    with pytest.raises(TypeError, match="no Filter"):
        CompositeFilter([lambda df: df])


def test_iterations_of_a_frame():
    assert get_iterations(events()) == [5, 6, 7]
    assert get_iterations(events().assign(iteration=-1)) == []
    for frame in (events().drop(columns="iteration"), events().assign(iteration="a")):
        with pytest.raises(TypeError, match="iteration"):
            get_iterations(frame)


def test_occurrences():
    frame = events()
    assert find_op_occurrence(frame, "op", 1)[1]["index"] == 2
    assert find_op_occurrence(frame, "op", -1)[1]["index"] == 5
    for position in (3, -4):
        assert find_op_occurrence(frame, "op", position)[0] is False
    assert find_op_occurrence(frame, "none", 0)[0] is False
    assert get_symbol_column_names(frame) == ("s_name", "s_cat")
    assert get_symbol_column_names(frame[["ts"]]) == ("", "")


def test_events_by_patterns():
    patterns = ["Mem", "op.+"]
    assert find_events_by_name_patterns_using_symbol_table(events(), patterns, TABLE).tolist() == [1, 3]
    assert find_events_by_name_patterns_using_decoded_names(events(), patterns).tolist() == [1, 3]


def test_around_an_operator():
    frame = events()
    assert UnderOperatorFilter("opera", 0)(frame)["index"].tolist() == [1, 2]
    assert UnderOperatorFilter("opera", 0, include_gpu_kernels=True)(frame)["index"].tolist() == [1, 2, 3]
    assert AfterOperatorFilter("opera", 0)(frame)["index"].tolist() == [4, 5]
    assert BeforeOperatorFilter("opera", 0)(frame)["index"].tolist() == [0]
    ancestors = OperatorFilter("op", 1, OperatorFilterMethod.Ancestors)
    assert ancestors(frame)["index"].tolist() == [1, 2]
    stack = OperatorFilter("opera", 0, OperatorFilterMethod.Stack)
    assert stack(frame)["index"].tolist() == [1, 2]
    with pytest.warns(UserWarning, match="no occurrence"):
        assert UnderOperatorFilter("none", 0)(frame).empty


def test_operators_do_not_need_a_consistent_end():
    # HTA's aligned frames hold `end` on another axis than `ts`.
    frame = events().assign(end=lambda df: df["ts"] + df["dur"] + 10**15)
    assert UnderOperatorFilter("opera", 0)(frame)["index"].tolist() == [1, 2]


def test_depths_of_combined_filters():
    frame = events().assign(depth=[0, 0, 1, 2, 0, 0])
    keep = CombinedOperatorFilter("opera", "none", "none", include_gpu_kernels=True, stack_depths=[1])
    assert keep(frame)["index"].tolist() == [3, 2]


# -- HTA's own tests on a real trace ---------------------------------------------------------------------


def test_time_range_on_a_real_trace():
    frame = unaligned("hta/trace_filter").get_trace(0)
    assert len(TimeRangeFilter((1682725898237042, 1682725898240570))(frame)) == 93


def test_names_on_a_real_trace():
    trace = unaligned("hta/trace_filter")
    assert len(NameFilter("aten::.*mm")(trace.get_trace(0), trace.symbol_table)) == 378


@pytest.mark.parametrize(
    ("following", "kernels", "rows", "on_device"),
    [
        ("forward", False, 2, 0),
        ("forward", True, 3, 1),
        ("## sdd_preprocess_tensors ##", True, 411, 104),
    ],
)
def test_combined_filters_on_a_real_trace(following, kernels, rows, on_device):
    frame = unaligned("hta/trace_filter").get_trace(0)
    kept = CombinedOperatorFilter("## forward ##", "All2All_Pooled_Wait", following, kernels)(frame)
    assert (len(kept), int((kept["stream"] >= 0).sum())) == (rows, on_device)


def test_under_an_operator_on_a_real_trace():
    frame = unaligned("hta/trace_filter").get_trace(0)
    assert len(UnderOperatorFilter("forward", 0, include_gpu_kernels=True)(frame)) == 146


def test_device_waits_on_a_real_trace():
    trace = unaligned("hta/critical_path/cuda_event_sync")
    kept = GPUKernelFilter()(trace.get_trace(0), trace.symbol_table)
    assert int((kept["stream"] == -1).sum()) == 3
