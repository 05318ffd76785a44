"""HTA's symbol table: ids, look-ups, coding frames."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable, decode_symbol_id_to_symbol_name
from hta_widgets.hta.common.types import DeviceType, GroupingPattern, infer_device_type, to_grouping_pattern
from tests.support import TEXT_DTYPE


def test_ids_follow_the_order_of_addition():
    table = TraceSymbolTable(["b", "a", "b"])
    table.add_symbols_mp([["c"], ["a", "d"]])
    assert table.get_sym_table() == ["b", "a", "c", "d"]
    assert table.get_sym_index() == table.get_sym_id_map() == {"b": 0, "a": 1, "c": 2, "d": 3}
    assert table.get_sym_table_series().to_dict() == {0: "b", 1: "a", 2: "c", 3: "d"}
    assert table.get_sym_index_series().to_dict() == table.sym_index
    assert not table.is_empty() and TraceSymbolTable().is_empty()


@pytest.mark.parametrize("seed", ["0", "1"])
def test_ids_of_a_set_do_not_depend_on_the_hash_seed(seed):
    code = (
        "from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable as T;"
        "t = T(); t.add_symbols({'x', 'y', 'z', 'w'}); print(t.sym_table)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "['w', 'x', 'y', 'z']"


def test_patterns_select_symbols():
    table = TraceSymbolTable(["a", "b", "c", "b1"])
    pattern = re.compile("a|b")
    assert table.get_symbol_ids(GroupingPattern(pattern)) == {"a": 0, "b": 1, "b1": 3}
    assert table.get_symbol_ids(GroupingPattern(pattern, inverse_match=True)) == {"c": 2}
    assert table.get_symbol_names([3, 0, 99, -1]) == {0: "a", 3: "b1"}


def test_texts_are_found_literally():
    table = TraceSymbolTable(["Optimizer.step", "Opt", "OptXstep"])
    assert table.find_matched_symbols(["r.step", "zzz"]) == ["Optimizer.step"]
    assert table.find_matched_symbols(["Opt.step", "p("]) == []
    assert table.find_matches(["Opt"]) == [0, 1, 2]


def test_making_grouping_patterns():
    item = to_grouping_pattern(["a", "b"], "g", True)
    assert (item.group_name, item.inverse_match, item.match("b"), item.match("c")) == ("g", True, False, True)
    assert to_grouping_pattern(item) is item
    assert to_grouping_pattern("x").match("xy")
    with pytest.raises(ValueError, match="int"):
        to_grouping_pattern(3)


def test_from_ids_with_gaps():
    table = TraceSymbolTable.create_from_symbol_id_map({"A": 1, "B": 2, "C": 4})
    assert table.sym_table == ["Undefined-0", "A", "B", "Undefined-3", "C"]


def test_combining_and_cloning():
    item, other = TraceSymbolTable(["a", "b"]), TraceSymbolTable(["b", "c"])
    combined = TraceSymbolTable.combine_symbol_tables([item, other])
    assert combined.sym_table == ["a", "b", "c"]
    clone = TraceSymbolTable.clone(combined)
    clone.add_symbols(["d"])
    assert combined.sym_table == ["a", "b", "c"]


def test_files(tmp_path):
    table = TraceSymbolTable(["a,b", "NA", 'say "x"', "null"])
    table._to_csv_file(tmp_path / "t.csv")
    assert TraceSymbolTable.from_csv_file(tmp_path / "t.csv").sym_table == table.sym_table
    (tmp_path / "wrong.csv").write_text("name\nx\n")
    with pytest.raises(ValueError, match="symbol"):
        TraceSymbolTable.from_csv_file(tmp_path / "wrong.csv")
    with pytest.raises(FileNotFoundError):
        TraceSymbolTable.from_csv_file(tmp_path / "none.csv")


names = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=20)


@given(names, names)
def test_coding_and_decoding_a_frame_is_the_identity(some, others):
    frame = pd.DataFrame(
        {"name": pd.Series(some, dtype=TEXT_DTYPE), "cat": pd.Series(some[::-1], dtype=TEXT_DTYPE)}
    )
    original = frame.copy()
    table = TraceSymbolTable.create_from_df(frame)
    assert table.sym_table == sorted(set(some))
    table.encode_df(frame)
    assert frame["name"].dtype == np.int64
    other = TraceSymbolTable([*others, *some])
    other.update_encoded_df(frame, table)
    other.decode_df(frame)
    assert frame["s_name"].tolist() == original["name"].tolist()
    other.decode_df(frame, create_new_columns=False)
    pd.testing.assert_frame_equal(frame[["name", "cat"]], original)


def test_frames_that_cannot_be_coded():
    with pytest.raises(ValueError, match="text"):
        TraceSymbolTable.create_from_df(pd.DataFrame({"name": [1], "cat": ["a"]}))
    with pytest.raises(KeyError, match="b"):
        TraceSymbolTable(["a"]).encode_df(pd.DataFrame({"name": ["a", "b"], "cat": ["a", "a"]}))


def test_ids_out_of_range_are_nothing():
    table = TraceSymbolTable(["a", "b"])
    frame = pd.DataFrame({"user_annotation": [1, -1, 7, table.NULL], "name": [0, 1, 0, 1], "cat": 0})
    table.add_symbols_to_trace_df(frame, "user_annotation")
    assert frame["user_annotation"].tolist() == ["b", "", "", ""]


def test_decoding_shortens_names_where_asked():
    table = TraceSymbolTable(["void f<int>(int)", "kernel"])
    frame = pd.DataFrame({"name": [0], "cat": [1], "user_annotation": [-1]})
    decode_symbol_id_to_symbol_name(frame, table, use_shorten_name=True)
    assert frame[["s_name", "s_cat", "s_user_annotation"]].to_numpy().tolist() == [["f", "kernel", ""]]


def test_masks():
    table = TraceSymbolTable(
        ["cpu_op", "cuda_driver", "kernel", "cudaLaunchKernel", "hipLaunchKernel", "step"]
    )
    frame = pd.DataFrame({"cat": [0, 1, 2, 1], "name": [5, 3, 3, 4], "index_correlation": [-1, 0, -1, 9]})
    assert table.get_operator_or_cuda_runtime_mask(frame).tolist() == [True, True, False, True]
    # A partner that is event 0 is a partner.
    assert table.get_runtime_launch_events_mask(frame).tolist() == [False, True, False, True]
    assert table.get_events_mask(frame, ["ste"]).tolist() == [True, False, False, False]
    assert not table.get_events_mask(frame, None).any()


def test_ids_of_kinds():
    table = TraceSymbolTable(["cpu_op", "kernel", "ProfilerStep#1", "Memset (Device)", "cudaLaunchKernel"])
    assert table.get_cpu_event_cat_ids() == [0]
    assert table.get_gpu_kernel_cat_ids() == [1]
    assert table.get_profiler_step_ids() == [2]
    assert table.get_memory_name_ids() == [3]
    assert table.get_kernel_launch_ids() == [4]


def test_device_of_a_thread():
    frame = pd.DataFrame({"stream": [0, 0]})
    assert infer_device_type(frame) is DeviceType.GPU
    assert infer_device_type(frame - 1) is DeviceType.CPU
    assert infer_device_type(pd.DataFrame({"stream": [-1, 7]})) is DeviceType.UNKNOWN
    assert infer_device_type(pd.DataFrame({"ts": [1]})) is DeviceType.UNKNOWN
